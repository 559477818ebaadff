//! Bodies of requests: the templates of a body with their holes filled.
//! Invariants: a hole that stands alone keeps the JSON type of its value. A hole without a value is left out, and so is an
//! object inside the body if none of its holes has a value. `null` in an update is a value, because it clears what it sets.

use base::{FormPart, Payload};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{CallValues, plain_text};
use crate::model::{Body, MultipartPart, ValueTemplate};
use crate::template::Hole;
use crate::types::{TextStyle, Type};

/// Fills a body. Returns `None` only for a raw body without a value.
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

/// Fills the outermost value of a body. Its fixed values say what the call does, so they stay even if no hole has a value.
fn fill_whole_body(values: &CallValues<'_>, template: &ValueTemplate) -> Option<Value> {
    match template {
        ValueTemplate::Object(parts) => Some(Value::Object(fill_object(values, parts))),
        other => fill_value(values, other),
    }
}

fn fill_object(values: &CallValues<'_>, parts: &IndexMap<String, ValueTemplate>) -> Map<String, Value> {
    parts.iter().filter_map(|(name, part)| Some((name.clone(), fill_value(values, part)?))).collect()
}

/// Fills a value. Returns `None` if it has holes and none of them has a value.
pub(super) fn fill_value(values: &CallValues<'_>, template: &ValueTemplate) -> Option<Value> {
    match template {
        ValueTemplate::Fixed(value) => Some(value.clone()),
        ValueTemplate::Hole(hole) if values.clears(hole) => Some(Value::Null),
        ValueTemplate::Hole(hole) => values.wire_value(hole).map(|value| value.into_owned()),
        ValueTemplate::Text(template) => template.fill_text(|hole| values.text(hole)).map(Value::String),
        ValueTemplate::Object(parts) => {
            // Fixed values around empty holes have no meaning to the API: `{"filter": {"op": "eq"}}` is not a filter.
            let holes = template.holes();
            let has_value = |hole: &&Hole| values.wire_value(hole).is_some() || values.clears(hole);
            let is_empty = !holes.is_empty() && !holes.iter().any(has_value);
            (!is_empty).then(|| Value::Object(fill_object(values, parts)))
        }
        ValueTemplate::Array(items) => {
            let filled: Vec<Value> = items.iter().filter_map(|item| fill_value(values, item)).collect();
            (!filled.is_empty() || items.is_empty()).then_some(Value::Array(filled))
        }
    }
}

/// Puts a value at a dotted path of a body and makes the objects on the way.
pub(super) fn put(body: &mut Option<Payload>, path: &str, value: Value) {
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
        // The reader refuses a catalog that would put a value into bytes.
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

/// Appends the pairs of a form, in which nested values are written `a[b]=1` and `a[]=2`.
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
        file_name: part.file_name.as_ref().and_then(|template| template.fill_text(|hole| values.text(hole))),
        content_type: part.content_type.clone(),
        bytes: fill_bytes(values, &part.value)?,
    })
}

/// Fills a value that is sent as bytes. A blob is decoded from its base64, and any other value is sent as its text.
fn fill_bytes(values: &CallValues<'_>, template: &ValueTemplate) -> Option<Vec<u8>> {
    if let ValueTemplate::Hole(hole) = template
        && values.param(hole).is_some_and(|p| p.kind == Type::String(TextStyle::Blob))
        && let Some(decoded) = values.text(hole).and_then(|text| STANDARD.decode(text.as_bytes()).ok())
    {
        return Some(decoded);
    }
    Some(plain_text(&fill_value(values, template)?).into_bytes())
}
