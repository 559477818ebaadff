//! A field, a parameter or a slot of an object, in its short and its long form.
//! Invariant: exactly one key says the type.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::model::{ListStyle, Role, Show};
use crate::types::Wire;

/// `string`, or `{type: date, path: created_at}`, or `{ref: Person, required: true}`.
#[derive(Debug)]
pub struct Slot {
    pub kind: SlotType,
    pub path: Option<FieldPath>,
    pub header: Option<String>,
    pub show: Option<Show>,
    pub wire: Option<Wire>,
    pub about: String,
    pub required: bool,
    pub role: Option<Role>,
    pub list: Option<ListStyle>,
}

#[derive(Debug)]
pub enum SlotType {
    Named(String),
    Ref(String),
    Array(Box<SlotType>),
    Select(Vec<String>),
    MultiSelect(Vec<String>),
    Object(IndexMap<String, Slot>),
    Union(UnionShape),
}

/// Where a field lies in the answer: one path, several of which the first that leads to something counts, or one for each part
/// of a reference's key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write a path, several (`[a, b]`), or one for each part of a key (`{owner: a, name: b}`)"
)]
pub enum FieldPath {
    One(String),
    Several(Vec<String>),
    Parts(IndexMap<String, String>),
}

/// One of several objects, told apart by a tag.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnionShape {
    /// The key that holds the arm's name.
    pub tag: Option<String>,
    /// The arm's slots stand under a key of the arm's name.
    #[serde(default)]
    pub nest: bool,
    #[schemars(with = "IndexMap<String, IndexMap<String, SlotShape>>")]
    pub arms: IndexMap<String, IndexMap<String, Slot>>,
}

/// Every key that a slot can have; which of them fit where is for the reader to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LongSlot")]
pub struct LongSlot {
    /// `string`, `markdown`, `document`, `html`, `json_text`, `blob`, `integer`, `number`, `boolean`, `time` (RFC 3339), `date`,
    /// `unix` (seconds), `unix_ms`, `uuid`, `json`, or a name from `types`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A reference to an entity.
    #[serde(rename = "ref")]
    reference: Option<String>,
    #[schemars(with = "Option<SlotShape>")]
    array: Option<SlotType>,
    select: Option<Vec<String>>,
    multi_select: Option<Vec<String>>,
    #[schemars(with = "Option<IndexMap<String, SlotShape>>")]
    object: Option<IndexMap<String, Slot>>,
    union: Option<UnionShape>,
    /// Of a field: where it lies in the answer; its own name unless said otherwise.
    path: Option<FieldPath>,
    /// Of a field: the header of the answer that holds it.
    header: Option<String>,
    show: Option<Show>,
    wire: Option<Wire>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    required: bool,
    /// Of a parameter: what it is for.
    role: Option<Role>,
    /// Of a parameter: how several values travel in a query.
    list: Option<ListStyle>,
}

/// For the schema: a type's name, or the long form.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum SlotShape {
    Name(String),
    Long(Box<LongSlot>),
}

pub use SlotShape as FieldShape;

/// For the schema: a type under a name.
pub type LongType = LongSlot;

impl LongSlot {
    /// `None` unless exactly one key says the type.
    fn into_slot(self) -> Option<Slot> {
        let kinds = [
            self.kind.map(SlotType::Named),
            self.reference.map(SlotType::Ref),
            self.array.map(|of| SlotType::Array(Box::new(of))),
            self.select.map(SlotType::Select),
            self.multi_select.map(SlotType::MultiSelect),
            self.object.map(SlotType::Object),
            self.union.map(SlotType::Union),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return None;
        };
        Some(Slot {
            kind,
            path: self.path,
            header: self.header,
            show: self.show,
            wire: self.wire,
            about: self.about,
            required: self.required,
            role: self.role,
            list: self.list,
        })
    }
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
                let kind = SlotType::Named(text.to_owned());
                Ok(Slot {
                    kind,
                    path: None,
                    header: None,
                    show: None,
                    wire: None,
                    about: String::new(),
                    required: false,
                    role: None,
                    list: None,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Slot, A::Error> {
                let one = "write exactly one of `type`, `ref`, `array`, `select`, `multi_select`, `object`, `union`";
                LongSlot::deserialize(MapAccessDeserializer::new(map))?.into_slot().ok_or_else(|| A::Error::custom(one))
            }
        }
        deserializer.deserialize_any(Shapes)
    }
}

/// A type alone: what says where a value lies or how it travels belongs to a field or a parameter.
impl<'de> Deserialize<'de> for SlotType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let slot = Slot::deserialize(deserializer)?;
        let bare = slot.path.is_none() && slot.header.is_none() && slot.role.is_none() && slot.list.is_none();
        if !bare || slot.required || slot.show.is_some() || slot.wire.is_some() {
            return Err(D::Error::custom("only a type goes here: no `path`, `required`, `show`, `role`, …"));
        }
        Ok(slot.kind)
    }
}
