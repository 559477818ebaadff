//! The steps that keep some of the rows: the first ones, the last, the only one, or the first of each combination of values.
//! Invariant: the kept rows stay in order. A limit that is reached is complete if no row before it is missing; otherwise the
//! coverage of the input stays.

use std::collections::HashSet;

use catalog::Row;
use lang::plan::Path;

use crate::coverage::Coverage;
use crate::data::equality::ByValue;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::view::{RowsView, Walk};

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

/// Returns the only row. `what` names the rows in the error message.
pub fn singleton(input: &Rowset, what: &str) -> Result<Rowset, StepError> {
    match input.rows.len() {
        1 => Ok(input.clone()),
        found => Err(StepError::NotOne { what: what.to_owned(), found }),
    }
}

/// Returns the first row of each combination of values. Without columns the whole row counts.
pub fn distinct(view: &RowsView<'_>, by: &[Path]) -> Rowset {
    let rows = &view.rows.rows;
    let walks: Vec<Walk<'_>> = by.iter().map(|path| view.walk(path)).collect();
    let kept = match walks.as_slice() {
        // One column is the common case, and needs no list for each row.
        [only] => {
            let mut known = HashSet::new();
            rows.iter().filter(|row| known.insert(only.find(row).map(ByValue))).cloned().collect()
        }
        several => {
            let mut known = HashSet::new();
            rows.iter().filter(|row| known.insert(compared_values(row, several))).cloned().collect()
        }
    };
    view.rows.with_rows(kept)
}

/// Returns the values of a row that are compared: those of the given columns, or all of them with their names.
fn compared_values<'r>(row: &'r Row, walks: &[Walk<'r>]) -> Vec<(&'r str, Option<ByValue<'r>>)> {
    if walks.is_empty() {
        return row.iter().map(|(name, value)| (name.as_str(), Some(ByValue(value)))).collect();
    }
    walks.iter().map(|walk| ("", walk.find(row).map(ByValue))).collect()
}
