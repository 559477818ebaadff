//! GraphQL types to the types of a catalog.
//! Invariant: depth and width are bounded. A value that is too large or unknown is `json`.

use catalog::raw::{Declaration, SlotType};
use indexmap::IndexMap;

use super::schema::{Form, Schema, TypeDef, TypeRef};
use crate::draft::{self, is_json, named};
use crate::names;

/// The number of choices of a `select`. More cost more tokens to teach than they help.
const MAX_CHOICES: usize = 16;

/// The number of slots of an input object.
const MAX_SLOTS: usize = 12;

/// Returns the type of a scalar or an enum; `None` for any other type.
pub fn leaf(schema: &Schema, name: &str) -> Option<SlotType> {
    match name {
        "Int" => return Some(named("integer")),
        "Float" => return Some(named("number")),
        "Boolean" => return Some(named("boolean")),
        "String" | "ID" => return Some(named("string")),
        _ => {}
    }
    match schema.get(name) {
        Some(def) if def.form == Form::Enum => {
            let has_few_values = !def.values.is_empty() && def.values.len() <= MAX_CHOICES;
            Some(if has_few_values { SlotType::Select(def.values.clone()) } else { named("string") })
        }
        Some(def) if def.form == Form::Scalar => Some(custom_scalar(name)),
        // Some introspection results leave out scalars.
        None if !name.is_empty() => Some(custom_scalar(name)),
        _ => None,
    }
}

/// Returns the type of a scalar that is not GraphQL's own, by its usual names.
fn custom_scalar(name: &str) -> SlotType {
    named(match name.to_ascii_lowercase().as_str() {
        "datetime" | "iso8601datetime" | "timestamptz" => "time",
        "date" | "iso8601date" => "date",
        "html" => "html",
        "uri" | "url" | "uuid" | "gitobjectid" | "gitsshremote" | "base64string" | "email" => "string",
        "long" | "int64" | "unsignedint64" => "integer",
        _ => "json",
    })
}

/// Returns the type of a leaf or a list of leaves; `None` for objects.
pub fn output(schema: &Schema, ty: &TypeRef) -> Option<SlotType> {
    let leaf = leaf(schema, &ty.name)?;
    Some(match leaf {
        leaf if !ty.is_list => leaf,
        SlotType::Select(choices) => SlotType::MultiSelect(choices),
        leaf if is_json(&leaf) || ty.text.starts_with("[[") => named("json"),
        leaf => SlotType::Array(Box::new(leaf)),
    })
}

/// Returns the type of an argument or of a field of an input. `depth` is the number of input objects inside each other.
pub fn input(schema: &Schema, ty: &TypeRef, depth: usize) -> SlotType {
    if let Some(kind) = output(schema, ty) {
        return kind;
    }
    let def = schema.get(&ty.name).filter(|def| def.form == Form::Input && depth > 0);
    match def.and_then(|def| slots(schema, def, depth)) {
        Some(slots) if ty.is_list => SlotType::Array(Box::new(SlotType::Object(slots))),
        Some(slots) => SlotType::Object(slots),
        None => named("json"),
    }
}

fn slots(schema: &Schema, def: &TypeDef, depth: usize) -> Option<IndexMap<String, Declaration>> {
    let has_other_names = def.fields.keys().any(|name| names::name(name) != *name);
    if def.fields.is_empty() || def.fields.len() > MAX_SLOTS || has_other_names {
        return None;
    }
    let mut out = IndexMap::with_capacity(def.fields.len());
    for field in def.fields.values() {
        out.insert(field.name.clone(), draft::param(input(schema, &field.ty, depth - 1), field.ty.required));
    }
    Some(out)
}
