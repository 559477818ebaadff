//! Discovery: which entities of which APIs an intent is about.
//! Invariant: pure; what `allowed` refuses neither appears nor counts; the same index, query and permissions give the same rows
//! in the same order. A catalog that did not change is not indexed again.

mod api_names;
mod catalog_index;
mod decision;
mod query;
mod rank;
mod synonyms;

use std::collections::HashMap;
use std::sync::Arc;

use base::{CatalogId, Digest};
use catalog::{Capability, Catalog, Registry};

use catalog_index::CatalogIndex;
use synonyms::Synonyms;

pub use decision::{Decision, Recommendation};

/// Rows of an answer unless the query says otherwise.
pub const DEFAULT_LIMIT: usize = 8;
pub const MAX_LIMIT: usize = 32;

/// Who may use what: the catalog and one of its capabilities.
pub type Allowed<'a> = &'a dyn Fn(&Catalog, &Capability) -> bool;

#[derive(Debug, Clone, Default)]
pub struct Query {
    pub intent: String,
    /// Only of these; all when empty.
    pub apis: Vec<CatalogId>,
    /// At most so many rows.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub api: CatalogId,
    pub entity: String,
    pub description: String,
    /// Comparable within one answer only.
    pub score: f32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiscoveryResult {
    /// The best first.
    pub rows: Vec<Hit>,
    /// How many more there were.
    pub omitted: usize,
    /// What share of the intent's words the first rows answer, 0 to 1.
    answered_share: f32,
    /// How strongly the intent's words stand in the best row, added up.
    match_total: f32,
    /// APIs that the intent names.
    named: Vec<CatalogId>,
}

/// All catalogs of a registry.
#[derive(Debug, Clone)]
pub struct Index {
    catalogs: Vec<Arc<CatalogIndex>>,
    synonyms: Arc<Synonyms>,
}

impl Index {
    /// Of whole catalogs: a part of one has the digest of the whole. Who may see what is for `allowed` to say.
    pub fn new(registry: &Registry) -> Self {
        Self { catalogs: Vec::new(), synonyms: Arc::new(Synonyms::built_in()) }.next(registry)
    }

    /// The index of the registry that comes after: catalogs that did not change keep theirs.
    pub fn next(&self, registry: &Registry) -> Self {
        let known: HashMap<Digest, &Arc<CatalogIndex>> =
            self.catalogs.iter().map(|c| (c.catalog.digest(), c)).collect();
        let index = |catalog: &Arc<Catalog>| match known.get(&catalog.digest()) {
            Some(same) => (*same).clone(),
            None => Arc::new(CatalogIndex::new(catalog.clone())),
        };
        Self { catalogs: registry.iter().map(index).collect(), synonyms: self.synonyms.clone() }
    }

    /// How many catalogs have their words in common with another index, without having been read again.
    pub fn shared_with(&self, other: &Index) -> usize {
        self.catalogs.iter().filter(|mine| other.catalogs.iter().any(|theirs| Arc::ptr_eq(mine, theirs))).count()
    }

    pub fn discover(&self, query: &Query, allowed: Allowed<'_>) -> DiscoveryResult {
        rank::discover(self, query, allowed)
    }
}

impl DiscoveryResult {
    /// What to do about the intent: go ahead with these seeds, or ask first.
    pub fn decide(&self) -> Recommendation {
        decision::decide(self)
    }
}
