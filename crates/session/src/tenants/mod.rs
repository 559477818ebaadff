//! What each tenant may use, and the views of catalogs made from it.
//! Invariant: a view is a function of the catalog and the settings; it can be made again at any time.

pub mod keys;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Digest, TenantId};
use catalog::{Allow, Capability, Catalog, Registry};

/// What each tenant may use; who is not named may use everything.
#[derive(Default)]
pub struct Tenants {
    allowed: BTreeMap<TenantId, Allow>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// A view of the registry, and the registry it was made from.
    registries: HashMap<TenantId, (Arc<Registry>, Arc<Registry>)>,
    catalogs: HashMap<(TenantId, Digest), Option<Arc<Catalog>>>,
}

/// Views that are kept; each can be made again.
const KEPT: usize = 1_024;

impl Tenants {
    pub fn new(allowed: BTreeMap<TenantId, Allow>) -> Self {
        let allowed = allowed.into_iter().filter(|(_, allow)| !allow.is_everything()).collect();
        Self { allowed, cache: Mutex::default() }
    }

    /// Whether there is anything that it may not use.
    pub(crate) fn bound(&self, tenant: &TenantId) -> bool {
        self.allowed.contains_key(tenant)
    }

    pub(crate) fn is_read_only(&self, tenant: &TenantId) -> bool {
        self.allowed.get(tenant).is_some_and(Allow::is_read_only)
    }

    pub(crate) fn permit(&self, tenant: &TenantId, catalog: &Catalog, capability: &Capability) -> bool {
        self.allowed.get(tenant).is_none_or(|allow| allow.permits(catalog, capability))
    }

    pub(crate) fn registry(&self, tenant: &TenantId, whole: Arc<Registry>) -> Arc<Registry> {
        let Some(allow) = self.allowed.get(tenant) else { return whole };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match cache.registries.get(tenant) {
            Some((of, view)) if Arc::ptr_eq(of, &whole) => view.clone(),
            _ => {
                let view = Arc::new(whole.view(allow));
                cache.registries.insert(tenant.clone(), (whole, view.clone()));
                view
            }
        }
    }

    pub(crate) fn catalog(&self, tenant: &TenantId, whole: Arc<Catalog>) -> Option<Arc<Catalog>> {
        let Some(allow) = self.allowed.get(tenant) else { return Some(whole) };
        let key = (tenant.clone(), whole.digest());
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = cache.catalogs.get(&key) {
            return view.clone();
        }
        if cache.catalogs.len() >= KEPT {
            cache.catalogs.clear();
        }
        let view = allow.view(&whole);
        cache.catalogs.insert(key, view.clone());
        view
    }
}
