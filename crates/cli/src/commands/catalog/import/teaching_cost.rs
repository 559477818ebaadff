//! Computes the number of tokens that teach a draft, and finds the lines of its table that are not valid.
//! Invariant: the code that teaches sessions makes and checks the lines.

use std::collections::HashSet;

use catalog::Catalog;
use teach::{Catalogs, RenderedTable, SlotStyle};

use crate::commands::catalog::taught;

/// The largest number of entities in one table. A draft with at most this many entities gets one table, so its tokens are those that
/// `catalog show` prints. A larger draft gets several tables, which lack the relations between entities of different tables.
const TABLE_ENTITIES: usize = 1_024;

#[derive(Debug, Default)]
pub struct TeachingCost {
    /// The number of tokens that teach the whole draft.
    pub tokens: usize,
    /// The five entities with the largest tables, each with the tokens of its own table.
    pub largest: Vec<(String, usize)>,
    /// The lines that are not valid. Each of them is a defect of the importer.
    pub dropped: Vec<String>,
}

impl TeachingCost {
    pub fn of(catalog: &Catalog) -> Self {
        let catalogs = taught::single_catalog(catalog);
        let all: Vec<&str> = catalog.entities.keys().map(String::as_str).collect();
        // An entity without capabilities occurs only in the answers to writes, and is taught together with these writes.
        let with_capabilities: HashSet<&str> = catalog.capabilities.values().map(|c| c.entity.as_str()).collect();
        let taught_alone: Vec<&str> = all.iter().copied().filter(|name| with_capabilities.contains(name)).collect();
        let mut cost = Self::default();
        let entities = if all.len() <= TABLE_ENTITIES { &all } else { &taught_alone };
        for (index, entities) in entities.chunks(TABLE_ENTITIES).enumerate() {
            let table = render_table(&catalogs, entities, index == 0);
            cost.tokens += taught::count_tokens(&table.text);
            cost.dropped.extend(table.dropped);
        }
        // The candidates for `largest` are chosen by a rough weight, because counting the tokens of every entity takes longer than the import.
        let mut by_weight: Vec<(usize, &str)> =
            taught_alone.iter().map(|name| (weight(catalog, name), *name)).collect();
        by_weight.sort_by(|a, b| b.cmp(a));
        cost.largest = by_weight
            .iter()
            .take(12)
            .map(|(_, name)| ((*name).to_owned(), taught::count_tokens(&render_table(&catalogs, &[*name], true).text)))
            .collect();
        cost.largest.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        cost.largest.truncate(5);
        cost
    }
}

/// Renders the table of these entities. With `first` the table begins with the contract, which each session reads once. If the table
/// cannot be made, the result has the error as a dropped line.
fn render_table(catalogs: &Catalogs, entities: &[&str], first: bool) -> RenderedTable {
    let refused = |error: teach::SeedError| RenderedTable { text: String::new(), dropped: vec![error.to_string()] };
    taught::table_of(catalogs, entities, first, SlotStyle::default()).unwrap_or_else(refused)
}

/// Returns a rough measure for the size of an entity's table: the number of its fields, capabilities and parameters.
fn weight(catalog: &Catalog, name: &str) -> usize {
    let fields = catalog.entity(name).map_or(0, |entity| entity.fields.len());
    let capabilities = catalog.capabilities.values().filter(|c| c.entity == name);
    fields + capabilities.map(|c| 5 + c.params.len()).sum::<usize>()
}
