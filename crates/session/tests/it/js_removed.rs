//! Sessions that are removed while JavaScript runs in them, or before it is asked to.

use serde_json::json;
use session::{RunJs, State};

use crate::house;
use crate::js_house::{JsHouse, completed, local, logical, timer, value};

#[test]
fn a_session_that_was_removed_takes_no_run() {
    let house = JsHouse::new();
    let (p, other) = (house.process(), house.process());
    p.block(house::open(&p.service));
    let ran = completed(p.run(&logical("s0", json!([{"set": ["x", 1]}]))));
    // By another process: nobody tells this one.
    other.block(other.service.remove_session(&local(), "s0")).unwrap();
    for wait_ms in [0, 10_000] {
        let asked = RunJs { wait_ms: Some(wait_ms), ..logical("s0", json!([{"get": "x"}])) };
        assert_eq!(p.run(&asked).unwrap_err().code(), "no_session");
    }
    // What it had answered is there.
    assert_eq!(p.execution(&ran.id.to_string()).state, State::Completed);
    assert_eq!(p.block(p.service.executions(&local(), None, 10)).unwrap().len(), 1);
}

#[test]
fn runs_under_way_in_a_session_that_is_removed_end() {
    let house = JsHouse::new();
    let (p, other) = (house.process(), house.process());
    p.block(house::open(&p.service));
    completed(p.run(&logical("s0", json!([{"set": ["x", 1]}]))));
    let later = |program| p.run(&RunJs { wait_ms: Some(0), ..logical("s0", program) }).unwrap();
    let (first, second) = (later(json!([timer(1_000), {"get": "x"}])), later(json!([{"get": "x"}])));
    assert_eq!((first.state, second.state), (State::Running, State::Queued));
    other.block(other.service.remove_session(&local(), "s0")).unwrap();
    p.rest(5_000);
    let (first, second) = (p.execution(&first.id.to_string()), p.execution(&second.id.to_string()));
    assert_eq!(value(&first), json!(1));
    assert_eq!(second.state, State::Cancelled);
    assert!(second.error.unwrap().message.contains("removed"));
    // Nobody finds them again.
    assert_eq!(other.resume(), 0);
}
