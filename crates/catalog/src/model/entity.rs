//! Entities: the kinds of things that an API has, with their keys, fields and relations.
//! Invariant: each part of a key is a field, and the target of a relation is an entity of the same catalog.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Row;
use crate::path::DataPath;
use crate::types::{Type, Wire};

/// A kind of thing that an API has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    pub name: String,
    /// One line that says what a row is.
    pub about: String,
    /// Synonyms, by which discovery finds the entity.
    pub words: Vec<String>,
    /// The fields that identify a row, in the order in which a program writes them.
    pub key: Vec<String>,
    pub fields: IndexMap<String, Field>,
    pub relations: IndexMap<String, Relation>,
    /// The get that `E(key)` uses, if there are several gets.
    pub primary_read: Option<String>,
}

/// One value of an entity's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub source: FieldSource,
    pub show: Show,
    pub wire: Wire,
    pub about: String,
}

/// Where a field's value is in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldSource {
    /// The first of these paths that leads to a value. Without any path the value is only known from the call's arguments,
    /// which is allowed for a part of the key.
    Paths(Vec<DataPath>),
    /// A reference whose key has several parts, with a path for each part.
    Parts(IndexMap<String, DataPath>),
    /// A header of the answer, with its name in lower case.
    Header(String),
}

/// Where a field's value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    #[default]
    Table,
    /// Long text. If the table is cut, the cell reads `(in artifact)`.
    Artifact,
}

/// A way from a row of one entity to rows of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    pub name: String,
    /// The entity of the rows that the relation leads to.
    pub target: String,
    /// Whether the relation leads to a list of rows.
    pub many: bool,
    pub about: String,
    pub via: Via,
}

/// How a relation is followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// By a query whose parameters are filled from the parent row. `fill` maps a parameter to a field of the parent, or to
    /// `None` for the reference to the parent itself.
    Call { capability: String, fill: IndexMap<String, Option<String>> },
    /// By a get with the reference that this field of the parent row holds.
    Key { field: String },
    /// Without a call: the parent's item in the answer holds the rows at this path.
    Embedded { path: DataPath },
}

impl Entity {
    /// Returns the reference to this row: its key as a scalar, or as an object if the key has several parts. Returns `None` if
    /// a part of the key is missing or `null`.
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

    /// Returns the fields of the key, in the key's order.
    pub fn key_fields(&self) -> impl Iterator<Item = &Field> {
        self.key.iter().filter_map(|part| self.fields.get(part))
    }
}
