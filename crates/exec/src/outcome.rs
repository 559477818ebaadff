//! What a run gives: rowsets, and what came of each result.
//! Invariant: a rowset carries its coverage wherever it goes.

use std::sync::Arc;

use catalog::Row;

use crate::coverage::Coverage;
use crate::error::StepError;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rowset {
    pub rows: Vec<Row>,
    pub coverage: Coverage,
}

/// What came of each result of the plan, in its order.
#[derive(Debug)]
pub struct Outcome {
    pub returns: Vec<Finished>,
}

#[derive(Debug)]
pub struct Finished {
    pub label: String,
    pub entity: String,
    pub columns: Vec<String>,
    /// Columns that the catalog shows only in the artifact when space is short.
    pub long_columns: Vec<String>,
    pub result: Result<Arc<Rowset>, Arc<StepError>>,
}

impl Outcome {
    pub fn failed(&self) -> bool {
        self.returns.iter().any(|r| r.result.is_err())
    }
}
