//! The pure steps, which make rows from rows without a call or a wait.
//! Invariant: each is a function of its input. Rows that pass through are shared, not copied. Coverage and the order of the
//! first rows are kept as far as they are known.

mod aggregate;
pub mod filter;
mod pick;
mod project;
mod sort;
#[cfg(test)]
mod tests;

use lang::plan::{Step, StepKind};
use serde_json::Value;

use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::view::{Catalogs, RowsView};

/// Applies a step to rows in memory. `source` is the step that made these rows. Returns `None` if the step is not pure, or
/// if a value of its tests comes from another step.
pub fn pure_step(step: &Step, source: &Step, rows: &Rowset, catalogs: &Catalogs) -> Option<Result<Rowset, StepError>> {
    let values: Option<Vec<Value>> = match &step.kind {
        StepKind::Filter { tests, .. } => tests.iter().map(|test| test.value.known().cloned()).collect(),
        _ => Some(Vec::new()),
    };
    let input_name = || source.label.as_ref().map_or_else(|| "the input".to_owned(), |label| format!("`{label}`"));
    apply(&step.kind, &RowsView::new(rows, source, catalogs), &values?, input_name)
}

/// Applies a pure step, or returns `None` for another one. `values` are those of a filter's tests, and `input_name` names the
/// input in a message.
pub fn apply(
    kind: &StepKind,
    view: &RowsView<'_>,
    values: &[Value],
    input_name: impl Fn() -> String,
) -> Option<Result<Rowset, StepError>> {
    Some(Ok(match kind {
        StepKind::Filter { tests, .. } => filter::apply(view, tests, values),
        StepKind::Sort { by, descending, .. } => sort::apply(view, by, *descending),
        StepKind::Limit { count, .. } => pick::limit(view.rows, *count),
        StepKind::First { .. } => pick::limit(view.rows, 1),
        StepKind::Last { .. } => pick::last(view.rows),
        StepKind::Singleton { .. } => return Some(pick::singleton(view.rows, &input_name())),
        StepKind::Distinct { by, .. } => pick::distinct(view, by),
        StepKind::Aggregate { specs, .. } => aggregate::aggregate(view, specs),
        StepKind::GroupBy { by, specs, .. } => aggregate::group(view, by, specs),
        StepKind::Project { columns, .. } => project::apply(view, columns),
        _ => return None,
    }))
}
