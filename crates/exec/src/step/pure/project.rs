//! The projection step: rows with selected columns, or with the values at given paths.
//! Invariant: the columns are in the order of the program, and the coverage stays. A reference column with an unchanged name
//! keeps its attached rows.

use lang::plan::NamedPath;
use smol_str::SmolStr;

use crate::outcome::Rowset;
use crate::value::view::{RowsView, Walk};

pub fn apply(view: &RowsView<'_>, columns: &[NamedPath]) -> Rowset {
    let walks: Vec<(&SmolStr, Walk<'_>)> = columns.iter().map(|c| (&c.name, view.walk(&c.path))).collect();
    let project_row = |row: &std::sync::Arc<catalog::Row>| {
        walks.iter().map(|(name, walk)| (name.to_string(), walk.find(row).cloned().unwrap_or_default())).collect()
    };
    let mut projected = view.rows.with_new_rows(view.rows.rows.iter().map(project_row).collect());
    let keeps_name = |path: &[SmolStr]| {
        columns.iter().any(|c| c.path == std::slice::from_ref(&c.name) && path.first() == Some(&c.name))
    };
    projected.attached = view.rows.attached.iter().filter(|attached| keeps_name(&attached.path)).cloned().collect();
    projected
}
