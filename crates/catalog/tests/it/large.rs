//! Tests that decoding an answer with far more rows than the requested window uses memory only for the rows in the
//! window.

use std::fmt::Write;

use allocation_counter::measure;
use base::Response;
use catalog::{Args, DecodeInput, RowWindow, decode, read};

/// The number of rows in each answer.
const ROWS_PER_ANSWER: usize = 1_000_000;
/// The number of rows in the requested window.
const ROWS_IN_WINDOW: usize = 1_000;

/// The maximum memory of one decoding, in bytes. A thousand rows of two fields use about half a megabyte.
const MAX_DECODING_BYTES: u64 = 1024 * 1024;

const LARGE_YAML: &str = r#"
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

/// Makes an answer with a million items between the texts `before` and `after`.
fn large_answer(before: &str, item: impl Fn(usize) -> String, after: &str) -> Response {
    let mut body = String::from(before);
    for number in 0..ROWS_PER_ANSWER {
        body.push_str(if number == 0 { "" } else { "," });
        body.push_str(&item(number));
    }
    write!(body, "{after}").unwrap();
    Response { status: 200, headers: Vec::new(), body: body.into_bytes() }
}

#[test]
fn a_million_rows_use_memory_only_for_the_rows_in_the_window() {
    let catalog = read("large.yaml", LARGE_YAML).unwrap_or_else(|rejected| panic!("{rejected}"));
    let row = |n: usize| format!("{{\"id\":{n}}}");
    for (name, response) in [
        ("things", large_answer("[", row, "]")),
        ("edges", large_answer("{\"total\": 9, \"data\": [", |n| format!("{{\"node\":{}}}", row(n)), "]}")),
        ("words", large_answer("{\"data\": [", |n| n.to_string(), "]}")),
        ("newest", large_answer("{\"data\": [", row, "]}")),
    ] {
        let capability = catalog.capability(name).unwrap();
        for skip in [0, ROWS_PER_ANSWER - ROWS_IN_WINDOW / 2] {
            // This capability has the paging form `last`, with which the rows before the window are decoded too,
            // because a field of the last row is the next position. So memory is not limited by the window.
            if name == "newest" && skip > 0 {
                continue;
            }
            let window = RowWindow { skip, take: ROWS_IN_WINDOW };
            let args = Args::new();
            let input = DecodeInput { response: &response, args: &args, page: None, max_depth: 64, window };
            let mut decoded = None;
            let used = measure(|| decoded = Some(decode(&catalog, capability, &input).unwrap()));
            let decoded = decoded.unwrap();
            assert!(used.bytes_max < MAX_DECODING_BYTES, "{name} from {skip}: {} bytes", used.bytes_max);
            assert_eq!((decoded.row_count, decoded.skipped), (ROWS_PER_ANSWER, skip), "{name}");
            assert_eq!(decoded.rows.len(), ROWS_IN_WINDOW.min(ROWS_PER_ANSWER - skip), "{name}");
            assert_eq!(decoded.rows.last().unwrap()["id"], skip + decoded.rows.len() - 1, "{name}");
        }
    }
}

/// An answer without the form that the catalog describes is refused without being stored.
#[test]
fn a_million_values_of_another_form_use_little_memory() {
    let catalog = read("large.yaml", LARGE_YAML).unwrap_or_else(|rejected| panic!("{rejected}"));
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
