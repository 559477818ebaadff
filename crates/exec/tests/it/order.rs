//! Tests of the order of effects: failures that stop later effects, concurrent effects, and retried runs.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use base::{Limits, Method};
use exec::{CancellationToken, EffectIntent, ProgressSink, Receipt, ReceiptState, Receipts, Resolved, StepProgress};
use lang::plan::{Expr, StepKind};
use ports::receipts::{EffectId, Opened};
use ports::upstream::Error;
use serde_json::{Value, json};
use testkit::memory::MemoryReceipts;
use testkit::upstream::{Rule, ScriptedUpstream};

use crate::support::{self, Demo, Plans, RunOptions, args, error, of_step, row, rows, run_plans, run_with, value};

fn catalog() -> std::sync::Arc<catalog::Catalog> {
    support::writes_catalog("http://demo.localhost")
}

const TICKETS: &str = "/api/projects/OPS/tickets";

fn ticket(number: u32, title: &str) -> Value {
    json!({"project": "OPS", "number": number, "title": title, "labels": []})
}

fn create(title: Expr) -> lang::plan::Args {
    args(&[("project", value(json!("OPS"))), ("title", title)])
}

fn states(receipts: &[Receipt]) -> Vec<(usize, usize, &'static str)> {
    let state_word = |state: &ReceiptState| match state {
        ReceiptState::Open => "open",
        ReceiptState::Done => "done",
        ReceiptState::Failed { .. } => "failed",
        ReceiptState::Unknown { .. } => "unknown",
    };
    receipts.iter().map(|r| (r.intent.id.step, r.intent.id.row, state_word(&r.state))).collect()
}

#[tokio::test]
async fn effects_run_in_row_order_and_the_first_failure_stops_later_ones() {
    let upstream = ScriptedUpstream::new()
        .with(Rule::post(TICKETS).body_contains("\"a\"").json(201, ticket(1, "a")))
        .with(Rule::post(TICKETS).body_contains("\"b\"").json(422, json!({"error": {"message": "no b"}})))
        .with(Rule::get("/api/projects/OPS/tickets/9").json(200, ticket(9, "read")));
    let mut plans = Plans::new(&catalog());
    let names = plans.literals(&[json!("a"), json!("b"), json!("c")]);
    let created = plans.effect("Ticket", "ticket_plain", create(row("")), Some(names));
    plans.label(created, "created");
    let later = plans.effect("Ticket", "ticket_plain", create(value(json!("later"))), None);
    let number = args(&[("project", value(json!("OPS"))), ("number", value(json!(9)))]);
    let read = plans.get("Ticket", "ticket_get", number);
    let receipts = MemoryReceipts::new();
    let outcome = run_plans(&upstream, &plans, &receipts).await;
    assert!(
        error(&outcome, created).contains("row 2 of 3") && error(&outcome, created).contains("no b"),
        "{outcome:?}"
    );
    assert!(error(&outcome, created).contains("1 done before it"), "{}", error(&outcome, created));
    assert!(error(&outcome, later).contains("not run, because `created`"), "{}", error(&outcome, later));
    assert_eq!(rows(&outcome, read)[0]["title"], json!("read"), "reads go on");
    assert_eq!(states(&outcome.receipts), [(1, 0, "done"), (1, 1, "failed")]);
    assert_eq!(outcome.receipts[0].rows[0]["number"], json!(1), "the effect that succeeded has its row");
    assert_eq!(upstream.calls().len(), 3);
    let events: Vec<&str> = receipts.events().iter().map(|(event, _)| *event).collect();
    assert_eq!(events, ["open", "close", "open", "close"], "each receipt is closed before the next is opened");
}

