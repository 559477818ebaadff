//! What a caller asks to be taught, and why it cannot be.
//! Invariant: seeds name registry ids (aliases are resolved before) and mean the same in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;
use catalog::Catalog;

use crate::words::RELEVANT;

/// The catalogs a session has pinned, as its caller sees them.
pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// One `(api, entity)` to expose.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    pub catalog: CatalogId,
    pub entity: String,
    /// Writes to teach whatever the intent says: names, or `*` for all of the entity.
    pub capabilities: Vec<String>,
}

impl Seed {
    pub fn new(catalog: CatalogId, entity: impl Into<String>) -> Self {
        Self { catalog, entity: entity.into(), capabilities: Vec::new() }
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct TeachRequest<'a> {
    pub seeds: &'a [Seed],
    /// Capabilities to teach whatever the intent says: `ticket_close`, or `demo:ticket_close`.
    pub ranked: &'a [String],
    /// What the task is; without one nothing is filtered.
    pub intent: Option<&'a str>,
    /// From which relevance on a write is taught.
    pub threshold: f32,
}

impl<'a> TeachRequest<'a> {
    /// Everything that the seeds have.
    pub fn all(seeds: &'a [Seed]) -> Self {
        Self { seeds, ranked: &[], intent: None, threshold: RELEVANT }
    }
}

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

/// An error does not carry a text of any length.
pub fn clip_name(text: &str) -> String {
    base::printable(text, 80)
}
