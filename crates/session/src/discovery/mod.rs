//! `discover_capabilities`: which entities of which APIs match an intent.
//! Invariant: the result contains nothing that the caller may not use; nothing is stored, and no session is needed.

mod registry;

use std::sync::Arc;

use access::Caller;
use base::{CatalogId, Limits};
use catalog::{Capability, Catalog, Registry};
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
    /// The matching entities, the best first.
    pub result: DiscoveryResult,
    /// The APIs that were searched, for the message when nothing matches.
    pub apis: Vec<Arc<Catalog>>,
}

impl Service {
    /// Finds the entities that match an intent, as far as the caller may use them.
    pub fn discover(&self, caller: &Caller, request: &DiscoverRequest) -> Result<DiscoveryAnswer, Error> {
        // One index serves all tenants, and each match is checked against the caller's rights.
        let index = self.discovery_index.index_of(&self.registry());
        let is_allowed =
            |catalog: &Catalog, capability: &Capability| self.tenants.permits(&caller.tenant, catalog, capability);
        discover(&self.registry_for(&caller.tenant), &index, &self.limits, &is_allowed, request)
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
    let mut apis: Vec<CatalogId> = Vec::new();
    for name in &request.apis {
        let catalog = visible.get(name).ok_or_else(|| unknown_api(visible.iter(), name))?;
        apis.push(catalog.id.clone());
    }
    let query = Query { intent: request.intent.clone(), apis, limit: request.limit.unwrap_or(DEFAULT_LIMIT) };
    let result = index.discover(&query, allowed);
    let was_searched = |catalog: &&Arc<Catalog>| query.apis.is_empty() || query.apis.contains(&catalog.id);
    Ok(DiscoveryAnswer { result, apis: visible.iter().filter(was_searched).cloned().collect() })
}
