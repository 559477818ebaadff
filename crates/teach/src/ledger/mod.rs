//! The append-only list of what a session's symbols mean: `e#`, `m#`, `p#`, `r#`.
//! Invariant: `extend` never changes an entry that exists, and gives the same wave for the same ledger and seeds in any order.

mod symbol_index;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use base::CatalogId;
use catalog::{Capability, Catalog, Param, Type};
use lang::scope::{ExposedEntity, Scope, SlotMeaning};
use serde::{Deserialize, Serialize};

use crate::exposure::{Exposure, capabilities_returning, is_readable};
use crate::seed::{Catalogs, Seed, SeedError, TeachRequest};
use crate::shown_slots::{RowSlots, shown_fields};

pub use symbol_index::SymbolIndex;

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

pub struct Extension {
    pub ledger: Ledger,
    pub wave: Wave,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wave {
    pub entities: Vec<TaughtEntity>,
    /// Of new and of old entities.
    pub relations: Vec<TaughtRelation>,
    /// Of new and of old entities.
    pub methods: Vec<TaughtMethod>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaughtEntity {
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

impl Ledger {
    /// Adds what the call exposes; a seed that is wrong adds nothing at all.
    pub fn extend(&self, catalogs: &Catalogs, ask: &TeachRequest<'_>) -> Result<Extension, SeedError> {
        let earlier = self.entities.iter().map(|e| (&e.catalog, e.entity.as_str()));
        let exposure = Exposure::of(catalogs, ask, earlier)?;
        let mut ledger = self.clone();
        let entities = ledger.add_entities(&exposure);
        let methods = ledger.add_methods(&exposure);
        let relations = ledger.add_relations(catalogs);
        ledger.add_slots(catalogs);
        for taught in &entities {
            ledger.require_callable(catalogs, taught)?;
        }
        Ok(Extension { ledger, wave: Wave { entities, relations, methods } })
    }

    fn add_entities(&mut self, exposure: &Exposure<'_>) -> Vec<TaughtEntity> {
        let known: HashSet<(&CatalogId, &str)> =
            self.entities.iter().map(|e| (&e.catalog, e.entity.as_str())).collect();
        let entry = |(catalog, entity): &(&CatalogId, &str)| EntityEntry {
            catalog: (*catalog).clone(),
            entity: (*entity).to_owned(),
        };
        let new: Vec<EntityEntry> = exposure.entities.iter().filter(|e| !known.contains(*e)).map(entry).collect();
        let mut taught = Vec::new();
        for new in new {
            self.entities.push(new.clone());
            let symbol = format!("e{}", self.entities.len());
            taught.push(TaughtEntity { symbol, catalog: new.catalog, entity: new.entity });
        }
        taught
    }

    fn add_methods(&mut self, exposure: &Exposure<'_>) -> Vec<TaughtMethod> {
        let known: HashSet<(&CatalogId, &str, &str)> =
            self.methods.iter().map(|m| (&m.catalog, m.entity.as_str(), m.capability.as_str())).collect();
        let entry = |(catalog, entity, capability): &(&CatalogId, &str, &str)| MethodEntry {
            catalog: (*catalog).clone(),
            entity: (*entity).to_owned(),
            capability: (*capability).to_owned(),
        };
        let new: Vec<MethodEntry> = exposure.methods.iter().filter(|m| !known.contains(*m)).map(entry).collect();
        let mut taught = Vec::new();
        for new in new {
            let of = self.symbol_of(&new.catalog, &new.entity).unwrap_or_default();
            self.methods.push(new.clone());
            let symbol = format!("m{}", self.methods.len());
            let MethodEntry { catalog, entity, capability } = new;
            taught.push(TaughtMethod { symbol, of, catalog, entity, capability });
        }
        taught
    }

    fn add_relations(&mut self, catalogs: &Catalogs) -> Vec<TaughtRelation> {
        let symbols: BTreeMap<(&CatalogId, &str), usize> =
            self.entities.iter().enumerate().map(|(n, e)| ((&e.catalog, e.entity.as_str()), n + 1)).collect();
        let known: BTreeSet<&RelationEntry> = self.relations.iter().collect();
        let mut new = BTreeMap::new();
        for (&(id, from), &at) in &symbols {
            let entity = catalogs.get(id).and_then(|c| c.entity(from));
            for relation in entity.into_iter().flat_map(|e| e.relations.values()) {
                let Some(to) = symbols.get(&(id, relation.target.as_str())) else { continue };
                let (catalog, entity, name) = (id.clone(), from.to_owned(), relation.name.clone());
                let found = RelationEntry { catalog, entity, name };
                if !known.contains(&found) {
                    new.insert(found, (format!("e{at}"), format!("e{to}")));
                }
            }
        }
        let mut taught = Vec::new();
        for (entry, (from, to)) in new {
            self.relations.push(entry.clone());
            let symbol = format!("r{}", self.relations.len());
            let RelationEntry { catalog, entity, name } = entry;
            taught.push(TaughtRelation { symbol, from, to, name, catalog, entity });
        }
        taught
    }

    fn add_slots(&mut self, catalogs: &Catalogs) {
        let known = SymbolIndex::of(self);
        let mut new = BTreeSet::new();
        self.visit_slots(catalogs, |catalog, name, kind, _| {
            if !known.has_slot(catalog, name, kind) {
                new.insert(slot_entry(catalog, name, kind));
            }
        });
        self.slots.extend(new);
    }

    /// Fields and parameters of all that is exposed. The last argument says whether a row of the table names it: the words of a
    /// search and a key of one part are written without a name.
    pub(crate) fn visit_slots<'a>(
        &self,
        catalogs: &'a Catalogs,
        mut visit: impl FnMut(&'a Catalog, &'a str, &'a Type, bool),
    ) {
        for entry in &self.entities {
            let Some(catalog) = catalogs.get(&entry.catalog) else { continue };
            let Some(entity) = catalog.entity(&entry.entity) else { continue };
            let described = self.describes_fields_of(catalog, &entity.name);
            let shown: Vec<&str> = shown_fields(entity).map(|f| f.name.as_str()).collect();
            for field in entity.fields.values() {
                let in_key = entity.key.len() > 1 && entity.key.contains(&field.name);
                let named = (described && shown.contains(&field.name.as_str())) || in_key;
                visit(catalog, &field.name, &field.kind, named);
            }
            let queries = catalog.queries(&entity.name).chain(catalog.searches(&entity.name));
            for capability in queries {
                visit_params(catalog, capability, &mut visit);
            }
            for param in catalog.get_of(&entity.name).into_iter().flat_map(|c| c.params.values()) {
                visit(catalog, &param.name, &param.kind, false);
            }
        }
        for entry in &self.methods {
            let Some(catalog) = catalogs.get(&entry.catalog) else { continue };
            let Some(capability) = catalog.capability(&entry.capability) else { continue };
            visit_params(catalog, capability, &mut visit);
        }
    }

    /// Whether something that the session can write gives rows of it, so that its fields are named.
    pub(crate) fn describes_fields_of(&self, catalog: &Catalog, entity: &str) -> bool {
        let mine = |at: &CatalogId| *at == catalog.id;
        let methods = self.methods.iter().filter(|m| mine(&m.catalog));
        let gives = |c: &Capability| c.gives_rows() && c.returns == entity;
        is_readable(catalog, entity)
            || methods.filter_map(|m| catalog.capability(&m.capability)).any(gives)
            || self
                .relations
                .iter()
                .filter(|r| mine(&r.catalog))
                .any(|r| relation_leads_to(catalog, &r.entity, &r.name, entity))
    }

    /// Whether a key of several parts is needed by more than one row, all of them written on an instance.
    pub(crate) fn repeats_a_key(&self, catalogs: &Catalogs) -> bool {
        let mut rows: HashMap<(&CatalogId, &str), usize> = HashMap::new();
        for (catalog, entity) in self.exposed_entities(catalogs) {
            if catalog.entity(entity).is_some_and(|e| e.key.len() > 1) && catalog.get_of(entity).is_some() {
                rows.insert((&catalog.id, entity), 1);
            }
        }
        for relation in &self.relations {
            // Without a get a relation is written on a list.
            rows.entry((&relation.catalog, &relation.entity)).and_modify(|n| *n += 1);
        }
        for (catalog, method) in self.taught_methods(catalogs).filter(|(_, m)| m.needs_anchor()) {
            if catalog.entity(&method.entity).is_some_and(|e| e.key.len() > 1) {
                *rows.entry((&catalog.id, &method.entity)).or_default() += 1;
            }
        }
        rows.into_values().any(|n| n > 1)
    }

    /// An entity that is only embedded in rows of others cannot be reached without one of them.
    fn require_callable(&self, catalogs: &Catalogs, taught: &TaughtEntity) -> Result<(), SeedError> {
        let Some(catalog) = catalogs.get(&taught.catalog) else { return Ok(()) };
        let called = || self.methods.iter().any(|m| m.catalog == taught.catalog && m.entity == taught.entity);
        let followed = || {
            let mut relations = self.relations.iter().filter(|r| r.catalog == taught.catalog);
            relations.any(|r| relation_leads_to(catalog, &r.entity, &r.name, &taught.entity))
        };
        let answered = || {
            let mut mine = self.methods.iter().filter(|m| m.catalog == taught.catalog);
            mine.any(|m| {
                catalog.capability(&m.capability).is_some_and(|c| c.gives_rows() && c.returns == taught.entity)
            })
        };
        if is_readable(catalog, &taught.entity) || called() || followed() || answered() {
            return Ok(());
        }
        let holds = |e: &&catalog::Entity| e.relations.values().any(|r| r.target == taught.entity);
        let capabilities_returning = capabilities_returning(catalog, &taught.entity).map(|c| c.entity.as_str());
        let holders: BTreeSet<&str> =
            catalog.offered().filter(holds).map(|e| e.name.as_str()).chain(capabilities_returning).collect();
        let holders = holders.into_iter().take(5).map(str::to_owned).collect();
        let (api, entity) = (taught.catalog.to_string(), taught.entity.clone());
        Err(SeedError::OnlyAPart { api, entity, holders })
    }

    /// All that it holds and these catalogs show, as one wave.
    pub fn to_wave(&self, catalogs: &Catalogs) -> Wave {
        let shown = |id: &CatalogId, entity: &str| catalogs.get(id).filter(|c| c.offers(entity));
        let mut wave = Wave::default();
        for (entry, n) in self.entities.iter().zip(1..) {
            if shown(&entry.catalog, &entry.entity).is_some() {
                let (catalog, entity) = (entry.catalog.clone(), entry.entity.clone());
                wave.entities.push(TaughtEntity { symbol: format!("e{n}"), catalog, entity });
            }
        }
        for (RelationEntry { catalog, entity, name }, n) in self.relations.iter().zip(1..) {
            let found = shown(catalog, entity).and_then(|c| c.entity(entity)?.relations.get(name));
            let target = found.and_then(|r| shown(catalog, &r.target).map(|_| r.target.as_str()));
            let to = target.and_then(|target| self.symbol_of(catalog, target));
            if let (Some(from), Some(to)) = (self.symbol_of(catalog, entity), to) {
                let (symbol, name) = (format!("r{n}"), name.clone());
                let (catalog, entity) = (catalog.clone(), entity.clone());
                wave.relations.push(TaughtRelation { symbol, from, to, name, catalog, entity });
            }
        }
        for (MethodEntry { catalog, entity, capability }, n) in self.methods.iter().zip(1..) {
            let found = shown(catalog, entity).and_then(|c| c.capability(capability));
            if let (Some(_), Some(of)) = (found, self.symbol_of(catalog, entity)) {
                let (catalog, entity, capability) = (catalog.clone(), entity.clone(), capability.clone());
                wave.methods.push(TaughtMethod { symbol: format!("m{n}"), of, catalog, entity, capability });
            }
        }
        wave
    }

    /// `e4` of an exposed entity.
    pub fn symbol_of(&self, catalog: &CatalogId, entity: &str) -> Option<String> {
        let at = self.entities.iter().position(|e| e.entity == entity && &e.catalog == catalog)?;
        Some(format!("e{}", at + 1))
    }

    /// Exposed entities with their catalogs, in the order of their symbols.
    pub fn exposed_entities<'a>(&'a self, catalogs: &'a Catalogs) -> impl Iterator<Item = (&'a Arc<Catalog>, &'a str)> {
        self.entities.iter().filter_map(|entry| Some((catalogs.get(&entry.catalog)?, entry.entity.as_str())))
    }

    /// Methods with their catalogs, in the order of their symbols.
    pub fn taught_methods<'a>(
        &'a self,
        catalogs: &'a Catalogs,
    ) -> impl Iterator<Item = (&'a Arc<Catalog>, &'a Capability)> {
        self.methods.iter().filter_map(|entry| {
            let catalog = catalogs.get(&entry.catalog)?;
            Some((catalog, catalog.capability(&entry.capability)?))
        })
    }

    /// What would have to be asked for to get all of it again.
    pub fn seeds(&self) -> Vec<Seed> {
        let methods = |at: &EntityEntry| {
            let mine = self.methods.iter().filter(|m| m.catalog == at.catalog && m.entity == at.entity);
            mine.map(|m| m.capability.clone()).collect()
        };
        let seed = |at: &EntityEntry| Seed {
            catalog: at.catalog.clone(),
            entity: at.entity.clone(),
            capabilities: methods(at),
        };
        self.entities.iter().map(seed).collect()
    }

    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }

