//! The outcome of a run: row sets with continuations, one result for each return of the plan, and the receipts of effects.
//! Invariant: a row set keeps its coverage through every step. Rows are shared and never changed. A continuation contains only
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
    /// Whether the rows are all requested data or a part.
    pub coverage: Coverage,
    /// Whether these rows are the first rows of the full data, in order. Only then is the result of a limit complete. A filter
    /// on partial data keeps the flag; a sort of partial data clears it.
    pub leading: bool,
    /// The rows to which references in these rows refer, as far as they were read.
    pub attached: Vec<Arc<Attached>>,
    /// The position from which the list can be continued. `None` if the list was read to its end.
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

    /// Returns a row set with a part of this row set's rows. Coverage, attached rows and continuation stay.
    pub(crate) fn with_rows(&self, rows: Vec<Arc<Row>>) -> Self {
        Self { rows, ..self.without_rows() }
    }

    /// Returns a row set of new rows that were made from these rows, in the same order. Attached rows are removed, because they
    /// belong to the old rows.
    pub(crate) fn with_new_rows(&self, rows: Vec<Row>) -> Self {
        Self { rows: rows.into_iter().map(Arc::new).collect(), attached: Vec::new(), ..self.without_rows() }
    }

    /// Returns the first `count` rows. The result is complete if this row set is `leading` and has at least `count` rows.
    pub(crate) fn first_rows(&self, count: usize) -> Self {
        let rows = self.rows.iter().take(count).cloned().collect();
        if self.leading && self.rows.len() >= count {
            return Self { rows, attached: self.attached.clone(), ..Self::default() };
        }
        self.with_rows(rows)
    }

    /// Returns this row set with its coverage combined with the coverage of another input.
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

/// A reference with the row that it refers to; `None` if the API has no such row.
type ResolvedReference = (Value, Option<Arc<Row>>);

/// The rows to which the references at one path refer. A reference to a row that does not exist is stored with `None`, so that
/// it is not read again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    /// The path of the references within the referring rows.
    pub path: Path,
    /// References and their rows, by the hash of the reference. References with the same hash are compared with `is_equal`.
    rows: HashMap<u64, Vec<ResolvedReference>>,
}

impl Attached {
    pub fn new(path: Path) -> Self {
        Self { path, rows: HashMap::new() }
    }

    /// Adds a reference with its row, or with `None` if the API has no such row.
    pub fn insert(&mut self, reference: Value, row: Option<Arc<Row>>) {
        self.rows.entry(hash_of(&reference)).or_default().push((reference, row));
    }

    /// Returns the row to which a reference refers.
    pub fn find(&self, reference: &Value) -> Option<&Arc<Row>> {
        let candidates = self.rows.get(&hash_of(reference))?;
        candidates.iter().find(|(known, _)| is_equal(known, reference))?.1.as_ref()
    }
}

/// The position from which an unfinished list can be continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The capability that reads the list. It is called again with `args`.
    pub call: CapabilityRef,
    pub args: Args,
    /// The page to request. `None` if the API has no pages; the list is then read again from its start, and `skip` rows are
    /// dropped.
    pub page: Option<PageRequest>,
    /// The number of rows of the page that were already returned.
    pub skip: usize,
    /// The number of rows in all pages before the page.
    pub seen: usize,
}

/// The result of a run. A failed step does not fail the run; its error is the result of the returns that need the step.
#[derive(Debug)]
pub struct Outcome {
    /// The results of the plan's returns, in the order of the plan.
    pub returns: Vec<ReturnResult>,
    /// The receipts of the effects, in the order in which the effects started.
    pub receipts: Vec<Receipt>,
    /// Whether a step did not run because the run was cancelled.
    pub cancelled: bool,
    /// The duration of each started step, in the order in which the steps ended. It is empty for an outcome that was loaded
    /// from storage.
    pub step_times: Vec<StepTime>,
}

/// The duration of one step, for logs and traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTime {
    pub name: String,
    pub time: Duration,
    /// The number of rows that the step returned; `None` if the step failed.
    pub rows: Option<usize>,
}

/// The result of one return of the plan.
#[derive(Debug)]
pub struct ReturnResult {
    /// The name of the returned expression in the program.
    pub label: String,
    /// The name of the rows' entity; empty for rows that the program constructed.
    pub entity: String,
    /// The names of the columns in display order.
    pub columns: Vec<String>,
    /// The columns with long text, which the catalog marks with `show: artifact`.
    pub long_columns: Vec<String>,
    /// Whether the rows are answers of the API to effects.
    pub effect: bool,
    pub result: Result<Arc<Rowset>, Arc<StepError>>,
}

impl Outcome {
    /// Returns whether a return has failed.
    pub fn failed(&self) -> bool {
        self.returns.iter().any(|r| r.result.is_err())
    }
}
