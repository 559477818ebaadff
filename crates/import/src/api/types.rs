//! Schemas to the types of a catalog: scalars with their formats, choices, arrays, small objects, unions with a tag.
//! Invariant: depth and width are bounded; what is too large, too deep or unsaid is `json`.

use serde_json::Value;

use crate::draft::{Slot, Ty};
use crate::names;
use crate::spec::{Reader, Scalar};

/// More choices cost more to teach than they help.
const MAX_CHOICES: usize = 16;

/// How much of nested values is spelled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Slots of an object in a field or an optional input.
    pub slots: usize,
    /// Slots of an object that must be given.
    pub required_slots: usize,
    pub depth: usize,
}

impl Detail {
    /// From the most to the least, for specifications that would unfold beyond what a catalog holds.
    pub const LEVELS: [Detail; 3] = [
        Detail { slots: 5, required_slots: 16, depth: 2 },
        Detail { slots: 0, required_slots: 8, depth: 1 },
        Detail { slots: 0, required_slots: 0, depth: 0 },
    ];
}

/// A type, and whether a number travels as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed {
    pub ty: Ty,
    pub as_text: bool,
}

/// Whether a value is read, or written and how surely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Field,
    Required,
    Optional,
}

fn plain(ty: Ty) -> Typed {
    Typed { ty, as_text: false }
}

fn named(name: &str) -> Typed {
    plain(Ty::named(name))
}

pub struct Types<'r, 'a> {
    pub reader: &'r Reader<'a>,
    pub detail: Detail,
}

