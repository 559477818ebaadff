//! Reads arguments, and describes mistakes in them in the words of the client.
//! Invariant: a description names the argument and what it takes. It has no Rust type and no control character of the client's.

use base::printable;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A description repeats at most this many characters of the client's value.
const MAX_ECHOED_CHARS: usize = 300;

/// A mistake in an argument of a client.
#[derive(Debug, thiserror::Error)]
#[error("{}{description}", if .path == "." { String::new() } else { format!("`{}`: ", .path) })]
pub struct BadArgument {
    /// The path to the argument, such as `seeds[0].api`. A dot is the whole body.
    path: String,
    /// The mistake, without the path.
    description: String,
}

/// Reads a JSON text.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BadArgument> {
    // Serde would read a list as the fields of a struct, in order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(BadArgument::of_body("it takes an object, not a list".to_owned()));
    }
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut source).map_err(|error| BadArgument::new(&error))?;
    // Text behind the object would be ignored otherwise.
    source.end().map_err(|error| BadArgument::of_body(describe(&error.to_string())))?;
    Ok(value)
}

/// Reads a JSON value.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, BadArgument> {
    serde_path_to_error::deserialize(value).map_err(|error| BadArgument::new(&error))
}

/// Describes a query that the web framework could not read. The framework's error has no parts, only a text.
pub fn bad_query(text: &str) -> BadArgument {
    let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(text);
    let (path, mistake) = text.split_once(": ").unwrap_or((".", text));
    BadArgument { path: printable(path, 80), description: describe(mistake) }
}

impl BadArgument {
    fn new(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let path = printable(&error.path().to_string(), 80);
        Self { path, description: describe(&error.inner().to_string()) }
    }

    fn of_body(description: String) -> Self {
        Self { path: ".".to_owned(), description }
    }
}

/// Rewrites a message of serde: "invalid type: integer `5`, expected a string" becomes "it takes a text, not a number".
fn describe(text: &str) -> String {
    let (text, position) = match text.rfind(" at line ") {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mismatch = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    if let Some((found, expected)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("it takes {}, not {}{position}", client_word(expected), client_word(found));
    }
    if text.starts_with("invalid length") && text.contains("expected struct") {
        return format!("it takes an object, not a list{position}");
    }
    match text {
        "provided string was not `true` or `false`" => return "it takes true or false".to_owned(),
        "invalid digit found in string" => return "it takes a whole number from 0".to_owned(),
        _ => {}
    }
    for unknown in ["unknown field `", "unknown variant `"] {
        // Only the unknown name comes from the client. The known names are ours.
        if let Some((name, known)) = text.strip_prefix(unknown).and_then(|rest| rest.rsplit_once("`, expected ")) {
            return format!("{unknown}{}`, expected {known}{position}", printable(name, 80));
        }
    }
    // The parts between backticks are cut one by one, so that a long value of the client does not cut the mistake itself.
    let parts: Vec<String> = text.split('`').map(|part| printable(part, MAX_ECHOED_CHARS)).collect();
    format!("{}{position}", parts.join("`"))
}

/// Returns the client's word for a type of serde.
fn client_word(word: &str) -> &str {
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
    fn mistakes_are_described_in_the_words_of_the_client() {
        let mistake =
            |text: &str| from_json::<Sample>(text.as_bytes()).map_err(|mistake| mistake.to_string()).unwrap_err();
        assert_eq!(mistake(r#"{"name": 5}"#), "`name`: it takes a text, not a number at line 1 column 10");
        assert_eq!(
            mistake(r#"{"name": "x", "many": ["a"]}"#),
            "`many[0]`: it takes a whole number from 0, not a text at line 1 column 26"
        );
        assert_eq!(
            mistake(r#"{"name": "x", "many": [-1]}"#),
            "`many[0]`: it takes a whole number from 0, not a number at line 1 column 25"
        );
        assert_eq!(
            mistake(r#"{"name": "x", "many": {}}"#),
            "`many`: it takes a list, not an object at line 1 column 22"
        );
        assert_eq!(
            mistake(r#"{"name": "x", "yes": "x"}"#),
            "`yes`: it takes true or false, not a text at line 1 column 24"
        );
        assert_eq!(mistake("[]"), "it takes an object, not a list");
        let unknown = mistake("{\"a\\u001bb\": 5}");
        assert!(unknown.contains("unknown field `a\u{fffd}b`"), "{unknown}");
    }
}
