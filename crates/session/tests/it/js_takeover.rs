//! Runs of dead processes, taken over by one or several processes at once: each run ends once, and no call is made
//! before it is owned.

use std::sync::Arc;
use std::time::Duration;

use base::{Origin, TenantId};
use ports::scripts::Call;
use ports::store::{Batch, Expect, Key, Table};
use serde_json::{Value, json};
use session::{Execution, ExecutionState, RunJsRequest};
use testkit::faults::{Fault, Operation};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness::{self, commit_of};
use crate::js_harness::{JsHarness, Process, code, later, local, logical, timer, value};

const ORIGIN: &str = "https://api.example.com";

fn fetch(method: &str, path: &str) -> Value {
    let request = json!({"url": format!("{ORIGIN}{path}"), "method": method, "body": null});
    json!({"await": [Call::Fetch { request }]})
}

fn house() -> JsHarness {
    let mut house = JsHarness::new();
    house.settings.fetch = vec![session::FetchRule::to(Origin::parse(ORIGIN).unwrap())];
    house.house.upstream.add(Rule::post("/x").bytes(200, "yes"));
    house
}

/// A parked run of a dead process.
fn left(house: &JsHarness, program: Value) -> Execution {
    let p = house.process();
    let ran = p.run(&RunJsRequest { wait_ms: Some(50), ..code(program) }).unwrap();
    assert_eq!(ran.state, ExecutionState::Running, "{ran:?}");
    ran
}

fn now(p: &Process, ran: &Execution) -> Execution {
    p.execution(&ran.id.to_string())
}

#[test]
fn a_run_with_a_ready_answer_is_taken_over_and_ended_in_one_commit() {
    let house = house();
    let ran = left(&house, json!([{"set": ["n", 41]}, timer(1_000), {"add": ["n", 1]}, {"get": "n"}]));
    house.time.advance(Duration::from_secs(2));
    let p = house.process();
    let before = house.house.faults.calls(Operation::Commit);
    assert_eq!(p.resume(), 1);
    p.rest(50);
    assert_eq!(value(&now(&p, &ran)), json!(42));
    assert_eq!(house.house.faults.calls(Operation::Commit) - before, 1);
    assert_eq!(p.resume(), 0);
}

/// Both start before either has stored anything.
#[test]
fn two_simultaneous_takeovers_end_the_run_once_and_send_once() {
    for wait in [0, 1_000] {
        let house = house();
        let program = json!([timer(1_000), {"add": ["n", 1]}, fetch("POST", "/x"), {"add": ["n", 1]}, {"get": "n"}]);
        let ran = left(&house, program);
        house.time.advance(Duration::from_secs(2));
        let (one, other) = (house.process(), house.process());
        assert_eq!((one.resume(), other.resume()), (1, 1));
        // The clocks of both processes advance in turns.
        for _ in 0..20 {
            one.rest(wait / 20);
            other.rest(wait / 20);
        }
        one.rest(5_000);
        other.rest(5_000);
        for p in [&one, &other] {
            assert_eq!(value(&now(p, &ran)), json!(2), "{wait}");
        }
        let posts = house.house.upstream.calls().into_iter().filter(|call| call.request.method == base::Method::Post);
        assert_eq!(posts.count(), 1, "{wait}");
    }
}

