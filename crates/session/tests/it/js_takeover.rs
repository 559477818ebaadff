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

use crate::harness::{self, commit_request};
use crate::js_harness::{
    JsHarness, Process, completed_value, local_caller, logical_request, script_request, timer_step, unawaited_request,
};

const ORIGIN: &str = "https://api.example.com";

fn fetch_step(method: &str, path: &str) -> Value {
    let request = json!({"url": format!("{ORIGIN}{path}"), "method": method, "body": null});
    json!({"await": [Call::Fetch { request }]})
}

fn harness_with_fetch() -> JsHarness {
    let mut harness = JsHarness::new();
    harness.settings.fetch = vec![session::FetchRule::to(Origin::parse(ORIGIN).unwrap())];
    harness.memory.upstream.add(Rule::post("/x").bytes(200, "yes"));
    harness
}

/// Starts a run that parks, and drops its process.
fn start_run_and_drop_process(harness: &JsHarness, program: Value) -> Execution {
    let process = harness.process();
    let execution = process.run(&RunJsRequest { wait_ms: Some(50), ..script_request(program) }).unwrap();
    assert_eq!(execution.state, ExecutionState::Running, "{execution:?}");
    execution
}

/// Returns the current state of a run.
fn current(process: &Process, execution: &Execution) -> Execution {
    process.execution(&execution.id.to_string())
}

#[test]
fn a_run_with_a_ready_answer_is_taken_over_and_ended_in_one_commit() {
    let harness = harness_with_fetch();
    let execution = start_run_and_drop_process(
        &harness,
        json!([{"set": ["n", 41]}, timer_step(1_000), {"add": ["n", 1]}, {"get": "n"}]),
    );
    harness.time.advance(Duration::from_secs(2));
    let process = harness.process();
    let before = harness.memory.faults.calls(Operation::Commit);
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(50);
    assert_eq!(completed_value(&current(&process, &execution)), json!(42));
    assert_eq!(harness.memory.faults.calls(Operation::Commit) - before, 1);
    assert_eq!(process.resume_runs(), 0);
}

/// Both processes start the takeover before either has stored anything.
#[test]
fn two_simultaneous_takeovers_end_the_run_once_and_send_once() {
    for wait in [0, 1_000] {
        let harness = harness_with_fetch();
        let program =
            json!([timer_step(1_000), {"add": ["n", 1]}, fetch_step("POST", "/x"), {"add": ["n", 1]}, {"get": "n"}]);
        let execution = start_run_and_drop_process(&harness, program);
        harness.time.advance(Duration::from_secs(2));
        let one_process = harness.process();
        let other_process = harness.process();
        assert_eq!((one_process.resume_runs(), other_process.resume_runs()), (1, 1));
        // The clocks of both processes advance in turns.
        for _ in 0..20 {
            one_process.run_for_ms(wait / 20);
            other_process.run_for_ms(wait / 20);
        }
        one_process.run_for_ms(5_000);
        other_process.run_for_ms(5_000);
        for process in [&one_process, &other_process] {
            assert_eq!(completed_value(&current(process, &execution)), json!(2), "{wait}");
        }
        let posts =
            harness.memory.upstream.calls().into_iter().filter(|call| call.request.method == base::Method::Post);
        assert_eq!(posts.count(), 1, "{wait}");
    }
}

