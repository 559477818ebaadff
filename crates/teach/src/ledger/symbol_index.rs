//! The reverse index of a ledger: from an entity or a slot to the number of its symbol. One index is built for each rendering.
//! Invariant: the index contains exactly the numbers of the ledger and assigns none.

use base::CatalogId;
use catalog::{Catalog, Type};
// why: its keys are names of catalogs, which were read and limited before; a rendering looks up thousands of them.
use rustc_hash::FxHashMap;

use super::Ledger;

pub struct SymbolIndex<'a> {
    /// The number of each exposed entity, by catalog and name.
    entities: FxHashMap<(&'a CatalogId, &'a str), usize>,
    /// The slots of each name, by catalog and name. Nearly every name has only one type.
    slots: FxHashMap<(&'a CatalogId, &'a str), SlotTypes<'a>>,
    /// The number of slots, which is also the largest slot number.
    slot_count: usize,
}

/// The slots of one name: the text of each type with the slot number.
enum SlotTypes<'a> {
    One(&'a str, usize),
    Several(Vec<(&'a str, usize)>),
}

impl<'a> SymbolIndex<'a> {
    pub fn of(ledger: &'a Ledger) -> Self {
        let entities = ledger.entities.iter().zip(1..).map(|(e, n)| ((&e.catalog, e.entity.as_str()), n)).collect();
        Self { entities, slots: slots_by_name(ledger), slot_count: ledger.slots.len() }
    }

    /// Returns the number of an exposed entity: 4 for `e4`.
    pub fn entity(&self, catalog: &CatalogId, entity: &str) -> Option<usize> {
        self.entities.get(&(catalog, entity)).copied()
    }

    /// Returns the number of a slot: 7 for `p7`.
    pub fn slot(&self, catalog: &Catalog, name: &str, kind: &Type) -> Option<usize> {
        match self.slots.get(&(&catalog.id, name))? {
            // Formatting a type as text is slow, so it is only done to choose between several slots of the same name.
            SlotTypes::One(_, only) => Some(*only),
            SlotTypes::Several(several) => find_type(several, kind),
        }
    }

    /// Returns whether the ledger has a slot with this name and type.
    pub fn has_slot(&self, catalog: &Catalog, name: &str, kind: &Type) -> bool {
        match self.slots.get(&(&catalog.id, name)) {
            Some(SlotTypes::One(only, number)) => find_type(&[(*only, *number)], kind).is_some(),
            Some(SlotTypes::Several(several)) => find_type(several, kind).is_some(),
            None => false,
        }
    }

    /// Returns the number of slots, which is also the largest slot number.
    pub fn slot_count(&self) -> usize {
        self.slot_count
    }
}

fn slots_by_name(ledger: &Ledger) -> FxHashMap<(&CatalogId, &str), SlotTypes<'_>> {
    let mut slots: FxHashMap<(&CatalogId, &str), SlotTypes<'_>> = FxHashMap::default();
    for (slot, number) in ledger.slots.iter().zip(1..) {
        let kind = slot.kind.as_str();
        slots
            .entry((&slot.catalog, &slot.name))
            .and_modify(|types| match types {
                SlotTypes::One(first_kind, first_number) => {
                    *types = SlotTypes::Several(vec![(*first_kind, *first_number), (kind, number)]);
                }
                SlotTypes::Several(several) => several.push((kind, number)),
            })
            .or_insert(SlotTypes::One(kind, number));
    }
    slots
}

fn find_type(types: &[(&str, usize)], kind: &Type) -> Option<usize> {
    let number_of = |wanted: &str| types.iter().find(|(known, _)| *known == wanted).map(|(_, number)| *number);
    kind.word().map_or_else(|| number_of(&kind.describe()), number_of)
}