#[tokio::test]
async fn an_unknown_effect_stops_later_ones_too() {
    let upstream = ScriptedUpstream::new()
        .with(Rule::post(TICKETS).fails(|label| Error::Lost { label, cause: "reset".into() }).once())
        .with(Rule::post(TICKETS).json(201, ticket(1, "x")));
    let mut plans = Plans::new(&catalog());
    plans.effect("Ticket", "ticket_plain", create(value(json!("first"))), None);
    plans.effect("Ticket", "ticket_plain", create(value(json!("second"))), None);
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::new()).await;
    assert_eq!(states(&outcome.receipts), [(0, 0, "unknown")]);
    assert!(error(&outcome, 0).contains("nobody knows"), "{}", error(&outcome, 0));
    assert_eq!(upstream.calls().len(), 1);
}

#[tokio::test]
async fn all_values_are_known_before_the_first_effect_leaves() {
    let upstream = ScriptedUpstream::new().with(Rule::post(TICKETS).json(201, ticket(1, "x")));
    let mut plans = Plans::new(&catalog());
    let names = plans.literals(&[json!({"t": "a"}), json!({"t": null})]);
    let created = plans.effect("Ticket", "ticket_plain", create(row("value.t")), Some(names));
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::new()).await;
    assert_eq!(error(&outcome, created), "`title` has no value in `_.value.t`");
    assert!(upstream.calls().is_empty() && outcome.receipts.is_empty());
}

#[tokio::test]
async fn a_later_step_can_use_the_answer_of_an_effect() {
    let upstream = ScriptedUpstream::new()
        .with(Rule::post(TICKETS).json(201, ticket(41, "new")))
        .with(Rule::new(Method::Patch, "/api/projects/OPS/tickets/41").json(200, ticket(41, "newer")));
    let mut plans = Plans::new(&catalog());
    let created = plans.effect("Ticket", "ticket_keyed", create(value(json!("new"))), None);
    let given = args(&[
        ("project", of_step(created, "project")),
        ("number", of_step(created, "number")),
        ("title", of_step(created, "title")),
    ]);
    let edited = plans.effect("Ticket", "ticket_edit", given, None);
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::new()).await;
    assert_eq!(rows(&outcome, edited)[0]["title"], json!("newer"), "{}", error(&outcome, edited));
    let keyed = &upstream.calls()[0];
    assert!(keyed.repeatable, "the API recognises a repetition");
    let key = keyed.request.headers.iter().find(|(name, _)| name == "Idempotency-Key").unwrap();
    assert_eq!(key.1, format!("{}-0-0", support::run_id()));
}

#[tokio::test]
async fn no_effect_leaves_without_a_stored_receipt() {
    let upstream = ScriptedUpstream::new().with(Rule::post(TICKETS).json(201, ticket(1, "x")));
    let mut plans = Plans::new(&catalog());
    plans.effect("Ticket", "ticket_plain", create(value(json!("x"))), None);
    let outcome = run_with(&upstream, &plans.plan(), &plans.catalog, RunOptions::default()).await;
    assert!(error(&outcome, 0).contains("keeps no receipts"));
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::failing_after(0)).await;
    assert!(error(&outcome, 0).contains("receipts cannot be kept"));
    assert!(upstream.calls().is_empty());
    // The effect happened, but its receipt could not be stored: the run reports it, and no later effect runs.
    plans.effect("Ticket", "ticket_plain", create(value(json!("y"))), None);
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::failing_after(1)).await;
    assert_eq!(states(&outcome.receipts), [(0, 0, "done")]);
    assert!(error(&outcome, 0).contains("receipts cannot be kept") && error(&outcome, 1).contains("not run"));
    assert_eq!(upstream.calls().len(), 1);
}

/// A store for receipts that cancels the run when the first receipt is closed.
struct CancellingReceipts<'a>(&'a MemoryReceipts, CancellationToken);

#[async_trait]
impl Receipts for CancellingReceipts<'_> {
    async fn earlier(&self, id: &EffectId) -> Result<Option<Receipt>, ports::receipts::Error> {
        self.0.earlier(id).await
    }

    async fn open(&self, intent: &EffectIntent) -> Result<Opened, ports::receipts::Error> {
        self.0.open(intent).await
    }

    async fn close(&self, receipt: &Receipt) -> Result<(), ports::receipts::Error> {
        self.1.cancel();
        self.0.close(receipt).await
    }
}

