//! Whether some bytes are a JSON-RPC message at all, and what to answer when they are not.
//! Invariant: bounded in size and nesting before anything is parsed; the meaning of a message is the SDK's to read.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// A program has at most 64 KiB; JSON escapes may double it, the rest is room for arguments.
pub const MESSAGE_BYTES: usize = 1024 * 1024;
/// Deeper arguments than any tool takes.
const NESTING: usize = 64;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// What is wrong, as JSON-RPC counts it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    pub code: i64,
    /// The message's own id, where it could be read.
    pub id: Value,
    pub text: String,
}

impl Mistake {
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: INVALID_REQUEST, id: Value::Null, text: text.into() }
    }

    pub fn too_large() -> Self {
        Self::invalid(format!(
            "the message is larger than {MESSAGE_BYTES} bytes or broke off; a program has at most 64 KiB"
        ))
    }

    fn unreadable(text: impl Into<String>) -> Self {
        Self { code: PARSE_ERROR, id: Value::Null, text: text.into() }
    }

    fn of(self, id: &Value) -> Self {
        Self { id: id.clone(), ..self }
    }

    /// The error response, on one line.
    pub fn answer(&self) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.text}}).to_string()
    }
}

/// The members that tell what kind of message it is.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<Value>,
    method: Option<Value>,
    id: Option<Value>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

pub fn mistake(bytes: &[u8]) -> Option<Mistake> {
    if base::depth_exceeds(bytes, NESTING) {
        return Some(Mistake::unreadable(format!("the message is nested deeper than {NESTING}")));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            return Some(Mistake::unreadable(format!("the message is not UTF-8 at byte {}", error.valid_up_to())));
        }
    };
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Some(Mistake::unreadable(format!("the message is not JSON: {error}")));
    }
    if text.trim_start().starts_with('[') {
        return Some(Mistake::invalid("batches are not supported; send one message at a time"));
    }
    let Ok(envelope) = serde_json::from_str::<Envelope>(text) else {
        return Some(Mistake::invalid("a message is an object with jsonrpc, method, id and params"));
    };
    let id = envelope.id.unwrap_or_default();
    if !(id.is_null() || id.is_string() || id.is_i64() || id.is_u64()) {
        return Some(Mistake::invalid("`id` is a string or a whole number"));
    }
    if envelope.jsonrpc != Some(Value::from("2.0")) {
        return Some(Mistake::invalid("`jsonrpc` must be \"2.0\"").of(&id));
    }
    let is_answer = envelope.result.is_some() || envelope.error.is_some();
    if !(is_answer || envelope.method.is_some_and(|method| method.is_string())) {
        return Some(Mistake::invalid("`method` is missing or not a string").of(&id));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::mistake;

    #[test]
    fn each_mistake_has_its_code() {
        let code = |text: &str| mistake(text.as_bytes()).map(|m| m.code);
        for (text, expected) in [
            ("", Some(-32700)),
            ("{", Some(-32700)),
            ("nul", Some(-32700)),
            (&"[".repeat(5000), Some(-32700)),
            ("[]", Some(-32600)),
            ("7", Some(-32600)),
            ("{}", Some(-32600)),
            (r#"{"jsonrpc":"1.0","method":"x","id":1}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","method":7,"id":1}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","method":"x","id":{}}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","method":"x","id":1}"#, None),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, None),
            (r#"{"jsonrpc":"2.0","result":{},"id":1}"#, None),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
        assert_eq!(mistake(b"\"\xff\"").map(|m| m.code), Some(-32700));
    }
}
