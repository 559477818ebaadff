//! Bodies: shapes with their holes filled.
//! Invariant: a hole that stands alone keeps its JSON type; what has no value is left out, and so is an object inside the body
//! that lost everything it had holes for. `null` in an update is a value: it empties what it sets.

use base::{FormPart, Payload};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{Values, plain_text};
use crate::model::{Body, Part, Shape};
use crate::template::Hole;
use crate::types::{TextStyle, Type};

pub(super) fn fill(values: &Values<'_>, body: &Body) -> Option<Payload> {
    match body {
        Body::Json { shape, content_type } => {
            let value = whole(values, shape).unwrap_or_else(|| Value::Object(Map::new()));
            Some(Payload::Json { value, content_type: content_type.clone() })
        }
        Body::Form(shape) => {
            let value = whole(values, shape).unwrap_or_default();
            let mut pairs = Vec::new();
            flatten(String::new(), &value, &mut pairs);
            Some(Payload::Form(pairs))
        }
        Body::Multipart(parts) => Some(Payload::Multipart(parts.iter().filter_map(|p| part(values, p)).collect())),
        Body::Raw { value, content_type } => {
            let bytes = bytes(values, value)?;
            Some(Payload::Bytes { content_type: content_type.clone(), bytes })
        }
    }
}

/// The body itself: its fixed words are what the call does, so they stay when every hole is empty.
fn whole(values: &Values<'_>, shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Object(parts) => Some(Value::Object(filled(values, parts))),
        other => fill_shape(values, other),
    }
}

fn filled(values: &Values<'_>, parts: &IndexMap<String, Shape>) -> Map<String, Value> {
    parts.iter().filter_map(|(name, part)| Some((name.clone(), fill_shape(values, part)?))).collect()
}

/// `None` when nothing in it has a value.
pub(super) fn fill_shape(values: &Values<'_>, shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Fixed(value) => Some(value.clone()),
        Shape::Hole(hole) if values.emptied(hole) => Some(Value::Null),
        Shape::Hole(hole) => values.wire(hole).map(|value| value.into_owned()),
        Shape::Text(template) => template.fill_text(|hole| values.text(hole)).map(Value::String),
        Shape::Object(parts) => {
            // Fixed words around holes that have no value say nothing: `{"filter": {"op": "eq"}}` is no filter.
            let said = |hole: &&Hole| values.wire(hole).is_some() || values.emptied(hole);
            let lost = !shape.holes().is_empty() && !shape.holes().iter().any(said);
            (!lost).then(|| Value::Object(filled(values, parts)))
        }
        Shape::Array(items) => {
            let filled: Vec<Value> = items.iter().filter_map(|item| fill_shape(values, item)).collect();
            (!filled.is_empty() || items.is_empty()).then_some(Value::Array(filled))
        }
    }
}

/// Puts a value at a dotted path of a body, making the objects on the way.
pub(super) fn put(body: &mut Option<Payload>, path: &str, value: Value) {
    match body.get_or_insert_with(|| Payload::json(Value::Object(Map::new()))) {
        Payload::Json { value: at, .. } => {
            put_at(at, path, value);
        }
        Payload::Form(pairs) => {
            let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
            let nested: String =
                rest.into_iter().flat_map(|rest| rest.split('.')).map(|name| format!("[{name}]")).collect();
            pairs.push((format!("{first}{nested}"), plain_text(&value)));
        }
        Payload::Multipart(parts) => parts.push(FormPart {
            name: path.to_owned(),
            file_name: None,
            content_type: None,
            bytes: plain_text(&value).into_bytes(),
        }),
        // The reader refuses a catalog that would put something into bytes.
        Payload::Bytes { .. } => {}
    }
}

fn put_at(mut at: &mut Value, path: &str, value: Value) {
    for name in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = match at {
            Value::Object(map) => map.entry(name).or_insert(Value::Null),
            other => other,
        };
    }
    *at = value;
}

/// `a[b]=1`, `a[]=2`, as forms nest.
fn flatten(name: String, value: &Value, pairs: &mut Vec<(String, String)>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}[{key}]") };
    match value {
        Value::Null => {}
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(inner(key), value, pairs)),
        Value::Array(items) => items.iter().for_each(|item| flatten(inner(""), item, pairs)),
        scalar => pairs.push((name, plain_text(scalar))),
    }
}

fn part(values: &Values<'_>, part: &Part) -> Option<FormPart> {
    Some(FormPart {
        name: part.name.clone(),
        file_name: part.file_name.as_ref().and_then(|template| template.fill_text(|hole| values.text(hole))),
        content_type: part.content_type.clone(),
        bytes: bytes(values, &part.value)?,
    })
}

/// A blob is sent as the bytes that its base64 stands for, anything else as its text.
fn bytes(values: &Values<'_>, shape: &Shape) -> Option<Vec<u8>> {
    if let Shape::Hole(hole) = shape
        && values.param(hole).is_some_and(|p| p.kind == Type::String(TextStyle::Blob))
        && let Some(decoded) = values.text(hole).and_then(|text| STANDARD.decode(text.as_bytes()).ok())
    {
        return Some(decoded);
    }
    Some(plain_text(&fill_shape(values, shape)?).into_bytes())
}
