//! Tests of reads beyond one list: references, remaining fields, one list per row, pages of an earlier run, and reads inside
//! values.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Limits;
use catalog::{Catalog, Type};
use exec::{Coverage, PartialReason};
use lang::plan::{Aggregation, Expr, Function, NamedPath, RowPart, Shape, StepKind};
use serde_json::{Value, json};
use testkit::upstream::{Rule, ScriptedUpstream, body_text};

use crate::support::{self, Plans, RunOptions, args, error, of_step, path, row, rows, run_with, value};

fn catalog() -> Arc<Catalog> {
    support::writes_catalog("http://demo.localhost")
}

fn ticket(number: usize, owner: Value) -> Value {
    json!({"project": "OPS", "number": number, "title": format!("t{number}"), "owner": owner, "labels": []})
}

/// Returns an API with four tickets that refer to two people. One of the people does not exist.
fn four_tickets() -> ScriptedUpstream {
    let owners = [json!({"id": "x"}), json!({"id": "gone"}), Value::Null, json!({"id": "x"})];
    let data: Vec<Value> = (1..).zip(owners).map(|(n, owner)| ticket(n, owner)).collect();
    ScriptedUpstream::new()
        .with(Rule::get("/api/tickets").json(200, json!({"data": data, "total": 4})))
        .with(Rule::get("/api/people/x").json(200, json!({"id": "x", "name": "Xena"})))
        .with(Rule::get("/api/people/gone").json(404, json!({"error": {"message": "nobody"}})))
}

async fn run_plans(upstream: &ScriptedUpstream, plans: &Plans) -> exec::Outcome {
    run_with(upstream, &plans.plan(), &plans.catalog, RunOptions::default()).await
}

fn named(pairs: &[(&str, &str)]) -> Vec<NamedPath> {
    pairs.iter().map(|(name, dotted)| NamedPath { name: (*name).into(), path: path(dotted) }).collect()
}

fn coverage(outcome: &exec::Outcome, index: usize) -> Coverage {
    outcome.returns[index].result.as_ref().unwrap().coverage.clone()
}

#[tokio::test]
async fn attached_rows_are_read_once_and_reachable_by_paths() {
    let upstream = four_tickets();
    let mut plans = Plans::new(&catalog());
    let list = plans.query("Ticket", "ticket_list", args(&[]));
    let entity = plans.entity("Person");
    let with = plans.same_rows(StepKind::Attach { input: list, field: path("owner"), entity });
    let columns = named(&[("number", "number"), ("owner", "owner"), ("owner.name", "owner.name"), ("id", "owner.id")]);
    let shown = plans.same_rows(StepKind::Project { input: with, columns });
    let source = "{% for r in rows %}{{ r.number }}:{{ r.owner.name }}{% endfor %}".to_owned();
    let text = plans.made_rows(&[("content", Type::Json)], StepKind::Template { input: shown, source, names: vec![] });
    let outcome = run_plans(&upstream, &plans).await;
    assert_eq!(
        rows(&outcome, shown),
        json!([
            {"number": 1, "owner": "x", "owner.name": "Xena", "id": "x"},
            {"number": 2, "owner": "gone", "owner.name": null, "id": "gone"},
            {"number": 3, "owner": null, "owner.name": null, "id": null},
            {"number": 4, "owner": "x", "owner.name": "Xena", "id": "x"},
        ])
    );
    assert_eq!(coverage(&outcome, shown), Coverage::Complete, "a dangling reference is known to lead nowhere");
    assert_eq!(upstream.calls().len(), 3, "each reference once");
    assert_eq!(rows(&outcome, text), json!([{"content": "1:Xena2:3:4:Xena"}]));
}

