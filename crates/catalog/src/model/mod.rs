//! The model of a catalog: its settings for all calls, its entities and its capabilities.
//! Invariant: only the modules `read` and `canonical` make a catalog. A catalog has passed all checks, so every name
//! in it refers to a part that exists.

mod body;
mod capability;
mod entity;

use std::collections::HashMap;
use std::sync::OnceLock;

use base::{Auth, CatalogId, Digest, Origin, Pace};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::path::DataPath;

pub use body::{Body, Document, DocumentPiece, MultipartPart, ValueTemplate};
pub use capability::{
    Capability, EffectClass, EffectProperties, Graphql, Http, Idempotency, Kind, ListStyle, Param, Probe, Role,
    RowForm, Rows, Transport,
};
pub use entity::{Entity, Field, FieldSource, Relation, Show, Via};

/// One row of an entity, as field names and values. The value of a reference is the key of a row: a scalar, or an
/// object if the key has several parts. The rows of an embedded relation are an array under the relation's name.
pub type Row = Map<String, Value>;

/// The description of one API. The canonical form has the fields in the order of this struct, so a new order would
/// change every digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    pub id: CatalogId,
    /// The version number that the author wrote, for messages to operators. The server compares digests, not
    /// versions.
    pub version: u32,
    pub title: String,
    /// Other ids by which a caller can name the API.
    pub aliases: Vec<CatalogId>,
    /// The only origin to which a request of this catalog may go.
    pub origin: Origin,
    /// The path before every capability's path: empty, or `/…` without a trailing slash.
    pub base_path: String,
    /// How requests are signed, or `None` for an API without credentials.
    pub auth: Option<Auth>,
    /// Whether calls are sent without a credential if the secret is not set. This suits an API that answers some
    /// calls without a credential.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// The headers of every request, such as the version of the API for which the catalog was written.
    pub headers: Vec<(String, String)>,
    /// The call rate that the origin allows to all callers together.
    pub pace: Option<Pace>,
    /// How an answer with status 200 reports a failure, for APIs that do so.
    pub failure: Option<Failure>,
    pub entities: IndexMap<String, Entity>,
    pub capabilities: IndexMap<String, Capability>,
    /// The SHA-256 of the canonical form, which does not include this field.
    #[serde(skip, default = "empty_digest")]
    pub(crate) digest: Digest,
    /// In a tenant view, the entities that the tenant cannot use. They stay in `entities`, because references to them
    /// are decoded with their key.
    #[serde(skip)]
    pub(crate) hidden_entities: Vec<String>,
    /// The positions of the capabilities of each entity, computed at the first use.
    #[serde(skip)]
    pub(crate) by_entity: CapabilityIndex,
}

/// How an answer with status 200 reports a failure, for APIs that answer 200 to everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The path of a flag that is `false` if the call failed.
    pub flag: DataPath,
    /// The path of the API's message about the failure.
    #[serde(rename = "says")]
    pub message: DataPath,
}

fn empty_digest() -> Digest {
    Digest::of(b"")
}

impl Catalog {
    /// Returns the digest of the canonical form, which names this catalog.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the entity of this name, including an entity that a tenant view hides.
    pub fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.get(name)
    }

    /// Returns whether a caller can seed and discover the entity.
    pub fn offers(&self, entity: &str) -> bool {
        self.entities.contains_key(entity) && !self.hidden_entities.iter().any(|hidden| hidden == entity)
    }

    /// Returns the entities that a caller can seed and discover.
    pub fn offered(&self) -> impl Iterator<Item = &Entity> {
        self.entities.values().filter(|e| !self.hidden_entities.contains(&e.name))
    }

    /// Returns the capability of this name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.get(name)
    }

    /// Returns the capabilities that belong to an entity, in the catalog's order.
    pub fn capabilities_of<'a>(&'a self, entity: &str) -> impl Iterator<Item = &'a Capability> + use<'a> {
        let positions = self.by_entity.positions(&self.capabilities, entity);
        positions.iter().filter_map(|position| self.capabilities.get_index(*position).map(|(_, capability)| capability))
    }

    /// Returns the capabilities of one kind that belong to an entity.
    pub fn of_kind<'a>(&'a self, entity: &'a str, kind: Kind) -> impl Iterator<Item = &'a Capability> {
        self.capabilities_of(entity).filter(move |c| c.kind == kind)
    }

    /// Returns the queries of an entity. At most one query has no required parameter; each other query requires
    /// different parameters, such as the parent of the list.
    pub fn queries<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.of_kind(entity, Kind::Query)
    }

    /// Returns the searches of an entity.
    pub fn searches<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.of_kind(entity, Kind::Search)
    }

    /// Returns the get that the program text `E(key)` calls: the entity's `primary_read`, or its only get.
    pub fn get_of(&self, entity: &str) -> Option<&Capability> {
        match self.entity(entity).and_then(|e| e.primary_read.as_deref()) {
            Some(name) => self.capability(name),
            None => self.capabilities_of(entity).find(|c| c.kind == Kind::Get),
        }
    }

    /// Returns the capabilities that a program calls as `.method(…)` on an entity or on an instance: writes, actions,
    /// singletons, and all gets except the get of `get_of`.
    pub fn methods<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        let primary = self.get_of(entity).map(|c| c.name.as_str());
        self.capabilities_of(entity).filter(move |c| match c.kind {
            Kind::Query | Kind::Search => false,
            Kind::Get => primary != Some(c.name.as_str()),
            Kind::Singleton | Kind::Create | Kind::Update | Kind::Delete | Kind::Action => true,
        })
    }
}

/// An index from an entity to the positions of its capabilities, so that a lookup does not search all capabilities.
/// The index is built at the first use and never updated. A clone of the index is empty, because the clone of a
/// catalog may still be changed.
#[derive(Default)]
pub(crate) struct CapabilityIndex(OnceLock<HashMap<String, Vec<usize>>>);

impl CapabilityIndex {
    /// Returns the positions of the entity's capabilities in the catalog's order.
    fn positions(&self, capabilities: &IndexMap<String, Capability>, entity: &str) -> &[usize] {
        let by_entity = self.0.get_or_init(|| {
            let mut by_entity: HashMap<String, Vec<usize>> = HashMap::new();
            for (position, capability) in capabilities.values().enumerate() {
                by_entity.entry(capability.entity.clone()).or_default().push(position);
            }
            by_entity
        });
        by_entity.get(entity).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Clone for CapabilityIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

// The index is derived from the capabilities, so it must not influence the comparison of two catalogs.
impl PartialEq for CapabilityIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for CapabilityIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CapabilityIndex")
    }
}
