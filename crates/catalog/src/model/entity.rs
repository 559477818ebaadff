//! Entities: the kinds of things that an API has, with their keys, fields and relations.
//! Invariant: each part of a key is the name of a field. The target of a relation is an entity of the same catalog.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Row;
use crate::path::DataPath;
use crate::types::{Type, Wire};

/// A kind of thing that an API has, such as `Ticket`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    pub name: String,
    /// One line that describes a row to a reader of the catalog.
    pub about: String,
    /// Synonyms of the name, by which discovery finds the entity.
    pub words: Vec<String>,
    /// The names of the fields that identify a row, in the order in which a program writes their values.
    pub key: Vec<String>,
    pub fields: IndexMap<String, Field>,
    pub relations: IndexMap<String, Relation>,
    /// The name of the get that the program text `E(key)` calls, if the entity has several gets.
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

/// The place of a field's value in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldSource {
    /// The value at the first of these paths that has a value. The list is empty only for a part of the key whose
    /// value is an argument of the call.
    Paths(Vec<DataPath>),
    /// A reference to an entity whose key has several parts, with the path of each part.
    Parts(IndexMap<String, DataPath>),
    /// A header of the answer. The string is the header's name in lower case.
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

/// A relation: the connection from a row of one entity (the parent) to rows of another entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    pub name: String,
    /// The name of the entity of the related rows.
    pub target: String,
    /// Whether a parent has a list of related rows. Otherwise a parent has at most one related row.
    pub many: bool,
    pub about: String,
    pub via: Via,
}

/// How the related rows of a parent row are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// By calling a query whose parameters are filled from the parent row. `fill` maps the name of a parameter to a
    /// field of the parent, or to `None` for a reference to the parent.
    Call { capability: String, fill: IndexMap<String, Option<String>> },
    /// By calling a get with the reference in this field of the parent row.
    Key { field: String },
    /// Without a call: the related rows are at this path inside the answer's item for the parent.
    Embedded { path: DataPath },
}

impl Entity {
    /// Returns the key of `row` as a reference: a scalar, or an object if the key has several parts. Returns `None`
    /// if a part of the key is missing or `null`.
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
