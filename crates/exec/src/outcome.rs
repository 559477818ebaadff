//! What a run gives: rowsets, what came of each result, and the receipts of its effects.
//! Invariant: a rowset carries its coverage wherever it goes; rows are shared, never changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::Row;
use lang::plan::Path;
use ports::receipts::Receipt;
use serde_json::Value;

use crate::continuation::Continuation;
use crate::coverage::Coverage;
use crate::data::hash::hash_of;
use crate::error::StepError;

#[derive(Debug, Clone, PartialEq)]
pub struct Rowset {
    pub rows: Vec<Arc<Row>>,
    pub coverage: Coverage,
    /// Whether these are the first of what they stand for, in its order: only then are enough of them all that a limit asks.
    /// A sort of a part is not; a filter of one is.
    pub leading: bool,
    /// What references of these rows lead to, where it was read.
    pub attached: Vec<Arc<Attached>>,
    /// Where the list goes on, if more of it is there.
    pub rest: Option<Arc<Continuation>>,
}

impl Default for Rowset {
    fn default() -> Self {
        Self { rows: Vec::new(), coverage: Coverage::Complete, leading: true, attached: Vec::new(), rest: None }
    }
}

impl Rowset {
    pub fn complete(rows: Vec<Row>) -> Self {
        Self { rows: rows.into_iter().map(Arc::new).collect(), ..Self::default() }
    }

    pub fn one(row: Row) -> Self {
        Self::complete(vec![row])
    }

    /// Some of its rows; all else stays as it is.
    pub(crate) fn keep(&self, rows: Vec<Arc<Row>>) -> Self {
        Self { rows, ..self.bare() }
    }

    /// Rows made from its rows, in their order; what was attached to those does not belong to these.
    pub(crate) fn made(&self, rows: Vec<Row>) -> Self {
        Self { rows: rows.into_iter().map(Arc::new).collect(), attached: Vec::new(), ..self.bare() }
    }

    /// The first `count` rows: complete if they are there and nothing before them is missing.
    pub(crate) fn first_rows(&self, count: usize) -> Self {
        let rows = self.rows.iter().take(count).cloned().collect();
        if self.leading && self.rows.len() >= count {
            return Self { rows, attached: self.attached.clone(), ..Self::default() };
        }
        self.keep(rows)
    }

    pub(crate) fn covered(mut self, also: &Coverage) -> Self {
        self.coverage = self.coverage.and(also.clone());
        self
    }

    fn bare(&self) -> Self {
        Self {
            rows: Vec::new(),
            coverage: self.coverage.clone(),
            leading: self.leading,
            attached: self.attached.clone(),
            rest: self.rest.clone(),
        }
    }
}

/// A reference and where it leads.
type Led = (Value, Option<Arc<Row>>);

/// The rows that the references at one path lead to. `None`: it was asked for and is not there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    pub path: Path,
    found: HashMap<u64, Vec<Led>>,
}

impl Attached {
    pub fn new(path: Path) -> Self {
        Self { path, found: HashMap::new() }
    }

    pub fn insert(&mut self, reference: Value, row: Option<Arc<Row>>) {
        self.found.entry(hash_of(&reference)).or_default().push((reference, row));
    }

    pub fn find(&self, reference: &Value) -> Option<&Arc<Row>> {
        let found = self.found.get(&hash_of(reference))?;
        found.iter().find(|(known, _)| crate::data::hash::same(known, reference))?.1.as_ref()
    }
}

/// What came of each result of the plan, in its order, and of each effect, in the order they were begun.
#[derive(Debug)]
pub struct Outcome {
    pub returns: Vec<Finished>,
    pub receipts: Vec<Receipt>,
    /// It was told to stop and did, before its end.
    pub cancelled: bool,
    /// The steps that were begun, in the order they ended; empty for an outcome that was read back.
    pub took: Vec<StepTook>,
}

/// How long one step took. Nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTook {
    pub name: String,
    pub time: Duration,
    /// None where it failed.
    pub rows: Option<usize>,
}

#[derive(Debug)]
pub struct Finished {
    pub label: String,
    pub entity: String,
    pub columns: Vec<String>,
    /// Columns that the catalog shows only in the artifact when space is short.
    pub long_columns: Vec<String>,
    /// Its rows are what the API answered to effects.
    pub effect: bool,
    pub result: Result<Arc<Rowset>, Arc<StepError>>,
}

impl Outcome {
    pub fn failed(&self) -> bool {
        self.returns.iter().any(|r| r.result.is_err())
    }
}
