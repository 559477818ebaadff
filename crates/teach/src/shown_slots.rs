//! The choice which fields of an entity and which parameters of a capability a table names.
//! Invariant: the choice depends on the catalog alone, and includes the key and the required parameters. A slot that is left
//! out is counted in its row, works in programs, and is listed by the correction of a wrong name.

use catalog::{Capability, Entity, Field, Kind, Param};

/// How many fields of a long list are shown beside the key.
const FIELDS: usize = 8;
/// How many optional parameters of a long list are shown.
const OPTIONAL: usize = 4;
/// How many more fields a list may have and still be shown whole.
const FEW_FIELDS: usize = 6;
/// The same for optional parameters.
const FEW_OPTIONAL: usize = 4;

/// Returns how many of `all` are shown.
fn shown_count(all: usize, most: usize, few: usize) -> usize {
    if all <= most + few { all } else { most }
}

/// Returns the fields that a table names: the key, and the first ones in the catalog's order, which has the important ones
/// first.
pub fn shown_fields(entity: &Entity) -> impl Iterator<Item = &Field> {
    let others = entity.fields.len().saturating_sub(entity.key.len());
    let mut left = shown_count(others, FIELDS, FEW_FIELDS);
    entity.fields.values().filter(move |field| {
        if entity.key.contains(&field.name) {
            return true;
        }
        let shown = left > 0;
        left = left.saturating_sub(1);
        shown
    })
}

/// The parameters of a capability as its row shows them.
pub struct RowSlots<'a> {
    /// Written in the expression, as places to fill.
    pub filled: Vec<&'a Param>,
    /// Named after `opt` in the meaning.
    pub optional: Vec<&'a Param>,
    /// The number of optional parameters that are not named.
    pub more: usize,
}

impl<'a> RowSlots<'a> {
    pub fn of(capability: &'a Capability) -> Self {
        // The text of a search stands in the expression as `~"text"`, without a name.
        let others = capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name));
        let (mut filled, mut optional): (Vec<&Param>, Vec<&Param>) = others.partition(|p| p.required);
        // A query without required parameters shows its first filter, because the entity's own row lists all rows already.
        if capability.kind == Kind::Query && filled.is_empty() && !optional.is_empty() {
            filled.push(optional.remove(0));
        }
        let shown = shown_count(optional.len(), OPTIONAL, FEW_OPTIONAL);
        let more = optional.len() - shown;
        optional.truncate(shown);
        Self { filled, optional, more }
    }
}

/// Returns how many of the first parameters are the key of the entity without its last slot, in the key's order. The answer is
/// all of these slots or 0. It is 0 for a key of two parts, because `..` would be no shorter than its one slot.
pub fn leading_key_slots(entity: &Entity, filled: &[&Param]) -> usize {
    let count = entity.key.len().saturating_sub(1);
    if count < 2 {
        return 0;
    }
    let is_key_slot =
        |(field, param): (&Field, &&Param)| param.required && param.name == field.name && param.kind == field.kind;
    if filled.len() >= count && entity.key_fields().take(count).zip(filled).all(is_key_slot) { count } else { 0 }
}
