//! Whether a plan may run unasked, and what a reader should know before it does.
//! Invariant: any effect asks for a review; so do more calls for rows than the limit.

use catalog::EffectClass;

use super::lower::With;
use super::{Returned, Step, StepKind, Verdict, cost, name};

pub(super) fn verdict(with: With<'_>, steps: &[Step], returns: &[Returned]) -> (Verdict, Vec<String>) {
    let limit = with.limits.fan_out;
    let fans: Vec<(usize, &Step)> = steps.iter().enumerate().filter(|(_, step)| fans_out(step)).collect();
    // Many small fan-outs are a large one.
    let calls = fans.iter().fold(0usize, |sum, (_, step)| sum.saturating_add(step.calls));
    let mut warnings: Vec<String> = fans
        .iter()
        .filter(|(_, step)| step.calls > limit)
        .map(|(at, step)| fan_out_warning(steps, *at, step, limit))
        .collect();
    if calls > limit && warnings.is_empty() {
        warnings.push(format!("the relations together may make {calls} calls; {limit} run without a review"));
    }
    let unbounded = unbounded(with, steps).into_iter();
    warnings.extend(unbounded.map(|at| format!("{} reads all pages (no bound)", name(steps, returns, at))));
    let effects = steps.iter().any(|step| step.class != EffectClass::Read);
    let verdict = if effects || calls > limit { Verdict::Review } else { Verdict::Ok };
    (verdict, warnings)
}

/// Whether a step makes calls for rows.
fn fans_out(step: &Step) -> bool {
    matches!(
        step.kind,
        StepKind::Follow { .. }
            | StepKind::Deref { .. }
            | StepKind::Each { .. }
            | StepKind::Attach { .. }
            | StepKind::Hydrate { .. }
            | StepKind::Derive { .. }
    )
}

/// Says how many rows the step may start from and stay within the limit.
fn fan_out_warning(steps: &[Step], at: usize, step: &Step, limit: usize) -> String {
    let rows = step.kind.input().and_then(|input| steps.get(input)).map_or(1, |s| s.rows.max(1));
    let fitting = (limit / (step.calls / rows).max(1)).max(1);
    format!("step {:02} may make {} calls; put .limit({fitting}) on the rows it starts from", at + 1, step.calls)
}

/// Lists that a budget could cut short, below a sort or an aggregate: what is the greatest of some rows may not be so of all.
fn unbounded(with: With<'_>, steps: &[Step]) -> Vec<usize> {
    let mut found = Vec::new();
    for step in steps {
        let whole = matches!(
            step.kind,
            StepKind::Sort { .. } | StepKind::Aggregate { .. } | StepKind::GroupBy { .. } | StepKind::Last { .. }
        );
        let mut at = step.kind.input().filter(|_| whole);
        while let Some(input) = at.and_then(|at| steps.get(at)) {
            let list = match &input.kind {
                StepKind::Query { limit: None, .. } | StepKind::Each { limit: None, .. } => true,
                StepKind::Follow { limit: None, .. } => true,
                // Its rows are as many as those it starts from.
                StepKind::Limit { .. } => break,
                _ => false,
            };
            if let Some(place) = at.filter(|_| list && has_pages(with, steps, input)) {
                found.push(place);
            }
            at = if list { None } else { input.kind.input() };
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn has_pages(with: With<'_>, steps: &[Step], step: &Step) -> bool {
    let catalog = step.of.as_ref().and_then(|of| with.catalogs.get(&of.catalog));
    catalog.and_then(|c| cost::capability_of(&step.kind, cost::of(steps), c)).is_some_and(|c| c.paging.is_some())
}
