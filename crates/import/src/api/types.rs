//! The mapping of JSON schemas to catalog types: scalars with formats, choices, arrays, small objects, unions with a tag.
//! An opened schema is the schema behind references and single-element wrappers (`SchemaReader::open`).
//! Invariant: depth and width are bounded. A value that is too large, too deep or undeclared becomes the type `json`.

use catalog::Wire;
use catalog::raw::{Declaration, SlotType, UnionShape};
use indexmap::IndexMap;
use serde_json::Value;

use crate::draft::{self, is_json, named_type};
use crate::names;
use crate::spec::{Scalar, SchemaReader};

/// The maximum number of choices of a `select`. An `enum` with more values becomes text, because teaching every choice costs
/// too many tokens.
const MAX_CHOICES: usize = 16;

/// The maximum number of alternatives of a union.
const MAX_UNION_ALTERNATIVES: usize = 12;

/// The limits on nested objects in catalog types. An object over a limit becomes the type `json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// The maximum number of slots of an object in a field or in an optional input.
    pub slots: usize,
    /// The maximum number of slots of an object in a required input.
    pub required_slots: usize,
    /// The maximum nesting of objects.
    pub depth: usize,
}

impl Detail {
    /// The levels from the most detail to the least. A lower level is used if the draft would have more slots than a catalog
    /// allows.
    pub const LEVELS: [Detail; 3] = [
        Detail { slots: 5, required_slots: 16, depth: 2 },
        Detail { slots: 0, required_slots: 8, depth: 1 },
        Detail { slots: 0, required_slots: 0, depth: 0 },
    ];
}

/// The purpose of a value. It decides how many slots of an object become part of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Field,
    RequiredInput,
    OptionalInput,
}

/// Maps schemas to catalog types with a given level of detail.
pub struct TypeMapper<'r, 'a> {
    pub reader: &'r SchemaReader<'a>,
    pub detail: Detail,
}

