//! The ledger: the append-only list of the meanings of a session's symbols `e#`, `m#`, `p#` and `r#`.
//! Invariant: `extend` never changes an existing entry, and the added wave does not depend on the order of the seeds.

mod symbol_index;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use base::CatalogId;
use catalog::{Capability, Catalog, Param, Type};
use lang::scope::{ExposedEntity, Scope, SlotMeaning};
use serde::{Deserialize, Serialize};

use crate::exposure::{Exposure, capabilities_returning, is_readable};
use crate::request::{Catalogs, Seed, SeedError, TeachRequest};
use crate::shown_slots::{RowSlots, shown_fields};

pub use symbol_index::SymbolIndex;

/// The meanings of a session's symbols. The number of a symbol is the position of its entry, counted from 1, so entries must
/// never be removed or moved. The ledger is stored with its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The entities of `e1`, `e2`, …
    entities: Vec<EntityEntry>,
    /// The fields and parameters of `p1`, `p2`, …
    slots: Vec<SlotEntry>,
    /// The relations of `r1`, `r2`, …
    relations: Vec<RelationEntry>,
    /// The methods of `m1`, `m2`, … The field has a default, because stored ledgers may lack it.
    #[serde(default)]
    methods: Vec<MethodEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct EntityEntry {
    catalog: CatalogId,
    entity: String,
}

