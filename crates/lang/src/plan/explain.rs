//! A plan as the few lines a model reads before it runs one.
//! Invariant: one line a step, numbered as steps refer to each other; nothing here is parsed again.

use std::fmt::Write;

use super::{Args, Expr, Plan, Step, StepKind, Verdict};

/// The dry-run text.
pub fn explain(plan: &Plan) -> String {
    let verdict = match plan.verdict {
        Verdict::Ok => "ok",
        Verdict::Review => "review",
    };
    let reads = plan.steps.iter().filter(|s| s.kind.calls_api()).count();
    let returns: Vec<&str> = plan.returns.iter().map(|r| r.label.as_str()).collect();
    let steps = if plan.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps.len()) };
    let mut out = format!("plan {verdict} · {steps} {reads}r → {}\n", returns.join(", "));
    for warning in &plan.warnings {
        let _ = writeln!(out, "warn: {warning}");
    }
    let names: Vec<String> = (0..plan.steps.len()).map(|at| name_of(plan, at)).collect();
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    for (at, (step, name)) in plan.steps.iter().zip(&names).enumerate() {
        let _ = writeln!(out, "{:02} {name:width$}  {}", at + 1, line(step, &names));
    }
    out.trim_end().to_owned()
}

/// What the program calls a step, what its result is called, or its number.
fn name_of(plan: &Plan, at: usize) -> String {
    let returned = plan.returns.iter().find(|r| r.step == at).map(|r| r.label.clone());
    let label = plan.steps.get(at).and_then(|s| s.label.clone());
    label.or(returned).unwrap_or_else(|| format!("#{:02}", at + 1))
}

fn line(step: &Step, names: &[String]) -> String {
    let from = |input: &usize| names.get(*input).map_or("?", String::as_str);
    let limit = |limit: &Option<usize>| limit.map(|n| format!(" limit {n}")).unwrap_or_default();
    let calls = if step.calls == 1 { " · 1 call".to_owned() } else { format!(" · at most {} calls", step.calls) };
    let entity = step.of.as_ref().map_or("rows", |of| of.entity.as_str());
    match &step.kind {
        StepKind::Query { args, limit: n, .. } => format!("query {entity}{}{}{calls}", braces(args), limit(n)),
        StepKind::Get { args, .. } => format!("get {entity}({}){calls}", list(args)),
        StepKind::Follow { input, relation, args, limit: n, .. } => {
            format!("follow {relation}{} → {entity}{} ← {}{calls}", braces(args), limit(n), from(input))
        }
        StepKind::Deref { input, field, limit: n } => {
            format!("follow {field} → {entity}{} ← {}{calls}", limit(n), from(input))
        }
        StepKind::Project { input, columns } => {
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            format!("[{}] ← {}", names.join(", "), from(input))
        }
        StepKind::Limit { input, count } => format!("limit {count} ← {}", from(input)),
        other => other.word().to_owned(),
    }
}

fn braces(args: &Args) -> String {
    if args.is_empty() { String::new() } else { format!("{{{}}}", list(args)) }
}

fn list(args: &Args) -> String {
    let pairs: Vec<String> = args.iter().map(|(name, value)| format!("{name}={}", clip(value))).collect();
    pairs.join(", ")
}

fn clip(value: &Expr) -> String {
    let text = value.known().map(ToString::to_string).unwrap_or_default();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['…']).collect() }
}
