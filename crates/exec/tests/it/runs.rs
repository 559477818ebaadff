//! Runs on a scripted upstream: concurrency, the cost of pages, and malformed answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Limits, TenantId};
use catalog::Catalog;
use exec::{Coverage, Ctx, Outcome, PartialReason, run};
use lang::plan::Plan;
use lang::scope::{ExposedEntity, Scope};
use serde_json::{Value, json};
use testkit::upstream::{Rule, ScriptedUpstream};
use tokio::sync::{Notify, Semaphore};

fn catalog() -> Arc<Catalog> {
    Arc::new(catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap())
}

fn plan(program: &str, limits: &Limits) -> Plan {
    let catalog = catalog();
    let exposed = |(at, (name, entity)): (usize, (&String, &catalog::Entity))| ExposedEntity {
        symbol: format!("e{}", at + 1),
        catalog: catalog.clone(),
        entity: name.clone(),
        relations: entity.relations.keys().enumerate().map(|(n, r)| (format!("r{at}{n}"), r.clone())).collect(),
        methods: catalog.methods(name).enumerate().map(|(n, c)| (format!("m{at}{n}"), c.name.clone())).collect(),
    };
    let scope = Scope { entities: catalog.entities.iter().enumerate().map(exposed).collect(), ..Scope::default() };
    let parsed = lang::syntax::parse(program, limits);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let (checked, _) = lang::check::check(&scope, &parsed.program).unwrap();
    lang::plan::plan(&checked, limits)
}

async fn go(upstream: &ScriptedUpstream, program: &str, limits: &Limits) -> Outcome {
    let catalogs = BTreeMap::from([(catalog().id.clone(), catalog())]);
    let (tenant, calls) = (TenantId::local(), Semaphore::new(limits.calls_per_session));
    let ctx = Ctx::new(upstream, &tenant, &catalogs, limits, &calls);
    run(&ctx, &plan(program, limits)).await
}

fn project(key: &str) -> Value {
    json!({"key": key, "name": key})
}

fn people(from: usize, count: usize, total: Option<usize>) -> Value {
    let rows: Vec<Value> = (from..from + count).map(|n| json!({"id": format!("p{n}"), "name": "x"})).collect();
    match total {
        Some(total) => json!({"data": rows, "total": total}),
        None => json!({"data": rows}),
    }
}

#[tokio::test]
async fn independent_reads_run_concurrently() {
    let gate = Arc::new(Notify::new());
    let upstream = ScriptedUpstream::new();
    for key in ["A", "B", "C"] {
        upstream.add(Rule::get(&format!("/api/projects/{key}")).json(200, project(key)).waits_for(&gate));
    }
    let limits = Limits::default();
    let running = go(&upstream, "Project(\"A\")[key], Project(\"B\")[key], Project(\"C\")[key]", &limits);
    let release = async {
        upstream.arrived(3).await;
        gate.notify_waiters();
    };
    let (outcome, ()) = tokio::join!(running, release);
    assert!(!outcome.failed());
    assert_eq!(upstream.max_in_flight(), 3);
}

#[tokio::test]
async fn a_session_has_a_limit_of_concurrent_calls() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people(0, 30, Some(30))));
    for n in 0..30 {
        upstream
            .add(Rule::get("/api/tickets").query("owner", &format!("p{n}")).json(200, json!({"data": [], "total": 0})));
    }
    let limits = Limits { calls_per_session: 3, calls_per_origin: 8, ..Limits::default() };
    let outcome = go(&upstream, "Person.limit(30).tickets", &limits).await;
    assert!(!outcome.failed(), "{outcome:?}");
    assert!(upstream.max_in_flight() <= 3, "{}", upstream.max_in_flight());
    assert_eq!(upstream.calls().len(), 31);
}

#[tokio::test]
async fn a_limit_reads_no_unneeded_page() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").query("page", "1").query("per_page", "7").json(200, people(0, 7, Some(500))));
    let outcome = go(&upstream, "Person.limit(7)", &Limits::default()).await;
    let rows = outcome.returns[0].result.as_ref().unwrap();
    assert_eq!((rows.rows.len(), &rows.coverage), (7, &Coverage::Complete));
    assert_eq!(upstream.calls().len(), 1);
}

#[tokio::test]
async fn an_api_that_never_ends_is_stopped_by_a_budget() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people(0, 100, None)));
    let limits = Limits { rows: 100_000, pages: 5, ..Limits::default() };
    let outcome = go(&upstream, "Person", &limits).await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().coverage, Coverage::partial(PartialReason::PageBudget));
    assert_eq!(upstream.calls().len(), 5);
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people(0, 100, None)));
    let outcome = go(&upstream, "Person", &Limits { rows: 250, ..Limits::default() }).await;
    let rows = outcome.returns[0].result.as_ref().unwrap();
    assert_eq!((rows.rows.len(), &rows.coverage), (250, &Coverage::partial(PartialReason::RowBudget)));
}

#[tokio::test]
async fn an_api_that_contradicts_itself_is_unknown() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").query("page", "1").json(200, people(0, 100, Some(500))));
    upstream.add(Rule::get("/api/people").query("page", "2").json(200, people(0, 0, Some(500))));
    let outcome = go(&upstream, "Person", &Limits::default()).await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().coverage, Coverage::Unknown);
}

