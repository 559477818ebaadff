//! Tests with hostile and broken specifications: each import returns a valid draft or an error, without a panic and in bounded
//! time.

use std::time::{Duration, Instant};

use import::{ImportError, Options};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn import(text: &str) -> Result<import::Import, ImportError> {
    let started = Instant::now();
    let made = import::openapi(text.as_bytes(), &Options::default());
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
    made
}

fn with_paths(paths: Value) -> String {
    json!({"openapi": "3.0.0", "info": {"title": "T", "version": "1"}, "paths": paths}).to_string()
}

fn get(schema: Value) -> Value {
    json!({"get": {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}}})
}

#[test]
fn a_text_that_is_no_specification_has_a_stable_error_code() {
    let code = |text: &str| import(text).unwrap_err().code();
    assert_eq!(code(""), "not_openapi");
    assert_eq!(code("{"), "not_json");
    assert_eq!(code("a: [b"), "not_yaml");
    assert_eq!(code("[]"), "not_openapi");
    assert_eq!(code("{\"openapi\": \"2\"}"), "not_openapi");
    assert_eq!(code("swagger: '1.2'"), "not_openapi");
    assert_eq!(import::openapi(&[0xff, 0xfe], &Options::default()).unwrap_err().code(), "not_text");
    let graphql = |text: &str| import::graphql(text.as_bytes(), &Options::default()).unwrap_err().code();
    assert_eq!(
        (graphql("type A {"), graphql("type A { b: Int }"), graphql("{\"a\": 1}")),
        ("not_graphql", "not_graphql", "not_graphql")
    );
}

#[test]
fn cyclic_references_end() {
    let mut spec: Value =
        serde_json::from_str(&with_paths(json!({"/a/{x}": get(json!({"$ref": "#/components/schemas/A"}))}))).unwrap();
    spec["components"] = json!({"schemas": {
        "A": {"allOf": [{"$ref": "#/components/schemas/B"}], "properties": {"id": {"type": "string"}, "a": {"$ref": "#/components/schemas/A"}}},
        "B": {"allOf": [{"$ref": "#/components/schemas/A"}, {"oneOf": [{"$ref": "#/components/schemas/B"}]}]},
    }});
    let made = import(&spec.to_string()).unwrap();
    assert_eq!(made.report.mapped, 1);
    let only_rings = with_paths(
        json!({"/a": get(json!({"$ref": "#/paths/~1a/get/responses/200/content/application~1json/schema"}))}),
    );
    assert_eq!(import(&only_rings).unwrap().report.mapped, 1);
}

#[test]
fn a_hundred_thousand_operations_are_mapped_or_refused() {
    let paths: Map<String, Value> = (0..100_000)
        .map(|n| (format!("/p{n}/{{id}}"), get(json!({"type": "object", "properties": {"id": {"type": "string"}}}))))
        .collect();
    match import(&with_paths(Value::Object(paths))) {
        Ok(made) => assert_eq!(made.report.operations, 100_000),
        Err(error) => assert!(matches!(error, ImportError::TooMuch | ImportError::Refused(_)), "{error}"),
    }
}

#[test]
fn names_of_a_megabyte_and_empty_names_are_mapped() {
    let long = "x".repeat(1 << 20);
    let mut paths = Map::new();
    paths.insert(format!("/{long}"), get(json!({"type": "object", "properties": {"id": {"type": "string"}}})));
    paths.insert(
        "/a/{}/{ }/{\u{0}}".to_owned(),
        get(
            json!({"type": "object", "properties": {long.clone(): {"type": "string"}, "": {}, "\u{7}": {}, "a.b": {}}}),
        ),
    );
    paths.insert(
        "//x//{y}".to_owned(),
        get(json!({"type": "array", "items": {"type": "object", "properties": {"e1": {"type": "string"}}}})),
    );
    paths.insert("no slash".to_owned(), get(json!({"type": "object", "properties": {"limit": {"type": "string"}}})));
    let made = import(&with_paths(Value::Object(paths))).unwrap();
    assert!(made.text.len() < 100_000, "{}", made.text.len());
    assert_eq!(made.report.mapped + made.report.unmapped.len(), 4, "{:?}", made.report.unmapped);
}

#[test]
fn yaml_bombs_and_deep_yaml_are_refused() {
    let mut text = "openapi: 3.0.0\ninfo: {title: T}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        text.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", ")));
    }
    text.push_str("paths: {}\n");
    assert_eq!(import(&text).unwrap_err().code(), "not_yaml");
    let deep = format!("openapi: 3.0.0\npaths: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(import(&deep).unwrap_err().code(), "not_yaml");
}

