//! Traces and metrics on in-memory ports: what is recorded of a call, who can read it, and that no call waits for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::LogicalSessionId;
use session::{CallRecord, CollectionOptions, Exporter, Retention};
use testkit::faults::{Fault, Operation};

use crate::harness::{self, Harness, caller, finished, me, open, program_of};

fn call(tool: &str, at: i64) -> CallRecord {
    CallRecord { at, ms: 3, tool: tool.to_owned(), outcome: "ok".to_owned(), ..CallRecord::default() }
}

#[tokio::test]
async fn a_trace_has_a_calls_steps_and_receipts_for_its_own_tenant_only() {
    let house = Harness::working();
    let service = house.service();
    open(&service).await;
    let ran = finished(service.run(&me(), &harness::forced(harness::THREE)).await);
    service.record(&me(), "s0", call("plasm_run", 5).with_run(&ran).with_answer("## result (3 rows)"));
    service.record(&me(), "s9", call("plasm", 6).with_answer("nobody's"));
    assert_eq!(service.trace(&me(), "s0").await.unwrap(), [], "not yet written");
    service.write_traces().await.unwrap();
    let calls = service.trace(&me(), "task").await.unwrap();
    assert_eq!((calls.len(), calls[0].tool.as_str(), calls[0].at), (1, "plasm_run", 5));
    assert_eq!(calls[0].program.as_deref(), Some(harness::THREE));
    assert_eq!((calls[0].plan, calls[0].uri.as_deref()), (Some(ran.plan), Some("plasm://session/s0/r/1")));
    assert!(!calls[0].steps.is_empty() && calls[0].steps.iter().all(|step| step.rows.is_some()));
    assert_eq!(calls[0].receipts, ["demo:ticket_open done"; 3]);
    assert_eq!((calls[0].answer.as_str(), calls[0].answer_chars), ("## result (3 rows)", 18));
    assert_eq!(service.trace(&caller("other", "a"), "task").await.unwrap_err().code(), "bad_ref");
}

#[tokio::test]
async fn a_trace_keeps_the_newest_calls_in_order() {
    let house = Harness::working();
    let service = Arc::into_inner(house.service()).unwrap();
    let service = service.with_retention(Retention { trace_calls: 100, ..Retention::default() });
    open(&service).await;
    let start = harness::START.0;
    for n in 0..300 {
        service.record(&me(), "s0", call("plasm", start + n));
    }
    service.write_traces().await.unwrap();
    let newest: Vec<i64> = service.trace(&me(), "s0").await.unwrap().iter().map(|call| call.at - start).collect();
    assert_eq!(newest, (200..300).collect::<Vec<i64>>());
    let gone = service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(gone.rows.get("trace"), Some(&192), "in portions of 64");
    assert_eq!(service.trace(&me(), "s0").await.unwrap().len(), 100);
    house.clock.advance(Duration::from_secs(31 * 24 * 60 * 60));
    service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(service.trace(&me(), "s0").await.unwrap(), []);
}

#[tokio::test]
async fn a_storage_failure_loses_only_the_trace() {
    let house = Harness::working();
    let service = house.service();
    open(&service).await;
    house.faults.fail_always(Operation::Commit, Fault::Full);
    service.record(&me(), "s0", call("plasm", 1));
    service.write_traces().await.unwrap_err();
    house.faults.heal();
    finished(service.run(&me(), &program_of("Project(\"OPS\")")).await);
    for n in 0..5_000 {
        service.record(&me(), "s0", call("plasm", n));
    }
    service.write_traces().await.unwrap();
    assert!(service.metrics().contains("tokamak_trace_calls_dropped_total 904\n"), "{}", service.metrics());
}

#[derive(Default)]
struct Heard(Mutex<Vec<(LogicalSessionId, String)>>);

impl Exporter for Heard {
    fn export(&self, session: LogicalSessionId, call: &CallRecord) {
        self.0.lock().unwrap().push((session, call.tool.clone()));
    }
}

#[tokio::test]
async fn metrics_have_few_labels_and_calls_reach_the_exporter() {
    let house = Harness::working();
    let service = house.service();
    let heard = Arc::new(Heard::default());
    service.export_calls_to(heard.clone());
    open(&service).await;
    finished(service.run(&me(), &harness::forced(harness::THREE)).await);
    service.count_call("plasm_run", "ok", 0.002);
    service.count_call("plasm_run", "bad_program", 0.001);
    service.record(&me(), "s0", call("plasm_run", 1));
    service.write_traces().await.unwrap();
    assert_eq!(heard.0.lock().unwrap()[0].1, "plasm_run");
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
