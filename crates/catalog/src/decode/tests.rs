//! Tests that the modules `stream` and `tree` return the same rows, counts, next page and errors for any answer.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;

use super::*;

/// A catalog with every form of list that `stream` can read, and with fields at every kind of path.
const PLACES_YAML: &str = r#"
catalog: places
version: 1
title: Places
origin: https://api.example.com
failure: {flag: ok, says: error}
graphql: /graphql
entities:
  Thing:
    about: something
    key: [id]
    fields:
      id: integer
      name: string
      owner: {type: string, path: owner.name}
      owner_id: {type: integer, path: owner.id}
      deep: {type: string, path: node.data.name}
      deeper: {type: json, path: node.next}
      tags: {array: string, path: "tags[].name"}
      either: {type: string, path: [x, y.name]}
      second: {type: json, path: list.1}
      total: {type: json, path: total}
      mark: {type: string, header: etag}
    relations:
      parts: {many: Part, in: parts}
  Part:
    about: a part of something
    key: [id, name]
    fields: {id: integer, name: string, x: json}
  Word:
    about: a scalar
    key: [id]
    fields: {id: integer, name: string}
  Numbered:
    about: a row that is an array or has numbers for names
    key: [id]
    fields: {id: {type: integer, path: "0"}, name: {type: json, path: "1.name"}}
capabilities:
  root: {query: Thing, params: {aa: {type: string, required: true}}, http: "GET /aa/{aa}", paging: {link: next, total: total}}
  data: {query: Thing, params: {bb: {type: string, required: true}}, http: "GET /bb/{bb}", rows: data, paging: {page: page, size: {send: n, max: 2}, total: total}}
  sparse: {query: Thing, params: {cc: {type: string, required: true}}, http: "GET /cc/{cc}", rows: data.list, sparse: true, paging: {cursor: data.next, send: c, more: ok}}
  next: {query: Thing, params: {dd: {type: string, required: true}}, http: "GET /dd/{dd}", rows: data.list, paging: {next: next, total: data.total}}
  last: {query: Thing, params: {ee: {type: string, required: true}}, http: "GET /ee/{ee}", rows: list, paging: {last: id, send: after, more: data.ok}}
  edges: {query: Thing, params: {ff: {type: string, required: true}}, http: "GET /ff/{ff}", rows: data, item: node, paging: {offset: o, total: data}}
  deep_edges: {query: Thing, params: {gg: {type: string, required: true}}, http: "GET /gg/{gg}", rows: list, item: node.data, paging: {offset: o}}
  words: {query: Word, params: {hh: {type: string, required: true}}, http: "GET /hh/{hh}", rows: data, wrap: id}
  numbered: {query: Numbered, params: {ii: {type: string, required: true}}, http: "GET /ii/{ii}", rows: data}
  one: {get: Thing, http: "GET /j/{id}", row: data}
  asked: {singleton: Thing, graphql: "query { thing { ...Thing } }", row: data.node}
  listed:
    query: Thing
    params: {zz: {type: string, required: true}}
    graphql: "query($zz: String!, $first: Int, $after: String) { data(z: $zz) { list(first: $first, after: $after) { nodes { ...Thing } } } }"
    paging: {connection: data.list, size: {send: first, max: 50}}
"#;

/// The catalog that `PLACES_YAML` describes.
static PLACES_CATALOG: LazyLock<Catalog> =
    LazyLock::new(|| crate::read("places.yaml", PLACES_YAML).unwrap_or_else(|rejected| panic!("{rejected}")));

