//! Which fields of an entity a table names.
//! Invariant: the key is among them; the choice depends on the catalog alone.

use catalog::{Entity, Field};

/// Fields of an entity that are written out; one with a few more is not cut.
const FIELDS: usize = 24;
const FEW: usize = 4;

/// The fields that a table names: the first ones in the catalog's order, which puts what matters first, and the key. The others
/// can be used by their names, which the rows of a result show and the checker knows.
pub fn shown_fields(entity: &Entity) -> impl Iterator<Item = &Field> {
    let all = entity.fields.len() <= FIELDS + FEW;
    let shown = move |(at, field): &(usize, &Field)| all || *at < FIELDS || entity.key.contains(&field.name);
    entity.fields.values().enumerate().filter(shown).map(|(_, field)| field)
}
