//! Tests of effects against a server that counts them. Under every fault, each effect happens at most once, and its receipt has
//! the expected outcome.

use std::time::Duration;

use base::Limits;
use exec::{Receipt, ReceiptState, Resolved};
use ports::upstream::Error;
use serde_json::json;
use testkit::memory::MemoryReceipts;
use testkit::upstream::{Rule, ScriptedUpstream};

use crate::support::{Demo, Plans, RunOptions, args, error, rows, run_plans, run_with, value, writes_catalog};

const TICKETS: &str = "/api/projects/OPS/tickets";

/// The expected outcome of one effect under one fault.
struct FaultCase {
    /// The fault in the words of the demo's control interface; empty for none.
    fault: &'static str,
    /// The state of the receipt.
    state: &'static str,
    /// The number of effects that the server counts.
    effects: usize,
    /// The expected way in which the outcome was resolved; `None` if the test does not check it.
    resolved: Option<Resolved>,
    /// Whether the step succeeds.
    ok: bool,
}

fn case(fault: &'static str, state: &'static str, effects: usize) -> FaultCase {
    FaultCase { fault, state, effects, resolved: None, ok: state == "done" }
}

fn state_word(state: &ReceiptState) -> &'static str {
    match state {
        ReceiptState::Open => "open",
        ReceiptState::Done => "done",
        ReceiptState::Failed { .. } => "failed",
        ReceiptState::Unknown { .. } => "unknown",
    }
}

/// Runs the capability once under each fault, and asserts the expected outcome.
async fn check(demo: &Demo, method: &str, capability: &str, cases: Vec<FaultCase>) {
    let catalog = demo.catalog();
    for case in cases {
        demo.set_fault(method, case.fault).await;
        let mut plans = Plans::new(&catalog);
        let is_on_instance = ["ticket_edit", "ticket_change", "ticket_delete"].contains(&capability);
        let mut given = vec![("project", value(json!("OPS")))];
        if is_on_instance {
            given.push(("number", value(json!(1))));
        }
        if capability != "ticket_delete" {
            given.push(("title", value(json!("a title that nobody else has"))));
        }
        plans.effect("Ticket", capability, args(&given), None);
        let receipts = MemoryReceipts::new();
        let outcome = run_plans(&demo.http, &plans, &receipts).await;
        let context = format!("{capability} under `{}`: {:?} {:?}", case.fault, outcome.receipts, outcome.returns);
        assert_eq!(state_word(&outcome.receipts[0].state), case.state, "{context}");
        assert_eq!(outcome.receipts, receipts.all(), "the stored receipts are those of the outcome: {context}");
        assert_eq!(demo.effects().await.len(), case.effects, "{context}");
        assert_eq!(outcome.returns[0].result.is_ok(), case.ok, "{context}");
        if case.resolved.is_some() {
            assert_eq!(outcome.receipts[0].resolved, case.resolved, "{context}");
        }
    }
}

#[tokio::test]
async fn a_write_without_a_key_is_sent_once_and_a_lost_answer_is_unknown() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let mut cases = vec![
        case("", "done", 1),
        case("status=422", "failed", 0),
        case("status=409", "failed", 0),
        case("status=401", "failed", 0),
        case("retry-after=1", "failed", 0),
        case("status=501", "failed", 0),
        case("status=500", "unknown", 0),
        case("status=503", "unknown", 0),
        case("status=503;when=after", "unknown", 1),
        case("status=504;when=after", "unknown", 1),
        case("close;when=before", "unknown", 0),
        case("close", "unknown", 1),
        case("truncate", "unknown", 1),
        case("redirect=http://127.0.0.1:1/x", "unknown", 0),
    ];
    // The status is a success, even if the rest of the answer is broken.
    cases.push(FaultCase { ok: false, ..case("not-json", "done", 1) });
    check(&demo, "POST", "ticket_plain", cases).await;
}