/// A slot: a field or a parameter. Slots with the same catalog, name and type share one symbol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SlotEntry {
    catalog: CatalogId,
    name: String,
    /// The text of the slot's type.
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RelationEntry {
    catalog: CatalogId,
    /// The name of the entity that declares the relation.
    entity: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct MethodEntry {
    catalog: CatalogId,
    entity: String,
    capability: String,
}

/// The result of [`Ledger::extend`].
pub struct Extension {
    /// The ledger with the additions.
    pub ledger: Ledger,
    /// The additions. The caller must teach them.
    pub wave: Wave,
}

/// One addition to a ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wave {
    pub entities: Vec<TaughtEntity>,
    /// New relations, of entities of this wave and of earlier waves.
    pub relations: Vec<TaughtRelation>,
    /// New methods, of entities of this wave and of earlier waves.
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
    /// The symbol of the entity that declares the relation.
    pub from: String,
    /// The symbol of the relation's target entity.
    pub to: String,
    pub name: String,
    pub catalog: CatalogId,
    /// The name of the entity that declares the relation.
    pub entity: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaughtMethod {
    pub symbol: String,
    /// The symbol of the method's entity.
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
    /// Returns the ledger with everything that the request exposes. A request with an invalid seed is refused as a whole.
    pub fn extend(&self, catalogs: &Catalogs, request: &TeachRequest<'_>) -> Result<Extension, SeedError> {
        let earlier = self.entities.iter().map(|e| (&e.catalog, e.entity.as_str()));
        let exposure = Exposure::of(catalogs, request, earlier)?;
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
        let new: Vec<EntityEntry> = exposure
            .entities
            .iter()
            .filter(|entity| !known.contains(*entity))
            .map(|(catalog, entity)| EntityEntry { catalog: (*catalog).clone(), entity: (*entity).to_owned() })
            .collect();
        let mut taught = Vec::new();
        for entry in new {
            self.entities.push(entry.clone());
            let symbol = format!("e{}", self.entities.len());
            taught.push(TaughtEntity { symbol, catalog: entry.catalog, entity: entry.entity });
        }
        taught
    }

    fn add_methods(&mut self, exposure: &Exposure<'_>) -> Vec<TaughtMethod> {
        let known: HashSet<(&CatalogId, &str, &str)> =
            self.methods.iter().map(|m| (&m.catalog, m.entity.as_str(), m.capability.as_str())).collect();
        let new: Vec<MethodEntry> = exposure
            .methods
            .iter()
            .filter(|method| !known.contains(*method))
            .map(|(catalog, entity, capability)| MethodEntry {
                catalog: (*catalog).clone(),
                entity: (*entity).to_owned(),
                capability: (*capability).to_owned(),
            })
            .collect();
        let mut taught = Vec::new();
        for entry in new {
            let of = self.symbol_of(&entry.catalog, &entry.entity).unwrap_or_default();
            self.methods.push(entry.clone());
            let symbol = format!("m{}", self.methods.len());
            let MethodEntry { catalog, entity, capability } = entry;
            taught.push(TaughtMethod { symbol, of, catalog, entity, capability });
        }
        taught
    }

    /// Adds every relation between two exposed entities, also between an entity of an earlier wave and an entity of this wave.
    fn add_relations(&mut self, catalogs: &Catalogs) -> Vec<TaughtRelation> {
        let numbers: BTreeMap<(&CatalogId, &str), usize> =
            self.entities.iter().zip(1..).map(|(e, n)| ((&e.catalog, e.entity.as_str()), n)).collect();
        let known: BTreeSet<&RelationEntry> = self.relations.iter().collect();
        // A sorted map makes the numbers independent of the order of the seeds.
        let mut new = BTreeMap::new();
        for (&(id, from), from_number) in &numbers {
            let entity = catalogs.get(id).and_then(|c| c.entity(from));
            for relation in entity.into_iter().flat_map(|e| e.relations.values()) {
                let Some(to_number) = numbers.get(&(id, relation.target.as_str())) else { continue };
                let entry = RelationEntry { catalog: id.clone(), entity: from.to_owned(), name: relation.name.clone() };
                if !known.contains(&entry) {
                    new.insert(entry, (format!("e{from_number}"), format!("e{to_number}")));
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

    /// Calls `visit` for each field and parameter of the exposed entities and capabilities. The last argument of `visit` is
    /// whether a row of the table names the slot. The text of a search and a single-part key are written without a name.
    pub(crate) fn visit_slots<'a>(
        &self,
        catalogs: &'a Catalogs,
        mut visit: impl FnMut(&'a Catalog, &'a str, &'a Type, bool),
    ) {
        for entry in &self.entities {
            let Some(catalog) = catalogs.get(&entry.catalog) else { continue };
            let Some(entity) = catalog.entity(&entry.entity) else { continue };
            let is_described = self.describes_fields_of(catalog, &entity.name);
            let shown: Vec<&str> = shown_fields(entity).map(|f| f.name.as_str()).collect();
            for field in entity.fields.values() {
                let in_key = entity.key.len() > 1 && entity.key.contains(&field.name);
                let is_named = (is_described && shown.contains(&field.name.as_str())) || in_key;
                visit(catalog, &field.name, &field.kind, is_named);
            }
            for capability in catalog.queries(&entity.name).chain(catalog.searches(&entity.name)) {
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

    /// Returns whether the table names the fields of an entity. It does if a read, a taught method or a taught relation returns
    /// rows of the entity.
    pub(crate) fn describes_fields_of(&self, catalog: &Catalog, entity: &str) -> bool {
        is_readable(catalog, entity)
            || self.has_method_returning(catalog, entity)
            || self.has_relation_to(catalog, entity)
    }

    /// Returns whether several table rows start with an instance of one entity with a multi-part key. Only the first of these
    /// rows spells out the key.
    pub(crate) fn repeats_a_key(&self, catalogs: &Catalogs) -> bool {
        let mut rows: HashMap<(&CatalogId, &str), usize> = HashMap::new();
        for (catalog, entity) in self.exposed_entities(catalogs) {
            if catalog.entity(entity).is_some_and(|e| e.key.len() > 1) && catalog.get_of(entity).is_some() {
                rows.insert((&catalog.id, entity), 1);
            }
        }
        for relation in &self.relations {
            // Relations of an entity without a get start with a list and not with an instance, so they are not counted.
            rows.entry((&relation.catalog, &relation.entity)).and_modify(|n| *n += 1);
        }
        for (catalog, method) in self.taught_methods(catalogs).filter(|(_, m)| m.needs_anchor()) {
            if catalog.entity(&method.entity).is_some_and(|e| e.key.len() > 1) {
                *rows.entry((&catalog.id, &method.entity)).or_default() += 1;
            }
        }
        rows.into_values().any(|n| n > 1)
    }

    /// Returns an error for an entity that no taught capability or relation uses. Its rows only occur inside rows of other
    /// entities, so the error names up to five of those entities.
    fn require_callable(&self, catalogs: &Catalogs, taught: &TaughtEntity) -> Result<(), SeedError> {
        let Some(catalog) = catalogs.get(&taught.catalog) else { return Ok(()) };
        let has_method = self.methods.iter().any(|m| m.catalog == taught.catalog && m.entity == taught.entity);
        if has_method || self.describes_fields_of(catalog, &taught.entity) {
            return Ok(());
        }
        let related = catalog.offered().filter(|e| e.relations.values().any(|r| r.target == taught.entity));
        let returning = capabilities_returning(catalog, &taught.entity).map(|c| c.entity.as_str());
        let holders: BTreeSet<&str> = related.map(|e| e.name.as_str()).chain(returning).collect();
        Err(SeedError::OnlyAPart {
            api: taught.catalog.to_string(),
            entity: taught.entity.clone(),
            holders: holders.into_iter().take(5).map(str::to_owned).collect(),
        })
    }

    fn has_method_returning(&self, catalog: &Catalog, entity: &str) -> bool {
        let mut methods = self.methods.iter().filter(|m| m.catalog == catalog.id);
        methods.any(|m| catalog.capability(&m.capability).is_some_and(|c| c.gives_rows() && c.returns == entity))
    }

    fn has_relation_to(&self, catalog: &Catalog, entity: &str) -> bool {
        let mut relations = self.relations.iter().filter(|r| r.catalog == catalog.id);
        relations.any(|r| {
            let relation = catalog.entity(&r.entity).and_then(|e| e.relations.get(&r.name));
            relation.is_some_and(|relation| relation.target == entity)
        })
    }

    /// Returns all entries of the ledger that are visible in these catalogs as one wave. The symbols keep their numbers, so a
    /// hidden entry leaves a gap.
    pub fn to_wave(&self, catalogs: &Catalogs) -> Wave {
        let shown = |id: &CatalogId, entity: &str| catalogs.get(id).filter(|c| c.offers(entity));
        let mut wave = Wave::default();
        for (entry, n) in self.entities.iter().zip(1..) {
            if shown(&entry.catalog, &entry.entity).is_some() {
                let EntityEntry { catalog, entity } = entry.clone();
                wave.entities.push(TaughtEntity { symbol: format!("e{n}"), catalog, entity });
            }
        }
        for (entry, n) in self.relations.iter().zip(1..) {
            let catalog = shown(&entry.catalog, &entry.entity);
            let relation = catalog.and_then(|c| c.entity(&entry.entity)?.relations.get(&entry.name));
            let target = relation.map(|r| r.target.as_str()).filter(|t| shown(&entry.catalog, t).is_some());
            let from = self.symbol_of(&entry.catalog, &entry.entity);
            let to = target.and_then(|target| self.symbol_of(&entry.catalog, target));
            if let (Some(from), Some(to)) = (from, to) {
                let RelationEntry { catalog, entity, name } = entry.clone();
                wave.relations.push(TaughtRelation { symbol: format!("r{n}"), from, to, name, catalog, entity });
            }
        }
        for (entry, n) in self.methods.iter().zip(1..) {
            let catalog = shown(&entry.catalog, &entry.entity);
            let capability = catalog.and_then(|c| c.capability(&entry.capability));
            if let (Some(_), Some(of)) = (capability, self.symbol_of(&entry.catalog, &entry.entity)) {
                let MethodEntry { catalog, entity, capability } = entry.clone();
                wave.methods.push(TaughtMethod { symbol: format!("m{n}"), of, catalog, entity, capability });
            }
        }
        wave
    }

    /// Returns the symbol of an entity, such as `e4`; `None` if the entity is not exposed.
    pub fn symbol_of(&self, catalog: &CatalogId, entity: &str) -> Option<String> {
        let position = self.entities.iter().position(|e| e.entity == entity && &e.catalog == catalog)?;
        Some(format!("e{}", position + 1))
    }

    /// Returns the exposed entities with their catalogs, in symbol order.
    pub fn exposed_entities<'a>(&'a self, catalogs: &'a Catalogs) -> impl Iterator<Item = (&'a Arc<Catalog>, &'a str)> {
        self.entities.iter().filter_map(|entry| Some((catalogs.get(&entry.catalog)?, entry.entity.as_str())))
    }

    /// Returns the taught methods with their catalogs, in symbol order.
    pub fn taught_methods<'a>(
        &'a self,
        catalogs: &'a Catalogs,
    ) -> impl Iterator<Item = (&'a Arc<Catalog>, &'a Capability)> {
        self.methods.iter().filter_map(|entry| {
            let catalog = catalogs.get(&entry.catalog)?;
            Some((catalog, catalog.capability(&entry.capability)?))
        })
    }

    /// Returns seeds that teach a new session all entities and methods of this ledger.
    pub fn seeds(&self) -> Vec<Seed> {
        let seed = |entry: &EntityEntry| {
            let methods = self.methods.iter().filter(|m| m.catalog == entry.catalog && m.entity == entry.entity);
            Seed {
                catalog: entry.catalog.clone(),
                entity: entry.entity.clone(),
                capabilities: methods.map(|m| m.capability.clone()).collect(),
            }
        };
        self.entities.iter().map(seed).collect()
    }

    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }

    /// Returns the ids of the catalogs with at least one exposed entity.
    pub fn catalogs(&self) -> BTreeSet<&CatalogId> {
        self.entities.iter().map(|e| &e.catalog).collect()
    }

    /// Returns the symbols with their meanings for the checker of programs. A symbol is missing if the caller's view of the
    /// catalog hides its entity.
    pub fn scope(&self, catalogs: &Catalogs) -> Scope {
        let mut scope = Scope::default();
        let mut positions = BTreeMap::new();
        for (n, entry) in self.entities.iter().enumerate() {
            let Some(catalog) = catalogs.get(&entry.catalog).filter(|c| c.offers(&entry.entity)) else { continue };
            positions.insert((&entry.catalog, entry.entity.as_str()), scope.entities.len());
            scope.entities.push(ExposedEntity {
                symbol: format!("e{}", n + 1),
                catalog: catalog.clone(),
                entity: entry.entity.clone(),
                relations: BTreeMap::new(),
                methods: BTreeMap::new(),
            });
        }
        for (n, entry) in self.relations.iter().enumerate() {
            if let Some(position) = positions.get(&(&entry.catalog, entry.entity.as_str())) {
                scope.entities[*position].relations.insert(format!("r{}", n + 1), entry.name.clone());
            }
        }
        for (n, entry) in self.methods.iter().enumerate() {
            if let Some(position) = positions.get(&(&entry.catalog, entry.entity.as_str())) {
                scope.entities[*position].methods.insert(format!("m{}", n + 1), entry.capability.clone());
            }
        }
        let meaning = |slot: &SlotEntry| SlotMeaning { catalog: slot.catalog.clone(), name: slot.name.as_str().into() };
        scope.slots = self.slots.iter().map(meaning).collect();
        scope
    }
}

/// Calls `visit` for each parameter of a capability. Table rows do not name the text of a search and the omitted optional
/// parameters.
fn visit_params<'a>(
    catalog: &'a Catalog,
    capability: &'a Capability,
    visit: &mut impl FnMut(&'a Catalog, &'a str, &'a Type, bool),
) {
    let RowSlots { filled, optional, .. } = RowSlots::of(capability);
    for param in capability.params.values() {
        let is_this = |p: &&Param| p.name == param.name;
        let is_named = filled.iter().any(is_this) || optional.iter().any(is_this);
        visit(catalog, &param.name, &param.kind, is_named);
    }
}

fn slot_entry(catalog: &Catalog, name: &str, kind: &Type) -> SlotEntry {
    SlotEntry { catalog: catalog.id.clone(), name: name.to_owned(), kind: kind.describe() }
}
