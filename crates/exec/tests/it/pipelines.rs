//! Tests of random programs with one to five postfixes over random small tables, compared with a naive interpreter. A postfix
//! is one operation after an expression, such as `.sort(n)`.
//! Invariant: every program that checks has a plan, and its rows equal the rows of the naive interpreter.

use std::sync::Arc;

use base::Limits;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use testkit::upstream::{Rule, ScriptedUpstream};

use crate::support::{RunOptions, plan_program, run_with};

const CATALOG: &str = "
catalog: world
version: 1
title: A small world
origin: https://world.example.com
types:
  Kind: {select: [a, b, c]}
entities:
  Item:
    about: a thing
    key: [id]
    fields: {id: integer, n: integer, s: string, kind: Kind, tags: {array: string}}
capabilities:
  item_list: {query: Item, http: GET /items, rows: data}
";

type Row = Map<String, Value>;

/// One postfix of a program.
#[derive(Debug, Clone)]
enum Postfix {
    Filter(&'static str, &'static str, Value),
    Sort(&'static str, bool),
    Limit(usize),
    Distinct(&'static str),
    Project(Vec<&'static str>),
    Group(&'static str),
    Aggregate,
    First,
    Last,
}

const FIELDS: [&str; 5] = ["id", "n", "s", "kind", "tags"];

impl Postfix {
    /// Returns the columns after this postfix, or `None` if the postfix needs a missing column.
    fn columns_after(&self, columns: &[&'static str]) -> Option<Vec<&'static str>> {
        let has = |name: &&'static str| columns.contains(name);
        match self {
            Postfix::Filter(name, ..) | Postfix::Sort(name, _) | Postfix::Distinct(name) => {
                has(name).then(|| columns.to_vec())
            }
            Postfix::Project(names) => names.iter().all(has).then(|| names.clone()),
            Postfix::Group(name) => (has(name) && has(&"n") && *name != "n").then(|| vec![*name, "c", "n"]),
            Postfix::Aggregate => has(&"n").then(|| vec!["c", "n", "lo", "hi"]),
            Postfix::Limit(_) | Postfix::First | Postfix::Last => Some(columns.to_vec()),
        }
    }

    /// Returns the text of the postfix in a program.
    fn text(&self) -> String {
        match self {
            Postfix::Filter(name, op, value) => format!(".filter{{{name}{op}{value}}}"),
            Postfix::Sort(name, desc) => format!(".sort({name}{})", if *desc { ", desc" } else { "" }),
            Postfix::Limit(n) => format!(".limit({n})"),
            Postfix::Distinct(name) => format!(".distinct({name})"),
            Postfix::Project(names) => format!("[{}]", names.join(", ")),
            Postfix::Group(name) => format!(".group_by({name}, c=count, n=sum(n))"),
            Postfix::Aggregate => ".aggregate(c=count, n=sum(n), lo=min(n), hi=max(n))".to_owned(),
            Postfix::First => ".first()".to_owned(),
            Postfix::Last => ".last()".to_owned(),
        }
    }

    /// Applies the postfix to rows by a naive implementation.
    fn apply(&self, rows: &[Row]) -> Vec<Row> {
        match self {
            Postfix::Filter(name, op, value) => rows.iter().filter(|r| passes(&r[*name], op, value)).cloned().collect(),
            Postfix::Sort(name, desc) => sorted(rows, name, *desc),
            Postfix::Limit(n) => rows.iter().take(*n).cloned().collect(),
            Postfix::Distinct(name) => {
                let mut known: Vec<&Value> = Vec::new();
                let mut kept = Vec::new();
                for row in rows {
                    if !known.contains(&&row[*name]) {
                        known.push(&row[*name]);
                        kept.push(row.clone());
                    }
                }
                kept
            }
            Postfix::Project(names) => {
                rows.iter().map(|r| names.iter().map(|n| ((*n).to_owned(), r[*n].clone())).collect()).collect()
            }
            Postfix::Group(name) => {
                let heads = Postfix::Distinct(name).apply(rows);
                let members = |head: &Row| rows.iter().filter(|r| r[*name] == head[*name]).collect::<Vec<_>>();
                let row = |head: &Row| {
                    object(json!({*name: head[*name], "c": members(head).len(), "n": sum(&members(head))}))
                };
                heads.iter().map(row).collect()
            }
            Postfix::Aggregate => {
                let all: Vec<&Row> = rows.iter().collect();
                let numbers = rows.iter().filter_map(|r| r["n"].as_i64());
                let lo = numbers.clone().min();
                let hi = numbers.max();
                vec![object(json!({"c": rows.len(), "n": sum(&all), "lo": lo, "hi": hi}))]
            }
            Postfix::First => rows.first().cloned().into_iter().collect(),
            Postfix::Last => rows.last().cloned().into_iter().collect(),
        }
    }
}

fn object(value: Value) -> Row {
    value.as_object().unwrap().clone()
}

fn sum(rows: &[&Row]) -> i64 {
    rows.iter().filter_map(|r| r["n"].as_i64()).sum()
}

/// Sorts by insertion, which is obviously stable. `null` is last in both directions.
fn sorted(rows: &[Row], name: &str, desc: bool) -> Vec<Row> {
    let before = |a: &Value, b: &Value| match (a, b) {
        (Value::Null, _) => false,
        (_, Value::Null) => true,
        (Value::Number(a), Value::Number(b)) if desc => a.as_i64() > b.as_i64(),
        (Value::Number(a), Value::Number(b)) => a.as_i64() < b.as_i64(),
        (a, b) if desc => a.as_str() > b.as_str(),
        (a, b) => a.as_str() < b.as_str(),
    };
    let mut out: Vec<Row> = Vec::new();
    for row in rows {
        let position = out.iter().position(|other| before(&row[name], &other[name])).unwrap_or(out.len());
        out.insert(position, row.clone());
    }
    out
}

fn passes(value: &Value, op: &str, wanted: &Value) -> bool {
    let contained = value.as_array().is_some_and(|items| items.contains(wanted));
    let equal = !value.is_null() && (value == wanted || contained);
    let order = match (value.as_i64(), wanted.as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => None,
    };
    match op {
        "=" => equal,
        "!=" => !equal,
        "<" => order.is_some_and(|o| o.is_lt()),
        "<=" => order.is_some_and(|o| o.is_le()),
        ">" => order.is_some_and(|o| o.is_gt()),
        ">=" => order.is_some_and(|o| o.is_ge()),
        "~" => value.as_str().is_some_and(|text| text.contains(wanted.as_str().unwrap())),
        other => panic!("{other}"),
    }
}

fn item() -> impl Strategy<Value = Row> {
    let n = prop::option::of(-3..4i64);
    let s = prop::option::of(prop::sample::select(vec!["", "x", "xy", "é;;", "<<T"]));
    let kind = prop::option::of(prop::sample::select(vec!["a", "b", "c"]));
    let tags = prop::collection::vec(prop::sample::select(vec!["x", "y"]), 0..3);
    (n, s, kind, tags).prop_map(|(n, s, kind, tags)| object(json!({"n": n, "s": s, "kind": kind, "tags": tags})))
}

fn postfix() -> impl Strategy<Value = Postfix> {
    let orders = vec!["=", "!=", "<", "<=", ">", ">="];
    let text = || prop::sample::select(vec!["", "x", "xy", "é;;", "<<T"]);
    let plain = || prop::sample::select(vec!["id", "n", "s", "kind"]);
    prop_oneof![
        (prop::sample::select(vec!["n", "id"]), prop::sample::select(orders), -3..4i64)
            .prop_map(|(name, op, value)| Postfix::Filter(name, op, json!(value))),
        (prop::sample::select(vec!["=", "!=", "~"]), text()).prop_map(|(op, t)| Postfix::Filter("s", op, json!(t))),
        (prop::sample::select(vec!["=", "!="]), prop::sample::select(vec!["a", "b", "c"]))
            .prop_map(|(op, t)| Postfix::Filter("kind", op, json!(t))),
        (prop::sample::select(vec!["=", "!="]), prop::sample::select(vec!["x", "y"]))
            .prop_map(|(op, t)| Postfix::Filter("tags", op, json!(t))),
        (prop::sample::select(vec!["id", "n", "s"]), any::<bool>()).prop_map(|(name, desc)| Postfix::Sort(name, desc)),
        (1..6usize).prop_map(Postfix::Limit),
        plain().prop_map(Postfix::Distinct),
        prop::sample::subsequence(FIELDS.to_vec(), 1..=5).prop_map(Postfix::Project),
        prop::sample::select(vec!["s", "kind"]).prop_map(Postfix::Group),
        Just(Postfix::Aggregate),
        Just(Postfix::First),
        Just(Postfix::Last),
    ]
}

fn run(program: &str, rows: &[Row]) -> Vec<Row> {
    let catalog = Arc::new(catalog::read("world.yaml", CATALOG).unwrap_or_else(|rejected| panic!("{rejected}")));
    let upstream = ScriptedUpstream::new().with(Rule::get("/items").json(200, json!({"data": rows})));
    let plan = plan_program(&catalog, program, &Limits::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(run_with(&upstream, &plan, &catalog, RunOptions::default()));
    let last = outcome.returns.last().unwrap();
    let set = last.result.as_ref().unwrap_or_else(|error| panic!("{program}: {error}"));
    set.rows.iter().map(|row| Row::clone(row)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_give_the_same_rows_as_the_naive_interpreter(
        items in prop::collection::vec(item(), 0..9),
        postfixes in prop::collection::vec(postfix(), 1..6),
        named in any::<bool>(),
    ) {
        let mut rows: Vec<Row> = items;
        rows.iter_mut().enumerate().for_each(|(index, row)| { row.insert("id".to_owned(), json!(index % 7)); });
        let world = rows.clone();
        let mut columns = FIELDS.to_vec();
        let mut program = if named { "x0 = Item".to_owned() } else { "Item".to_owned() };
        for (index, postfix) in postfixes.iter().enumerate() {
            let Some(columns_after) = postfix.columns_after(&columns) else { continue };
            columns = columns_after;
            rows = postfix.apply(&rows);
            if named {
                let last = program.rsplit('\n').next().and_then(|line| line.split(' ').next()).unwrap().to_owned();
                program = format!("{program}\nx{} = {last}{}", index + 1, postfix.text());
            } else {
                program.push_str(&postfix.text());
            }
        }
        let actual: Vec<Row> = run(&program, &world)
            .iter()
            .map(|row| columns.iter().map(|c| ((*c).to_owned(), row.get(*c).cloned().unwrap_or_default())).collect())
            .collect();
        let expected: Vec<Row> = rows
            .iter()
            .map(|row| columns.iter().map(|c| ((*c).to_owned(), row[*c].clone())).collect())
            .collect();
        prop_assert_eq!(actual, expected, "{}", program);
    }
}
