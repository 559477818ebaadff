//! Answers that are given again: an idempotency key, the call it came with, and what was answered.
//! Invariant: only a call that had its effect is remembered, so a refused one may be corrected and sent again.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};

/// One attempt to change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub key: Option<String>,
    pub body_sha256: String,
}

/// An answer, kept as it was sent.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Default)]
pub struct Replays(BTreeMap<String, (Call, Recorded)>);

pub enum Earlier<'r> {
    None,
    /// The same call: this was its answer.
    Same(&'r Recorded),
    /// Another call came with this key.
    Other,
}

impl Replays {
    pub fn earlier(&self, call: &Call) -> Earlier<'_> {
        match call.key.as_ref().and_then(|key| self.0.get(key)) {
            None => Earlier::None,
            Some((same, recorded)) if same == call => Earlier::Same(recorded),
            Some(_) => Earlier::Other,
        }
    }

    pub fn remember(&mut self, call: &Call, recorded: &Recorded) {
        if let Some(key) = &call.key {
            self.0.insert(key.clone(), (call.clone(), recorded.clone()));
        }
    }
}
