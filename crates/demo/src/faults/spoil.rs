//! Turns a sound answer into the broken one that was asked for.
//! Invariant: the answer is broken on the wire in exactly the way its kind says, and in no other.

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

use super::bomb::gzip;
use super::{Kind, Turn};

const CHUNK: u64 = 64 * 1024;

/// Long enough for what was written so far to leave before the connection goes.
const FLUSH: Duration = Duration::from_millis(20);

pub async fn spoil(kind: &Kind, answer: Response) -> Response {
    match kind {
        Kind::Status(status) => refusal(*status, "fault", "this status was asked for"),
        Kind::RetryAfter(seconds) => wait(*seconds),
        Kind::Redirect(status, to) => redirect(*status, to),
        Kind::Slow(pause) => {
            tokio::time::sleep(*pause).await;
            answer
        }
        Kind::Drip(pause) => drip(*pause, answer).await,
        Kind::Truncate(missing) => truncate(*missing, answer).await,
        Kind::Close => close(answer).await,
        Kind::WrongType => wrong_type(answer).await,
        Kind::NotJson => instead(answer, Body::from("<!doctype html><title>Bad gateway</title><h1>502</h1>")),
        Kind::Deep(levels) => instead(answer, Body::from(deep(*levels))),
        Kind::Huge(bytes) => huge(*bytes, answer),
        Kind::GzipBomb(bytes) => bomb(*bytes, answer),
        // The limit itself is kept by the board; see `limited`.
        Kind::Rate(_) => answer,
    }
}

/// Puts the limit's headers on an answer, which is a 429 if the request had no turn.
pub fn limited(turn: &Turn, answer: Option<Response>) -> Response {
    let reset = turn.reset.as_secs_f64().ceil() as u64;
    let mut answer = answer.unwrap_or_else(|| wait(reset));
    // As GitHub has it: the short name in seconds from here, the `x-` name in seconds since 1970.
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for (name, value) in [
        ("ratelimit-limit", turn.limit),
        ("ratelimit-remaining", turn.remaining),
        ("ratelimit-reset", reset),
        ("x-ratelimit-limit", turn.limit),
        ("x-ratelimit-remaining", turn.remaining),
        ("x-ratelimit-reset", epoch + reset),
    ] {
        answer.headers_mut().insert(HeaderName::from_static(name), value.into());
    }
    answer
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"error": {"code": code, "message": message}}))).into_response()
}

fn wait(seconds: u64) -> Response {
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
    let (mut parts, body) = whole(answer).await;
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
    let (mut parts, body) = whole(answer).await;
    parts.headers.insert(CONTENT_LENGTH, (body.len() as u64 + missing).into());
    // As a stream, because a body that knows its length would be checked against the header; and with a pause, because
    // the connection is dropped on the early end, unsent bytes and all.
    let late = stream::once(async {
        tokio::time::sleep(FLUSH).await;
        Ok::<_, Infallible>(Bytes::new())
    });
    Response::from_parts(parts, Body::from_stream(stream::iter([Ok(body)]).chain(late)))
}

/// Half of the body and then an error, on which the connection is dropped; `Line::cut` makes that a reset.
async fn close(answer: Response) -> Response {
    let (mut parts, body) = whole(answer).await;
    parts.headers.insert(CONTENT_LENGTH, body.len().into());
    let half = body.slice(..body.len() / 2);
    let broken = stream::once(async {
        tokio::time::sleep(FLUSH).await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    Response::from_parts(parts, Body::from_stream(stream::iter([Ok(half)]).chain(broken)))
}

/// An answer that breaks before its first byte leaves.
pub fn silence() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionReset)) });
    Body::from_stream(broken).into_response()
}

async fn wrong_type(answer: Response) -> Response {
    let (parts, body) = whole(answer).await;
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

fn deep(levels: u64) -> Vec<u8> {
    let levels = levels as usize;
    let mut bytes = vec![b'['; levels];
    bytes.resize(2 * levels, b']');
    bytes
}

/// `{"data":"aaa…"}` of exactly this many bytes (and no fewer than the frame), made as it is read.
fn huge(bytes: u64, answer: Response) -> Response {
    const OPENING: &str = "{\"data\":\"";
    const END: &str = "\"}";
    let letters = bytes.saturating_sub((OPENING.len() + END.len()) as u64);
    let block = Bytes::from(vec![b'a'; CHUNK as usize]);
    let blocks = letters.div_ceil(CHUNK);
    let filling = stream::iter(0..blocks).map(move |at| block.slice(..(letters - at * CHUNK).min(CHUNK) as usize));
    let text = |text: &'static str| stream::iter([Bytes::from_static(text.as_bytes())]);
    let body = text(OPENING).chain(filling).chain(text(END)).map(Ok::<_, Infallible>);
    let mut answer = instead(answer, Body::from_stream(body));
    let length = letters + (OPENING.len() + END.len()) as u64;
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    answer
}

fn bomb(bytes: u64, answer: Response) -> Response {
    let mut answer = instead(answer, Body::from(gzip(bytes)));
    answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer
}

/// The answer's head with another body that claims to be JSON.
fn instead(answer: Response, body: Body) -> Response {
    let (mut parts, _) = answer.into_parts();
    forget_body(&mut parts.headers);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED {
        parts.status = StatusCode::OK;
    }
    Response::from_parts(parts, body)
}

/// What is said about a body that will not be the one sent.
fn forget_body(headers: &mut HeaderMap) {
    for name in [CONTENT_LENGTH, ETAG] {
        headers.remove(name);
    }
}

/// The answers here are made in memory and cannot fail to be read.
async fn whole(answer: Response) -> (axum::http::response::Parts, Bytes) {
    let (mut parts, body) = answer.into_parts();
    forget_body(&mut parts.headers);
    (parts, axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default())
}
