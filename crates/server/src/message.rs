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
/// One of the codes that JSON-RPC leaves to servers.
const SERVER_BUSY: i64 = -32000;

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

    /// Returns the mistake of a body that is too large. `id` is that of the message, or null if it was not found.
    pub fn too_large(id: Value) -> Self {
        let text = format!("the message is larger than {MESSAGE_BYTES} bytes; a program has at most 64 KiB");
        Self { id, ..Self::invalid(text) }
    }

    /// Returns the mistake of a line on standard input that is too long.
    pub fn line_too_long(id: Value) -> Self {
        let text = format!("the line is longer than {LINE_BYTES} bytes; a program has at most 64 KiB");
        Self { id, ..Self::invalid(text) }
    }

    /// Returns the mistake of a request whose id another request has that is not answered yet.
    pub fn duplicate_id(id: Value) -> Self {
        let text = "a request with this id is under way on this connection; give each request an id of its own";
        Self { id, ..Self::invalid(text) }
    }

    /// Returns the refusal of a request beyond the number that may be under way on a connection.
    pub fn too_many_under_way(id: Value, most: usize) -> Self {
        let text = format!("{most} requests are under way on this connection, which is the most; wait for an answer");
        Self { code: SERVER_BUSY, id, text }
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

/// A message that JSON-RPC allows.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A request with its id, which is a string or a whole number.
    Request(Value),
    Notification,
    /// A response. The server sends no requests, so it answers nothing.
    Answer,
}

/// Checks a message and returns its kind.
pub fn read(bytes: &[u8]) -> Result<Message, Mistake> {
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
        return Ok(Message::Answer);
    }
    match members.get("method") {
        Some(Value::String(method)) => match params_mistake(method, members.get("params")) {
            Some(text) => Err(Mistake { code: INVALID_PARAMS, id: id.clone(), text: text.to_owned() }),
            None if id.is_null() => Ok(Message::Notification),
            None => Ok(Message::Request(id.clone())),
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

/// Finds the id of a message that is too large to be kept, in its pieces.
///
/// It follows strings and brackets and keeps only the members of the outermost object that may be the id, so its memory is bounded
/// however large the message is.
pub struct IdScanner {
    /// The number of open brackets.
    depth: usize,
    /// Inside of a string, and whether the byte before was a backslash.
    string: Option<bool>,
    /// The last string of the outermost object, which is a key if a colon follows.
    text: Vec<u8>,
    /// The value after the key `id`, as far as it was read.
    value: Option<Vec<u8>>,
    /// The id, once its value is complete.
    found: Option<Value>,
}

/// The longest id that is found in a message that is too large.
const SCANNED_ID_BYTES: usize = 256;

impl IdScanner {
    pub fn new() -> Self {
        Self { depth: 0, string: None, text: Vec::new(), value: None, found: None }
    }

    /// Reads the next piece of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.found.is_some() {
                return;
            }
            self.feed_byte(*byte);
        }
    }

    fn feed_byte(&mut self, byte: u8) {
        if let Some(escaped) = self.string {
            self.keep(byte);
            self.string = match byte {
                _ if escaped => Some(false),
                b'\\' => Some(true),
                b'"' => None,
                _ => Some(false),
            };
            return;
        }
        match byte {
            b'"' => {
                self.string = Some(false);
                if self.depth == 1 && self.value.is_none() {
                    self.text.clear();
                }
                self.keep(byte);
            }
            b':' if self.depth == 1 && self.value.is_none() && self.text == b"\"id\"" => {
                self.value = Some(Vec::new());
            }
            b'{' | b'[' => {
                // An id is no object and no list.
                self.value = None;
                self.depth = self.depth.saturating_add(1);
            }
            b',' | b'}' | b']' => {
                if self.depth == 1
                    && let Some(value) = self.value.take()
                {
                    self.found = serde_json::from_slice(&value).ok();
                }
                if byte != b',' {
                    self.depth = self.depth.saturating_sub(1);
                }
            }
            _ if self.value.is_some() => self.keep(byte),
            _ => {}
        }
    }

    /// Keeps a byte of the outermost object, as part of the id or of a key.
    fn keep(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        let kept = self.value.as_mut().unwrap_or(&mut self.text);
        if kept.len() <= SCANNED_ID_BYTES {
            kept.push(byte);
        }
    }

    /// Returns the id, or null if the message has none that can be answered.
    pub fn id(self) -> Value {
        self.found.filter(|id| id.is_string() || id.is_i64() || id.is_u64()).unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{IdScanner, Message, read};

    #[test]
    fn the_id_of_a_message_is_found_in_pieces_of_any_size() {
        let long = "x".repeat(400);
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":8}}"#.to_owned(), json!(7)),
            (r#"{"params":{"id":8,"a":["id"]},"method":"id","id" : "a\"b,}" }"#.to_owned(), json!("a\"b,}")),
            (r#"{"params":"\\","id":-3}"#.to_owned(), json!(-3)),
            (r#"{"i\u0064":1,"x":"id","id":2}"#.to_owned(), json!(2)),
            (r#"{"id":{"id":1}}"#.to_owned(), Value::Null),
            (r#"{"id":1.5}"#.to_owned(), Value::Null),
            (r#"[{"id":1}]"#.to_owned(), Value::Null),
            (r#"{"id":1"#.to_owned(), Value::Null),
            (format!(r#"{{"id":"{long}","x":1}}"#), Value::Null),
            (format!(r#"{{"{long}":1,"id":5}}"#), json!(5)),
            (String::new(), Value::Null),
        ];
        for (text, id) in cases {
            for size in [1, 2, 3, 7, 1000] {
                let mut scanner = IdScanner::new();
                text.as_bytes().chunks(size).for_each(|piece| scanner.feed(piece));
                assert_eq!(scanner.id(), id, "{text} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_request_has_an_id_and_a_notification_has_none() {
        assert_eq!(read(br#"{"jsonrpc":"2.0","method":"x","id":"a"}"#), Ok(Message::Request(json!("a"))));
        assert_eq!(read(br#"{"jsonrpc":"2.0","method":"x"}"#), Ok(Message::Notification));
        assert_eq!(read(br#"{"jsonrpc":"2.0","result":1,"id":"a"}"#), Ok(Message::Answer));
    }

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
