//! What an API has: entities with their keys, fields and relations.
//! Invariant: each part of a key is a field; a relation's target is an entity of the same catalog.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Row;
use crate::path::DataPath;
use crate::types::{Type, Wire};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    pub name: String,
    pub about: String,
    /// Other words for it, for discovery.
    pub words: Vec<String>,
    pub key: Vec<String>,
    pub fields: IndexMap<String, Field>,
    pub relations: IndexMap<String, Relation>,
    /// Which get `E(key)` uses, where there are several.
    pub primary_read: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub source: Source,
    pub show: Show,
    pub wire: Wire,
    pub about: String,
}

/// Where a field's value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The first of these that leads to something.
    Paths(Vec<DataPath>),
    /// A reference whose key has several parts, each from its own place.
    Parts(IndexMap<String, DataPath>),
    /// A header of the answer, by its name in lower case.
    Header(String),
}

/// Where a field's value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    #[default]
    Table,
    /// Long text: in a table its cell reads `(in artifact)` when the table is cut.
    Artifact,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    pub name: String,
    pub target: String,
    pub many: bool,
    pub about: String,
    pub via: Via,
}

/// How a relation is followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// A query whose parameters are filled from the parent: parameter to the parent's field, or to `None` for the parent's
    /// whole reference.
    Call { capability: String, fill: IndexMap<String, Option<String>> },
    /// A get by the reference that this field of the parent holds.
    Key { field: String },
    /// No call: the parent's own payload holds the rows here.
    Embedded { path: DataPath },
}

impl Entity {
    /// The reference to this row: its key as a scalar, or as an object when the key has several parts.
    pub fn reference(&self, row: &Row) -> Option<Value> {
        let part = |name: &String| row.get(name).filter(|v| !v.is_null()).cloned();
        match self.key.as_slice() {
            [only] => part(only),
            parts => {
                let pairs: Option<Map<String, Value>> = parts.iter().map(|p| Some((p.clone(), part(p)?))).collect();
                pairs.map(Value::Object)
            }
        }
    }

    pub fn key_fields(&self) -> impl Iterator<Item = &Field> {
        self.key.iter().filter_map(|part| self.fields.get(part))
    }
}
