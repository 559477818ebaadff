//! The OpenAPI description of every route.
//! Invariant: made from the table that the router is made from, and from the types that are read and answered.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::routes::{self, Body, Method, Route};

/// The members of a query.
pub type Query = fn(&mut SchemaGenerator) -> Value;

/// One thing that a route answers.
#[derive(Clone)]
pub struct Answer {
    status: u16,
    kind: &'static str,
    schema: Option<fn(&mut SchemaGenerator) -> Value>,
    about: &'static str,
}

impl Answer {
    pub fn json<T: JsonSchema>(status: u16, about: &'static str) -> Self {
        Self { status, kind: "application/json", schema: Some(named::<T>), about }
    }

    pub fn either<A: JsonSchema, B: JsonSchema>(status: u16, about: &'static str) -> Self {
        let schema = |made: &mut SchemaGenerator| json!({"anyOf": [named::<A>(made), named::<B>(made)]});
        Self { status, kind: "application/json", schema: Some(schema), about }
    }

    /// An object whose members depend on what was asked for.
    pub fn any(status: u16, about: &'static str) -> Self {
        Self { status, kind: "application/json", schema: Some(|_| json!({"type": "object"})), about }
    }

    pub fn text(status: u16, about: &'static str) -> Self {
        Self::of(status, "text/plain", about)
    }

    pub fn of(status: u16, kind: &'static str, about: &'static str) -> Self {
        Self { status, kind, schema: None, about }
    }
}

/// An error, as every route answers it.
#[derive(JsonSchema)]
#[schemars(rename = "Problem")]
#[allow(dead_code)]
struct ProblemBody {
    /// `urn:tokamak:problem:` and the code.
    #[schemars(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    /// Stable.
    code: String,
    /// What is wrong and what to do.
    detail: String,
    /// Of a plan that needs a review: what to run it by.
    plan_commit_ref: Option<String>,
}

/// A reference to a type's schema, which is kept among the components.
pub fn named<T: JsonSchema>(made: &mut SchemaGenerator) -> Value {
    made.subschema_for::<T>().to_value()
}

/// The whole schema of a type, in place.
pub fn query<T: JsonSchema>(made: &mut SchemaGenerator) -> Value {
    T::json_schema(made).to_value()
}

pub fn description() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut made = settings.into_generator();
    let problem = named::<ProblemBody>(&mut made);
    let mut paths = Map::new();
    for route in routes::table() {
        let operation = operation(&mut made, &route, &problem);
        let at = paths.entry(route.path).or_insert_with(|| json!({}));
        at[if route.method == Method::Get { "get" } else { "post" }] = operation;
    }
    let mut schemas = json!(made.take_definitions(true));
    tidy(&mut schemas);
    let mut paths = Value::Object(paths);
    tidy(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tokamak",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions, programs and their results over HTTP. MCP is at /mcp.",
            "license": {"name": "Apache-2.0 OR MIT"},
        },
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "Of `tokamak token new`; on loopback without keys none is needed."},
            },
        },
    })
}

fn operation(made: &mut SchemaGenerator, route: &Route, problem: &Value) -> Value {
    let mut operation = json!({"operationId": route.id, "summary": route.about});
    let mut parameters: Vec<Value> = in_path(route.path).map(path_parameter).collect();
    if let Some(query) = route.query {
        parameters.extend(in_query(&query(made)));
    }
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if !route.body.is_empty() {
        let content =
            route.body.iter().map(|Body { kind, schema, .. }| ((*kind).to_owned(), json!({"schema": schema(made)})));
        let content: Map<String, Value> = content.collect();
        operation["requestBody"] = json!({"required": route.body.iter().any(|b| b.required), "content": content});
    }
    let mut responses = Map::new();
    for answer in &route.answers {
        let at = responses.entry(answer.status.to_string()).or_insert_with(|| json!({"description": answer.about}));
        let schema = answer.schema.map_or_else(|| json!({"type": "string"}), |schema| schema(made));
        at["content"][answer.kind] = json!({"schema": schema});
    }
    responses.insert(
        "default".to_owned(),
        json!({"description": "What is wrong.", "content": {"application/problem+json": {"schema": problem}}}),
    );
    operation["responses"] = Value::Object(responses);
    if route.public {
        operation["security"] = json!([]);
    }
    operation
}

fn in_path(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    let schema = match name {
        // Of a heap.
        "key" => json!({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
        _ => json!({"type": "string", "minLength": 1}),
    };
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

fn in_query(schema: &Value) -> Vec<Value> {
    let members = schema["properties"].as_object().cloned().unwrap_or_default();
    let parameter = |(name, mut schema): (String, Value)| {
        let about = schema.as_object_mut().and_then(|members| members.remove("description"));
        let mut parameter = json!({"name": name, "in": "query", "required": false});
        if let Some(about) = about {
            parameter["description"] = about;
        }
        parameter["schema"] = schema;
        parameter
    };
    members.into_iter().map(parameter).collect()
}

/// Formats that are Rust's, and nulls that a query or an absent member stands for.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let foreign = |format: &str| format.starts_with("uint") || format.starts_with("int");
            if members.get("format").and_then(Value::as_str).is_some_and(foreign) {
                members.remove("format");
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
