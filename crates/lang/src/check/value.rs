//! A written value to the JSON value its slot wants.
//! Invariant: what comes out is of the slot's type; a place to fill passes only in a taught line.

use base::{Diagnostic, Span};
use catalog::{Type, TypeError};
use serde_json::{Map, Value as Json};

use super::Cx;
use super::node::entity_span;
use super::source::alphabet_of;
use crate::codes;
use crate::scope::{Alphabet, Exposed};
use crate::syntax::tree::{Key, Node, Primary, Value, ValueKind};

impl<'s> Cx<'s> {
    pub(super) fn value(&mut self, exposed: &Exposed, kind: &Type, value: &Value) -> Option<Json> {
        match (&value.kind, kind) {
            (ValueKind::Error, _) => None,
            (ValueKind::Hole, _) => self.hole(exposed, kind, value.span),
            (ValueKind::Node(node), _) => self.node_value(exposed, kind, node),
            (ValueKind::Null, _) => Some(Json::Null),
            (_, Type::Ref(target)) => self.scalar_reference(exposed, target, value),
            (ValueKind::String(text), _) => self.accept(kind, Json::String(text.clone()), value.span),
            (ValueKind::Text(block), _) => self.accept(kind, Json::String(block.body.clone()), value.span),
            (ValueKind::Bool(flag), _) => self.accept(kind, Json::Bool(*flag), value.span),
            (ValueKind::Number(text), _) => {
                let Some(number) = number(text) else {
                    self.error(codes::WRONG_TYPE, value.span, format!("`{text}` is not a number that fits"));
                    return None;
                };
                self.accept(kind, number, value.span)
            }
            (ValueKind::List(items), Type::Array(of)) => {
                let values: Option<Vec<Json>> = items.iter().map(|item| self.value(exposed, of, item)).collect();
                values.map(Json::Array)
            }
            (ValueKind::List(_) | ValueKind::Object(_), _) => {
                self.error(
                    codes::WRONG_TYPE,
                    value.span,
                    format!("expected {}, found a list or an object", kind.describe()),
                );
                None
            }
        }
    }

    /// A single value for a list slot is a list of one; a choice in another case is mended; all else is refused.
    fn accept(&mut self, kind: &Type, json: Json, span: Span) -> Option<Json> {
        if let (Type::Array(of), false) = (kind, json.is_array()) {
            return self.accept(of, json, span).map(|one| Json::Array(vec![one]));
        }
        match kind.accept(&json) {
            Ok(()) => Some(json),
            Err(TypeError::NotAChoice { found, choices }) => {
                let same: Vec<&String> = choices.iter().filter(|c| c.eq_ignore_ascii_case(&found)).collect();
                if let [only] = same.as_slice() {
                    self.report(Diagnostic::note(codes::NOT_A_CHOICE, span, format!("read `{found}` as `{only}`")));
                    return Some(Json::String((*only).clone()));
                }
                let message = format!("`{found}` is not one of {}", choices.join(" | "));
                let meant = base::nearest(&found, choices.iter().map(String::as_str));
                let copy = meant.map(|c| format!("\"{c}\""));
                let diagnostic = Diagnostic::error(codes::NOT_A_CHOICE, span, message);
                self.report(Diagnostic { copy, ..diagnostic });
                None
            }
            Err(error) => {
                self.error(codes::WRONG_TYPE, span, error.to_string());
                None
            }
        }
    }

    fn hole(&mut self, exposed: &Exposed, kind: &Type, span: Span) -> Option<Json> {
        if self.taught {
            return Some(Json::String("$".to_owned()));
        }
        let sample = self.sample(exposed, kind, Alphabet::Names);
        let message = format!("`$` marks a place to fill; put a real value ({}) there", kind.describe());
        self.report(Diagnostic::error(codes::PLACEHOLDER, span, message).with_copy(sample));
        None
    }

    /// A bare word, or a reference `e1(…)`.
    fn node_value(&mut self, exposed: &Exposed, kind: &Type, node: &Node) -> Option<Json> {
        match (&node.primary, node.parts.is_empty()) {
            (Primary::Error(_), _) => None,
            (Primary::Name(name), true) if name.catalog.is_none() => {
                let word = &name.name.text;
                if self.labels.contains_key(word) {
                    self.not_in_this_build(node.span, "an earlier name as a value");
                    return None;
                }
                if self.scope.slots.contains_key(word) || self.scope.entity(name).is_ok() {
                    let message = format!("`{word}` is a name, not a value");
                    self.report(
                        Diagnostic::error(codes::WRONG_TYPE, node.span, message).with_copy(format!("\"{word}\"")),
                    );
                    return None;
                }
                self.bare_word(exposed, kind, word, node.span)
            }
            (Primary::Get { entity, key }, true) => self.reference(kind, (entity, key), node.span),
            _ => {
                self.not_in_this_build(node.span, "an expression as a value");
                None
            }
        }
    }

    /// The missing quotes are certain: nothing else in scope has this name.
    fn bare_word(&mut self, exposed: &Exposed, kind: &Type, word: &str, span: Span) -> Option<Json> {
        let quiet = matches!(kind, Type::Select(_) | Type::Date(_));
        let value = Value { kind: ValueKind::String(word.to_owned()), span };
        let json = self.value(exposed, kind, &value)?;
        if !quiet {
            self.report(Diagnostic::note(codes::WRONG_TYPE, span, format!("read {word} as \"{word}\"")));
        }
        Some(json)
    }

