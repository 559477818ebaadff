//! The table rows of one wave: all rows of each new entity, then the new methods and relations of earlier entities.
//! Invariant: the rows and their order do not depend on the order of the seeds.

use std::collections::{BTreeMap, HashSet};

use base::CatalogId;
use catalog::Catalog;

use super::entity_rows::EntityWriter;
use super::state::{EntityChanges, TableRow, TableState, WaveInput, symbol_number};
use crate::exposure::is_readable;
use crate::ledger::SymbolIndex;

pub fn wave_rows(wave_input: &WaveInput<'_>) -> Vec<TableRow> {
    let symbols = SymbolIndex::of(wave_input.ledger);
    let mut state = TableState::new(wave_input, undescribed_entities(wave_input, &symbols), symbols);
    wave_input.before.visit_slots(wave_input.catalogs, |catalog, name, kind, is_named| {
        if is_named {
            state.mark_named(catalog, name, kind);
        }
    });
    let (new, earlier): (Vec<_>, Vec<_>) =
        changes_by_entity(wave_input).into_iter().partition(|(_, (_, _, changes))| changes.is_new);
    for (entity_number, (id, name, changes)) in new.into_iter().chain(earlier) {
        let Some(catalog) = wave_input.catalogs.get(id) else { continue };
        let Some(entity) = catalog.entity(name) else { continue };
        let needs_description = changes.is_new || !wave_input.before.describes_fields_of(catalog, name);
        EntityWriter::new(&mut state, catalog, entity, entity_number, needs_description).write(&changes);
    }
    describe_remaining(wave_input, &mut state);
    state.rows
}

type ChangesByEntity<'a> = BTreeMap<usize, (&'a CatalogId, &'a str, EntityChanges<'a>)>;

/// Returns the additions of the wave, grouped by entity number.
fn changes_by_entity<'a>(wave_input: &WaveInput<'a>) -> ChangesByEntity<'a> {
    let mut changes = ChangesByEntity::new();
    for new in &wave_input.wave.entities {
        changes_of(&mut changes, &new.symbol, &new.catalog, &new.entity).is_new = true;
    }
    for new in &wave_input.wave.methods {
        changes_of(&mut changes, &new.of, &new.catalog, &new.entity).methods.push(new);
    }
    for new in &wave_input.wave.relations {
        changes_of(&mut changes, &new.from, &new.catalog, &new.entity).relations.push(new);
    }
    changes
}

fn changes_of<'m, 'a>(
    changes: &'m mut ChangesByEntity<'a>,
    symbol: &str,
    catalog: &'a CatalogId,
    entity: &'a str,
) -> &'m mut EntityChanges<'a> {
    &mut changes.entry(symbol_number(symbol)).or_insert((catalog, entity, EntityChanges::default())).2
}

/// Describes the entities that only methods of earlier waves return. The first of these methods is written again with the
/// description.
fn describe_remaining<'a>(wave_input: &WaveInput<'a>, state: &mut TableState<'a>) {
    if state.undescribed.is_empty() {
        return;
    }
    for method in wave_input.ledger.to_wave(wave_input.catalogs).methods {
        let Some(catalog) = wave_input.catalogs.get(&method.catalog) else { continue };
        let Some(capability) = catalog.capability(&method.capability).filter(|c| c.gives_rows()) else { continue };
        let Some(entity) = catalog.entity(&method.entity) else { continue };
        let Some(returned) = state.symbols.entity(&catalog.id, &capability.returns) else { continue };
        if state.undescribed.contains(&returned) {
            EntityWriter::new(state, catalog, entity, symbol_number(&method.of), false).write_method(&method);
        }
    }
}

/// Returns the numbers of the entities of this wave that neither have a row of their own nor were described by an earlier wave.
/// Only relations and calls of other entities return rows of them.
fn undescribed_entities(wave_input: &WaveInput<'_>, symbols: &SymbolIndex<'_>) -> HashSet<usize> {
    let has_own_rows = |catalog: &Catalog, entity: &str| {
        let mut methods = wave_input.ledger.taught_methods(wave_input.catalogs);
        is_readable(catalog, entity)
            || methods.any(|(c, m)| c.id == catalog.id && m.entity == entity && m.gives_rows() && m.returns == entity)
    };
    let mut undescribed = HashSet::new();
    let mut add = |id: &CatalogId, name: &str| {
        let Some(catalog) = wave_input.catalogs.get(id) else { return };
        let was_described =
            wave_input.before.symbol_of(id, name).is_some() && wave_input.before.describes_fields_of(catalog, name);
        if !was_described && !has_own_rows(catalog, name) {
            undescribed.extend(symbols.entity(id, name));
        }
    };
    for new in &wave_input.wave.entities {
        add(&new.catalog, &new.entity);
    }
    for method in &wave_input.wave.methods {
        let capability = wave_input.catalogs.get(&method.catalog).and_then(|c| c.capability(&method.capability));
        capability.into_iter().for_each(|c| add(&method.catalog, &c.returns));
    }
    for taught in &wave_input.wave.relations {
        let entity = wave_input.catalogs.get(&taught.catalog).and_then(|c| c.entity(&taught.entity));
        let relation = entity.and_then(|e| e.relations.get(&taught.name));
        relation.into_iter().for_each(|r| add(&taught.catalog, &r.target));
    }
    undescribed
}
