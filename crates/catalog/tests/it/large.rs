//! Tests that an answer with far more rows than requested costs memory only for the rows in the window.

use std::fmt::Write;

use allocation_counter::measure;
use base::Response;
use catalog::{Args, DecodeInput, RowWindow, decode, read};

/// The rows of each answer.
const ROWS: usize = 1_000_000;
/// The rows in the window.
const WANTED: usize = 1_000;

/// The allowed memory. A thousand rows of two fields are about half a megabyte.
const MAX_BYTES: u64 = 1024 * 1024;

const CATALOG: &str = r#"
catalog: large
version: 1
title: Large
origin: https://api.example.com
entities:
  Thing:
    about: something
    key: [id]
    fields: {id: integer, name: string}
capabilities:
  things: {query: Thing, params: {aa: {type: string, required: true}}, http: "GET /aa/{aa}", paging: {link: next}}
  edges: {query: Thing, params: {bb: {type: string, required: true}}, http: "GET /bb/{bb}", rows: data, item: node, paging: {offset: skip, total: total}}
  words: {query: Thing, params: {cc: {type: string, required: true}}, http: "GET /cc/{cc}", rows: data, wrap: id}
  newest: {query: Thing, params: {dd: {type: string, required: true}}, http: "GET /dd/{dd}", rows: data, paging: {last: id, send: after}}
"#;

/// Makes an answer with a million items.
fn large_answer(before: &str, item: impl Fn(usize) -> String, after: &str) -> Response {
    let mut body = String::from(before);
    for number in 0..ROWS {
        body.push_str(if number == 0 { "" } else { "," });
        body.push_str(&item(number));
    }
    write!(body, "{after}").unwrap();
    Response { status: 200, headers: Vec::new(), body: body.into_bytes() }
}

#[test]
fn a_million_rows_cost_memory_only_for_those_in_the_window() {
    let catalog = read("large.yaml", CATALOG).unwrap_or_else(|rejected| panic!("{rejected}"));
    let row = |n: usize| format!("{{\"id\":{n}}}");
    for (name, response) in [
        ("things", large_answer("[", row, "]")),
        ("edges", large_answer("{\"total\": 9, \"data\": [", |n| format!("{{\"node\":{}}}", row(n)), "]}")),
        ("words", large_answer("{\"data\": [", |n| n.to_string(), "]}")),
        ("newest", large_answer("{\"data\": [", row, "]}")),
    ] {
        let capability = catalog.capability(name).unwrap();
        for skip in [0, ROWS - WANTED / 2] {
            // With this form of paging the rows before the window are decoded too, because the next page starts after the
            // last row.
            if name == "newest" && skip > 0 {
                continue;
            }
            let window = RowWindow { skip, take: WANTED };
            let args = Args::new();
            let input = DecodeInput { response: &response, args: &args, page: None, max_depth: 64, window };
            let mut decoded = None;
            let used = measure(|| decoded = Some(decode(&catalog, capability, &input).unwrap()));
            let decoded = decoded.unwrap();
            assert!(used.bytes_max < MAX_BYTES, "{name} from {skip}: {} bytes", used.bytes_max);
            assert_eq!((decoded.row_count, decoded.skipped), (ROWS, skip), "{name}");
            assert_eq!(decoded.rows.len(), WANTED.min(ROWS - skip), "{name}");
            assert_eq!(decoded.rows.last().unwrap()["id"], skip + decoded.rows.len() - 1, "{name}");
        }
    }
}

/// An answer that does not have the catalog's form is refused without storing it.
#[test]
fn a_million_values_of_another_form_cost_little_memory() {
    let catalog = read("large.yaml", CATALOG).unwrap_or_else(|rejected| panic!("{rejected}"));
    let member = |n: usize| format!("\"m{n}\":{{\"id\":{n}}}");
    for (response, name) in [
        (large_answer("{", member, "}"), "things"),
        (large_answer("{\"data\": {", member, "}}"), "words"),
        (large_answer("{\"rows\": [", |n| format!("{{\"id\":{n}}}"), "]}"), "edges"),
    ] {
        let capability = catalog.capability(name).unwrap();
        let args = Args::new();
        let input = DecodeInput { response: &response, args: &args, page: None, max_depth: 64, window: RowWindow::ALL };
        let used = measure(|| {
            let refused = decode(&catalog, capability, &input).unwrap_err().to_string();
            assert!(refused.contains("no rows"), "{refused}");
        });
        assert!(used.bytes_max < 64 * 1024, "{name}: {} bytes", used.bytes_max);
    }
}
