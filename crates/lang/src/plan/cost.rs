//! What each step may cost at most: calls, rows, effects.
//! Invariant: a bound is never smaller than what a run can do; saturates, never overflows.

use catalog::{Capability, Catalog, Transport, Via};

use super::lower::With;
use super::{EntityOf, Expr, Step, StepKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub calls: usize,
    pub rows: usize,
    pub effects: usize,
}

/// The cost of a step that stands on these.
pub(super) fn cost(with: With<'_>, steps: &[Step], step: &Step) -> Cost {
    let input = step.kind.input().and_then(|at| steps.get(at)).map_or(1, |s| s.rows);
    let read = |calls, rows| Cost { calls, rows, effects: 0 };
    let most = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
    let extra = reads_for_rows(&step.kind).saturating_mul(input);
    let catalog = step.of.as_ref().and_then(|of| with.catalogs.get(&of.catalog));
    let capability = catalog.and_then(|c| capability_of(&step.kind, of(steps), c));
    match &step.kind {
        StepKind::Query { limit, page_size, .. } => {
            let (calls, rows) = list(with, capability, *limit, *page_size);
            read(calls, rows)
        }
        StepKind::Get { .. } => read(1, 1),
        StepKind::Each { limit, .. } => {
            let (calls, rows) = list(with, capability, *limit, None);
            read(calls.saturating_mul(input), rows)
        }
        StepKind::Follow { limit, page_size, .. } => match via(&step.kind, of(steps), catalog.map(|c| c.as_ref())) {
            Some(Via::Call { .. }) => {
                let (calls, rows) = list(with, capability, *limit, *page_size);
                let one = step.shape == super::Shape::One;
                read(calls.saturating_mul(input), if one { 1 } else { rows })
            }
            Some(Via::Embedded { .. }) => read(0, most(limit).min(with.limits.rows)),
            _ => read(input, most(limit).min(input)),
        },
        StepKind::Deref { limit, input: from, field } => {
            // A list of references leads to as many as it holds.
            let column = steps.get(*from).and_then(|s| s.columns.iter().find(|c| c.name == *field));
            let list = column.is_some_and(|c| matches!(c.kind, catalog::Type::Array(_)));
            let references = if list { with.limits.rows } else { input };
            // References beyond the limit are not read.
            let references = most(limit).min(references);
            read(references, references)
        }
        StepKind::Attach { .. } | StepKind::Hydrate { .. } => read(input, input),
        StepKind::Limit { count, .. } => read(0, input.min(*count)),
        StepKind::First { .. }
        | StepKind::Last { .. }
        | StepKind::Singleton { .. }
        | StepKind::Aggregate { .. }
        | StepKind::Template { .. }
        | StepKind::Text { .. }
        | StepKind::Given { .. } => read(0, 1),
        StepKind::Rows { items } => read(0, items.len()),
        StepKind::Derive { .. } => read(extra, input),
        StepKind::Effect { each, .. } => {
            let times = if each.is_some() { input } else { 1 };
            Cost { calls: times.saturating_add(extra), rows: times, effects: times }
        }
        StepKind::Page { limit, .. } => read(with.limits.pages, most(limit).min(with.limits.rows)),
        StepKind::Operation { .. } => read(0, with.limits.rows),
        StepKind::Filter { .. }
        | StepKind::Sort { .. }
        | StepKind::Distinct { .. }
        | StepKind::GroupBy { .. }
        | StepKind::Project { .. } => read(0, input),
    }
}

/// The calls that the reads in a step's values may make for one row.
fn reads_for_rows(kind: &StepKind) -> usize {
    super::needs::values(kind).fold(0, |sum, value| sum.saturating_add(reads(value)))
}

fn reads(value: &Expr) -> usize {
    match value {
        Expr::Read { steps, .. } => steps.iter().fold(0, |sum, s| sum.saturating_add(s.calls)),
        Expr::List(items) => items.iter().fold(0, |sum, item| sum.saturating_add(reads(item))),
        Expr::Object(pairs) => pairs.iter().fold(0, |sum, (_, item)| sum.saturating_add(reads(item))),
        _ => 0,
    }
}

/// The capability that a step calls, where the step says which.
pub(super) fn capability_of<'c, 's>(
    kind: &StepKind,
    parent: impl Fn(usize) -> Option<&'s EntityOf>,
    catalog: &'c Catalog,
) -> Option<&'c Capability> {
    match kind {
        StepKind::Query { call, .. }
        | StepKind::Get { call, .. }
        | StepKind::Each { call, .. }
        | StepKind::Effect { call, .. } => catalog.capability(&call.capability),
        StepKind::Follow { .. } => match via(kind, parent, Some(catalog))? {
            Via::Call { capability, .. } => catalog.capability(capability),
            Via::Key { .. } | Via::Embedded { .. } => None,
        },
        _ => None,
    }
}

/// Whether it can be asked for some fields only.
pub(super) fn selects(capability: &Capability) -> bool {
    matches!(capability.transport, Transport::Graphql(_))
}

/// What the rows of a step are of.
pub(super) fn of<'s>(steps: &'s [Step]) -> impl Fn(usize) -> Option<&'s EntityOf> {
    |at| steps.get(at)?.of.as_ref()
}

fn via<'c, 's>(
    kind: &StepKind,
    parent: impl Fn(usize) -> Option<&'s EntityOf>,
    catalog: Option<&'c Catalog>,
) -> Option<&'c Via> {
    let StepKind::Follow { input, relation, .. } = kind else { return None };
    let parent = parent(*input)?;
    catalog?.entity(&parent.entity)?.relations.get(relation.as_str()).map(|r| &r.via)
}

/// The most calls and rows of one list.
fn list(
    with: With<'_>,
    capability: Option<&Capability>,
    limit: Option<usize>,
    page_size: Option<usize>,
) -> (usize, usize) {
    let rows = limit.unwrap_or(with.limits.rows).min(with.limits.rows);
    let Some(paging) = capability.and_then(|c| c.paging.as_ref()) else { return (1, rows) };
    let Some(size) = &paging.size else { return (with.limits.pages, rows) };
    let page = page_size.map_or(size.max, |wanted| wanted.min(size.max)).max(1);
    (rows.div_ceil(page).min(with.limits.pages).max(1), rows)
}
