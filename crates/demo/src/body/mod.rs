//! Reads the body of a request: JSON, a form, or multipart.
//! Invariant: a body that cannot be read is refused in JSON with what was expected (415 for its type, 400 for its text),
//! before anything is looked up or changed.

pub mod fields;
mod form;
mod multipart;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

pub use form::pairs;
pub use multipart::{Part, parts};

pub const JSON: &str = "application/json";
pub const FORM: &str = "application/x-www-form-urlencoded";
pub const MULTIPART: &str = "multipart/form-data";

/// A JSON body of a known shape.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let headers = request.headers().clone();
        let body = bytes(request, state).await?;
        json(&headers, &body).map(JsonBody)
    }
}

pub fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, ApiError> {
    if content_type(headers) != JSON {
        return Err(ApiError::WrongBodyType { expected: JSON });
    }
    serde_json::from_slice(body).map_err(|error| ApiError::BadBody { reason: error.to_string() })
}

pub async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let unreadable = |error: axum::extract::rejection::BytesRejection| ApiError::BadBody { reason: error.body_text() };
    Bytes::from_request(request, state).await.map_err(unreadable)
}

/// The media type alone, in lower case.
pub fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A parameter of the Content-Type, such as `boundary`.
fn parameter(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    attribute(value, name)
}

/// `name` out of `kind; name=value; other="quoted value"`.
fn attribute(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(';').map_or((after.trim_end(), ""), |(value, left)| (value.trim_end(), left)),
        };
        if key.trim_matches([';', ' ', '\t']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_may_be_quoted() {
        let header = "form-data; name=\"a;b\"; filename=\"c=d.txt\"; x = y ";
        assert_eq!(attribute(header, "name").as_deref(), Some("a;b"));
        assert_eq!(attribute(header, "filename").as_deref(), Some("c=d.txt"));
        assert_eq!(attribute(header, "X").as_deref(), Some("y"));
        assert_eq!(attribute(header, "nope"), None);
        assert_eq!(attribute("form-data", "name"), None);
    }
}
