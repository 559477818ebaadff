//! The record of calls with an idempotency key, and of their answers, which are sent again if a call is repeated.
//! Invariant: an answer is stored as it was sent, so a repeated answer has the same bytes.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::request::JSON;

/// The parts of a write by which two calls are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteCall {
    pub method: String,
    pub path: String,
    /// The idempotency key, if the call has one.
    pub key: Option<String>,
    /// The SHA-256 of the body in hexadecimal, so that the body need not be stored.
    pub body_sha256: String,
}

/// The answer to an applied write. It is stored under the idempotency key of the call, and sent again byte for byte if the call is repeated.
#[derive(Debug, Clone)]
pub struct WriteAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// The applied calls that had an idempotency key, with their answers, by the key.
#[derive(Default)]
pub struct Replays(BTreeMap<String, (WriteCall, WriteAnswer)>);

/// The result of a search for an earlier call with the same key.
pub enum Replay {
    /// No earlier call had this key, or the call has no key.
    None,
    /// The same call was applied before and got this answer.
    Answer(WriteAnswer),
    /// An earlier, different call had this key.
    OtherCall { key: String },
}

impl Replays {
    pub fn find(&self, call: &WriteCall) -> Replay {
        let Some(key) = &call.key else { return Replay::None };
        match self.0.get(key) {
            None => Replay::None,
            Some((earlier, answer)) if earlier == call => Replay::Answer(answer.clone()),
            Some(_) => Replay::OtherCall { key: key.clone() },
        }
    }

    /// Stores the answer of an applied call, if the call has a key.
    pub fn record(&mut self, call: &WriteCall, answer: &WriteAnswer) {
        if let Some(key) = &call.key {
            self.0.insert(key.clone(), (call.clone(), answer.clone()));
        }
    }
}

impl WriteAnswer {
    /// Returns an answer with a JSON body.
    pub fn json<T: Serialize>(status: StatusCode, body: &T) -> WriteAnswer {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
        WriteAnswer { status, headers, body: serde_json::to_vec(body).unwrap_or_default().into() }
    }

    /// Returns a 204 without a body.
    pub fn empty() -> WriteAnswer {
        WriteAnswer { status: StatusCode::NO_CONTENT, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub fn with_location(self, location: &str) -> WriteAnswer {
        self.with_header(LOCATION, location)
    }

    pub(crate) fn with_etag(self, tag: &str) -> WriteAnswer {
        self.with_header(ETAG, tag)
    }

    fn with_header(mut self, name: HeaderName, value: &str) -> WriteAnswer {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Returns the SHA-256 of bytes in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_nothing_is_the_published_one() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
