//! Checks a written value against the type of its slot. The result is a known value, or an expression that the run
//! computes.
//! Invariant: the result has the slot's type. A placeholder is accepted only in a taught line.

mod convert;
mod date;
mod infer;
mod object;
mod reference;
mod resolve;
mod sample;

pub(super) use infer::TypedExpr;
pub(super) use reference::{is_null, reference_of};
pub(super) use resolve::ResolvedValue;
use resolve::ValueSource;

use std::sync::Arc;

use base::{Diagnostic, Edit, Span};
use catalog::{Catalog, TextStyle, Type, TypeError};
use serde_json::Value as Json;

use super::Checker;
use crate::codes;
use crate::ir::Expr;
use crate::syntax::tree::{EntityName, Name, Node, Primary, Value, ValueKind};

/// The catalog of the entities that the references in a slot refer to. A column that the program computed may have
/// none.
pub(super) type RefCatalog<'a> = Option<&'a Arc<Catalog>>;

impl<'s> Checker<'s> {
    /// Checks a value for a slot that a catalog declares.
    pub(super) fn check_value(&mut self, ref_catalog: &Arc<Catalog>, kind: &Type, value: &Value) -> Option<Expr> {
        self.check_value_in(Some(ref_catalog), kind, value)
    }

    /// Checks a value for a column that no catalog declares.
    pub(super) fn check_value_without_catalog(&mut self, kind: &Type, value: &Value) -> Option<Expr> {
        self.check_value_in(None, kind, value)
    }

    /// Checks a value for a slot of type `kind`.
    fn check_value_in(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, value: &Value) -> Option<Expr> {
        match (&value.kind, kind) {
            (ValueKind::Error, _) => None,
            (ValueKind::Placeholder, _) => self.check_placeholder(ref_catalog, kind, value.span),
            (ValueKind::Null, _) => Some(Json::Null.into()),
            (ValueKind::Node(node), _) => self.check_node_value(ref_catalog, kind, node),
            (ValueKind::List(items), Type::Array(of)) => self.check_list(ref_catalog, of, items),
            (ValueKind::List(items), Type::MultiSelect(choices)) => {
                self.check_list(ref_catalog, &Type::Select(choices.clone()), items)
            }
            (_, Type::Array(of)) => Some(list_of_one(self.check_value_in(ref_catalog, of, value)?)),
            (_, Type::MultiSelect(choices)) => {
                Some(list_of_one(self.check_value_in(ref_catalog, &Type::Select(choices.clone()), value)?))
            }
            (ValueKind::Object(entries), _) => self.check_object(ref_catalog, kind, entries, value.span),
            (_, Type::Json) => Some(self.infer_value(value)?.expr),
            (ValueKind::String(text), _) if self.is_template(text) => {
                self.make_template(ref_catalog, kind, text, value.span)
            }
            (ValueKind::Text(block), _) if self.is_template(&block.body) => {
                self.make_template(ref_catalog, kind, &block.body, value.span)
            }
            (_, Type::Ref(target)) => self.check_scalar_reference(ref_catalog, target, value),
            (ValueKind::String(text), _) => self.check_literal(kind, Json::String(text.clone()), value.span),
            (ValueKind::Text(block), _) => self.check_literal(kind, Json::String(block.body.clone()), value.span),
            (ValueKind::Bool(flag), _) => self.check_literal(kind, Json::Bool(*flag), value.span),
            (ValueKind::Number(text), _) => {
                let number = self.check_number(text, value.span)?;
                self.check_literal(kind, number, value.span)
            }
            (ValueKind::List(_), _) => {
                let message = format!("expected {}, found a list", kind.describe());
                self.report_error(codes::WRONG_TYPE, value.span, message);
                None
            }
        }
    }

    /// Checks each item of a list. All wrong items are reported.
    fn check_list(&mut self, ref_catalog: RefCatalog<'_>, of: &Type, items: &[Value]) -> Option<Expr> {
        let values: Vec<Option<Expr>> = items.iter().map(|item| self.check_value_in(ref_catalog, of, item)).collect();
        Some(list_of(values.into_iter().collect::<Option<Vec<Expr>>>()?))
    }

