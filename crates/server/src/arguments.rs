//! Arguments that do not fit, said in words of whoever sent them.
//! Invariant: names the argument and what it takes; no type of ours and no control character of theirs.

use base::printable;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longer values are not repeated.
const ECHOED: usize = 300;

#[derive(Debug, thiserror::Error)]
#[error("{}{what}", if .at == "." { String::new() } else { format!("`{}`: ", .at) })]
pub struct Wrong {
    at: String,
    what: String,
}

pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Wrong> {
    // A list would be taken for the members of an object, one after the other.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Wrong { at: ".".to_owned(), what: "it takes an object, not a list".to_owned() });
    }
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut source).map_err(|error| Wrong::of(&error))?;
    source.end().map_err(|error| Wrong { at: ".".to_owned(), what: words(&error.to_string()) })?;
    Ok(read)
}

pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Wrong> {
    serde_path_to_error::deserialize(value).map_err(|error| Wrong::of(&error))
}

/// A number of rows; more than can be counted is as many as there are.
pub fn rows<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Option<usize>, D::Error> {
    match Option::<f64>::deserialize(given)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(Some(number as usize)),
        Some(_) => Err(serde::de::Error::custom("it takes a whole number from 0")),
    }
}

/// A query that the framework does not read.
pub fn wrong_query(text: &str) -> Wrong {
    let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(text);
    let (at, what) = text.split_once(": ").unwrap_or((".", text));
    Wrong { at: printable(at, 80), what: words(what) }
}

impl Wrong {
    fn of(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let at = printable(&error.path().to_string(), 80);
        // A name that is not known is in the message; the path leads to the place where it stands.
        Self { at, what: words(&error.inner().to_string()) }
    }
}

/// `invalid type: integer `5`, expected a string` to `it takes a text, not a number`.
fn words(text: &str) -> String {
    let (text, place) = match text.rfind(" at line ") {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let found = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    if let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("it takes {}, not {}{place}", kind(expected), kind(found));
    }
    if text.starts_with("invalid length") && text.contains("expected struct") {
        return format!("it takes an object, not a list{place}");
    }
    match text {
        "provided string was not `true` or `false`" => return "it takes true or false".to_owned(),
        "invalid digit found in string" => return "it takes a whole number from 0".to_owned(),
        _ => {}
    }
    for unknown in ["unknown field `", "unknown variant `"] {
        // Only the name in front is the caller's.
        if let Some((name, known)) = text.strip_prefix(unknown).and_then(|rest| rest.rsplit_once("`, expected ")) {
            return format!("{unknown}{}`, expected {known}{place}", printable(name, 80));
        }
    }
    let plain = |part: &str| printable(part, ECHOED);
    format!("{}{place}", text.split('`').map(plain).collect::<Vec<_>>().join("`"))
}

fn kind(word: &str) -> &str {
    let first = word.split([' ', '`', '"']).find(|part| !part.is_empty() && *part != "a" && *part != "an");
    match first.unwrap_or_default() {
        "string" | "str" | "character" | "borrowed" => "a text",
        "usize" | "u8" | "u16" | "u32" | "u64" => "a whole number from 0",
        "integer" | "floating" | "f32" | "f64" | "number" => "a number",
        "sequence" | "array" | "tuple" => "a list",
        "map" | "struct" | "object" => "an object",
        "boolean" | "bool" => "true or false",
        "unit" | "null" | "Option" | "unit-value" => "nothing",
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[allow(dead_code)]
        name: String,
        #[serde(default)]
        #[allow(dead_code)]
        many: Vec<usize>,
        #[serde(default)]
        #[allow(dead_code)]
        yes: bool,
    }

    #[test]
    fn mistakes_are_said_in_words_of_the_caller() {
        let said = |text: &str| from_json::<Sample>(text.as_bytes()).map_err(|wrong| wrong.to_string()).unwrap_err();
        assert_eq!(said(r#"{"name": 5}"#), "`name`: it takes a text, not a number at line 1 column 10");
        assert_eq!(
            said(r#"{"name": "x", "many": ["a"]}"#),
            "`many[0]`: it takes a whole number from 0, not a text at line 1 column 26"
        );
        assert_eq!(
            said(r#"{"name": "x", "many": [-1]}"#),
            "`many[0]`: it takes a whole number from 0, not a number at line 1 column 25"
        );
        assert_eq!(said(r#"{"name": "x", "many": {}}"#), "`many`: it takes a list, not an object at line 1 column 22");
        assert_eq!(
            said(r#"{"name": "x", "yes": "x"}"#),
            "`yes`: it takes true or false, not a text at line 1 column 24"
        );
        assert_eq!(said("[]"), "it takes an object, not a list");
        let unknown = said("{\"a\\u001bb\": 5}");
        assert!(unknown.contains("unknown field `a\u{fffd}b`"), "{unknown}");
    }
}
