//! What an import says of what it could not take, and what it takes from names alone.
//! Invariant: nothing that a specification has is left out in silence.

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

fn kind(catalog: &Catalog, path: &str) -> Kind {
    let of =
        |c: &&catalog::Capability| matches!(&c.transport, catalog::Transport::Http(h) if h.path.to_string() == path);
    catalog.capabilities.values().find(of).unwrap_or_else(|| panic!("nothing calls {path}")).kind
}

#[test]
fn a_specification_of_nothing_maps_nothing() {
    let made = import(json!({}));
    assert_eq!((made.report.operations, made.report.mapped), (0, 0));
    assert!(made.report.share() < f64::EPSILON);
}

#[test]
fn a_parameter_that_no_query_carries_is_said() {
    let row = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let text = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let made = import(json!({"/pets": {"get": {
        "parameters": [text("fine"), text("a b&c=d")], "responses": answers(json!({"type": "array", "items": row}))
    }}}));
    let said: Vec<&str> = made.report.guesses.iter().map(|guess| guess.what.as_str()).collect();
    assert!(said.iter().any(|what| what.contains("\"a b&c=d\" is left out")), "{said:?}");
    assert!(!said.iter().any(|what| what.contains("fine")), "{said:?}");
}

#[test]
fn the_row_of_a_program_is_no_field() {
    let row = json!({"type": "object", "properties": {"id": {"type": "string"}, "_": {"type": "string"}}});
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let made = import(json!({"/pets/{id}": {"get": {"parameters": id, "responses": answers(row)}}}));
    let fields: Vec<&String> = made.catalog.entities.values().flat_map(|entity| entity.fields.keys()).collect();
    assert!(fields.iter().any(|name| *name == "value") && !fields.iter().any(|name| *name == "_"), "{fields:?}");
}

#[test]
fn missing_schemas_are_said() {
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"$ref": "#/components/schemas/None"}}]);
    let made = import(json!({
        "/pets/{id}": {"get": {"parameters": id, "responses": answers(json!({"$ref": "#/components/schemas/None"}))}},
        "/toys/{id}": {"get": {"parameters": id, "responses": {"200": {"description": "", "content": {"application/json": {}}}}}},
        "/none": {"get": {"responses": {"204": {"description": ""}}}}
    }));
    assert_eq!(made.report.mapped + made.report.unmapped.len(), 3, "{:?}", made.report.unmapped);
    let said = made.report.guesses.iter().filter(|guess| guess.what.contains("does not say what the answer holds"));
    assert_eq!(said.count() + made.report.unmapped.len(), 3, "{:?}", made.report);
}

#[test]
fn a_next_link_with_a_dot_in_its_name() {
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
fn methods_are_what_their_names_say() {
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
