//! What every message to `/mcp` passes before the SDK sees it, and how the SDK's plain refusals become JSON-RPC.
//! Invariant: what is not JSON-RPC is answered as JSON-RPC says, with its own code and a fitting status, and goes no further.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;

use crate::message::{self, MESSAGE_BYTES, Mistake};

/// For a whole body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How much, and for how long, the rest of a body that is too large is read before it is refused: a client that is still
/// sending does not hear an answer.
const DRAINED_BYTES: usize = 32 * 1024 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

pub async fn check(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    if method != Method::POST {
        let mut response = spoken(next.run(request).await).await;
        // The SDK accepts the end of a session; clients take only 200 and 204 for done.
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::OK;
        }
        return response;
    }
    let (parts, body) = request.into_parts();
    let bytes = match whole(body).await {
        Ok(bytes) => bytes,
        Err(Broken::TooLarge) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, &Mistake::too_large()),
        Err(Broken::Lost) => return refuse(StatusCode::BAD_REQUEST, &Mistake::invalid("the body broke off")),
        Err(Broken::Late) => {
            return refuse(StatusCode::REQUEST_TIMEOUT, &Mistake::invalid("the body did not arrive in time"));
        }
    };
    match message::read(&bytes) {
        Ok(_) => spoken(next.run(Request::from_parts(parts, Body::from(bytes))).await).await,
        Err(mistake) => refuse(StatusCode::BAD_REQUEST, &mistake),
    }
}

/// Why a body is not there.
pub enum Broken {
    TooLarge,
    Lost,
    Late,
}

/// A whole body, of the size of a message at most.
pub async fn whole(body: Body) -> Result<Vec<u8>, Broken> {
    tokio::time::timeout(BODY_TIMEOUT, collect(body)).await.unwrap_or(Err(Broken::Late))
}

async fn collect(body: Body) -> Result<Vec<u8>, Broken> {
    let mut frames = body.into_data_stream();
    let mut kept = Vec::new();
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|_| Broken::Lost)?;
        if kept.len() + frame.len() > MESSAGE_BYTES {
            // Its answer is the same whether the rest comes or not.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain(frames)).await;
            return Err(Broken::TooLarge);
        }
        kept.extend_from_slice(&frame);
    }
    Ok(kept)
}

async fn drain(mut frames: BodyDataStream) {
    let mut seen = 0;
    while let Some(Ok(frame)) = frames.next().await {
        seen += frame.len();
        if seen > DRAINED_BYTES {
            return;
        }
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
