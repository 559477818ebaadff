//! GraphQL types to the types of a catalog.
//! Invariant: depth and width are bounded; what is too large or unknown is `json`.

use super::schema::{Def, Form, Schema, TypeRef};
use crate::draft::{Slot, Ty};
use crate::names;

const MAX_CHOICES: usize = 16;

/// A leaf: a scalar or an enum.
pub fn leaf(schema: &Schema, name: &str) -> Option<Ty> {
    let named = |text: &str| Some(Ty::named(text));
    match name {
        "Int" => named("integer"),
        "Float" => named("number"),
        "Boolean" => named("boolean"),
        "String" | "ID" => named("string"),
        _ => match schema.get(name) {
            Some(def) if def.form == Form::Enum => {
                let choices = def.values.clone();
                let few = !choices.is_empty() && choices.len() <= MAX_CHOICES;
                Some(if few { Ty::Select(choices) } else { Ty::named("string") })
            }
            Some(def) if def.form == Form::Scalar => Some(scalar(name)),
            None if !name.is_empty() => Some(scalar(name)),
            _ => None,
        },
    }
}

fn scalar(name: &str) -> Ty {
    let lower = name.to_ascii_lowercase();
    Ty::named(match lower.as_str() {
        "datetime" | "iso8601datetime" | "timestamptz" => "time",
        "date" | "iso8601date" => "date",
        "html" => "html",
        "uri" | "url" | "uuid" | "gitobjectid" | "gitsshremote" | "base64string" | "email" => "string",
        "long" | "int64" | "unsignedint64" => "integer",
        "decimal" | "money" => "json",
        _ => "json",
    })
}

pub fn field(schema: &Schema, ty: &TypeRef) -> Option<Ty> {
    let inner = leaf(schema, &ty.name)?;
    Some(match inner {
        inner if !ty.list => inner,
        Ty::Select(choices) => Ty::MultiSelect(choices),
        inner if inner.is_json() || ty.text.starts_with("[[") => Ty::named("json"),
        inner => Ty::Array(Box::new(inner)),
    })
}

pub fn input(schema: &Schema, ty: &TypeRef, depth: usize) -> Ty {
    if let Some(ty) = field(schema, ty) {
        return ty;
    }
    let object = schema.get(&ty.name).filter(|def| def.form == Form::Input && depth > 0);
    let inner = object.and_then(|def| slots(schema, def, depth));
    match inner {
        Some(slots) if ty.list => Ty::Array(Box::new(Ty::Object(slots))),
        Some(slots) => Ty::Object(slots),
        None => Ty::named("json"),
    }
}

fn slots(schema: &Schema, def: &Def, depth: usize) -> Option<Vec<Slot>> {
    if def.fields.is_empty() || def.fields.len() > 12 || def.fields.keys().any(|name| names::name(name) != *name) {
        return None;
    }
    let slot = |field: &super::schema::Field| Slot {
        name: field.name.clone(),
        ty: input(schema, &field.ty, depth - 1),
        required: field.ty.required,
    };
    Some(def.fields.values().map(slot).collect())
}
