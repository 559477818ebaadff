//! Prints a syntax tree as short text, for debugging and for golden files.
//! Invariant: trees that differ in more than spans have different outlines.

use std::fmt::Write;

use super::reports::quote_as_literal;
use super::tree::{
    AggregateFunction, AggregateSpec, Arg, DOTS, DottedName, EntityName, Entry, HandleCall, HandleCallKind, Heredoc,
    Key, MethodArgs, Node, Operator, PartKind, Pred, Primary, Program, Value, ValueKind,
};

/// Returns one line for each statement: `name = …` for a binding, `return …` for a result.
pub fn outline(program: &Program) -> String {
    let mut out = String::new();
    for binding in &program.bindings {
        let _ = writeln!(out, "{} = {}", binding.label.text, outline_node(&binding.node));
    }
    for root in &program.roots {
        let _ = writeln!(out, "return {}", outline_node(root));
    }
    out
}

fn outline_node(node: &Node) -> String {
    if node.parts.is_empty() {
        return outline_primary(&node.primary);
    }
    parenthesized(
        "->",
        prepend_to_mapped(outline_primary(&node.primary), &node.parts, |applied| outline_part(&applied.kind)),
    )
}

fn outline_primary(primary: &Primary) -> String {
    match primary {
        Primary::Name(name) => outline_entity_name(name),
        Primary::Get { entity: name, key: Key::Unary(value) } => {
            parenthesized("get", [outline_entity_name(name), outline_value(value)])
        }
        Primary::Get { entity: name, key: Key::Slots(slots) } => {
            parenthesized("get", prepend_to_mapped(outline_entity_name(name), slots, outline_arg))
        }
        Primary::Query { entity: name, preds } => {
            parenthesized("query", prepend_to_mapped(outline_entity_name(name), preds, outline_pred))
        }
        Primary::Search { entity: name, text, preds } => parenthesized(
            "search",
            [outline_entity_name(name), outline_value(text)].into_iter().chain(preds.iter().map(outline_pred)),
        ),
        Primary::HandleCall(call) => outline_handle_call(call),
        Primary::List(values) => outline_list(values),
        Primary::Text(text) => outline_heredoc(text),
        Primary::Row(_) => "_".to_owned(),
        Primary::Error(_) => "<error>".to_owned(),
    }
}

fn outline_part(part: &PartKind) -> String {
    match part {
        PartKind::Follow { name, preds: None } => parenthesized("follow", [name.text.to_string()]),
        PartKind::Follow { name, preds: Some(preds) } => {
            parenthesized("follow", [format!("{}{{{}}}", name.text, join_mapped(preds, outline_pred))])
        }
        PartKind::Back { entity: name, preds } => {
            parenthesized("back", prepend_to_mapped(outline_entity_name(name), preds, outline_pred))
        }
        PartKind::Method { name, args: MethodArgs::Slots(args) } => {
            parenthesized("call", prepend_to_mapped(name.text.to_string(), args, outline_arg))
        }
        PartKind::Method { name, args: MethodArgs::Variant { name: arm, args } } => parenthesized(
            "call",
            [
                name.text.to_string(),
                parenthesized("variant", prepend_to_mapped(arm.text.to_string(), args, outline_arg)),
            ],
        ),
        PartKind::Braces { preds } => parenthesized("braces", preds.iter().map(outline_pred)),
        PartKind::Limit { count } => parenthesized("limit", [outline_value(count)]),
        PartKind::PageSize { count } => parenthesized("page_size", [outline_value(count)]),
        PartKind::Sort { field, descending } => {
            parenthesized("sort", [outline_path(field), if *descending { "desc" } else { "asc" }.to_owned()])
        }
        PartKind::Filter { preds } => parenthesized("filter", preds.iter().map(outline_pred)),
        PartKind::Aggregate { specs } => parenthesized("aggregate", specs.iter().map(outline_aggregate_spec)),
        PartKind::GroupBy { fields, specs } => {
            parenthesized("group_by", fields.iter().map(outline_path).chain(specs.iter().map(outline_aggregate_spec)))
        }
        PartKind::Distinct { fields } => parenthesized("distinct", fields.iter().map(outline_path)),
        PartKind::First => parenthesized("first", []),
        PartKind::Last => parenthesized("last", []),
        PartKind::Singleton => parenthesized("singleton", []),
        PartKind::Project { fields } => parenthesized("project", fields.iter().map(outline_path)),
        PartKind::Derive { object } => parenthesized("derive", object.iter().map(outline_entry)),
        PartKind::Each { effect } => parenthesized("each", [outline_node(effect)]),
        PartKind::Template(text) => parenthesized("template", [outline_heredoc(text)]),
    }
}

