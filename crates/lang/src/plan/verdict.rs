//! Decides whether a plan may run without a review, and writes the warnings for the reader of the plan.
//! Invariant: a plan needs a review if it has an effect, or if its per-row calls exceed the limit.

use catalog::EffectClass;

use super::context::{PlanContext, entity_lookup, find_capability};
use super::{PlanResult, Step, StepKind, Verdict, step_name};

/// Returns the verdict on a plan, and its warnings.
pub(super) fn decide_verdict(
    context: PlanContext<'_>,
    steps: &[Step],
    returns: &[PlanResult],
) -> (Verdict, Vec<String>) {
    let limit = context.limits.fan_out;
    let fan_outs: Vec<(usize, &Step)> = steps.iter().enumerate().filter(|(_, step)| fans_out(step)).collect();
    // The sum is compared with the limit, because many small fan-outs cost as much as a large one.
    let calls = fan_outs.iter().fold(0usize, |sum, (_, step)| sum.saturating_add(step.calls));
    let mut warnings: Vec<String> = fan_outs
        .iter()
        .filter(|(_, step)| step.calls > limit)
        .map(|(at, step)| write_fan_out_warning(steps, *at, step, limit))
        .collect();
    if calls > limit && warnings.is_empty() {
        warnings.push(format!("the relations together may make {calls} calls; {limit} run without a review"));
    }
    let unbounded = find_unbounded_lists(context, steps).into_iter();
    warnings.extend(unbounded.map(|at| format!("{} reads all pages (no bound)", step_name(steps, returns, at))));
    let has_effects = steps.iter().any(|step| step.class != EffectClass::Read);
    let verdict = if has_effects || calls > limit { Verdict::Review } else { Verdict::Ok };
    (verdict, warnings)
}

/// Returns whether a step makes a call for each input row.
fn fans_out(step: &Step) -> bool {
    matches!(
        step.kind,
        StepKind::Follow { .. }
            | StepKind::Deref { .. }
            | StepKind::QueryPerRow { .. }
            | StepKind::Attach { .. }
            | StepKind::Hydrate { .. }
            | StepKind::Derive { .. }
    )
}

/// Writes the warning for a step with too many calls. It contains the largest number of input rows within the limit.
fn write_fan_out_warning(steps: &[Step], at: usize, step: &Step, limit: usize) -> String {
    let rows = step.kind.input().and_then(|input| steps.get(input)).map_or(1, |s| s.rows.max(1));
    let max_input_rows = (limit / (step.calls / rows).max(1)).max(1);
    format!("step {:02} may make {} calls; put .limit({max_input_rows}) on the rows it starts from", at + 1, step.calls)
}

/// Finds the lists that a budget could cut short below a sort, an aggregation or a `last`. These operations would
/// return a wrong answer if some of their rows were missing.
fn find_unbounded_lists(context: PlanContext<'_>, steps: &[Step]) -> Vec<usize> {
    let mut unbounded_lists = Vec::new();
    for step in steps {
        let needs_all_rows = matches!(
            step.kind,
            StepKind::Sort { .. } | StepKind::Aggregate { .. } | StepKind::GroupBy { .. } | StepKind::Last { .. }
        );
        let mut at = step.kind.input().filter(|_| needs_all_rows);
        while let Some(input) = at.and_then(|at| steps.get(at)) {
            let is_list = match &input.kind {
                StepKind::Query { limit: None, .. } | StepKind::QueryPerRow { limit: None, .. } => true,
                StepKind::Follow { limit: None, .. } => true,
                // A limit bounds the rows, so a budget does not change them.
                StepKind::Limit { .. } => break,
                _ => false,
            };
            if let Some(index) = at.filter(|_| is_list && has_pages(context, steps, input)) {
                unbounded_lists.push(index);
            }
            at = if is_list { None } else { input.kind.input() };
        }
    }
    unbounded_lists.sort_unstable();
    unbounded_lists.dedup();
    unbounded_lists
}

/// Returns whether a step reads a list that the API returns in pages.
fn has_pages(context: PlanContext<'_>, steps: &[Step], step: &Step) -> bool {
    let catalog = step.of.as_ref().and_then(|of| context.catalogs.get(&of.catalog));
    catalog.and_then(|c| find_capability(&step.kind, entity_lookup(steps), c)).is_some_and(|c| c.paging.is_some())
}
