//! What one call added to a ledger.
//! Invariant: each list is in the order of its symbols, and holds nothing that the ledger had before.

use base::CatalogId;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wave {
    pub entities: Vec<Taught>,
    /// Of new and of old entities.
    pub relations: Vec<TaughtRelation>,
    /// Of new and of old entities.
    pub methods: Vec<TaughtMethod>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taught {
    pub symbol: String,
    pub catalog: CatalogId,
    pub entity: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaughtRelation {
    pub symbol: String,
    /// Symbols of the entities it leads from and to.
    pub from: String,
    pub to: String,
    pub name: String,
    pub catalog: CatalogId,
    pub entity: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaughtMethod {
    pub symbol: String,
    /// Symbol of the entity it belongs to.
    pub of: String,
    pub catalog: CatalogId,
    pub entity: String,
    pub capability: String,
}

impl Wave {
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty() && self.relations.is_empty() && self.methods.is_empty()
    }
}
