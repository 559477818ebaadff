//! Sessions that are removed during runs, or before a run is requested.

use serde_json::json;
use session::{ExecutionState, RunJsRequest};

use crate::harness;
use crate::js_harness::{JsHarness, completed, local, logical, timer, value};

#[test]
fn a_removed_session_accepts_no_run() {
    let house = JsHarness::new();
    let (p, other) = (house.process(), house.process());
    p.block(harness::open(&p.service));
    let ran = completed(p.run(&logical("s0", json!([{"set": ["x", 1]}]))));
    // Removed by another process, without notice to this one.
    other.block(other.service.remove_session(&local(), "s0")).unwrap();
    for wait_ms in [0, 10_000] {
        let asked = RunJsRequest { wait_ms: Some(wait_ms), ..logical("s0", json!([{"get": "x"}])) };
        assert_eq!(p.run(&asked).unwrap_err().code(), "no_session");
    }
    // Its earlier answer still exists.
    assert_eq!(p.execution(&ran.id.to_string()).state, ExecutionState::Completed);
    assert_eq!(p.block(p.service.executions(&local(), None, 10)).unwrap().len(), 1);
}

#[test]
fn active_runs_of_a_removed_session_end() {
    let house = JsHarness::new();
    let (p, other) = (house.process(), house.process());
    p.block(harness::open(&p.service));
    completed(p.run(&logical("s0", json!([{"set": ["x", 1]}]))));
    let later = |program| p.run(&RunJsRequest { wait_ms: Some(0), ..logical("s0", program) }).unwrap();
    let (first, second) = (later(json!([timer(1_000), {"get": "x"}])), later(json!([{"get": "x"}])));
    assert_eq!((first.state, second.state), (ExecutionState::Running, ExecutionState::Queued));
    other.block(other.service.remove_session(&local(), "s0")).unwrap();
    p.rest(5_000);
    let (first, second) = (p.execution(&first.id.to_string()), p.execution(&second.id.to_string()));
    assert_eq!(value(&first), json!(1));
    assert_eq!(second.state, ExecutionState::Cancelled);
    assert!(second.error.unwrap().message.contains("removed"));
    // Its runs cannot be found any more.
    assert_eq!(other.resume(), 0);
}
