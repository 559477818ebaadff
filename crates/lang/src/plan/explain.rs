//! A plan as the few lines a model, and a person, reads before it runs.
//! Invariant: one line a step, numbered as steps refer to each other; every effect says so and whether it can be taken back.

use std::fmt::Write;

use catalog::EffectClass;

use super::show::{clip, names, shown_with, specs};
use super::{Args, Expr, Plan, Step, StepKind, Verdict};

/// The dry-run text.
pub fn explain(plan: &Plan) -> String {
    let names = names(&plan.steps, &plan.returns);
    let mut out = head(plan);
    for warning in &plan.warnings {
        let _ = writeln!(out, "warn: {warning}");
    }
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| "?".to_owned());
    for (at, (step, own)) in plan.steps.iter().zip(&names).enumerate() {
        let _ = writeln!(out, "{:02} {own:width$}  {}{}", at + 1, line(step, &name), costs(step));
    }
    out.push_str(&totals(plan));
    out.trim_end().to_owned()
}

/// `plan review · 3 steps 2r 1w → posted`
fn head(plan: &Plan) -> String {
    let verdict = match plan.verdict {
        Verdict::Ok => "ok",
        Verdict::Review => "review",
    };
    let count = |class: EffectClass| plan.steps.iter().filter(|s| s.kind.calls_api() && s.class == class).count();
    let (reads, writes) = (count(EffectClass::Read), count(EffectClass::Write) + count(EffectClass::SideEffect));
    let writes = if writes == 0 { String::new() } else { format!(" {writes}w") };
    let returns: Vec<&str> = plan.returns.iter().map(|r| r.label.as_str()).collect();
    let steps = if plan.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps.len()) };
    format!("plan {verdict} · {steps} {reads}r{writes} → {}\n", returns.join(", "))
}

fn costs(step: &Step) -> String {
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
    let undo = match step.says.as_ref().and_then(|s| s.undo.as_ref()) {
        Some(undo) => format!("undo: {undo}"),
        None => "cannot be undone".to_owned(),
    };
    let times = match (&step.kind, step.effects) {
        (StepKind::Effect { each: Some(_), .. }, times) => format!(" · at most {times} times"),
        _ => String::new(),
    };
    format!("{times}   {word} · {undo}")
}

/// What it may cost and change in all, where one line does not say it.
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

type Name<'a> = &'a dyn Fn(usize) -> String;

fn line(step: &Step, name: Name<'_>) -> String {
    let what = doing(step, name);
    match step.kind.input() {
        Some(input) if matches!(step.kind, StepKind::Effect { .. }) => format!("{what} for each of {}", name(input)),
        Some(input) => format!("{what} ← {}", name(input)),
        None => what,
    }
}

