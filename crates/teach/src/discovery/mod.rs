//! Discovery: the search for the entities of an intent, over all catalogs of a registry.
//! Invariant: the same index, query and permissions give the same rows in the same order. A capability that `allowed` refuses
//! neither appears nor counts. A catalog that did not change is not indexed again.

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

/// The number of rows of an answer if the caller names none.
pub const DEFAULT_LIMIT: usize = 8;
/// The largest number of rows of an answer.
pub const MAX_LIMIT: usize = 32;

/// Decides whether the caller may use a capability of a catalog.
pub type Allowed<'a> = &'a dyn Fn(&Catalog, &Capability) -> bool;

#[derive(Debug, Clone, Default)]
pub struct Query {
    pub intent: String,
    /// The catalogs to search; all if it is empty.
    pub apis: Vec<CatalogId>,
    /// The largest number of rows, which is brought between 1 and [`MAX_LIMIT`].
    pub limit: usize,
}

/// An entity that answers an intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub api: CatalogId,
    pub entity: String,
    pub description: String,
    /// How well the entity answers the intent. Scores of different answers cannot be compared.
    pub score: f32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiscoveryResult {
    /// The best first.
    pub rows: Vec<Hit>,
    /// The number of hits beyond the limit.
    pub omitted: usize,
    /// The share of the intent's words that the first rows answer, 0 to 1.
    answered_share: f32,
    /// The sum of how strongly each word of the intent matches the best row.
    match_total: f32,
    /// The APIs that the intent names.
    named_apis: Vec<CatalogId>,
}

/// The words of all catalogs of a registry.
#[derive(Debug, Clone)]
pub struct Index {
    /// One index for each catalog, shared with the indexes of other registries that offer the same catalog.
    catalogs: Vec<Arc<CatalogIndex>>,
    synonyms: Arc<Synonyms>,
}

impl Index {
    /// Indexes a registry of whole catalogs. A tenant's view has the digest of the whole catalog, so it must not be indexed;
    /// `allowed` hides parts of a catalog instead.
    pub fn new(registry: &Registry) -> Self {
        Self { catalogs: Vec::new(), synonyms: Arc::new(Synonyms::built_in()) }.next(registry)
    }

    /// Returns the index of the registry after a reload. A catalog that did not change keeps its index.
    pub fn next(&self, registry: &Registry) -> Self {
        let known: HashMap<Digest, &Arc<CatalogIndex>> =
            self.catalogs.iter().map(|c| (c.catalog.digest(), c)).collect();
        let index = |catalog: &Arc<Catalog>| match known.get(&catalog.digest()) {
            Some(unchanged) => (*unchanged).clone(),
            None => Arc::new(CatalogIndex::new(catalog.clone())),
        };
        Self { catalogs: registry.iter().map(index).collect(), synonyms: self.synonyms.clone() }
    }

    /// Returns how many catalogs share their index in memory with another index.
    pub fn shared_with(&self, other: &Index) -> usize {
        self.catalogs.iter().filter(|mine| other.catalogs.iter().any(|theirs| Arc::ptr_eq(mine, theirs))).count()
    }

    /// Returns the entities that answer the query, the best first.
    pub fn discover(&self, query: &Query, allowed: Allowed<'_>) -> DiscoveryResult {
        rank::discover(self, query, allowed)
    }
}

impl DiscoveryResult {
    /// Decides what to do about the intent: teach these seeds, or ask first.
    pub fn decide(&self) -> Recommendation {
        decision::decide(self)
    }
}