#[test]
fn lists_with_the_same_name_and_rows_are_all_mapped() {
    let item = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let list = get(json!({"type": "array", "items": item}));
    let paths: Map<String, Value> =
        ["/a", "/b/a", "/c/a", "/a/a", "/A", "/a/"].iter().map(|path| ((*path).to_owned(), list.clone())).collect();
    let made = import(&with_paths(Value::Object(paths))).unwrap();
    assert_eq!(made.report.mapped, 6, "{:?}", made.report.unmapped);
}

#[test]
fn remote_references_are_reported_and_not_followed() {
    let made =
        import(&with_paths(json!({"/a/{id}": get(json!({"$ref": "https://evil.example.com/a.json"}))}))).unwrap();
    assert!(
        made.report.guesses.iter().any(|guess| guess.what.contains("lead out of the file")),
        "{:?}",
        made.report.guesses
    );
    assert!(!made.text.contains("evil"), "{}", made.text);
}

#[test]
fn no_text_of_a_specification_becomes_yaml_syntax() {
    let evil = "x\"\n  evil: {query: A, http: GET /}\n#";
    let mut paths = Map::new();
    paths.insert(format!("/{evil}/{{id}}"), json!({"get": {
        "summary": evil, "operationId": evil, "tags": [evil],
        "parameters": [{"name": evil, "in": "query", "schema": {"type": "string", "enum": [evil, "b"]}}, {"name": evil, "in": "header", "required": true}],
        "responses": {"200": {"content": {"application/json": {"schema": {"title": evil, "description": evil, "type": "object", "properties": {evil: {"type": "string"}, "id": {"type": "string"}}}}}}},
    }, "post": {"summary": evil, "requestBody": {"content": {evil: {"schema": {"type": "object", "properties": {evil: {"type": "string"}}}}}}, "responses": {}}}));
    let spec = json!({"openapi": "3.0.0", "info": {"title": evil, "version": evil}, "servers": [{"url": evil}], "paths": paths});
    let made = import(&spec.to_string()).unwrap();
    assert!(made.catalog.capability("evil").is_none(), "{}", made.text);
}

/// Returns a strategy for arbitrary JSON that often resembles parts of a specification.
fn json_like_a_specification() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "openapi",
        "3.0.0",
        "swagger",
        "2.0",
        "paths",
        "/a",
        "/a/{id}",
        "/a/{id}/b",
        "get",
        "post",
        "put",
        "delete",
        "responses",
        "200",
        "content",
        "application/json",
        "schema",
        "type",
        "object",
        "array",
        "string",
        "properties",
        "items",
        "id",
        "$ref",
        "#/components/schemas/A",
        "#/paths",
        "allOf",
        "oneOf",
        "parameters",
        "in",
        "path",
        "query",
        "name",
        "required",
        "servers",
        "url",
        "requestBody",
        "components",
        "schemas",
        "A",
        "securitySchemes",
        "enum",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        word.clone().prop_map(|text| json!(text)),
        ".{0,12}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(7, 96, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any JSON is imported or refused without a panic. An OpenAPI document with arbitrary JSON in its parts is always
    /// imported.
    #[test]
    fn any_json_gives_a_draft_or_an_error(
        root in json_like_a_specification(),
        paths in json_like_a_specification(),
        schema in json_like_a_specification(),
        params in json_like_a_specification(),
    ) {
        let _ = import::openapi(root.to_string().as_bytes(), &Options::default());
        let spec = json!({"openapi": "3.0.1", "info": root, "servers": params, "paths": paths, "components": {"schemas": {"A": schema.clone()}}});
        let made = import::openapi(spec.to_string().as_bytes(), &Options::default());
        prop_assert!(made.is_ok(), "{}", made.unwrap_err());
        let operation = json!({"parameters": params, "requestBody": {"content": {"application/json": {"schema": schema}}}, "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}});
        let spec = json!({"openapi": "3.0.1", "components": {"schemas": {"A": schema}}, "paths": {"/a": {"get": operation, "post": operation}, "/a/{id}": {"get": operation, "put": operation, "delete": operation}, "/a/{id}/run": {"post": operation}}});
        let made = import::openapi(spec.to_string().as_bytes(), &Options::default());
        prop_assert!(made.is_ok(), "{}", made.unwrap_err());
    }

    #[test]
    fn any_text_gives_a_draft_or_an_error(text in ".{0,200}") {
        let _ = import::openapi(text.as_bytes(), &Options::default());
        let _ = import::graphql(text.as_bytes(), &Options::default());
    }
}
