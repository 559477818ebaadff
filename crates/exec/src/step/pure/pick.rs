//! The steps that select rows: the first rows, the last row, the only row, or the first row of each combination of values.
//! Invariant: the selected rows stay in order. A reached limit is complete if the input rows are the first rows of the full
//! data; otherwise the result has the coverage of the input.

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

/// Returns the last row. With partial input, the coverage stays partial, because later rows may exist.
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

/// Returns the first row of each combination of values in the columns `by`. If `by` is empty, whole rows are compared.
pub fn distinct(view: &RowsView<'_>, by: &[Path]) -> Rowset {
    let rows = &view.rows.rows;
    let walks: Vec<Walk<'_>> = by.iter().map(|path| view.walk(path)).collect();
    let kept = match walks.as_slice() {
        // One column is the common case. It avoids the allocation of a list for each row.
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

/// Returns the values of a row that `distinct` compares: the values at the given paths, or all columns with their names.
fn compared_values<'r>(row: &'r Row, walks: &[Walk<'r>]) -> Vec<(&'r str, Option<ByValue<'r>>)> {
    if walks.is_empty() {
        return row.iter().map(|(name, value)| (name.as_str(), Some(ByValue(value)))).collect();
    }
    walks.iter().map(|walk| ("", walk.find(row).map(ByValue))).collect()
}
