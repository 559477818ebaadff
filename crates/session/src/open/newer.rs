//! Catalogs that changed since a session pinned them: said once, and moved to on request.
//! Invariant: nothing but a `refresh` moves a session off the catalogs it pinned.

use base::CatalogId;
use catalog::Registry;

use super::find::Found;

/// A pinned catalog of which something newer is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newer {
    pub api: CatalogId,
    pub pinned: u32,
    pub offered: u32,
}

impl Found {
    /// What the session has not been told yet; from here on its row says that it was.
    pub(super) fn newer(&mut self, registry: &Registry) -> Vec<Newer> {
        let mut newer = Vec::new();
        let Some((_, execute)) = &mut self.execute else { return newer };
        for (id, pinned) in &self.pinned {
            let Some(offered) = registry.get(id.as_str()).filter(|c| c.id == *id && c.digest() != pinned.digest())
            else {
                continue;
            };
            if execute.row.told.insert(offered.digest()) {
                newer.push(Newer { api: id.clone(), pinned: pinned.version, offered: offered.version });
            }
        }
        newer
    }

    /// The same session without its symbol space; all that it exposed is asked for again, where it still exists.
    pub(super) fn on_newest(mut self, registry: &Registry) -> Self {
        let Some((_, execute)) = self.execute.take() else { return self };
        self.refreshed = true;
        for (id, seen) in &mut self.pinned {
            // What is offered no longer stays as it was pinned.
            if let Some(offered) = registry.get(id.as_str()).filter(|c| c.id == *id) {
                *seen = offered.clone();
            }
        }
        self.carried = execute.row.ledger.seeds();
        self.carried.retain_mut(|seed| {
            let Some(catalog) = self.pinned.get(&seed.catalog).filter(|c| c.offers(&seed.entity)) else { return false };
            seed.capabilities.retain(|name| catalog.capability(name).is_some_and(|c| c.entity == seed.entity));
            true
        });
        self
    }
}
