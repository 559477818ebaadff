//! What sessions and symbol spaces are found by.
//! Invariant: a key is a function of the caller, the seeds and the catalogs that were offered; their order plays no part.

use std::collections::BTreeSet;

use base::{CatalogId, Digest, LogicalSessionId, Principal, TenantId};
use serde::{Deserialize, Serialize};

/// Stored with the symbol space that was opened under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReuseKey {
    pub tenant_scope: TenantId,
    /// The primary catalog: the first of the seeds' catalogs in the order of their ids.
    pub entry_id: CatalogId,
    pub catalog_digest: Digest,
    /// Of the primary catalog, sorted, each once.
    pub entities: BTreeSet<String>,
    /// Where whoever asks decides with which credentials APIs are called.
    pub principal: Option<Principal>,
    pub engine_generation: u32,
    /// None for an open without one.
    pub logical_session_id: Option<LogicalSessionId>,
}

impl SessionReuseKey {
    /// What a session without an intent is found by; no digest of an intent looks like it.
    pub(crate) fn row_id(&self) -> String {
        format!("key/{}", Digest::of(&serde_json::to_vec(self).unwrap_or_default()))
    }
}

/// An intent is free text; its row is found by its digest.
pub(crate) fn intent_id(intent: &str) -> String {
    Digest::of(intent.as_bytes()).to_string()
}