#[tokio::test]
async fn a_failure_stops_only_dependent_steps() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/projects/A").json(500, json!({"message": "boom"})));
    upstream.add(Rule::get("/api/projects/B").json(200, project("B")));
    let outcome =
        go(&upstream, "a = Project(\"A\")\na.tickets[number], a[name], Project(\"B\")[name]", &Limits::default()).await;
    let words: Vec<String> =
        outcome.returns.iter().map(|r| r.result.as_ref().err().map_or("ok".into(), |e| e.to_string())).collect();
    assert!(words[0].contains("`a` failed") && words[0].contains("boom") && words[1].contains("boom"), "{words:?}");
    assert_eq!(words[2], "ok");
    assert_eq!(upstream.calls().len(), 2, "nothing was asked for on behalf of a failure");
}

#[tokio::test]
async fn each_reference_is_read_once_and_rows_keep_their_order() {
    let ticket = |n: u32, owner: Value| json!({"project": "A", "number": n, "owner": owner, "labels": []});
    let rows = json!([
        ticket(1, json!({"id": "x"})),
        ticket(2, json!({"id": "y"})),
        ticket(3, Value::Null),
        ticket(4, json!({"id": "x"})),
    ]);
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/tickets").json(200, json!({"data": rows, "total": 4})));
    upstream.add(Rule::get("/api/people/x").json(200, json!({"id": "x"})));
    upstream.add(Rule::get("/api/people/y").json(200, json!({"id": "y"})));
    let outcome = go(&upstream, "Ticket.limit(4).owner[id]", &Limits::default()).await;
    let found: Vec<&Value> = outcome.returns[0].result.as_ref().unwrap().rows.iter().map(|r| &r["id"]).collect();
    assert_eq!(found, [&json!("x"), &json!("y"), &json!("x")]);
    assert_eq!(upstream.calls().len(), 3);
}

#[tokio::test]
async fn a_malformed_answer_is_an_error_with_its_position() {
    for (body, says) in [
        (b"not json".to_vec(), "not JSON"),
        (b"{\"key\": 7}".to_vec(), "Project.key: expected string, found 7"),
        (b"{}".to_vec(), "has no `key`"),
        (b"[]".to_vec(), "no rows"),
        ("[".repeat(10_000).into_bytes(), "deeper than"),
    ] {
        let upstream = ScriptedUpstream::new().with(Rule::get("/api/projects/A").bytes(200, body));
        let outcome = go(&upstream, "Project(\"A\")", &Limits::default()).await;
        let error = outcome.returns[0].result.as_ref().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn an_id_cannot_escape_its_path_segment() {
    let upstream = ScriptedUpstream::new();
    for hostile in ["../../admin", "http://evil.example/", "a?b=c#d", "%2e%2e%2f"] {
        go(&upstream, &format!("Project({hostile:?})"), &Limits::default()).await;
    }
    go(&upstream, "Project(\"..\")", &Limits::default()).await;
    let paths: Vec<String> = upstream.calls().iter().map(|c| c.request.path.clone()).collect();
    assert_eq!(
        paths,
        [
            "/api/projects/..%2F..%2Fadmin",
            "/api/projects/http%3A%2F%2Fevil.example%2F",
            "/api/projects/a%3Fb%3Dc%23d",
            "/api/projects/%252e%252e%252f",
        ]
    );
    assert!(upstream.calls().iter().all(|c| c.request.origin.as_str() == "http://demo.localhost"));
}

/// A row that cannot fill a relation's scope leads nowhere. Without the scope the API would answer with all rows.
#[tokio::test]
async fn a_relation_from_a_null_field_is_empty() {
    let text = include_str!("../../../../catalogs/demo.yaml").replace(
        "comments: {many: Comment, by: comment_list}",
        "siblings: {many: Ticket, by: ticket_list, with: {label: due}}",
    );
    let catalog = Arc::new(catalog::read("demo.yaml", &text).unwrap());
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/projects/A/tickets/1").json(200, json!({"project": "A", "number": 1, "due": null})));
    upstream.add(Rule::get("/api/tickets").json(200, json!({"data": [{"project": "A", "number": 2}], "total": 1})));
    let exposed = |name: &str| ExposedEntity {
        symbol: format!("e_{name}"),
        catalog: catalog.clone(),
        entity: name.to_owned(),
        relations: BTreeMap::from([("r1".to_owned(), "siblings".to_owned())]),
        methods: BTreeMap::new(),
    };
    let scope = Scope { entities: vec![exposed("Ticket")], ..Scope::default() };
    let limits = Limits::default();
    let program = lang::syntax::parse("Ticket(project=\"A\", number=1).siblings", &limits).program;
    let (checked, _) = lang::check::check(&scope, &program).unwrap();
    let catalogs = BTreeMap::from([(catalog.id.clone(), catalog.clone())]);
    let (tenant, calls) = (TenantId::local(), Semaphore::new(4));
    let ctx = Ctx::new(&upstream, &tenant, &catalogs, &limits, &calls);
    let outcome = run(&ctx, &lang::plan::plan(&checked, &limits)).await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().rows.len(), 0);
    assert_eq!(upstream.calls().len(), 1, "only the ticket was asked for");
}

/// The plan's number of calls is an upper bound, even if pages come back shorter than requested.
#[tokio::test]
async fn a_run_makes_no_more_calls_than_planned() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people(0, 1, Some(500))));
    let outcome = go(&upstream, "Person.limit(5)", &Limits::default()).await;
    let rows = outcome.returns[0].result.as_ref().unwrap();
    assert_eq!((upstream.calls().len(), &rows.coverage), (1, &Coverage::partial(PartialReason::PageBudget)));
}
