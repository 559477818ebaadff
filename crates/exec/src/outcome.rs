//! The result of a run: row sets, one result per return of the plan, and the receipts of its effects.
//! Invariant: a row set keeps its coverage wherever it goes; rows are shared, never changed.

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

/// The rows of one step, with their coverage.
#[derive(Debug, Clone, PartialEq)]
pub struct Rowset {
    pub rows: Vec<Arc<Row>>,
    pub coverage: Coverage,
    /// Whether these rows are the first ones of the full data, in its order. A limit is complete only on such rows.
    /// Filtering partial data keeps this; sorting partial data does not.
    pub leading: bool,
    /// The rows that references of these rows lead to, as far as they were read.
    pub attached: Vec<Arc<Attached>>,
    /// Where to read on, if the list has more rows.
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

    /// Returns the same row set with some of its rows.
    pub(crate) fn with_rows(&self, rows: Vec<Arc<Row>>) -> Self {
        Self { rows, ..self.without_rows() }
    }

    /// Returns a row set of new rows made from these, in the same order. Attached rows are dropped, since they belong
    /// to the old rows.
    pub(crate) fn derived(&self, rows: Vec<Row>) -> Self {
        Self { rows: rows.into_iter().map(Arc::new).collect(), attached: Vec::new(), ..self.without_rows() }
    }

    /// Returns the first `count` rows. They are complete if all of them are present and no row before them is
    /// missing.
    pub(crate) fn first_rows(&self, count: usize) -> Self {
        let rows = self.rows.iter().take(count).cloned().collect();
        if self.leading && self.rows.len() >= count {
            return Self { rows, attached: self.attached.clone(), ..Self::default() };
        }
        self.with_rows(rows)
    }

    /// Returns the same rows, with the coverage of another input added.
    pub(crate) fn with_coverage(mut self, also: &Coverage) -> Self {
        self.coverage = self.coverage.and(also.clone());
        self
    }

    fn without_rows(&self) -> Self {
        Self {
            rows: Vec::new(),
            coverage: self.coverage.clone(),
            leading: self.leading,
            attached: self.attached.clone(),
            rest: self.rest.clone(),
        }
    }
}

/// A reference and the row it leads to.
type ResolvedReference = (Value, Option<Arc<Row>>);

/// The rows that the references at one path lead to. `None` marks a reference that was requested and leads to
/// nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    pub path: Path,
    rows: HashMap<u64, Vec<ResolvedReference>>,
}

impl Attached {
    pub fn new(path: Path) -> Self {
        Self { path, rows: HashMap::new() }
    }

    /// Adds the row of a reference, or `None` if it leads to nothing.
    pub fn insert(&mut self, reference: Value, row: Option<Arc<Row>>) {
        self.rows.entry(hash_of(&reference)).or_default().push((reference, row));
    }

    /// Returns the row that a reference leads to.
    pub fn find(&self, reference: &Value) -> Option<&Arc<Row>> {
        let found = self.rows.get(&hash_of(reference))?;
        found.iter().find(|(known, _)| crate::data::hash::same(known, reference))?.1.as_ref()
    }
}

/// The result of each return of the plan, in its order, and a receipt for each effect, in starting order.
#[derive(Debug)]
pub struct Outcome {
    pub returns: Vec<ReturnResult>,
    pub receipts: Vec<Receipt>,
    /// The run was cancelled before its end.
    pub cancelled: bool,
    /// The time of each step that started, in the order they ended. Empty for an outcome that was read back from
    /// storage.
    pub step_times: Vec<StepTime>,
}

/// How long one step took, for logs and traces only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTime {
    pub name: String,
    pub time: Duration,
    /// The number of rows. `None` if the step failed.
    pub rows: Option<usize>,
}

/// The result of one return of the plan.
#[derive(Debug)]
pub struct ReturnResult {
    pub label: String,
    pub entity: String,
    pub columns: Vec<String>,
    /// Columns that the catalog shows only in the artifact when space is short.
    pub long_columns: Vec<String>,
    /// The rows are the API's answers to effects.
    pub effect: bool,
    pub result: Result<Arc<Rowset>, Arc<StepError>>,
}

impl Outcome {
    pub fn failed(&self) -> bool {
        self.returns.iter().any(|r| r.result.is_err())
    }
}
