//! The last requests that arrived, so that a test can prove what was sent.
//! Invariant: no credential is kept, neither from a header nor from the query; that one was sent is.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::digest::sha256;

/// How many are kept; older ones are forgotten.
pub const KEPT: usize = 500;

const CREDENTIAL_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];
const CREDENTIAL_PARAMETERS: [&str; 3] = ["api_key", "access_token", "client_secret"];

#[derive(Default)]
pub struct Requests(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    seen: VecDeque<Seen>,
    count: u64,
}

struct Seen {
    at: u64,
    method: String,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    credentials: Vec<&'static str>,
    body_size: usize,
    /// Absent for no body: most requests have none, and each of them comes by here.
    body_sha256: Option<String>,
}

/// A request as `/control/requests` shows it.
#[derive(Serialize)]
pub struct Shown {
    /// Counts from 1 since the start or the last reset.
    at: u64,
    method: String,
    path: String,
    query: Option<String>,
    headers: Map<String, Value>,
    /// The names of the credentials that came with it; their values are not kept.
    credentials: Vec<&'static str>,
    body_size: usize,
    body_sha256: String,
}

impl Requests {
    pub fn note(&self, parts: &Parts, body: &Bytes) {
        let mut credentials = Vec::new();
        let mut headers = parts.headers.clone();
        for name in CREDENTIAL_HEADERS {
            if headers.remove(name).is_some() {
                credentials.push(name);
            }
        }
        let query = parts.uri.query().map(|query| without_credentials(query, &mut credentials));
        let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
        let (body_size, body_sha256) = (body.len(), (!body.is_empty()).then(|| sha256(body)));
        let mut kept = self.lock();
        kept.count += 1;
        let at = kept.count;
        kept.seen.push_back(Seen { at, method, path, query, headers, credentials, body_size, body_sha256 });
        if kept.seen.len() > KEPT {
            kept.seen.pop_front();
        }
    }

    /// The last `count`, the oldest first.
    pub fn last(&self, count: usize) -> Vec<Shown> {
        let kept = self.lock();
        let skipped = kept.seen.len().saturating_sub(count);
        kept.seen.iter().skip(skipped).map(shown).collect()
    }

    pub fn clear(&self) {
        *self.lock() = Kept::default();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_credentials(query: &str, credentials: &mut Vec<&'static str>) -> String {
    let parts = query.split('&').filter(|part| {
        let name = part.split('=').next().unwrap_or_default();
        let found = CREDENTIAL_PARAMETERS.iter().find(|parameter| name.eq_ignore_ascii_case(parameter));
        credentials.extend(found);
        found.is_none()
    });
    parts.collect::<Vec<_>>().join("&")
}

fn shown(seen: &Seen) -> Shown {
    let mut headers = Map::new();
    for name in seen.headers.keys() {
        let values = seen.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        headers.insert(name.to_string(), values.collect::<Vec<_>>().join(", ").into());
    }
    Shown {
        at: seen.at,
        method: seen.method.clone(),
        path: seen.path.clone(),
        query: seen.query.clone(),
        headers,
        credentials: seen.credentials.clone(),
        body_size: seen.body_size,
        body_sha256: seen.body_sha256.clone().unwrap_or_else(|| sha256(b"")),
    }
}
