//! Tests of binding, decoding and the canonical form with the shipped catalogs `demo` and `jira`, and of the documented
//! example.

use std::collections::BTreeMap;

use base::Response;
use catalog::{
    BindError, BindInput, DecodeInput, NextPage, PagePosition, PageRequest, RowWindow, bind, decode, from_canonical,
    read,
};
use serde_json::{Value, json};

fn demo() -> catalog::Catalog {
    read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap_or_else(|rejected| panic!("{rejected}"))
}

#[test]
fn the_canonical_form_reads_back_as_an_equal_catalog() {
    let catalog = demo();
    let read_back = from_canonical(catalog.canonical().as_bytes(), catalog.digest()).unwrap();
    assert_eq!(read_back, catalog);
    assert_eq!(format!("{read_back:?}"), format!("{catalog:?}"), "fields and parameters are in the order of the file");
    assert!(from_canonical(b"{}", catalog.digest()).is_err());
}

#[test]
fn a_call_becomes_a_request_to_the_catalogs_origin() {
    let catalog = demo();
    let capability = catalog.capability("comment_list").unwrap();
    let args = BTreeMap::from([("ticket".to_owned(), json!({"project": "a/../b", "number": 7.0}))]);
    let request = bind(
        &catalog,
        capability,
        &BindInput { page: Some(&PageRequest { at: PagePosition::Number(2), size: 50 }), ..BindInput::new(&args) },
    )
    .unwrap();
    assert_eq!(request.label(), "GET http://demo.localhost/api/projects/a%2F..%2Fb/tickets/7/comments");
    assert_eq!(request.query, [("page".to_owned(), "3".to_owned()), ("per_page".to_owned(), "50".to_owned())]);
}

#[test]
fn a_missing_and_an_unsafe_argument_are_refused() {
    let catalog = demo();
    let get = catalog.capability("project_get").unwrap();
    let bind_key = |value: Value| bind(&catalog, get, &BindInput::new(&BTreeMap::from([("key".to_owned(), value)])));
    assert!(matches!(bind_key(Value::Null), Err(catalog::BindError::Missing { .. })));
    for bad in ["..", ".", ""] {
        assert!(matches!(bind_key(json!(bad)), Err(catalog::BindError::Unsafe { .. })), "{bad}");
    }
}

#[test]
fn rows_are_checked_against_their_types() {
    let catalog = demo();
    let list = catalog.capability("person_list").unwrap();
    let decode_body = |body: &str| {
        let response = Response { status: 200, headers: vec![], body: body.into() };
        decode(
            &catalog,
            list,
            &DecodeInput {
                response: &response,
                args: &BTreeMap::new(),
                page: None,
                max_depth: 64,
                window: RowWindow::ALL,
            },
        )
    };
    let rows =
        decode_body(r#"{"data": [{"id": "ada", "name": "Ada", "team": "new-team", "extra": 1}], "total": 1}"#).unwrap();
    assert_eq!(rows.next, NextPage::End);
    assert_eq!(
        Value::Object(rows.rows[0].clone()),
        json!({"id": "ada", "name": "Ada", "email": null, "team": "new-team", "joined": null})
    );
    for (body, says) in [
        ("", "not JSON"),
        (r#"{"data": 3}"#, "no rows at `data`"),
        (r#"{"data": [{"id": "a", "name": 3}]}"#, "row 0: Person.name: expected string, found 3"),
        (r#"{"data": [{"name": "x"}]}"#, "has no `id`"),
        (&"[".repeat(100), "deeper than 64"),
    ] {
        let error = decode_body(body).unwrap_err().to_string();
        assert!(error.contains(says), "{body}: {error}");
    }
}

#[test]
fn the_documented_example_loads() {
    let page = include_str!("../../../../docs/catalog.md");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let catalog = read("docs/catalog.md", example).unwrap_or_else(|rejected| panic!("{rejected}"));
    assert_eq!((catalog.id.as_str(), catalog.entities.len(), catalog.capabilities.len()), ("tracker", 3, 7));
}

/// The mapping of Jira's search has a hole between quotes, in a text of JQL, the query language of Jira.
#[test]
fn a_value_that_could_end_its_quotes_is_refused() {
    let jira = read("jira.yaml", include_str!("../../../../catalogs/jira.yaml")).unwrap();
    let list = jira.capability("issue_list").unwrap();
    let bind_project = |project: &str| {
        let args = BTreeMap::from([
            ("site".to_owned(), json!("11223344-a1b2-3b33-c444-def123456789")),
            ("project".to_owned(), json!(project)),
        ]);
        bind(&jira, list, &BindInput::new(&args)).map(|request| request.query[0].1.clone())
    };
    assert_eq!(bind_project("OPS").unwrap(), "project = \"OPS\" ORDER BY created DESC");
    for hostile in ["OPS\" OR project = \"SECRET", "a\\", "a\nb", "it's"] {
        assert!(matches!(bind_project(hostile), Err(BindError::Quoted { .. })), "{hostile:?}");
    }
}
