//! Traces and metrics on in-memory ports: recorded calls, their visibility, their limits, and their exporter.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::LogicalSessionId;
use session::{CallRecord, CollectionOptions, Exporter, Retention};
use testkit::faults::{Fault, Operation};

use crate::harness::{self, Harness, caller, expect_finished, local_caller, open_session, program_request};

fn call_record(tool: &str, at: i64) -> CallRecord {
    CallRecord { at, ms: 3, tool: tool.to_owned(), outcome: "ok".to_owned(), ..CallRecord::default() }
}

#[tokio::test]
async fn a_trace_shows_steps_and_receipts_of_a_call_to_its_own_tenant_only() {
    let harness = Harness::with_working_api();
    let service = harness.service();
    open_session(&service).await;
    let result =
        expect_finished(service.run(&local_caller(), &harness::forced_request(harness::OPEN_THREE_TICKETS)).await);
    service.record(
        &local_caller(),
        "s0",
        call_record("plasm_run", 5).with_run(&result).with_answer("## result (3 rows)"),
    );
    service.record(&local_caller(), "s9", call_record("plasm", 6).with_answer("nobody's"));
    assert_eq!(service.trace(&local_caller(), "s0").await.unwrap(), [], "not yet written");
    service.write_traces().await.unwrap();
    let calls = service.trace(&local_caller(), "task").await.unwrap();
    assert_eq!((calls.len(), calls[0].tool.as_str(), calls[0].at), (1, "plasm_run", 5));
    assert_eq!(calls[0].program.as_deref(), Some(harness::OPEN_THREE_TICKETS));
    assert_eq!((calls[0].plan, calls[0].uri.as_deref()), (Some(result.plan), Some("plasm://session/s0/r/1")));
    assert!(!calls[0].steps.is_empty() && calls[0].steps.iter().all(|step| step.rows.is_some()));
    assert_eq!(calls[0].receipts, ["demo:ticket_open done"; 3]);
    assert_eq!((calls[0].answer.as_str(), calls[0].answer_chars), ("## result (3 rows)", 18));
    assert_eq!(service.trace(&caller("other", "a"), "task").await.unwrap_err().code(), "bad_ref");
}

#[tokio::test]
async fn a_trace_keeps_the_newest_calls_in_order() {
    let harness = Harness::with_working_api();
    let service = Arc::into_inner(harness.service()).unwrap();
    let service = service.with_retention(Retention { trace_calls: 100, ..Retention::default() });
    open_session(&service).await;
    let start = harness::START.0;
    for n in 0..300 {
        service.record(&local_caller(), "s0", call_record("plasm", start + n));
    }
    service.write_traces().await.unwrap();
    let newest: Vec<i64> =
        service.trace(&local_caller(), "s0").await.unwrap().iter().map(|call| call.at - start).collect();
    assert_eq!(newest, (200..300).collect::<Vec<i64>>());
    let report = service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(report.rows.get("trace"), Some(&192), "rows of 64 calls are deleted whole");
    assert_eq!(service.trace(&local_caller(), "s0").await.unwrap().len(), 100);
    harness.clock.advance(Duration::from_secs(31 * 24 * 60 * 60));
    service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(service.trace(&local_caller(), "s0").await.unwrap(), []);
}

#[tokio::test]
async fn a_storage_failure_loses_only_the_trace() {
    let harness = Harness::with_working_api();
    let service = harness.service();
    open_session(&service).await;
    harness.faults.fail_always(Operation::Commit, Fault::Full);
    service.record(&local_caller(), "s0", call_record("plasm", 1));
    service.write_traces().await.unwrap_err();
    harness.faults.heal();
    expect_finished(service.run(&local_caller(), &program_request("Project(\"OPS\")")).await);
    for n in 0..5_000 {
        service.record(&local_caller(), "s0", call_record("plasm", n));
    }
    service.write_traces().await.unwrap();
    assert!(service.metrics().contains("tokamak_trace_calls_dropped_total 904\n"), "{}", service.metrics());
}

/// Collects the session and the tool of each exported call.
#[derive(Default)]
struct RecordingExporter(Mutex<Vec<(LogicalSessionId, String)>>);

impl Exporter for RecordingExporter {
    fn export(&self, session: LogicalSessionId, call: &CallRecord) {
        self.0.lock().unwrap().push((session, call.tool.clone()));
    }
}

#[tokio::test]
async fn metrics_have_few_labels_and_calls_reach_the_exporter() {
    let harness = Harness::with_working_api();
    let service = harness.service();
    let exporter = Arc::new(RecordingExporter::default());
    service.export_calls_to(exporter.clone());
    open_session(&service).await;
    expect_finished(service.run(&local_caller(), &harness::forced_request(harness::OPEN_THREE_TICKETS)).await);
    service.count_call("plasm_run", "ok", 0.002);
    service.count_call("plasm_run", "bad_program", 0.001);
    service.record(&local_caller(), "s0", call_record("plasm_run", 1));
    service.write_traces().await.unwrap();
    assert_eq!(exporter.0.lock().unwrap()[0].1, "plasm_run");
    let text = service.metrics();
    for line in [
        "tokamak_calls_total{tool=\"plasm_run\",outcome=\"ok\"} 1",
        "tokamak_calls_total{tool=\"plasm_run\",outcome=\"bad_program\"} 1",
        "tokamak_call_seconds_count{tool=\"plasm_run\"} 2",
        "tokamak_upstream_calls_total{origin=\"http://demo.localhost\",status=\"2xx\"} 3",
        "tokamak_sessions_live 1",
        "tokamak_runs_under_way 0",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("tokamak_store_commits_total{outcome=\"ok\"}"), "{text}");
}