#[tokio::test]
async fn a_write_with_a_key_is_retried_and_happens_once() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let repeated = |fault| FaultCase { resolved: Some(Resolved::Repeated), ..case(fault, "done", 1) };
    let cases = vec![
        case("", "done", 1),
        case("status=503;times=1", "done", 1),
        case("status=503;when=after;times=1", "done", 1),
        case("status=502;when=after;times=2", "done", 1),
        case("close;times=1", "done", 1),
        case("close;when=before;times=1", "done", 1),
        case("truncate;times=1", "done", 1),
        repeated("status=500;when=after;times=1"),
        case("status=503;when=after", "unknown", 1),
        case("close", "unknown", 1),
        case("status=503", "unknown", 0),
        case("status=422", "failed", 0),
    ];
    check(&demo, "POST", "ticket_keyed", cases).await;
}

#[tokio::test]
async fn a_probe_resolves_a_lost_answer() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let resolved_by = |name: &str| Some(Resolved::Probe { capability: name.to_owned() });
    let probed =
        |fault, state, effects| FaultCase { resolved: resolved_by("ticket_list"), ..case(fault, state, effects) };
    let cases = vec![
        probed("close", "done", 1),
        case("close;when=before", "unknown", 0),
        probed("status=503;when=after", "done", 1),
        case("status=500", "unknown", 0),
        probed("truncate", "done", 1),
        case("status=422", "failed", 0),
    ];
    check(&demo, "POST", "ticket_probed", cases).await;
    let probed =
        |fault, state, effects| FaultCase { resolved: resolved_by("ticket_get"), ..case(fault, state, effects) };
    let cases = || vec![probed("status=503;when=after", "done", 1), case("close;when=before", "unknown", 0)];
    check(&demo, "DELETE", "ticket_delete", cases()).await;
    check(&demo, "PATCH", "ticket_change", cases()).await;
}

/// The request of a departure whose answer was lost may still arrive, so no refusal of a later departure proves that nothing happens.
#[tokio::test]
async fn a_refused_repetition_of_a_lost_request_does_not_prove_that_nothing_happened() {
    let lost = |label| Error::Lost { label, cause: "reset".into() };
    let given = [("project", value(json!("OPS"))), ("title", value(json!("x")))];
    let refusal = |status| Rule::post(TICKETS).json(status, json!({"error": {"message": "in progress"}}));
    for status in [409, 422, 401] {
        let upstream = ScriptedUpstream::new().with(Rule::post(TICKETS).fails(lost).once()).with(refusal(status));
        let mut plans = Plans::new(&writes_catalog("http://x.example"));
        plans.effect("Ticket", "ticket_keyed", args(&given), None);
        let outcome = run_plans(&upstream, &plans, &MemoryReceipts::new()).await;
        assert_eq!(state_word(&outcome.receipts[0].state), "unknown", "{status}: {:?}", outcome.receipts);
        assert!(error(&outcome, 0).contains("nobody knows"), "{}", error(&outcome, 0));
        // The same after a crash, whose request may still arrive.
        let upstream = ScriptedUpstream::new().with(refusal(status));
        let crashed = MemoryReceipts::new().with(Receipt::open(outcome.receipts[0].intent.clone()));
        let outcome = run_plans(&upstream, &plans, &crashed).await;
        assert_eq!(state_word(&outcome.receipts[0].state), "unknown", "{status}: {:?}", outcome.receipts);
    }
}

