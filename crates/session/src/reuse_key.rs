//! The keys by which logical sessions and execute sessions are found again.
//! Invariant: a key is a function of the caller, the seeds and the offered catalogs, whatever their order.

use std::collections::BTreeSet;

use base::{CatalogId, Digest, LogicalSessionId, Principal, TenantId};
use catalog::Registry;
use serde::{Deserialize, Serialize};
use teach::Seed;

use crate::service::Service;
use access::Caller;

/// Stored with the execute session that was opened under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReuseKey {
    pub tenant_scope: TenantId,
    /// The primary catalog: the first of the seeds' catalogs in the order of their ids.
    pub entry_id: CatalogId,
    pub catalog_digest: Digest,
    /// The entities of the primary catalog, sorted and without duplicates.
    pub entities: BTreeSet<String>,
    /// The principal, if callers bring their own API credentials.
    pub principal: Option<Principal>,
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

impl Service {
    pub(crate) fn reuse_key(
        &self,
        caller: &Caller,
        seeds: &[Seed],
        registry: &Registry,
        logical_session_id: Option<LogicalSessionId>,
    ) -> Option<SessionReuseKey> {
        let entry_id = seeds.iter().map(|seed| &seed.catalog).min()?.clone();
        let catalog_digest = registry.get(entry_id.as_str())?.digest();
        let entities = seeds.iter().filter(|s| s.catalog == entry_id).map(|s| s.entity.clone()).collect();
        Some(SessionReuseKey {
            tenant_scope: caller.tenant.clone(),
            entry_id,
            catalog_digest,
            entities,
            principal: self.delegated.then(|| caller.principal.clone()),
            engine_generation: lang::VERSION,
            logical_session_id,
        })
    }
}