/// Showing a plan stores it, so the run is claimed first.
#[test]
fn two_simultaneous_takeovers_show_one_plan() {
    let house = house();
    let first = house.process();
    first.block(harness::open(&first.service));
    let write = Call::Plasm { program: r#"Ticket.open(project="OPS", title="from code")"#.to_owned() };
    let program = json!([timer(1_000), {"await": [write]}, {"set": ["done", 1]}, {"get": "done"}]);
    let ran =
        first.run(&RunJsRequest { wait_ms: Some(50), timeout_ms: Some(60_000), ..logical("s0", program) }).unwrap();
    drop(first);
    house.time.advance(Duration::from_secs(2));
    let (one, other) = (house.process(), house.process());
    assert_eq!((one.resume(), other.resume()), (1, 1));
    one.rest(50);
    other.rest(50);
    let waits = now(&one, &ran);
    assert_eq!((waits.state, waits.reviews[0].commit.as_str()), (ExecutionState::WaitingReview, "pc0"), "{waits:?}");
    let second = one.block(one.service.run(&local(), &commit_of("pc1"))).unwrap_err();
    assert_eq!(second.code(), "no_commit");
    let within = |ms| one.block(one.service.wait_for_execution(&local(), &ran.id.to_string(), ms)).unwrap();
    assert_eq!(within(60_000).state, ExecutionState::WaitingReview, "someone outside is waited for");
    harness::finished(one.block(one.service.run(&local(), &commit_of("pc0"))));
    assert_eq!(value(&within(60_000)), json!(1), "a review that was given is not waited for");
    assert_eq!(value(&now(&one, &ran)), json!(1));
}

/// Other processes leave the run alone while its step continues.
#[test]
fn a_run_is_claimed_while_its_long_step_continues() {
    let house = house();
    let ran = left(&house, json!([timer(1_000), {"spin": 2_000}, {"add": ["n", 1]}, {"get": "n"}]));
    house.time.advance(Duration::from_secs(2));
    let p = house.process();
    assert_eq!(p.resume(), 1);
    p.rest(500);
    let other = house.process();
    assert_eq!(other.resume(), 0);
    p.rest(5_000);
    assert_eq!(value(&now(&other, &ran)), json!(1));
    // A run that was cancelled meanwhile stays cancelled, whatever its step returns.
    let ran = left(&house, json!([timer(1_000), {"spin": 10_000}, {"add": ["n", 1]}, {"get": "n"}]));
    house.time.advance(Duration::from_secs(2));
    assert_eq!(p.resume(), 1);
    p.rest(500);
    other.block(other.service.cancel_execution(&local(), &ran.id.to_string())).unwrap();
    p.rest(13_000);
    assert_eq!(now(&p, &ran).state, ExecutionState::Cancelled);
}

/// A run that could not be claimed is not continued.
#[test]
fn the_new_owner_repeats_a_read() {
    let house = house();
    let gate = Arc::new(Notify::new());
    house.house.upstream.add(Rule::get("/slow").bytes(200, "yes").waits_for(&gate));
    let ran = left(&house, json!([fetch("GET", "/slow"), {"add": ["n", 1]}, {"get": "n"}]));
    for fault in [Fault::Conflict, Fault::Unavailable] {
        let p = house.process();
        house.house.faults.fail(Operation::Commit, 1, fault);
        assert_eq!(p.resume(), 1);
        p.rest(10);
        gate.notify_waiters();
        p.rest(100);
        assert_eq!(now(&p, &ran).state, ExecutionState::Running, "{fault:?}");
        house.house.faults.heal();
    }
    let p = house.process();
    assert_eq!(p.resume(), 1);
    p.rest(10);
    gate.notify_waiters();
    p.rest(100);
    assert_eq!(value(&now(&p, &ran)), json!(1));
    // By the first process, and by each that took it over.
    assert_eq!(house.house.upstream.calls().len(), 4);
}

/// A run that may wait for days loads its heap only when its answer arrives.
#[test]
fn the_heap_is_prepared_before_an_answer_that_comes_soon() {
    let house = house();
    let gate = Arc::new(Notify::new());
    house.house.upstream.add(Rule::get("/slow").bytes(200, "yes").waits_for(&gate));
    let write = Call::Plasm { program: r#"Ticket.open(project="OPS", title="from code")"#.to_owned() };
    for (waits, soon) in
        [(fetch("GET", "/slow"), true), (timer(900), true), (timer(60_000), false), (json!({"await": [write]}), false)]
    {
        let p = house.process();
        p.block(harness::open(&p.service));
        let program = json!([{"set": ["n", 1]}, waits, {"add": ["n", 1]}, {"get": "n"}]);
        let asked = RunJsRequest { wait_ms: Some(0), timeout_ms: Some(600_000), ..logical("s0", program) };
        let ran = p.run(&asked).unwrap();
        p.rest(5);
        drop(p);
        let p = house.process();
        p.resume();
        p.rest(10);
        assert_eq!(p.engine.made_ready().len(), usize::from(soon), "{waits} {:?}", now(&p, &ran));
        p.block(p.service.cancel_execution(&local(), &ran.id.to_string())).unwrap();
        p.rest(10);
    }
}

#[test]
fn an_unreadable_run_does_not_keep_others_from_being_resumed() {
    for unreadable in [true, false] {
        let house = JsHarness::new();
        let p = house.process();
        let older = p.run(&later("older", json!([timer(10_000), {"set": ["x", 1]}, {"get": "x"}]))).unwrap();
        house.time.advance(Duration::from_millis(10));
        let newer = p.run(&later("newer", json!([timer(10_000)]))).unwrap();
        drop(p);
        let other = house.process();
        if unreadable {
            let key = Key::new(&TenantId::local(), Table::Execution, newer.id.to_newest_first_key());
            let store = house.house.ports().store;
            other.block(store.commit(Batch::default().put(key, b"{".to_vec(), Expect::Any))).unwrap();
        } else {
            // The newest run comes first: once with the others, and once alone.
            [1, 2].into_iter().for_each(|nth| house.house.faults.fail(Operation::Get, nth, Fault::Damaged));
        }
        assert_eq!(other.resume(), 1);
        other.rest(20_000);
        assert_eq!(value(&other.execution(&older.id.to_string())), json!(1));
    }
}

#[test]
fn waiting_callers_are_answered_when_the_server_shuts_down() {
    let house = JsHarness::new();
    let p = house.process();
    let asked = RunJsRequest { wait_ms: Some(20_000), ..code(json!([timer(25_000), {"set": ["x", 7]}, {"get": "x"}])) };
    let (began, service) = (house.time.now(), p.service.clone());
    let (ran, seen) = p.block(async {
        let ran = tokio::spawn({
            let service = service.clone();
            async move { service.run_js(&local(), &asked).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let id = service.executions(&local(), None, 1).await.unwrap()[0].id.to_string();
        let seen = tokio::spawn({
            let service = service.clone();
            async move { service.wait_for_execution(&local(), &id, 20_000).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!ran.is_finished() && !seen.is_finished());
        service.release_waiters();
        (ran.await.unwrap(), seen.await.unwrap())
    });
    assert_eq!((ran.state, seen.state, ran.id), (ExecutionState::Running, ExecutionState::Running, seen.id));
    assert!(house.time.now().0 - began.0 < 10_000, "nobody waited longer");
    drop(p);
    let other = house.process();
    assert_eq!(other.resume(), 1);
    other.rest(30_000);
    assert_eq!(value(&other.execution(&ran.id.to_string())), json!(7));
}

/// An unknown tenant would have unlimited rights, so its runs must not continue, but they must not stay for ever
/// either.
#[test]
fn a_run_of_a_removed_tenant_is_cancelled_at_its_time_limit() {
    let house = JsHarness::new();
    let (p, theirs) = (house.process(), harness::caller("removed", "a"));
    let waits = |name: &str| later(name, json!([timer(1_000), {"set": ["x", 1]}]));
    let first = p.block(p.service.run_js(&theirs, &waits("n"))).unwrap();
    let queued = p.block(p.service.run_js(&theirs, &waits("n"))).unwrap();
    let ours = p.run(&waits("n")).unwrap();
    drop(p);
    let other = house.process();
    assert_eq!(other.resume(), 1, "its own only: another process may know the tenant");
    other.rest(5_000);
    assert_eq!(now(&other, &ours).state, ExecutionState::Completed);
    let state = |ran: &Execution| other.block(other.service.execution(&theirs, &ran.id.to_string())).unwrap();
    assert_eq!((state(&first).state, state(&queued).state), (ExecutionState::Running, ExecutionState::Queued));
    house.time.advance(Duration::from_secs(40));
    assert_eq!((other.resume(), other.resume()), (2, 0));
    for ran in [&first, &queued] {
        let ended = state(ran);
        assert_eq!(ended.state, ExecutionState::Cancelled);
        assert!(ended.error.unwrap().message.contains("not in the settings"));
    }
    assert!(other.engine.steps().iter().filter(|step| *step != "settle").count() == 0, "{:?}", other.engine.steps());
}