#[tokio::test]
async fn a_vanished_row_is_left_out_and_reported() {
    let upstream = four_tickets()
        .with(Rule::get("/api/projects/OPS/tickets/2").json(404, json!({})))
        .with(Rule::get("/api/projects/OPS/tickets/1").json(200, json!({"project": "OPS", "number": 1, "body": "one"})))
        .with(
            Rule::get("/api/projects/OPS/tickets/3").json(200, json!({"project": "OPS", "number": 3, "body": "three"})),
        )
        .with(Rule::get("/api/projects/OPS/tickets/4").json(200, json!({"project": "OPS", "number": 4, "body": null})));
    let mut plans = Plans::new(&catalog());
    let list = plans.query("Ticket", "ticket_list", args(&[]));
    let call = plans.call("ticket_get");
    let whole = plans.same_rows(StepKind::Hydrate { input: list, call, fields: vec!["body".into()] });
    let shown =
        plans.same_rows(StepKind::Project { input: whole, columns: named(&[("title", "title"), ("body", "body")]) });
    let outcome = run_plans(&upstream, &plans).await;
    let expected =
        json!([{"title": "t1", "body": "one"}, {"title": "t3", "body": "three"}, {"title": "t4", "body": null}]);
    assert_eq!(rows(&outcome, shown), expected, "other fields stay as the list had them");
    assert_eq!(coverage(&outcome, shown), Coverage::partial(PartialReason::Gone));
}

#[tokio::test]
async fn a_dangling_reference_is_an_error_for_one_row_and_partial_for_many() {
    let mut plans = Plans::new(&catalog());
    let list = plans.query("Ticket", "ticket_list", args(&[]));
    let owners = plans.rows_of("Person", StepKind::Deref { input: list, field: "owner".into(), limit: None });
    let second = plans.same_rows(StepKind::Limit { input: list, count: 2 });
    let last = plans.same_rows(StepKind::Last { input: second });
    let owner = plans.rows_of("Person", StepKind::Deref { input: last, field: "owner".into(), limit: None });
    let outcome = run_plans(&four_tickets(), &plans).await;
    assert_eq!(rows(&outcome, owners).as_array().unwrap().len(), 2);
    assert_eq!(coverage(&outcome, owners), Coverage::partial(PartialReason::Gone));
    assert!(error(&outcome, owner).contains("no such Person"), "{}", error(&outcome, owner));
}