/// A JSON text as a tree. Unlike in `Value`, an object may have two members of one name.
#[derive(Debug, Clone)]
enum JsonText {
    Scalar(String),
    Array(Vec<JsonText>),
    Object(Vec<(&'static str, JsonText)>),
}

impl JsonText {
    fn write(&self, out: &mut String) {
        match self {
            JsonText::Scalar(text) => out.push_str(text),
            JsonText::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    item.write(out);
                }
                out.push(']');
            }
            JsonText::Object(members) => {
                out.push('{');
                for (n, (name, value)) in members.iter().enumerate() {
                    out.push_str(if n == 0 { "\"" } else { ",\"" });
                    out.push_str(name);
                    out.push_str("\": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn member_names() -> impl Strategy<Value = &'static str> + Clone {
    select(&[
        "id",
        "name",
        "owner",
        "node",
        "data",
        "tags",
        "x",
        "y",
        "list",
        "nodes",
        "parts",
        "total",
        "next",
        "ok",
        "error",
        "errors",
        "pageInfo",
        "hasNextPage",
        "endCursor",
        "0",
        "1",
        "other",
        "n\\u0061me",
    ])
}

fn json_texts() -> impl Strategy<Value = JsonText> + Clone {
    let scalar = select(&[
        "null",
        "true",
        "false",
        "0",
        "7",
        "-3",
        "1.5",
        "9007199254740993",
        "\"\"",
        "\"a\"",
        "\"é\\n\\u00e9\"",
        "\"/next\"",
        "\"https://evil.example/\"",
    ]);
    // The first text looks like a number but is too large, and the second has half of a surrogate pair. The parser
    // refuses both.
    let scalar = prop_oneof![99 => scalar, 1 => select(&["1e400", "\"\\ud800\""])];
    let scalar = scalar.prop_map(|text| JsonText::Scalar(text.to_owned()));
    scalar.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(JsonText::Array),
            2 => vec((member_names(), inner), 0..6).prop_map(JsonText::Object),
        ]
    })
}

/// Generates items of a list. Most of them are rows.
fn list_items() -> impl Strategy<Value = JsonText> + Clone {
    let text = || "[a-z]{0,3}".prop_map(|text| JsonText::Scalar(format!("\"{text}\"")));
    let number = || (0..100_u8).prop_map(|n| JsonText::Scalar(n.to_string()));
    let with_name = (number(), text()).prop_map(|(id, name)| JsonText::Object(vec![("id", id), ("name", name)]));
    let list = |of: BoxedStrategy<JsonText>| vec(of, 0..3).prop_map(JsonText::Array);
    let member = prop_oneof![
        3 => text().prop_map(|v| ("name", v)),
        3 => with_name.clone().prop_map(|v| ("owner", v)),
        3 => list(with_name.clone().boxed()).prop_map(|v| ("tags", v)),
        3 => list(with_name.clone().boxed()).prop_map(|v| ("parts", v)),
        3 => text().prop_map(|v| ("x", v)),
        3 => with_name.clone().prop_map(|v| ("node", JsonText::Object(vec![("data", v)]))),
        1 => (member_names(), json_texts()),
    ];
    let row = (number(), vec(member, 0..6)).prop_map(|(id, mut members)| {
        members.insert(members.len() / 2, ("id", id));
        JsonText::Object(members)
    });
    let wrapped = row.clone().prop_map(|row| JsonText::Object(vec![("node", row)]));
    let twice = row.clone().prop_map(|row| JsonText::Object(vec![("node", JsonText::Object(vec![("data", row)]))]));
    prop_oneof![24 => row, 8 => wrapped, 8 => twice, 4 => number(), 1 => json_texts()]
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let rows = vec(list_items(), 0..5).prop_map(JsonText::Array);
    let inner = (rows.clone(), select(&["list", "node", "nodes", "data"]), vec((member_names(), json_texts()), 0..3));
    let inner = inner.prop_map(|(rows, name, mut members)| {
        members.insert(members.len() / 2, (name, rows));
        JsonText::Object(members)
    });
    let inner = prop_oneof![2 => rows.clone(), 2 => inner, 1 => list_items()];
    let body = (vec((select(&["data", "list"]), inner), 1..3), vec((member_names(), json_texts()), 0..3));
    let body = body.prop_map(|(rows, mut members)| {
        let at = members.len() / 2;
        members.splice(at..at, rows);
        JsonText::Object(members)
    });
    let body = prop_oneof![6 => body, 2 => rows, 1 => json_texts()];
    (body, 0..40_usize, any::<prop::sample::Index>()).prop_map(|(body, damage, at)| {
        let mut text = String::new();
        body.write(&mut text);
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match damage {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, 0xff),
            2 => bytes.push(b']'),
            _ => {}
        }
        bytes
    })
}

/// The compared result of decoding: the rows in the window, the number of all rows, and the next page.
type Outcome = Result<(Vec<Row>, usize, Option<NextPage>), String>;

#[derive(Clone, Copy)]
enum Method {
    Stream,
    Tree,
}

fn read_answer(capability: &Capability, body: &[u8], window: RowWindow, method: Method) -> Outcome {
    let catalog = &*PLACES_CATALOG;
    let headers = vec![("etag".to_owned(), "e".to_owned())];
    let response = Response { status: 200, headers, body: body.to_vec() };
    let args = Args::from([("id".to_owned(), Value::from(1))]);
    let input = DecodeInput { response: &response, args: &args, page: None, max_depth: 64, window };
    let layout = RowLayout::new(catalog, catalog.entity(&capability.returns).unwrap());
    let reader = RowReader::new(&layout, &input, capability.kind.is_list());
    let read = match method {
        Method::Stream => stream::read(&StreamPlan::new(catalog, capability).unwrap(), catalog, capability, &reader),
        Method::Tree => tree::read(catalog, capability, &reader),
    };
    let RowsAndBody { rows, row_count, body } = read.map_err(|error| error.to_string())?;
    let request = PageRequest { at: crate::paging::PagePosition::First, size: 2 };
    let page = Page { response: &response, body: &body, rows: row_count, last: rows.last() };
    let address = || PageAddress { origin: &catalog.origin, path: "/places".to_owned(), query: Vec::new() };
    let next = capability.paging.as_ref().map(|paging| paging.next_page(address, &request, &page, row_count));
    Ok((rows, row_count, next.transpose().map_err(|error| error.to_string())?))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_and_a_tree_return_the_same_rows(
        body in answers(),
        which in any::<prop::sample::Index>(),
        skip in 0..4_usize,
        take in 0..4_usize,
    ) {
        let capability = PLACES_CATALOG.capabilities.values().nth(which.index(PLACES_CATALOG.capabilities.len())).unwrap();
        let shown = String::from_utf8_lossy(&body).into_owned();
        let all_rows = read_answer(capability, &body, RowWindow::ALL, Method::Tree);
        let streamed = read_answer(capability, &body, RowWindow::ALL, Method::Stream);
        prop_assert_eq!(&streamed, &all_rows, "{}: {}", capability.name, shown);
        let window = RowWindow { skip, take };
        let in_window = read_answer(capability, &body, window, Method::Tree);
        let streamed = read_answer(capability, &body, window, Method::Stream);
        prop_assert_eq!(&streamed, &in_window, "{} {:?}: {}", capability.name, window, shown);
        if let (Ok(all_rows), Ok(in_window)) = (all_rows, in_window) {
            let rows: Vec<Row> = all_rows.0.into_iter().skip(skip).take(take).collect();
            prop_assert_eq!((rows, all_rows.1), (in_window.0, in_window.1));
        }
    }
}

/// The property test above would prove nothing if the generated answers had no rows or no mistakes.
#[test]
fn the_generated_answers_have_rows_and_mistakes() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut rows = 0;
    let mut mistakes = 0;
    for _ in 0..600 {
        let body = answers().new_tree(&mut runner).unwrap().current();
        for capability in PLACES_CATALOG.capabilities.values() {
            match read_answer(capability, &body, RowWindow::ALL, Method::Stream) {
                Ok(outcome) => rows += outcome.0.len(),
                Err(_) => mistakes += 1,
            }
        }
    }
    assert!(rows > 300 && mistakes > 300, "{rows} {mistakes}");
}

#[test]
fn unusual_forms_of_lists_cannot_be_streamed() {
    for capability in PLACES_CATALOG.capabilities.values() {
        assert!(StreamPlan::new(&PLACES_CATALOG, capability).is_some(), "{}", capability.name);
    }
    let every = crate::read("every.yaml", include_str!("../../../../tests/catalog/every.yaml")).unwrap();
    let needs_tree = |name: &str| StreamPlan::new(&every, every.capability(name).unwrap()).is_none();
    // These capabilities have alternative paths, columns, and a failure flag inside the row.
    assert!(needs_tree("ticket_search") && needs_tree("day_list") && needs_tree("ticket_get"));
    assert!(!needs_tree("ticket_list"));
}
