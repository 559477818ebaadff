//! A catalog as the rest of the house sees it.
//! Invariant: only `read` and `canonical` make one, after validation; every name in it resolves.

mod by_entity;
mod capability;
mod entity;
mod shape;

use base::{Auth, CatalogId, Digest, Origin, Pace};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::path::DataPath;

pub(crate) use by_entity::ByEntity;
pub use capability::{
    Capability, Effect, EffectClass, Graphql, Http, Idempotency, Kind, ListStyle, Param, Probe, Role, RowForm, Rows,
    Transport,
};
pub use entity::{Entity, Field, Relation, Show, Source, Via};
pub use shape::{Body, Document, Part, Piece as DocumentPiece, Shape};

/// One row of an entity: wire names to values. A reference is the key of what it refers to: a scalar, or an object when the
/// key has several parts. Rows of a relation that the payload embeds stand under the relation's name, as an array of rows.
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
    /// Calls go without the credential where its secret is not set: the API answers some of them to anyone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// Sent with every request, such as the version of the API that the catalog was written for.
    pub headers: Vec<(String, String)>,
    /// What the origin allows, by all callers together.
    pub pace: Option<Pace>,
    pub failure: Option<Failure>,
    pub entities: IndexMap<String, Entity>,
    pub capabilities: IndexMap<String, Capability>,
    /// SHA-256 of the canonical form, which does not include this.
    #[serde(skip, default = "empty_digest")]
    pub(crate) digest: Digest,
    /// In a tenant's view: entities that are only there so that references to them can be read.
    #[serde(skip)]
    pub(crate) hidden: Vec<String>,
    #[serde(skip)]
    pub(crate) by_entity: ByEntity,
}

/// How an API that answers 200 to everything says that it failed: `flag` is false, and `says` holds its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub flag: DataPath,
    pub says: DataPath,
}

fn empty_digest() -> Digest {
    Digest::of(b"")
}

impl Catalog {
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.get(name)
    }

    /// Whether it can be seeded and found.
    pub fn offers(&self, entity: &str) -> bool {
        self.entities.contains_key(entity) && !self.hidden.iter().any(|h| h == entity)
    }

    /// The entities that can be seeded and found.
    pub fn offered(&self) -> impl Iterator<Item = &Entity> {
        self.entities.values().filter(|e| !self.hidden.contains(&e.name))
    }

    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.get(name)
    }

    /// Everything that belongs to an entity, in the catalog's order.
    pub fn capabilities_of<'a>(&'a self, entity: &str) -> impl Iterator<Item = &'a Capability> + use<'a> {
        let mine = self.by_entity.of(&self.capabilities, entity);
        mine.iter().filter_map(|at| self.capabilities.get_index(*at).map(|(_, c)| c))
    }

    pub fn of_kind<'a>(&'a self, entity: &'a str, kind: Kind) -> impl Iterator<Item = &'a Capability> {
        self.capabilities_of(entity).filter(move |c| c.kind == kind)
    }

    /// The queries of an entity: the one that lists it with nothing but optional filters, and those that need a scope.
    pub fn queries<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.of_kind(entity, Kind::Query)
    }

    pub fn searches<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.of_kind(entity, Kind::Search)
    }

    /// The get that `E(key)` uses: the one the entity names as its `primary_read`, or the only one.
    pub fn get_of(&self, entity: &str) -> Option<&Capability> {
        match self.entity(entity).and_then(|e| e.primary_read.as_deref()) {
            Some(name) => self.capability(name),
            None => self.capabilities_of(entity).find(|c| c.kind == Kind::Get),
        }
    }

    /// Everything that is called as `.method(…)` on an entity or an instance of it: writes, actions, singletons, and gets that
    /// are not its primary read.
    pub fn methods<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
        let primary = self.get_of(entity).map(|c| c.name.as_str());
        self.capabilities_of(entity).filter(move |c| match c.kind {
            Kind::Query | Kind::Search => false,
            Kind::Get => primary != Some(c.name.as_str()),
            Kind::Singleton | Kind::Create | Kind::Update | Kind::Delete | Kind::Action => true,
        })
    }
}
