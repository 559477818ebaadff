//! Sessions of scripts: named sessions, and sessions that are removed before or during a run.

use serde_json::json;
use session::{ExecutionState, RunJsRequest, SessionTarget};

use crate::js_harness::{
    JsHarness, completed_value, expect_completed, local_caller, logical_request, named_request, timer_step,
    unawaited_request,
};

#[test]
fn a_removed_session_accepts_no_run() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    process.open_session();
    let execution = expect_completed(process.run(&logical_request("s0", json!([{"set": ["x", 1]}]))));
    // Another process removes the session without notice to this one.
    other.block_on(other.service.remove_session(&local_caller(), "s0")).unwrap();
    for wait_ms in [0, 10_000] {
        let request = RunJsRequest { wait_ms: Some(wait_ms), ..logical_request("s0", json!([{"get": "x"}])) };
        assert_eq!(process.run(&request).unwrap_err().code(), "no_session");
    }
    // The answer of an earlier run still exists.
    assert_eq!(process.execution(&execution.id.to_string()).state, ExecutionState::Completed);
    assert_eq!(process.block_on(process.service.executions(&local_caller(), None, 10)).unwrap().len(), 1);
}

#[test]
fn active_runs_of_a_removed_session_end() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    process.open_session();
    expect_completed(process.run(&logical_request("s0", json!([{"set": ["x", 1]}]))));
    let run_unawaited =
        |program| process.run(&RunJsRequest { wait_ms: Some(0), ..logical_request("s0", program) }).unwrap();
    let first = run_unawaited(json!([timer_step(1_000), {"get": "x"}]));
    let second = run_unawaited(json!([{"get": "x"}]));
    assert_eq!((first.state, second.state), (ExecutionState::Running, ExecutionState::Queued));
    other.block_on(other.service.remove_session(&local_caller(), "s0")).unwrap();
    process.run_for_ms(5_000);
    let first = process.execution(&first.id.to_string());
    let second = process.execution(&second.id.to_string());
    assert_eq!(completed_value(&first), json!(1));
    assert_eq!(second.state, ExecutionState::Cancelled);
    assert!(second.error.unwrap().message.contains("removed"));
    // No run of the removed session is left to be resumed.
    assert_eq!(other.resume_runs(), 0);
}

#[test]
fn named_sessions_are_listed_resolved_and_removed() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let increment = json!([{"add": ["n", 1]}]);
    assert_eq!(process.run_to_value(&logical_request("s0", increment.clone())), json!(1));
    let id = process.block_on(process.service.session_id(&local_caller(), "s0")).unwrap().to_string();
    let increment_named = |name: &str| named_request(name, increment.clone());
    for name in ["by name", "s7"] {
        expect_completed(process.run(&increment_named(name)));
        process.run_for_ms(10);
    }
    expect_completed(process.run(&increment_named("by name")));
    let listed = process.block_on(process.service.named_sessions(&local_caller())).unwrap().0;
    let listed: Vec<(&str, u64)> = listed.iter().map(|session| (session.name.as_str(), session.js_entries)).collect();
    assert_eq!(listed, [("by name", 2), ("s7", 1)]);
    assert_eq!(process.block_on(process.service.list_sessions(&local_caller(), 1_000)).unwrap().0[0].js_entries, 1);
    let target_of = |reference: &str| process.block_on(process.service.session_target(&local_caller(), reference));
    for reference in ["s0", "task", id.as_str()] {
        assert_eq!(target_of(reference).unwrap(), SessionTarget::Logical(id.clone()), "{reference}");
    }
    for name in ["by name", "never used", "s7"] {
        assert_eq!(target_of(name).unwrap(), SessionTarget::Named(name.to_owned()));
    }
    let unknown_id = base::LogicalSessionId::from_random(ports::Entropy::bytes(harness.memory.entropy.as_ref()));
    assert_eq!(target_of("s8").unwrap_err().code(), "unknown_slot");
    assert_eq!(target_of(&unknown_id.to_string()).unwrap_err().code(), "no_session");
    // A session is removed with its log, so the reused name starts at 0.
    let remove = |name: &str| process.block_on(process.service.remove_named_session(&local_caller(), name));
    let blocked_run = process.run(&unawaited_request("by name", json!([{"hold": "a"}]))).unwrap();
    assert_eq!(remove("by name").unwrap_err().code(), "under_way");
    process.block_on(process.service.cancel_execution(&local_caller(), &blocked_run.id.to_string())).unwrap();
    remove("by name").unwrap();
    assert_eq!(remove("by name").unwrap_err().code(), "no_session");
    expect_completed(process.run(&increment_named("by name")));
    let log = process
        .block_on(process.service.session_log(&local_caller(), &SessionTarget::Named("by name".into())))
        .unwrap();
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0]);
    assert_eq!(process.run_to_value(&logical_request("s0", increment)), json!(2), "the other sessions are unchanged");
}
