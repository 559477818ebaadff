//! The keys by which logical sessions and execute sessions are found again.
//! Invariant: a key is a function of the caller, the seeds and the offered catalogs, whatever their order.

use std::collections::BTreeSet;

use base::{CatalogId, Digest, LogicalSessionId, Principal, TenantId};
use serde::{Deserialize, Serialize};

/// The facts that two opens must have in common to share an execute session. Stored with the execute session that was
/// opened under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReuseKey {
    /// The tenant, because sessions of different tenants are never shared.
    pub tenant_scope: TenantId,
    /// The primary catalog: the first of the seeds' catalogs in the order of their ids.
    pub entry_id: CatalogId,
    /// The version of the primary catalog, so that an open on a newer version gets its own symbols.
    pub catalog_digest: Digest,
    /// The entities of the primary catalog, sorted and without duplicates.
    pub entities: BTreeSet<String>,
    /// The principal, if callers bring their own API credentials.
    pub principal: Option<Principal>,
    /// The version of the language, since symbols that an older one taught may mean something else.
    pub engine_generation: u32,
    /// `None` for an open without a logical session.
    pub logical_session_id: Option<LogicalSessionId>,
}

impl SessionReuseKey {
    /// Returns the row id of a session without an intent. The prefix keeps it apart from the digests of intents.
    pub(crate) fn row_id(&self) -> String {
        format!("key/{}", Digest::of(&serde_json::to_vec(self).unwrap_or_default()))
    }
}

/// Returns the row id of an intent. An intent is free text, so its digest is used.
pub(crate) fn intent_id(intent: &str) -> String {
    Digest::of(intent.as_bytes()).to_string()
}
