//! Replaces a correct answer by the broken one that a fault asks for.
//! Invariant: each kind of fault breaks the answer in exactly one way.

use std::convert::Infallible;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::gzip_bomb::gzip_bomb;
use super::{FaultKind, RateDecision};

/// The size in bytes of the pieces in which a huge body is sent.
const CHUNK_BYTES: u64 = 64 * 1024;

/// The pause before a connection is dropped, in which the bytes that were written are sent.
const FLUSH_TIME: Duration = Duration::from_millis(20);

/// Applies a fault of any kind except a rate limit, which `limit_rate` applies, and a late handler.
pub async fn break_answer(kind: &FaultKind, answer: Response) -> Response {
    match kind {
        FaultKind::Status(status) => refusal(*status, "fault", "this status was asked for"),
        FaultKind::RetryAfter(seconds) => retry_after(*seconds),
        FaultKind::Redirect(status, to) => redirect(*status, to),
        FaultKind::Slow(pause) => {
            tokio::time::sleep(*pause).await;
            answer
        }
        FaultKind::Drip(pause) => drip(*pause, answer).await,
        FaultKind::Truncate(missing) => truncate(*missing, answer).await,
        FaultKind::Close => close(answer).await,
        FaultKind::WrongType => wrong_type(answer).await,
        FaultKind::NotJson => with_body(answer, Body::from("<!doctype html><title>Bad gateway</title><h1>502</h1>")),
        FaultKind::Deep(levels) => with_body(answer, Body::from(deep_arrays(*levels))),
        FaultKind::Huge(bytes) => huge(*bytes, answer),
        FaultKind::GzipBomb(bytes) => gzip_bomb_answer(*bytes, answer),
        FaultKind::Rate(_) | FaultKind::Late(_) => answer,
    }
}

/// Adds the headers of the rate limit to an answer. Without an answer, because the request was not allowed, the result is a 429.
pub fn limit_rate(rate: &RateDecision, answer: Option<Response>) -> Response {
    let reset = rate.reset.as_secs_f64().ceil() as u64;
    let mut answer = answer.unwrap_or_else(|| retry_after(reset));
    // These are GitHub's headers: the short name counts seconds from now, the `x-` name seconds since 1970.
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for (name, value) in [
        ("ratelimit-limit", rate.limit),
        ("ratelimit-remaining", rate.remaining),
        ("ratelimit-reset", reset),
        ("x-ratelimit-limit", rate.limit),
        ("x-ratelimit-remaining", rate.remaining),
        ("x-ratelimit-reset", epoch + reset),
    ] {
        answer.headers_mut().insert(HeaderName::from_static(name), value.into());
    }
    answer
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"error": {"code": code, "message": message}}))).into_response()
}

fn retry_after(seconds: u64) -> Response {
    let mut answer = refusal(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests; wait and try again");
    answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    answer
}

fn redirect(status: StatusCode, to: &str) -> Response {
    let mut answer = refusal(status, "fault", "this redirect was asked for");
    if let Ok(location) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer
}

async fn drip(pause: Duration, answer: Response) -> Response {
    let (mut parts, body) = read_whole(answer).await;
    parts.headers.insert(CONTENT_LENGTH, body.len().into());
    let bytes = stream::iter(0..body.len()).then(move |at| {
        let byte = body.slice(at..=at);
        async move {
            tokio::time::sleep(pause).await;
            Ok::<_, Infallible>(byte)
        }
    });
    Response::from_parts(parts, Body::from_stream(bytes))
}

async fn truncate(missing: u64, answer: Response) -> Response {
    let (mut parts, body) = read_whole(answer).await;
    parts.headers.insert(CONTENT_LENGTH, (body.len() as u64 + missing).into());
    // The body is a stream, because hyper compares the length of any other body with the header. The stream ends after a pause, because
    // hyper drops the connection at the early end, together with bytes that were not sent yet.
    let delayed_end = stream::once(async {
        tokio::time::sleep(FLUSH_TIME).await;
        Ok::<_, Infallible>(Bytes::new())
    });
    Response::from_parts(parts, Body::from_stream(stream::iter([Ok(body)]).chain(delayed_end)))
}

/// Returns an answer whose body has an error after the first half, at which hyper drops the connection. After
/// `ConnectionHandle::end_with_reset` the connection then ends with a reset.
async fn close(answer: Response) -> Response {
    let (mut parts, body) = read_whole(answer).await;
    parts.headers.insert(CONTENT_LENGTH, body.len().into());
    let half = body.slice(..body.len() / 2);
    let broken = stream::once(async {
        tokio::time::sleep(FLUSH_TIME).await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    Response::from_parts(parts, Body::from_stream(stream::iter([Ok(half)]).chain(broken)))
}

/// Returns an answer that breaks before its first byte leaves.
pub fn no_answer() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionReset)) });
    Body::from_stream(broken).into_response()
}

async fn wrong_type(answer: Response) -> Response {
    let (parts, body) = read_whole(answer).await;
    let Ok(value) = serde_json::from_slice::<Value>(&body) else {
        return Response::from_parts(parts, Body::from(body));
    };
    Response::from_parts(parts, Body::from(numbers_as_text(value).to_string()))
}

fn numbers_as_text(value: Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Array(items) => items.into_iter().map(numbers_as_text).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, numbers_as_text(value))).collect(),
        other => other,
    }
}

fn deep_arrays(levels: u64) -> Vec<u8> {
    let levels = levels as usize;
    let mut bytes = vec![b'['; levels];
    bytes.resize(2 * levels, b']');
    bytes
}

/// Returns an answer whose body is `{"data":"aaa…"}` of exactly this many bytes, or `{"data":""}` if this needs more bytes. The body is
/// generated while it is sent.
fn huge(bytes: u64, answer: Response) -> Response {
    const OPENING: &str = "{\"data\":\"";
    const END: &str = "\"}";
    let letters = bytes.saturating_sub((OPENING.len() + END.len()) as u64);
    let block = Bytes::from(vec![b'a'; CHUNK_BYTES as usize]);
    let blocks = letters.div_ceil(CHUNK_BYTES);
    let filling =
        stream::iter(0..blocks).map(move |at| block.slice(..(letters - at * CHUNK_BYTES).min(CHUNK_BYTES) as usize));
    let text = |text: &'static str| stream::iter([Bytes::from_static(text.as_bytes())]);
    let body = text(OPENING).chain(filling).chain(text(END)).map(Ok::<_, Infallible>);
    let mut answer = with_body(answer, Body::from_stream(body));
    let length = letters + (OPENING.len() + END.len()) as u64;
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    answer
}

fn gzip_bomb_answer(bytes: u64, answer: Response) -> Response {
    let mut answer = with_body(answer, Body::from(gzip_bomb(bytes)));
    answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer
}

/// Replaces the body of an answer, and sets the media type to JSON.
fn with_body(answer: Response, body: Body) -> Response {
    let (mut parts, _) = answer.into_parts();
    remove_body_headers(&mut parts.headers);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED {
        parts.status = StatusCode::OK;
    }
    Response::from_parts(parts, body)
}

/// Removes the headers that describe the old body.
fn remove_body_headers(headers: &mut HeaderMap) {
    for name in [CONTENT_LENGTH, ETAG] {
        headers.remove(name);
    }
}

/// Reads the whole body of an answer. Reading always succeeds, because the answers of the routes are in memory.
async fn read_whole(answer: Response) -> (axum::http::response::Parts, Bytes) {
    let (mut parts, body) = answer.into_parts();
    remove_body_headers(&mut parts.headers);
    (parts, axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default())
}
