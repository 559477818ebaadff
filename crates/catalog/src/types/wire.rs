//! Conversion of values between their wire form (in requests and answers) and their form in rows: numbers for
//! moments, base64 for text, text for numbers.
//! Invariant: if an API's value is converted to the row form and back, the result has the same meaning. Only the
//! spelling may differ.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Type;

/// The form of a value on the wire, if it is not the plain JSON of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    #[default]
    Plain,
    /// The row holds the text, and the API takes and gives its base64.
    Base64,
    /// The row holds the number, and the API takes and gives its digits as text, because JSON numbers are too small for all
    /// of them.
    Text,
}

impl Type {
    /// Converts a value of an answer to its form in a row. A value that cannot be converted is returned unchanged, so
    /// that `accept` refuses it.
    pub fn from_wire<'v>(&self, wire: Wire, value: &'v Value) -> Cow<'v, Value> {
        match (self, wire, value) {
            (_, Wire::Base64, Value::String(text)) => {
                // GitHub inserts line breaks into base64 text.
                let without_breaks: String = text.split_ascii_whitespace().collect();
                let decoded = STANDARD.decode(without_breaks).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                decoded.map_or(Cow::Borrowed(value), |text| Cow::Owned(Value::String(text)))
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

    /// Converts a value of a row or a program to the form that the API takes.
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
                let convert = |(key, value): (&String, &Value)| {
                    let value = slots.get(key).map_or(Cow::Borrowed(value), |s| s.kind.to_wire(Wire::Plain, value));
                    (key.clone(), value.into_owned())
                };
                Cow::Owned(Value::Object(map.iter().map(convert).collect()))
            }
            _ => Cow::Borrowed(value),
        }
    }

    /// Returns whether values of this type contain a moment. A moment may be converted also with `Wire::Plain`.
    fn is_converted(&self) -> bool {
        match self {
            Type::Date(_) => true,
            Type::Array(of) => of.is_converted(),
            Type::Object(slots) => slots.values().any(|s| s.kind.is_converted()),
            _ => false,
        }
    }
}

/// Returns a value as text, for a query, a header or a form. A string is returned unchanged, and any other value as
/// JSON.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // The numbers 7.0 and 7 are equal, but a server would read the texts `7.0` and `7` as two different ids.
        Value::Number(n) => match n.as_f64() {
            Some(f) if !n.is_i64() && !n.is_u64() && f.fract() == 0.0 && f.abs() < 9e15 => format!("{f:.0}"),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

/// Returns whether a text is base64. Line breaks inside the text are ignored.
pub(super) fn is_base64(text: &str) -> bool {
    let without_breaks: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(without_breaks).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_sent_as_base64_and_read_back() {
        let text = Type::String(super::super::TextStyle::Short);
        assert_eq!(*text.to_wire(Wire::Base64, &json!("foo")), json!("Zm9v"));
        assert_eq!(*text.from_wire(Wire::Base64, &json!("Zm9v\nYmFy\n")), json!("foobar"), "GitHub wraps its lines");
        assert_eq!(*text.from_wire(Wire::Base64, &json!("*")), json!("*"), "left for `accept`");
        assert_eq!(*text.to_wire(Wire::Plain, &json!("foo")), json!("foo"));
    }

    #[test]
    fn a_number_is_sent_as_text_and_read_back() {
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
