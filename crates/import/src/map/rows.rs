//! The properties of a row as a catalog sees them: those of JSON:API's `attributes` and of `metadata` stand beside the others.
//! Invariant: each path leads from the row to its property.

use serde_json::Value;

use super::keys::short;
use crate::names;
use crate::spec::Reader;

#[derive(Debug, Clone)]
pub struct RowProp<'a> {
    pub path: String,
    /// In words: `created_at`.
    pub short: String,
    pub required: bool,
    pub schema: &'a Value,
}

/// What of `metadata` is worth a field of its own.
const OF_METADATA: [&str; 6] = ["name", "namespace", "uid", "labels", "creationTimestamp", "id"];

pub fn row_props<'a>(reader: &Reader<'a>, row: &'a Value) -> Vec<RowProp<'a>> {
    let object = reader.object(row);
    let usable = names::is_reachable;
    let mut out: Vec<RowProp<'a>> = Vec::new();
    let json_api = object.props.contains_key("attributes")
        && object.props.contains_key("id")
        && (object.props.contains_key("type") || object.props.contains_key("relationships"));
    for (name, prop) in object.props.iter().filter(|(name, _)| usable(name)).take(600) {
        let inside = match *name {
            "attributes" if json_api => true,
            "metadata" => reader.is_object(prop.schema) && reader.object(prop.schema).props.contains_key("name"),
            _ => false,
        };
        if inside && reader.is_object(prop.schema) {
            let inner = reader.object(prop.schema);
            for (part, own) in inner.props.iter().filter(|(part, _)| usable(part)).take(600) {
                let chosen = *name == "attributes" || OF_METADATA.contains(part);
                if chosen && !object.props.contains_key(part) {
                    let required = prop.required && own.required;
                    out.push(RowProp {
                        path: format!("{name}.{part}"),
                        short: short(part),
                        required,
                        schema: own.schema,
                    });
                }
            }
            continue;
        }
        out.push(RowProp {
            path: (*name).to_owned(),
            short: short(name),
            required: prop.required,
            schema: prop.schema,
        });
    }
    out
}
