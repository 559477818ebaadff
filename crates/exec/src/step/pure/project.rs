//! Rows with some of their columns, or with the values that paths lead to.
//! Invariant: columns come out in the order of the program; coverage stays; a reference that keeps its name keeps the
//! row it leads to.

use lang::plan::NamedPath;
use smol_str::SmolStr;

use crate::outcome::Rowset;
use crate::value::view::{View, Walk};

pub fn apply(view: &View<'_>, columns: &[NamedPath]) -> Rowset {
    let walks: Vec<(&SmolStr, Walk<'_>)> = columns.iter().map(|c| (&c.name, view.walk(&c.path))).collect();
    let pick = |row: &std::sync::Arc<catalog::Row>| {
        walks.iter().map(|(name, walk)| (name.to_string(), walk.find(row).cloned().unwrap_or_default())).collect()
    };
    let mut projected = view.rows.derived(view.rows.rows.iter().map(pick).collect());
    let keeps = |path: &[SmolStr]| {
        columns.iter().any(|c| c.path == std::slice::from_ref(&c.name) && path.first() == Some(&c.name))
    };
    projected.attached = view.rows.attached.iter().filter(|t| keeps(&t.path)).cloned().collect();
    projected
}
