//! Describes steps and values in words, for plans and outlines.
//! Invariant: a known value is shown as JSON, and any other value as its source. Long texts are cut.

use super::{Aggregation, Args, Expr, FilterTest, Function, Path, RowPart, Step, StepKind};

/// Describes a value. A step is named by its number, such as `n3`.
pub(crate) fn describe_value(value: &Expr) -> String {
    describe_value_with(value, &|step| format!("n{step}"))
}

/// Describes a value. `name` returns the name of a step.
fn describe_value_with(value: &Expr, name: &dyn Fn(usize) -> String) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Expr::Value(value) => clip(&value.to_string()),
        Expr::Step { step, take, many } => {
            let each = if *many { "each " } else { "" };
            format!("{each}{}{}", name(*step), part_suffix(take))
        }
        Expr::Row(take) => format!("_{}", part_suffix(take)),
        Expr::List(items) => format!("[{}]", joined(items.iter().map(|i| describe_value_with(i, name)).collect())),
        Expr::Object(pairs) => {
            format!(
                "{{{}}}",
                joined(pairs.iter().map(|(k, v)| format!("{k}: {}", describe_value_with(v, name))).collect())
            )
        }
        Expr::Template { source, .. } => clip(&serde_json::Value::from(source.as_str()).to_string()),
        Expr::Read { steps, take } => {
            let inner_read = describe_inner_read(steps, name);
            format!("({inner_read}){}", part_suffix(take))
        }
    }
}

/// Returns the path that is read from a row, with a leading dot: `.owner.name`.
fn part_suffix(take: &RowPart) -> String {
    match take {
        RowPart::Path(path) if path.is_empty() => String::new(),
        RowPart::Path(path) => format!(".{}", path.join(".")),
        RowPart::Key(_) => String::new(),
    }
}

/// Describes aggregations, such as `n=count, total=sum(votes)`.
pub(crate) fn describe_aggregations(specs: &[Aggregation]) -> String {
    let describe_aggregation = |spec: &Aggregation| {
        let function = match spec.function {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
        };
        match &spec.path {
            Some(path) => format!("{}={function}({})", spec.name, path.join(".")),
            None => format!("{}={function}", spec.name),
        }
    };
    specs.iter().map(describe_aggregation).collect::<Vec<_>>().join(", ")
}

/// Cuts a text to 60 characters.
fn clip(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}

/// A function that returns the name of a step for its number.
pub(crate) type StepName<'a> = &'a dyn Fn(usize) -> String;