#[tokio::test]
async fn a_list_for_each_row_keeps_the_order_of_rows() {
    let upstream = ScriptedUpstream::new();
    for (owner, numbers) in [("a", vec![3, 1]), ("b", vec![]), ("c", vec![2])] {
        let data: Vec<Value> = numbers.iter().map(|n| ticket(*n, json!({"id": owner}))).collect();
        let total = data.len();
        upstream.add(Rule::get("/api/tickets").query("owner", owner).json(200, json!({"data": data, "total": total})));
    }
    let mut plans = Plans::new(&catalog());
    let people = plans.literals(&[json!("a"), json!("b"), json!("c")]);
    let call = plans.call("ticket_list");
    let each = plans.rows_of(
        "Ticket",
        StepKind::QueryPerRow { input: people, call, args: args(&[("owner", row(""))]), limit: None },
    );
    let outcome = run_plans(&upstream, &plans).await;
    let numbers: Vec<u64> =
        rows(&outcome, each).as_array().unwrap().iter().map(|r| r["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [3, 1, 2]);
}

#[tokio::test]
async fn a_list_continues_where_an_earlier_run_stopped_without_losing_rows() {
    let page = |call: &ports::upstream::Call| {
        let param =
            |name: &str| call.request.query.iter().find(|(n, _)| n == name).unwrap().1.parse::<usize>().unwrap();
        let page = param("page");
        let size = param("per_page");
        let start = (page - 1) * size;
        let data: Vec<Value> = (start..(start + size).min(25)).map(|n| ticket(n + 1, Value::Null)).collect();
        let body = json!({"data": data, "total": 25}).to_string().into_bytes();
        Ok(base::Response { status: 200, headers: vec![], body })
    };
    let upstream = ScriptedUpstream::new().with(Rule::get("/api/tickets").answers(page));
    let mut plans = Plans::new(&catalog());
    let call = plans.call("ticket_list");
    let list = StepKind::Query { call, args: args(&[]), limit: None, page_size: Some(4), fields: None };
    let list = plans.rows_of("Ticket", list);
    let only = plans.same_rows(StepKind::Project { input: list, columns: named(&[("number", "number")]) });
    // 10 rows in pages of 4: the cut is in the middle of a page.
    let limits = Limits { rows: 10, ..Limits::default() };
    let outcome = run_with(
        &upstream,
        &plans.plan(),
        &plans.catalog,
        RunOptions { limits: limits.clone(), ..RunOptions::default() },
    )
    .await;
    let mut all_rows = rows(&outcome, only).as_array().unwrap().clone();
    let rest = |outcome: &exec::Outcome, index: usize| outcome.returns[index].result.as_ref().unwrap().rest.clone();
    let mut position = rest(&outcome, only).unwrap();
    let stored = serde_json::to_string(position.as_ref()).unwrap();
    assert_eq!(serde_json::from_str::<exec::Continuation>(&stored).unwrap(), *position, "it survives storage");
    for count in [10, 5] {
        let mut later = Plans::new(&catalog());
        later.made_rows(&[], StepKind::Page { handle: "pg1".into(), limit: None });
        let pages = BTreeMap::from([("pg1".to_owned(), exec::Continuation::clone(&position))]);
        let with = RunOptions { limits: limits.clone(), pages: Some(&pages), ..RunOptions::default() };
        let outcome = run_with(&upstream, &later.plan(), &later.catalog, with).await;
        let more = rows(&outcome, 0).as_array().unwrap().clone();
        assert_eq!(more.len(), count);
        assert_eq!(outcome.returns[0].columns[0], "project", "the columns are those of the rows");
        all_rows.extend(more);
        match rest(&outcome, 0) {
            Some(next) => position = next,
            None => assert_eq!(coverage(&outcome, 0), Coverage::Complete),
        }
    }
    let numbers: Vec<u64> = all_rows.iter().map(|r| r["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=25).collect::<Vec<u64>>());
    let mut wrong = Plans::new(&catalog());
    wrong.made_rows(&[], StepKind::Page { handle: "pg9".into(), limit: None });
    let outcome = run_plans(&upstream, &wrong).await;
    assert_eq!(error(&outcome, 0), "there is no page `pg9` in this session");
}

#[tokio::test]
async fn the_read_of_a_value_counts_against_the_plan() {
    let upstream = ScriptedUpstream::new();
    for (owner, total) in [("a", 2), ("b", 0), ("c", 1)] {
        let data: Vec<Value> = (0..total).map(|n| ticket(n, json!({"id": owner}))).collect();
        upstream.add(Rule::get("/api/tickets").query("owner", owner).json(200, json!({"data": data, "total": total})));
    }
    let mut inner = Plans::new(&catalog());
    let list = inner.query("Ticket", "ticket_list", args(&[("owner", row(""))]));
    let specs = vec![Aggregation { name: "n".into(), function: Function::Count, path: None }];
    let count = inner.made_rows(&[("n", Type::Integer)], StepKind::Aggregate { input: list, specs });
    inner.steps[count].shape = Shape::One;
    let mut plans = Plans::new(&catalog());
    let people = plans.literals(&[json!("a"), json!("b"), json!("c")]);
    let open = Expr::Read { steps: inner.steps, take: RowPart::Path(path("n")) };
    let object = vec![("who".to_owned(), row("")), ("open".to_owned(), open)];
    let derived =
        plans.made_rows(&[("who", Type::Json), ("open", Type::Integer)], StepKind::Derive { input: people, object });
    let outcome = run_plans(&upstream, &plans).await;
    let expected = json!([{"who": "a", "open": 2}, {"who": "b", "open": 0}, {"who": "c", "open": 1}]);
    assert_eq!(rows(&outcome, derived), expected);
    plans.steps[derived].calls = 2;
    let outcome = run_plans(&upstream, &plans).await;
    let set = outcome.returns[derived].result.as_ref().unwrap();
    assert_eq!(set.coverage, Coverage::partial(PartialReason::Bound));
    assert_eq!(upstream.calls().len(), 5, "three calls, and then the two that the plan allows");
}

#[tokio::test]
async fn a_missing_value_of_an_earlier_result_is_named() {
    let upstream = four_tickets();
    let mut plans = Plans::new(&catalog());
    let list = plans.query("Ticket", "ticket_list", args(&[]));
    plans.label(list, "open");
    let first = plans.same_rows(StepKind::First { input: list });
    let owner = plans.get("Person", "person_get", args(&[("id", of_step(first, "owner"))]));
    let several = plans.get("Person", "person_get", args(&[("id", of_step(list, "owner"))]));
    let none = plans.same_rows(StepKind::Limit { input: list, count: 0 });
    let of_none = plans.get("Person", "person_get", args(&[("id", of_step(none, "owner"))]));
    let all = Expr::Step { step: list, take: RowPart::Path(path("owner")), many: true };
    let object = vec![("all".to_owned(), all), ("key".to_owned(), Expr::Row(RowPart::Key(plans.entity("Ticket"))))];
    let derived =
        plans.made_rows(&[("all", Type::Json), ("key", Type::Json)], StepKind::Derive { input: first, object });
    let outcome = run_plans(&upstream, &plans).await;
    assert_eq!(rows(&outcome, owner)[0]["name"], json!("Xena"));
    assert_eq!(error(&outcome, several), "`open` has more than one row where there must be one");
    assert!(error(&outcome, of_none).starts_with("`owner` has no value in step 05, which has no rows"));
    let expected = json!([{"all": ["x", "gone", "x"], "key": {"project": "OPS", "number": 1}}]);
    assert_eq!(rows(&outcome, derived), expected);
}

#[tokio::test]
async fn no_step_makes_more_calls_than_planned() {
    let mut plans = Plans::new(&catalog());
    let list = plans.query("Ticket", "ticket_list", args(&[]));
    let entity = plans.entity("Person");
    let with = plans.same_rows(StepKind::Attach { input: list, field: path("owner"), entity });
    plans.steps[with].calls = 1;
    let upstream = four_tickets();
    let outcome = run_plans(&upstream, &plans).await;
    assert_eq!(coverage(&outcome, with), Coverage::partial(PartialReason::Bound));
    assert_eq!(upstream.calls().len(), 2);
    plans.steps[list].calls = 0;
    let upstream = four_tickets();
    let outcome = run_plans(&upstream, &plans).await;
    assert_eq!(rows(&outcome, list), json!([]));
    assert_ne!(coverage(&outcome, list), Coverage::Complete);
    assert!(upstream.calls().is_empty());
    let mut plan = Plans::new(&catalog());
    plan.query("Ticket", "ticket_list", args(&[]));
    let mut plan = plan.plan();
    plan.bounds.calls.values_mut().for_each(|calls| *calls = 0);
    let outcome = run_with(&upstream, &plan, &catalog(), RunOptions::default()).await;
    assert_eq!(coverage(&outcome, 0), Coverage::partial(PartialReason::Bound));
    assert!(upstream.calls().is_empty(), "the plan's bound holds too");
}

const SHOP: &str = r#"
catalog: shop
version: 1
title: Shop
origin: https://shop.test
graphql: /graphql
entities:
  Item:
    about: a part of an order
    key: [sku]
    fields: {sku: string, count: integer}
  Order:
    about: an order
    key: [id]
    fields: {id: string, note: string, total: integer}
    relations:
      items: {many: Item, in: items}
capabilities:
  order_get:
    get: Order
    graphql: "query($id: ID!) { order(id: $id) { ...Order } }"
    row: data.order
  order_create:
    create: Order
    params: {note: {type: string, required: true}}
    graphql: "mutation($note: String!) { createOrder(note: $note) { ...Order } }"
    row: data.createOrder
"#;

fn shop() -> Arc<Catalog> {
    Arc::new(catalog::read("shop.yaml", SHOP).unwrap_or_else(|rejected| panic!("{rejected}")))
}

#[tokio::test]
async fn graphql_requests_only_needed_fields() {
    let order = json!({"id": "o1", "note": "n", "items": [{"sku": "a", "count": 2}, {"sku": "b", "count": 1}]});
    let upstream = ScriptedUpstream::new().with(Rule::post("/graphql").json(200, json!({"data": {"order": order}})));
    let mut plans = Plans::new(&shop());
    let call = plans.call("order_get");
    let given = args(&[("id", value(json!("o1")))]);
    let order = plans.rows_of("Order", StepKind::Get { call, args: given, fields: Some(vec!["note".into()]) });
    let follow = StepKind::Follow {
        input: order,
        relation: "items".into(),
        args: args(&[]),
        limit: Some(1),
        page_size: None,
        fields: None,
    };
    let items = plans.rows_of("Item", follow);
    let outcome = run_plans(&upstream, &plans).await;
    assert_eq!(rows(&outcome, items), json!([{"sku": "a", "count": 2}]));
    assert_eq!(upstream.calls().len(), 1, "an embedded relation costs no call");
    let query = body_text(upstream.calls()[0].request.body.as_ref().unwrap());
    assert!(query.contains("note") && query.contains("sku") && !query.contains("total"), "{query}");
}

#[tokio::test]
async fn graphql_error_codes_are_classified() {
    for (answer, problem, state) in [
        (json!({"errors": [{"message": "no such order", "extensions": {"code": "NOT_FOUND"}}]}), "not found", "failed"),
        (
            json!({"data": null, "errors": [{"message": "x", "extensions": {"code": "FORBIDDEN"}}]}),
            "credentials",
            "failed",
        ),
        (
            json!({"errors": [{"message": "x", "extensions": {"code": "BAD_USER_INPUT"}}]}),
            "refused the request",
            "failed",
        ),
        (json!({"errors": [{"message": "x", "extensions": {"code": "OUT_OF_STOCK"}}]}), "conflict", "failed"),
        (json!({"errors": [{"message": "x", "extensions": {"code": "THROTTLED"}}]}), "too many requests", "failed"),
        (
            json!({"errors": [{"message": "x", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}),
            "the API failed",
            "unknown",
        ),
        (
            json!({"data": {"createOrder": {"id": "1"}}, "errors": [{"message": "x", "extensions": {"code": "FORBIDDEN"}}]}),
            "credentials",
            "unknown",
        ),
    ] {
        let upstream = ScriptedUpstream::new().with(Rule::post("/graphql").json(200, answer.clone()));
        let mut plans = Plans::new(&shop());
        plans.effect("Order", "order_create", args(&[("note", value(json!("n")))]), None);
        let receipts = testkit::memory::MemoryReceipts::new();
        let outcome = support::run_plans(&upstream, &plans, &receipts).await;
        assert!(error(&outcome, 0).contains(problem), "{answer}: {}", error(&outcome, 0));
        assert!(outcome.receipts[0].state.to_string().starts_with(state), "{answer}: {:?}", outcome.receipts[0].state);
    }
}

#[tokio::test]
async fn graphql_null_for_a_get_is_not_found() {
    let upstream = ScriptedUpstream::new().with(Rule::post("/graphql").json(200, json!({"data": {"order": null}})));
    let mut plans = Plans::new(&shop());
    plans.get("Order", "order_get", args(&[("id", value(json!("o9")))]));
    let outcome = run_plans(&upstream, &plans).await;
    assert!(outcome.returns[0].result.as_ref().unwrap_err().is_not_found(), "{}", error(&outcome, 0));
}