fn doing(step: &Step, name: Name<'_>) -> String {
    let limit = |limit: &Option<usize>| limit.map(|n| format!(" limit {n}")).unwrap_or_default();
    let pages = |size: &Option<usize>| size.map(|n| format!(" by {n}")).unwrap_or_default();
    let entity = step.of.as_ref().map_or("rows", |of| of.entity.as_str());
    let says = step.says.as_ref().map(|s| s.what.as_str());
    let joined = |paths: &[Vec<String>]| paths.iter().map(|p| p.join(".")).collect::<Vec<_>>().join(", ");
    match &step.kind {
        StepKind::Query { args, limit: n, page_size, fields, .. } => {
            let what = says.map_or_else(|| format!("query {entity}"), str::to_owned);
            let fields = fields.as_ref().map(|f| format!("[{}]", f.join(", "))).unwrap_or_default();
            format!("{what}{}{fields}{}{}", braces(args, name), limit(n), pages(page_size))
        }
        StepKind::Get { args, .. } => {
            let what = says.map_or_else(|| format!("get {entity}"), str::to_owned);
            format!("{what}({})", list(args, name))
        }
        StepKind::Follow { relation, args, limit: n, page_size, .. } => {
            format!("follow {relation}{} → {entity}{}{}", braces(args, name), limit(n), pages(page_size))
        }
        StepKind::Each { args, limit: n, .. } => {
            format!("for each row query {entity}{}{}", braces(args, name), limit(n))
        }
        StepKind::Deref { field, limit: n, .. } => format!("follow {field} → {entity}{}", limit(n)),
        StepKind::Attach { field, entity, .. } => format!("look up {} → {}", field.join("."), entity.entity),
        StepKind::Hydrate { fields, .. } => format!("read {} of each row", fields.join(", ")),
        StepKind::Filter { tests, .. } => {
            let one = |t: &super::Test| format!("{}{}{}", t.path.join("."), t.op.sign(), shown_with(&t.value, name));
            format!("filter {}", tests.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        StepKind::Sort { by, descending, .. } => {
            format!("sort {}{}", by.join("."), if *descending { " desc" } else { "" })
        }
        StepKind::Limit { count, .. } => format!("limit {count}"),
        StepKind::Distinct { by, .. } if by.is_empty() => "distinct".to_owned(),
        StepKind::Distinct { by, .. } => format!("distinct {}", joined(by)),
        StepKind::Aggregate { specs: made, .. } => specs(made),
        StepKind::GroupBy { by, specs: made, .. } => {
            let by: Vec<&str> = by.iter().map(|p| p.name.as_str()).collect();
            format!("group by {}: {}", by.join(", "), specs(made))
        }
        StepKind::Project { columns, .. } => {
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            format!("[{}]", names.join(", "))
        }
        StepKind::Derive { object, .. } => {
            let pairs: Vec<String> = object.iter().map(|(key, value)| format!("{key}: {}", shown_with(value, name))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        StepKind::Template { source, .. } => format!("render {}", clip(first_line(source))),
        StepKind::Rows { items } => {
            clip(&format!("rows [{}]", items.iter().map(|i| shown_with(i, name)).collect::<Vec<_>>().join(", ")))
        }
        StepKind::Text { content } => format!("text {}", clip(first_line(content))),
        StepKind::Effect { args, .. } => format!("{}({})", says.unwrap_or("effect"), list(args, name)),
        StepKind::Page { handle, limit: n } => format!("page {handle}{}", limit(n)),
        StepKind::Operation { handle, .. } => format!("{} {handle}", step.kind.word()),
        StepKind::Given { step } => step.map_or_else(|| "_".to_owned(), name),
        StepKind::First { .. } | StepKind::Last { .. } | StepKind::Singleton { .. } => step.kind.word().to_owned(),
    }
}

/// A read for each row, on one line: `query Ticket{owner ← _.id}, n=count`.
pub(super) fn read(steps: &[Step], outer: Name<'_>) -> String {
    let inner = |at: usize| match steps.get(at).map(|s| &s.kind) {
        Some(StepKind::Given { step: Some(given) }) => outer(*given),
        Some(StepKind::Given { step: None }) => "_".to_owned(),
        _ => format!("#{:02}", at + 1),
    };
    let one = |step: &Step| match &step.kind {
        StepKind::Given { step } => step.map_or_else(|| "_".to_owned(), outer),
        _ => doing(step, &inner),
    };
    steps.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim()
}

fn braces(args: &Args, name: Name<'_>) -> String {
    if args.is_empty() { String::new() } else { format!("{{{}}}", list(args, name)) }
}

/// `state="open", ticket ← hot`
fn list(args: &Args, name: Name<'_>) -> String {
    let one = |(slot, value): (&String, &Expr)| match value {
        Expr::Step { .. } | Expr::Row(_) | Expr::Read { .. } => format!("{slot} ← {}", shown_with(value, name)),
        known => format!("{slot}={}", shown_with(known, name)),
    };
    args.iter().map(one).collect::<Vec<_>>().join(", ")
}
