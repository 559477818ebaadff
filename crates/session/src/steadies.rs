//! What this process remembers of opens: those that changed nothing, and the catalogs it put.
//! Invariant: each entry can be lost.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, Weak};

use base::{Digest, LogicalSessionId, Timestamp};
use catalog::Registry;

use crate::rows::{ExecuteBinding, Revision};

/// What an open that changed nothing was decided on.
#[derive(Clone)]
pub(crate) struct Steady {
    pub session: LogicalSessionId,
    pub execute: ExecuteBinding,
    /// Of the execute session's row.
    pub version: u64,
    pub revision: Revision,
    pub entities: usize,
    /// Another registry may have something newer to tell of.
    pub registry: Weak<Registry>,
}

/// By the digest of what was asked. Each entry can be lost.
#[derive(Default)]
pub(crate) struct Steadies(Mutex<HashMap<Digest, Steady>>);

/// Some 200 bytes each.
const KEPT: usize = 10_000;

impl Steadies {
    pub fn get(&self, asked: &Digest) -> Option<Steady> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(asked).cloned()
    }

    pub fn put(&self, asked: Digest, steady: Steady) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(asked, steady);
    }
}

/// When this process last put which catalogs.
#[derive(Default)]
pub(crate) struct KeptCatalogs(Mutex<HashMap<Digest, Timestamp>>);

impl KeptCatalogs {
    pub fn at(&self, digest: &Digest) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(digest).copied()
    }

    pub fn put(&self, digest: Digest, at: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, at);
    }
}
