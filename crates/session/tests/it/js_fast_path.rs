//! The fast path: short runs are stored in one commit, without partial state and without lost work in races.

use std::time::Duration;

use base::Digest;
use ports::Store;
use ports::store::{Range, Table};
use serde_json::{Value, json};
use session::{Execution, ExecutionState, RunJsRequest, SessionTarget};
use testkit::faults::{Fault, Operation};

use crate::js_harness::{
    JsHarness, Process, completed_value, expect_completed, local_caller, logical_request, script_request,
};

/// Returns a request that performs these steps, then adds 1 to the global `n` of `s0`, prints a line and returns `n`.
pub fn increment_request(steps: &[Value]) -> RunJsRequest {
    let mut program = steps.to_vec();
    program.extend([json!({"add": ["n", 1]}), json!({"print": "added\n"}), json!({"get": "n"})]);
    logical_request("s0", json!(program))
}

/// Returns the number of unended runs, as a starting process finds them.
pub fn open_run_count(harness: &JsHarness, process: &Process) -> usize {
    let range = Range {
        tenant: base::TenantId::local(),
        table: Table::OpenExecution,
        prefix: String::new(),
        after: None,
        limit: 100,
    };
    process.block_on(harness.memory.store.scan(&range)).unwrap().len()
}

/// Returns the index and the heap of each entry in the log of `s0`.
pub fn log_entries(process: &Process) -> Vec<(u64, Digest)> {
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    log.iter().map(|entry| (entry.index, entry.output_heap)).collect()
}

#[test]
fn a_short_run_takes_one_commit_with_the_same_rows_as_a_long_one() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&increment_request(&[])));
    let before = harness.memory.faults.calls(Operation::Commit);
    let execution = expect_completed(process.run(&increment_request(&[])));
    assert_eq!(harness.memory.faults.calls(Operation::Commit) - before, 1);
    assert_eq!((completed_value(&execution), execution.output_lines), (json!(2), 1));
    assert_eq!(process.execution(&execution.id.to_string()).heap, execution.heap);
    assert_eq!(log_entries(&process).last(), Some(&(1, execution.heap.unwrap())));
    assert_eq!(open_run_count(&harness, &process), 0);
    // A run that throws is stored as well, but it does not move the head.
    let before = harness.memory.faults.calls(Operation::Commit);
    let failed_run = process.run(&logical_request("s0", json!([{"throw": "no"}]))).unwrap();
    assert_eq!(
        (failed_run.state, harness.memory.faults.calls(Operation::Commit) - before),
        (ExecutionState::Failed, 1)
    );
    assert_eq!(process.execution(&failed_run.id.to_string()).state, ExecutionState::Failed);
    assert_eq!(log_entries(&process).len(), 2);
    // A run outside of sessions behaves in the same way.
    let before = harness.memory.faults.calls(Operation::Commit);
    expect_completed(process.run(&script_request(json!([{"set": ["x", 1]}]))));
    assert_eq!(harness.memory.faults.calls(Operation::Commit) - before, 1);
}

/// An answered run is stored. A refused one is not stored, or another process ends it.
#[test]
fn a_fault_at_the_only_commit_leaves_a_run_that_ended_once_or_none() {
    for fault in [Fault::Unavailable, Fault::LostAfter, Fault::Conflict] {
        for nth in 1..=3 {
            let harness = JsHarness::new();
            let process = harness.process();
            process.open_session();
            expect_completed(process.run(&increment_request(&[])));
            for later_commit in 0..nth {
                harness.memory.faults.fail(Operation::Commit, 1 + later_commit, fault);
            }
            let answered = process.run(&increment_request(&[]));
            drop(process);
            harness.memory.faults.heal();
            let process = harness.process();
            process.resume_runs();
            process.run_for_ms(5_000);
            let all = process.block_on(process.service.executions(&local_caller(), None, 10)).unwrap();
            assert!(all.iter().all(|e| e.state == ExecutionState::Completed), "{fault:?} {nth}: {all:?}");
            if let Ok(answered) = &answered {
                let stored = all.iter().find(|e| e.id == answered.id);
                assert_eq!(stored.map(completed_value), Some(json!(2)), "{fault:?} {nth}");
            }
            assert_eq!(log_entries(&process).len(), all.len(), "{fault:?} {nth}");
            assert_eq!(process.run_to_value(&increment_request(&[])), json!(all.len() + 1), "{fault:?} {nth}");
            assert_eq!(open_run_count(&harness, &process), 0);
        }
    }
}

