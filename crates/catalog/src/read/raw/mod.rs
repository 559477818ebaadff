//! The shape of a catalog's YAML: the keys and values that the format allows, before any name is resolved.
//! Invariants: an unknown key is a mistake. The JSON Schema of the format is generated from these types, so the
//! schema describes exactly the shapes that the reader accepts.

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

/// The description of one API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tokamak catalog")]
pub struct Catalog {
    /// The API's id: lower case letters, digits, `-` and `_`.
    pub catalog: String,
    /// A number that the author raises with each change.
    pub version: u32,
    /// The API's name for people.
    pub title: String,
    /// Other ids for the same API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Scheme, host, port and the path before every other path. No request leaves for another origin.
    pub origin: String,
    /// How requests are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Calls are sent without the credential if its secret is not set.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub anonymous: bool,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    /// How fast the origin may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// How an answer with status 200 reports a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The path of the GraphQL endpoint, after the path of the origin. The default is `/graphql`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<String>,
    /// Types with a name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, declaration::LongType>")]
    pub types: IndexMap<String, SlotType>,
    /// The kinds of things that the API has, by name.
    pub entities: IndexMap<String, Entity>,
    /// The operations of the API, by name.
    pub capabilities: IndexMap<String, Capability>,
}

/// How fast all callers together may call the origin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Calls in one second.
    pub per_second: f64,
    /// Calls that may be sent at once after a pause.
    #[serde(default)]
    pub burst: u32,
    /// Calls that may be open at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
}

/// How an answer with status 200 reports a failure, for an API that answers 200 to everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The path of a flag that is `false` if the call failed.
    pub flag: String,
    /// The path of the API's own words about the failure.
    pub says: String,
}

/// A kind of thing that the API has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// One line that says what a row is.
    pub about: String,
    /// Synonyms, by which discovery finds the entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The fields that identify a row.
    pub key: Vec<String>,
    /// The get that `Entity(key)` uses, if there are several gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_read: Option<String>,
    /// The values of a row.
    #[schemars(with = "IndexMap<String, declaration::FieldShape>")]
    pub fields: IndexMap<String, Declaration>,
    /// The ways from a row to other rows.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub relations: IndexMap<String, Relation>,
}

/// A way from a row to other rows. It has exactly one of `many` and `one`, and exactly one of `by`, `key` and `in`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// The entity of a list of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub many: Option<String>,
    /// The entity of a single row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// A query whose scope is filled from the parent row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A field of the parent row that holds the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The path inside the parent's item in the answer that holds the rows.
    #[serde(skip_serializing_if = "Option::is_none", rename = "in")]
    pub embedded: Option<String>,
    /// A parameter of `by`, and the field of the parent row that fills it, if the names differ.
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
