//! What it costs to teach a draft, and whether every line of it can be taught.
//! Invariant: lines are made and checked by the code that teaches sessions.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::Catalog;
use teach::{Ask, Catalogs, Ledger, Rendered, Seed, SlotStyle, render_wave};

use crate::commands::catalog::tokens;

/// So many entities are taught together: their relations to each other are lines too.
const TOGETHER: usize = 256;

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
        let catalogs = Catalogs::from([(catalog.id.clone(), Arc::new(catalog.clone()))]);
        // What only answers to writes hold is taught with them.
        let called: HashSet<&str> = catalog.capabilities.values().map(|c| c.entity.as_str()).collect();
        let all: Vec<&String> = catalog.entities.keys().filter(|name| called.contains(name.as_str())).collect();
        let mut learned = Self::default();
        for some in all.chunks(TOGETHER) {
            let rendered = taught(&catalogs, catalog, some);
            learned.tokens += tokens::count(&rendered.text);
            learned.dropped.extend(rendered.dropped);
        }
        // By its length first: counting tokens of every entity alone would cost more than the import.
        let mut sized: Vec<(usize, &String)> = all.iter().map(|name| (weight(catalog, name), *name)).collect();
        sized.sort_by(|a, b| b.cmp(a));
        let mut largest: Vec<(String, usize)> = sized
            .iter()
            .take(12)
            .map(|(_, name)| ((*name).clone(), tokens::count(&taught(&catalogs, catalog, &[*name]).text)))
            .collect();
        largest.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        largest.truncate(5);
        learned.largest = largest;
        learned
    }
}

fn taught(catalogs: &Catalogs, catalog: &Catalog, entities: &[&String]) -> Rendered {
    let seeds: Vec<Seed> = entities.iter().map(|entity| Seed::new(catalog.id.clone(), entity.as_str())).collect();
    let before = Ledger::default();
    match before.extend(catalogs, &Ask::all(&seeds)) {
        Ok(extended) => render_wave(SlotStyle::default(), &before, &extended.ledger, catalogs, &extended.wave),
        Err(error) => Rendered { text: String::new(), dropped: vec![error.to_string()] },
    }
}

/// About how much there is to say of it.
fn weight(catalog: &Catalog, name: &str) -> usize {
    let fields = catalog.entity(name).map_or(0, |entity| entity.fields.len());
    let capabilities = catalog.capabilities.values().filter(|c| c.entity == name);
    fields + capabilities.map(|c| 5 + c.params.len()).sum::<usize>()
}
