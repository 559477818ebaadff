//! Which fields of an entity, and which parameters of a capability, a table names.
//! Invariant: the key and what must be given are among them; the choice depends on the catalog alone. What is not named is
//! counted where it is left out, works by its name, and is listed whole by the correction of a wrong one.

use catalog::{Capability, Entity, Field, Kind, Param};

/// Fields of an entity that are written out beside its key; one with a few more is not cut.
const FIELDS: usize = 8;
/// Parameters that may be left out, likewise.
const OPTIONAL: usize = 4;
const FEW_FIELDS: usize = 6;
const FEW_OPTIONAL: usize = 4;

fn shown_count(all: usize, (most, few): (usize, usize)) -> usize {
    if all <= most + few { all } else { most }
}

/// The fields that a table names: the first ones in the catalog's order, which puts what matters first, and the key.
pub fn shown_fields(entity: &Entity) -> impl Iterator<Item = &Field> {
    let in_key = |field: &Field| entity.key.contains(&field.name);
    let others = entity.fields.len().saturating_sub(entity.key.len());
    let mut left = shown_count(others, (FIELDS, FEW_FIELDS));
    entity.fields.values().filter(move |field| {
        if in_key(field) {
            return true;
        }
        let shown = left > 0;
        left = left.saturating_sub(1);
        shown
    })
}

/// The parameters of a row.
pub struct RowSlots<'a> {
    /// Written in the expression, as places to fill.
    pub filled: Vec<&'a Param>,
    pub optional: Vec<&'a Param>,
    /// How many optional ones are not named.
    pub more: usize,
}

impl<'a> RowSlots<'a> {
    pub fn of(capability: &'a Capability) -> Self {
        let others = capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name));
        let (mut filled, mut optional): (Vec<&Param>, Vec<&Param>) = others.partition(|p| p.required);
        // A query with nothing required shows its first filter: the entity's own line already lists all.
        if capability.kind == Kind::Query && filled.is_empty() && !optional.is_empty() {
            filled.push(optional.remove(0));
        }
        let named = shown_count(optional.len(), (OPTIONAL, FEW_OPTIONAL));
        let more = optional.len() - named;
        optional.truncate(named);
        Self { filled, optional, more }
    }
}

/// How many of these places to fill, the first ones, are the slots of the entity's key without its last: all of them or none.
/// Of a key of two parts that would be one slot, which is as short as what could stand for it.
pub fn leading_key_slots(entity: &Entity, filled: &[&Param]) -> usize {
    let count = entity.key.len().saturating_sub(1);
    if count < 2 {
        return 0;
    }
    let alike =
        |(field, param): (&Field, &&Param)| param.required && param.name == field.name && param.kind == field.kind;
    if filled.len() >= count && entity.key_fields().take(count).zip(filled).all(alike) { count } else { 0 }
}
