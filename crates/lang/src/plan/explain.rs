//! Writes a plan as the short text that a model or a person reads before it runs.
//! Invariant: each step is one line, numbered as steps refer to each other. The line of an effect says so, and whether
//! the effect can be undone.

use std::fmt::Write;

use catalog::EffectClass;

use super::{Plan, Step, StepKind, Verdict, step_name};
use crate::ir::describe::{StepName, describe_step};

/// Writes the text of a plan, which is the answer of a dry run.
pub fn explain(plan: &Plan) -> String {
    let names: Vec<String> = (0..plan.steps.len()).map(|at| step_name(&plan.steps, &plan.returns, at)).collect();
    let mut out = header(plan);
    for warning in &plan.warnings {
        let _ = writeln!(out, "warn: {warning}");
    }
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| "?".to_owned());
    for (at, (step, own)) in plan.steps.iter().zip(&names).enumerate() {
        let _ = writeln!(out, "{:02} {own:width$}  {}{}", at + 1, step_line(step, &name), cost_note(step));
    }
    out.push_str(&totals(plan));
    out.trim_end().to_owned()
}

/// Writes the first line: `plan review · 3 steps 2r 1w → posted`.
fn header(plan: &Plan) -> String {
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

/// Writes the end of a step's line: its calls or, for an effect, its times and how it is undone.
fn cost_note(step: &Step) -> String {
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

/// Writes the bounds of the whole plan, unless one line of the plan says them already.
fn totals(plan: &Plan) -> String {
    let calling = plan.steps.iter().filter(|s| s.kind.calls_api()).count();
    if calling < 2 && plan.bounds.effects.is_empty() {
        return String::new();
    }
    let calls: Vec<String> = plan.bounds.calls.iter().map(|(catalog, n)| format!("{n} to {catalog}")).collect();
    let calls = if calls.is_empty() { "none".to_owned() } else { format!("at most {}", calls.join(", ")) };
    let mut out = format!("calls: {calls}\n");
    if !plan.bounds.effects.is_empty() {
        let effects: Vec<String> =
            plan.bounds.effects.iter().map(|(what, n)| format!("{what} {}", times(*n))).collect();
        let _ = writeln!(out, "effects: at most {}", effects.join(", "));
    }
    out
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

/// Writes a step and its input.
fn step_line(step: &Step, name: StepName<'_>) -> String {
    let what = describe_step(step, name);
    match step.kind.input() {
        Some(input) if matches!(step.kind, StepKind::Effect { .. }) => format!("{what} for each of {}", name(input)),
        Some(input) => format!("{what} ← {}", name(input)),
        None => what,
    }
}
