//! Schemas to the types of a catalog: scalars with their formats, choices, arrays, small objects, unions with a tag.
//! Invariant: depth and width are bounded. A value that is too large, too deep or undeclared is `json`.

use catalog::Wire;
use catalog::raw::{Declaration, SlotType, UnionShape};
use indexmap::IndexMap;
use serde_json::Value;

use crate::draft::{self, is_json, named};
use crate::names;
use crate::spec::{Scalar, SchemaReader};

/// The number of choices of a `select`. More cost more tokens to teach than they help.
const MAX_CHOICES: usize = 16;

/// The number of arms of a union.
const MAX_ARMS: usize = 12;

/// How far nested values are spelled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// The number of slots of an object in a field or an optional input.
    pub slots: usize,
    /// The number of slots of an object that must be given.
    pub required_slots: usize,
    /// The number of objects inside each other.
    pub depth: usize,
}

impl Detail {
    /// The levels from the most detail to the least, for specifications that unfold to more than a catalog may hold.
    pub const LEVELS: [Detail; 3] = [
        Detail { slots: 5, required_slots: 16, depth: 2 },
        Detail { slots: 0, required_slots: 8, depth: 1 },
        Detail { slots: 0, required_slots: 0, depth: 0 },
    ];
}

/// The purpose of a value, which decides how much of it is spelled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Field,
    RequiredInput,
    OptionalInput,
}

/// Maps schemas to types.
pub struct TypeMapper<'r, 'a> {
    pub reader: &'r SchemaReader<'a>,
    pub detail: Detail,
}

impl<'a> TypeMapper<'_, 'a> {
    /// Returns the declaration of a field. Only small objects are spelled out, since a field is read and never written.
    pub fn field(&self, schema: &'a Value) -> Declaration {
        self.declare(schema, self.detail.depth.min(1), Purpose::Field)
    }

    /// Returns the declaration of an input of a body.
    pub fn input(&self, schema: &'a Value, required: bool) -> Declaration {
        let declaration = if required {
            self.declare(schema, self.detail.depth, Purpose::RequiredInput)
        } else {
            self.declare(schema, self.detail.depth.min(1), Purpose::OptionalInput)
        };
        Declaration { required, ..declaration }
    }

    /// Returns the type of a value that can stand in a path, a query or a header: a scalar, or a list of scalars.
    pub fn flat(&self, schema: &'a Value) -> Option<SlotType> {
        match self.kind(schema, 0, Purpose::OptionalInput) {
            SlotType::Array(item) if matches!(*item, SlotType::Array(_)) || is_json(&item) => {
                Some(SlotType::Array(Box::new(named("string"))))
            }
            SlotType::Object(_) | SlotType::Union(_) => None,
            kind if is_json(&kind) => (!self.reader.is_object(schema)).then(|| named("string")),
            kind => Some(kind),
        }
    }

    fn declare(&self, schema: &'a Value, depth: usize, purpose: Purpose) -> Declaration {
        let opened = self.reader.open(schema);
        let mut declaration = Declaration::new(self.kind(opened, depth, purpose));
        declaration.wire = self.is_number_as_text(opened).then_some(Wire::Text);
        declaration
    }

    /// Returns whether the value is a number that travels as text, since JSON numbers are too small for it.
    fn is_number_as_text(&self, opened: &'a Value) -> bool {
        let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
        self.reader.scalar(opened) == Some(Scalar::Text)
            && matches!(format, "int64" | "uint64" | "int32" | "uint32")
            && choices(opened).is_empty()
    }

    fn kind(&self, schema: &'a Value, depth: usize, purpose: Purpose) -> SlotType {
        let opened = self.reader.open(schema);
        if let Some(scalar) = self.reader.scalar(opened) {
            return scalar_kind(opened, scalar);
        }
        if let Some(item) = self.reader.items(opened) {
            return match self.kind(item, depth, purpose) {
                SlotType::Select(choices) => SlotType::MultiSelect(choices),
                // The type of an item cannot say how it travels.
                kind if is_json(&kind) || self.is_number_as_text(self.reader.open(item)) => named("json"),
                kind => SlotType::Array(Box::new(kind)),
            };
        }
        if let Some(union) = self.union(opened, depth) {
            return union;
        }
        if self.reader.arms(opened).iter().any(|arm| !self.reader.is_object(arm)) {
            return self.mixed(opened, purpose);
        }
        if self.reader.is_object(opened) && depth > 0 {
            let max = if purpose == Purpose::RequiredInput { self.detail.required_slots } else { self.detail.slots };
            return self.object(opened, depth, max, purpose).map_or_else(|| named("json"), SlotType::Object);
        }
        named("json")
    }

    /// Returns the type of alternatives that are not all objects.
    fn mixed(&self, opened: &'a Value, purpose: Purpose) -> SlotType {
        let arms = self.reader.arms(opened);
        let scalars: Vec<Scalar> = arms.iter().filter_map(|arm| self.reader.scalar(arm)).collect();
        let all_numbers = scalars.iter().all(|scalar| matches!(scalar, Scalar::Integer | Scalar::Number));
        if scalars.is_empty() {
            return named("json");
        }
        if scalars.len() == arms.len() && all_numbers {
            return named("number");
        }
        // An input may be the simplest of the alternatives, such as the id of an object. A field may be any of them.
        let takes_text = purpose != Purpose::Field && scalars.contains(&Scalar::Text);
        named(if takes_text { "string" } else { "json" })
    }

    /// Returns the slots of an object; `None` where it has too many, or a name that no slot can have.
    fn object(
        &self,
        opened: &'a Value,
        depth: usize,
        max: usize,
        purpose: Purpose,
    ) -> Option<IndexMap<String, Declaration>> {
        let object = self.reader.object(opened);
        if object.props.is_empty() || object.props.len() > max {
            return None;
        }
        let mut slots = IndexMap::with_capacity(object.props.len());
        for (name, prop) in &object.props {
            // A slot has the name that the API reads, so an object with another name is written as free JSON.
            if names::name(name) != *name {
                return None;
            }
            if is_read_only(self.reader.open(prop.schema)) {
                continue;
            }
            let purpose = match purpose {
                Purpose::Field => Purpose::Field,
                _ if prop.required => Purpose::RequiredInput,
                _ => Purpose::OptionalInput,
            };
            let kind = self.kind(prop.schema, depth - 1, purpose);
            slots.insert((*name).to_owned(), draft::param(kind, prop.required));
        }
        (!slots.is_empty()).then_some(slots)
    }

    /// Returns a union of objects that a discriminator tells apart.
    fn union(&self, opened: &'a Value, depth: usize) -> Option<SlotType> {
        let discriminator = opened.get("discriminator")?;
        let tag = discriminator.get("propertyName")?.as_str()?;
        let schemas = self.reader.arms(opened);
        if depth == 0 || schemas.len() < 2 || schemas.len() > MAX_ARMS || self.detail.slots == 0 {
            return None;
        }
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let mut arms: IndexMap<String, IndexMap<String, Declaration>> = IndexMap::new();
        for schema in schemas {
            let schema_name = self.reader.schema_name(schema)?;
            let leads_here =
                |target: &Value| target.as_str().is_some_and(|t| t.rsplit('/').next() == Some(schema_name));
            let mapped = mapping.and_then(|mapping| mapping.iter().find(|(_, target)| leads_here(target)));
            let arm = mapped.map_or(schema_name, |(value, _)| value.as_str());
            let mut slots = self.object(schema, depth, self.detail.required_slots, Purpose::OptionalInput)?;
            slots.shift_remove(tag);
            if arms.insert(arm.to_owned(), slots).is_some() {
                return None;
            }
        }
        Some(SlotType::Union(UnionShape { tag: Some(tag.to_owned()), nest: false, arms }))
    }
}

