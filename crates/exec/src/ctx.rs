//! What a run stands on: its ports, its tenant, its pinned catalogs, its limits.
//! Invariant: a step sees the world through this and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{CatalogId, Limits, TenantId};
use catalog::Catalog;
use ports::Upstream;
use tokio::sync::Semaphore;

/// What a run stands on.
pub struct Ctx<'a> {
    pub upstream: &'a dyn Upstream,
    pub tenant: &'a TenantId,
    /// Those that the session pinned.
    pub catalogs: &'a BTreeMap<CatalogId, Arc<Catalog>>,
    pub limits: &'a Limits,
    /// Calls that may be under way at once in this session.
    pub calls: &'a Semaphore,
}
