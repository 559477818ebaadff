//! The flattened properties of a row: properties inside JSON:API's `attributes` and inside `metadata` count as the row's own.
//! Invariant: each `RowProperty::path` is a valid path in the row's schema.

use catalog::raw::{Declaration, FieldPath, SlotType};
use serde_json::Value;

use crate::names;
use crate::spec::SchemaReader;

/// The maximum number of properties that are read from one object.
const MAX_PROPERTIES: usize = 600;

/// The properties of `metadata` that become fields. Others are of little use in programs.
const METADATA_FIELDS: [&str; 6] = ["name", "namespace", "uid", "labels", "creationTimestamp", "id"];

/// A property at the top level of a row, or inside `attributes` or `metadata`.
#[derive(Debug, Clone)]
pub struct RowProperty<'a> {
    pub path: String,
    /// The property's name in snake case: `created_at`. Lookups use it, so that `createdAt` and `created_at` are equal.
    pub snake_name: String,
    pub required: bool,
    pub schema: &'a Value,
}

impl RowProperty<'_> {
    /// Returns the declaration of a field with this name and type that reads the property.
    pub fn field(&self, name: &str, kind: SlotType) -> Declaration {
        let mut field = Declaration::new(kind);
        field.path = (self.path != name).then(|| FieldPath::One(self.path.clone()));
        field
    }

    /// Returns the last name of the path.
    pub fn own_name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

pub fn row_properties<'a>(reader: &SchemaReader<'a>, row: &'a Value) -> Vec<RowProperty<'a>> {
    let object = reader.object(row);
    let is_json_api = object.props.contains_key("attributes")
        && object.props.contains_key("id")
        && (object.props.contains_key("type") || object.props.contains_key("relationships"));
    let mut out: Vec<RowProperty<'a>> = Vec::new();
    for (name, prop) in object.props.iter().filter(|(name, _)| names::is_reachable(name)).take(MAX_PROPERTIES) {
        let is_opened = match *name {
            "attributes" => is_json_api && reader.is_object(prop.schema),
            "metadata" => reader.is_object(prop.schema) && reader.object(prop.schema).props.contains_key("name"),
            _ => false,
        };
        if !is_opened {
            out.push(RowProperty {
                path: (*name).to_owned(),
                snake_name: snake_name(name),
                required: prop.required,
                schema: prop.schema,
            });
            continue;
        }
        let inner = reader.object(prop.schema);
        let reachable = inner.props.iter().filter(|(name, _)| names::is_reachable(name)).take(MAX_PROPERTIES);
        for (inner_name, inner_prop) in reachable {
            let is_field = *name == "attributes" || METADATA_FIELDS.contains(inner_name);
            if is_field && !object.props.contains_key(inner_name) {
                out.push(RowProperty {
                    path: format!("{name}.{inner_name}"),
                    snake_name: snake_name(inner_name),
                    required: prop.required && inner_prop.required,
                    schema: inner_prop.schema,
                });
            }
        }
    }
    out
}

/// Returns the row path that a field reads: its declared path, or else its name. Returns `None` for a field that reads a
/// header, several paths or no path.
pub fn path_in_row<'d>(name: &'d str, field: &'d Declaration) -> Option<&'d str> {
    match (&field.header, &field.path) {
        (Some(_), _) => None,
        (None, None) => Some(name),
        (None, Some(FieldPath::One(path))) => Some(path),
        (None, Some(_)) => None,
    }
}

/// Returns the name in snake case. A name without letters and digits is returned unchanged.
fn snake_name(name: &str) -> String {
    let snake = names::snake_case(name);
    if snake.is_empty() { name.to_owned() } else { snake }
}
