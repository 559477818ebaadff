//! What makes two opens the same symbol space.
//! Invariant: the key is a function of the caller, the seeds and the catalogs that were offered; their order plays no part.

use std::collections::BTreeSet;

use base::{CatalogId, Digest, LogicalSessionId, Principal, TenantId};
use catalog::Registry;
use serde::{Deserialize, Serialize};
use teach::Seed;

use crate::caller::Caller;
use crate::rows;
use crate::service::Service;

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
        format!("key/{}", Digest::of(&rows::write(self)))
    }
}

impl Service {
    pub(super) fn reuse_key(
        &self,
        caller: &Caller,
        (seeds, registry): (&[Seed], &Registry),
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
