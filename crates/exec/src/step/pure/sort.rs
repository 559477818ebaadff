//! The sort step: it orders rows by the value at one path.
//! Invariant: the sort is stable and follows the column's type. `null` is last in both directions. The value of each row is
//! read once.

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
    // Pairs of key and index are sorted instead of rows, because the pairs are small and cheap to move.
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
    // After a sort of partial data, the first rows need not be the first rows of the full data.
    sorted.leading = sorted.coverage == Coverage::Complete;
    sorted
}

fn key_of_row<'r>(walk: &Walk<'r>, kind: &Type, row: &'r Row) -> Option<SortKey<'r>> {
    walk.find(row).and_then(|value| sort_key(kind, value))
}
