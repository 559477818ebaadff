//! The sort step: rows in the order of one of their values.
//! Invariant: the sort is stable and by the column's type, with `null` last in either direction. Each value is read from its
//! row once.

use std::cmp::Ordering;

use catalog::{Row, Type};
use smol_str::SmolStr;

use crate::coverage::Coverage;
use crate::data::order::{SortKey, compare, sort_key};
use crate::outcome::Rowset;
use crate::value::view::{RowsView, Walk};

pub fn apply(view: &RowsView<'_>, by: &[SmolStr], descending: bool) -> Rowset {
    let kind = view.kind(by).unwrap_or(Type::Json);
    let walk = view.walk(by);
    // Keys and indexes are sorted rather than rows, because they are small.
    let mut keyed: Vec<(Option<SortKey<'_>>, u32)> = Vec::with_capacity(view.rows.rows.len());
    keyed.extend((0..).zip(&view.rows.rows).map(|(index, row)| (key_of_row(&walk, &kind, row), index)));
    keyed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) if descending => compare(b, a),
        (Some(a), Some(b)) => compare(a, b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    let rows = keyed.iter().filter_map(|(_, index)| view.rows.rows.get(*index as usize).cloned()).collect();
    let mut sorted = view.rows.with_rows(rows);
    // The first rows of a partial list need not be the first rows of the whole.
    sorted.leading = sorted.coverage == Coverage::Complete;
    sorted
}

fn key_of_row<'r>(walk: &Walk<'r>, kind: &Type, row: &'r Row) -> Option<SortKey<'r>> {
    walk.find(row).and_then(|value| sort_key(kind, value))
}
