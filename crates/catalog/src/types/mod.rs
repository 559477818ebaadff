//! The types of values, and the check whether a JSON value has a type.
//! Invariant: a value that passes `accept` has the JSON form that binding and decoding expect of the type. A moment
//! is RFC 3339 text, also if the API sends a number. A slot is a named member of an object type. An arm is one
//! alternative of a union, and its value is the object that the API takes.

mod date;
mod wire;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use date::DateFormat;
pub use wire::Wire;
pub(crate) use wire::plain_text;

/// The type of a field, a parameter, or a slot of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    String(TextStyle),
    Integer,
    Number,
    Boolean,
    /// A text that is one of these choices.
    Select(Vec<String>),
    /// An array of any number of these choices.
    MultiSelect(Vec<String>),
    Date(DateFormat),
    Uuid,
    Array(Box<Type>),
    Object(IndexMap<String, ObjectSlot>),
    Union(Union),
    /// A reference to a row of this entity, which is in the same catalog. The value is the key of the row.
    Ref(String),
    /// Any JSON value.
    Json,
}

/// The kind of a text, which decides how programs show and edit the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextStyle {
    Short,
    Markdown,
    /// Long text without a particular format.
    Document,
    Html,
    /// JSON in a string.
    JsonText,
    /// Bytes, as base64 text.
    Blob,
}

/// One slot, that is one named member of an object type or of an arm of a union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectSlot {
    #[serde(rename = "type")]
    pub kind: Type,
    pub required: bool,
}

/// A type whose value is one of several objects, the arms. A tag, a key with the arm's name, or both tell which arm a
/// value is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Union {
    /// The key whose value is the name of the arm, if the API uses such a tag.
    pub tag: Option<String>,
    /// Whether the slots are in an inner object under a key with the arm's name. Otherwise the slots are members
    /// beside the tag.
    pub nest: bool,
    /// The arms by name, each with its slots.
    pub arms: IndexMap<String, IndexMap<String, ObjectSlot>>,
}

/// Why a value does not have the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    #[error("expected {expected}, found {found}")]
    Mismatch { expected: String, found: String },
    #[error("`{found}` is not one of {}", .choices.join(" | "))]
    NotAChoice { found: String, choices: Vec<String> },
    #[error("`{slot}` is missing")]
    MissingSlot { slot: String },
    #[error("no slot `{slot}`; one of {}", .slots.join(" | "))]
    UnknownSlot { slot: String, slots: Vec<String> },
    #[error("`{slot}`: {cause}")]
    Inside { slot: String, cause: Box<TypeError> },
}

impl TextStyle {
    /// Returns the style's name in the catalog format.
    pub fn word(self) -> &'static str {
        match self {
            TextStyle::Short => "string",
            TextStyle::Markdown => "markdown",
            TextStyle::Document => "document",
            TextStyle::Html => "html",
            TextStyle::JsonText => "json_text",
            TextStyle::Blob => "blob",
        }
    }
}

impl Type {
    /// Returns the type as tables and messages write it: `int`, `open/doing/done`, `date`.
    pub fn describe(&self) -> String {
        match self {
            Type::Select(choices) => choices.join("/"),
            Type::MultiSelect(choices) => format!("[{}]", choices.join("/")),
            Type::Array(of) => format!("[{}]", of.describe()),
            Type::Object(slots) => format!("{{{}}}", describe_slots(slots)),
            Type::Union(union) => {
                let arms: Vec<String> =
                    union.arms.iter().map(|(name, slots)| format!("{name}{{{}}}", describe_slots(slots))).collect();
                arms.join(" or ")
            }
            Type::Ref(entity) => entity.clone(),
            _ => self.word().unwrap_or_default().to_owned(),
        }
    }

    /// Returns the one-word name of a simple type, such as `int`, and `None` for a type that contains other types,
    /// choices or names.
    pub fn word(&self) -> Option<&'static str> {
        Some(match self {
            Type::String(style) => style.word(),
            Type::Integer => "int",
            Type::Number => "number",
            Type::Boolean => "bool",
            Type::Date(DateFormat::IsoDate) => "date",
            Type::Date(_) => "time",
            Type::Uuid => "uuid",
            Type::Json => "json",
            Type::Select(_)
            | Type::MultiSelect(_)
            | Type::Array(_)
            | Type::Object(_)
            | Type::Union(_)
            | Type::Ref(_) => return None,
        })
    }

    /// Checks that a non-null value from an answer or a program has this type. Every value passes as a reference,
    /// because the check of a reference needs the key of its entity, which a type does not contain.
    pub fn accept(&self, value: &Value) -> Result<(), TypeError> {
        let fits = match (self, value) {
            (Type::Json | Type::Ref(_), _) => true,
            (Type::String(TextStyle::Blob), Value::String(text)) => wire::is_base64(text),
            (Type::String(_), Value::String(_)) => true,
            (Type::Integer, Value::Number(n)) => {
                // A float above 2^53 is rounded, so two different ids could become equal.
                n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 9e15)
            }
            (Type::Number, Value::Number(_)) | (Type::Boolean, Value::Bool(_)) => true,
            (Type::Select(choices), Value::String(text)) => return check_choice(choices, text),
            (Type::MultiSelect(choices), Value::Array(items)) => {
                return items.iter().try_for_each(|item| match item {
                    Value::String(text) => check_choice(choices, text),
                    other => Err(self.mismatch(other)),
                });
            }
            (Type::Date(format), Value::String(text)) => format.accepts(text),
            (Type::Uuid, Value::String(text)) => is_uuid(text),
            (Type::Array(of), Value::Array(items)) => return items.iter().try_for_each(|item| of.accept(item)),
            (Type::Object(slots), Value::Object(map)) => return accept_slots(slots, map),
            (Type::Union(union), Value::Object(map)) => return union.accept(map),
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.mismatch(value)) }
    }

    fn mismatch(&self, value: &Value) -> TypeError {
        TypeError::Mismatch { expected: self.describe(), found: shortened(&value.to_string()) }
    }
}