impl<'a> TypeMapper<'_, 'a> {
    /// Returns the declaration of an entity's field. Only small objects are typed in full, because programs read fields and
    /// never write them.
    pub fn field_declaration(&self, schema: &'a Value) -> Declaration {
        self.declare(schema, self.detail.depth.min(1), Purpose::Field)
    }

    /// Returns the declaration of a property of a request body.
    pub fn input_declaration(&self, schema: &'a Value, required: bool) -> Declaration {
        let declaration = if required {
            self.declare(schema, self.detail.depth, Purpose::RequiredInput)
        } else {
            self.declare(schema, self.detail.depth.min(1), Purpose::OptionalInput)
        };
        Declaration { required, ..declaration }
    }

    /// Returns the type of a value in a path, a query or a header: a scalar or a list of scalars. Returns `None` for objects
    /// and unions.
    pub fn flat_type(&self, schema: &'a Value) -> Option<SlotType> {
        match self.slot_type(schema, 0, Purpose::OptionalInput) {
            SlotType::Array(item) if matches!(*item, SlotType::Array(_)) || is_json(&item) => {
                Some(SlotType::Array(Box::new(named_type("string"))))
            }
            SlotType::Object(_) | SlotType::Union(_) => None,
            kind if is_json(&kind) => (!self.reader.is_object(schema)).then(|| named_type("string")),
            kind => Some(kind),
        }
    }

    fn declare(&self, schema: &'a Value, depth: usize, purpose: Purpose) -> Declaration {
        let opened = self.reader.open(schema);
        let mut declaration = Declaration::new(self.slot_type(opened, depth, purpose));
        declaration.wire = self.is_number_as_text(opened).then_some(Wire::Text);
        declaration
    }

    /// Returns whether the value is an integer that is sent as text, as APIs do for 64-bit integers that JSON numbers cannot
    /// represent.
    fn is_number_as_text(&self, opened: &'a Value) -> bool {
        let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
        self.reader.scalar(opened) == Some(Scalar::Text)
            && matches!(format, "int64" | "uint64" | "int32" | "uint32")
            && select_choices(opened).is_empty()
    }

    fn slot_type(&self, schema: &'a Value, depth: usize, purpose: Purpose) -> SlotType {
        let opened = self.reader.open(schema);
        if let Some(scalar) = self.reader.scalar(opened) {
            return scalar_type(opened, scalar);
        }
        if let Some(item) = self.reader.items(opened) {
            return match self.slot_type(item, depth, purpose) {
                SlotType::Select(choices) => SlotType::MultiSelect(choices),
                // A catalog declares number-as-text per slot and not per array item, so an array of such numbers is `json`.
                kind if is_json(&kind) || self.is_number_as_text(self.reader.open(item)) => named_type("json"),
                kind => SlotType::Array(Box::new(kind)),
            };
        }
        if let Some(union) = self.union_type(opened, depth) {
            return union;
        }
        if self.reader.alternatives(opened).iter().any(|arm| !self.reader.is_object(arm)) {
            return self.mixed_type(opened, purpose);
        }
        if self.reader.is_object(opened) && depth > 0 {
            let max = if purpose == Purpose::RequiredInput { self.detail.required_slots } else { self.detail.slots };
            return self.object_slots(opened, depth, max, purpose).map_or_else(|| named_type("json"), SlotType::Object);
        }
        named_type("json")
    }

    /// Returns the type of a schema whose alternatives are not all objects.
    fn mixed_type(&self, opened: &'a Value, purpose: Purpose) -> SlotType {
        let arms = self.reader.alternatives(opened);
        let scalars: Vec<Scalar> = arms.iter().filter_map(|arm| self.reader.scalar(arm)).collect();
        let all_numbers = scalars.iter().all(|scalar| matches!(scalar, Scalar::Integer | Scalar::Number));
        if scalars.is_empty() {
            return named_type("json");
        }
        if scalars.len() == arms.len() && all_numbers {
            return named_type("number");
        }
        // An input may use the simplest alternative, such as the id of an object. A field may contain any of them.
        let takes_text = purpose != Purpose::Field && scalars.contains(&Scalar::Text);
        named_type(if takes_text { "string" } else { "json" })
    }

    /// Returns the slots of an object; `None` if it has more than `max` properties or a property name that is not a valid slot
    /// name.
    fn object_slots(
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
            // The name of a slot is sent to the API, so a property name that needs a change makes the whole object `json`.
            if names::field_name(name) != *name {
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
            let kind = self.slot_type(prop.schema, depth - 1, purpose);
            slots.insert((*name).to_owned(), draft::param_declaration(kind, prop.required));
        }
        (!slots.is_empty()).then_some(slots)
    }

    /// Returns the union type of a schema with a `discriminator`; `None` if the schema has no usable one.
    fn union_type(&self, opened: &'a Value, depth: usize) -> Option<SlotType> {
        let discriminator = opened.get("discriminator")?;
        let tag = discriminator.get("propertyName")?.as_str()?;
        let schemas = self.reader.alternatives(opened);
        if depth == 0 || schemas.len() < 2 || schemas.len() > MAX_UNION_ALTERNATIVES || self.detail.slots == 0 {
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
            let mut slots = self.object_slots(schema, depth, self.detail.required_slots, Purpose::OptionalInput)?;
            slots.shift_remove(tag);
            if arms.insert(arm.to_owned(), slots).is_some() {
                return None;
            }
        }
        Some(SlotType::Union(UnionShape { tag: Some(tag.to_owned()), nest: false, arms }))
    }
}

fn scalar_type(opened: &Value, scalar: Scalar) -> SlotType {
    let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
    match scalar {
        Scalar::Boolean => named_type("boolean"),
        Scalar::Integer if format == "unix-time" => named_type("unix"),
        Scalar::Integer => named_type("integer"),
        Scalar::Number => named_type("number"),
        Scalar::Text => {
            let choices = select_choices(opened);
            if !choices.is_empty() {
                return SlotType::Select(choices);
            }
            named_type(match format {
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

/// Returns the values of an `enum` of at most `MAX_CHOICES` short texts; otherwise an empty list.
fn select_choices(opened: &Value) -> Vec<String> {
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
