//! Writes a plan as the short text that a model or a person reads before the run.
//! Invariant: each step is one numbered line, and steps refer to each other by name or number. The line of an effect
//! marks the effect and shows whether it can be undone.

use std::fmt::Write;

use catalog::EffectClass;

use super::{Plan, Step, StepKind, Verdict, step_name};
use crate::ir::describe::{StepName, describe_step};

/// Writes the text of a plan. A dry run returns this text.
pub fn explain(plan: &Plan) -> String {
    let names: Vec<String> = (0..plan.steps.len()).map(|at| step_name(&plan.steps, &plan.returns, at)).collect();
    let mut out = write_header(plan);
    for warning in &plan.warnings {
        let _ = writeln!(out, "warn: {warning}");
    }
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| "?".to_owned());
    for (at, (step, own_name)) in plan.steps.iter().zip(&names).enumerate() {
        let _ = writeln!(out, "{:02} {own_name:width$}  {}{}", at + 1, write_step(step, &name), write_cost_note(step));
    }
    out.push_str(&write_totals(plan));
    out.trim_end().to_owned()
}

/// Writes the first line, such as `plan review · 3 steps 2r 1w → posted`.
fn write_header(plan: &Plan) -> String {
    let verdict = match plan.verdict {
        Verdict::Ok => "ok",
        Verdict::Review => "review",
    };
    let count = |class: EffectClass| plan.steps.iter().filter(|s| s.kind.calls_api() && s.class == class).count();
    let reads = count(EffectClass::Read);
    let writes = count(EffectClass::Write) + count(EffectClass::SideEffect);
    let writes = if writes == 0 { String::new() } else { format!(" {writes}w") };
    let returns: Vec<&str> = plan.returns.iter().map(|r| r.label.as_str()).collect();
    let steps = if plan.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps.len()) };
    format!("plan {verdict} · {steps} {reads}r{writes} → {}\n", returns.join(", "))
}

/// Writes the end of a step's line: the number of calls or, for an effect, how often it happens and how it is undone.
fn write_cost_note(step: &Step) -> String {
    let calls = match (step.kind.calls_api(), step.calls) {
        (false, _) => String::new(),
        (true, 0) => " · no call".to_owned(),
        (true, 1) => " · 1 call".to_owned(),
        (true, calls) => format!(" · at most {calls} calls"),
    };
    let word = match step.class {
        EffectClass::Read => return calls,
        EffectClass::Write => "WRITE",
        EffectClass::SideEffect => "SIDE EFFECT",
    };
    let undo = match step.description.as_ref().and_then(|s| s.undo.as_ref()) {
        Some(undo) => format!("undo: {undo}"),
        None => "cannot be undone".to_owned(),
    };
    let times = match (&step.kind, step.effects) {
        (StepKind::Effect { each: Some(_), .. }, times) => format!(" · at most {times} times"),
        _ => String::new(),
    };
    format!("{times}   {word} · {undo}")
}

/// Writes the bounds of the whole plan. They are omitted if a line of a step shows the same bounds.
fn write_totals(plan: &Plan) -> String {
    let calling_step_count = plan.steps.iter().filter(|s| s.kind.calls_api()).count();
    if calling_step_count < 2 && plan.bounds.effects.is_empty() {
        return String::new();
    }
    let calls: Vec<String> = plan.bounds.calls.iter().map(|(catalog, n)| format!("{n} to {catalog}")).collect();
    let calls = if calls.is_empty() { "none".to_owned() } else { format!("at most {}", calls.join(", ")) };
    let mut out = format!("calls: {calls}\n");
    if !plan.bounds.effects.is_empty() {
        let effects: Vec<String> =
            plan.bounds.effects.iter().map(|(what, n)| format!("{what} {}", describe_times(*n))).collect();
        let _ = writeln!(out, "effects: at most {}", effects.join(", "));
    }
    out
}

/// Returns `once` or the number of times.
fn describe_times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

/// Writes a step with its input.
fn write_step(step: &Step, name: StepName<'_>) -> String {
    let what = describe_step(step, name);
    match step.kind.input() {
        Some(input) if matches!(step.kind, StepKind::Effect { .. }) => format!("{what} for each of {}", name(input)),
        Some(input) => format!("{what} ← {}", name(input)),
        None => what,
    }
}
