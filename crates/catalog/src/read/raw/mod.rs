//! The YAML as written: strict shapes with the places of names, before anything is resolved.
//! Invariant: an unknown key is an error here, with its place; nothing has a default that hides a mistake. The JSON Schema of
//! the format is made from these types, so it cannot say anything else.

mod capability;
mod declaration;

use std::ops::Not;

use base::Auth;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use capability::{
    Answer, Capability, FileShape, IdempotencyShape, LinkRel, Paging, PagingPlace, PartShape, Paths, Probe, Size,
};
pub use declaration::{Declaration, FieldPath, SlotType, UnionShape};

/// What an API offers and how it travels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tokamak catalog")]
pub struct Catalog {
    /// The API's id: lower case letters, digits, `-` and `_`.
    pub catalog: String,
    pub version: u32,
    pub title: String,
    /// Other ids for the same API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Scheme, host, port and a path that goes before every other; no request ever leaves it.
    pub origin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Calls go without the credential where its secret is not set.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub anonymous: bool,
    /// Sent with every request.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The path of the GraphQL endpoint, after the origin's own; `/graphql` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<String>,
    /// Types with a name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, declaration::LongType>")]
    pub types: IndexMap<String, SlotType>,
    pub entities: IndexMap<String, Entity>,
    pub capabilities: IndexMap<String, Capability>,
}

/// How fast the origin may be called, by all callers together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    pub per_second: f64,
    /// So many at once after a rest.
    #[serde(default)]
    pub burst: u32,
    /// Calls under way at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
}

/// For an API that answers 200 to everything: the path of a flag that is false when it failed, and of its words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub flag: String,
    pub says: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// One line that tells a reader what a row is.
    pub about: String,
    /// Other words for it, for discovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The fields that identify a row.
    pub key: Vec<String>,
    /// The get that `Entity(key)` uses, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_read: Option<String>,
    #[schemars(with = "IndexMap<String, declaration::FieldShape>")]
    pub fields: IndexMap<String, Declaration>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub relations: IndexMap<String, Relation>,
}

/// Exactly one of `many` and `one`, and exactly one of `by`, `key` and `in`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub many: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// A query whose scope the parent fills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A field of the parent that holds the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The path inside the parent's payload that holds the rows.
    #[serde(skip_serializing_if = "Option::is_none", rename = "in")]
    pub embedded: Option<String>,
    /// Parameter of `by` to a field of the parent, where the names differ.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub with: IndexMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::Catalog;

    #[test]
    fn a_catalog_reads_back_as_it_is_written() {
        let every_key = include_str!("../../../../../tests/catalog/every.yaml");
        let github = include_str!("../../../../../catalogs/github.yaml");
        for text in [every_key, github] {
            let catalog: Catalog = serde_saphyr::from_str(text).unwrap();
            let written = serde_json::to_value(&catalog).unwrap();
            let back: Catalog = serde_json::from_value(written).unwrap();
            assert_eq!(back, catalog);
        }
    }
}
