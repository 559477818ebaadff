//! The rows of one wave: for each new entity its list, fields, get, query, search, method and relation lines, then what is new
//! of old ones.
//! Invariant: whatever the seeds' order, the same wave has the same rows in the same order.

use std::collections::{BTreeMap, HashSet};

use catalog::Catalog;

use super::writer::{TableState, Writer};
use crate::exposure::is_readable;
use crate::ledger::{Ledger, SymbolIndex, TaughtMethod, TaughtRelation, Wave};
use crate::seed::Catalogs;
use crate::settings::SlotStyle;

#[derive(Debug, Default)]
pub struct Row {
    pub expr: String,
    pub meaning: String,
    /// Further expressions that the meaning tells of: other relations of an entity, other calls that take nothing.
    pub also: Vec<String>,
}

/// The wave that led from `before` to `ledger`.
pub struct WaveInput<'a> {
    pub before: &'a Ledger,
    pub ledger: &'a Ledger,
    pub catalogs: &'a Catalogs,
    pub wave: &'a Wave,
    pub style: SlotStyle,
    /// Whether `..` stands for the leading slots of a key that an earlier row of the wave spells out.
    pub leads: bool,
}

/// What is new of one entity.
#[derive(Default)]
pub struct EntityChanges<'a> {
    pub is_new: bool,
    pub methods: Vec<&'a TaughtMethod>,
    pub relations: Vec<&'a TaughtRelation>,
}

pub fn rows(wave_input: &WaveInput<'_>) -> Vec<Row> {
    let wave = wave_input.wave;
    let mut changes: BTreeMap<usize, (&base::CatalogId, &str, EntityChanges<'_>)> = BTreeMap::new();
    for new in &wave.entities {
        changes.entry(number(&new.symbol)).or_insert((&new.catalog, &new.entity, EntityChanges::default())).2.is_new =
            true;
    }
    for new in &wave.methods {
        changes
            .entry(number(&new.of))
            .or_insert((&new.catalog, &new.entity, EntityChanges::default()))
            .2
            .methods
            .push(new);
    }
    for new in &wave.relations {
        changes
            .entry(number(&new.from))
            .or_insert((&new.catalog, &new.entity, EntityChanges::default()))
            .2
            .relations
            .push(new);
    }
    let names = SymbolIndex::of(wave_input.ledger);
    let mut state = TableState::new(wave_input, undescribed_entities(wave_input, &names), names);
    wave_input.before.visit_slots(wave_input.catalogs, |catalog, name, kind, is_named| {
        if is_named {
            state.is_named(catalog, name, kind);
        }
    });
    // New entities first, then what is new of old ones.
    let (new, old): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, (_, _, changes))| changes.is_new);
    for (at, (id, name, changes)) in new.into_iter().chain(old) {
        let Some(catalog) = wave_input.catalogs.get(id) else { continue };
        let Some(entity) = catalog.entity(name) else { continue };
        let due = changes.is_new || !wave_input.before.describes_fields_of(catalog, name);
        Writer::new(&mut state, catalog, entity, (at, due)).write(&changes);
    }
    describe_remaining(wave_input, &mut state);
    state.rows
}

/// A new entity that only calls which were taught before answer with is described on the first of them.
fn describe_remaining<'a>(wave_input: &WaveInput<'a>, state: &mut TableState<'a>) {
    if state.undescribed.is_empty() {
        return;
    }
    for method in wave_input.ledger.to_wave(wave_input.catalogs).methods {
        let Some(catalog) = wave_input.catalogs.get(&method.catalog) else { continue };
        let Some(capability) = catalog.capability(&method.capability).filter(|c| c.gives_rows()) else { continue };
        let gives = state.names.entity(&catalog.id, &capability.returns);
        let (Some(gives), Some(entity)) = (gives, catalog.entity(&method.entity)) else { continue };
        if state.undescribed.contains(&gives) {
            Writer::new(state, catalog, entity, (number(&method.of), false)).method(&method);
        }
    }
}

/// Entities that only relations and calls of others in this wave lead to: no line of their own names their fields, and no
/// earlier one did.
fn undescribed_entities(wave_input: &WaveInput<'_>, names: &SymbolIndex<'_>) -> HashSet<usize> {
    let own = |catalog: &Catalog, entity: &str| {
        let taught = wave_input
            .ledger
            .taught_methods(wave_input.catalogs)
            .filter(|(c, m)| c.id == catalog.id && m.entity == entity);
        is_readable(catalog, entity) || taught.into_iter().any(|(_, m)| m.gives_rows() && m.returns == entity)
    };
    let mut undescribed = HashSet::new();
    let mut add = |id: &base::CatalogId, name: &str| {
        let Some(catalog) = wave_input.catalogs.get(id) else { return };
        let known =
            wave_input.before.symbol_of(id, name).is_some() && wave_input.before.describes_fields_of(catalog, name);
        if !known && !own(catalog, name) {
            undescribed.extend(names.entity(id, name));
        }
    };
    for new in &wave_input.wave.entities {
        add(&new.catalog, &new.entity);
    }
    for method in &wave_input.wave.methods {
        let found = wave_input.catalogs.get(&method.catalog).and_then(|c| c.capability(&method.capability));
        found.into_iter().for_each(|c| add(&method.catalog, &c.returns));
    }
    for relation in &wave_input.wave.relations {
        let entity = wave_input.catalogs.get(&relation.catalog).and_then(|c| c.entity(&relation.entity));
        let found = entity.and_then(|e| e.relations.get(&relation.name));
        found.into_iter().for_each(|r| add(&relation.catalog, &r.target));
    }
    undescribed
}

/// 4 of `e4`.
pub fn number(symbol: &str) -> usize {
    symbol.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
