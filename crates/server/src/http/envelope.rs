//! Checks each message to `/mcp` before the SDK sees it, and turns the SDK's refusals in plain text into JSON-RPC errors.
//! Invariant: a body that is not a JSON-RPC message is answered with the error code of JSON-RPC and does not reach the SDK.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;

use crate::message::{self, MESSAGE_BYTES, Mistake};

/// The time within which a whole body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The rest of a body that is too large is read up to this size before the refusal is sent. A client that is still
/// sending does not read the answer.
const MAX_DRAINED_BYTES: usize = 32 * 1024 * 1024;
/// The time for which the rest of a too large body is read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks one request to `/mcp`.
pub async fn check(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    if method != Method::POST {
        let mut response = refusal_as_json_rpc(next.run(request).await).await;
        // The SDK answers the end of a session with 202. Clients treat only 200 and 204 as success.
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::OK;
        }
        return response;
    }
    let (parts, body) = request.into_parts();
    let bytes = match read_body(body).await {
        Ok(bytes) => bytes,
        Err(BodyError::TooLarge) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, &Mistake::too_large()),
        Err(BodyError::Broken) => return refuse(StatusCode::BAD_REQUEST, &Mistake::invalid("the body broke off")),
        Err(BodyError::TooSlow) => {
            return refuse(StatusCode::REQUEST_TIMEOUT, &Mistake::invalid("the body did not arrive in time"));
        }
    };
    match message::read(&bytes) {
        Ok(_) => refusal_as_json_rpc(next.run(Request::from_parts(parts, Body::from(bytes))).await).await,
        Err(mistake) => refuse(StatusCode::BAD_REQUEST, &mistake),
    }
}

/// Why a body could not be read.
pub enum BodyError {
    /// The body is larger than a message may be.
    TooLarge,
    /// The connection broke before the end of the body.
    Broken,
    /// The body did not arrive in time.
    TooSlow,
}

/// Reads a whole body that is at most as large as a message.
pub async fn read_body(body: Body) -> Result<Vec<u8>, BodyError> {
    tokio::time::timeout(BODY_TIMEOUT, collect(body)).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Reads a body up to the size of a message.
async fn collect(body: Body) -> Result<Vec<u8>, BodyError> {
    let mut frames = body.into_data_stream();
    let mut collected = Vec::new();
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|_| BodyError::Broken)?;
        if collected.len() + frame.len() > MESSAGE_BYTES {
            // The refusal is the same whether the rest arrives or not, so a timeout is ignored.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain(frames)).await;
            return Err(BodyError::TooLarge);
        }
        collected.extend_from_slice(&frame);
    }
    Ok(collected)
}

/// Reads and drops the rest of a body.
async fn drain(mut frames: BodyDataStream) {
    let mut drained = 0;
    while let Some(Ok(frame)) = frames.next().await {
        drained += frame.len();
        if drained > MAX_DRAINED_BYTES {
            return;
        }
    }
}

/// Turns a refusal of the SDK in plain text into a JSON-RPC error, which clients of this endpoint expect.
async fn refusal_as_json_rpc(response: Response) -> Response {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let is_plain_text = content_type.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"));
    if !(response.status().is_client_error() && is_plain_text) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, MESSAGE_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let text = if text.is_empty() { parts.status.canonical_reason().unwrap_or("refused") } else { &text };
    tracing::warn!(status = parts.status.as_u16(), reason = text, "refused");
    // The new body has another length.
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(Mistake::invalid(text).answer()))
}

fn refuse(status: StatusCode, mistake: &Mistake) -> Response {
    tracing::warn!(code = mistake.code, reason = mistake.text, "not a JSON-RPC message");
    (status, [(header::CONTENT_TYPE, "application/json")], mistake.answer()).into_response()
}