#[test]
fn a_session_that_another_process_changed_gets_both_runs() {
    for (own_ms, other_ms) in [(60, 20), (20, 60), (300, 20), (300, 150), (40, 40), (90, 110)] {
        let harness = JsHarness::new();
        let process = harness.process();
        let other = harness.process();
        process.open_session();
        expect_completed(process.run(&increment_request(&[])));
        let own_request = increment_request(&[json!({"spin": own_ms})]);
        let other_request = increment_request(&[json!({"spin": other_ms})]);
        let user = local_caller();
        let (first, second) = process.block_on(async {
            tokio::join!(process.service.run_js(&user, &own_request), other.service.run_js(&user, &other_request))
        });
        let mut values = [completed_value(&expect_completed(first)), completed_value(&expect_completed(second))]
            .map(|value| value.as_i64().unwrap());
        values.sort_unstable();
        assert_eq!(values, [2, 3], "{own_ms} {other_ms}");
        let log = log_entries(&process);
        assert_eq!(log.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(process.run_to_value(&increment_request(&[])), json!(4));
        assert_eq!(open_run_count(&harness, &process), 0);
    }
}

#[test]
fn a_long_run_is_stored_while_active_and_can_be_finished_by_another_process() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let request = increment_request(&[json!({"spin": 5_000})]);
    let user = local_caller();
    // The caller disconnects after half a second, and then the process dies.
    let running = process.block_on(async {
        tokio::select! {
            _ = process.service.run_js(&user, &request) => None,
            () = tokio::time::sleep(Duration::from_millis(500)) => Some(process.service.executions(&user, None, 10).await.unwrap()),
        }
    });
    let running: Vec<Execution> = running.unwrap();
    assert_eq!(running.iter().map(|e| e.state).collect::<Vec<_>>(), [ExecutionState::Running]);
    assert_eq!(open_run_count(&harness, &process), 1);
    // The next run queues behind it.
    let next = process.run(&RunJsRequest { wait_ms: Some(200), ..increment_request(&[]) }).unwrap();
    assert_eq!(next.state, ExecutionState::Queued);
    drop(process);
    let process = harness.process();
    assert_eq!(process.resume_runs(), 2);
    process.run_for_ms(20_000);
    let values = [running[0].id, next.id].map(|id| completed_value(&process.execution(&id.to_string())));
    assert_eq!(values, [json!(1), json!(2)]);
    assert_eq!(open_run_count(&harness, &process), 0);
}

/// The run does not wait for its step on the outdated heap, and the time of that step does not count.
#[test]
fn a_long_run_whose_session_changed_restarts_at_once_with_its_full_time() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    process.open_session();
    let request = RunJsRequest { timeout_ms: Some(6_000), ..increment_request(&[json!({"spin": 5_000})]) };
    let short_request = increment_request(&[json!({"spin": 20})]);
    let user = local_caller();
    let took = process.block_on(async {
        let started = tokio::time::Instant::now();
        let (long, short) =
            tokio::join!(process.service.run_js(&user, &request), other.service.run_js(&user, &short_request));
        assert_eq!(
            (completed_value(&expect_completed(long)), completed_value(&expect_completed(short))),
            (json!(2), json!(1))
        );
        started.elapsed()
    });
    assert!(took < Duration::from_millis(5_500), "{took:?}");
}

#[test]
fn simultaneous_runs_are_bounded_and_each_is_answered_in_time() {
    let mut harness = JsHarness::new();
    harness.settings.queue = 5;
    let process = harness.process();
    process.open_session();
    let request = RunJsRequest { wait_ms: Some(400), ..increment_request(&[json!({"spin": 90})]) };
    let user = local_caller();
    let answers = process.block_on(async {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..30 {
            let service = process.service.clone();
            let request = request.clone();
            let user = user.clone();
            calls.spawn(async move {
                let started = tokio::time::Instant::now();
                (service.run_js(&user, &request).await, started.elapsed())
            });
        }
        calls.join_all().await
    });
    let busy = answers.iter().filter(|(answer, _)| matches!(answer, Err(error) if error.code() == "busy")).count();
    let slowest = answers.iter().map(|(_, took)| *took).max().unwrap();
    assert!(slowest < Duration::from_millis(600), "{slowest:?}");
    // Only the first run, the few that followed it in time, and a queue of five are accepted.
    assert!((20..=26).contains(&busy), "{busy} of 30 were refused");
    process.run_for_ms(10_000);
    let all = process.block_on(process.service.executions(&local_caller(), None, 100)).unwrap();
    assert!(all.len() == 30 - busy && all.iter().all(|e| e.state == ExecutionState::Completed), "{all:?}");
    let values: std::collections::BTreeSet<i64> = all.iter().map(|e| completed_value(e).as_i64().unwrap()).collect();
    assert_eq!(values.len(), all.len());
    assert_eq!(log_entries(&process).len(), all.len());
}
