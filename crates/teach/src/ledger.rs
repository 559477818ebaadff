//! The append-only list of what a session's symbols mean: `e#`, `p#`, `r#`.
//! Invariant: `extend` never changes an entry that exists, and gives the same wave for the same ledger and seeds in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{CatalogId, near};
use catalog::{Catalog, Type};
use lang::scope::{Exposed, Scope, SlotMeaning};
use serde::{Deserialize, Serialize};

/// The catalogs a session has pinned.
pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// One `(api, entity)` to expose. `api` is a registry id: aliases are resolved before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    pub catalog: CatalogId,
    pub entity: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// `e1` is the first.
    entities: Vec<EntityEntry>,
    /// `p1` is the first.
    slots: Vec<SlotEntry>,
    /// `r1` is the first.
    relations: Vec<RelationEntry>,
    /// `m1` is the first.
    #[serde(default)]
    methods: Vec<MethodEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct EntityEntry {
    catalog: CatalogId,
    entity: String,
}

/// Two slots share a symbol exactly when catalog, name and type are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SlotEntry {
    catalog: CatalogId,
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RelationEntry {
    catalog: CatalogId,
    entity: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct MethodEntry {
    catalog: CatalogId,
    entity: String,
    capability: String,
}

/// What one call added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wave {
    /// Newly exposed, in the order of their symbols.
    pub entities: Vec<Taught>,
    /// Newly taught relations, of new and of old entities.
    pub relations: Vec<TaughtRelation>,
    /// Newly taught methods.
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
    pub capability: String,
}

pub struct Extended {
    pub ledger: Ledger,
    pub wave: Wave,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    #[error("no API `{api}` here{}", one_of(.near))]
    UnknownApi { api: String, near: Vec<String> },
    #[error("`{api}` has no entity `{entity}`{}", one_of(.near))]
    UnknownEntity { api: String, entity: String, near: Vec<String> },
}

fn one_of(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) }
}

impl Wave {
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty() && self.relations.is_empty() && self.methods.is_empty()
    }
}

impl Ledger {
    /// Adds what the seeds expose; an unknown seed adds nothing at all.
    pub fn extend(&self, catalogs: &Catalogs, seeds: &[Seed]) -> Result<Extended, SeedError> {
        let mut ledger = self.clone();
        let mut wave = Wave::default();
        for seed in BTreeSet::from_iter(seeds) {
            let catalog = catalogs.get(&seed.catalog).ok_or_else(|| SeedError::UnknownApi {
                api: seed.catalog.to_string(),
                near: near(seed.catalog.as_str(), catalogs.keys().map(CatalogId::as_str)),
            })?;
            if catalog.entity(&seed.entity).is_none() {
                return Err(SeedError::UnknownEntity {
                    api: seed.catalog.to_string(),
                    entity: seed.entity.chars().take(80).collect(),
                    near: near(&seed.entity, catalog.entities.keys().map(String::as_str)),
                });
            }
            let entry = EntityEntry { catalog: seed.catalog.clone(), entity: seed.entity.clone() };
            if !ledger.entities.contains(&entry) {
                ledger.entities.push(entry);
                let symbol = format!("e{}", ledger.entities.len());
                wave.entities.push(Taught { symbol, catalog: seed.catalog.clone(), entity: seed.entity.clone() });
            }
        }
        ledger.add_slots(catalogs);
        wave.relations = ledger.add_relations(catalogs);
        wave.methods = ledger.add_methods(catalogs);
        Ok(Extended { ledger, wave })
    }

    fn add_slots(&mut self, catalogs: &Catalogs) {
        let known: BTreeSet<SlotEntry> = self.slots.iter().cloned().collect();
        let mut new = BTreeSet::new();
        for entry in &self.entities {
            let Some(catalog) = catalogs.get(&entry.catalog) else {
                continue;
            };
            let fields = catalog.entity(&entry.entity).into_iter().flat_map(|e| e.fields.values());
            let params = params_of(catalog, &entry.entity);
            let slots = fields.map(|f| (&f.name, &f.kind)).chain(params.map(|p| (&p.name, &p.kind)));
            new.extend(slots.map(|(name, kind)| slot_entry(catalog, name, kind)).filter(|slot| !known.contains(slot)));
        }
        self.slots.extend(new);
    }

