//! A ledger looked up the other way: from what is meant to its symbol. Made once for a rendering.
//! Invariant: it says what the ledger says; it holds no symbol of its own.

use std::collections::HashMap;

use base::CatalogId;
use catalog::{Catalog, Type};

use super::Ledger;

pub struct Names<'a> {
    entities: HashMap<(&'a CatalogId, &'a str), usize>,
    /// By catalog and name: the types, each with its number. Nearly always one.
    slots: HashMap<(&'a CatalogId, &'a str), Vec<(&'a str, usize)>>,
}

impl<'a> Names<'a> {
    pub fn of(ledger: &'a Ledger) -> Self {
        let entities = ledger.entities.iter().zip(1..).map(|(e, n)| ((&e.catalog, e.entity.as_str()), n)).collect();
        let mut slots: HashMap<(&CatalogId, &str), Vec<(&str, usize)>> = HashMap::new();
        for (slot, n) in ledger.slots.iter().zip(1..) {
            slots.entry((&slot.catalog, &slot.name)).or_default().push((&slot.kind, n));
        }
        Self { entities, slots }
    }

    /// `e4` of an exposed entity.
    pub fn entity(&self, catalog: &CatalogId, entity: &str) -> Option<String> {
        self.entities.get(&(catalog, entity)).map(|n| format!("e{n}"))
    }

    /// The number of a slot: 7 for `p7`.
    pub fn slot(&self, catalog: &Catalog, name: &str, kind: &Type) -> Option<usize> {
        match self.slots.get(&(&catalog.id, name))?.as_slice() {
            // A type is written out only where its text decides.
            [(_, only)] => Some(*only),
            several => {
                let wanted = kind.describe();
                several.iter().find(|(kind, _)| *kind == wanted).map(|(_, n)| *n)
            }
        }
    }
}
