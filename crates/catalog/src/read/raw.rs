//! The YAML as written: strict shapes with the places of names, before anything is resolved.
//! Invariant: an unknown key is an error here, with its place; nothing has a default that hides a mistake.

use std::fmt;

use base::Auth;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_saphyr::Spanned;

use crate::model::Show;

pub type Text = Spanned<String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    pub catalog: Text,
    pub version: u32,
    pub title: String,
    #[serde(default)]
    pub aliases: Vec<Text>,
    pub origin: Text,
    #[serde(default)]
    pub auth: Option<Auth>,
    #[serde(default)]
    pub types: IndexMap<String, NamedType>,
    pub entities: IndexMap<String, Entity>,
    pub capabilities: IndexMap<String, Capability>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedType {
    pub select: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    pub about: String,
    pub key: Vec<Text>,
    pub fields: IndexMap<String, Slot>,
    #[serde(default)]
    pub relations: IndexMap<String, Relation>,
}

/// A field or a parameter: `string`, or `{type: date, path: created_at}`, or `{ref: Person, required: true}`.
#[derive(Debug)]
pub struct Slot {
    pub kind: SlotType,
    pub path: Option<String>,
    pub show: Option<Show>,
    pub required: bool,
}

#[derive(Debug)]
pub enum SlotType {
    Named(Text),
    Ref(Text),
    Array(Text),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongSlot {
    #[serde(rename = "type")]
    kind: Option<Text>,
    #[serde(rename = "ref")]
    reference: Option<Text>,
    array: Option<Text>,
    path: Option<String>,
    show: Option<Show>,
    #[serde(default)]
    required: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    pub many: Option<Text>,
    pub one: Option<Text>,
    pub by: Option<Text>,
    pub key: Option<Text>,
    /// Parameter of `by` to a field of the parent, where the names differ.
    #[serde(default)]
    pub with: IndexMap<String, Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    pub query: Option<Text>,
    pub get: Option<Text>,
    #[serde(default)]
    pub about: String,
    #[serde(default)]
    pub params: IndexMap<String, Slot>,
    pub http: Text,
    #[serde(default)]
    pub rows: String,
    pub paging: Option<Paging>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// Exactly one of these five says which form it is.
    pub page: Option<String>,
    pub offset: Option<String>,
    pub cursor: Option<String>,
    pub link: Option<LinkRel>,
    pub next: Option<String>,
    /// The parameter that carries a cursor back.
    pub send: Option<String>,
    /// The first page's number.
    pub from: Option<u64>,
    pub size: Option<PageSize>,
    pub total: Option<String>,
}

/// `link: next`, so that the line reads by itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkRel {
    Next,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageSize {
    pub send: String,
    pub max: usize,
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shapes;
        impl<'de> Visitor<'de> for Shapes {
            type Value = Slot;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type (`string`, `integer`, `date`, a name from `types`) or `{type: …}`, `{ref: Entity}`, `{array: …}`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Slot, E> {
                let unplaced = serde_saphyr::Location::UNKNOWN;
                let kind = SlotType::Named(Spanned::new(text.to_owned(), unplaced, unplaced));
                Ok(Slot { kind, path: None, show: None, required: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Slot, A::Error> {
                let long = LongSlot::deserialize(MapAccessDeserializer::new(map))?;
                let kind = match (long.kind, long.reference, long.array) {
                    (Some(name), None, None) => SlotType::Named(name),
                    (None, Some(entity), None) => SlotType::Ref(entity),
                    (None, None, Some(of)) => SlotType::Array(of),
                    _ => return Err(A::Error::custom("write exactly one of `type`, `ref`, `array`")),
                };
                Ok(Slot { kind, path: long.path, show: long.show, required: long.required })
            }
        }
        deserializer.deserialize_any(Shapes)
    }
}
