//! The YAML as written: strict shapes with the places of names, before anything is resolved.
//! Invariant: an unknown key is an error here, with its place; nothing has a default that hides a mistake. The JSON Schema of
//! the format is made from these types, so it cannot say anything else.

mod capability;
mod slot;

use base::Auth;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

pub use capability::{Capability, IdempotencyShape, Paging, PagingPlace, PartShape, Paths, Probe};
pub use slot::{FieldPath, Slot, SlotType, UnionShape};

/// What an API offers and how it travels.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tokamak catalog")]
pub struct Catalog {
    /// The API's id: lower case letters, digits, `-` and `_`.
    pub catalog: String,
    pub version: u32,
    pub title: String,
    /// Other ids for the same API.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Scheme, host, port and a path that goes before every other; no request ever leaves it.
    pub origin: String,
    #[serde(default)]
    pub auth: Option<Auth>,
    /// Calls go without the credential where its secret is not set.
    #[serde(default)]
    pub anonymous: bool,
    /// Sent with every request.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    #[serde(default)]
    pub pace: Option<Pace>,
    #[serde(default)]
    pub failure: Option<Failure>,
    /// The path of the GraphQL endpoint, after the origin's own; `/graphql` unless said otherwise.
    #[serde(default)]
    pub graphql: Option<String>,
    /// Types with a name.
    #[serde(default)]
    #[schemars(with = "IndexMap<String, slot::LongType>")]
    pub types: IndexMap<String, SlotType>,
    pub entities: IndexMap<String, Entity>,
    pub capabilities: IndexMap<String, Capability>,
}

/// How fast the origin may be called, by all callers together.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    pub per_second: f64,
    /// So many at once after a rest.
    #[serde(default)]
    pub burst: u32,
    /// Calls under way at one time.
    #[serde(default)]
    pub concurrent: Option<u32>,
}

/// For an API that answers 200 to everything: the path of a flag that is false when it failed, and of its words.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub flag: String,
    pub says: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// One line that tells a reader what a row is.
    pub about: String,
    /// Other words for it, for discovery.
    #[serde(default)]
    pub words: Vec<String>,
    /// The fields that identify a row.
    pub key: Vec<String>,
    /// The get that `Entity(key)` uses, where there are several.
    #[serde(default)]
    pub primary_read: Option<String>,
    #[schemars(with = "IndexMap<String, slot::FieldShape>")]
    pub fields: IndexMap<String, Slot>,
    #[serde(default)]
    pub relations: IndexMap<String, Relation>,
}

/// Exactly one of `many` and `one`, and exactly one of `by`, `key` and `in`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    pub many: Option<String>,
    pub one: Option<String>,
    #[serde(default)]
    pub about: String,
    /// A query whose scope the parent fills.
    pub by: Option<String>,
    /// A field of the parent that holds the reference.
    pub key: Option<String>,
    /// The path inside the parent's payload that holds the rows.
    #[serde(rename = "in")]
    pub embedded: Option<String>,
    /// Parameter of `by` to a field of the parent, where the names differ.
    #[serde(default)]
    pub with: IndexMap<String, String>,
}