#[tokio::test]
async fn an_outcome_that_a_probe_can_find_settles_later_and_any_other_does_not() {
    let lost = |label| Error::Lost { label, cause: "reset".into() };
    let listed = json!({"data": [], "total": 0});
    let given = [("project", value(json!("OPS"))), ("title", value(json!("x")))];
    for (capability, settles) in [("ticket_probed", Some(5_000)), ("ticket_plain", None)] {
        let upstream = ScriptedUpstream::new()
            .with(Rule::post(TICKETS).fails(lost))
            .with(Rule::get("/api/tickets").json(200, listed.clone()));
        let catalog = writes_catalog("http://x.example");
        let mut plans = Plans::new(&catalog);
        plans.effect("Ticket", capability, args(&given), None);
        let receipts = MemoryReceipts::new();
        let limits = Limits { request_timeout_ms: 2_500, ..Limits::default() };
        let with = RunOptions { receipts: Some(&receipts), limits, ..RunOptions::default() };
        let outcome = run_with(&upstream, &plans.plan(), &catalog, with).await;
        let receipt = &outcome.receipts[0];
        assert_eq!((state_word(&receipt.state), receipt.settles), ("unknown", settles.is_some()), "{receipt:?}");
        let settlement = receipt.intent.settlement.as_ref();
        assert_eq!(settlement.map(|s| s.settles_ms), settles, "twice the time limit of a request");
        assert_eq!(settlement.map(|s| s.args["title"].clone()), settles.map(|_| json!("x")));
        let stored = serde_json::to_string(receipt).unwrap();
        assert!(!stored.contains("\"x\""), "a result has no arguments: {stored}");
    }
}

/// The declared time counts, in seconds.
#[test]
fn a_catalog_says_when_a_write_has_settled() {
    let text = include_str!("support/writes.yaml").replace("ORIGIN", "http://x.example");
    let probe = "probe: {query: ticket_list, match: [title]}";
    let declared = text.replace(probe, &format!("{probe}\n    settles: 2"));
    let catalog = catalog::read("writes.yaml", &declared).unwrap();
    let capability = catalog.capability("ticket_probed").unwrap();
    assert_eq!(capability.effect.as_ref().unwrap().settles, Some(2));
    assert!(catalog.canonical().contains("\"settles\":2"));
    let undeclared = catalog::read("writes.yaml", &text).unwrap();
    assert!(!undeclared.canonical().contains("settles"), "a file without it keeps its digest");
}

#[tokio::test]
async fn a_failing_probe_leaves_the_effect_unknown() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    check(&demo, "*", "ticket_probed", vec![case("close", "unknown", 1)]).await;
}

#[tokio::test]
async fn an_idempotent_write_is_retried() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    demo.set_fault("PATCH", "close;times=1").await;
    let mut plans = Plans::new(&demo.catalog());
    let given = [("project", value(json!("OPS"))), ("number", value(json!(1))), ("title", value(json!("set")))];
    plans.effect("Ticket", "ticket_edit", args(&given), None);
    let outcome = run_plans(&demo.http, &plans, &MemoryReceipts::new()).await;
    assert_eq!(rows(&outcome, 0)[0]["title"], json!("set"), "{}", error(&outcome, 0));
    assert_eq!(state_word(&outcome.receipts[0].state), "done");
}

#[tokio::test]
async fn a_late_answer_is_unknown_without_a_key_and_resolved_with_one() {
    let demo = Demo::start(Duration::from_millis(400)).await;
    for (capability, fault, state) in
        [("ticket_plain", "slow=1500", "unknown"), ("ticket_keyed", "slow=1500;times=1", "done")]
    {
        demo.set_fault("POST", fault).await;
        let mut plans = Plans::new(&demo.catalog());
        let given = [("project", value(json!("OPS"))), ("title", value(json!("late")))];
        plans.effect("Ticket", capability, args(&given), None);
        let outcome = run_plans(&demo.http, &plans, &MemoryReceipts::new()).await;
        assert_eq!(state_word(&outcome.receipts[0].state), state, "{:?}", outcome.receipts);
        tokio::time::sleep(Duration::from_millis(1_600)).await;
        let effects = demo.effects().await.len();
        assert!(effects <= 1 && (state != "done" || effects == 1), "{capability}: {effects}");
    }
}

#[tokio::test]
async fn an_effect_that_could_not_connect_has_failed() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let mut plans = Plans::new(&writes_catalog("http://127.0.0.1:9"));
    let given = [("project", value(json!("OPS"))), ("title", value(json!("x")))];
    plans.effect("Ticket", "ticket_plain", args(&given), None);
    let outcome = run_plans(&demo.http, &plans, &MemoryReceipts::new()).await;
    assert_eq!(state_word(&outcome.receipts[0].state), "failed");
    assert!(error(&outcome, 0).contains("could not connect"));
}
