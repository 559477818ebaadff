//! Corrects a key that does not match the entity's key. The correction uses the values that the author wrote.
//! Invariant: a value is used for a part of the key only if the author certainly meant that part. The other parts
//! become placeholders (`$`).

use base::{Edit, Span, closest_name};
use catalog::Type;

use super::super::Checker;
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, Key, Value, ValueKind};

impl Checker<'_> {
    /// Returns the edit that replaces the key at `wrong` by a complete key, such as `(project="OPS", number=$)`.
    pub(in crate::check) fn key_correction_edit(
        &self,
        exposed: &ExposedEntity,
        key: &Key,
        wrong: Span,
        style: NameStyle,
    ) -> Edit {
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

    /// Returns a value for each part of the key, with the name of the part.
    fn key_values<'p>(
        &self,
        exposed: &ExposedEntity,
        parts: &[(&'p str, &Type)],
        key: &Key,
    ) -> Vec<(&'p str, KeyValue)> {
        match key {
            Key::Unary(value) => {
                let split_parts = split_combined_key(value, parts);
                let value_of_part = |(at, (name, kind)): (usize, &(&'p str, &Type))| match split_parts
                    .as_ref()
                    .and_then(|s| s.get(at))
                {
                    Some(text) => (*name, KeyValue::Inserted(text.clone())),
                    None if at == 0 && !matches!(value.kind, ValueKind::Placeholder) && may_have_type(value, kind) => {
                        (*name, KeyValue::Written(value.span))
                    }
                    None => (*name, KeyValue::Inserted("$".to_owned())),
                };
                parts.iter().enumerate().map(value_of_part).collect()
            }
            Key::Slots(slots) => {
                let wire_name_of_arg = |arg: &Arg| self.scope.wire_name(&exposed.catalog, &arg.slot.text).to_owned();
                let is_known_part = |arg: &&Arg| parts.iter().any(|(name, _)| *name == wire_name_of_arg(arg));
                let mut unknown_args: Vec<&Arg> = slots.iter().filter(|arg| !is_known_part(arg)).collect();
                let missing_part_count =
                    parts.iter().filter(|(name, _)| !slots.iter().any(|arg| wire_name_of_arg(arg) == *name)).count();
                let value_for_part = |(name, kind): &(&'p str, &Type)| {
                    if let Some(arg) = slots.iter().find(|arg| wire_name_of_arg(arg) == *name) {
                        return (*name, KeyValue::Written(arg.value.span));
                    }
                    let meant = unknown_args.iter().position(|arg| {
                        closest_name(&arg.slot.text, [*name]).is_some()
                            || (missing_part_count == 1 && may_have_type(&arg.value, kind))
                    });
                    match meant.map(|at| unknown_args.remove(at)) {
                        Some(arg) => (*name, KeyValue::Written(arg.value.span)),
                        None => (*name, KeyValue::Inserted("$".to_owned())),
                    }
                };
                parts.iter().map(value_for_part).collect()
            }
        }
    }

    /// Returns the edit that replaces a value by a reference. The parts of a text like `OPS-7` become parts of the
    /// key; parts without a value become placeholders.
    pub(in crate::check) fn reference_correction_edit(
        &self,
        exposed: &ExposedEntity,
        value: &Value,
        style: NameStyle,
    ) -> Edit {
        let unary = Key::Unary(Box::new(value.clone()));
        let parts = self.key_correction_edit(exposed, &unary, value.span, style);
        let mut edit = Edit::replace(value.span, exposed.styled_name(style));
        edit.replacement.extend(parts.replacement);
        edit
    }
}

/// The value that a correction writes for one part of a key.
enum KeyValue {
    /// A text that the correction inserts.
    Inserted(String),
    /// The span of a value in the author's text, which the correction copies.
    Written(Span),
}

/// Returns whether a written value may have the type. Only its literal form is compared.
fn may_have_type(value: &Value, kind: &Type) -> bool {
    match (&value.kind, kind) {
        (ValueKind::Number(_), Type::Integer | Type::Number) => true,
        (ValueKind::Number(_), _) | (_, Type::Integer | Type::Number) => matches!(value.kind, ValueKind::Node(_)),
        _ => true,
    }
}

/// Splits `OPS-7` into `"OPS"` and `7`, for a key that consists of a text and a number.
fn split_combined_key(value: &Value, parts: &[(&str, &Type)]) -> Option<Vec<String>> {
    let ValueKind::String(text) = &value.kind else { return None };
    let [(_, Type::String(_) | Type::Ref(_)), (_, Type::Integer)] = parts else { return None };
    let (head, number) = text.rsplit_once(['-', '#', '/', ':', ' '])?;
    let is_plain_text = !head.is_empty() && !head.contains(['"', '\\']) && !head.contains(char::is_control);
    let is_whole_number =
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && number.parse::<i64>().is_ok();
    (is_plain_text && is_whole_number).then(|| vec![format!("\"{}\"", head.trim()), number.to_owned()])
}