#[tokio::test]
async fn a_cancelled_run_stops_between_effects_and_returns_its_receipts() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let receipts = MemoryReceipts::new();
    let cancel = CancellationToken::new();
    let cancelling = CancellingReceipts(&receipts, cancel.clone());
    let mut plans = Plans::new(&demo.catalog());
    let names = plans.literals(&[json!("a"), json!("b"), json!("c")]);
    let created = plans.effect("Ticket", "ticket_plain", create(row("")), Some(names));
    let number = args(&[("project", value(json!("OPS"))), ("number", of_step(created, "number"))]);
    plans.get("Ticket", "ticket_get", number);
    let with = RunOptions { receipts: Some(&cancelling), cancel, ..RunOptions::default() };
    let outcome = run_with(&demo.http, &plans.plan(), &plans.catalog, with).await;
    assert!(outcome.cancelled, "{outcome:?}");
    assert_eq!(states(&outcome.receipts), [(1, 0, "done")]);
    assert_eq!(demo.effects().await.len(), 1);
}

#[tokio::test]
async fn a_retried_run_repeats_no_effect() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let mut plans = Plans::new(&demo.catalog());
    let names = plans.literals(&[json!("a"), json!("b")]);
    plans.effect("Ticket", "ticket_plain", create(row("")), Some(names));
    let receipts = MemoryReceipts::new();
    let first = run_plans(&demo.http, &plans, &receipts).await;
    let second = run_plans(&demo.http, &plans, &receipts).await;
    assert_eq!(rows(&first, 1), rows(&second, 1));
    assert!(second.receipts.iter().all(|r| r.resolved == Some(Resolved::Earlier)));
    assert_eq!(demo.effects().await.len(), 2);
    // A crash left the second receipt open: its outcome is unknown, and it is not repeated.
    let open = Receipt::open(first.receipts[1].intent.clone());
    let crashed = MemoryReceipts::new().with(first.receipts[0].clone()).with(open);
    let third = run_plans(&demo.http, &plans, &crashed).await;
    assert_eq!(states(&third.receipts), [(1, 0, "done"), (1, 1, "unknown")]);
    assert_eq!(demo.effects().await.len(), 2);
}

#[tokio::test]
async fn an_open_receipt_of_a_keyed_effect_is_sent_again_with_its_key() {
    let demo = Demo::start(Duration::from_secs(5)).await;
    let mut plans = Plans::new(&demo.catalog());
    plans.effect("Ticket", "ticket_keyed", create(value(json!("once"))), None);
    let first = run_plans(&demo.http, &plans, &MemoryReceipts::new()).await;
    let crashed = MemoryReceipts::new().with(Receipt::open(first.receipts[0].intent.clone()));
    let second = run_plans(&demo.http, &plans, &crashed).await;
    assert_eq!(rows(&first, 0), rows(&second, 0));
    assert_eq!(second.receipts[0].resolved, Some(Resolved::Repeated));
    assert_eq!(demo.effects().await.len(), 1);
}

#[tokio::test]
async fn a_retried_run_with_other_rows_does_not_reuse_receipts() {
    let upstream = ScriptedUpstream::new().with(Rule::post(TICKETS).json(201, ticket(1, "x")));
    let receipts = MemoryReceipts::new();
    for (title, expected) in [("a", "ok"), ("b", "it did not happen")] {
        let mut plans = Plans::new(&catalog());
        plans.effect("Ticket", "ticket_plain", create(value(json!(title))), None);
        let outcome = run_plans(&upstream, &plans, &receipts).await;
        assert!(error(&outcome, 0).contains(expected), "{}", error(&outcome, 0));
    }
    assert_eq!(upstream.calls().len(), 1);
}