    fn add_relations(&mut self, catalogs: &Catalogs) -> Vec<TaughtRelation> {
        let mut new = BTreeSet::new();
        for entry in &self.entities {
            let entity = catalogs.get(&entry.catalog).and_then(|c| c.entity(&entry.entity));
            for relation in entity.into_iter().flat_map(|e| e.relations.values()) {
                let (catalog, entity, name) = (entry.catalog.clone(), entry.entity.clone(), relation.name.clone());
                let found = RelationEntry { catalog, entity, name };
                if self.symbol_of(&entry.catalog, &relation.target).is_some() && !self.relations.contains(&found) {
                    new.insert((found, relation.target.clone()));
                }
            }
        }
        let mut taught = Vec::new();
        for (entry, target) in new {
            let from = self.symbol_of(&entry.catalog, &entry.entity).unwrap_or_default();
            let to = self.symbol_of(&entry.catalog, &target).unwrap_or_default();
            self.relations.push(entry.clone());
            let symbol = format!("r{}", self.relations.len());
            let RelationEntry { catalog, entity, name } = entry;
            taught.push(TaughtRelation { symbol, from, to, name, catalog, entity });
        }
        taught
    }

    fn add_methods(&mut self, catalogs: &Catalogs) -> Vec<TaughtMethod> {
        let known: BTreeSet<MethodEntry> = self.methods.iter().cloned().collect();
        let mut new = BTreeSet::new();
        for entry in &self.entities {
            let Some(catalog) = catalogs.get(&entry.catalog) else { continue };
            new.extend(catalog.methods(&entry.entity).map(|c| MethodEntry {
                catalog: entry.catalog.clone(),
                entity: entry.entity.clone(),
                capability: c.name.clone(),
            }));
        }
        let mut taught = Vec::new();
        for entry in new.into_iter().filter(|entry| !known.contains(entry)) {
            let of = self.symbol_of(&entry.catalog, &entry.entity).unwrap_or_default();
            self.methods.push(entry.clone());
            let symbol = format!("m{}", self.methods.len());
            taught.push(TaughtMethod { symbol, of, catalog: entry.catalog, capability: entry.capability });
        }
        taught
    }

    /// `e4` of an exposed entity.
    pub fn symbol_of(&self, catalog: &CatalogId, entity: &str) -> Option<String> {
        let at = self.entities.iter().position(|e| &e.catalog == catalog && e.entity == entity)?;
        Some(format!("e{}", at + 1))
    }

    /// `p7` of a slot.
    pub fn slot_symbol(&self, catalog: &Catalog, name: &str, kind: &Type) -> Option<String> {
        let wanted = slot_entry(catalog, name, kind);
        let at = self.slots.iter().position(|s| *s == wanted)?;
        Some(format!("p{}", at + 1))
    }

    /// Exposed entities with their catalogs, in the order of their symbols.
    pub fn exposed<'a>(&'a self, catalogs: &'a Catalogs) -> impl Iterator<Item = (&'a Arc<Catalog>, &'a str)> {
        self.entities.iter().filter_map(|entry| Some((catalogs.get(&entry.catalog)?, entry.entity.as_str())))
    }

    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }

    /// Catalogs with at least one exposed entity.
    pub fn catalogs(&self) -> BTreeSet<&CatalogId> {
        self.entities.iter().map(|e| &e.catalog).collect()
    }

    /// What the symbols mean, for the checker.
    pub fn scope(&self, catalogs: &Catalogs) -> Scope {
        let mut scope = Scope::default();
        for (at, entry) in self.entities.iter().enumerate() {
            let Some(catalog) = catalogs.get(&entry.catalog) else {
                continue;
            };
            let methods = self.methods.iter().enumerate();
            let methods = methods.filter(|(_, m)| m.catalog == entry.catalog && m.entity == entry.entity);
            let mine = |r: &&(usize, &RelationEntry)| r.1.catalog == entry.catalog && r.1.entity == entry.entity;
            let relations: Vec<(usize, &RelationEntry)> = self.relations.iter().enumerate().collect();
            scope.entities.push(Exposed {
                symbol: format!("e{}", at + 1),
                catalog: catalog.clone(),
                entity: entry.entity.clone(),
                relations: relations
                    .iter()
                    .filter(mine)
                    .map(|(n, r)| (format!("r{}", n + 1), r.name.clone()))
                    .collect(),
                methods: methods.map(|(n, m)| (format!("m{}", n + 1), m.capability.clone())).collect(),
            });
        }
        for (at, slot) in self.slots.iter().enumerate() {
            let meaning = SlotMeaning { catalog: slot.catalog.clone(), name: slot.name.clone() };
            scope.slots.insert(format!("p{}", at + 1), meaning);
        }
        scope
    }
}

fn slot_entry(catalog: &Catalog, name: &str, kind: &Type) -> SlotEntry {
    SlotEntry { catalog: catalog.id.clone(), name: name.to_owned(), kind: kind.describe() }
}

/// Parameters of everything an entity offers.
fn params_of<'a>(catalog: &'a Catalog, entity: &'a str) -> impl Iterator<Item = &'a catalog::Param> {
    catalog.capabilities.values().filter(move |c| c.entity == entity).flat_map(|c| c.params.values())
}
