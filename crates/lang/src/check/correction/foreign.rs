//! Corrects methods that other languages have on rows, such as `.count()`, to the plasm that means the same.
//! Invariant: a name is translated only if the entity has no method of that name. The author's names and values are
//! kept.

use base::{Code, Diagnostic, Edit, Span};

use super::super::{Checker, MethodCall, RowType};
use crate::codes;
use crate::syntax::tree::{Arg, MethodArgs, Name, Value, ValueKind};

impl Checker<'_> {
    /// Reports a method of another language with its correction. Returns whether the name is such a method.
    pub(in crate::check) fn report_foreign_method(&mut self, rows: &RowType, call: MethodCall<'_>) -> bool {
        let Some((message, fix)) = self.translate_method(rows, call) else { return false };
        self.report_with_fix(codes::UNKNOWN_METHOD, call.name, message, fix);
        true
    }

    /// Reports a method of another language that is written without parentheses, such as `.count`. Returns whether the
    /// name is such a method.
    pub(in crate::check) fn report_foreign_field(&mut self, rows: &RowType, name: &Name) -> bool {
        let part = Span { start: name.span.start, end: name.span.end };
        let Some((message, replacement)) = self.translate_name(rows, &snake_case(&name.text)) else { return false };
        self.report_with_fix(codes::UNKNOWN_RELATION, name, message, vec![Edit::replace(part, replacement)]);
        true
    }

    /// Reports an error at a name, with its correction.
    fn report_with_fix(&mut self, code: Code, name: &Name, message: String, fix: Vec<Edit>) {
        self.report(Diagnostic::error(code, name.span, message).with_fix(fix));
    }

    /// Returns the message and the edits that correct a method of another language.
    fn translate_method(&self, rows: &RowType, call: MethodCall<'_>) -> Option<(String, Vec<Edit>)> {
        let name = snake_case(&call.name.text);
        let after_dot = span_after_dot(call);
        let slots: &[Arg] = match call.args {
            MethodArgs::Slots(slots) => slots,
            MethodArgs::Variant { .. } => return None,
        };
        if slots.is_empty() && ["all", "list", "fetch", "collect", "to_list", "exec", "run"].contains(&name.as_str()) {
            return Some(("rows are read by naming them".to_owned(), vec![Edit::delete(call.span)]));
        }
        if slots.is_empty() {
            let (message, replacement) = self.translate_name(rows, &name)?;
            return Some((message, vec![Edit::replace(after_dot, replacement)]));
        }
        let list = Span { start: slots.first()?.slot.span.start, end: slots.last()?.value.span.end };
        let (message, edit) = match (name.as_str(), slots) {
            ("where" | "find" | "find_all" | "search" | "query" | "get" | "list" | "filter_by", _) => {
                let message = format!("rows are filtered with `.filter{{…}}`, not `.{}(…)`", call.name.text);
                (message, Edit::replace(after_dot, "filter{").append_original(list).append("}"))
            }
            ("order_by" | "orderby" | "sort_by" | "sortby", [first, ..]) if is_name(&first.value) => {
                let descending = slots.iter().any(|arg| is_word(&arg.value, "desc") || arg.slot.text == "desc");
                let order = if descending { ", desc)" } else { ")" };
                let edit = Edit::replace(after_dot, "sort(").append_original(first.value.span).append(order);
                ("rows are sorted with `.sort(slot, desc)`".to_owned(), edit)
            }
            ("take" | "head" | "top", [only]) => {
                let edit = Edit::replace(after_dot, "limit(").append_original(only.value.span).append(")");
                (format!("`.{}` is written `.limit(n)`", call.name.text), edit)
            }
            ("map" | "each" | "for_each" | "foreach" | "select", _) => {
                let mut edit = Edit::replace(Span { start: call.span.start, ..after_dot }, " => {");
                for (n, arg) in slots.iter().enumerate() {
                    edit = edit
                        .append(if n > 0 { ", " } else { "" })
                        .append_original(arg.slot.span)
                        .append(": ")
                        .append_original(arg.value.span);
                }
                ("a new row for each row is `rows => {name: _.slot}`".to_owned(), edit.append("}"))
            }
            _ => return None,
        };
        Some((message, vec![edit]))
    }

    /// Returns the message and the replacement for a method of another language that is called without arguments.
    fn translate_name(&self, rows: &RowType, name: &str) -> Option<(String, String)> {
        Some(match name {
            "count" | "len" | "length" | "size" | "total" => {
                ("rows are counted with `.aggregate(n=count)`".to_owned(), "aggregate(n=count)".to_owned())
            }
            "unique" | "uniq" | "dedup" | "distinct" => {
                let key = rows.entity.as_ref().and_then(|of| of.catalog.entity(&of.entity)).map(|e| e.key.clone());
                let by = key
                    .filter(|key| key.iter().all(|k| rows.has_column(k)))
                    .unwrap_or_else(|| rows.nameable_columns().iter().take(5).map(ToString::to_string).collect());
                let message = "rows that differ in some slots are `.distinct(slot, …)`".to_owned();
                (message, format!("distinct({})", by.join(", ")))
            }
            "one" | "only" | "single" => ("the only row is `.singleton()`".to_owned(), "singleton()".to_owned()),
            _ => return None,
        })
    }
}

/// Returns the span from the method's name to the closing parenthesis. The dot before the name is not included.
fn span_after_dot(call: MethodCall<'_>) -> Span {
    Span { start: call.name.span.start, end: call.span.end }
}

/// Returns a name in snake case, so that `orderBy`, `order-by` and `order_by` are equal.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for c in name.chars().take(40) {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    out
}

fn is_name(value: &Value) -> bool {
    matches!(value.kind, ValueKind::Node(_))
}

fn is_word(value: &Value, word: &str) -> bool {
    match &value.kind {
        ValueKind::String(text) => text == word,
        ValueKind::Node(node) => match &node.primary {
            crate::syntax::tree::Primary::Name(name) => name.name.text == word && node.parts.is_empty(),
            _ => false,
        },
        _ => false,
    }
}
