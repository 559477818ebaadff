//! What every message to `/mcp` passes before the SDK sees it: a size, a nesting and a shape.
//! Invariant: what is not JSON-RPC is answered as JSON-RPC says, with its own code and a fitting status, and goes no further.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// A program has at most 64 KiB; JSON escapes may double it, the rest is room for arguments.
pub const BODY_BYTES: usize = 1024 * 1024;
/// Deeper arguments than any tool takes.
const NESTING: usize = 64;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// The members that tell what kind of message it is; their values are the SDK's to read.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<Value>,
    method: Option<Value>,
    id: Option<Value>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

pub async fn check(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return spoken(next.run(request).await).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_BYTES).await else {
        let message =
            format!("the message is larger than {BODY_BYTES} bytes, or broke off; a program has at most 64 KiB");
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, &Value::Null, &message);
    };
    match mistake(&bytes) {
        None => spoken(next.run(Request::from_parts(parts, Body::from(bytes))).await).await,
        Some((code, id, message)) => refuse(StatusCode::BAD_REQUEST, code, &id, &message),
    }
}

fn mistake(bytes: &[u8]) -> Option<(i64, Value, String)> {
    let parse_error = |message: String| Some((PARSE_ERROR, Value::Null, message));
    let invalid = |id: Value, message: &str| Some((INVALID_REQUEST, id, message.to_owned()));
    if base::depth_exceeds(bytes, NESTING) {
        return parse_error(format!("the message is nested deeper than {NESTING}"));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return parse_error(format!("the message is not UTF-8 at byte {}", error.valid_up_to())),
    };
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return parse_error(format!("the message is not JSON: {error}"));
    }
    if text.trim_start().starts_with('[') {
        return invalid(Value::Null, "batches are not supported; send one message per request");
    }
    let Ok(envelope) = serde_json::from_str::<Envelope>(text) else {
        return invalid(Value::Null, "a message is an object with jsonrpc, method, id and params");
    };
    let id = envelope.id.unwrap_or_default();
    if !(id.is_null() || id.is_string() || id.is_i64() || id.is_u64()) {
        return invalid(Value::Null, "`id` is a string or a whole number");
    }
    if envelope.jsonrpc != Some(Value::from("2.0")) {
        return invalid(id, "`jsonrpc` must be \"2.0\"");
    }
    let is_answer = envelope.result.is_some() || envelope.error.is_some();
    if !(is_answer || envelope.method.is_some_and(|method| method.is_string())) {
        return invalid(id, "`method` is missing or not a string");
    }
    None
}

/// The SDK refuses some requests in plain text; a client of this endpoint reads JSON-RPC.
async fn spoken(response: Response) -> Response {
    let plain =
        response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !(response.status().is_client_error() && plain) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, BODY_BYTES).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&bytes);
    let message = if message.is_empty() { parts.status.canonical_reason().unwrap_or("refused") } else { &message };
    tracing::warn!(status = parts.status.as_u16(), why = message, "refused");
    let body =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": INVALID_REQUEST, "message": message}}).to_string();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(body))
}

fn refuse(status: StatusCode, code: i64, id: &Value, message: &str) -> Response {
    tracing::warn!(code, why = message, "not a JSON-RPC message");
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::mistake;

    #[test]
    fn each_mistake_has_its_code() {
        let code = |text: &str| mistake(text.as_bytes()).map(|(code, _, _)| code);
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
        assert_eq!(mistake(b"\"\xff\"").map(|m| m.0), Some(-32700));
    }
}
