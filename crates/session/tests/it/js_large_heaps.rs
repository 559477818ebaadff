//! Heaps that are stored as blobs in slow storage: callers are answered in time, and the session continues.

use std::time::Duration;

use serde_json::{Value, json};
use session::{Execution, ExecutionState, RunJsRequest};
use testkit::faults::Operation;

use crate::harness;
use crate::js_fast_path::{add, entries};
use crate::js_harness::{JsHarness, Process, completed, local, value};

const SLOW: Duration = Duration::from_secs(5);

fn large() -> Value {
    json!({"set": ["large", "x".repeat(100_000)]})
}

impl Process {
    /// The answer, and how long it took.
    fn timed(&self, asked: &RunJsRequest) -> (Execution, Duration) {
        let me = local();
        self.block(async {
            let began = tokio::time::Instant::now();
            (self.service.run_js(&me, asked).await.unwrap(), began.elapsed())
        })
    }
}

fn slow_house() -> (JsHarness, Process) {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&add(&[])));
    house.house.faults.slow(Operation::PutBlob, SLOW);
    (house, p)
}

#[test]
fn a_run_with_a_large_heap_is_answered_in_time_and_delays_no_other() {
    let (_house, p) = slow_house();
    let (ran, took) = p.timed(&RunJsRequest { wait_ms: Some(1_000), ..add(&[large()]) });
    assert_eq!(ran.state, ExecutionState::Running);
    assert!((1_000..1_200).contains(&took.as_millis()), "{took:?}");
    let (next, took) = p.timed(&RunJsRequest { wait_ms: Some(0), ..add(&[]) });
    assert_eq!(next.state, ExecutionState::Queued);
    assert!(took < Duration::from_millis(50), "{took:?}");
    p.rest(15_000);
    let values = [&ran, &next].map(|run| value(&p.execution(&run.id.to_string())));
    assert_eq!(values, [json!(2), json!(3)]);
    assert_eq!(entries(&p).len(), 3);
}

#[test]
fn a_run_whose_large_heap_is_being_stored_is_cancelled_at_once() {
    let (_house, p) = slow_house();
    let (ran, _) = p.timed(&RunJsRequest { wait_ms: Some(1_000), ..add(&[large()]) });
    let took = p.block(async {
        let began = tokio::time::Instant::now();
        p.service.cancel_execution(&local(), &ran.id.to_string()).await.unwrap();
        began.elapsed()
    });
    assert!(took < Duration::from_millis(50), "{took:?}");
    p.rest(15_000);
    assert_eq!((p.execution(&ran.id.to_string()).state, entries(&p).len()), (ExecutionState::Cancelled, 1));
    assert_eq!(value(&completed(p.run(&add(&[])))), json!(2));
}

/// The object is put once.
#[test]
fn a_large_heap_is_stored_even_if_no_caller_waits() {
    let (house, p) = slow_house();
    let before = house.house.faults.calls(Operation::PutBlob);
    let (ran, took) = p.timed(&add(&[large()]));
    assert_eq!((value(&ran), house.house.faults.calls(Operation::PutBlob) - before), (json!(2), 1));
    assert!(took >= SLOW && took < SLOW + Duration::from_millis(200), "{took:?}");
    p.engine.forget();
    assert_eq!(value(&completed(p.run(&add(&[])))), json!(3));
}
