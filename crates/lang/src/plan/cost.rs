//! Computes upper bounds for the calls, rows and effects of each step.
//! Invariant: a run never exceeds a bound. Sums and products saturate.

use catalog::{Capability, Via};

use super::context::{PlanContext, entity_lookup, find_capability, find_relation_via};
use super::{Expr, Step, StepKind};

/// The upper bounds of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepCost {
    /// The most API calls that the step makes.
    pub calls: usize,
    /// The most rows that the step returns.
    pub rows: usize,
    /// The most effects that the step has.
    pub effects: usize,
}

/// Computes the bounds of a step from the bounds of the earlier `steps`.
pub(super) fn compute_cost(context: PlanContext<'_>, steps: &[Step], step: &Step) -> StepCost {
    let input_rows = step.kind.input().and_then(|at| steps.get(at)).map_or(1, |s| s.rows);
    let read = |calls, rows| StepCost { calls, rows, effects: 0 };
    let limit_or_max = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
    let value_calls = calls_per_row(&step.kind).saturating_mul(input_rows);
    let catalog = step.of.as_ref().and_then(|of| context.catalogs.get(&of.catalog));
    let capability = catalog.and_then(|c| find_capability(&step.kind, entity_lookup(steps), c));
    match &step.kind {
        StepKind::Query { limit, page_size, .. } => compute_list_cost(context, capability, *limit, *page_size),
        StepKind::Get { .. } => read(1, 1),
        StepKind::QueryPerRow { limit, .. } => {
            let list = compute_list_cost(context, capability, *limit, None);
            read(list.calls.saturating_mul(input_rows), list.rows)
        }
        StepKind::Follow { limit, page_size, .. } => {
            match find_relation_via(&step.kind, entity_lookup(steps), catalog.map(|c| c.as_ref())) {
                Some(Via::Call { .. }) => {
                    let list = compute_list_cost(context, capability, *limit, *page_size);
                    let is_single = step.shape == super::Shape::One;
                    read(list.calls.saturating_mul(input_rows), if is_single { 1 } else { list.rows })
                }
                Some(Via::Embedded { .. }) => read(0, limit_or_max(limit).min(context.limits.rows)),
                _ => read(input_rows, limit_or_max(limit).min(input_rows)),
            }
        }
        StepKind::Deref { limit, input, field } => {
            // The length of a list of references is known only at run time.
            let column = steps.get(*input).and_then(|s| s.columns.iter().find(|c| c.name == *field));
            let list = column.is_some_and(|c| matches!(c.kind, catalog::Type::Array(_)));
            let references = if list { context.limits.rows } else { input_rows };
            // References beyond the limit are not read.
            let references = limit_or_max(limit).min(references);
            read(references, references)
        }
        StepKind::Attach { .. } | StepKind::Hydrate { .. } => read(input_rows, input_rows),
        StepKind::Limit { count, .. } => read(0, input_rows.min(*count)),
        StepKind::First { .. }
        | StepKind::Last { .. }
        | StepKind::Singleton { .. }
        | StepKind::Aggregate { .. }
        | StepKind::Template { .. }
        | StepKind::Text { .. }
        | StepKind::OuterRows { .. } => read(0, 1),
        StepKind::Rows { items } => read(0, items.len()),
        StepKind::Derive { .. } => read(value_calls, input_rows),
        StepKind::Effect { each, .. } => {
            let effect_count = if each.is_some() { input_rows } else { 1 };
            StepCost { calls: effect_count.saturating_add(value_calls), rows: effect_count, effects: effect_count }
        }
        StepKind::Page { limit, .. } => read(context.limits.pages, limit_or_max(limit).min(context.limits.rows)),
        StepKind::Operation { .. } => read(0, context.limits.rows),
        StepKind::Filter { .. }
        | StepKind::Sort { .. }
        | StepKind::Distinct { .. }
        | StepKind::GroupBy { .. }
        | StepKind::Project { .. } => read(0, input_rows),
    }
}

/// Returns the most calls that the reads in a step's values make for one row.
fn calls_per_row(kind: &StepKind) -> usize {
    kind.values().fold(0, |sum, value| sum.saturating_add(calls_of_inner_reads(value)))
}

/// Returns the most calls of the reads per row in a value, for one row.
fn calls_of_inner_reads(value: &Expr) -> usize {
    match value {
        Expr::Read { steps, .. } => steps.iter().fold(0, |sum, s| sum.saturating_add(s.calls)),
        Expr::List(items) => items.iter().fold(0, |sum, item| sum.saturating_add(calls_of_inner_reads(item))),
        Expr::Object(pairs) => pairs.iter().fold(0, |sum, (_, item)| sum.saturating_add(calls_of_inner_reads(item))),
        _ => 0,
    }
}

/// Computes the bounds of reading one list.
fn compute_list_cost(
    context: PlanContext<'_>,
    capability: Option<&Capability>,
    limit: Option<usize>,
    page_size: Option<usize>,
) -> StepCost {
    let rows = limit.unwrap_or(context.limits.rows).min(context.limits.rows);
    let Some(paging) = capability.and_then(|c| c.paging.as_ref()) else {
        return StepCost { calls: 1, rows, effects: 0 };
    };
    let Some(size) = &paging.size else {
        return StepCost { calls: context.limits.pages, rows, effects: 0 };
    };
    let page_rows = page_size.map_or(size.max, |wanted| wanted.min(size.max)).max(1);
    StepCost { calls: rows.div_ceil(page_rows).min(context.limits.pages).max(1), rows, effects: 0 }
}
