//! What is read on the way is what a tree would have given: rows, counts, the next page and mistakes, for any answer.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;

use super::*;

/// Every way to the rows that is read directly, and fields of every kind of place.
const CATALOG: &str = r#"
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

static PLACES: LazyLock<Catalog> =
    LazyLock::new(|| crate::read("places.yaml", CATALOG).unwrap_or_else(|rejected| panic!("{rejected}")));

/// JSON as its text says it: an object may have a name twice.
#[derive(Debug, Clone)]
enum Text {
    Scalar(String),
    Array(Vec<Text>),
    Object(Vec<(&'static str, Text)>),
}

impl Text {
    fn write(&self, out: &mut String) {
        match self {
            Text::Scalar(text) => out.push_str(text),
            Text::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    item.write(out);
                }
                out.push(']');
            }
            Text::Object(members) => {
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

fn names() -> impl Strategy<Value = &'static str> + Clone {
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

fn trees() -> impl Strategy<Value = Text> + Clone {
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
    // No number and no text, though they look like it.
    let scalar = prop_oneof![99 => scalar, 1 => select(&["1e400", "\"\\ud800\""])];
    let scalar = scalar.prop_map(|text| Text::Scalar(text.to_owned()));
    scalar.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Text::Array),
            2 => vec((names(), inner), 0..6).prop_map(Text::Object),
        ]
    })
}

/// An item that is mostly a row.
fn items() -> impl Strategy<Value = Text> + Clone {
    let text = || "[a-z]{0,3}".prop_map(|text| Text::Scalar(format!("\"{text}\"")));
    let number = || (0..100_u8).prop_map(|n| Text::Scalar(n.to_string()));
    let named = (number(), text()).prop_map(|(id, name)| Text::Object(vec![("id", id), ("name", name)]));
    let list = |of: BoxedStrategy<Text>| vec(of, 0..3).prop_map(Text::Array);
    let member = prop_oneof![
        3 => text().prop_map(|v| ("name", v)),
        3 => named.clone().prop_map(|v| ("owner", v)),
        3 => list(named.clone().boxed()).prop_map(|v| ("tags", v)),
        3 => list(named.clone().boxed()).prop_map(|v| ("parts", v)),
        3 => text().prop_map(|v| ("x", v)),
        3 => named.clone().prop_map(|v| ("node", Text::Object(vec![("data", v)]))),
        1 => (names(), trees()),
    ];
    let row = (number(), vec(member, 0..6)).prop_map(|(id, mut members)| {
        members.insert(members.len() / 2, ("id", id));
        Text::Object(members)
    });
    let wrapped = row.clone().prop_map(|row| Text::Object(vec![("node", row)]));
    let twice = row.clone().prop_map(|row| Text::Object(vec![("node", Text::Object(vec![("data", row)]))]));
    prop_oneof![24 => row, 8 => wrapped, 8 => twice, 4 => number(), 1 => trees()]
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let rows = vec(items(), 0..5).prop_map(Text::Array);
    let inner = (rows.clone(), select(&["list", "node", "nodes", "data"]), vec((names(), trees()), 0..3));
    let inner = inner.prop_map(|(rows, name, mut members)| {
        members.insert(members.len() / 2, (name, rows));
        Text::Object(members)
    });
    let inner = prop_oneof![2 => rows.clone(), 2 => inner, 1 => items()];
    let body = (vec((select(&["data", "list"]), inner), 1..3), vec((names(), trees()), 0..3));
    let body = body.prop_map(|(rows, mut members)| {
        let at = members.len() / 2;
        members.splice(at..at, rows);
        Text::Object(members)
    });
    let body = prop_oneof![6 => body, 2 => rows, 1 => trees()];
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

type Seen = Result<(Vec<Row>, usize, Option<After>), String>;

/// What came of an answer, read in one way or the other.
fn seen(capability: &Capability, body: &[u8], window: Window, direct: bool) -> Seen {
    let catalog = &*PLACES;
    let headers = vec![("etag".to_owned(), "e".to_owned())];
    let response = Response { status: 200, headers, body: body.to_vec() };
    let args = Args::from([("id".to_owned(), Value::from(1))]);
    let answer = Answer { response: &response, args: &args, asked: None, nesting: 64, window };
    let shape = Shape::of(catalog, catalog.entity(&capability.returns).unwrap());
    let reader = Reader::new(&shape, &answer, capability.kind.is_list());
    let raw = if direct {
        direct::read(&Way::of(catalog, capability).unwrap(), catalog, capability, &reader)
    } else {
        tree::read(catalog, capability, &reader)
    };
    let Raw { rows, came, body } = raw.map_err(|error| error.to_string())?;
    let asked = PageRequest { at: crate::paging::PageAt::First, size: 2 };
    let page = Page { response: &response, body: &body, rows: came, last: rows.last() };
    let after = capability.paging.as_ref().map(|paging| paging.after(&catalog.origin, &asked, &page, came));
    Ok((rows, came, after.transpose().map_err(|error| error.to_string())?))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn read_on_the_way_is_read_from_the_tree(
        body in answers(),
        which in any::<prop::sample::Index>(),
        skip in 0..4_usize,
        take in 0..4_usize,
    ) {
        let capability = PLACES.capabilities.values().nth(which.index(PLACES.capabilities.len())).unwrap();
        let shown = String::from_utf8_lossy(&body).into_owned();
        let whole = seen(capability, &body, Window::ALL, false);
        prop_assert_eq!(&seen(capability, &body, Window::ALL, true), &whole, "{}: {}", capability.name, shown);
        let window = Window { skip, take };
        let cut = seen(capability, &body, window, false);
        prop_assert_eq!(&seen(capability, &body, window, true), &cut, "{} {:?}: {}", capability.name, window, shown);
        if let (Ok(whole), Ok(cut)) = (whole, cut) {
            let rows: Vec<Row> = whole.0.into_iter().skip(skip).take(take).collect();
            prop_assert_eq!((rows, whole.1), (cut.0, cut.1));
        }
    }
}

/// A test that never sees a row would show nothing.
#[test]
fn the_answers_above_hold_rows_and_mistakes() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut rows, mut mistakes) = (0, 0);
    for _ in 0..600 {
        let body = answers().new_tree(&mut runner).unwrap().current();
        for capability in PLACES.capabilities.values() {
            match seen(capability, &body, Window::ALL, true) {
                Ok(found) => rows += found.0.len(),
                Err(_) => mistakes += 1,
            }
        }
    }
    assert!(rows > 300 && mistakes > 300, "{rows} {mistakes}");
}

#[test]
fn every_way_of_this_catalog_is_direct_and_the_unusual_ones_are_not() {
    for capability in PLACES.capabilities.values() {
        assert!(Way::of(&PLACES, capability).is_some(), "{}", capability.name);
    }
    let every = crate::read("every.yaml", include_str!("../../../../tests/catalog/every.yaml")).unwrap();
    let unusual = |name: &str| Way::of(&every, every.capability(name).unwrap()).is_none();
    // Several places, columns, a failure that is told inside the row.
    assert!(unusual("ticket_search") && unusual("day_list") && unusual("ticket_get") && !unusual("ticket_list"));
}
