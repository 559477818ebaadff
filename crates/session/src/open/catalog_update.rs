//! Newer versions of catalogs that a session pinned: announced once, and adopted on request.
//! Invariant: only a `refresh` moves a session off the catalogs it pinned.

use base::CatalogId;
use catalog::Registry;

use super::snapshot::SessionSnapshot;

/// A pinned catalog of which the registry has another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogUpdate {
    /// The id of the catalog.
    pub api: CatalogId,
    /// The version that the session pinned.
    pub pinned: u32,
    /// The version that the registry has.
    pub offered: u32,
}

impl SessionSnapshot {
    /// Returns the updates that were not announced to the session before. Marks them as announced in its row, which the caller
    /// must store.
    pub(super) fn take_catalog_updates(&mut self, registry: &Registry) -> Vec<CatalogUpdate> {
        let mut catalog_updates = Vec::new();
        let Some((_, execute)) = &mut self.execute else { return catalog_updates };
        for (id, pinned) in &self.pinned {
            let Some(offered) =
                registry.get(id.as_str()).filter(|offered| offered.id == *id && offered.digest() != pinned.digest())
            else {
                continue;
            };
            if execute.row.announced_catalogs.insert(offered.digest()) {
                catalog_updates.push(CatalogUpdate {
                    api: id.clone(),
                    pinned: pinned.version,
                    offered: offered.version,
                });
            }
        }
        catalog_updates
    }

    /// Drops the execute session and prepares a new one on the current catalogs. Everything that was taught is taught
    /// again, as far as it still exists.
    pub(super) fn refresh_catalogs(mut self, registry: &Registry) -> Self {
        let Some((_, execute)) = self.execute.take() else { return self };
        self.refreshed = true;
        for (id, catalog) in &mut self.pinned {
            // A catalog that the registry no longer has stays as it was pinned.
            if let Some(offered) = registry.get(id.as_str()).filter(|offered| offered.id == *id) {
                *catalog = offered.clone();
            }
        }
        self.carried = execute.row.ledger.seeds();
        // Entities and capabilities that the newer catalogs no longer have are left out. An entity without any of its
        // capabilities stays a seed.
        self.carried.retain_mut(|seed| {
            let Some(catalog) = self.pinned.get(&seed.catalog).filter(|catalog| catalog.offers(&seed.entity)) else {
                return false;
            };
            seed.capabilities
                .retain(|name| catalog.capability(name).is_some_and(|capability| capability.entity == seed.entity));
            true
        });
        self
    }
}
