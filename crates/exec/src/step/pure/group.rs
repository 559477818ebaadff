//! One row for each combination of values, with its counts and sums.
//! Invariant: groups come in order of first appearance; a reference groups by its key; a missing value is a group of
//! its own.

use std::collections::HashMap;
use std::hash::Hash;

use catalog::Row;
use lang::plan::{Aggregation, NamedPath};
use serde_json::Value;

use super::aggregate::{Readers, Tally};
use crate::coverage::Coverage;
use crate::data::hash::ByValue;
use crate::outcome::Rowset;
use crate::value::view::{View, Walk};

pub fn apply(view: &View<'_>, by: &[NamedPath], specs: &[Aggregation]) -> Rowset {
    let walks: Vec<Walk<'_>> = by.iter().map(|column| view.walk(&column.path)).collect();
    let readers = Readers::new(view, specs);
    let rows = match walks.as_slice() {
        [only] => grouped(view, &readers, |row| only.find(row).map(ByValue)),
        several => grouped(view, &readers, |row| several.iter().map(|w| w.find(row).map(ByValue)).collect::<Vec<_>>()),
    };
    let group_row = |(row, tallies): &(&Row, Vec<Tally<'_>>)| {
        let values = walks.iter().map(|walk| walk.find(row).cloned().unwrap_or_default());
        let head: Row = by.iter().map(|n| n.name.to_string()).zip(values).collect::<serde_json::Map<String, Value>>();
        readers.finish(tallies, head)
    };
    let mut grouped_rows = view.rows.derived(rows.iter().map(group_row).collect());
    // Any group may be larger than the part of it that was read.
    grouped_rows.leading = grouped_rows.coverage == Coverage::Complete;
    grouped_rows
}

/// Returns the first row of each group, with its aggregates.
fn grouped<'v, K: Hash + Eq>(
    view: &View<'v>,
    readers: &Readers<'v>,
    key: impl Fn(&'v Row) -> K,
) -> Vec<(&'v Row, Vec<Tally<'v>>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(&Row, Vec<Tally<'_>>)> = Vec::new();
    for row in &view.rows.rows {
        let at = *places.entry(key(row)).or_insert_with(|| {
            groups.push((row, readers.start()));
            groups.len() - 1
        });
        if let Some((_, tallies)) = groups.get_mut(at) {
            readers.add(tallies, row);
        }
    }
    groups
}
