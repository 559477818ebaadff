//! `discover_capabilities`: which entities of which APIs match an intent.
//! Invariant: the result contains nothing that the caller may not use; nothing is stored, and no session is needed.

mod registry;

use std::sync::Arc;

use access::Caller;
use base::{CatalogId, Limits};
use catalog::{Capability, Catalog, Registry};
use teach::SeedError;
use teach::discovery::{Allowed, DEFAULT_LIMIT, DiscoveryResult, Index, MAX_LIMIT, Query};

use crate::error::Error;
use crate::open::unknown_api;
use crate::service::Service;

pub use registry::{ApiAccess, ApiListing};

/// The intent and the APIs of a search.
#[derive(Debug, Clone, Default)]
pub struct DiscoverRequest {
    pub intent: String,
    /// Ids or aliases of APIs. Empty means all APIs.
    pub apis: Vec<String>,
    /// The number of rows. There is a default and an upper bound.
    pub limit: Option<usize>,
}

/// The matches of a discovery.
#[derive(Debug)]
pub struct DiscoveryAnswer {
    pub found: DiscoveryResult,
    /// The APIs that were searched, for the message when nothing matches.
    pub apis: Vec<Arc<Catalog>>,
}

impl Service {
    pub fn discover(&self, caller: &Caller, request: &DiscoverRequest) -> Result<DiscoveryAnswer, Error> {
        let index = self.discovery_index.index_of(&self.registry());
        let permit =
            |catalog: &Catalog, capability: &Capability| self.tenants.permits(&caller.tenant, catalog, capability);
        discover(&self.registry_for(&caller.tenant), &index, &self.limits, &permit, request)
    }
}

/// [`Service::discover`] without a service. `visible` is the part of the indexed registry that the caller may use.
pub fn discover(
    visible: &Registry,
    index: &Index,
    limits: &Limits,
    allowed: Allowed<'_>,
    request: &DiscoverRequest,
) -> Result<DiscoveryAnswer, Error> {
    if request.intent.trim().is_empty() {
        return Err(Error::NoIntent);
    }
    if request.intent.len() > limits.intent_bytes {
        return Err(Error::IntentTooLong { max: limits.intent_bytes, found: request.intent.len() });
    }
    if request.limit == Some(0) {
        return Err(Error::NoRows { most: MAX_LIMIT });
    }
    let known = |name: &String| visible.get(name).ok_or_else(|| unknown_api(visible.iter(), name));
    let apis: Result<Vec<CatalogId>, SeedError> = request.apis.iter().map(|name| Ok(known(name)?.id.clone())).collect();
    let query = Query { intent: request.intent.clone(), apis: apis?, limit: request.limit.unwrap_or(DEFAULT_LIMIT) };
    let found = index.discover(&query, allowed);
    let was_searched = |catalog: &&Arc<Catalog>| query.apis.is_empty() || query.apis.contains(&catalog.id);
    Ok(DiscoveryAnswer { found, apis: visible.iter().filter(was_searched).cloned().collect() })
}
