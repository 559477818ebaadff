//! The declaration of a field, a parameter or a slot (a member of an object type) in the YAML, in its short and its
//! long form.
//! Invariant: exactly one key of a declaration gives the type.

use std::fmt;
use std::ops::Not;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::model::{ListStyle, Role, Show};
use crate::types::Wire;

/// A declaration such as `string`, `{type: date, path: created_at}` or `{ref: Person, required: true}`. A key that
/// the author did not write is `None`, empty or `false`. The module `resolve` checks which keys a field, a parameter
/// or a slot may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
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

/// A type in the form in which the author wrote it, with unresolved names.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotType {
    /// The name of a built-in type or of a type from `types`.
    Named(String),
    Ref(String),
    Array(Box<SlotType>),
    Select(Vec<String>),
    MultiSelect(Vec<String>),
    Object(IndexMap<String, Declaration>),
    Union(UnionShape),
}

/// Where a field is in the answer: one path, alternative paths of which the first one that leads to a value counts, or a path
/// for each part of a reference's key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write a path, several (`[a, b]`), or one for each part of a key (`{owner: a, name: b}`)"
)]
pub enum FieldPath {
    One(String),
    Several(Vec<String>),
    Parts(IndexMap<String, String>),
}

/// One of several objects, which are distinguished by a tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnionShape {
    /// The key that holds the arm's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The arm's slots stand under a key of the arm's name.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub nest: bool,
    /// The slots of each arm, by the arm's name.
    #[schemars(with = "IndexMap<String, IndexMap<String, SlotShape>>")]
    pub arms: IndexMap<String, IndexMap<String, Declaration>>,
}

/// The long form, with every key that a field, a parameter or a slot can have. The reader checks which keys go together.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LongSlot")]
pub struct LongSlot {
    /// `string`, `markdown`, `document`, `html`, `json_text`, `blob`, `integer`, `number`, `boolean`, `time` (RFC 3339),
    /// `date`, `unix` (seconds), `unix_ms`, `uuid`, `json`, or a name from `types`.
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
    object: Option<IndexMap<String, Declaration>>,
    union: Option<UnionShape>,
    /// Of a field: where it is in the answer. The default is the field's name.
    path: Option<FieldPath>,
    /// Of a field: the header of the answer that holds it.
    header: Option<String>,
    show: Option<Show>,
    wire: Option<Wire>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    required: bool,
    /// Of a parameter: its purpose.
    role: Option<Role>,
    /// Of a parameter: how several values are written in a query.
    list: Option<ListStyle>,
}

/// The name of a type, or the long form.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum SlotShape {
    Name(String),
    Long(Box<LongSlot>),
}

/// The schema of a field, which is that of any slot.
pub use SlotShape as FieldShape;

/// The schema of a type with a name.
pub type LongType = LongSlot;

impl LongSlot {
    /// Returns the declaration, or `None` unless exactly one key gives the type.
    fn into_declaration(self) -> Option<Declaration> {
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
        Some(Declaration {
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

impl Declaration {
    /// Returns a declaration that has only a type.
    pub fn new(kind: SlotType) -> Self {
        Self {
            kind,
            path: None,
            header: None,
            show: None,
            wire: None,
            about: String::new(),
            required: false,
            role: None,
            list: None,
        }
    }
}

impl<'de> Deserialize<'de> for Declaration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DeclarationVisitor;
        impl<'de> Visitor<'de> for DeclarationVisitor {
            type Value = Declaration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type (`string`, `integer`, `date`, a name from `types`) or `{type: …}`, `{ref: Entity}`, `{array: …}`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Declaration, E> {
                Ok(Declaration::new(SlotType::Named(text.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Declaration, A::Error> {
                let expected =
                    "write exactly one of `type`, `ref`, `array`, `select`, `multi_select`, `object`, `union`";
                LongSlot::deserialize(MapAccessDeserializer::new(map))?
                    .into_declaration()
                    .ok_or_else(|| A::Error::custom(expected))
            }
        }
        deserializer.deserialize_any(DeclarationVisitor)
    }
}

// Where only a type is expected, such as the item type of an array, other keys are refused, because they would have
// no effect.
impl<'de> Deserialize<'de> for SlotType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let declaration = Declaration::deserialize(deserializer)?;
        let has_only_type = declaration.path.is_none()
            && declaration.header.is_none()
            && declaration.role.is_none()
            && declaration.list.is_none()
            && !declaration.required
            && declaration.show.is_none()
            && declaration.wire.is_none();
        if !has_only_type {
            return Err(D::Error::custom("only a type goes here: no `path`, `required`, `show`, `role`, …"));
        }
        Ok(declaration.kind)
    }
}

// The short form is written if the declaration has only a type with a name. The keys of the long form have the order
// that authors use: the type, the path or header, whether the value is required, and the form on the wire.
impl Serialize for Declaration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let SlotType::Named(name) = &self.kind
            && *self == Declaration::new(SlotType::Named(name.clone()))
        {
            return serializer.serialize_str(name);
        }
        let mut map = serializer.serialize_map(None)?;
        self.kind.write_into(&mut map)?;
        write_some(&mut map, "path", self.path.as_ref())?;
        write_some(&mut map, "header", self.header.as_ref())?;
        write_some(&mut map, "required", self.required.then_some(true))?;
        write_some(&mut map, "role", self.role)?;
        write_some(&mut map, "list", self.list)?;
        write_some(&mut map, "wire", self.wire)?;
        write_some(&mut map, "show", self.show)?;
        write_some(&mut map, "about", Some(&self.about).filter(|about| !about.is_empty()))?;
        map.end()
    }
}

impl Serialize for SlotType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let SlotType::Named(name) = self {
            return serializer.serialize_str(name);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        self.write_into(&mut map)?;
        map.end()
    }
}

impl SlotType {
    /// Writes the one key that gives the type.
    fn write_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            SlotType::Named(name) => map.serialize_entry("type", name),
            SlotType::Ref(entity) => map.serialize_entry("ref", entity),
            SlotType::Array(item) => map.serialize_entry("array", item),
            SlotType::Select(choices) => map.serialize_entry("select", choices),
            SlotType::MultiSelect(choices) => map.serialize_entry("multi_select", choices),
            SlotType::Object(slots) => map.serialize_entry("object", slots),
            SlotType::Union(union) => map.serialize_entry("union", union),
        }
    }
}

fn write_some<M: SerializeMap, T: Serialize>(map: &mut M, key: &str, value: Option<T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, &value))
}
