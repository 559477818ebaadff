//! The input schema of a tool, from its argument type.
//! Invariant: small, closed to unknown fields, and free of formats that clients do not know.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

pub fn of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}

/// Integer formats (`uint64`) make TypeScript clients warn; titles, empty defaults, null types and the lower end of unsigned
/// numbers only cost tokens: what is below it is refused all the same.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|key, value| match key.as_str() {
                "format" => !value.as_str().is_some_and(|f| f.starts_with("uint") || f.starts_with("int")),
                "title" => !value.is_string(),
                "minimum" => value.as_u64() != Some(0),
                "default" => {
                    let empty = [Value::Null, Value::Bool(false), Value::from(0), Value::Array(Vec::new())];
                    !empty.contains(value)
                }
                _ => true,
            });
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
