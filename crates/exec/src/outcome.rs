//! The result of a run: row sets and their continuations, one result per return of the plan, and the receipts of its
//! effects.
//! Invariant: a row set keeps its coverage wherever it goes. Rows are shared and never changed. A continuation is plain
//! data, so a later run or another process can use it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Args, PageRequest, Row};
use lang::plan::{CapabilityRef, Path};
use ports::receipts::Receipt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::coverage::Coverage;
use crate::data::equality::{hash_of, is_equal};
use crate::error::StepError;

/// The rows of one step, with their coverage.
#[derive(Debug, Clone, PartialEq)]
pub struct Rowset {
    pub rows: Vec<Arc<Row>>,
    /// How much of the requested data the rows are.
    pub coverage: Coverage,
    /// Whether these rows are the first ones of the full data, in its order. A limit is complete only on such rows.
    /// Filtering partial data keeps this; sorting partial data does not.
    pub leading: bool,
    /// The rows that references of these rows lead to, as far as they were read.
    pub attached: Vec<Arc<Attached>>,
    /// The position to read on from, if the list has more rows.
    pub rest: Option<Arc<Continuation>>,
}

impl Default for Rowset {
    fn default() -> Self {
        Self { rows: Vec::new(), coverage: Coverage::Complete, leading: true, attached: Vec::new(), rest: None }
    }
}

impl Rowset {
    /// Returns a complete row set of new rows.
    pub fn complete(rows: Vec<Row>) -> Self {
        Self { rows: rows.into_iter().map(Arc::new).collect(), ..Self::default() }
    }

    /// Returns a complete row set of one new row.
    pub fn one(row: Row) -> Self {
        Self::complete(vec![row])
    }

    /// Returns the same row set with other rows, which must be some of its own.
    pub(crate) fn with_rows(&self, rows: Vec<Arc<Row>>) -> Self {
        Self { rows, ..self.without_rows() }
    }

    /// Returns a row set of new rows made from these, in the same order. Attached rows are dropped, since they belong
    /// to the old rows.
    pub(crate) fn with_new_rows(&self, rows: Vec<Row>) -> Self {
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
    pub(crate) fn with_coverage(mut self, other: &Coverage) -> Self {
        self.coverage = self.coverage.and(other.clone());
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

/// A reference and the row that it leads to.
type ResolvedReference = (Value, Option<Arc<Row>>);

/// The rows that the references at one path lead to. A reference that was requested and leads to nothing is kept with
/// `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    /// The path of the references in the rows that they belong to.
    pub path: Path,
    /// By the hash of the reference. References with the same hash are compared as data.
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
        let candidates = self.rows.get(&hash_of(reference))?;
        candidates.iter().find(|(known, _)| is_equal(known, reference))?.1.as_ref()
    }
}

/// The position from which an unfinished list is read on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The call that reads the list, which is repeated with these arguments.
    pub call: CapabilityRef,
    pub args: Args,
    /// The page to ask for. `None` if the API has no pages: the list is then read again from its start and `skip`
    /// rows are dropped.
    pub page: Option<PageRequest>,
    /// The number of rows of that page that were already returned.
    pub skip: usize,
    /// The number of rows that came before that page.
    pub seen: usize,
}

/// The result of a run. It has no error of its own: a failure is the result of a return.
#[derive(Debug)]
pub struct Outcome {
    /// In the order of the plan.
    pub returns: Vec<ReturnResult>,
    /// In the order in which the effects started.
    pub receipts: Vec<Receipt>,
    /// Whether the run was cancelled before its end.
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
    /// The name of the returned expression in the program.
    pub label: String,
    /// The entity of the rows; empty for rows that the program made.
    pub entity: String,
    /// The names of the columns, in the order in which they are shown.
    pub columns: Vec<String>,
    /// Columns that the catalog shows only in the artifact when space is short.
    pub long_columns: Vec<String>,
    /// Whether the rows are the API's answers to effects.
    pub effect: bool,
    pub result: Result<Arc<Rowset>, Arc<StepError>>,
}

impl Outcome {
    /// Returns whether a return has failed.
    pub fn failed(&self) -> bool {
        self.returns.iter().any(|r| r.result.is_err())
    }
}