fn outline_value(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => quote_as_literal(text),
        ValueKind::Number(text) => text.clone(),
        ValueKind::Bool(truth) => format!("#{truth}"),
        ValueKind::Null => "#null".to_owned(),
        ValueKind::Text(text) => outline_heredoc(text),
        ValueKind::List(values) => outline_list(values),
        ValueKind::Object(entries) => parenthesized("object", entries.iter().map(outline_entry)),
        ValueKind::Node(inner) => outline_node(inner),
        ValueKind::Placeholder => "$".to_owned(),
        ValueKind::Error => "<error>".to_owned(),
    }
}

fn outline_entity_name(name: &EntityName) -> String {
    match &name.catalog {
        Some(catalog) => format!("{}:{}", catalog.text, name.name.text),
        None => name.name.text.to_string(),
    }
}

fn outline_handle_call(call: &HandleCall) -> String {
    let kind = match call.kind {
        HandleCallKind::Page => "page",
        HandleCallKind::Wait => "wait",
        HandleCallKind::Cancel => "cancel",
    };
    let limit = call.limit.iter().map(|limit| format!("limit={}", outline_value(limit)));
    parenthesized(kind, std::iter::once(call.handle.text.to_string()).chain(limit))
}

fn outline_heredoc(text: &Heredoc) -> String {
    format!("<<{} {}", text.tag, quote_as_literal(&text.body))
}

fn outline_list(values: &[Value]) -> String {
    format!("[{}]", join_mapped(values, outline_value))
}

fn outline_arg(arg: &Arg) -> String {
    if arg.is_dots() {
        return DOTS.to_owned();
    }
    format!("{}={}", arg.slot.text, outline_value(&arg.value))
}

fn outline_entry(entry: &Entry) -> String {
    let is_word = entry.key.text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let key = if is_word { entry.key.text.to_string() } else { quote_as_literal(&entry.key.text) };
    format!("{key}: {}", outline_value(&entry.value))
}

fn outline_pred(pred: &Pred) -> String {
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
    format!("{}{op}{}", outline_path(&pred.path), outline_value(&pred.value))
}

fn outline_aggregate_spec(spec: &AggregateSpec) -> String {
    let function = match spec.function {
        AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    match &spec.field {
        Some(field) => format!("{}={function}({})", spec.name.text, outline_path(field)),
        None => format!("{}={function}", spec.name.text),
    }
}

fn outline_path(path: &DottedName) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// Writes a parenthesized form, such as `(head item item)`.
fn parenthesized(head: &str, items: impl IntoIterator<Item = String>) -> String {
    let mut out = format!("({head}");
    for item in items {
        out.push(' ');
        out.push_str(&item);
    }
    out.push(')');
    out
}

/// Returns `first`, followed by the texts that `show` makes of the items.
fn prepend_to_mapped<T>(first: String, rest: &[T], show: impl Fn(&T) -> String) -> Vec<String> {
    std::iter::once(first).chain(rest.iter().map(show)).collect()
}

/// Joins the texts that `show` makes of the items by blanks.
fn join_mapped<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}
