//! Tests of the import report: parameters that are left out, undeclared answers, and kinds that are derived from method names.

use catalog::{Catalog, Kind};
use import::Options;
use serde_json::{Value, json};

fn import(paths: Value) -> import::Import {
    let text = json!({"openapi": "3.0.0", "info": {"title": "T"}, "servers": [{"url": "https://api.test"}],
        "paths": paths});
    import::openapi(text.to_string().as_bytes(), &Options::default()).unwrap()
}

fn answers(schema: Value) -> Value {
    json!({"200": {"description": "", "content": {"application/json": {"schema": schema}}}})
}

/// Returns the kind of the capability that calls the path.
fn kind(catalog: &Catalog, path: &str) -> Kind {
    let calls_path =
        |c: &&catalog::Capability| matches!(&c.transport, catalog::Transport::Http(h) if h.path.to_string() == path);
    catalog.capabilities.values().find(calls_path).unwrap_or_else(|| panic!("nothing calls {path}")).kind
}

#[test]
fn a_specification_without_operations_has_a_share_of_zero() {
    let made = import(json!({}));
    assert_eq!((made.report.operations, made.report.mapped), (0, 0));
    assert!(made.report.share() < f64::EPSILON);
}

#[test]
fn a_parameter_that_no_query_can_carry_is_reported() {
    let row = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let text = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let made = import(json!({"/pets": {"get": {
        "parameters": [text("fine"), text("a b&c=d")], "responses": answers(json!({"type": "array", "items": row}))
    }}}));
    let guesses: Vec<&str> = made.report.guesses.iter().map(|guess| guess.what.as_str()).collect();
    assert!(guesses.iter().any(|what| what.contains("\"a b&c=d\" is left out")), "{guesses:?}");
    assert!(!guesses.iter().any(|what| what.contains("fine")), "{guesses:?}");
}

#[test]
fn a_property_named_underscore_gets_another_name() {
    let row = json!({"type": "object", "properties": {"id": {"type": "string"}, "_": {"type": "string"}}});
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let made = import(json!({"/pets/{id}": {"get": {"parameters": id, "responses": answers(row)}}}));
    let fields: Vec<&String> = made.catalog.entities.values().flat_map(|entity| entity.fields.keys()).collect();
    assert!(fields.iter().any(|name| *name == "value") && !fields.iter().any(|name| *name == "_"), "{fields:?}");
}

#[test]
fn missing_schemas_are_reported() {
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"$ref": "#/components/schemas/None"}}]);
    let made = import(json!({
        "/pets/{id}": {"get": {"parameters": id, "responses": answers(json!({"$ref": "#/components/schemas/None"}))}},
        "/toys/{id}": {"get": {"parameters": id, "responses": {"200": {"description": "", "content": {"application/json": {}}}}}},
        "/none": {"get": {"responses": {"204": {"description": ""}}}}
    }));
    assert_eq!(made.report.mapped + made.report.unmapped.len(), 3, "{:?}", made.report.unmapped);
    let undeclared =
        made.report.guesses.iter().filter(|guess| guess.what.contains("does not say what the answer holds"));
    assert_eq!(undeclared.count() + made.report.unmapped.len(), 3, "{:?}", made.report);
}

#[test]
fn a_next_link_with_a_dot_in_its_name_is_escaped() {
    let row = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let page = json!({"type": "object", "properties": {
        "value": {"type": "array", "items": row}, "@odata.nextLink": {"type": "string", "nullable": true}
    }});
    let made = import(json!({"/users": {"get": {"responses": answers(page)}}}));
    assert!(made.text.contains(r"@odata\\.nextLink"), "{}", made.text);
    let list = made.catalog.capabilities.values().find(|c| c.kind == Kind::Query).unwrap();
    let paging = serde_json::to_value(&list.paging).unwrap();
    assert!(paging.to_string().contains(r"@odata\\.nextLink"), "{paging}");
}

#[test]
fn methods_of_post_only_apis_have_the_kinds_of_their_names() {
    let message = json!({"type": "object", "properties": {"ts": {"type": "string"}, "text": {"type": "string"}}});
    let form = json!({"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object",
        "properties": {"channel": {"type": "string"}, "ts": {"type": "string"}}}}}});
    let call =
        |answer: &Value| json!({"post": {"tags": ["chat"], "requestBody": form, "responses": answers(answer.clone())}});
    let done = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let made = import(json!({
        "/chat.list": {"get": {"tags": ["chat"], "responses": answers(json!({"type": "array", "items": message}))}},
        "/chat.postMessage": call(&message), "/chat.update": call(&message), "/chat.delete": call(&done),
        "/chat.deleteScheduled": call(&done), "/chat.unfurl": call(&done)
    }));
    let kinds = ["/chat.postMessage", "/chat.update", "/chat.delete", "/chat.deleteScheduled", "/chat.unfurl"]
        .map(|path| kind(&made.catalog, path));
    assert_eq!(kinds, [Kind::Create, Kind::Update, Kind::Delete, Kind::Action, Kind::Action]);
}