/// A probe must not wait for the permit that its own effect uses, even if the session allows only one call.
#[tokio::test]
async fn a_probe_does_not_deadlock_with_a_single_call_permit() {
    let listed = json!({"data": [ticket(3, "x")], "total": 1});
    let upstream = ScriptedUpstream::new()
        .with(Rule::post(TICKETS).fails(|label| Error::Lost { label, cause: "reset".into() }))
        .with(Rule::get("/api/tickets").json(200, listed));
    let mut plans = Plans::new(&catalog());
    plans.effect("Ticket", "ticket_probed", create(value(json!("x"))), None);
    let receipts = MemoryReceipts::new();
    let limits = Limits { calls_per_session: 1, calls_per_origin: 1, ..Limits::default() };
    let with = RunOptions { receipts: Some(&receipts), limits, ..RunOptions::default() };
    let plan = plans.plan();
    let running = run_with(&upstream, &plan, &plans.catalog, with);
    let outcome = tokio::time::timeout(Duration::from_secs(10), running).await.unwrap();
    assert_eq!(rows(&outcome, 0)[0]["number"], json!(3));
}

#[tokio::test]
async fn more_rows_than_planned_cause_no_effect() {
    let upstream = ScriptedUpstream::new();
    let mut plans = Plans::new(&catalog());
    let names = plans.literals(&[json!("a"), json!("b")]);
    let created = plans.effect("Ticket", "ticket_plain", create(row("")), Some(names));
    plans.steps[created].effects = 1;
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::new()).await;
    assert_eq!(error(&outcome, created), "stopped at the plan's bound of 1 effects");
    assert!(upstream.calls().is_empty());
}

#[tokio::test]
async fn concurrent_effects_overlap_and_are_reported_in_row_order() {
    let upstream = ScriptedUpstream::new().with(Rule::post(TICKETS).answers(|call| {
        let title = call.request.body.as_ref().map(testkit::upstream::body_text).unwrap_or_default();
        let number = if title.contains("t0") { 0 } else { 1 };
        Ok(base::Response { status: 201, headers: vec![], body: ticket(number, &title).to_string().into_bytes() })
    }));
    let mut plans = Plans::new(&catalog());
    let names: Vec<Value> = (0..6).map(|n| json!(format!("t{n}"))).collect();
    let names = plans.literals(&names);
    plans.effect("Ticket", "ticket_many", create(row("")), Some(names));
    let outcome = run_plans(&upstream, &plans, &MemoryReceipts::new()).await;
    assert_eq!(states(&outcome.receipts).iter().map(|s| s.1).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(upstream.max_in_flight() > 1);
    let plain = ScriptedUpstream::new().with(Rule::post(TICKETS).json(201, ticket(1, "x")));
    plans.steps[1].kind = match plans.steps[1].kind.clone() {
        StepKind::Effect { args, each, .. } => StepKind::Effect { call: plans.call("ticket_plain"), args, each },
        other => other,
    };
    run_plans(&plain, &plans, &MemoryReceipts::new()).await;
    assert_eq!(plain.max_in_flight(), 1);
}

#[derive(Default)]
struct RecordedProgress(Mutex<Vec<StepProgress>>);

impl ProgressSink for RecordedProgress {
    fn report(&self, progress: StepProgress) {
        self.0.lock().unwrap().push(progress);
    }
}

#[tokio::test]
async fn progress_counts_steps_and_effects_to_the_end() {
    let upstream = ScriptedUpstream::new().with(Rule::post(TICKETS).json(201, ticket(1, "x")));
    let mut plans = Plans::new(&catalog());
    let names = plans.literals(&[json!("a"), json!("b")]);
    plans.effect("Ticket", "ticket_plain", create(row("")), Some(names));
    let recorded = RecordedProgress::default();
    let receipts = MemoryReceipts::new();
    let with = RunOptions {
        receipts: Some(&receipts),
        progress: Some(&recorded),
        limits: Limits::default(),
        ..RunOptions::default()
    };
    run_with(&upstream, &plans.plan(), &plans.catalog, with).await;
    let reports = recorded.0.into_inner().unwrap();
    assert_eq!(*reports.last().unwrap(), StepProgress { steps_done: 2, steps: 2, effects_done: 2 });
    assert!(reports.windows(2).all(|w| w[0].steps_done <= w[1].steps_done && w[0].effects_done <= w[1].effects_done));
}