impl<'a> Types<'_, 'a> {
    /// Of a field: `small` objects only, for it is read and not written.
    pub fn field(&self, schema: &'a Value) -> Typed {
        self.of(schema, self.detail.depth.min(1), Use::Field)
    }

    pub fn input(&self, schema: &'a Value, required: bool) -> Typed {
        // What need not be given is not spelled out to its end.
        let depth = if required { self.detail.depth } else { self.detail.depth.min(1) };
        self.of(schema, depth, if required { Use::Required } else { Use::Optional })
    }

    /// What can stand in a path, a query or a header: a scalar, or several.
    pub fn flat(&self, schema: &'a Value) -> Option<Typed> {
        let typed = self.of(schema, 0, Use::Optional);
        match &typed.ty {
            Ty::Array(of) if matches!(**of, Ty::Array(_)) || of.is_json() => {
                Some(plain(Ty::Array(Box::new(Ty::named("string")))))
            }
            Ty::Object(_) | Ty::Union { .. } => None,
            ty if ty.is_json() => {
                let object = self.reader.is_object(schema);
                (!object).then(|| named("string"))
            }
            _ => Some(typed),
        }
    }

    fn of(&self, schema: &'a Value, depth: usize, usage: Use) -> Typed {
        let opened = self.reader.open(schema);
        if let Some(scalar) = self.reader.scalar(opened) {
            return self.scalar(opened, scalar);
        }
        if let Some(item) = self.reader.items(opened) {
            let of = self.of(item, depth, usage);
            return match of.ty {
                Ty::Select(choices) => plain(Ty::MultiSelect(choices)),
                ty if ty.is_json() || of.as_text => named("json"),
                ty => plain(Ty::Array(Box::new(ty))),
            };
        }
        if let Some(union) = self.union(opened, depth) {
            return plain(union);
        }
        if self.reader.arms(opened).iter().any(|arm| !self.reader.is_object(arm)) {
            return self.mixed(opened, usage);
        }
        if self.reader.is_object(opened) && depth > 0 {
            let most = if usage == Use::Required { self.detail.required_slots } else { self.detail.slots };
            return self.object(opened, depth, most, usage).map_or_else(|| named("json"), plain);
        }
        named("json")
    }

    /// One of several things that are not all objects: text where each is a scalar or an object stands for its id.
    fn mixed(&self, opened: &'a Value, usage: Use) -> Typed {
        let arms = self.reader.arms(opened);
        let scalars: Vec<Scalar> = arms.iter().filter_map(|arm| self.reader.scalar(arm)).collect();
        let numbers = scalars.iter().all(|scalar| matches!(scalar, Scalar::Integer | Scalar::Number));
        match scalars.as_slice() {
            [] => named("json"),
            _ if scalars.len() == arms.len() && numbers => named("number"),
            // What is written may be the plainest of them; what is read may be any.
            _ if usage != Use::Field && scalars.contains(&Scalar::Text) => named("string"),
            _ => named("json"),
        }
    }

    fn object(&self, opened: &'a Value, depth: usize, most: usize, usage: Use) -> Option<Ty> {
        let object = self.reader.object(opened);
        if object.props.is_empty() || object.props.len() > most {
            return None;
        }
        let mut slots = Vec::with_capacity(object.props.len());
        for (name, prop) in &object.props {
            // A slot is written as the API wants it, so a name that is none makes the whole of it free.
            if names::name(name) != *name {
                return None;
            }
            if read_only(self.reader.open(prop.schema)) {
                continue;
            }
            let usage = match usage {
                Use::Field => Use::Field,
                _ if prop.required => Use::Required,
                _ => Use::Optional,
            };
            let ty = self.of(prop.schema, depth - 1, usage).ty;
            slots.push(Slot { name: (*name).to_owned(), ty, required: prop.required });
        }
        (!slots.is_empty()).then_some(Ty::Object(slots))
    }

    /// Objects that a tag tells apart.
    fn union(&self, opened: &'a Value, depth: usize) -> Option<Ty> {
        let tag = opened.get("discriminator")?.get("propertyName")?.as_str()?;
        let arms = self.reader.arms(opened);
        if depth == 0 || arms.len() < 2 || arms.len() > 12 || self.detail.slots == 0 {
            return None;
        }
        let mapping = opened.get("discriminator")?.get("mapping").and_then(Value::as_object);
        let mut out: Vec<(String, Vec<Slot>)> = Vec::new();
        for arm in arms {
            let ident = self.reader.ident(arm)?;
            let ends = |target: &Value| target.as_str().is_some_and(|t| t.rsplit('/').next() == Some(ident));
            let value =
                mapping.and_then(|m| m.iter().find(|(_, target)| ends(target))).map(|(value, _)| value.as_str());
            let Some(Ty::Object(mut slots)) = self.object(arm, depth, self.detail.required_slots, Use::Optional) else {
                return None;
            };
            slots.retain(|slot| slot.name != tag);
            let arm = value.unwrap_or(ident).to_owned();
            if out.iter().any(|(known, _)| *known == arm) {
                return None;
            }
            out.push((arm, slots));
        }
        Some(Ty::Union { tag: tag.to_owned(), arms: out })
    }

    fn scalar(&self, opened: &'a Value, scalar: Scalar) -> Typed {
        let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
        match scalar {
            Scalar::Boolean => named("boolean"),
            Scalar::Integer if format == "unix-time" => named("unix"),
            Scalar::Integer => named("integer"),
            Scalar::Number => named("number"),
            Scalar::Text => {
                let choices = choices(opened);
                if !choices.is_empty() {
                    return plain(Ty::Select(choices));
                }
                match format {
                    "date-time" => named("time"),
                    "date" => named("date"),
                    "uuid" => named("uuid"),
                    "byte" => named("blob"),
                    "html" => named("html"),
                    "int64" | "uint64" | "int32" | "uint32" => Typed { ty: Ty::named("integer"), as_text: true },
                    "markdown" => named("markdown"),
                    _ => named("string"),
                }
            }
        }
    }
}

/// The values it is one of, where they are few and all text.
fn choices(opened: &Value) -> Vec<String> {
    let Some(list) = opened.get("enum").and_then(Value::as_array) else { return Vec::new() };
    let mut out: Vec<String> = Vec::new();
    for value in list.iter().filter(|value| !value.is_null()) {
        let Value::String(text) = value else { return Vec::new() };
        let odd = text.is_empty() || text.len() > 60 || text.contains(char::is_control);
        if odd || out.len() == MAX_CHOICES {
            return Vec::new();
        }
        if !out.contains(text) {
            out.push(text.clone());
        }
    }
    out
}

pub fn read_only(opened: &Value) -> bool {
    opened.get("readOnly").and_then(Value::as_bool).unwrap_or(false)
}

pub fn write_only(opened: &Value) -> bool {
    opened.get("writeOnly").and_then(Value::as_bool).unwrap_or(false)
}

pub fn deprecated(opened: &Value) -> bool {
    opened.get("deprecated").and_then(Value::as_bool).unwrap_or(false)
}
