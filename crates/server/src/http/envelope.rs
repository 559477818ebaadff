//! What every message to `/mcp` passes before the SDK sees it, and how the SDK's plain refusals become JSON-RPC.
//! Invariant: what is not JSON-RPC is answered as JSON-RPC says, with its own code and a fitting status, and goes no further.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::message::{self, MESSAGE_BYTES, Mistake};

pub async fn check(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return spoken(next.run(request).await).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MESSAGE_BYTES).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, &Mistake::too_large());
    };
    match message::mistake(&bytes) {
        None => spoken(next.run(Request::from_parts(parts, Body::from(bytes))).await).await,
        Some(mistake) => refuse(StatusCode::BAD_REQUEST, &mistake),
    }
}

/// The SDK refuses some requests in plain text; a client of this endpoint reads JSON-RPC.
async fn spoken(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !(response.status().is_client_error() && plain) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, MESSAGE_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let text = if text.is_empty() { parts.status.canonical_reason().unwrap_or("refused") } else { &text };
    tracing::warn!(status = parts.status.as_u16(), why = text, "refused");
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(Mistake::invalid(text).answer()))
}

fn refuse(status: StatusCode, mistake: &Mistake) -> Response {
    tracing::warn!(code = mistake.code, why = mistake.text, "not a JSON-RPC message");
    (status, [(header::CONTENT_TYPE, "application/json")], mistake.answer()).into_response()
}
