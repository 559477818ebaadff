//! Applies a write once: if two equal calls have the same `Idempotency-Key`, the second gets the answer of the first.
//! Invariants: the search for an earlier answer, the change, its count and its record happen under one lock, so two concurrent calls
//! with one key are one effect. A key that was used with another method, path or body is refused. A refused call changes no data, is not
//! counted, and does not use its key.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{ApiError, HandlerResult};
use crate::replays::{Replay, WriteAnswer, WriteCall, sha256};
use crate::request::read_body;
use crate::tracker::{Tracker, TrackerData};

const KEY_HEADER: &str = "idempotency-key";
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");
const MAX_KEY_LENGTH: usize = 255;

/// A request for a write, with its whole body.
pub struct WriteRequest {
    pub call: WriteCall,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for WriteRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let method = request.method().to_string();
        let path = request.uri().path().to_owned();
        let headers = request.headers().clone();
        let key = idempotency_key(&headers)?;
        let body = read_body(request, state).await?;
        Ok(WriteRequest { call: WriteCall { method, path, key, body_sha256: sha256(&body) }, headers, body })
    }
}

impl WriteRequest {
    /// Calls `change` under the lock of the tracker. If this call was applied before, the earlier answer is returned instead. If `change`
    /// fails, it must not have changed data.
    pub fn apply_once(
        &self,
        tracker: &Tracker,
        change: impl FnOnce(&mut TrackerData) -> Result<WriteAnswer, ApiError>,
    ) -> HandlerResult {
        let mut data = tracker.write();
        match data.replays.find(&self.call) {
            Replay::None => {}
            Replay::OtherCall { key } => return Err(ApiError::KeyReused { key }),
            Replay::Answer(answer) => {
                let mut replayed = answer.into_response();
                replayed.headers_mut().insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
                return Ok(replayed);
            }
        }
        let answer = change(&mut data)?;
        tracker.count_effect(&mut data, &self.call);
        data.replays.record(&self.call, &answer);
        Ok(answer.into_response())
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(KEY_HEADER) else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=MAX_KEY_LENGTH).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::BadKey),
    }
}
