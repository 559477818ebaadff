//! ETags of single tickets: If-None-Match saves the body, If-Match guards a write.
//! Invariant: the tag is that of the content, so it changes exactly when the JSON does.

use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::body;
use crate::digest::sha256;
use crate::error::ApiError;
use crate::world::Ticket;

pub fn of(ticket: &Ticket) -> String {
    of_json(&serde_json::to_vec(ticket).unwrap_or_default())
}

fn of_json(json: &[u8]) -> String {
    format!("\"{}\"", &sha256(json)[..16])
}

/// A ticket with its tag, or 304 if the client has it already.
pub fn answer(headers: &HeaderMap, ticket: &Ticket) -> Response {
    let json = serde_json::to_vec(ticket).unwrap_or_default();
    let tag = of_json(&json);
    let mut answer = if names(headers, &IF_NONE_MATCH, &tag) == Some(true) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, body::JSON)], json).into_response()
    };
    if let Ok(value) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(ETAG, value);
    }
    answer
}

/// A write that says what it saw happens only if it is still so.
pub fn guard(headers: &HeaderMap, ticket: &Ticket) -> Result<(), ApiError> {
    match names(headers, &IF_MATCH, &of(ticket)) {
        Some(false) => Err(ApiError::Stale),
        _ => Ok(()),
    }
}

/// `None` without the header. A weak tag says that content is known, but guards nothing (RFC 9110, 13.1).
fn names(headers: &HeaderMap, name: &HeaderName, tag: &str) -> Option<bool> {
    let mut values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).peekable();
    values.peek()?;
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    let known = |one: &str| *name == IF_NONE_MATCH && one.strip_prefix("W/") == Some(tag);
    Some(tags.any(|one| one == "*" || one == tag || known(one)))
}
