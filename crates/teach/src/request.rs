//! The request to teach a session: the seeds, the options around them, and the reasons for refusing a request.
//! Invariant: seeds name catalog ids, because aliases are resolved before. Their order does not matter.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;
use catalog::Catalog;

use crate::relevance::RELEVANT;

/// The catalogs that a session has pinned, without the parts that its tenant may not use.
pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// An entity that a caller asks to be taught.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    pub catalog: CatalogId,
    pub entity: String,
    /// Capabilities that are taught regardless of the intent: names, or `*` for all of the entity.
    pub capabilities: Vec<String>,
}

impl Seed {
    /// Returns a seed that asks for no capability by name.
    pub fn new(catalog: CatalogId, entity: impl Into<String>) -> Self {
        Self { catalog, entity: entity.into(), capabilities: Vec::new() }
    }
}

/// Everything that decides what one wave teaches, besides the ledger.
#[derive(Debug, Clone, Copy)]
pub struct TeachRequest<'a> {
    pub seeds: &'a [Seed],
    /// Capabilities that are taught regardless of the intent: `ticket_close`, or `demo:ticket_close`.
    pub ranked: &'a [String],
    /// The task of the session. Without an intent all writes of the seeds are taught.
    pub intent: Option<&'a str>,
    /// The lowest relevance to the intent at which a write is taught.
    pub threshold: f32,
}

impl<'a> TeachRequest<'a> {
    /// Asks for everything that the seeds have.
    pub fn all(seeds: &'a [Seed]) -> Self {
        Self { seeds, ranked: &[], intent: None, threshold: RELEVANT }
    }
}

/// Why a request teaches nothing. All variants are mistakes of the caller, and `near` has similar names that exist.
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

/// Returns a name of the caller as an error may quote it: printable and at most 80 characters long.
pub fn clip_name(text: &str) -> String {
    base::printable(text, 80)
}
