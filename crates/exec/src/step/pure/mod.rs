//! The pure steps: steps that compute rows from rows in memory, without a call and without waiting.
//! Invariant: the result depends only on the input. Unchanged rows are shared and not copied. Each step sets the coverage and
//! the `leading` flag of its result.

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

/// Applies a pure step to rows in memory. `source` is the step that produced the rows. Returns `None` if the step is not pure,
/// or if one of its tests needs the rows of another step.
pub fn pure_step(step: &Step, source: &Step, rows: &Rowset, catalogs: &Catalogs) -> Option<Result<Rowset, StepError>> {
    let values: Option<Vec<Value>> = match &step.kind {
        StepKind::Filter { tests, .. } => tests.iter().map(|test| test.value.known().cloned()).collect(),
        _ => Some(Vec::new()),
    };
    let input_name = || source.label.as_ref().map_or_else(|| "the input".to_owned(), |label| format!("`{label}`"));
    apply(&step.kind, &RowsView::new(rows, source, catalogs), &values?, input_name)
}

/// Applies a pure step; returns `None` if the step is not pure. `values` has the compared values of a filter's tests.
/// `input_name` returns the name of the input for an error message.
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
