//! `discover_capabilities`: which entities of which APIs an intent is about.
//! Invariant: what a caller may not use is not found; nothing is stored, and no session is needed.

mod registry;

use std::sync::Arc;

use base::{CatalogId, Limits};
use catalog::{Capability, Catalog, Registry};
use teach::SeedError;
use teach::discovery::{Allowed, DEFAULT_LIMIT, DiscoveryResult, Index, MAX_LIMIT, Query};

use crate::error::Error;
use crate::open::unknown_api;
use crate::service::Service;
use access::Caller;

pub use registry::{Access, Listed};

#[derive(Debug, Clone, Default)]
pub struct DiscoverRequest {
    pub intent: String,
    /// As written: ids or aliases; all APIs when empty.
    pub apis: Vec<String>,
    /// Rows; a few when left out, and never more than can be read at once.
    pub limit: Option<usize>,
}

#[derive(Debug)]
pub struct Discovered {
    pub found: DiscoveryResult,
    /// What was looked through, for whoever found nothing.
    pub apis: Vec<Arc<Catalog>>,
}

impl Service {
    pub fn discover(&self, caller: &Caller, request: &DiscoverRequest) -> Result<Discovered, Error> {
        let index = self.indexed.of(&self.registry());
        let permit =
            |catalog: &Catalog, capability: &Capability| self.tenants.permits(&caller.tenant, catalog, capability);
        discover(&self.registry_for(&caller.tenant), &index, (&self.limits, &permit), request)
    }
}

/// What [`Service::discover`] does, for whoever has no service: `seen` is what the caller sees of what was indexed.
pub fn discover(
    seen: &Registry,
    index: &Index,
    (limits, allowed): (&Limits, Allowed<'_>),
    request: &DiscoverRequest,
) -> Result<Discovered, Error> {
    if request.intent.trim().is_empty() {
        return Err(Error::NoIntent);
    }
    if request.intent.len() > limits.intent_bytes {
        return Err(Error::IntentTooLong { max: limits.intent_bytes, found: request.intent.len() });
    }
    if request.limit == Some(0) {
        return Err(Error::NoRows { most: MAX_LIMIT });
    }
    let known = |name: &String| seen.get(name).ok_or_else(|| unknown_api(seen.iter(), name));
    let asked: Result<Vec<CatalogId>, SeedError> =
        request.apis.iter().map(|name| Ok(known(name)?.id.clone())).collect();
    let query = Query { intent: request.intent.clone(), apis: asked?, limit: request.limit.unwrap_or(DEFAULT_LIMIT) };
    let found = index.discover(&query, allowed);
    let looked_at = |catalog: &&Arc<Catalog>| query.apis.is_empty() || query.apis.contains(&catalog.id);
    Ok(Discovered { found, apis: seen.iter().filter(looked_at).cloned().collect() })
}
