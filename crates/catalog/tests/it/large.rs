//! An answer with far more rows than anyone asked for costs memory for the wanted ones only.

use std::fmt::Write;

use allocation_counter::measure;
use base::Response;
use catalog::{Args, DecodeInput, RowWindow, decode, read};

const ROWS: usize = 1_000_000;
const WANTED: usize = 1_000;

/// A thousand rows of two fields are about half a megabyte.
const MOST_BYTES: u64 = 1024 * 1024;

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

fn answer(before: &str, item: impl Fn(usize) -> String, after: &str) -> Response {
    let mut body = String::from(before);
    for number in 0..ROWS {
        body.push_str(if number == 0 { "" } else { "," });
        body.push_str(&item(number));
    }
    write!(body, "{after}").unwrap();
    Response { status: 200, headers: Vec::new(), body: body.into_bytes() }
}

#[test]
fn a_million_tiny_rows_cost_what_the_wanted_ones_cost() {
    let catalog = read("large.yaml", CATALOG).unwrap_or_else(|rejected| panic!("{rejected}"));
    let row = |n: usize| format!("{{\"id\":{n}}}");
    for (name, response) in [
        ("things", answer("[", row, "]")),
        ("edges", answer("{\"total\": 9, \"data\": [", |n| format!("{{\"node\":{}}}", row(n)), "]}")),
        ("words", answer("{\"data\": [", |n| n.to_string(), "]}")),
        ("newest", answer("{\"data\": [", row, "]}")),
    ] {
        let capability = catalog.capability(name).unwrap();
        for skip in [0, ROWS - WANTED / 2] {
            // Where the next page starts after the last row, rows before the window are read too.
            if name == "newest" && skip > 0 {
                continue;
            }
            let window = RowWindow { skip, take: WANTED };
            let args = Args::new();
            let answer = DecodeInput { response: &response, args: &args, asked: None, nesting: 64, window };
            let mut decoded = None;
            let used = measure(|| decoded = Some(decode(&catalog, capability, &answer).unwrap()));
            let decoded = decoded.unwrap();
            assert!(used.bytes_max < MOST_BYTES, "{name} from {skip}: {} bytes", used.bytes_max);
            assert_eq!((decoded.came, decoded.skipped), (ROWS, skip), "{name}");
            assert_eq!(decoded.rows.len(), WANTED.min(ROWS - skip), "{name}");
            assert_eq!(decoded.rows.last().unwrap()["id"], skip + decoded.rows.len() - 1, "{name}");
        }
    }
}

/// An answer of another shape than the catalog's is refused for as little.
#[test]
fn a_million_of_something_else_cost_next_to_nothing() {
    let catalog = read("large.yaml", CATALOG).unwrap_or_else(|rejected| panic!("{rejected}"));
    let member = |n: usize| format!("\"m{n}\":{{\"id\":{n}}}");
    for (response, name) in [
        (answer("{", member, "}"), "things"),
        (answer("{\"data\": {", member, "}}"), "words"),
        (answer("{\"rows\": [", |n| format!("{{\"id\":{n}}}"), "]}"), "edges"),
    ] {
        let capability = catalog.capability(name).unwrap();
        let args = Args::new();
        let answer = DecodeInput { response: &response, args: &args, asked: None, nesting: 64, window: RowWindow::ALL };
        let used = measure(|| {
            let refused = decode(&catalog, capability, &answer).unwrap_err().to_string();
            assert!(refused.contains("no rows"), "{refused}");
        });
        assert!(used.bytes_max < 64 * 1024, "{name}: {} bytes", used.bytes_max);
    }
}
