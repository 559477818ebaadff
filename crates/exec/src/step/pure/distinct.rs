//! The first row of each combination of values.
//! Invariant: the kept rows stay in order; without columns the whole row counts.

use std::collections::HashSet;

use catalog::Row;
use lang::plan::Path;

use crate::data::hash::ByValue;
use crate::outcome::Rowset;
use crate::value::view::{View, Walk};

pub fn apply(view: &View<'_>, by: &[Path]) -> Rowset {
    let rows = &view.rows.rows;
    let walks: Vec<Walk<'_>> = by.iter().map(|path| view.walk(path)).collect();
    let kept = match walks.as_slice() {
        [only] => {
            let mut seen = HashSet::new();
            rows.iter().filter(|row| seen.insert(only.find(row).map(ByValue))).cloned().collect()
        }
        several => {
            let mut seen = HashSet::new();
            rows.iter().filter(|row| seen.insert(whole(row, several))).cloned().collect()
        }
    };
    view.rows.with_rows(kept)
}

/// Returns the compared values of a row: the given columns, or all columns with their names.
fn whole<'r>(row: &'r Row, walks: &[Walk<'r>]) -> Vec<(&'r str, Option<ByValue<'r>>)> {
    if walks.is_empty() {
        return row.iter().map(|(name, value)| (name.as_str(), Some(ByValue(value)))).collect();
    }
    walks.iter().map(|walk| ("", walk.find(row).map(ByValue))).collect()
}
