//! Tests of runs on a scripted upstream: concurrency, the number of calls, and malformed answers.

use std::sync::Arc;

use base::Limits;
use catalog::Catalog;
use exec::{Coverage, Outcome, PartialReason};
use serde_json::{Value, json};
use testkit::upstream::{Rule, ScriptedUpstream};
use tokio::sync::Notify;

use crate::support::{RunOptions, plan_program, run_with};

fn catalog() -> Arc<Catalog> {
    Arc::new(catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap())
}

async fn run_program(upstream: &ScriptedUpstream, program: &str, limits: &Limits) -> Outcome {
    let catalog = catalog();
    let with = RunOptions { limits: limits.clone(), ..RunOptions::default() };
    run_with(upstream, &plan_program(&catalog, program, limits), &catalog, with).await
}

fn project(key: &str) -> Value {
    json!({"key": key, "name": key})
}

fn people_page(from: usize, count: usize, total: Option<usize>) -> Value {
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
    let running = run_program(&upstream, "Project(\"A\")[key], Project(\"B\")[key], Project(\"C\")[key]", &limits);
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
    upstream.add(Rule::get("/api/people").json(200, people_page(0, 30, Some(30))));
    for n in 0..30 {
        upstream
            .add(Rule::get("/api/tickets").query("owner", &format!("p{n}")).json(200, json!({"data": [], "total": 0})));
    }
    let limits = Limits { calls_per_session: 3, calls_per_origin: 8, ..Limits::default() };
    let outcome = run_program(&upstream, "Person.limit(30).tickets", &limits).await;
    assert!(!outcome.failed(), "{outcome:?}");
    assert!(upstream.max_in_flight() <= 3, "{}", upstream.max_in_flight());
    assert_eq!(upstream.calls().len(), 31);
}

#[tokio::test]
async fn a_limit_reads_no_unneeded_page() {
    let upstream = ScriptedUpstream::new();
    upstream.add(
        Rule::get("/api/people").query("page", "1").query("per_page", "7").json(200, people_page(0, 7, Some(500))),
    );
    let outcome = run_program(&upstream, "Person.limit(7)", &Limits::default()).await;
    let rows = outcome.returns[0].result.as_ref().unwrap();
    assert_eq!((rows.rows.len(), &rows.coverage), (7, &Coverage::Complete));
    assert_eq!(upstream.calls().len(), 1);
}

#[tokio::test]
async fn an_api_that_never_ends_is_stopped_by_a_budget() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people_page(0, 100, None)));
    let limits = Limits { rows: 100_000, pages: 5, ..Limits::default() };
    let outcome = run_program(&upstream, "Person", &limits).await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().coverage, Coverage::partial(PartialReason::PageBudget));
    assert_eq!(upstream.calls().len(), 5);
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people_page(0, 100, None)));
    let outcome = run_program(&upstream, "Person", &Limits { rows: 250, ..Limits::default() }).await;
    let rows = outcome.returns[0].result.as_ref().unwrap();
    assert_eq!((rows.rows.len(), &rows.coverage), (250, &Coverage::partial(PartialReason::RowBudget)));
}

#[tokio::test]
async fn an_api_that_contradicts_itself_is_unknown() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").query("page", "1").json(200, people_page(0, 100, Some(500))));
    upstream.add(Rule::get("/api/people").query("page", "2").json(200, people_page(0, 0, Some(500))));
    let outcome = run_program(&upstream, "Person", &Limits::default()).await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().coverage, Coverage::Unknown);
}

#[tokio::test]
async fn a_failure_stops_only_dependent_steps() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/projects/A").json(500, json!({"message": "boom"})));
    upstream.add(Rule::get("/api/projects/B").json(200, project("B")));
    let outcome = run_program(
        &upstream,
        "a = Project(\"A\")\na.tickets[number], a[name], Project(\"B\")[name]",
        &Limits::default(),
    )
    .await;
    let words: Vec<String> =
        outcome.returns.iter().map(|r| r.result.as_ref().err().map_or("ok".into(), |e| e.to_string())).collect();
    assert!(words[0].contains("`a` failed") && words[0].contains("boom") && words[1].contains("boom"), "{words:?}");
    assert_eq!(words[2], "ok");
    assert_eq!(upstream.calls().len(), 2, "a step whose input failed makes no call");
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
    let outcome = run_program(&upstream, "Ticket.limit(4).owner[id]", &Limits::default()).await;
    let ids: Vec<&Value> = outcome.returns[0].result.as_ref().unwrap().rows.iter().map(|r| &r["id"]).collect();
    assert_eq!(ids, [&json!("x"), &json!("y"), &json!("x")]);
    assert_eq!(upstream.calls().len(), 3);
}

#[tokio::test]
async fn a_malformed_answer_is_an_error_with_its_position() {
    for (body, message) in [
        (b"not json".to_vec(), "not JSON"),
        (b"{\"key\": 7}".to_vec(), "Project.key: expected string, found 7"),
        (b"{}".to_vec(), "has no `key`"),
        (b"[]".to_vec(), "no rows"),
        ("[".repeat(10_000).into_bytes(), "deeper than"),
    ] {
        let upstream = ScriptedUpstream::new().with(Rule::get("/api/projects/A").bytes(200, body));
        let outcome = run_program(&upstream, "Project(\"A\")", &Limits::default()).await;
        let error = outcome.returns[0].result.as_ref().unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[tokio::test]
async fn an_id_cannot_escape_its_path_segment() {
    let upstream = ScriptedUpstream::new();
    for hostile in ["../../admin", "http://evil.example/", "a?b=c#d", "%2e%2e%2f"] {
        run_program(&upstream, &format!("Project({hostile:?})"), &Limits::default()).await;
    }
    run_program(&upstream, "Project(\"..\")", &Limits::default()).await;
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

/// A call without the field's value would return the rows of all parents, so no call may be made.
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
    let limits = Limits::default();
    let plan = plan_program(&catalog, "Ticket(project=\"A\", number=1).siblings", &limits);
    let outcome = run_with(&upstream, &plan, &catalog, RunOptions::default()).await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().rows.len(), 0);
    assert_eq!(upstream.calls().len(), 1, "only the ticket was requested");
}

/// The plan's number of calls is an upper bound, even if pages come back shorter than requested.
#[tokio::test]
async fn a_run_makes_no_more_calls_than_planned() {
    let upstream = ScriptedUpstream::new();
    upstream.add(Rule::get("/api/people").json(200, people_page(0, 1, Some(500))));
    let outcome = run_program(&upstream, "Person.limit(5)", &Limits::default()).await;
    let rows = outcome.returns[0].result.as_ref().unwrap();
    assert_eq!((upstream.calls().len(), &rows.coverage), (1, &Coverage::partial(PartialReason::PageBudget)));
}
