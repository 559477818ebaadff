//! What a request says: its query, and its body, which is bounded in size, time and nesting before anything is parsed.
//! Invariant: what cannot be read is refused with what is wrong and where; nothing larger than a message is kept.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use super::envelope::{self, Broken};
use super::problem::Problem;
use crate::arguments;
use crate::message::{MESSAGE_BYTES, NESTING};

/// A query of one type.
pub struct Queried<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Queried<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(found)) => Ok(Self(found)),
            Err(bad) => Err(Problem::bad_arguments(arguments::wrong_query(&bad.body_text()).to_string())),
        }
    }
}

/// How many a list may have: what the query says, or what is usual.
pub fn limit(given: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    let limit = given.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        return Err(Problem::bad_arguments(format!("`limit` is from 1 to {most}")));
    }
    Ok(limit)
}

/// A JSON body of one type.
pub struct Given<T>(pub T);

/// A body as it came, with what it says it is.
pub struct Raw {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Json,
    /// Also what `curl -d` says without being told otherwise.
    Text,
    Other,
}

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let kind = kind(request.headers());
        let bytes = envelope::whole(request.into_body()).await.map_err(|broken| match broken {
            Broken::TooLarge => {
                let detail = format!("the body is larger than {MESSAGE_BYTES} bytes; a program has at most 64 KiB");
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
            }
            Broken::Lost => Problem::bad_arguments("the body broke off"),
            Broken::Late => Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time"),
        })?;
        Ok(Self { kind, bytes })
    }
}

impl Raw {
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if base::depth_exceeds(&self.bytes, NESTING) {
            return Err(Problem::bad_arguments(format!("the body is nested deeper than {NESTING}")));
        }
        arguments::from_json(&self.bytes).map_err(|wrong| Problem::bad_arguments(wrong.to_string()))
    }

    pub fn text(self) -> Result<String, Problem> {
        String::from_utf8(self.bytes).map_err(|error| {
            Problem::bad_arguments(format!("the body is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Given<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let raw = Raw::from_request(request, state).await?;
        if raw.kind != Kind::Json {
            return Err(unsupported("application/json"));
        }
        raw.json().map(Self)
    }
}

pub fn unsupported(taken: &str) -> Problem {
    let detail = format!("the body's Content-Type must be {taken}");
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_content_type", detail)
}

fn kind(headers: &HeaderMap) -> Kind {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Kind::Text };
    let given = given.to_str().unwrap_or_default().to_ascii_lowercase();
    match given.split(';').next().unwrap_or_default().trim() {
        json if json == "application/json" || json.ends_with("+json") => Kind::Json,
        text if text.starts_with("text/") || text == "application/x-www-form-urlencoded" => Kind::Text,
        _ => Kind::Other,
    }
}
