//! Writes a tree as short text, for people who debug and for golden files.
//! Invariant: trees that differ have different outlines, unless they differ in spans only.

use std::fmt::Write;

use super::reports::quoted;
use super::tree::{
    AggregateFunction, AggregateSpec, Arg, DOTS, DottedName, EntityName, Entry, HandleCall, HandleCallKind, Heredoc,
    Key, MethodArgs, Node, Operator, PartKind, Pred, Primary, Program, Value, ValueKind,
};

/// Writes one line for each statement: `name = …` for a binding, `return …` for a result.
pub fn outline(program: &Program) -> String {
    let mut out = String::new();
    for binding in &program.bindings {
        let _ = writeln!(out, "{} = {}", binding.label.text, node(&binding.node));
    }
    for root in &program.roots {
        let _ = writeln!(out, "return {}", node(root));
    }
    out
}

fn node(node: &Node) -> String {
    if node.parts.is_empty() {
        return primary(&node.primary);
    }
    form("->", with(primary(&node.primary), &node.parts, |applied| part(&applied.kind)))
}

fn primary(primary: &Primary) -> String {
    match primary {
        Primary::Name(name) => entity(name),
        Primary::Get { entity: name, key: Key::Unary(value) } => form("get", [entity(name), self::value(value)]),
        Primary::Get { entity: name, key: Key::Slots(slots) } => form("get", with(entity(name), slots, arg)),
        Primary::Query { entity: name, preds } => form("query", with(entity(name), preds, pred)),
        Primary::Search { entity: name, text, preds } => {
            form("search", [entity(name), value(text)].into_iter().chain(preds.iter().map(pred)))
        }
        Primary::HandleCall(call) => handle_call(call),
        Primary::List(values) => list(values),
        Primary::Text(text) => heredoc(text),
        Primary::Row(_) => "_".to_owned(),
        Primary::Error(_) => "<error>".to_owned(),
    }
}

fn part(part: &PartKind) -> String {
    match part {
        PartKind::Follow { name, preds: None } => form("follow", [name.text.to_string()]),
        PartKind::Follow { name, preds: Some(preds) } => {
            form("follow", [format!("{}{{{}}}", name.text, joined(preds, pred))])
        }
        PartKind::Back { entity: name, preds } => form("back", with(entity(name), preds, pred)),
        PartKind::Method { name, args: MethodArgs::Slots(args) } => {
            form("call", with(name.text.to_string(), args, arg))
        }
        PartKind::Method { name, args: MethodArgs::Variant { name: arm, args } } => {
            form("call", [name.text.to_string(), form("variant", with(arm.text.to_string(), args, arg))])
        }
        PartKind::Braces { preds } => form("braces", preds.iter().map(pred)),
        PartKind::Limit { count } => form("limit", [value(count)]),
        PartKind::PageSize { count } => form("page_size", [value(count)]),
        PartKind::Sort { field, descending } => {
            form("sort", [path(field), if *descending { "desc" } else { "asc" }.to_owned()])
        }
        PartKind::Filter { preds } => form("filter", preds.iter().map(pred)),
        PartKind::Aggregate { specs } => form("aggregate", specs.iter().map(spec)),
        PartKind::GroupBy { fields, specs } => form("group_by", fields.iter().map(path).chain(specs.iter().map(spec))),
        PartKind::Distinct { fields } => form("distinct", fields.iter().map(path)),
        PartKind::First => form("first", []),
        PartKind::Last => form("last", []),
        PartKind::Singleton => form("singleton", []),
        PartKind::Project { fields } => form("project", fields.iter().map(path)),
        PartKind::Derive { object } => form("derive", object.iter().map(entry)),
        PartKind::Each { effect } => form("each", [node(effect)]),
        PartKind::Template(text) => form("template", [heredoc(text)]),
    }
}

fn value(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => quoted(text),
        ValueKind::Number(text) => text.clone(),
        ValueKind::Bool(truth) => format!("#{truth}"),
        ValueKind::Null => "#null".to_owned(),
        ValueKind::Text(text) => heredoc(text),
        ValueKind::List(values) => list(values),
        ValueKind::Object(entries) => form("object", entries.iter().map(entry)),
        ValueKind::Node(inner) => node(inner),
        ValueKind::Hole => "$".to_owned(),
        ValueKind::Error => "<error>".to_owned(),
    }
}

fn entity(name: &EntityName) -> String {
    match &name.catalog {
        Some(catalog) => format!("{}:{}", catalog.text, name.name.text),
        None => name.name.text.to_string(),
    }
}

fn handle_call(call: &HandleCall) -> String {
    let kind = match call.kind {
        HandleCallKind::Page => "page",
        HandleCallKind::Wait => "wait",
        HandleCallKind::Cancel => "cancel",
    };
    let limit = call.limit.iter().map(|limit| format!("limit={}", value(limit)));
    form(kind, std::iter::once(call.handle.text.to_string()).chain(limit))
}

fn heredoc(text: &Heredoc) -> String {
    format!("<<{} {}", text.tag, quoted(&text.body))
}

fn list(values: &[Value]) -> String {
    format!("[{}]", joined(values, value))
}

fn arg(arg: &Arg) -> String {
    if arg.is_dots() {
        return DOTS.to_owned();
    }
    format!("{}={}", arg.slot.text, value(&arg.value))
}

fn entry(entry: &Entry) -> String {
    let is_word = entry.key.text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let key = if is_word { entry.key.text.to_string() } else { quoted(&entry.key.text) };
    format!("{key}: {}", value(&entry.value))
}

fn pred(pred: &Pred) -> String {
    if pred.is_dots() {
        return DOTS.to_owned();
    }
    let op = match pred.op {
        Operator::Eq => "=",
        Operator::Ne => "!=",
        Operator::Lt => "<",
        Operator::Le => "<=",
        Operator::Gt => ">",
        Operator::Ge => ">=",
        Operator::Like => "~",
    };
    format!("{}{op}{}", path(&pred.path), value(&pred.value))
}

fn spec(spec: &AggregateSpec) -> String {
    let function = match spec.function {
        AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    match &spec.field {
        Some(field) => format!("{}={function}({})", spec.name.text, path(field)),
        None => format!("{}={function}", spec.name.text),
    }
}

fn path(path: &DottedName) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// Writes a form: `(head item item)`.
fn form(head: &str, items: impl IntoIterator<Item = String>) -> String {
    let mut out = format!("({head}");
    for item in items {
        out.push(' ');
        out.push_str(&item);
    }
    out.push(')');
    out
}

fn with<T>(first: String, rest: &[T], show: impl Fn(&T) -> String) -> Vec<String> {
    std::iter::once(first).chain(rest.iter().map(show)).collect()
}

fn joined<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}