/// A plan is stored when it is shown, so a process claims the run before that.
#[test]
fn two_simultaneous_takeovers_show_one_plan() {
    let harness = harness_with_fetch();
    let first = harness.process();
    first.open_session();
    let write = Call::Plasm { program: r#"Ticket.open(project="OPS", title="from code")"#.to_owned() };
    let program = json!([timer_step(1_000), {"await": [write]}, {"set": ["done", 1]}, {"get": "done"}]);
    let execution = first
        .run(&RunJsRequest { wait_ms: Some(50), timeout_ms: Some(60_000), ..logical_request("s0", program) })
        .unwrap();
    drop(first);
    harness.time.advance(Duration::from_secs(2));
    let one_process = harness.process();
    let other_process = harness.process();
    assert_eq!((one_process.resume_runs(), other_process.resume_runs()), (1, 1));
    one_process.run_for_ms(50);
    other_process.run_for_ms(50);
    let waiting = current(&one_process, &execution);
    assert_eq!(
        (waiting.state, waiting.reviews[0].commit.as_str()),
        (ExecutionState::WaitingReview, "pc0"),
        "{waiting:?}"
    );
    let second = one_process.block_on(one_process.service.run(&local_caller(), &commit_request("pc1"))).unwrap_err();
    assert_eq!(second.code(), "no_commit");
    let state_within = |ms| {
        one_process
            .block_on(one_process.service.wait_for_execution(&local_caller(), &execution.id.to_string(), ms))
            .unwrap()
    };
    assert_eq!(state_within(60_000).state, ExecutionState::WaitingReview, "the approval has not been given");
    harness::expect_finished(one_process.block_on(one_process.service.run(&local_caller(), &commit_request("pc0"))));
    assert_eq!(completed_value(&state_within(60_000)), json!(1), "the run continues after its approval");
    assert_eq!(completed_value(&current(&one_process, &execution)), json!(1));
}

/// Another process must not take over the run while its step continues.
#[test]
fn a_run_is_claimed_while_its_long_step_continues() {
    let harness = harness_with_fetch();
    let execution = start_run_and_drop_process(
        &harness,
        json!([timer_step(1_000), {"spin": 2_000}, {"add": ["n", 1]}, {"get": "n"}]),
    );
    harness.time.advance(Duration::from_secs(2));
    let process = harness.process();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(500);
    let other_process = harness.process();
    assert_eq!(other_process.resume_runs(), 0);
    process.run_for_ms(5_000);
    assert_eq!(completed_value(&current(&other_process, &execution)), json!(1));
    // A run that is cancelled during its step stays cancelled, whatever the step returns.
    let execution = start_run_and_drop_process(
        &harness,
        json!([timer_step(1_000), {"spin": 10_000}, {"add": ["n", 1]}, {"get": "n"}]),
    );
    harness.time.advance(Duration::from_secs(2));
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(500);
    other_process.block_on(other_process.service.cancel_execution(&local_caller(), &execution.id.to_string())).unwrap();
    process.run_for_ms(13_000);
    assert_eq!(current(&process, &execution).state, ExecutionState::Cancelled);
}

/// The first two takeovers cannot claim the run, so they do not continue it after the answer.
#[test]
fn the_new_owner_repeats_a_read() {
    let harness = harness_with_fetch();
    let allow_answer = Arc::new(Notify::new());
    harness.memory.upstream.add(Rule::get("/slow").bytes(200, "yes").waits_for(&allow_answer));
    let execution =
        start_run_and_drop_process(&harness, json!([fetch_step("GET", "/slow"), {"add": ["n", 1]}, {"get": "n"}]));
    for fault in [Fault::Conflict, Fault::Unavailable] {
        let process = harness.process();
        harness.memory.faults.fail(Operation::Commit, 1, fault);
        assert_eq!(process.resume_runs(), 1);
        process.run_for_ms(10);
        allow_answer.notify_waiters();
        process.run_for_ms(100);
        assert_eq!(current(&process, &execution).state, ExecutionState::Running, "{fault:?}");
        harness.memory.faults.heal();
    }
    let process = harness.process();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(10);
    allow_answer.notify_waiters();
    process.run_for_ms(100);
    assert_eq!(completed_value(&current(&process, &execution)), json!(1));
    // The first process sent the request, and so did each of the three that took over.
    assert_eq!(harness.memory.upstream.calls().len(), 4);
}

/// A run that may wait for days loads its heap only when its answer arrives.
#[test]
fn a_heap_is_loaded_before_the_answer_only_if_the_answer_comes_soon() {
    let harness = harness_with_fetch();
    let allow_answer = Arc::new(Notify::new());
    harness.memory.upstream.add(Rule::get("/slow").bytes(200, "yes").waits_for(&allow_answer));
    let write = Call::Plasm { program: r#"Ticket.open(project="OPS", title="from code")"#.to_owned() };
    for (waiting_step, soon) in [
        (fetch_step("GET", "/slow"), true),
        (timer_step(900), true),
        (timer_step(60_000), false),
        (json!({"await": [write]}), false),
    ] {
        let process = harness.process();
        process.open_session();
        let program = json!([{"set": ["n", 1]}, waiting_step, {"add": ["n", 1]}, {"get": "n"}]);
        let request = RunJsRequest { wait_ms: Some(0), timeout_ms: Some(600_000), ..logical_request("s0", program) };
        let execution = process.run(&request).unwrap();
        process.run_for_ms(5);
        drop(process);
        let process = harness.process();
        process.resume_runs();
        process.run_for_ms(10);
        assert_eq!(
            process.engine.made_ready().len(),
            usize::from(soon),
            "{waiting_step} {:?}",
            current(&process, &execution)
        );
        process.block_on(process.service.cancel_execution(&local_caller(), &execution.id.to_string())).unwrap();
        process.run_for_ms(10);
    }
}

#[test]
fn an_unreadable_run_does_not_keep_others_from_being_resumed() {
    for unreadable in [true, false] {
        let harness = JsHarness::new();
        let process = harness.process();
        let older = process
            .run(&unawaited_request("older", json!([timer_step(10_000), {"set": ["x", 1]}, {"get": "x"}])))
            .unwrap();
        harness.time.advance(Duration::from_millis(10));
        let newer = process.run(&unawaited_request("newer", json!([timer_step(10_000)]))).unwrap();
        drop(process);
        let other_process = harness.process();
        if unreadable {
            let key = Key::new(&TenantId::local(), Table::Execution, newer.id.to_newest_first_key());
            let store = harness.memory.ports().store;
            other_process.block_on(store.commit(Batch::default().put(key, b"{".to_vec(), Expect::Any))).unwrap();
        } else {
            // The newest run is read first: once in the list of all runs, and once alone.
            [1, 2].into_iter().for_each(|nth| harness.memory.faults.fail(Operation::Get, nth, Fault::Damaged));
        }
        assert_eq!(other_process.resume_runs(), 1);
        other_process.run_for_ms(20_000);
        assert_eq!(completed_value(&other_process.execution(&older.id.to_string())), json!(1));
    }
}

#[test]
fn waiting_callers_are_answered_when_the_server_shuts_down() {
    let harness = JsHarness::new();
    let process = harness.process();
    let request = RunJsRequest {
        wait_ms: Some(20_000),
        ..script_request(json!([timer_step(25_000), {"set": ["x", 7]}, {"get": "x"}]))
    };
    let started = harness.time.now();
    let service = process.service.clone();
    let (execution, queried) = process.block_on(async {
        let execution = tokio::spawn({
            let service = service.clone();
            async move { service.run_js(&local_caller(), &request).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let id = service.executions(&local_caller(), None, 1).await.unwrap()[0].id.to_string();
        let queried = tokio::spawn({
            let service = service.clone();
            async move { service.wait_for_execution(&local_caller(), &id, 20_000).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!execution.is_finished() && !queried.is_finished());
        service.release_waiters();
        (execution.await.unwrap(), queried.await.unwrap())
    });
    assert_eq!(
        (execution.state, queried.state, execution.id),
        (ExecutionState::Running, ExecutionState::Running, queried.id)
    );
    assert!(harness.time.now().0 - started.0 < 10_000, "both callers are answered early");
    drop(process);
    let other_process = harness.process();
    assert_eq!(other_process.resume_runs(), 1);
    other_process.run_for_ms(30_000);
    assert_eq!(completed_value(&other_process.execution(&execution.id.to_string())), json!(7));
}

/// The runs of a tenant that is not in the settings must not continue, because such a tenant would have unlimited
/// rights. They must not stay for ever either.
#[test]
fn a_run_of_a_removed_tenant_is_cancelled_at_its_time_limit() {
    let harness = JsHarness::new();
    let process = harness.process();
    let removed_tenant = harness::caller("removed", "a");
    let waiting_request = |name: &str| unawaited_request(name, json!([timer_step(1_000), {"set": ["x", 1]}]));
    let first = process.block_on(process.service.run_js(&removed_tenant, &waiting_request("n"))).unwrap();
    let queued = process.block_on(process.service.run_js(&removed_tenant, &waiting_request("n"))).unwrap();
    let local_run = process.run(&waiting_request("n")).unwrap();
    drop(process);
    let other_process = harness.process();
    assert_eq!(other_process.resume_runs(), 1, "only the local run: another process may know the tenant");
    other_process.run_for_ms(5_000);
    assert_eq!(current(&other_process, &local_run).state, ExecutionState::Completed);
    let stored_execution = |execution: &Execution| {
        other_process.block_on(other_process.service.execution(&removed_tenant, &execution.id.to_string())).unwrap()
    };
    assert_eq!(
        (stored_execution(&first).state, stored_execution(&queued).state),
        (ExecutionState::Running, ExecutionState::Queued)
    );
    harness.time.advance(Duration::from_secs(40));
    assert_eq!((other_process.resume_runs(), other_process.resume_runs()), (2, 0));
    for execution in [&first, &queued] {
        let ended = stored_execution(execution);
        assert_eq!(ended.state, ExecutionState::Cancelled);
        assert!(ended.error.unwrap().message.contains("not in the settings"));
    }
    assert!(
        other_process.engine.steps().iter().filter(|step| *step != "settle").count() == 0,
        "{:?}",
        other_process.engine.steps()
    );
}
