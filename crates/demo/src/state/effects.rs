//! What really happened: one entry per write that changed something.
//! Invariant: written under the same lock as the change itself, so the list and the data never disagree; a replayed or
//! refused write leaves no entry.

use serde::Serialize;

use super::replays::Call;

#[derive(Default)]
pub struct Effects(Vec<Effect>);

#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    pub method: String,
    pub path: String,
    /// The idempotency key or the clientMutationId.
    pub key: Option<String>,
    /// Counts from 1.
    pub at: u64,
    pub body_sha256: String,
}

impl Effects {
    /// The number of the effect that happens next.
    pub fn next(&self) -> u64 {
        self.0.len() as u64 + 1
    }

    pub fn note(&mut self, call: &Call) {
        let at = self.next();
        self.0.push(Effect {
            method: call.method.clone(),
            path: call.path.clone(),
            key: call.key.clone(),
            at,
            body_sha256: call.body_sha256.clone(),
        });
    }

    pub fn all(&self) -> &[Effect] {
        &self.0
    }
}
