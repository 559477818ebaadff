//! Tenant views: catalogs and registries without the parts that a tenant may not use.
//! Invariant: a view is a function of the catalog and the settings, so a lost view is made again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Digest, TenantId};
use catalog::{Capability, Catalog, Permissions, Registry};

/// The policy of each tenant. A tenant that the settings do not restrict may use everything.
#[derive(Default)]
pub struct Tenants {
    /// The policies of restricted tenants. The others are absent, so that they skip the cache.
    policies: BTreeMap<TenantId, Permissions>,
    /// The views made so far, because a session asks for the same ones at every call.
    views: Mutex<ViewCache>,
}

/// The views of restricted tenants. Each can be made again, so an entry may be dropped at any time.
#[derive(Default)]
struct ViewCache {
    /// The registry view of each tenant. A reload makes another registry, so a view is valid only for the one it was made from.
    registries: HashMap<TenantId, RegistryView>,
    /// Views by the digest of the whole catalog. `None` stands for a catalog that the tenant may not use at all.
    catalogs: HashMap<(TenantId, Digest), Option<Arc<Catalog>>>,
}

/// One tenant's view of one registry.
struct RegistryView {
    /// The registry that the view was made from.
    whole: Arc<Registry>,
    /// The registry without the parts that the tenant may not use.
    view: Arc<Registry>,
}

/// The number of catalog views at which the cache is emptied.
const MAX_CACHED_VIEWS: usize = 1_024;

impl Tenants {
    /// Takes the policy of each tenant. Policies that allow everything are dropped.
    pub fn new(policies: BTreeMap<TenantId, Permissions>) -> Self {
        let policies = policies.into_iter().filter(|(_, permissions)| !permissions.is_unrestricted()).collect();
        Self { policies, views: Mutex::default() }
    }

    /// Returns whether the settings deny the tenant anything.
    pub fn is_restricted(&self, tenant: &TenantId) -> bool {
        self.policies.contains_key(tenant)
    }

    /// Returns whether the tenant may change nothing in any API.
    pub fn is_read_only(&self, tenant: &TenantId) -> bool {
        self.policies.get(tenant).is_some_and(Permissions::is_read_only)
    }

    /// Returns whether the tenant may call this capability.
    pub fn permits(&self, tenant: &TenantId, catalog: &Catalog, capability: &Capability) -> bool {
        self.policies.get(tenant).is_none_or(|permissions| permissions.permits(catalog, capability))
    }

    /// Returns the registry as the tenant sees it.
    pub fn registry_view(&self, tenant: &TenantId, whole: Arc<Registry>) -> Arc<Registry> {
        let Some(permissions) = self.policies.get(tenant) else { return whole };
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        match views.registries.get(tenant) {
            // The registries are compared by address, because a reload replaces the registry as a whole and a comparison of the
            // contents would read every catalog.
            Some(cached) if Arc::ptr_eq(&cached.whole, &whole) => cached.view.clone(),
            _ => {
                let view = Arc::new(whole.view(permissions));
                views.registries.insert(tenant.clone(), RegistryView { whole, view: view.clone() });
                view
            }
        }
    }

    /// Returns the catalog as the tenant sees it, or `None` if the tenant may use nothing of it.
    pub fn catalog_view(&self, tenant: &TenantId, whole: Arc<Catalog>) -> Option<Arc<Catalog>> {
        let Some(permissions) = self.policies.get(tenant) else { return Some(whole) };
        let key = (tenant.clone(), whole.digest());
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.catalogs.get(&key) {
            return view.clone();
        }
        // A digest names one content for ever, so an entry is never wrong. Emptying the cache only bounds the memory that
        // views of replaced catalogs take.
        if views.catalogs.len() >= MAX_CACHED_VIEWS {
            views.catalogs.clear();
        }
        let view = permissions.view(&whole);
        views.catalogs.insert(key, view.clone());
        view
    }
}