    /// Reads a number, or reports that it is not a number or is too large.
    pub(super) fn check_number(&mut self, text: &str, span: Span) -> Option<Json> {
        let number = parse_number(text);
        if number.is_none() {
            self.report_error(codes::WRONG_TYPE, span, format!("`{text}` is not a number that fits"));
        }
        number
    }

    /// Checks a literal. A choice in another case and a number in quotes are corrected with a note, and a day becomes
    /// the moment at which it begins. Any other literal of a wrong type is reported.
    fn check_literal(&mut self, kind: &Type, json: Json, span: Span) -> Option<Expr> {
        if let (Type::String(TextStyle::JsonText), Json::String(text)) = (kind, &json)
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
        {
            self.report_error(
                codes::WRONG_TYPE,
                span,
                "expected a text of JSON, and this is none; an object may stand here too",
            );
            return None;
        }
        let error = match kind.accept(&json) {
            Ok(()) => return Some(json.into()),
            Err(error) => error,
        };
        if let (Type::Date(format), Json::String(text)) = (kind, &json) {
            return self.convert_date(*format, text, span);
        }
        match error {
            TypeError::NotAChoice { found, choices } => {
                let choices_in_other_case: Vec<&String> =
                    choices.iter().filter(|c| c.eq_ignore_ascii_case(&found)).collect();
                if let [only] = choices_in_other_case.as_slice() {
                    self.report(Diagnostic::note(codes::NOT_A_CHOICE, span, format!("read `{found}` as `{only}`")));
                    return Some(Json::String((*only).clone()).into());
                }
                let message = format!("`{found}` is not one of {}", choices.join(" | "));
                let meant = base::closest_name(&found, choices.iter().map(String::as_str));
                let fix = meant.map(|c| Edit::replace(span, format!("\"{c}\"")));
                self.report(Diagnostic::error(codes::NOT_A_CHOICE, span, message).with_fix(fix));
            }
            error => {
                // Only the quotes are wrong. A taught table does not show the types of key parts, so the author had to
                // guess, and the number is accepted.
                if let (Type::Integer | Type::Number, Json::String(text)) = (kind, &json)
                    && let Some(corrected) =
                        parse_number(text.trim()).filter(|corrected| kind.accept(corrected).is_ok())
                {
                    let message = format!("read \"{}\" as {corrected}", text.trim());
                    self.report(Diagnostic::note(codes::WRONG_TYPE, span, message));
                    return Some(corrected.into());
                }
                let hint = match kind {
                    Type::String(TextStyle::Blob) => "; a blob is written as base64",
                    _ => "",
                };
                let fix = requote(kind, &json).map(|corrected| Edit::replace(span, corrected));
                self.report(Diagnostic::error(codes::WRONG_TYPE, span, format!("{error}{hint}")).with_fix(fix));
            }
        }
        None
    }

    /// Accepts a placeholder in a taught line. In a program it is reported, with a real value as the correction.
    fn check_placeholder(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, span: Span) -> Option<Expr> {
        if self.allows_placeholders {
            return Some(Json::String("$".to_owned()).into());
        }
        let sample = self.write_real_sample(ref_catalog, kind);
        let message = format!("`$` marks a place to fill; put a real value ({}) there", kind.describe());
        self.report(Diagnostic::error(codes::PLACEHOLDER, span, message).with_fix([Edit::replace(span, sample)]));
        None
    }

    /// Checks an expression as a value: a bare word, a reference `e1(…)`, an arm of a union, a label, `_`, or a read.
    fn check_node_value(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, node: &Node) -> Option<Expr> {
        match (&node.primary, node.parts.is_empty()) {
            (Primary::Error(_), _) => None,
            (Primary::Name(name), true) if name.catalog.is_none() && !self.is_label(name) => {
                self.check_bare_word(ref_catalog, kind, &name.name.text, node.span)
            }
            (Primary::Query { entity, preds }, true)
                if self.union_of_slot(kind).is_some() && !self.is_label(entity) =>
            {
                self.check_arm_of_preds(ref_catalog, kind, &entity.name, preds, node.span)
            }
            (Primary::Get { entity, key }, true) => self.check_reference(ref_catalog, kind, entity, key, node.span),
            _ => {
                let resolved = self.resolve_value(node)?;
                match resolved.label.as_deref().filter(|label| is_choice(kind, label) && resolved.value.is_none()) {
                    // Rows are not a choice: after `open = Ticket`, `state=open` still means the choice `open`.
                    Some(word) if !matches!(resolved.base, ValueSource::Known(_)) => {
                        self.check_bare_word(ref_catalog, kind, word, node.span)
                    }
                    _ => self.convert_to(ref_catalog, kind, resolved, node.span),
                }
            }
        }
    }

