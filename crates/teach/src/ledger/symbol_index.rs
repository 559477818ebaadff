//! The symbols of a ledger by their meaning: the number of an entity or of a slot. It is made once for a rendering.
//! Invariant: it says the same as the ledger, and numbers nothing itself.

use base::CatalogId;
use catalog::{Catalog, Type};
// why: its keys are names of catalogs, which were read and limited before; a rendering looks up thousands of them.
use rustc_hash::FxHashMap;

use super::Ledger;

pub struct SymbolIndex<'a> {
    /// The numbers of the exposed entities.
    entities: FxHashMap<(&'a CatalogId, &'a str), usize>,
    /// By catalog and name: the types of the slots of this name with their numbers. There is nearly always one type.
    slots: FxHashMap<(&'a CatalogId, &'a str), SlotTypes<'a>>,
    /// The largest number of a slot.
    slot_count: usize,
}

/// The slots of one name, each as the text of its type and its number.
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
            // The text of a type is dear to write, so it is written only where it decides between several slots.
            SlotTypes::One(_, only) => Some(*only),
            SlotTypes::Several(several) => find_type(several, kind),
        }
    }

    /// Returns whether there is a slot of this name and type.
    pub fn has_slot(&self, catalog: &Catalog, name: &str, kind: &Type) -> bool {
        match self.slots.get(&(&catalog.id, name)) {
            Some(SlotTypes::One(only, number)) => find_type(&[(*only, *number)], kind).is_some(),
            Some(SlotTypes::Several(several)) => find_type(several, kind).is_some(),
            None => false,
        }
    }

    /// Returns the largest number of a slot.
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
