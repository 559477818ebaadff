//! ETags of single tickets: with If-None-Match an unchanged ticket is not sent again, and If-Match prevents lost updates.
//! Invariant: an ETag is computed from the JSON of the ticket, so it changes exactly when the JSON changes.

use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::replays::sha256;
use crate::request::JSON;
use crate::world::Ticket;

pub fn tag(ticket: &Ticket) -> String {
    tag_of_json(&serde_json::to_vec(ticket).unwrap_or_default())
}

fn tag_of_json(json: &[u8]) -> String {
    format!("\"{}\"", &sha256(json)[..16])
}

/// Returns an answer with a ticket and its ETag, or a 304 if If-None-Match has this ETag.
pub fn answer(headers: &HeaderMap, ticket: &Ticket) -> Response {
    let json = serde_json::to_vec(ticket).unwrap_or_default();
    let tag = tag_of_json(&json);
    let mut answer = if names_tag(headers, &IF_NONE_MATCH, &tag) == Some(true) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, JSON)], json).into_response()
    };
    if let Ok(value) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(ETAG, value);
    }
    answer
}

/// Refuses a write whose If-Match does not have the ETag of the ticket.
pub fn check_if_match(headers: &HeaderMap, ticket: &Ticket) -> Result<(), ApiError> {
    match names_tag(headers, &IF_MATCH, &tag(ticket)) {
        Some(false) => Err(ApiError::TicketChanged),
        _ => Ok(()),
    }
}

/// Returns whether a header contains the ETag. Returns `None` if the request does not have the header.
fn names_tag(headers: &HeaderMap, name: &HeaderName, tag: &str) -> Option<bool> {
    let mut values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).peekable();
    values.peek()?;
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    // If-None-Match accepts weak ETags, but If-Match requires a strong one (RFC 9110, 13.1).
    let matches_weakly = |named: &str| *name == IF_NONE_MATCH && named.strip_prefix("W/") == Some(tag);
    Some(tags.any(|named| named == "*" || named == tag || matches_weakly(named)))
}
