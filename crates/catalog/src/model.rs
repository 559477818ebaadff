//! A catalog as the rest of the house sees it.
//! Invariant: only `read` and `canonical` make one, after validation; every name in it resolves.

use base::{Auth, CatalogId, Digest, Method, Origin};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::paging::Paging;
use crate::path::DataPath;
use crate::template::Template;
use crate::types::Type;

/// One row of an entity: wire names to values. A reference is the key of what it refers to: a scalar, or an object when the
/// key has several parts.
pub type Row = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    pub id: CatalogId,
    pub version: u32,
    pub title: String,
    pub aliases: Vec<CatalogId>,
    pub origin: Origin,
    /// Goes before every path; empty or `/…` without a trailing slash.
    pub base_path: String,
    pub auth: Option<Auth>,
    pub entities: IndexMap<String, Entity>,
    pub capabilities: IndexMap<String, Capability>,
    /// SHA-256 of the canonical form, which does not include this.
    #[serde(skip, default = "empty_digest")]
    pub(crate) digest: Digest,
}

fn empty_digest() -> Digest {
    Digest::of(b"")
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    pub name: String,
    pub about: String,
    pub key: Vec<String>,
    pub fields: IndexMap<String, Field>,
    pub relations: IndexMap<String, Relation>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub path: DataPath,
    pub show: Show,
}

/// Where a field's value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Query,
    Get,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    pub name: String,
    pub kind: Kind,
    pub entity: String,
    pub about: String,
    pub params: IndexMap<String, Param>,
    pub http: Http,
    /// Where the rows (or for a get, the row) are in the answer; empty is the whole body.
    pub rows: DataPath,
    pub paging: Option<Paging>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http {
    pub method: Method,
    pub path: Template,
    /// A pair whose holes have no value is left out.
    pub query: Vec<(String, Template)>,
}

impl Catalog {
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.get(name)
    }

    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.get(name)
    }

    /// The query that lists an entity with nothing but optional filters, and otherwise the queries that need a scope.
    pub fn queries<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.capabilities.values().filter(move |c| c.kind == Kind::Query && c.entity == entity)
    }

    pub fn get_of(&self, entity: &str) -> Option<&Capability> {
        self.capabilities.values().find(|c| c.kind == Kind::Get && c.entity == entity)
    }
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
}

impl Capability {
    pub fn required(&self) -> impl Iterator<Item = &Param> {
        self.params.values().filter(|p| p.required)
    }
}