    /// Checks a bare word, which is a moment, an arm without slots, a choice, or a text without quotes.
    fn check_bare_word(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, word: &str, span: Span) -> Option<Expr> {
        if let Some(moment) = self.read_moment(kind, word, span) {
            return moment;
        }
        if let Some(union) = self.union_of_slot(kind).filter(|u| u.arms.contains_key(word)) {
            let name = Name { text: word.into(), span };
            return self.check_arm(ref_catalog, &union.clone(), &name, &[], span);
        }
        let entity = EntityName { catalog: None, name: Name { text: word.into(), span } };
        if !is_choice(kind, word) && (self.scope.slots.get(word).is_some() || self.scope.entity(&entity).is_ok()) {
            let message = format!("`{word}` is a name, not a value");
            self.report(
                Diagnostic::error(codes::WRONG_TYPE, span, message)
                    .with_fix([Edit::replace(span, format!("\"{word}\""))]),
            );
            return None;
        }
        // Nothing in scope has this name, so the word is certainly a text. In slots of the types in `is_often_unquoted`, words
        // are commonly written without quotes, so the program gets no note.
        let is_often_unquoted = matches!(kind, Type::Select(_) | Type::MultiSelect(_) | Type::Date(_));
        let value = Value { kind: ValueKind::String(word.to_owned()), span };
        let expr = self.check_value_in(ref_catalog, kind, &value)?;
        if !is_often_unquoted {
            self.report(Diagnostic::note(codes::WRONG_TYPE, span, format!("read {word} as \"{word}\"")));
        }
        Some(expr)
    }
}

/// Returns the literal with quotes added or removed, if that gives it the slot's type.
fn requote(kind: &Type, json: &Json) -> Option<String> {
    match (kind, json) {
        (Type::String(TextStyle::Short | TextStyle::Markdown | TextStyle::Document | TextStyle::Html), plain) => {
            (plain.is_number() || plain.is_boolean()).then(|| format!("\"{plain}\""))
        }
        (Type::Boolean, Json::String(text)) => {
            ["true", "false"].into_iter().find(|flag| text.eq_ignore_ascii_case(flag)).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns whether a word is one of the choices of a type.
fn is_choice(kind: &Type, word: &str) -> bool {
    matches!(kind, Type::Select(choices) | Type::MultiSelect(choices) if choices.iter().any(|c| c == word))
}

/// Makes a list of one value, for a slot that takes a list. `null` stays `null`.
pub(super) fn list_of_one(one: Expr) -> Expr {
    match one {
        Expr::Value(Json::Null) => one,
        other => list_of(vec![other]),
    }
}

/// Makes a list. The list is a known value if all its items are known.
pub(super) fn list_of(items: Vec<Expr>) -> Expr {
    let known: Option<Vec<Json>> = items.iter().map(|item| item.known().cloned()).collect();
    known.map_or(Expr::List(items), |all| Json::Array(all).into())
}

/// Makes an object. The object is a known value if all its fields are known.
pub(super) fn object_of(pairs: Vec<(String, Expr)>) -> Expr {
    let known: Option<serde_json::Map<String, Json>> =
        pairs.iter().map(|(key, value)| Some((key.clone(), value.known()?.clone()))).collect();
    known.map_or(Expr::Object(pairs), |all| Json::Object(all).into())
}

/// Parses a number. A float without a fraction becomes an integer, so that 7 and 7.0 are equal in a plan and a key is
/// never sent as `7.0`.
fn parse_number(text: &str) -> Option<Json> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Json::from(integer));
    }
    // An integer that does not fit into 64 bits is refused, because a float would lose digits of it.
    let float = text.parse::<f64>().ok().filter(|f| f.is_finite() && text.contains(['.', 'e', 'E']))?;
    let whole = float.fract() == 0.0 && float.abs() < 9e15;
    Some(if whole { Json::from(float as i64) } else { Json::from(float) })
}
