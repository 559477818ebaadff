//! Writes a plan as the short text that a model or a person reads before the run.
//! Invariants: each step is one numbered line, and steps refer to each other by name or number. The line of an effect
//! marks the effect and shows whether it can be undone. Every value is shown whole, on the line or below it, and no character of it is
//! invisible. A text that leaves something out says how much, and where all of it is.

use std::cell::RefCell;

use catalog::EffectClass;

use super::{Plan, Step, StepKind, Verdict, step_name};
use crate::ir::describe::{LongValue, StepName, describe_step};

/// Writes the whole text of a plan.
pub fn explain(plan: &Plan) -> String {
    let Lines { mut shown, totals } = write_lines(plan);
    shown.extend(totals);
    shown.join("\n")
}

/// Writes the text of a plan with at most about `max_chars` characters. A longer plan keeps its first lines and its totals, and a line
/// between them says how much is missing and names `whole`, the place where all of it can be read.
pub fn explain_within(plan: &Plan, max_chars: usize, whole: &str) -> String {
    let Lines { mut shown, totals } = write_lines(plan);
    let size = |lines: &[String]| lines.iter().map(|line| line.chars().count() + 1).sum::<usize>();
    let all = size(&shown) + size(&totals);
    if all <= max_chars {
        shown.extend(totals);
        return shown.join("\n");
    }
    // The totals name the effects, so they stay unless they alone are too long.
    let totals = if size(&totals) <= max_chars / 2 { totals } else { Vec::new() };
    let mut room = max_chars.saturating_sub(size(&totals));
    let mut kept = 0;
    for line in &shown {
        let chars = line.chars().count() + 1;
        // The first line, which has the verdict, always stays.
        if chars > room && kept > 0 {
            break;
        }
        room = room.saturating_sub(chars);
        kept += 1;
    }
    shown.truncate(kept);
    let missing = all - size(&shown) - size(&totals);
    shown.push(format!(
        "NOT SHOWN HERE: {missing} of {all} characters of this plan; read {whole} before you approve it"
    ));
    shown.extend(totals);
    shown.join("\n")
}

/// The text of a plan as lines without line breaks.
struct Lines {
    /// The header, the warnings, and the steps with their long values.
    shown: Vec<String>,
    /// The bounds of the whole plan.
    totals: Vec<String>,
}

fn write_lines(plan: &Plan) -> Lines {
    let names: Vec<String> = (0..plan.steps.len()).map(|at| step_name(&plan.steps, &plan.returns, at)).collect();
    let mut shown = vec![write_header(plan)];
    shown.extend(plan.warnings.iter().map(|warning| format!("warn: {warning}")));
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| "?".to_owned());
    for (at, (step, own_name)) in plan.steps.iter().zip(&names).enumerate() {
        let long_values = RefCell::default();
        let what = write_step(step, &name, &long_values);
        shown.push(format!("{:02} {own_name:width$}  {what}{}", at + 1, write_cost_note(step)));
        for (at, LongValue { length, lines }) in long_values.into_inner().into_iter().enumerate() {
            let reference = format!("   <{}> {length}:", at + 1);
            match <[String; 1]>::try_from(lines) {
                Ok([line]) => shown.push(format!("{reference} {line}")),
                Err(lines) => {
                    shown.push(reference);
                    shown.extend(lines.into_iter().map(|line| format!("       {line}")));
                }
            }
        }
    }
    // Names and words come from programs and catalogs. A character that hides in one of them could make the line look like another one.
    let visible = |lines: Vec<String>| lines.iter().map(|line| base::visible(line).into_owned()).collect();
    Lines { shown: visible(shown), totals: visible(write_totals(plan)) }
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
    format!("plan {verdict} · {steps} {reads}r{writes} → {}", returns.join(", "))
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
fn write_totals(plan: &Plan) -> Vec<String> {
    let calling_step_count = plan.steps.iter().filter(|s| s.kind.calls_api()).count();
    if calling_step_count < 2 && plan.bounds.effects.is_empty() {
        return Vec::new();
    }
    let calls: Vec<String> = plan.bounds.calls.iter().map(|(catalog, n)| format!("{n} to {catalog}")).collect();
    let calls = if calls.is_empty() { "none".to_owned() } else { format!("at most {}", calls.join(", ")) };
    let mut lines = vec![format!("calls: {calls}")];
    if !plan.bounds.effects.is_empty() {
        let effects: Vec<String> =
            plan.bounds.effects.iter().map(|(what, n)| format!("{what} {}", describe_times(*n))).collect();
        lines.push(format!("effects: at most {}", effects.join(", ")));
    }
    lines
}

/// Returns `once` or the number of times.
fn describe_times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

/// Writes a step with its input.
fn write_step(step: &Step, name: StepName<'_>, long_values: &RefCell<Vec<LongValue>>) -> String {
    let what = describe_step(step, name, long_values);
    match step.kind.input() {
        Some(input) if matches!(step.kind, StepKind::Effect { .. }) => format!("{what} for each of {}", name(input)),
        Some(input) => format!("{what} ← {}", name(input)),
        None => what,
    }
}
