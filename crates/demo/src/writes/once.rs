//! Does a write once: `Idempotency-Key` makes the second of two equal calls a replay of the first one's answer.
//! Invariants: looking for an earlier answer, the effect, its count and its record happen under one lock; a key that comes
//! with another method, path or body is refused; an answer is replayed byte for byte, marked by `Idempotency-Replayed`.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;

use crate::body;
use crate::digest::sha256;
use crate::error::{Answer, ApiError};
use crate::state::replays::{Call, Earlier, Recorded};
use crate::state::{App, Data};

const KEY: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const LONGEST_KEY: usize = 255;

/// A write as it arrived.
pub struct Write {
    call: Call,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What a write did, as its client will read it.
pub struct Done(Recorded);

impl<S: Send + Sync> FromRequest<S> for Write {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let headers = request.headers().clone();
        let key = key(&headers)?;
        let body = body::bytes(request, state).await?;
        Ok(Write { call: Call { method, path, key, body_sha256: sha256(&body) }, headers, body })
    }
}

impl Write {
    pub fn once(&self, app: &App, effect: impl FnOnce(&mut Data) -> Result<Done, ApiError>) -> Answer {
        let mut data = app.write();
        match data.replays.earlier(&self.call) {
            Earlier::Same(recorded) => {
                let mut answer = response(recorded.clone());
                answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                return Ok(answer);
            }
            Earlier::Other => return Err(ApiError::KeyReused { key: self.call.key.clone().unwrap_or_default() }),
            Earlier::None => {}
        }
        let Done(recorded) = effect(&mut data)?;
        data.effects.note(&self.call);
        data.replays.remember(&self.call, &recorded);
        Ok(response(recorded))
    }
}

impl Done {
    pub fn new<T: Serialize>(status: StatusCode, body: &T) -> Done {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(body::JSON))]);
        Done(Recorded { status, headers, body: serde_json::to_vec(body).unwrap_or_default().into() })
    }

    pub fn empty() -> Done {
        Done(Recorded { status: StatusCode::NO_CONTENT, headers: HeaderMap::new(), body: Bytes::new() })
    }

    pub fn at(self, location: &str) -> Done {
        self.with(LOCATION, location)
    }

    pub fn tagged(self, tag: &str) -> Done {
        self.with(ETAG, tag)
    }

    fn with(mut self, name: HeaderName, value: &str) -> Done {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers.insert(name, value);
        }
        self
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=LONGEST_KEY).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::BadKey),
    }
}

fn response(recorded: Recorded) -> Response {
    let mut answer = Response::new(Body::from(recorded.body));
    *answer.status_mut() = recorded.status;
    *answer.headers_mut() = recorded.headers;
    answer
}
