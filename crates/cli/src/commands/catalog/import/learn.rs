//! What it costs to teach a draft, and whether every line of it can be taught.
//! Invariant: lines are made and checked by the code that teaches sessions.

use std::collections::HashSet;

use catalog::Catalog;
use teach::{Catalogs, RenderedTable, SlotStyle};

use crate::commands::catalog::{taught, tokens};

/// So many entities are taught together: their relations to each other are lines too. Up to so many, what is counted is what
/// `catalog show` counts.
const TOGETHER: usize = 1_024;

#[derive(Debug, Default)]
pub struct Learned {
    /// To teach all of it.
    pub tokens: usize,
    /// The five entities that cost most alone.
    pub largest: Vec<(String, usize)>,
    /// Lines that did not check: each is a mistake of ours.
    pub dropped: Vec<String>,
}

impl Learned {
    pub fn of(catalog: &Catalog) -> Self {
        let catalogs = taught::alone(catalog);
        let every: Vec<&str> = catalog.entities.keys().map(String::as_str).collect();
        // What only answers to writes hold is taught with them.
        let called: HashSet<&str> = catalog.capabilities.values().map(|c| c.entity.as_str()).collect();
        let all: Vec<&str> = every.iter().copied().filter(|name| called.contains(name)).collect();
        let mut learned = Self::default();
        let chunks = if every.len() <= TOGETHER { every.chunks(TOGETHER) } else { all.chunks(TOGETHER) };
        for (at, some) in chunks.enumerate() {
            let rendered = rendered(&catalogs, some, at == 0);
            learned.tokens += tokens::count(&rendered.text);
            learned.dropped.extend(rendered.dropped);
        }
        // By its length first: counting tokens of every entity alone would cost more than the import.
        let mut sized: Vec<(usize, &str)> = all.iter().map(|name| (weight(catalog, name), *name)).collect();
        sized.sort_by(|a, b| b.cmp(a));
        let mut largest: Vec<(String, usize)> = sized
            .iter()
            .take(12)
            .map(|(_, name)| ((*name).to_owned(), tokens::count(&rendered(&catalogs, &[*name], true).text)))
            .collect();
        largest.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        largest.truncate(5);
        learned.largest = largest;
        learned
    }
}

/// How to read a table is counted once.
fn rendered(catalogs: &Catalogs, entities: &[&str], first: bool) -> RenderedTable {
    let refused = |error: teach::SeedError| RenderedTable { text: String::new(), dropped: vec![error.to_string()] };
    taught::table_of(catalogs, entities, first, SlotStyle::default()).unwrap_or_else(refused)
}

/// About how much there is to say of it.
fn weight(catalog: &Catalog, name: &str) -> usize {
    let fields = catalog.entity(name).map_or(0, |entity| entity.fields.len());
    let capabilities = catalog.capabilities.values().filter(|c| c.entity == name);
    fields + capabilities.map(|c| 5 + c.params.len()).sum::<usize>()
}