    fn reference(
        &mut self,
        kind: &Type,
        (entity, key): (&crate::syntax::tree::EntityName, &Key),
        span: Span,
    ) -> Option<Json> {
        let referred = self.entity(entity)?;
        let Type::Ref(target) = kind else {
            let message = format!("expected {}, found a reference to {}", kind.describe(), referred.entity);
            self.error(codes::WRONG_TYPE, span, message);
            return None;
        };
        if &referred.entity != target {
            let message = format!("expected a reference to {target}, found one to {}", referred.entity);
            self.error(codes::WRONG_TYPE, entity_span(entity), message);
            return None;
        }
        let mut args = self.key_args(referred, key, alphabet_of(entity), span)?;
        match referred.definition()?.key.as_slice() {
            [only] => args.remove(only),
            parts => {
                let pairs: Option<Map<String, Json>> =
                    parts.iter().map(|p| Some((p.clone(), args.remove(p)?))).collect();
                pairs.map(Json::Object)
            }
        }
    }

    /// A scalar stands for a reference when the target's key has one part.
    fn scalar_reference(&mut self, exposed: &Exposed, target: &str, value: &Value) -> Option<Json> {
        let entity = exposed.catalog.entity(target)?;
        if let [only] = entity.key.as_slice() {
            let kind = entity.fields.get(only)?.kind.clone();
            return self.value(exposed, &kind, value);
        }
        let sample = self.sample(exposed, &Type::Ref(target.to_owned()), Alphabet::Names);
        let message = format!("{target} has a key of {} parts; write a reference", entity.key.len());
        self.report(Diagnostic::error(codes::WRONG_TYPE, value.span, message).with_copy(sample));
        None
    }

    /// A value of a type, to copy and change.
    pub(super) fn sample(&self, exposed: &Exposed, kind: &Type, alphabet: Alphabet) -> String {
        match kind {
            Type::String(_) | Type::Json => "\"words\"".to_owned(),
            Type::Integer | Type::Number => "1".to_owned(),
            Type::Boolean => "true".to_owned(),
            Type::Select(choices) => format!("\"{}\"", choices.first().map_or("", String::as_str)),
            Type::Date(catalog::DateFormat::IsoDate) => "\"2026-01-31\"".to_owned(),
            Type::Date(_) => "\"2026-01-31T00:00:00Z\"".to_owned(),
            Type::MultiSelect(choices) => format!("[\"{}\"]", choices.first().map_or("", String::as_str)),
            Type::Uuid => "\"123e4567-e89b-12d3-a456-426614174000\"".to_owned(),
            Type::Object(slots) => {
                let pairs = slots.iter().filter(|(_, slot)| slot.required);
                let pairs: Vec<String> = pairs
                    .map(|(name, slot)| format!("{name}: {}", self.sample(exposed, &slot.kind, alphabet)))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            Type::Union(union) => self.sample_arm(exposed, union, alphabet),
            Type::Array(of) => format!("[{}]", self.sample(exposed, of, alphabet)),
            Type::Ref(target) => self.sample_reference(exposed, target, alphabet),
        }
    }

    fn sample_arm(&self, exposed: &Exposed, union: &catalog::Union, alphabet: Alphabet) -> String {
        let Some((name, slots)) = union.arms.first() else { return "…".to_owned() };
        let pairs: Vec<String> = slots
            .iter()
            .filter(|(_, slot)| slot.required)
            .map(|(name, slot)| format!("{name}={}", self.sample(exposed, &slot.kind, alphabet)))
            .collect();
        format!("{name}{{{}}}", pairs.join(", "))
    }

    fn sample_reference(&self, exposed: &Exposed, target: &str, alphabet: Alphabet) -> String {
        let Some(entity) = exposed.catalog.entity(target) else {
            return "…".to_owned();
        };
        let key: Vec<&catalog::Field> = entity.key.iter().filter_map(|k| entity.fields.get(k)).collect();
        // A key part that is itself a reference is shown as a plain word: samples do not nest.
        let part = |kind: &Type| match kind {
            Type::Ref(_) => "\"words\"".to_owned(),
            plain => self.sample(exposed, plain, alphabet),
        };
        if let [only] = key.as_slice() {
            return part(&only.kind);
        }
        let name = self.scope.exposed(&exposed.catalog, target).map_or(target, |e| e.name_in(alphabet));
        let slots: Vec<String> = key
            .iter()
            .map(|f| format!("{}={}", self.scope.slot_in(&exposed.catalog, &f.name, alphabet), part(&f.kind)))
            .collect();
        format!("{name}({})", slots.join(", "))
    }
}

/// As an integer where it is one, so that 7 and 7.0 are the same value in a plan and a key is not sent as `7.0`.
fn number(text: &str) -> Option<Json> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Json::from(integer));
    }
    // Digits alone that do not fit would lose some of them as a float.
    let float = text.parse::<f64>().ok().filter(|f| f.is_finite() && text.contains(['.', 'e', 'E']))?;
    let whole = float.fract() == 0.0 && float.abs() < 9e15;
    Some(if whole { Json::from(float as i64) } else { Json::from(float) })
}
