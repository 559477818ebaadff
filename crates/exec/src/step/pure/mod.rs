//! Steps that make rows from rows: no call, no wait.
//! Invariant: each is a function of its input; rows that pass through are shared, not copied; coverage and the order
//! of the first rows are kept as far as they are known.

mod aggregate;
mod distinct;
pub mod filter;
mod group;
mod pick;
mod project;
mod sort;
#[cfg(test)]
mod tests;

use lang::plan::{Step, StepKind};
use serde_json::Value;

use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::view::{Catalogs, View};

/// Applies a step to rows in memory. `from` is the step that produced these rows. Returns `None` if the step is not a
/// pure one, or if a value of its tests comes from another step.
pub fn over(step: &Step, from: &Step, rows: &Rowset, catalogs: &Catalogs) -> Option<Result<Rowset, StepError>> {
    let values: Option<Vec<Value>> = match &step.kind {
        StepKind::Filter { tests, .. } => tests.iter().map(|test| test.value.known().cloned()).collect(),
        _ => Some(Vec::new()),
    };
    let name = || from.label.as_ref().map_or_else(|| "the input".to_owned(), |label| format!("`{label}`"));
    apply(&step.kind, &View::new(rows, from, catalogs), &values?, name)
}

/// Applies a pure step. `values` are those of a filter's tests; `name` is the input's name for a message.
pub fn apply(
    kind: &StepKind,
    view: &View<'_>,
    values: &[Value],
    name: impl Fn() -> String,
) -> Option<Result<Rowset, StepError>> {
    Some(Ok(match kind {
        StepKind::Filter { tests, .. } => filter::apply(view, tests, values),
        StepKind::Sort { by, descending, .. } => sort::apply(view, by, *descending),
        StepKind::Limit { count, .. } => pick::limit(view.rows, *count),
        StepKind::First { .. } => pick::limit(view.rows, 1),
        StepKind::Last { .. } => pick::last(view.rows),
        StepKind::Singleton { .. } => return Some(pick::singleton(view.rows, &name())),
        StepKind::Distinct { by, .. } => distinct::apply(view, by),
        StepKind::Aggregate { specs, .. } => aggregate::apply(view, specs),
        StepKind::GroupBy { by, specs, .. } => group::apply(view, by, specs),
        StepKind::Project { columns, .. } => project::apply(view, columns),
        _ => return None,
    }))
}
