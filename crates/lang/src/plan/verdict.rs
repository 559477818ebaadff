//! Decides whether a plan may run without a review, and writes the warnings for its reader.
//! Invariant: a plan with an effect needs a review, and so does one with more calls for rows than the limit.

use catalog::EffectClass;

use super::context::{PlanContext, capability_of, entity_of};
use super::{PlanResult, Step, StepKind, Verdict, step_name};

/// Returns the verdict on a plan and its warnings.
pub(super) fn verdict(context: PlanContext<'_>, steps: &[Step], returns: &[PlanResult]) -> (Verdict, Vec<String>) {
    let limit = context.limits.fan_out;
    let fan_outs: Vec<(usize, &Step)> = steps.iter().enumerate().filter(|(_, step)| fans_out(step)).collect();
    // The sum is compared with the limit, because many small fan-outs cost as much as a large one.
    let calls = fan_outs.iter().fold(0usize, |sum, (_, step)| sum.saturating_add(step.calls));
    let mut warnings: Vec<String> = fan_outs
        .iter()
        .filter(|(_, step)| step.calls > limit)
        .map(|(at, step)| fan_out_warning(steps, *at, step, limit))
        .collect();
    if calls > limit && warnings.is_empty() {
        warnings.push(format!("the relations together may make {calls} calls; {limit} run without a review"));
    }
    let unbounded = unbounded(context, steps).into_iter();
    warnings.extend(unbounded.map(|at| format!("{} reads all pages (no bound)", step_name(steps, returns, at))));
    let has_effects = steps.iter().any(|step| step.class != EffectClass::Read);
    let verdict = if has_effects || calls > limit { Verdict::Review } else { Verdict::Ok };
    (verdict, warnings)
}

/// Returns whether a step makes a call for each row.
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

/// Writes how many rows the step may start from to stay within the limit.
fn fan_out_warning(steps: &[Step], at: usize, step: &Step, limit: usize) -> String {
    let rows = step.kind.input().and_then(|input| steps.get(input)).map_or(1, |s| s.rows.max(1));
    let max_input_rows = (limit / (step.calls / rows).max(1)).max(1);
    format!("step {:02} may make {} calls; put .limit({max_input_rows}) on the rows it starts from", at + 1, step.calls)
}

/// Finds the lists below a sort, an aggregation or a `last` that a budget could cut short. Of a part of the rows, these
/// steps would give another answer than of all.
fn unbounded(context: PlanContext<'_>, steps: &[Step]) -> Vec<usize> {
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
                // A limit bounds the rows, so no budget changes them.
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

/// Returns whether a step reads a list that comes in pages.
fn has_pages(context: PlanContext<'_>, steps: &[Step], step: &Step) -> bool {
    let catalog = step.of.as_ref().and_then(|of| context.catalogs.get(&of.catalog));
    catalog.and_then(|c| capability_of(&step.kind, entity_of(steps), c)).is_some_and(|c| c.paging.is_some())
}
