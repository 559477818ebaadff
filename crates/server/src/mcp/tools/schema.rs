//! The input schema of a tool, from the request type of its use case.
//! Invariant: the schema is small, refuses unknown fields, and has no format that clients do not know.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the input schema of a request type.
pub fn of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        // Without references, a reader of one tool sees its whole schema.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    // The doc comment of the request type is for readers of the code. The tool has a description of its own.
    if let Value::Object(members) = &mut schema {
        members.remove("description");
    }
    match schema {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// Removes what costs tokens or makes clients warn: integer formats (`uint64`), titles, empty defaults, null types, and bounds of
/// single values. A value that the schema no longer excludes is refused when the call reads it.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|key, value| match key.as_str() {
                "format" => {
                    !value.as_str().is_some_and(|format| format.starts_with("uint") || format.starts_with("int"))
                }
                "title" => !value.is_string(),
                "minimum" => !value.is_number(),
                "minLength" => !value.is_number(),
                "pattern" => !value.is_string(),
                "default" => {
                    let empty = [Value::Null, Value::Bool(false), Value::from(0), Value::Array(Vec::new())];
                    !empty.contains(value)
                }
                _ => true,
            });
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    members.insert("type".to_owned(), only);
                }
            }
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
