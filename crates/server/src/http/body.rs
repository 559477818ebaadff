//! Reads the query and the body of a request. A body is bounded in size, time and nesting before it is parsed.
//! Invariant: a refusal names the mistake and its place. Nothing larger than a message is kept in memory.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use super::envelope::{self, BodyError};
use super::problem::Problem;
use crate::arguments;
use crate::message::{MESSAGE_BYTES, NESTING};

/// The query of a request, as one type.
pub struct QueryOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejection) => Err(Problem::bad_arguments(arguments::bad_query(&rejection.body_text()).to_string())),
        }
    }
}

/// Checks the `limit` of a query for a list.
pub fn list_limit(limit: Option<usize>, default: usize, max: usize) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(default);
    if !(1..=max).contains(&limit) {
        return Err(Problem::bad_arguments(format!("`limit` is from 1 to {max}")));
    }
    Ok(limit)
}

/// A JSON body, as one type.
pub struct JsonBody<T>(pub T);

/// A body that is not parsed yet.
pub struct RawBody {
    /// The kind that the Content-Type names.
    pub kind: BodyKind,
    pub bytes: Vec<u8>,
}

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// JSON, or a type whose name ends in `+json`.
    Json,
    /// Text, or the form type that `curl -d` sends by default.
    Text,
    Other,
}

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let kind = body_kind(request.headers());
        let timeout = envelope::body_timeout(&request);
        let bytes = envelope::read_body(request.into_body(), timeout).await.map_err(|error| match error {
            BodyError::TooLarge(_) => {
                let detail = format!("the body is larger than {MESSAGE_BYTES} bytes; a program has at most 64 KiB");
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
            }
            BodyError::Broken => Problem::bad_arguments("the body broke off"),
            BodyError::TooSlow => {
                Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time")
            }
        })?;
        Ok(Self { kind, bytes })
    }
}

impl RawBody {
    /// Parses the body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if base::depth_exceeds(&self.bytes, NESTING) {
            return Err(Problem::bad_arguments(format!("the body is nested deeper than {NESTING}")));
        }
        arguments::from_json(&self.bytes).map_err(|mistake| Problem::bad_arguments(mistake.to_string()))
    }

    /// Returns the body as text.
    pub fn text(self) -> Result<String, Problem> {
        String::from_utf8(self.bytes).map_err(|error| {
            Problem::bad_arguments(format!("the body is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let raw = RawBody::from_request(request, state).await?;
        if raw.kind != BodyKind::Json {
            return Err(unsupported_content_type("application/json"));
        }
        raw.json().map(Self)
    }
}

/// Returns the problem of a body with a Content-Type that the route does not take.
pub fn unsupported_content_type(expected: &str) -> Problem {
    let detail = format!("the body's Content-Type must be {expected}");
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_content_type", detail)
}

/// Returns the kind of a body by its Content-Type. A body without one is text.
fn body_kind(headers: &HeaderMap) -> BodyKind {
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else { return BodyKind::Text };
    let content_type = content_type.to_str().unwrap_or_default().to_ascii_lowercase();
    match content_type.split(';').next().unwrap_or_default().trim() {
        json if json == "application/json" || json.ends_with("+json") => BodyKind::Json,
        text if text.starts_with("text/") || text == "application/x-www-form-urlencoded" => BodyKind::Text,
        _ => BodyKind::Other,
    }
}
