//! The registry: the catalogs that a server offers at one moment, by id, alias and digest.
//! Invariants: each id or alias belongs to one catalog. Other code sees ids only, because the registry replaces an
//! alias by its id. A registry never changes; a reload makes a new registry.

mod catalog_set;
mod name_claims;
mod report;
mod scan;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::{CatalogId, Digest};

use crate::model::Catalog;
use crate::permissions::Permissions;

pub use catalog_set::CatalogSet;
pub use report::{CatalogChange, CatalogProblem, ProblemCause, ReloadReport};
pub use scan::{FileError, FileScan, FolderError, FolderScan};

/// The maximum number of catalogs that stay in memory after they are no longer offered, so that sessions find them by
/// digest without the store. The store has every catalog that a session uses, so this number limits only memory.
const MAX_EARLIER_CATALOGS: usize = 1_024;

/// The catalogs that are offered at this moment, and some that were offered earlier.
#[derive(Debug, Default)]
pub struct Registry {
    /// The offered catalogs by id.
    by_id: BTreeMap<CatalogId, Arc<Catalog>>,
    /// The catalog id for each alias of an offered catalog.
    aliases: BTreeMap<CatalogId, CatalogId>,
    /// The offered catalogs and the catalogs in `earlier`, by digest.
    by_digest: HashMap<Digest, Arc<Catalog>>,
    /// The digests of catalogs that an earlier registry of this process offered, oldest first. Running sessions may
    /// still use them.
    earlier: Vec<Digest>,
    /// The problems of the catalog folders, found by the reload that made this registry.
    problems: Vec<CatalogProblem>,
}

/// Why catalogs cannot be offered together.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("catalogs `{first}` and `{second}` both claim the name `{name}`; change the id or alias in one of them")]
    Taken { name: CatalogId, first: CatalogId, second: CatalogId },
}

impl Registry {
    /// Makes a registry of these catalogs. Two catalogs with a common id or alias are an error.
    pub fn new(catalogs: impl IntoIterator<Item = Arc<Catalog>>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for catalog in catalogs {
            if let Some((name, first)) = registry.owner_of_a_name(&catalog) {
                return Err(RegistryError::Taken {
                    name: name.clone(),
                    first: first.clone(),
                    second: catalog.id.clone(),
                });
            }
            registry.add(catalog);
        }
        Ok(registry)
    }

    /// Makes the next registry after `before`. The catalogs of `before` are still found by digest.
    fn after(
        before: &Registry,
        catalogs: impl IntoIterator<Item = Arc<Catalog>>,
        problems: Vec<CatalogProblem>,
    ) -> Self {
        let mut next = Self { problems, ..Self::default() };
        for catalog in catalogs {
            // `name_claims::settle_claims` assigns each name to one catalog, so this condition is always true.
            if next.owner_of_a_name(&catalog).is_none() {
                next.add(catalog);
            }
        }
        let no_longer_offered = before.earlier.iter().copied().chain(before.by_id.values().map(|c| c.digest()));
        next.earlier = no_longer_offered.filter(|digest| !next.by_digest.contains_key(digest)).collect();
        let excess = next.earlier.len().saturating_sub(MAX_EARLIER_CATALOGS);
        next.earlier.drain(..excess);
        for digest in &next.earlier {
            if let Some(catalog) = before.by_digest.get(digest) {
                next.by_digest.insert(*digest, catalog.clone());
            }
        }
        next
    }

    /// Returns the first name of `catalog` that already belongs to a catalog of this registry, and the id of that
    /// catalog.
    fn owner_of_a_name<'a>(&'a self, catalog: &'a Catalog) -> Option<(&'a CatalogId, &'a CatalogId)> {
        claimed_names(catalog).find_map(|name| {
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

    /// Returns the tenant view of this registry: the catalogs in which the tenant may use at least one capability,
    /// each as its tenant view.
    pub fn view(&self, permissions: &Permissions) -> Self {
        let mut view = Self::default();
        self.by_id.values().filter_map(|catalog| permissions.view(catalog)).for_each(|catalog| view.add(catalog));
        view
    }

    /// Returns the offered catalog with this id or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<Catalog>> {
        let name = CatalogId::parse(name).ok()?;
        self.by_id.get(self.aliases.get(&name).unwrap_or(&name))
    }

    /// Returns the catalog with this digest, if it is offered now or was offered earlier in this process.
    pub fn by_digest(&self, digest: &Digest) -> Option<&Arc<Catalog>> {
        self.by_digest.get(digest)
    }

    /// Returns the offered catalogs in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Catalog>> {
        self.by_id.values()
    }

    /// Returns the number of offered catalogs.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether no catalog is offered.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Returns the problems of catalog files and folders: why a file is not offered, or is offered in an older
    /// version.
    pub fn problems(&self) -> &[CatalogProblem] {
        &self.problems
    }
}

/// Returns the names that a catalog claims: its id and its aliases.
fn claimed_names(catalog: &Catalog) -> impl Iterator<Item = &CatalogId> {
    std::iter::once(&catalog.id).chain(&catalog.aliases)
}
