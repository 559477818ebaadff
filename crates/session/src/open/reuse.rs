//! What makes two opens the same symbol space.
//! Invariant: the key is a function of the caller, the seeds and the catalogs that were offered; their order plays no part.

use base::LogicalSessionId;
use catalog::Registry;
use teach::Seed;

use crate::reuse::SessionReuseKey;
use crate::service::Service;
use access::Caller;

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
