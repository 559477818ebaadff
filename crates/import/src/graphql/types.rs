//! The mapping of GraphQL types to catalog types.
//! Invariant: depth and width are bounded. A value that is too large or of an unknown type becomes the type `json`.

use catalog::raw::{Declaration, SlotType};
use indexmap::IndexMap;

use super::schema::{Schema, TypeDef, TypeKind, TypeRef};
use crate::draft::{self, is_json, named_type};
use crate::names;

/// The maximum number of choices of a `select`. An enum with more values becomes text, because teaching every choice costs too
/// many tokens.
const MAX_CHOICES: usize = 16;

/// The maximum number of slots of an input object. A larger object becomes `json`.
const MAX_INPUT_OBJECT_SLOTS: usize = 12;

/// Returns the type of a scalar or an enum; `None` for any other type.
pub fn leaf_type(schema: &Schema, name: &str) -> Option<SlotType> {
    match name {
        "Int" => return Some(named_type("integer")),
        "Float" => return Some(named_type("number")),
        "Boolean" => return Some(named_type("boolean")),
        "String" | "ID" => return Some(named_type("string")),
        _ => {}
    }
    match schema.get(name) {
        Some(def) if def.kind == TypeKind::Enum => {
            let has_few_values = !def.values.is_empty() && def.values.len() <= MAX_CHOICES;
            Some(if has_few_values { SlotType::Select(def.values.clone()) } else { named_type("string") })
        }
        Some(def) if def.kind == TypeKind::Scalar => Some(custom_scalar(name)),
        // Some introspection answers omit the definitions of scalars.
        None if !name.is_empty() => Some(custom_scalar(name)),
        _ => None,
    }
}

/// Returns the catalog type of a custom scalar, recognised by common names such as `DateTime`.
fn custom_scalar(name: &str) -> SlotType {
    named_type(match name.to_ascii_lowercase().as_str() {
        "datetime" | "iso8601datetime" | "timestamptz" => "time",
        "date" | "iso8601date" => "date",
        "html" => "html",
        "uri" | "url" | "uuid" | "gitobjectid" | "gitsshremote" | "base64string" | "email" => "string",
        "long" | "int64" | "unsignedint64" => "integer",
        _ => "json",
    })
}

/// Returns the type of a scalar, an enum or a list of them; `None` for objects.
pub fn output_type(schema: &Schema, ty: &TypeRef) -> Option<SlotType> {
    let leaf = leaf_type(schema, &ty.name)?;
    Some(match leaf {
        leaf if !ty.is_list => leaf,
        SlotType::Select(choices) => SlotType::MultiSelect(choices),
        leaf if is_json(&leaf) || ty.text.starts_with("[[") => named_type("json"),
        leaf => SlotType::Array(Box::new(leaf)),
    })
}

/// Returns the type of an argument or an input field. `depth` is how many levels of input objects are still typed in full.
pub fn input_type(schema: &Schema, ty: &TypeRef, depth: usize) -> SlotType {
    if let Some(kind) = output_type(schema, ty) {
        return kind;
    }
    let def = schema.get(&ty.name).filter(|def| def.kind == TypeKind::Input && depth > 0);
    match def.and_then(|def| object_slots(schema, def, depth)) {
        Some(slots) if ty.is_list => SlotType::Array(Box::new(SlotType::Object(slots))),
        Some(slots) => SlotType::Object(slots),
        None => named_type("json"),
    }
}

fn object_slots(schema: &Schema, def: &TypeDef, depth: usize) -> Option<IndexMap<String, Declaration>> {
    let has_other_names = def.fields.keys().any(|name| names::field_name(name) != *name);
    if def.fields.is_empty() || def.fields.len() > MAX_INPUT_OBJECT_SLOTS || has_other_names {
        return None;
    }
    let mut out = IndexMap::with_capacity(def.fields.len());
    for field in def.fields.values() {
        out.insert(
            field.name.clone(),
            draft::param_declaration(input_type(schema, &field.ty, depth - 1), field.ty.required),
        );
    }
    Some(out)
}
