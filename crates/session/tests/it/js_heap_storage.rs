//! How heaps are stored and loaded: slow storage, the limit of a tenant, and loading only what is not in memory.

use std::time::Duration;

use base::Digest;
use ports::Store;
use ports::store::{Batch, Expect, Table};
use serde_json::{Value, json};
use session::{CollectionOptions, Execution, ExecutionState, Retention, RunJsRequest};
use testkit::faults::Operation;

use crate::js_fast_path::{increment_request, log_entries};
use crate::js_harness::{
    JsHarness, Process, completed_value, expect_completed, local_caller, named_request, script_request,
};

/// How long the storage takes for one blob.
const BLOB_WRITE_TIME: Duration = Duration::from_secs(5);

/// Returns a step that makes the heap too large for a row.
fn large_value_step() -> Value {
    json!({"set": ["large", "x".repeat(100_000)]})
}

impl Process {
    /// Returns the answer and how long it took.
    fn run_timed(&self, request: &RunJsRequest) -> (Execution, Duration) {
        let user = local_caller();
        self.block_on(async {
            let started = tokio::time::Instant::now();
            (self.service.run_js(&user, request).await.unwrap(), started.elapsed())
        })
    }
}

fn harness_with_slow_blobs() -> (JsHarness, Process) {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&increment_request(&[])));
    harness.memory.faults.slow(Operation::PutBlob, BLOB_WRITE_TIME);
    (harness, process)
}

#[test]
fn a_run_with_a_large_heap_is_answered_in_time_and_delays_no_other() {
    let (_harness, process) = harness_with_slow_blobs();
    let (execution, took) =
        process.run_timed(&RunJsRequest { wait_ms: Some(1_000), ..increment_request(&[large_value_step()]) });
    assert_eq!(execution.state, ExecutionState::Running);
    assert!((1_000..1_200).contains(&took.as_millis()), "{took:?}");
    let (next, took) = process.run_timed(&RunJsRequest { wait_ms: Some(0), ..increment_request(&[]) });
    assert_eq!(next.state, ExecutionState::Queued);
    assert!(took < Duration::from_millis(50), "{took:?}");
    process.run_for_ms(15_000);
    let values = [&execution, &next].map(|run| completed_value(&process.execution(&run.id.to_string())));
    assert_eq!(values, [json!(2), json!(3)]);
    assert_eq!(log_entries(&process).len(), 3);
}

#[test]
fn a_run_whose_large_heap_is_being_stored_is_cancelled_at_once() {
    let (_harness, process) = harness_with_slow_blobs();
    let (execution, _) =
        process.run_timed(&RunJsRequest { wait_ms: Some(1_000), ..increment_request(&[large_value_step()]) });
    let took = process.block_on(async {
        let started = tokio::time::Instant::now();
        process.service.cancel_execution(&local_caller(), &execution.id.to_string()).await.unwrap();
        started.elapsed()
    });
    assert!(took < Duration::from_millis(50), "{took:?}");
    process.run_for_ms(15_000);
    assert_eq!(
        (process.execution(&execution.id.to_string()).state, log_entries(&process).len()),
        (ExecutionState::Cancelled, 1)
    );
    assert_eq!(process.run_to_value(&increment_request(&[])), json!(2));
}

/// The test also checks that the blob is written once.
#[test]
fn a_large_heap_is_stored_even_if_no_caller_waits() {
    let (harness, process) = harness_with_slow_blobs();
    let before = harness.memory.faults.calls(Operation::PutBlob);
    let (execution, took) = process.run_timed(&increment_request(&[large_value_step()]));
    assert_eq!((completed_value(&execution), harness.memory.faults.calls(Operation::PutBlob) - before), (json!(2), 1));
    assert!(took >= BLOB_WRITE_TIME && took < BLOB_WRITE_TIME + Duration::from_millis(200), "{took:?}");
    process.engine.forget();
    assert_eq!(process.run_to_value(&increment_request(&[])), json!(3));
}

/// Returns a program that stores a megabyte which no other call stores.
fn store_megabyte(n: usize) -> Value {
    json!([{"set": [format!("x{n}"), format!("{n:02}").repeat(500_000)]}])
}