/// Describes the operation of a step, without its input.
pub(crate) fn describe_step(step: &Step, name: StepName<'_>) -> String {
    let limit = |limit: &Option<usize>| limit.map(|n| format!(" limit {n}")).unwrap_or_default();
    let pages = |size: &Option<usize>| size.map(|n| format!(" by {n}")).unwrap_or_default();
    let entity = step.of.as_ref().map_or("rows", |of| of.entity.as_str());
    let description = step.description.as_ref().map(|s| s.what.as_str());
    let joined = |paths: &[Path]| paths.iter().map(|p| p.join(".")).collect::<Vec<_>>().join(", ");
    match &step.kind {
        StepKind::Query { args, limit: n, page_size, fields, .. } => {
            let what = description.map_or_else(|| format!("query {entity}"), str::to_owned);
            let fields = fields.as_ref().map(|f| format!("[{}]", f.join(", "))).unwrap_or_default();
            format!("{what}{}{fields}{}{}", describe_args_in_braces(args, name), limit(n), pages(page_size))
        }
        StepKind::Get { args, .. } => {
            let what = description.map_or_else(|| format!("get {entity}"), str::to_owned);
            format!("{what}({})", describe_args(args, name))
        }
        StepKind::Follow { relation, args, limit: n, page_size, .. } => {
            format!(
                "follow {relation}{} → {entity}{}{}",
                describe_args_in_braces(args, name),
                limit(n),
                pages(page_size)
            )
        }
        StepKind::QueryPerRow { args, limit: n, .. } => {
            format!("for each row query {entity}{}{}", describe_args_in_braces(args, name), limit(n))
        }
        StepKind::Deref { field, limit: n, .. } => format!("follow {field} → {entity}{}", limit(n)),
        StepKind::Attach { field, entity, .. } => format!("look up {} → {}", field.join("."), entity.entity),
        StepKind::Hydrate { fields, .. } => format!("read {} of each row", fields.join(", ")),
        StepKind::Filter { tests, .. } => {
            let one =
                |t: &FilterTest| format!("{}{}{}", t.path.join("."), t.op.sign(), describe_value_with(&t.value, name));
            format!("filter {}", tests.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        StepKind::Sort { by, descending, .. } => {
            format!("sort {}{}", by.join("."), if *descending { " desc" } else { "" })
        }
        StepKind::Limit { count, .. } => format!("limit {count}"),
        StepKind::Distinct { by, .. } if by.is_empty() => "distinct".to_owned(),
        StepKind::Distinct { by, .. } => format!("distinct {}", joined(by)),
        StepKind::Aggregate { specs, .. } => describe_aggregations(specs),
        StepKind::GroupBy { by, specs, .. } => {
            let by: Vec<&str> = by.iter().map(|p| p.name.as_str()).collect();
            format!("group by {}: {}", by.join(", "), describe_aggregations(specs))
        }
        StepKind::Project { columns, .. } => {
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            format!("[{}]", names.join(", "))
        }
        StepKind::Derive { object, .. } => {
            let pairs: Vec<String> =
                object.iter().map(|(key, value)| format!("{key}: {}", describe_value_with(value, name))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        StepKind::Effect { args, .. } => format!("{}({})", description.unwrap_or("effect"), describe_args(args, name)),
        StepKind::Page { handle, limit: n } => format!("page {handle}{}", limit(n)),
        other => describe_simple_step(other, name),
    }
}

/// Describes templates, literals and texts, and the kinds of steps that have only a fixed word.
fn describe_simple_step(kind: &StepKind, name: StepName<'_>) -> String {
    match kind {
        StepKind::Template { source, .. } => format!("render {}", clip(first_line(source))),
        StepKind::Rows { items } => clip(&format!(
            "rows [{}]",
            items.iter().map(|i| describe_value_with(i, name)).collect::<Vec<_>>().join(", ")
        )),
        StepKind::Text { content } => format!("text {}", clip(first_line(content))),
        StepKind::Operation { handle, .. } => format!("{} {handle}", kind.word()),
        StepKind::OuterRows { step } => step.map_or_else(|| "_".to_owned(), name),
        other => other.word().to_owned(),
    }
}

/// Describes a read per row on one line, such as `query Ticket{owner ← _.id}, n=count`.
fn describe_inner_read(steps: &[Step], name_of_outer_step: StepName<'_>) -> String {
    let name_of_inner_step = |at: usize| match steps.get(at).map(|s| &s.kind) {
        Some(StepKind::OuterRows { step: Some(outer_step) }) => name_of_outer_step(*outer_step),
        Some(StepKind::OuterRows { step: None }) => "_".to_owned(),
        _ => format!("#{:02}", at + 1),
    };
    let describe_inner = |step: &Step| match &step.kind {
        StepKind::OuterRows { step } => step.map_or_else(|| "_".to_owned(), name_of_outer_step),
        _ => describe_step(step, &name_of_inner_step),
    };
    steps.iter().map(describe_inner).collect::<Vec<_>>().join(", ")
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim()
}

fn describe_args_in_braces(args: &Args, name: StepName<'_>) -> String {
    if args.is_empty() { String::new() } else { format!("{{{}}}", describe_args(args, name)) }
}

/// Describes arguments, such as `state="open", ticket ← hot`.
fn describe_args(args: &Args, name: StepName<'_>) -> String {
    let describe_arg = |(slot, value): (&smol_str::SmolStr, &Expr)| match value {
        Expr::Step { .. } | Expr::Row(_) | Expr::Read { .. } => {
            format!("{slot} ← {}", describe_value_with(value, name))
        }
        known => format!("{slot}={}", describe_value_with(known, name)),
    };
    args.iter().map(describe_arg).collect::<Vec<_>>().join(", ")
}
