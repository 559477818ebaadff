//! The log of effects: one entry for each write that changed data.
//! Invariant: an entry is made under the lock of its change, so the log and the data always agree. A replayed or refused write has no
//! entry.

use std::sync::{Mutex, PoisonError};

use demo::WriteCall;
use serde::Serialize;

#[derive(Default)]
pub struct EffectLog(Mutex<Vec<Effect>>);

/// An effect as `/control/effects` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    method: String,
    path: String,
    /// The idempotency key or the clientMutationId of the write, if it had one.
    key: Option<String>,
    /// The number of the effect, which counts from 1.
    at: u64,
    body_sha256: String,
}

impl EffectLog {
    pub fn record(&self, call: &WriteCall, number: u64) {
        let effect = Effect {
            method: call.method.clone(),
            path: call.path.clone(),
            key: call.key.clone(),
            at: number,
            body_sha256: call.body_sha256.clone(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(effect);
    }

    pub fn all(&self) -> Vec<Effect> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
