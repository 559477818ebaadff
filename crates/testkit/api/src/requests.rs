//! The log of the last requests, from which a test reads what a client sent.
//! Invariant: for a credential in a header or in the query, only its name is stored and never its value.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use demo::sha256;
use serde::Serialize;
use serde_json::{Map, Value};

/// The largest number of requests that are stored. Older requests are dropped.
pub const MAX_RECORDED: usize = 500;

const CREDENTIAL_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];
const CREDENTIAL_PARAMETERS: [&str; 3] = ["api_key", "access_token", "client_secret"];

#[derive(Default)]
pub struct RequestLog(Mutex<LogState>);

#[derive(Default)]
struct LogState {
    /// The last requests, the oldest first.
    recorded: VecDeque<RecordedRequest>,
    /// The number of all requests since the start or the last reset.
    count: u64,
}

struct RecordedRequest {
    number: u64,
    method: String,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    credentials: Vec<&'static str>,
    body_size: usize,
    /// The digest of the body. `None` for an empty body, because each request is recorded and most have no body.
    body_sha256: Option<String>,
}

/// A request as `/control/requests` shows it.
#[derive(Serialize)]
pub struct RequestView {
    /// The number of the request, which counts from 1 since the start or the last reset.
    at: u64,
    method: String,
    path: String,
    query: Option<String>,
    headers: Map<String, Value>,
    /// The names of the credentials that the request had.
    credentials: Vec<&'static str>,
    body_size: usize,
    body_sha256: String,
}

impl RequestLog {
    pub fn record(&self, parts: &Parts, body: &Bytes) {
        let mut credentials = Vec::new();
        let mut headers = parts.headers.clone();
        for name in CREDENTIAL_HEADERS {
            if headers.remove(name).is_some() {
                credentials.push(name);
            }
        }
        let query = parts.uri.query().map(|query| remove_credentials(query, &mut credentials));
        let body_sha256 = (!body.is_empty()).then(|| sha256(body));
        let mut state = self.lock();
        state.count += 1;
        let number = state.count;
        state.recorded.push_back(RecordedRequest {
            number,
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query,
            headers,
            credentials,
            body_size: body.len(),
            body_sha256,
        });
        if state.recorded.len() > MAX_RECORDED {
            state.recorded.pop_front();
        }
    }

    /// Returns the last `count` requests, the oldest first.
    pub fn last(&self, count: usize) -> Vec<RequestView> {
        let state = self.lock();
        let skipped = state.recorded.len().saturating_sub(count);
        state.recorded.iter().skip(skipped).map(view).collect()
    }

    pub fn clear(&self) {
        *self.lock() = LogState::default();
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the query without its credentials, and adds the names of these credentials to `credentials`.
fn remove_credentials(query: &str, credentials: &mut Vec<&'static str>) -> String {
    let kept = query.split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        let credential = CREDENTIAL_PARAMETERS.iter().find(|parameter| name.eq_ignore_ascii_case(parameter));
        credentials.extend(credential);
        credential.is_none()
    });
    kept.collect::<Vec<_>>().join("&")
}

fn view(request: &RecordedRequest) -> RequestView {
    let mut headers = Map::new();
    for name in request.headers.keys() {
        let values = request.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        headers.insert(name.to_string(), values.collect::<Vec<_>>().join(", ").into());
    }
    RequestView {
        at: request.number,
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        headers,
        credentials: request.credentials.clone(),
        body_size: request.body_size,
        body_sha256: request.body_sha256.clone().unwrap_or_else(|| sha256(b"")),
    }
}
