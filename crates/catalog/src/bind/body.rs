//! Bodies of requests: fills the holes of a body template with the arguments of a call.
//! Invariants: a hole that is a whole JSON value keeps the type of the argument. A hole without an argument is left
//! out. An object inside the body is left out if it has holes and all of them have no argument. `null` counts as an
//! argument where it clears a value in the API.

use base::{FormPart, Payload};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{CallValues, plain_text};
use crate::model::{Body, MultipartPart, ValueTemplate};
use crate::template::Hole;
use crate::types::{TextStyle, Type};

/// Fills a body template. Returns `None` only for a raw body whose hole has no argument.
pub(super) fn fill(values: &CallValues<'_>, body: &Body) -> Option<Payload> {
    match body {
        Body::Json { shape, content_type } => {
            let value = fill_whole_body(values, shape).unwrap_or_else(|| Value::Object(Map::new()));
            Some(Payload::Json { value, content_type: content_type.clone() })
        }
        Body::Form(shape) => {
            let value = fill_whole_body(values, shape).unwrap_or_default();
            let mut pairs = Vec::new();
            push_form_pairs(String::new(), &value, &mut pairs);
            Some(Payload::Form(pairs))
        }
        Body::Multipart(parts) => {
            Some(Payload::Multipart(parts.iter().filter_map(|part| fill_part(values, part)).collect()))
        }
        Body::Raw { value, content_type } => {
            let bytes = fill_bytes(values, value)?;
            Some(Payload::Bytes { content_type: content_type.clone(), bytes })
        }
    }
}

/// Fills the outermost value of a body. The fixed values of this object are part of every call, so they are sent even
/// if no hole has an argument.
fn fill_whole_body(values: &CallValues<'_>, template: &ValueTemplate) -> Option<Value> {
    match template {
        ValueTemplate::Object(parts) => Some(Value::Object(fill_object(values, parts))),
        other => fill_value(values, other),
    }
}

fn fill_object(values: &CallValues<'_>, parts: &IndexMap<String, ValueTemplate>) -> Map<String, Value> {
    parts.iter().filter_map(|(name, part)| Some((name.clone(), fill_value(values, part)?))).collect()
}

/// Fills one value of a template. Returns `None` if the value has holes and no hole has an argument.
pub(super) fn fill_value(values: &CallValues<'_>, template: &ValueTemplate) -> Option<Value> {
    match template {
        ValueTemplate::Fixed(value) => Some(value.clone()),
        ValueTemplate::Hole(hole) if values.is_cleared(hole) => Some(Value::Null),
        ValueTemplate::Hole(hole) => values.wire_value(hole).map(|value| value.into_owned()),
        ValueTemplate::Text(template) => template.fill_text(|hole| values.text_value(hole)).map(Value::String),
        ValueTemplate::Object(parts) => {
            // An object with fixed values and empty holes is useless to the API: `{"filter": {"op": "eq"}}` is not a
            // filter.
            let holes = template.holes();
            let has_value = |hole: &&Hole| values.wire_value(hole).is_some() || values.is_cleared(hole);
            let is_empty = !holes.is_empty() && !holes.iter().any(has_value);
            (!is_empty).then(|| Value::Object(fill_object(values, parts)))
        }
        ValueTemplate::Array(items) => {
            let filled: Vec<Value> = items.iter().filter_map(|item| fill_value(values, item)).collect();
            (!filled.is_empty() || items.is_empty()).then_some(Value::Array(filled))
        }
    }
}

/// Puts a value at a dotted path of a body. Missing objects along the path are created.
pub(super) fn put_at_path(body: &mut Option<Payload>, path: &str, value: Value) {
    match body.get_or_insert_with(|| Payload::json(Value::Object(Map::new()))) {
        Payload::Json { value: json, .. } => put_into_json(json, path, value),
        Payload::Form(pairs) => {
            let mut names = path.split('.');
            let first = names.next().unwrap_or_default();
            let nested: String = names.map(|name| format!("[{name}]")).collect();
            pairs.push((format!("{first}{nested}"), plain_text(&value)));
        }
        Payload::Multipart(parts) => parts.push(FormPart {
            name: path.to_owned(),
            file_name: None,
            content_type: None,
            bytes: plain_text(&value).into_bytes(),
        }),
        // This case does not occur: the reader refuses a catalog that would put a page parameter or a key into a raw
        // body.
        Payload::Bytes { .. } => {}
    }
}

fn put_into_json(json: &mut Value, path: &str, value: Value) {
    let mut target = json;
    for name in path.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = match target {
            Value::Object(map) => map.entry(name).or_insert(Value::Null),
            other => other,
        };
    }
    *target = value;
}

/// Appends the name and value pairs of a form. Nested objects and arrays are written as `a[b]=1` and `a[]=2`.
fn push_form_pairs(name: String, value: &Value, pairs: &mut Vec<(String, String)>) {
    let nested_name = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}[{key}]") };
    match value {
        Value::Null => {}
        Value::Object(map) => map.iter().for_each(|(key, value)| push_form_pairs(nested_name(key), value, pairs)),
        Value::Array(items) => items.iter().for_each(|item| push_form_pairs(nested_name(""), item, pairs)),
        scalar => pairs.push((name, plain_text(scalar))),
    }
}

fn fill_part(values: &CallValues<'_>, part: &MultipartPart) -> Option<FormPart> {
    Some(FormPart {
        name: part.name.clone(),
        file_name: part.file_name.as_ref().and_then(|template| template.fill_text(|hole| values.text_value(hole))),
        content_type: part.content_type.clone(),
        bytes: fill_bytes(values, &part.value)?,
    })
}

/// Fills a value that is sent as bytes. A blob argument is decoded from base64, and any other value becomes the bytes
/// of its text.
fn fill_bytes(values: &CallValues<'_>, template: &ValueTemplate) -> Option<Vec<u8>> {
    if let ValueTemplate::Hole(hole) = template
        && values.param(hole).is_some_and(|p| p.kind == Type::String(TextStyle::Blob))
        && let Some(decoded) = values.text_value(hole).and_then(|text| STANDARD.decode(text.as_bytes()).ok())
    {
        return Some(decoded);
    }
    Some(plain_text(&fill_value(values, template)?).into_bytes())
}
