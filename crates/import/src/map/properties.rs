//! The properties of a row as fields see them: those of JSON:API's `attributes` and of `metadata` count as the row's own.
//! Invariant: each path leads from the row to its property.

use catalog::raw::{Declaration, FieldPath, SlotType};
use serde_json::Value;

use crate::names;
use crate::spec::SchemaReader;

/// The number of properties of one object that are looked at.
const MAX_PROPERTIES: usize = 600;

/// Properties of `metadata` that are worth a field of their own.
const METADATA_FIELDS: [&str; 6] = ["name", "namespace", "uid", "labels", "creationTimestamp", "id"];

/// A property of a row, at its top or in `attributes` or `metadata`.
#[derive(Debug, Clone)]
pub struct RowProperty<'a> {
    pub path: String,
    /// The property's name in snake case: `created_at`. Properties are found by it, whatever their spelling is.
    pub snake_name: String,
    pub required: bool,
    pub schema: &'a Value,
}

impl RowProperty<'_> {
    /// Returns the field of this name that holds the property.
    pub fn field(&self, name: &str, kind: SlotType) -> Declaration {
        let mut field = Declaration::new(kind);
        field.path = (self.path != name).then(|| FieldPath::One(self.path.clone()));
        field
    }

    /// Returns the property's own name, without the path to it.
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

/// Returns the path at which a field is in its row: its own name, unless it has one path. Returns `None` for a field that is
/// not in the row, or at several paths.
pub fn path_in_row<'d>(name: &'d str, field: &'d Declaration) -> Option<&'d str> {
    match (&field.header, &field.path) {
        (Some(_), _) => None,
        (None, None) => Some(name),
        (None, Some(FieldPath::One(path))) => Some(path),
        (None, Some(_)) => None,
    }
}

/// Returns the name in snake case; a name without letters stays as it is.
fn snake_name(name: &str) -> String {
    let snake = names::snake(name);
    if snake.is_empty() { name.to_owned() } else { snake }
}
