//! Discovery: the search for entities that match an intent, over all catalogs of a registry.
//! Invariant: the same index, query and permissions return the same rows in the same order. A capability that `allowed` refuses
//! neither appears in the result nor changes the scores. An unchanged catalog is not indexed again.

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

/// The default maximum number of rows in a result.
pub const DEFAULT_LIMIT: usize = 8;
/// The largest limit that a query can set.
pub const MAX_LIMIT: usize = 32;

/// A function that returns whether the caller may use a capability of a catalog.
pub type Allowed<'a> = &'a dyn Fn(&Catalog, &Capability) -> bool;

#[derive(Debug, Clone, Default)]
pub struct Query {
    pub intent: String,
    /// The ids of the catalogs to search. An empty list means all catalogs.
    pub apis: Vec<CatalogId>,
    /// The maximum number of rows. Values outside of 1 to [`MAX_LIMIT`] are clamped.
    pub limit: usize,
}

/// An entity that matches an intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub api: CatalogId,
    pub entity: String,
    pub description: String,
    /// The strength of the match. Scores of different queries are not comparable.
    pub score: f32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiscoveryResult {
    /// The matching entities, best first.
    pub rows: Vec<Hit>,
    /// The number of further hits beyond the limit.
    pub omitted: usize,
    /// The weighted share of the intent's words that the first rows match, 0 to 1.
    answered_share: f32,
    /// The sum of the match strengths of the intent's words in the best row.
    match_total: f32,
    /// The ids of the APIs that the intent names.
    named_apis: Vec<CatalogId>,
}

/// The search index of a registry.
#[derive(Debug, Clone)]
pub struct Index {
    /// One index for each catalog. Registries with the same catalog share it.
    catalogs: Vec<Arc<CatalogIndex>>,
    synonyms: Arc<Synonyms>,
}

impl Index {
    /// Builds the index of a registry. The registry must contain whole catalogs and not a tenant's view, because a view has the
    /// same digest as the whole catalog and would be shared. `allowed` hides parts of a catalog in `discover`.
    pub fn new(registry: &Registry) -> Self {
        Self { catalogs: Vec::new(), synonyms: Arc::new(Synonyms::built_in()) }.next(registry)
    }

    /// Returns the index of a reloaded registry. An unchanged catalog keeps its index.
    pub fn next(&self, registry: &Registry) -> Self {
        let known: HashMap<Digest, &Arc<CatalogIndex>> =
            self.catalogs.iter().map(|c| (c.catalog.digest(), c)).collect();
        let index = |catalog: &Arc<Catalog>| match known.get(&catalog.digest()) {
            Some(unchanged) => (*unchanged).clone(),
            None => Arc::new(CatalogIndex::new(catalog.clone())),
        };
        Self { catalogs: registry.iter().map(index).collect(), synonyms: self.synonyms.clone() }
    }

    /// Returns the number of catalog indexes that both indexes share in memory. Tests use it.
    pub fn shared_with(&self, other: &Index) -> usize {
        self.catalogs.iter().filter(|mine| other.catalogs.iter().any(|theirs| Arc::ptr_eq(mine, theirs))).count()
    }

    /// Returns the entities that match the query, best first.
    pub fn discover(&self, query: &Query, allowed: Allowed<'_>) -> DiscoveryResult {
        rank::discover(self, query, allowed)
    }
}

impl DiscoveryResult {
    /// Returns the decision for this result: which seeds to teach, or which question to ask.
    pub fn decide(&self) -> Recommendation {
        decision::decide(self)
    }
}