impl Union {
    /// Makes the object for one arm in the form that the API takes.
    pub fn arm(&self, name: &str, slots: Map<String, Value>) -> Value {
        let mut out = Map::new();
        if let Some(tag) = &self.tag {
            out.insert(tag.clone(), Value::String(name.to_owned()));
        }
        if self.nest {
            out.insert(name.to_owned(), Value::Object(slots));
        } else {
            out.extend(slots);
        }
        Value::Object(out)
    }

    fn accept(&self, map: &Map<String, Value>) -> Result<(), TypeError> {
        let tag_value = self.tag.as_ref().map(|tag| map.get(tag).and_then(Value::as_str).unwrap_or_default());
        // Without a tag, the object has a key that is the name of the arm.
        let arm_name = tag_value.or_else(|| map.keys().map(String::as_str).find(|key| self.arms.contains_key(*key)));
        let Some((name, slots)) = arm_name.and_then(|name| self.arms.get_key_value(name)) else {
            let choices = self.arms.keys().cloned().collect();
            return Err(TypeError::NotAChoice { found: shortened(arm_name.unwrap_or("{}")), choices });
        };
        if !self.nest {
            let without_tag = map.iter().filter(|(key, _)| self.tag.as_ref() != Some(key));
            return accept_slots(slots, &without_tag.map(|(k, v)| (k.clone(), v.clone())).collect());
        }
        match map.get(name) {
            Some(Value::Object(inner)) => accept_slots(slots, inner),
            _ => Err(TypeError::MissingSlot { slot: name.clone() }),
        }
    }
}

fn accept_slots(slots: &IndexMap<String, ObjectSlot>, map: &Map<String, Value>) -> Result<(), TypeError> {
    for (name, slot) in slots {
        match map.get(name) {
            None | Some(Value::Null) if slot.required => return Err(TypeError::MissingSlot { slot: name.clone() }),
            None | Some(Value::Null) => {}
            Some(value) => slot
                .kind
                .accept(value)
                .map_err(|cause| TypeError::Inside { slot: name.clone(), cause: Box::new(cause) })?,
        }
    }
    match map.keys().find(|key| !slots.contains_key(*key)) {
        Some(key) => Err(TypeError::UnknownSlot { slot: shortened(key), slots: slots.keys().cloned().collect() }),
        None => Ok(()),
    }
}

fn describe_slots(slots: &IndexMap<String, ObjectSlot>) -> String {
    let describe_slot = |(name, slot): (&String, &ObjectSlot)| match (&slot.kind, slot.required) {
        (Type::String(TextStyle::Short), true) => name.clone(),
        (Type::String(TextStyle::Short), false) => format!("opt {name}"),
        (kind, true) => format!("{name} {}", kind.describe()),
        (kind, false) => format!("opt {name} {}", kind.describe()),
    };
    slots.iter().map(describe_slot).collect::<Vec<_>>().join(", ")
}

fn check_choice(choices: &[String], text: &str) -> Result<(), TypeError> {
    if choices.iter().any(|choice| choice == text) {
        return Ok(());
    }
    Err(TypeError::NotAChoice { found: shortened(text), choices: choices.to_vec() })
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|g| g.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|g| g.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Shortens the text of a value so that it fits into an error message.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_moment_needs_a_time_and_a_day_needs_two_digits() {
        for good in ["2026-11-15T12:00:00Z", "2026-11-15T12:00:00.123+02:00"] {
            assert!(DateFormat::Rfc3339.accepts(good), "{good}");
        }
        for bad in ["2026-11-15", "2026-13-15T12:00:00Z", "2026-11-15T12:00:00", "2026-11-15Té:00:00Z1", ""] {
            assert!(!DateFormat::Rfc3339.accepts(bad), "{bad}");
        }
        assert!(DateFormat::IsoDate.accepts("2026-02-01") && !DateFormat::IsoDate.accepts("2026-2-1"));
    }

    #[test]
    fn a_mismatch_says_what_is_expected() {
        let state = Type::Select(vec!["open".into(), "done".into()]);
        assert!(state.accept(&json!("open")).is_ok());
        assert_eq!(state.accept(&json!("opne")).unwrap_err().to_string(), "`opne` is not one of open | done");
        assert_eq!(Type::Integer.accept(&json!("7")).unwrap_err().to_string(), "expected int, found \"7\"");
        assert!(Type::Integer.accept(&json!(7.5)).is_err() && Type::Integer.accept(&json!(7.0)).is_ok());
    }
}
