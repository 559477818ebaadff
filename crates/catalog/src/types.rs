//! Value types, and whether a JSON value is of one.
//! Invariant: a value that passes `accept` has the one JSON form that binding and decoding expect of its type.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    String(TextStyle),
    Integer,
    Number,
    Boolean,
    Select(Vec<String>),
    Date(DateFormat),
    Array(Box<Type>),
    /// An entity of the same catalog; the value is its key.
    Ref(String),
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextStyle {
    Short,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DateFormat {
    /// `2026-11-15T12:00:00Z`
    Rfc3339,
    /// `2026-11-15`
    IsoDate,
}

/// Why a value is not of a type: what was expected, in words a caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    #[error("expected {expected}, found {found}")]
    Mismatch { expected: String, found: String },
    #[error("`{found}` is not one of {}", .choices.join(" | "))]
    NotAChoice { found: String, choices: Vec<String> },
}

impl Type {
    /// In a table and in messages: `int`, `open/doing/done`, `date`.
    pub fn describe(&self) -> String {
        match self {
            Type::String(TextStyle::Short) => "string".to_owned(),
            Type::String(TextStyle::Markdown) => "markdown".to_owned(),
            Type::Integer => "int".to_owned(),
            Type::Number => "number".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Select(choices) => choices.join("/"),
            Type::Date(DateFormat::Rfc3339) => "time".to_owned(),
            Type::Date(DateFormat::IsoDate) => "date".to_owned(),
            Type::Array(of) => format!("[{}]", of.describe()),
            Type::Ref(entity) => entity.clone(),
            Type::Json => "json".to_owned(),
        }
    }

    /// Whether a non-null value from an answer or a program is of this type. References are checked by their entity's key.
    pub fn accept(&self, value: &Value) -> Result<(), TypeError> {
        let fits = match (self, value) {
            (Type::Json | Type::Ref(_), _) => true,
            (Type::String(_), Value::String(_)) => true,
            (Type::Integer, Value::Number(n)) => {
                n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0)
            }
            (Type::Number, Value::Number(_)) | (Type::Boolean, Value::Bool(_)) => true,
            (Type::Select(choices), Value::String(text)) => {
                if choices.contains(text) {
                    return Ok(());
                }
                return Err(TypeError::NotAChoice { found: clip(text), choices: choices.clone() });
            }
            (Type::Date(format), Value::String(text)) => format.accepts(text),
            (Type::Array(of), Value::Array(items)) => return items.iter().try_for_each(|item| of.accept(item)),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(TypeError::Mismatch { expected: self.describe(), found: clip(&value.to_string()) })
    }
}

impl DateFormat {
    pub fn accepts(self, text: &str) -> bool {
        match self {
            DateFormat::IsoDate => is_date(text.as_bytes()),
            DateFormat::Rfc3339 => {
                let bytes = text.as_bytes();
                let time_at = bytes.get(10).is_some_and(|b| matches!(b, b'T' | b't' | b' '));
                text.is_ascii() && bytes.len() >= 20 && is_date(&bytes[..10]) && time_at && is_time(&bytes[11..])
            }
        }
    }
}

fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return false;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2].iter().all(|b| b.is_ascii_digit());
    let number = |a: &u8, b: &u8| (a.wrapping_sub(b'0')) * 10 + b.wrapping_sub(b'0');
    digits && (1..=12).contains(&number(m1, m2)) && (1..=31).contains(&number(d1, d2))
}

/// `HH:MM:SS`, an optional fraction, then `Z` or an offset.
fn is_time(text: &[u8]) -> bool {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else {
        return false;
    };
    if ![h1, h2, m1, m2, s1, s2].iter().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let fraction = rest.strip_prefix(b".").map_or(0, |r| 1 + r.iter().take_while(|b| b.is_ascii_digit()).count());
    match &rest[fraction..] {
        b"Z" | b"z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

fn clip(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_and_times() {
        for good in ["2026-11-15T12:00:00Z", "2026-11-15T12:00:00.123+02:00"] {
            assert!(DateFormat::Rfc3339.accepts(good), "{good}");
        }
        for bad in ["2026-11-15", "2026-13-15T12:00:00Z", "2026-11-15T12:00:00", "2026-11-15Té:00:00Z1", ""] {
            assert!(!DateFormat::Rfc3339.accepts(bad), "{bad}");
        }
        assert!(DateFormat::IsoDate.accepts("2026-02-01") && !DateFormat::IsoDate.accepts("2026-2-1"));
    }

    #[test]
    fn a_choice_is_named_with_its_choices() {
        let state = Type::Select(vec!["open".into(), "done".into()]);
        assert!(state.accept(&json!("open")).is_ok());
        assert_eq!(state.accept(&json!("opne")).unwrap_err().to_string(), "`opne` is not one of open | done");
        assert_eq!(Type::Integer.accept(&json!("7")).unwrap_err().to_string(), "expected int, found \"7\"");
        assert!(Type::Integer.accept(&json!(7.5)).is_err() && Type::Integer.accept(&json!(7.0)).is_ok());
    }
}
