//! The request to teach a session: the seeds, the options, and the reasons for refusing a request.
//! Invariant: seeds contain catalog ids; the caller has already resolved aliases. The order of the seeds does not matter.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;
use catalog::Catalog;

use crate::relevance::MIN_RELEVANCE;

/// The catalogs that a session has pinned, reduced to the parts that the tenant may use.
pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// An entity that a caller asks to be taught.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    pub catalog: CatalogId,
    pub entity: String,
    /// The capabilities that are taught independently of the intent: names, or `*` for all capabilities of the entity.
    pub capabilities: Vec<String>,
}

impl Seed {
    /// Returns a seed that names no capability.
    pub fn new(catalog: CatalogId, entity: impl Into<String>) -> Self {
        Self { catalog, entity: entity.into(), capabilities: Vec::new() }
    }
}

/// The input that, together with the ledger, decides what one wave teaches.
#[derive(Debug, Clone, Copy)]
pub struct TeachRequest<'a> {
    pub seeds: &'a [Seed],
    /// Further capabilities that are taught independently of the intent: `ticket_close` or `demo:ticket_close`.
    pub ranked: &'a [String],
    /// The session's intent. If it is `None`, all writes of the seeds are taught.
    pub intent: Option<&'a str>,
    /// The minimum relevance to the intent at which a write is taught.
    pub threshold: f32,
}

impl<'a> TeachRequest<'a> {
    /// Returns a request that teaches all capabilities of the seeds.
    pub fn all(seeds: &'a [Seed]) -> Self {
        Self { seeds, ranked: &[], intent: None, threshold: MIN_RELEVANCE }
    }
}

/// The reason for refusing a request. All variants are mistakes of the caller. `near` has existing names that are similar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    #[error("no API `{api}` here{}", one_of(.near))]
    UnknownApi { api: String, near: Vec<String> },
    #[error("`{api}` has no entity `{entity}`{}", one_of(.near))]
    UnknownEntity { api: String, entity: String, near: Vec<String> },
    #[error("`{api}:{entity}` has no capability `{name}`{}", one_of(.near))]
    UnknownCapability { api: String, entity: String, name: String, near: Vec<String> },
    #[error("ranked_capabilities: nothing that was seeded has a capability `{name}`{}", one_of(.near))]
    UnknownRanked { name: String, near: Vec<String> },
    #[error("ranked_capabilities: `{name}` is a capability of several; one of: {}", .apis.join(" | "))]
    Ambiguous { name: String, apis: Vec<String> },
    #[error("`{api}:{entity}` is only a part of other rows and has nothing to call; seed one of these as well: {}", .holders.join(" | "))]
    OnlyAPart { api: String, entity: String, holders: Vec<String> },
}

fn one_of(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) }
}

/// Returns a name that the caller sent in a form that is safe in an error text: only printable characters, at most 80.
pub fn clip_name(text: &str) -> String {
    base::printable(text, 80)
}
