//! Corrects keys that are not the entity's to its own, with the values that were written.
//! Invariant: a value goes to the part of the key that it was certainly meant for. The other parts are places to fill.

use base::{Edit, Span, closest_name};
use catalog::Type;

use super::super::Checker;
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, Key, Value, ValueKind};

impl Checker<'_> {
    /// Returns the edit that writes `(project="OPS", number=$)` in place of the key at `wrong`.
    pub(in crate::check) fn key_edit(&self, exposed: &ExposedEntity, key: &Key, wrong: Span, style: NameStyle) -> Edit {
        let parts: Vec<(&str, &Type)> =
            exposed.definition().into_iter().flat_map(|e| e.key_fields().map(|f| (f.name.as_str(), &f.kind))).collect();
        let mut edit = Edit::replace(wrong, "(");
        for (n, (name, value)) in self.key_values(exposed, &parts, key).into_iter().enumerate() {
            let slot = self.scope.styled_slot(&exposed.catalog, name, style);
            edit = edit.append(format!("{}{slot}=", if n > 0 { ", " } else { "" }));
            edit = match value {
                KeyValue::Written(span) => edit.append_original(span),
                KeyValue::Inserted(text) => edit.append(text),
            };
        }
        edit.append(")")
    }

    /// Returns a value for each part of the key.
    fn key_values<'p>(
        &self,
        exposed: &ExposedEntity,
        parts: &[(&'p str, &Type)],
        key: &Key,
    ) -> Vec<(&'p str, KeyValue)> {
        match key {
            Key::Unary(value) => {
                let split_parts = split_combined_key(value, parts);
                let one =
                    |(at, (name, kind)): (usize, &(&'p str, &Type))| match split_parts.as_ref().and_then(|s| s.get(at))
                    {
                        Some(text) => (*name, KeyValue::Inserted(text.clone())),
                        None if at == 0 && !matches!(value.kind, ValueKind::Hole) && could_be(value, kind) => {
                            (*name, KeyValue::Written(value.span))
                        }
                        None => (*name, KeyValue::Inserted("$".to_owned())),
                    };
                parts.iter().enumerate().map(one).collect()
            }
            Key::Slots(slots) => {
                let wire = |arg: &Arg| self.scope.wire_name(&exposed.catalog, &arg.slot.text).to_owned();
                let known = |arg: &&Arg| parts.iter().any(|(name, _)| *name == wire(arg));
                let mut unknown_args: Vec<&Arg> = slots.iter().filter(|arg| !known(arg)).collect();
                let lacking = parts.iter().filter(|(name, _)| !slots.iter().any(|arg| wire(arg) == *name)).count();
                let assign = |(name, kind): &(&'p str, &Type)| {
                    if let Some(arg) = slots.iter().find(|arg| wire(arg) == *name) {
                        return (*name, KeyValue::Written(arg.value.span));
                    }
                    let meant = unknown_args.iter().position(|arg| {
                        closest_name(&arg.slot.text, [*name]).is_some() || (lacking == 1 && could_be(&arg.value, kind))
                    });
                    match meant.map(|at| unknown_args.remove(at)) {
                        Some(arg) => (*name, KeyValue::Written(arg.value.span)),
                        None => (*name, KeyValue::Inserted("$".to_owned())),
                    }
                };
                parts.iter().map(assign).collect()
            }
        }
    }

    /// Returns the edit that writes a reference in place of a value, with the parts that a text like `OPS-7` has, or
    /// with places to fill.
    pub(in crate::check) fn reference_edit(&self, exposed: &ExposedEntity, value: &Value, style: NameStyle) -> Edit {
        let unary = Key::Unary(Box::new(value.clone()));
        let parts = self.key_edit(exposed, &unary, value.span, style);
        let mut edit = Edit::replace(value.span, exposed.styled_name(style));
        edit.replacement.extend(parts.replacement);
        edit
    }
}

/// The value of one part of a corrected key.
enum KeyValue {
    /// A text to write.
    Inserted(String),
    /// The span of a value that the author wrote.
    Written(Span),
}

/// Returns whether a written value may be of a type, as far as its form tells.
fn could_be(value: &Value, kind: &Type) -> bool {
    match (&value.kind, kind) {
        (ValueKind::Number(_), Type::Integer | Type::Number) => true,
        (ValueKind::Number(_), _) | (_, Type::Integer | Type::Number) => matches!(value.kind, ValueKind::Node(_)),
        _ => true,
    }
}

/// Splits `OPS-7` into `"OPS"` and `7`, for a key of a text and a number.
fn split_combined_key(value: &Value, parts: &[(&str, &Type)]) -> Option<Vec<String>> {
    let ValueKind::String(text) = &value.kind else { return None };
    let [(_, Type::String(_) | Type::Ref(_)), (_, Type::Integer)] = parts else { return None };
    let (head, number) = text.rsplit_once(['-', '#', '/', ':', ' '])?;
    let plain = !head.is_empty() && !head.contains(['"', '\\']) && !head.contains(char::is_control);
    let whole = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && number.parse::<i64>().is_ok();
    (plain && whole).then(|| vec![format!("\"{}\"", head.trim()), number.to_owned()])
}
