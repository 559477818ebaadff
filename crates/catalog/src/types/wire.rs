//! Values whose form on the wire is not the one a session keeps: numbers for moments, base64 for text, text for numbers.
//! Invariant: `to_wire` of what `from_wire` gave is what the API sent, up to spelling.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Type;

/// How a value travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    #[default]
    Plain,
    /// The session keeps the text, the API its base64.
    Base64,
    /// The session keeps the number, the API its digits as text, for JSON numbers are too small for it.
    Text,
}

impl Type {
    /// What an API sent, as a session keeps it. What does not fit stays as it is, for `accept` to refuse.
    pub fn from_wire<'v>(&self, wire: Wire, value: &'v Value) -> Cow<'v, Value> {
        match (self, wire, value) {
            (_, Wire::Base64, Value::String(text)) => {
                let packed: String = text.split_ascii_whitespace().collect();
                let bytes = STANDARD.decode(packed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                bytes.map_or(Cow::Borrowed(value), |text| Cow::Owned(Value::String(text)))
            }
            (Type::Integer | Type::Number, Wire::Text, Value::String(text)) => match serde_json::from_str(text) {
                Ok(number @ Value::Number(_)) => Cow::Owned(number),
                _ => Cow::Borrowed(value),
            },
            (Type::Date(format), _, value) => format.from_wire(value).map_or(Cow::Borrowed(value), Cow::Owned),
            (Type::Array(of), _, Value::Array(items)) if of.is_converted() => {
                Cow::Owned(items.iter().map(|item| of.from_wire(wire, item).into_owned()).collect())
            }
            _ => Cow::Borrowed(value),
        }
    }

    /// What a session keeps, as the API wants it.
    pub fn to_wire<'v>(&self, wire: Wire, value: &'v Value) -> Cow<'v, Value> {
        match (self, wire, value) {
            (_, Wire::Base64, Value::String(text)) => Cow::Owned(Value::String(STANDARD.encode(text))),
            (Type::Integer | Type::Number, Wire::Text, Value::Number(_)) => {
                Cow::Owned(Value::String(plain_text(value)))
            }
            (Type::Date(format), _, Value::String(text)) => {
                format.to_wire(text).map_or(Cow::Borrowed(value), Cow::Owned)
            }
            (Type::Array(of), _, Value::Array(items)) if of.is_converted() => {
                Cow::Owned(items.iter().map(|item| of.to_wire(wire, item).into_owned()).collect())
            }
            (Type::Object(slots), _, Value::Object(map)) if slots.values().any(|s| s.kind.is_converted()) => {
                let one = |(key, value): (&String, &Value)| {
                    let value = slots.get(key).map_or(Cow::Borrowed(value), |s| s.kind.to_wire(Wire::Plain, value));
                    (key.clone(), value.into_owned())
                };
                Cow::Owned(Value::Object(map.iter().map(one).collect()))
            }
            _ => Cow::Borrowed(value),
        }
    }

    fn is_converted(&self) -> bool {
        match self {
            Type::Date(_) => true,
            Type::Array(of) => of.is_converted(),
            Type::Object(slots) => slots.values().any(|s| s.kind.is_converted()),
            _ => false,
        }
    }
}

/// A value where only text can be: a string is itself, all else is its JSON.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // 7.0 and 7 are the same integer; a server would see two different ids.
        Value::Number(n) => match n.as_f64() {
            Some(f) if !n.is_i64() && !n.is_u64() && f.fract() == 0.0 && f.abs() < 9e15 => format!("{f:.0}"),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

pub(super) fn is_base64(text: &str) -> bool {
    let packed: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(packed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_travels_as_base64_and_comes_back() {
        let text = Type::String(super::super::TextStyle::Short);
        assert_eq!(*text.to_wire(Wire::Base64, &json!("foo")), json!("Zm9v"));
        assert_eq!(*text.from_wire(Wire::Base64, &json!("Zm9v\nYmFy\n")), json!("foobar"), "GitHub wraps its lines");
        assert_eq!(*text.from_wire(Wire::Base64, &json!("*")), json!("*"), "left for `accept`");
        assert_eq!(*text.to_wire(Wire::Plain, &json!("foo")), json!("foo"));
    }

    #[test]
    fn numbers_travel_as_text_and_come_back() {
        let from = |kind: Type, value: Value| kind.from_wire(Wire::Text, &value).into_owned();
        assert_eq!(from(Type::Integer, json!("8978666790214375185")), json!(8978666790214375185_u64));
        assert_eq!(from(Type::Integer, json!("-1")), json!(-1));
        assert_eq!(from(Type::Number, json!("2.5")), json!(2.5));
        assert_eq!(from(Type::Integer, json!(7)), json!(7), "a number is one already");
        for bad in ["", "seven", "true", "[1]", "1 2"] {
            assert_eq!(from(Type::Integer, json!(bad)), json!(bad), "left for `accept`");
        }
        assert_eq!(*Type::Integer.to_wire(Wire::Text, &json!(600)), json!("600"));
        assert_eq!(*Type::Integer.to_wire(Wire::Text, &json!(600.0)), json!("600"));
        assert_eq!(*Type::Integer.to_wire(Wire::Plain, &json!(600)), json!(600));
    }
}
