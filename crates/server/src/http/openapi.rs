//! The OpenAPI description of the routes.
//! Invariant: every schema comes from the type that is read or answered.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::route::{Method, Route, reference};

/// An error, as every route answers it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemBody {
    /// `urn:tokamak:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the status.
    pub title: &'static str,
    pub status: u16,
    /// A stable code to branch on.
    pub code: &'static str,
    /// The mistake, and the remedy.
    pub detail: String,
    /// For a plan that needs a review: the plan commit with which it can be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_commit_ref: Option<String>,
}

/// The OpenAPI description, as `/openapi.json` serves it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenApi", extend("additionalProperties" = true))]
pub struct OpenApiBody {
    /// The version of OpenAPI.
    openapi: &'static str,
    info: Value,
    security: Value,
    paths: Value,
    components: Value,
}

/// Describes the routes. Nothing is written by hand but summaries and descriptions, which stand in the table of routes.
pub fn description(routes: &[Route]) -> OpenApiBody {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut schemas = settings.into_generator();
    let problem = reference::<ProblemBody>(&mut schemas);
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(&mut schemas, route, &problem);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[if route.method == Method::Get { "get" } else { "post" }] = operation;
    }
    // Taken last, because each route may add the components that it refers to.
    let mut schemas = json!(schemas.take_definitions(true));
    remove_foreign_formats(&mut schemas);
    let mut paths = Value::Object(paths);
    remove_foreign_formats(&mut paths);
    OpenApiBody {
        openapi: "3.1.0",
        info: json!({
            "title": "Tokamak",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions, programs and their results over HTTP. MCP is at /mcp.",
            "license": {"name": "Apache-2.0 OR MIT"},
        }),
        // A key, or none: a server without keys needs none.
        security: json!([{"key": []}, {}]),
        paths,
        components: json!({
            "schemas": schemas,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key of `tokamak token new`. A server on loopback without keys needs none.",
                },
            },
        }),
    }
}

/// Describes one route. Schemas of types that it refers to are added to `schemas`.
fn operation(schemas: &mut SchemaGenerator, route: &Route, problem: &Value) -> Value {
    let mut operation = json!({"operationId": route.id, "summary": route.summary});
    let mut parameters: Vec<Value> = path_parameters(route.path);
    if let Some(query) = route.query {
        parameters.extend(query_parameters(&query(schemas)));
    }
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if !route.body.is_empty() {
        let mut content = Map::new();
        for form in &route.body {
            content.insert(form.content_type.to_owned(), json!({"schema": (form.schema)(schemas)}));
        }
        let required = route.body.iter().any(|form| form.required);
        operation["requestBody"] = json!({"required": required, "content": content});
    }
    let mut responses = Map::new();
    for answer in &route.answers {
        // A status with several content types is one response, with the description of the first.
        let response =
            responses.entry(answer.status.to_string()).or_insert_with(|| json!({"description": answer.description}));
        let schema = answer.schema.map_or_else(|| json!({"type": "string"}), |schema| schema(schemas));
        response["content"][answer.content_type] = json!({"schema": schema});
    }
    let refused = json!({
        "description": "The request was refused, or failed.",
        "content": {"application/problem+json": {"schema": problem}},
    });
    responses.insert("default".to_owned(), refused);
    operation["responses"] = Value::Object(responses);
    if route.public {
        operation["security"] = json!([]);
    }
    operation
}

/// Describes the parameters in braces of a path.
fn path_parameters(path: &str) -> Vec<Value> {
    let mut parameters = Vec::new();
    for part in path.split('/') {
        let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else { continue };
        let schema = match name {
            // The key of a heap is a digest.
            "key" => json!({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
            _ => json!({"type": "string", "minLength": 1}),
        };
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
    }
    parameters
}

/// Describes the members of a query type as parameters.
fn query_parameters(schema: &Value) -> Vec<Value> {
    let mut parameters = Vec::new();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let mut schema = member.clone();
        let description = schema.as_object_mut().and_then(|members| members.remove("description"));
        let mut parameter = json!({"name": name, "in": "query", "required": false});
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameter["schema"] = schema;
        parameters.push(parameter);
    }
    parameters
}

/// Removes the formats of Rust's integers, which other tools do not know, and defaults that are null.
fn remove_foreign_formats(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_foreign = |format: &str| format.starts_with("uint") || format.starts_with("int");
            if members.get("format").and_then(Value::as_str).is_some_and(is_foreign) {
                members.remove("format");
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            members.values_mut().for_each(remove_foreign_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_foreign_formats),
        _ => {}
    }
}
