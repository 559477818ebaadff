//! A ledger looked up the other way: from what is meant to its symbol. Made once for a rendering.
//! Invariant: it says what the ledger says; it holds no symbol of its own.

use base::CatalogId;
use catalog::{Catalog, Type};
// why: names of catalogs that were read and limited before; a rendering looks up thousands of them.
use rustc_hash::FxHashMap;

use super::Ledger;

pub struct SymbolIndex<'a> {
    entities: FxHashMap<(&'a CatalogId, &'a str), usize>,
    /// By catalog and name: the types, each with its number. Nearly always one.
    slots: FxHashMap<(&'a CatalogId, &'a str), SlotTypes<'a>>,
    slot_count: usize,
}

enum SlotTypes<'a> {
    One(&'a str, usize),
    Several(Vec<(&'a str, usize)>),
}

impl<'a> SymbolIndex<'a> {
    pub fn of(ledger: &'a Ledger) -> Self {
        let entities = ledger.entities.iter().zip(1..).map(|(e, n)| ((&e.catalog, e.entity.as_str()), n)).collect();
        let slots = slots(ledger);
        Self { entities, slots, slot_count: ledger.slots.len() }
    }

    /// The number of an exposed entity: 4 for `e4`.
    pub fn entity(&self, catalog: &CatalogId, entity: &str) -> Option<usize> {
        self.entities.get(&(catalog, entity)).copied()
    }

    /// The number of a slot: 7 for `p7`.
    pub fn slot(&self, catalog: &Catalog, name: &str, kind: &Type) -> Option<usize> {
        match self.slots.get(&(&catalog.id, name))? {
            // A type is written out only where its text decides.
            SlotTypes::One(_, only) => Some(*only),
            SlotTypes::Several(several) => find(several, kind),
        }
    }

    /// Whether there is a slot of this name and type.
    pub fn has_slot(&self, catalog: &Catalog, name: &str, kind: &Type) -> bool {
        match self.slots.get(&(&catalog.id, name)) {
            Some(SlotTypes::One(only, n)) => find(&[(*only, *n)], kind).is_some(),
            Some(SlotTypes::Several(several)) => find(several, kind).is_some(),
            None => false,
        }
    }

    /// The largest number of a slot.
    pub fn slot_count(&self) -> usize {
        self.slot_count
    }
}

fn slots(ledger: &Ledger) -> FxHashMap<(&CatalogId, &str), SlotTypes<'_>> {
    let mut slots: FxHashMap<(&CatalogId, &str), SlotTypes<'_>> = FxHashMap::default();
    for (slot, n) in ledger.slots.iter().zip(1..) {
        let kind = slot.kind.as_str();
        slots
            .entry((&slot.catalog, &slot.name))
            .and_modify(|kinds| match kinds {
                SlotTypes::One(first, at) => *kinds = SlotTypes::Several(vec![(*first, *at), (kind, n)]),
                SlotTypes::Several(several) => several.push((kind, n)),
            })
            .or_insert(SlotTypes::One(kind, n));
    }
    slots
}

fn find(several: &[(&str, usize)], kind: &Type) -> Option<usize> {
    let of = |wanted: &str| several.iter().find(|(kind, _)| *kind == wanted).map(|(_, n)| *n);
    kind.word().map_or_else(|| of(&kind.describe()), of)
}
