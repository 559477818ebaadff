//! Computes what it costs to teach a draft, and whether every line of it can be taught.
//! Invariant: the lines are made and checked by the code that teaches sessions.

use std::collections::HashSet;

use catalog::Catalog;
use teach::{Catalogs, RenderedTable, SlotStyle};

use crate::commands::catalog::taught;

/// The number of entities that are taught in one table. Up to this number, the tokens are those that `catalog show` prints, because
/// relations between entities of one table are lines of it too.
const TABLE_ENTITIES: usize = 1_024;

#[derive(Debug, Default)]
pub struct TeachingCost {
    /// The tokens that teach the whole draft.
    pub tokens: usize,
    /// The five entities that cost most if each is taught alone, with their tokens.
    pub largest: Vec<(String, usize)>,
    /// Lines that are not valid. Each is a defect of the importer.
    pub dropped: Vec<String>,
}

impl TeachingCost {
    pub fn of(catalog: &Catalog) -> Self {
        let catalogs = taught::single_catalog(catalog);
        let all: Vec<&str> = catalog.entities.keys().map(String::as_str).collect();
        // An entity without capabilities is only part of the answers to writes, and is taught with those.
        let with_capabilities: HashSet<&str> = catalog.capabilities.values().map(|c| c.entity.as_str()).collect();
        let taught_alone: Vec<&str> = all.iter().copied().filter(|name| with_capabilities.contains(name)).collect();
        let mut cost = Self::default();
        let entities = if all.len() <= TABLE_ENTITIES { &all } else { &taught_alone };
        for (index, entities) in entities.chunks(TABLE_ENTITIES).enumerate() {
            let table = render_table(&catalogs, entities, index == 0);
            cost.tokens += taught::count_tokens(&table.text);
            cost.dropped.extend(table.dropped);
        }
        // Candidates are chosen by a rough weight, because counting the tokens of every entity would take longer than the import.
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

/// Renders a table. `first` adds the contract, which a session is taught once. A table that cannot be made is a dropped line.
fn render_table(catalogs: &Catalogs, entities: &[&str], first: bool) -> RenderedTable {
    let refused = |error: teach::SeedError| RenderedTable { text: String::new(), dropped: vec![error.to_string()] };
    taught::table_of(catalogs, entities, first, SlotStyle::default()).unwrap_or_else(refused)
}

/// Returns about how many things a table says of an entity.
fn weight(catalog: &Catalog, name: &str) -> usize {
    let fields = catalog.entity(name).map_or(0, |entity| entity.fields.len());
    let capabilities = catalog.capabilities.values().filter(|c| c.entity == name);
    fields + capabilities.map(|c| 5 + c.params.len()).sum::<usize>()
}
