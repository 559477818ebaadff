//! Checks that bytes are a JSON-RPC message, and makes the error that JSON-RPC defines if they are not.
//!
//! The MCP SDK parses the message again. It answers a malformed message in plain text and without the message's id, so this check
//! comes first: a client can match an error to its request only by the id.
//! Invariant: size and nesting are bounded before anything is parsed.

use serde_json::{Value, json};

/// The largest message. A program has at most 64 KiB, JSON escapes may double it, and the rest is room for other arguments.
pub const MESSAGE_BYTES: usize = 1024 * 1024;
/// The longest line on standard input. It is larger than a message, because a client waits for an answer with its own id: a
/// message with too long a program is read, and refused under its id.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;
/// The deepest nesting of a message. The arguments of every tool are less deep.
pub const NESTING: usize = 64;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// A message that JSON-RPC does not allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// The error code of JSON-RPC.
    pub code: i64,
    /// The id of the message, or null if it could not be read.
    pub id: Value,
    /// The mistake in words, for the developer of the client.
    pub text: String,
}

impl Mistake {
    /// Returns the mistake of a message that is JSON and no valid request.
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

    fn with_id(self, id: &Value) -> Self {
        Self { id: id.clone(), ..self }
    }

    /// Returns the error response, on one line.
    pub fn answer(&self) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.text}}).to_string()
    }
}

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A request or a notification.
    Call,
    /// A response. The server sends no requests, so it answers nothing.
    Answer,
}

/// Checks a message and returns its kind.
pub fn read(bytes: &[u8]) -> Result<MessageKind, Mistake> {
    // Before parsing, because the parser needs stack for each level.
    if base::depth_exceeds(bytes, NESTING) {
        return Err(Mistake::unreadable(format!("the message is nested deeper than {NESTING}")));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Mistake::unreadable(format!("the message is not UTF-8 at byte {}", error.valid_up_to())))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| Mistake::unreadable(format!("the message is not JSON: {error}")))?;
    if value.is_array() {
        return Err(Mistake::invalid("batches are not supported; send one message at a time"));
    }
    let Value::Object(members) = value else {
        return Err(Mistake::invalid("a message is an object with jsonrpc, method, id and params"));
    };
    let id = members.get("id").unwrap_or(&Value::Null);
    if !(id.is_null() || id.is_string() || id.is_i64() || id.is_u64()) {
        return Err(Mistake::invalid("`id` is a string or a whole number"));
    }
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Mistake::invalid("`jsonrpc` must be \"2.0\"").with_id(id));
    }
    if members.contains_key("result") || members.contains_key("error") {
        return Ok(MessageKind::Answer);
    }
    match members.get("method") {
        Some(Value::String(method)) => match params_mistake(method, members.get("params")) {
            Some(text) => Err(Mistake { code: INVALID_PARAMS, id: id.clone(), text: text.to_owned() }),
            None => Ok(MessageKind::Call),
        },
        _ => Err(Mistake::invalid("`method` is missing or not a string").with_id(id)),
    }
}

/// Finds a mistake in the parameters that the SDK would report as an unknown method.
fn params_mistake(method: &str, params: Option<&Value>) -> Option<&'static str> {
    if !matches!(params, None | Some(Value::Object(_))) {
        return Some("`params` is an object");
    }
    if method != "tools/call" {
        return None;
    }
    let member = |name: &str| params.and_then(|params| params.get(name));
    if !member("name").is_some_and(Value::is_string) {
        return Some("`params.name` is missing or not a string; it names the tool");
    }
    if !matches!(member("arguments"), None | Some(Value::Object(_))) {
        return Some("`params.arguments` is an object");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn each_mistake_has_its_code() {
        let code = |text: &str| read(text.as_bytes()).err().map(|mistake| mistake.code);
        for (text, expected) in [
            ("", Some(-32700)),
            ("{", Some(-32700)),
            ("nul", Some(-32700)),
            (&"[".repeat(5000), Some(-32700)),
            (r#"{"jsonrpc":"2.0","method":"x","id":1,"params":{"a":"\ud800"}}"#, Some(-32700)),
            ("[]", Some(-32600)),
            ("7", Some(-32600)),
            ("{}", Some(-32600)),
            (r#"{"jsonrpc":"1.0","method":"x","id":1}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","method":7,"id":1}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","method":"x","id":{}}"#, Some(-32600)),
            (r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":5}}"#, Some(-32602)),
            (r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"x","arguments":[]}}"#, Some(-32602)),
            (r#"{"jsonrpc":"2.0","method":"tools/call","id":1}"#, Some(-32602)),
            (r#"{"jsonrpc":"2.0","method":"x","id":1,"params":[]}"#, Some(-32602)),
            (r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"x"}}"#, None),
            (r#"{"jsonrpc":"2.0","method":"x","id":1}"#, None),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, None),
            (r#"{"jsonrpc":"2.0","result":{},"id":1}"#, None),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
        assert_eq!(read(b"\"\xff\"").err().map(|mistake| mistake.code), Some(-32700));
    }
}
