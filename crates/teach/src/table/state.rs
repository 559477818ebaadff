//! The input for the rows of a table, and the state that all rows share: the slots and entities that were already explained.
//! Invariant: each slot and each entity is explained once, in the first row that uses it.

use std::collections::{HashMap, HashSet};

use catalog::{Catalog, Type};

use crate::ledger::{Ledger, SymbolIndex, TaughtMethod, TaughtRelation, Wave};
use crate::request::Catalogs;
use crate::settings::SlotStyle;

/// The wave to render.
pub struct WaveInput<'a> {
    /// The ledger before this wave. Its slots and entities were explained by earlier tables.
    pub before: &'a Ledger,
    /// The ledger with this wave. The rows use its symbols.
    pub ledger: &'a Ledger,
    pub catalogs: &'a Catalogs,
    pub wave: &'a Wave,
    pub style: SlotStyle,
    /// Whether `..` may replace the leading slots of a key that an earlier row of the wave spells out.
    pub abbreviates_keys: bool,
}

/// The additions of a wave for one entity.
#[derive(Default)]
pub struct EntityChanges<'a> {
    /// Whether the wave adds the entity itself.
    pub is_new: bool,
    pub methods: Vec<&'a TaughtMethod>,
    pub relations: Vec<&'a TaughtRelation>,
}

/// One row of the table.
#[derive(Debug, Default)]
pub struct TableRow {
    /// The expression in the left cell.
    pub expr: String,
    /// The text in the right cell, which explains the expression.
    pub meaning: String,
    /// The full forms of expressions that the right cell abbreviates: further relations and further calls without arguments.
    /// They are checked like the left cell.
    pub also: Vec<String>,
}

/// The rows written so far, with the slots and entities that they explain.
pub struct TableState<'a> {
    pub symbols: SymbolIndex<'a>,
    pub style: SlotStyle,
    /// Whether entities are written with their catalog, because the session has several catalogs.
    pub is_qualified: bool,
    /// Whether `..` may replace the leading slots of a key.
    pub abbreviates_keys: bool,
    /// For each slot number, whether a row has explained the slot.
    named_slots: Vec<bool>,
    /// The numbers of entities whose fields no row has described so far. Only relations and calls of other entities return rows
    /// of them.
    pub undescribed: HashSet<usize>,
    /// The number of the first entity with a list of fields, by the text of the list.
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

    /// Marks a slot as explained. Returns the slot's number, and whether a row had already explained the slot.
    pub fn mark_named(&mut self, catalog: &Catalog, name: &str, kind: &Type) -> Option<(usize, bool)> {
        let number = self.symbols.slot(catalog, name, kind)?;
        let was_named = self.named_slots.get_mut(number).is_some_and(|named| std::mem::replace(named, true));
        Some((number, was_named))
    }
}

/// Returns the number in a symbol: 4 for `e4`.
pub fn symbol_number(symbol: &str) -> usize {
    symbol.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
