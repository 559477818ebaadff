//! Tests of the catalogs for the third-party servers in the end-to-end suite, and of the forms of values that these
//! servers use.

use std::collections::BTreeMap;

use base::{Payload, Response};
use catalog::{BindInput, Catalog, DecodeInput, RowWindow, bind, decode, from_canonical, read};
use serde_json::{Value, json};

#[test]
fn each_catalog_of_a_foreign_server_is_valid() {
    let all = [
        ("jupyter.yaml", include_str!("../../../../tests/e2e/apis/jupyter.yaml")),
        ("etcd.yaml", include_str!("../../../../tests/e2e/apis/etcd.yaml")),
        ("blog.yaml", include_str!("../../../../tests/e2e/apis/blog.yaml")),
    ];
    let mut rejections = String::new();
    for (name, text) in all {
        // The end-to-end suite replaces `PORT` by the server's port. For this test any port is valid.
        match read(name, &text.replace("PORT", "1024")) {
            Ok(catalog) => {
                let read_back = from_canonical(catalog.canonical().as_bytes(), catalog.digest()).unwrap();
                assert_eq!(read_back, catalog, "{name}");
            }
            Err(rejected) => rejections.push_str(&rejected.to_string()),
        }
    }
    assert!(rejections.is_empty(), "{rejections}");
}

fn etcd() -> Catalog {
    let text = include_str!("../../../../tests/e2e/apis/etcd.yaml").replace("PORT", "1024");
    read("etcd.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}"))
}

fn bound_body(catalog: &Catalog, capability: &str, args: &[(&str, Value)]) -> Value {
    let args: BTreeMap<String, Value> = args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    match bind(catalog, catalog.capability(capability).unwrap(), &BindInput::new(&args)).unwrap().body {
        Some(Payload::Json { value, .. }) => value,
        other => panic!("{other:?}"),
    }
}

/// etcd takes keys as base64. A key that was sent without encoding could name another row, because every word of four
/// letters is valid base64.
#[test]
fn a_part_of_the_key_is_sent_in_the_form_of_its_field() {
    let catalog = etcd();
    let key = ("key", json!("Zm9v"));
    assert_eq!(
        bound_body(&catalog, "key_get", std::slice::from_ref(&key)),
        json!({"key": "Wm05dg=="}),
        "a parameter of a get"
    );
    assert_eq!(
        bound_body(&catalog, "key_delete", std::slice::from_ref(&key)),
        json!({"key": "Wm05dg=="}),
        "the instance of a delete"
    );
    let swapped = bound_body(&catalog, "key_swap", &[key, ("expected", json!("a")), ("value", json!("b"))]);
    assert_eq!(swapped["compare"][0]["key"], json!("Wm05dg=="));
    assert_eq!(swapped["success"][0]["request_put"], json!({"key": "Wm05dg==", "value": "Yg=="}));
}

#[test]
fn a_part_of_the_key_from_the_arguments_is_not_decoded() {
    let text = "{catalog: kv, version: 1, title: KV, origin: 'http://127.0.0.1:1024', entities: {Pair: {about: a pair, \
                key: [key], fields: {key: {type: string, wire: base64}, value: {type: string, wire: base64}}}}, \
                capabilities: {pair_get: {get: Pair, http: 'GET /kv?key={key}'}}}";
    let catalog = read("kv.yaml", text).unwrap_or_else(|rejected| panic!("{rejected}"));
    let response = Response { status: 200, headers: vec![], body: br#"{"value": "YmFy"}"#.to_vec() };
    let args = BTreeMap::from([("key".to_owned(), json!("Zm9v"))]);
    let answer = DecodeInput { response: &response, args: &args, page: None, max_depth: 64, window: RowWindow::ALL };
    let rows = decode(&catalog, catalog.capability("pair_get").unwrap(), &answer).unwrap().rows;
    assert_eq!(Value::Object(rows[0].clone()), json!({"key": "Zm9v", "value": "bar"}));
}

#[test]
fn the_json_form_of_protobuf_is_read() {
    let catalog = etcd();
    let decode_list = |body: &str| {
        let response = Response { status: 200, headers: vec![], body: body.into() };
        let answer = DecodeInput {
            response: &response,
            args: &BTreeMap::new(),
            page: None,
            max_depth: 64,
            window: RowWindow::ALL,
        };
        decode(&catalog, catalog.capability("key_list").unwrap(), &answer).map(|decoded| decoded.rows)
    };
    let rows =
        decode_list(r#"{"kvs": [{"key": "Zm9v", "value": "YmFy", "version": "7", "lease": "42"}], "count": "1"}"#);
    assert_eq!(rows.unwrap()[0]["version"], json!(7));
    assert_eq!(
        decode_list(r#"{"header": {"revision": "7"}}"#).unwrap(),
        Vec::<catalog::Row>::new(),
        "an empty list is left out"
    );
    for (body, says) in [
        (r#"{"kvs": 7}"#, "no rows at `kvs`"),
        ("[]", "no rows at `kvs`"),
        (r#"{"kvs": [{"key": "Zm9v", "version": "x"}]}"#, "Key.version: expected int, found \"x\""),
    ] {
        let error = decode_list(body).unwrap_err().to_string();
        assert!(error.contains(says), "{body}: {error}");
    }
    assert_eq!(bound_body(&catalog, "lease_grant", &[("ttl", json!(600))]), json!({"TTL": "600"}));
}

#[test]
fn only_a_list_with_a_path_can_be_sparse() {
    let text = include_str!("../../../../tests/e2e/apis/etcd.yaml").replace("PORT", "1024");
    let broken = text.replacen("row: kvs.0", "row: kvs.0, sparse: true", 1);
    assert_ne!(broken, text);
    let rejected = read("etcd.yaml", &broken).map(|_| ()).unwrap_err().to_string();
    assert!(rejected.contains("`sparse: true` is for a list with `rows`"), "{rejected}");
}