    /// Catalogs with at least one exposed entity.
    pub fn catalogs(&self) -> BTreeSet<&CatalogId> {
        self.entities.iter().map(|e| &e.catalog).collect()
    }

    /// What the symbols mean, for the checker. What a catalog no longer shows to this caller has no meaning.
    pub fn scope(&self, catalogs: &Catalogs) -> Scope {
        let mut scope = Scope::default();
        let mut at = BTreeMap::new();
        for (n, entry) in self.entities.iter().enumerate() {
            let Some(catalog) = catalogs.get(&entry.catalog).filter(|c| c.offers(&entry.entity)) else { continue };
            at.insert((&entry.catalog, entry.entity.as_str()), scope.entities.len());
            scope.entities.push(ExposedEntity {
                symbol: format!("e{}", n + 1),
                catalog: catalog.clone(),
                entity: entry.entity.clone(),
                relations: BTreeMap::new(),
                methods: BTreeMap::new(),
            });
        }
        for (n, entry) in self.relations.iter().enumerate() {
            if let Some(of) = at.get(&(&entry.catalog, entry.entity.as_str())) {
                scope.entities[*of].relations.insert(format!("r{}", n + 1), entry.name.clone());
            }
        }
        for (n, entry) in self.methods.iter().enumerate() {
            if let Some(of) = at.get(&(&entry.catalog, entry.entity.as_str())) {
                scope.entities[*of].methods.insert(format!("m{}", n + 1), entry.capability.clone());
            }
        }
        let meaning = |slot: &SlotEntry| SlotMeaning { catalog: slot.catalog.clone(), name: slot.name.as_str().into() };
        scope.slots = self.slots.iter().map(meaning).collect();
        scope
    }
}

/// Parameters of what a row stands for; the words of a search and what is beyond the shown ones have no name there.
fn visit_params<'a>(
    catalog: &'a Catalog,
    capability: &'a Capability,
    visit: &mut impl FnMut(&'a Catalog, &'a str, &'a Type, bool),
) {
    let RowSlots { filled, optional, .. } = RowSlots::of(capability);
    for param in capability.params.values() {
        let is_this = |p: &&Param| p.name == param.name;
        let named = filled.iter().any(is_this) || optional.iter().any(is_this);
        visit(catalog, &param.name, &param.kind, named);
    }
}

fn relation_leads_to(catalog: &Catalog, from: &str, relation: &str, to: &str) -> bool {
    catalog.entity(from).and_then(|e| e.relations.get(relation)).is_some_and(|r| r.target == to)
}

fn slot_entry(catalog: &Catalog, name: &str, kind: &Type) -> SlotEntry {
    SlotEntry { catalog: catalog.id.clone(), name: name.to_owned(), kind: kind.describe() }
}