fn scalar_kind(opened: &Value, scalar: Scalar) -> SlotType {
    let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
    match scalar {
        Scalar::Boolean => named("boolean"),
        Scalar::Integer if format == "unix-time" => named("unix"),
        Scalar::Integer => named("integer"),
        Scalar::Number => named("number"),
        Scalar::Text => {
            let choices = choices(opened);
            if !choices.is_empty() {
                return SlotType::Select(choices);
            }
            named(match format {
                "date-time" => "time",
                "date" => "date",
                "uuid" => "uuid",
                "byte" => "blob",
                "html" => "html",
                "int64" | "uint64" | "int32" | "uint32" => "integer",
                "markdown" => "markdown",
                _ => "string",
            })
        }
    }
}

/// Returns the values of an `enum`, where they are few and all text.
fn choices(opened: &Value) -> Vec<String> {
    let Some(list) = opened.get("enum").and_then(Value::as_array) else { return Vec::new() };
    let mut out: Vec<String> = Vec::new();
    for value in list.iter().filter(|value| !value.is_null()) {
        let Value::String(text) = value else { return Vec::new() };
        let unfit = text.is_empty() || text.len() > 60 || text.contains(char::is_control);
        if unfit || out.len() == MAX_CHOICES {
            return Vec::new();
        }
        if !out.contains(text) {
            out.push(text.clone());
        }
    }
    out
}

pub fn is_read_only(opened: &Value) -> bool {
    opened.get("readOnly").and_then(Value::as_bool).unwrap_or(false)
}

pub fn is_write_only(opened: &Value) -> bool {
    opened.get("writeOnly").and_then(Value::as_bool).unwrap_or(false)
}

pub fn is_deprecated(opened: &Value) -> bool {
    opened.get("deprecated").and_then(Value::as_bool).unwrap_or(false)
}
