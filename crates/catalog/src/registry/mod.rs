//! The catalogs a server offers, by id, alias and digest.
//! Invariant: one id or alias names one catalog; an alias becomes an id before anything else looks at it. A registry never
//! changes: a reload makes the next one.

mod change;
mod claims;
mod found;
mod problem;
mod shelf;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::{CatalogId, Digest};

use crate::allow::Allow;
use crate::model::Catalog;

pub use change::{Change, Report};
pub use found::{FileFound, FolderFound, Unlisted, Unusable};
pub use problem::{Cause, Problem};
pub use shelf::Shelf;

/// Catalogs that are no longer offered and still found by digest without asking the store. What a session pinned is in the
/// store as well, so this bounds memory, not what works.
const EARLIER: usize = 1_024;

#[derive(Debug, Default)]
pub struct Registry {
    by_id: BTreeMap<CatalogId, Arc<Catalog>>,
    aliases: BTreeMap<CatalogId, CatalogId>,
    by_digest: HashMap<Digest, Arc<Catalog>>,
    /// Offered by an earlier registry of this process, oldest first.
    earlier: Vec<Digest>,
    problems: Vec<Problem>,
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("catalogs `{first}` and `{second}` both claim the name `{name}`; change the id or alias in one of them")]
    Taken { name: CatalogId, first: CatalogId, second: CatalogId },
}

impl Registry {
    pub fn new(catalogs: impl IntoIterator<Item = Arc<Catalog>>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for catalog in catalogs {
            if let Some((name, first)) = registry.rival(&catalog) {
                let (name, first) = (name.clone(), first.clone());
                return Err(RegistryError::Taken { name, first, second: catalog.id.clone() });
            }
            registry.add(catalog);
        }
        Ok(registry)
    }

    /// The registry that comes after `before`: what that one offered is still found by digest.
    fn after(before: &Registry, catalogs: impl IntoIterator<Item = Arc<Catalog>>, problems: Vec<Problem>) -> Self {
        let mut next = Self { problems, ..Self::default() };
        for catalog in catalogs {
            // `claims::settle` let only one of them have each name.
            if next.rival(&catalog).is_none() {
                next.add(catalog);
            }
        }
        let gone = before.earlier.iter().copied().chain(before.by_id.values().map(|c| c.digest()));
        next.earlier = gone.filter(|digest| !next.by_digest.contains_key(digest)).collect();
        let excess = next.earlier.len().saturating_sub(EARLIER);
        next.earlier.drain(..excess);
        let kept = next.earlier.iter().filter_map(|digest| Some((*digest, before.by_digest.get(digest)?.clone())));
        next.by_digest.extend(kept.collect::<Vec<_>>());
        next
    }

    /// Who has one of its names already.
    fn rival<'a>(&'a self, catalog: &'a Catalog) -> Option<(&'a CatalogId, &'a CatalogId)> {
        names(catalog).find_map(|name| {
            let owner = self.by_id.get(name).map(|c| &c.id).or_else(|| self.aliases.get(name));
            owner.map(|owner| (name, owner))
        })
    }

    fn add(&mut self, catalog: Arc<Catalog>) {
        let id = catalog.id.clone();
        self.aliases.extend(catalog.aliases.iter().map(|alias| (alias.clone(), id.clone())));
        self.by_digest.insert(catalog.digest(), catalog.clone());
        self.by_id.insert(id, catalog);
    }

    /// As a tenant sees it: the catalogs of which something may be used, without what may not.
    pub fn view(&self, allow: &Allow) -> Self {
        let mut seen = Self::default();
        self.by_id.values().filter_map(|catalog| allow.view(catalog)).for_each(|catalog| seen.add(catalog));
        seen
    }

    /// By id or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<Catalog>> {
        let name = CatalogId::parse(name).ok()?;
        self.by_id.get(self.aliases.get(&name).unwrap_or(&name))
    }

    /// Offered now, or earlier in this process.
    pub fn by_digest(&self, digest: &Digest) -> Option<&Arc<Catalog>> {
        self.by_digest.get(digest)
    }

    /// In the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Catalog>> {
        self.by_id.values()
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// What the folders hold and this registry does not offer, or offers in an older version.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// All that a catalog claims to be called.
fn names(catalog: &Catalog) -> impl Iterator<Item = &CatalogId> {
    std::iter::once(&catalog.id).chain(&catalog.aliases)
}
