//! Calls that are cancelled before they are answered: their run ends as cancelled and moves no head, at any stage.

use std::time::Duration;

use serde_json::{Value, json};
use session::{Execution, ExecutionIdCell, ExecutionState, RunJsRequest};
use testkit::faults::{Fault, Operation};

use crate::js_fast_path::{increment_request, log_entries, open_run_count};
use crate::js_harness::{JsHarness, Process, completed_value, expect_completed, local_caller, timer_step};

impl Process {
    /// Sends a call and disconnects after this many milliseconds.
    fn run_and_disconnect(&self, request: &RunJsRequest, after: u64) {
        let user = local_caller();
        self.block_on(async {
            tokio::select! {
                answered = self.service.run_js(&user, request) => panic!("{answered:?}"),
                () = tokio::time::sleep(Duration::from_millis(after)) => {}
            }
        });
    }

    /// Sends a call, disconnects after this many milliseconds, and cancels the run as a server does.
    fn run_and_cancel(&self, request: RunJsRequest, after: u64) {
        let id_cell = ExecutionIdCell::default();
        self.run_and_disconnect(&RunJsRequest { id_cell: Some(id_cell.clone()), ..request }, after);
        self.block_on(self.service.cancel_unanswered_js(&local_caller(), &id_cell)).unwrap();
    }

    fn executions(&self) -> Vec<Execution> {
        self.block_on(self.service.executions(&local_caller(), None, 10)).unwrap()
    }
}

#[test]
fn an_unanswered_run_is_cancelled_whether_stored_or_not_and_moves_no_head() {
    let spin = |ms: u64| vec![json!({"spin": ms})];
    let cases: [(&str, Vec<Value>, u64, u64); 6] = [
        ("not stored yet", spin(80), 10_000, 40),
        ("about to be stored", spin(5_000), 10_000, 100),
        ("stored while its step continues", spin(5_000), 10_000, 500),
        ("stored before its first step", spin(5_000), 50, 20),
        ("parked", vec![timer_step(5_000)], 10_000, 50),
        ("continued after it was parked", vec![timer_step(100), json!({"spin": 5_000})], 10_000, 1_000),
    ];
    for (case, program, wait_ms, after) in cases {
        let harness = JsHarness::new();
        let process = harness.process();
        process.open_session();
        let before = expect_completed(process.run(&increment_request(&[])));
        process.run_and_cancel(RunJsRequest { wait_ms: Some(wait_ms), ..increment_request(&program) }, after);
        let states: Vec<ExecutionState> = process.executions().iter().map(|run| run.state).collect();
        assert_eq!(states, [ExecutionState::Cancelled, ExecutionState::Completed], "{case}");
        process.run_for_ms(20_000);
        assert_eq!(process.executions()[0].state, ExecutionState::Cancelled, "{case}");
        assert_eq!(log_entries(&process), [(0, before.heap.unwrap())], "{case}");
        assert_eq!(process.run_to_value(&increment_request(&[])), json!(2), "{case}: the head has not moved");
        assert_eq!(open_run_count(&harness, &process), 0, "{case}");
    }
}

#[test]
fn a_cancelled_run_leaves_the_queue_and_the_others_continue() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let first =
        process.run(&RunJsRequest { wait_ms: Some(0), ..increment_request(&[json!({"spin": 3_000})]) }).unwrap();
    process.run_and_cancel(increment_request(&[]), 500);
    assert_eq!(process.run_to_value(&increment_request(&[])), json!(2));
    let states: Vec<ExecutionState> = process.executions().iter().map(|run| run.state).collect();
    assert_eq!(states, [ExecutionState::Completed, ExecutionState::Cancelled, ExecutionState::Completed]);
    assert_eq!(completed_value(&process.execution(&first.id.to_string())), json!(1));
}

/// A disconnect is not a cancellation, and a run that has ended cannot be cancelled.
#[test]
fn a_disconnected_run_continues_and_an_ended_one_stays_ended() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    process.run_and_disconnect(&increment_request(&[json!({"spin": 60})]), 20);
    process.run_and_disconnect(&increment_request(&[json!({"spin": 1_000})]), 500);
    process.run_for_ms(5_000);
    assert_eq!(process.executions().iter().map(completed_value).collect::<Vec<_>>(), [json!(2), json!(1)]);
    let id_cell = ExecutionIdCell::default();
    expect_completed(process.run(&RunJsRequest { id_cell: Some(id_cell.clone()), ..increment_request(&[]) }));
    process.block_on(process.service.cancel_unanswered_js(&local_caller(), &id_cell)).unwrap();
    process.block_on(process.service.cancel_unanswered_js(&local_caller(), &ExecutionIdCell::default())).unwrap();
    assert!(process.executions().iter().all(|run| run.state == ExecutionState::Completed));
    assert_eq!(log_entries(&process).len(), 3);
}

/// Another process changed the session meanwhile: the same run is cancelled, and no second one is started.
#[test]
fn a_cancelled_run_is_not_restarted_when_another_process_moved_its_session() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    process.open_session();
    let id_cell = ExecutionIdCell::default();
    let user = local_caller();
    let request = RunJsRequest { id_cell: Some(id_cell.clone()), ..increment_request(&[json!({"spin": 80})]) };
    process.block_on(async {
        tokio::select! {
            answered = process.service.run_js(&user, &request) => panic!("{answered:?}"),
            () = async {
                expect_completed(other.service.run_js(&user, &increment_request(&[])).await);
                tokio::time::sleep(Duration::from_millis(30)).await;
            } => {}
        }
        process.service.cancel_unanswered_js(&user, &id_cell).await.unwrap();
    });
    process.run_for_ms(2_000);
    let mut states: Vec<&str> = process.executions().iter().map(|run| run.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!((states, log_entries(&process).len()), (vec!["cancelled", "completed"], 1));
}

#[test]
fn a_cancel_is_retried_while_the_storage_fails() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&increment_request(&[])));
    let id_cell = ExecutionIdCell::default();
    let user = local_caller();
    process.run_and_disconnect(
        &RunJsRequest { id_cell: Some(id_cell.clone()), ..increment_request(&[json!({"spin": 5_000})]) },
        500,
    );
    harness.memory.faults.fail_always(Operation::Commit, Fault::Unavailable);
    process.block_on(async {
        let healed = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            harness.memory.faults.heal();
        };
        let (cancelled, ()) = tokio::join!(process.service.cancel_unanswered_js(&user, &id_cell), healed);
        cancelled.unwrap();
    });
    process.run_for_ms(10_000);
    assert_eq!((process.executions()[0].state, log_entries(&process).len()), (ExecutionState::Cancelled, 1));
}
