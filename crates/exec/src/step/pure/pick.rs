//! Rows by position: the first ones, the last, the only one.
//! Invariant: a limit that is reached is complete if no row before it is missing; otherwise the coverage of the input
//! stays.

use crate::coverage::Coverage;
use crate::error::StepError;
use crate::outcome::Rowset;

/// Returns the first `count` rows.
pub fn limit(input: &Rowset, count: usize) -> Rowset {
    input.first_rows(count)
}

/// Returns the last row, which is final only if the input is complete.
pub fn last(input: &Rowset) -> Rowset {
    let mut last = input.with_rows(input.rows.last().cloned().into_iter().collect());
    last.leading = last.coverage == Coverage::Complete;
    last
}

/// Returns the only row. `what` is the name of the rows for the error message.
pub fn singleton(input: &Rowset, what: &str) -> Result<Rowset, StepError> {
    match input.rows.len() {
        1 => Ok(input.clone()),
        found => Err(StepError::NotOne { what: what.to_owned(), found }),
    }
}
