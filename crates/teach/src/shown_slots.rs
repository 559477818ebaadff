//! The choice of the fields and parameters that a table names.
//! Invariant: the choice depends only on the catalog and includes the key and the required parameters. An omitted slot is
//! counted in its row, is valid in programs, and is listed in the correction of a wrong name.

use catalog::{Capability, Entity, Field, Kind, Param};

/// The number of fields beside the key that are shown of a long list.
const SHOWN_FIELDS: usize = 8;
/// The number of optional parameters that are shown of a long list.
const SHOWN_OPTIONAL_PARAMS: usize = 4;
/// The number of fields by which a list may exceed the limit and still be shown in full.
const MAX_EXTRA_FIELDS: usize = 6;
/// The number of optional parameters by which a list may exceed the limit and still be shown in full.
const MAX_EXTRA_OPTIONAL_PARAMS: usize = 4;

/// Returns the number of shown items of a list with `all` items: `most`, or all items if at most `few` would be omitted.
fn shown_count(all: usize, most: usize, few: usize) -> usize {
    if all <= most + few { all } else { most }
}

/// Returns the fields that a table names: the key, then the first fields of the catalog, because authors write important fields
/// first.
pub fn shown_fields(entity: &Entity) -> impl Iterator<Item = &Field> {
    let others = entity.fields.len().saturating_sub(entity.key.len());
    let mut left = shown_count(others, SHOWN_FIELDS, MAX_EXTRA_FIELDS);
    entity.fields.values().filter(move |field| {
        if entity.key.contains(&field.name) {
            return true;
        }
        let shown = left > 0;
        left = left.saturating_sub(1);
        shown
    })
}

/// The parameters of a capability, divided by their place in the table row.
pub struct RowSlots<'a> {
    /// The parameters that the row's expression contains as places to fill.
    pub filled: Vec<&'a Param>,
    /// The optional parameters that the row's right cell names after `opt`.
    pub optional: Vec<&'a Param>,
    /// The number of omitted optional parameters.
    pub more: usize,
}

impl<'a> RowSlots<'a> {
    pub fn of(capability: &'a Capability) -> Self {
        // The text of a search is written in the expression as `~"text"`, so it is not listed as a parameter.
        let others = capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name));
        let (mut filled, mut optional): (Vec<&Param>, Vec<&Param>) = others.partition(|p| p.required);
        // A query without required parameters shows its first filter. Without a filter, its expression would repeat the
        // entity's list row.
        if capability.kind == Kind::Query && filled.is_empty() && !optional.is_empty() {
            filled.push(optional.remove(0));
        }
        let shown = shown_count(optional.len(), SHOWN_OPTIONAL_PARAMS, MAX_EXTRA_OPTIONAL_PARAMS);
        let more = optional.len() - shown;
        optional.truncate(shown);
        Self { filled, optional, more }
    }
}

/// Returns the number of leading parameters that equal the entity's key without its last slot. The result is the number of
/// these slots, or 0 if not all match. It is 0 for a key of two parts, because `..` would not be shorter than one slot.
pub fn leading_key_slots(entity: &Entity, filled: &[&Param]) -> usize {
    let count = entity.key.len().saturating_sub(1);
    if count < 2 {
        return 0;
    }
    let is_key_slot =
        |(field, param): (&Field, &&Param)| param.required && param.name == field.name && param.kind == field.kind;
    if filled.len() >= count && entity.key_fields().take(count).zip(filled).all(is_key_slot) { count } else { 0 }
}
