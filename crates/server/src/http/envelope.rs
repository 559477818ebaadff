//! Checks each message to `/mcp` before the SDK sees it, and turns the SDK's refusals in plain text into JSON-RPC errors.
//! Invariant: a body that is not a JSON-RPC message is answered with the error code of JSON-RPC and does not reach the SDK.

use std::sync::Arc;
use std::time::Duration;

use access::Identity;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::ConnectionLimits;
use futures::StreamExt;
use serde_json::Value;

use super::connections::Connection;
use super::open_calls::held_until_answered;
use crate::mcp::TRANSPORT_SESSION_HEADER;
use crate::message::{self, IdScanner, MESSAGE_BYTES, Message, Mistake};
use crate::under_way::{NotBegun, UnderWay};

/// The header with the protocol revision of a request.
const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision without transport sessions. Revisions are dates, which sort like their texts.
const FIRST_WITHOUT_TRANSPORT_SESSIONS: &str = "2026-07-28";
/// The rest of a body that is too large is read up to this size before the refusal is sent. A client that is still
/// sending does not read the answer.
const MAX_DRAINED_BYTES: usize = 32 * 1024 * 1024;
/// The time for which the rest of a too large body is read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks one request to `/mcp`.
pub async fn check(State(under_way): State<UnderWay>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    if method != Method::POST {
        let mut response = refusal_as_json_rpc(next.run(request).await).await;
        // The SDK answers the end of a session with 202. Clients treat only 200 and 204 as success.
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::OK;
        }
        return response;
    }
    let timeout = body_timeout(&request);
    let (parts, body) = request.into_parts();
    let bytes = match read_body(body, timeout).await {
        Ok(bytes) => bytes,
        Err(BodyError::TooLarge(id)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, &Mistake::too_large(id)),
        Err(BodyError::Broken) => return refuse(StatusCode::BAD_REQUEST, &Mistake::invalid("the body broke off")),
        Err(BodyError::TooSlow) => {
            return refuse(StatusCode::REQUEST_TIMEOUT, &Mistake::invalid("the body did not arrive in time"));
        }
    };
    let message = match message::read(&bytes) {
        Ok(message) => message,
        Err(mistake) => return refuse(StatusCode::BAD_REQUEST, &mistake),
    };
    let begun = match (&message, transport_of(&parts)) {
        (Message::Request(id), Some(transport)) => match under_way.begin(&transport, id) {
            Ok(begun) => Some(begun),
            Err(NotBegun::Duplicate) => return refuse(StatusCode::BAD_REQUEST, &Mistake::duplicate_id(id.clone())),
            Err(NotBegun::TooMany(most)) => {
                return refuse(StatusCode::TOO_MANY_REQUESTS, &Mistake::too_many_under_way(id.clone(), most));
            }
        },
        _ => None,
    };
    let response = refusal_as_json_rpc(next.run(Request::from_parts(parts, Body::from(bytes))).await).await;
    held_until_answered(response, begun)
}

/// Returns the name of the transport session of a request. `None` for a revision without transport sessions, in which each request
/// stands alone.
fn transport_of(parts: &Parts) -> Option<String> {
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if text(PROTOCOL_VERSION_HEADER).is_some_and(|version| version >= FIRST_WITHOUT_TRANSPORT_SESSIONS) {
        return None;
    }
    // The tenant is part of the name, because the id comes from the client.
    let tenant = parts.extensions.get::<Identity>().map(|identity| identity.tenant.to_string()).unwrap_or_default();
    text(TRANSPORT_SESSION_HEADER).map(|id| format!("{tenant}/{id}"))
}

/// Returns the time within which the body of a request must arrive.
pub fn body_timeout(request: &Request) -> Duration {
    let connection = request.extensions().get::<Arc<Connection>>();
    let default = || Duration::from_secs(ConnectionLimits::default().body_seconds);
    connection.map_or_else(default, |connection| connection.body_timeout())
}

/// Why a body could not be read.
pub enum BodyError {
    /// The body is larger than a message may be. It may be a message with this id.
    TooLarge(Value),
    /// The connection broke before the end of the body.
    Broken,
    /// The body did not arrive in time.
    TooSlow,
}

/// Reads a whole body that is at most as large as a message.
pub async fn read_body(body: Body, timeout: Duration) -> Result<Vec<u8>, BodyError> {
    tokio::time::timeout(timeout, collect(body)).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Reads a body up to the size of a message.
async fn collect(body: Body) -> Result<Vec<u8>, BodyError> {
    let mut frames = body.into_data_stream();
    let mut collected = Vec::new();
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|_| BodyError::Broken)?;
        if collected.len() + frame.len() > MESSAGE_BYTES {
            let mut scanner = IdScanner::new();
            scanner.feed(&collected);
            scanner.feed(&frame);
            drop(collected);
            // The message is refused whether the rest arrives or not, so a timeout is ignored. The id may be in the rest.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain(frames, &mut scanner)).await;
            return Err(BodyError::TooLarge(scanner.id()));
        }
        collected.extend_from_slice(&frame);
    }
    Ok(collected)
}

/// Reads and drops the rest of a body, in which the id of the message may be.
async fn drain(mut frames: BodyDataStream, scanner: &mut IdScanner) {
    let mut drained = 0;
    while let Some(Ok(frame)) = frames.next().await {
        scanner.feed(&frame);
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
