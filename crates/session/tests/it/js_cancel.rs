//! Calls that are cancelled before they are answered: their run ends as cancelled and moves no head, at any stage.

use std::time::Duration;

use serde_json::{Value, json};
use session::{Execution, ExecutionIdCell, ExecutionState, RunJsRequest};
use testkit::faults::{Fault, Operation};

use crate::harness;
use crate::js_fast_path::{add, entries, open};
use crate::js_harness::{JsHarness, Process, completed, local, timer, value};

impl Process {
    /// Sends a call and disconnects after this many milliseconds.
    fn leaves(&self, asked: &RunJsRequest, after: u64) {
        let me = local();
        self.block(async {
            tokio::select! {
                answered = self.service.run_js(&me, asked) => panic!("{answered:?}"),
                () = tokio::time::sleep(Duration::from_millis(after)) => {}
            }
        });
    }

    fn gives_up(&self, asked: RunJsRequest, after: u64) {
        let became = ExecutionIdCell::default();
        self.leaves(&RunJsRequest { id_cell: Some(became.clone()), ..asked }, after);
        self.block(self.service.cancel_unanswered_js(&local(), &became)).unwrap();
    }

    fn runs(&self) -> Vec<Execution> {
        self.block(self.service.executions(&local(), None, 10)).unwrap()
    }
}

#[test]
fn an_unanswered_run_is_cancelled_whether_stored_or_not_and_moves_no_head() {
    let spin = |ms: u64| vec![json!({"spin": ms})];
    let cases: [(&str, Vec<Value>, u64, u64); 6] = [
        ("not stored yet", spin(80), 10_000, 40),
        ("about to be stored", spin(5_000), 10_000, 100),
        ("stored while it went on", spin(5_000), 10_000, 500),
        ("stored before it began", spin(5_000), 50, 20),
        ("it waits", vec![timer(5_000)], 10_000, 50),
        ("it goes on after it waited", vec![timer(100), json!({"spin": 5_000})], 10_000, 1_000),
    ];
    for (case, program, wait_ms, after) in cases {
        let house = JsHarness::new();
        let p = house.process();
        p.block(harness::open(&p.service));
        let before = completed(p.run(&add(&[])));
        p.gives_up(RunJsRequest { wait_ms: Some(wait_ms), ..add(&program) }, after);
        let states: Vec<ExecutionState> = p.runs().iter().map(|run| run.state).collect();
        assert_eq!(states, [ExecutionState::Cancelled, ExecutionState::Completed], "{case}");
        p.rest(20_000);
        assert_eq!(p.runs()[0].state, ExecutionState::Cancelled, "{case}");
        assert_eq!(entries(&p), [(0, before.heap.unwrap())], "{case}");
        assert_eq!(value(&completed(p.run(&add(&[])))), json!(2), "{case}: the head is where it was");
        assert_eq!(open(&house, &p), 0, "{case}");
    }
}

#[test]
fn a_cancelled_run_leaves_the_queue_and_the_others_continue() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let first = p.run(&RunJsRequest { wait_ms: Some(0), ..add(&[json!({"spin": 3_000})]) }).unwrap();
    p.gives_up(add(&[]), 500);
    assert_eq!(value(&completed(p.run(&add(&[])))), json!(2));
    let states: Vec<ExecutionState> = p.runs().iter().map(|run| run.state).collect();
    assert_eq!(states, [ExecutionState::Completed, ExecutionState::Cancelled, ExecutionState::Completed]);
    assert_eq!(value(&p.execution(&first.id.to_string())), json!(1));
}

/// A disconnect is not a cancellation, and a run that has ended cannot be cancelled.
#[test]
fn a_disconnected_run_continues_and_an_ended_one_stays_ended() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    p.leaves(&add(&[json!({"spin": 60})]), 20);
    p.leaves(&add(&[json!({"spin": 1_000})]), 500);
    p.rest(5_000);
    assert_eq!(p.runs().iter().map(value).collect::<Vec<_>>(), [json!(2), json!(1)]);
    let became = ExecutionIdCell::default();
    completed(p.run(&RunJsRequest { id_cell: Some(became.clone()), ..add(&[]) }));
    p.block(p.service.cancel_unanswered_js(&local(), &became)).unwrap();
    p.block(p.service.cancel_unanswered_js(&local(), &ExecutionIdCell::default())).unwrap();
    assert!(p.runs().iter().all(|run| run.state == ExecutionState::Completed));
    assert_eq!(entries(&p).len(), 3);
}

/// Another process changed the session meanwhile: the same run is cancelled, and no second one is started.
#[test]
fn a_cancelled_run_is_not_restarted_when_another_process_moved_its_session() {
    let house = JsHarness::new();
    let (p, other) = (house.process(), house.process());
    p.block(harness::open(&p.service));
    let (became, me) = (ExecutionIdCell::default(), local());
    let asked = RunJsRequest { id_cell: Some(became.clone()), ..add(&[json!({"spin": 80})]) };
    p.block(async {
        tokio::select! {
            answered = p.service.run_js(&me, &asked) => panic!("{answered:?}"),
            () = async {
                completed(other.service.run_js(&me, &add(&[])).await);
                tokio::time::sleep(Duration::from_millis(30)).await;
            } => {}
        }
        p.service.cancel_unanswered_js(&me, &became).await.unwrap();
    });
    p.rest(2_000);
    let mut states: Vec<&str> = p.runs().iter().map(|run| run.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!((states, entries(&p).len()), (vec!["cancelled", "completed"], 1));
}

#[test]
fn a_cancel_is_retried_while_the_storage_fails() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&add(&[])));
    let (became, me) = (ExecutionIdCell::default(), local());
    p.leaves(&RunJsRequest { id_cell: Some(became.clone()), ..add(&[json!({"spin": 5_000})]) }, 500);
    house.house.faults.fail_always(Operation::Commit, Fault::Unavailable);
    p.block(async {
        let healed = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            house.house.faults.heal();
        };
        let (given_up, ()) = tokio::join!(p.service.cancel_unanswered_js(&me, &became), healed);
        given_up.unwrap();
    });
    p.rest(10_000);
    assert_eq!((p.runs()[0].state, entries(&p).len()), (ExecutionState::Cancelled, 1));
}