fn harness_with_heap_limit(heaps_mb: u64) -> JsHarness {
    let mut harness = JsHarness::new();
    harness.settings.heaps_mb = heaps_mb;
    harness.retention = Retention { grace_hours: 0, heaps: 0, ..Retention::default() };
    harness
}

#[test]
fn a_tenant_at_its_heap_limit_starts_no_run_until_space_is_freed() {
    let harness = harness_with_heap_limit(8);
    let process = harness.process();
    let mut completed_runs = 0;
    let refused = loop {
        match process.run(&named_request("a", store_megabyte(completed_runs))) {
            Ok(execution) => assert_eq!(execution.state, ExecutionState::Completed),
            Err(error) => break error,
        }
        completed_runs += 1;
        assert!(completed_runs < 20, "the limit has no effect");
    };
    assert!((8..=9).contains(&completed_runs), "{completed_runs}");
    assert_eq!(refused.code(), "no_room");
    assert!(refused.to_string().contains("of the 8 it has"), "{refused}");
    let log = process
        .block_on(process.service.session_log(&local_caller(), &session::SessionTarget::Named("a".into())))
        .unwrap();
    assert_eq!(log.len(), completed_runs, "every answered run is in the log");
    // Another process knows the usage too.
    let other = harness.process();
    assert_eq!(other.run(&script_request(json!([{"get": "n"}]))).unwrap_err().code(), "no_room");
    // The collector stores the exact usage.
    for _ in 0..3 {
        harness.time.advance(Duration::from_secs(60));
        process.block_on(process.service.collect_garbage(CollectionOptions::default())).unwrap();
    }
    expect_completed(process.run(&named_request("a", store_megabyte(99))));
    expect_completed(other.run(&script_request(json!([{"get": "n"}]))));
}

#[test]
fn a_tenant_may_have_its_own_heap_limit() {
    let mut harness = harness_with_heap_limit(1);
    harness.settings.heaps_mb_of = [(base::TenantId::local(), 0)].into();
    let process = harness.process();
    for n in 0..4 {
        expect_completed(process.run(&named_request("a", store_megabyte(n))));
    }
}

/// Returns a request that starts from this heap and fails if the heap is missing.
fn run_on_heap(heap: Digest, program: Value) -> RunJsRequest {
    RunJsRequest { heap: Some(heap.to_string()), require_heap: true, ..script_request(program) }
}

/// Deletes the row of a heap from storage.
fn delete_heap_row(harness: &JsHarness, process: &Process, heap: Digest) {
    let rows = harness.memory.store.rows();
    let (key, _) = rows.iter().find(|(key, _)| key.table == Table::Heap && key.id == heap.to_string()).unwrap();
    process.block_on(harness.memory.store.commit(Batch::default().delete(key.clone(), Expect::Any))).unwrap();
}

#[test]
fn ancestors_are_loaded_only_if_they_are_not_in_memory() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    let empty_process = harness.process();
    let grandparent = expect_completed(process.run(&script_request(json!([{"set": ["x", 1]}])))).heap.unwrap();
    let parent = expect_completed(process.run(&run_on_heap(grandparent, json!([{"set": ["y", 2]}])))).heap.unwrap();
    let child = expect_completed(process.run(&run_on_heap(parent, json!([{"set": ["z", 3]}])))).heap.unwrap();
    assert_eq!(other.run_to_value(&run_on_heap(grandparent, json!([{"get": "x"}]))), json!(1));
    // The other process's engine still has this heap in memory.
    delete_heap_row(&harness, &process, grandparent);
    let sum = json!([{"add": ["x", 10]}, {"get": "x"}]);
    assert_eq!(other.run_to_value(&run_on_heap(child, sum.clone())), json!(11));
    // A process with an empty engine needs the whole chain, and reports the missing part.
    let execution = empty_process.run(&run_on_heap(child, sum)).unwrap();
    let error = execution.error.unwrap();
    assert_eq!((execution.state, error.name.as_str()), (ExecutionState::Failed, "damaged_heap"));
    assert!(error.message.contains(&grandparent.to_string()), "{error:?}");
}
