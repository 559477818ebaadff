//! The input of a table's rows, and the state that they share: what the rows written so far have named and described.
//! Invariant: a slot is named once and an entity is described once, in the first row that needs it.

use std::collections::{HashMap, HashSet};

use catalog::{Catalog, Type};

use crate::ledger::{Ledger, SymbolIndex, TaughtMethod, TaughtRelation, Wave};
use crate::request::Catalogs;
use crate::settings::SlotStyle;

/// The wave to render.
pub struct WaveInput<'a> {
    /// The ledger of the waves before, whose slots and entities are not explained again.
    pub before: &'a Ledger,
    /// The ledger with the wave, which has the symbols of the rows.
    pub ledger: &'a Ledger,
    pub catalogs: &'a Catalogs,
    pub wave: &'a Wave,
    pub style: SlotStyle,
    /// Whether `..` stands for the leading slots of a key that an earlier row of the wave spells out.
    pub abbreviates_keys: bool,
}

/// The part of a wave that belongs to one entity.
#[derive(Default)]
pub struct EntityChanges<'a> {
    /// Whether the wave adds the entity itself.
    pub is_new: bool,
    pub methods: Vec<&'a TaughtMethod>,
    pub relations: Vec<&'a TaughtRelation>,
}

/// A row of the table.
#[derive(Debug, Default)]
pub struct TableRow {
    /// The left cell.
    pub expr: String,
    /// The right cell.
    pub meaning: String,
    /// Full expressions that the right cell has in short, to be checked too: further relations of an entity, and further calls
    /// without arguments.
    pub also: Vec<String>,
}

/// The rows written so far, and what they explain.
pub struct TableState<'a> {
    pub symbols: SymbolIndex<'a>,
    pub style: SlotStyle,
    /// Whether entities are shown with their catalogs, because the session has several catalogs.
    pub is_qualified: bool,
    /// Whether `..` stands for the leading slots of a key.
    pub abbreviates_keys: bool,
    /// Whether a row has named a slot, by the slot's number.
    named_slots: Vec<bool>,
    /// Numbers of the entities whose fields no row names yet, because only relations and calls of others lead to them.
    pub undescribed: HashSet<usize>,
    /// Lists of fields as a row has them, with the number of the first entity that has the list.
    pub field_lists: HashMap<String, usize>,
    pub rows: Vec<TableRow>,
}

impl<'a> TableState<'a> {
    pub fn new(wave_input: &WaveInput<'_>, undescribed: HashSet<usize>, symbols: SymbolIndex<'a>) -> Self {
        Self {
            named_slots: vec![false; symbols.slot_count() + 1],
            symbols,
            style: wave_input.style,
            is_qualified: wave_input.ledger.catalogs().len() > 1,
            abbreviates_keys: wave_input.abbreviates_keys,
            undescribed,
            field_lists: HashMap::new(),
            rows: Vec::new(),
        }
    }

    /// Marks a slot as named. Returns its number and whether it was named before.
    pub fn mark_named(&mut self, catalog: &Catalog, name: &str, kind: &Type) -> Option<(usize, bool)> {
        let number = self.symbols.slot(catalog, name, kind)?;
        let was_named = self.named_slots.get_mut(number).is_some_and(|named| std::mem::replace(named, true));
        Some((number, was_named))
    }
}

/// Returns the number of a symbol: 4 for `e4`.
pub fn symbol_number(symbol: &str) -> usize {
    symbol.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
