//! Some of the rows by their place: the first ones, the last, the only one.
//! Invariant: asked for and got is complete, if nothing before it is missing; fewer is as complete as what was read.

use crate::coverage::Coverage;
use crate::error::StepError;
use crate::outcome::Rowset;

pub fn limit(input: &Rowset, count: usize) -> Rowset {
    input.first_rows(count)
}

pub fn last(input: &Rowset) -> Rowset {
    let mut last = input.keep(input.rows.last().cloned().into_iter().collect());
    last.leading = last.coverage == Coverage::Complete;
    last
}

/// `what` is the name of the rows.
pub fn singleton(input: &Rowset, what: &str) -> Result<Rowset, StepError> {
    match input.rows.len() {
        1 => Ok(input.clone()),
        found => Err(StepError::NotOne { what: what.to_owned(), found }),
    }
}
