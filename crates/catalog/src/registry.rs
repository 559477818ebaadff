//! The catalogs a server offers, by id and alias.
//! Invariant: one id or alias names one catalog; an alias becomes an id before anything else looks at it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;

use crate::model::Catalog;

#[derive(Debug, Default)]
pub struct Registry {
    by_id: BTreeMap<CatalogId, Arc<Catalog>>,
    aliases: BTreeMap<CatalogId, CatalogId>,
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
            registry.add(catalog)?;
        }
        Ok(registry)
    }

    fn add(&mut self, catalog: Arc<Catalog>) -> Result<(), RegistryError> {
        let id = catalog.id.clone();
        for name in std::iter::once(&id).chain(&catalog.aliases) {
            let owner = self.by_id.get(name).map(|c| &c.id).or_else(|| self.aliases.get(name));
            if let Some(first) = owner {
                return Err(RegistryError::Taken { name: name.clone(), first: first.clone(), second: id });
            }
        }
        self.aliases.extend(catalog.aliases.iter().map(|alias| (alias.clone(), id.clone())));
        self.by_id.insert(id, catalog);
        Ok(())
    }

    /// By id or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<Catalog>> {
        let name = CatalogId::parse(name).ok()?;
        self.by_id.get(self.aliases.get(&name).unwrap_or(&name))
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
}
