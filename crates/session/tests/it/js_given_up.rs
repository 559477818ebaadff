//! Calls that are given up before they are answered: their run ends as cancelled and moves nothing, however far it was.

use std::time::Duration;

use serde_json::{Value, json};
use session::{Became, Execution, RunJs, State};
use testkit::faults::{Fault, Operation};

use crate::house;
use crate::js_brief::{add, entries, open};
use crate::js_house::{JsHouse, Process, completed, local, timer, value};

impl Process {
    /// Asks, and goes after so many milliseconds.
    fn leaves(&self, asked: &RunJs, after: u64) {
        let me = local();
        self.block(async {
            tokio::select! {
                answered = self.service.run_js(&me, asked) => panic!("{answered:?}"),
                () = tokio::time::sleep(Duration::from_millis(after)) => {}
            }
        });
    }

    fn gives_up(&self, asked: RunJs, after: u64) {
        let became = Became::default();
        self.leaves(&RunJs { became: Some(became.clone()), ..asked }, after);
        self.block(self.service.give_up_js(&local(), &became)).unwrap();
    }

    fn runs(&self) -> Vec<Execution> {
        self.block(self.service.executions(&local(), None, 10)).unwrap()
    }
}

#[test]
fn a_run_is_cancelled_whether_it_is_stored_or_not_and_moves_nothing() {
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
        let house = JsHouse::new();
        let p = house.process();
        p.block(house::open(&p.service));
        let before = completed(p.run(&add(&[])));
        p.gives_up(RunJs { wait_ms: Some(wait_ms), ..add(&program) }, after);
        let states: Vec<State> = p.runs().iter().map(|run| run.state).collect();
        assert_eq!(states, [State::Cancelled, State::Completed], "{case}");
        p.rest(20_000);
        assert_eq!(p.runs()[0].state, State::Cancelled, "{case}");
        assert_eq!(entries(&p), [(0, before.heap.unwrap())], "{case}");
        assert_eq!(value(&completed(p.run(&add(&[])))), json!(2), "{case}: the head is where it was");
        assert_eq!(open(&house, &p), 0, "{case}");
    }
}

#[test]
fn one_that_waits_for_its_turn_loses_it_and_the_others_go_on() {
    let house = JsHouse::new();
    let p = house.process();
    p.block(house::open(&p.service));
    let first = p.run(&RunJs { wait_ms: Some(0), ..add(&[json!({"spin": 3_000})]) }).unwrap();
    p.gives_up(add(&[]), 500);
    assert_eq!(value(&completed(p.run(&add(&[])))), json!(2));
    let states: Vec<State> = p.runs().iter().map(|run| run.state).collect();
    assert_eq!(states, [State::Completed, State::Cancelled, State::Completed]);
    assert_eq!(value(&p.execution(&first.id.to_string())), json!(1));
}

/// Who only goes away has given nothing up; nor has one whose run has ended.
#[test]
fn a_call_that_is_left_alone_goes_on_and_one_that_ended_stays_ended() {
    let house = JsHouse::new();
    let p = house.process();
    p.block(house::open(&p.service));
    p.leaves(&add(&[json!({"spin": 60})]), 20);
    p.leaves(&add(&[json!({"spin": 1_000})]), 500);
    p.rest(5_000);
    assert_eq!(p.runs().iter().map(value).collect::<Vec<_>>(), [json!(2), json!(1)]);
    let became = Became::default();
    completed(p.run(&RunJs { became: Some(became.clone()), ..add(&[]) }));
    p.block(p.service.give_up_js(&local(), &became)).unwrap();
    p.block(p.service.give_up_js(&local(), &Became::default())).unwrap();
    assert!(p.runs().iter().all(|run| run.state == State::Completed));
    assert_eq!(entries(&p).len(), 3);
}

/// Another process moved the session meanwhile: it is still this run that is given up, not one more that is begun.
#[test]
fn a_session_that_another_process_moved_does_not_begin_it_again() {
    let house = JsHouse::new();
    let (p, other) = (house.process(), house.process());
    p.block(house::open(&p.service));
    let (became, me) = (Became::default(), local());
    let asked = RunJs { became: Some(became.clone()), ..add(&[json!({"spin": 80})]) };
    p.block(async {
        tokio::select! {
            answered = p.service.run_js(&me, &asked) => panic!("{answered:?}"),
            () = async {
                completed(other.service.run_js(&me, &add(&[])).await);
                tokio::time::sleep(Duration::from_millis(30)).await;
            } => {}
        }
        p.service.give_up_js(&me, &became).await.unwrap();
    });
    p.rest(2_000);
    let mut states: Vec<&str> = p.runs().iter().map(|run| run.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!((states, entries(&p).len()), (vec!["cancelled", "completed"], 1));
}

#[test]
fn a_storage_that_fails_for_a_while_is_asked_again() {
    let house = JsHouse::new();
    let p = house.process();
    p.block(house::open(&p.service));
    completed(p.run(&add(&[])));
    let (became, me) = (Became::default(), local());
    p.leaves(&RunJs { became: Some(became.clone()), ..add(&[json!({"spin": 5_000})]) }, 500);
    house.house.faults.fail_always(Operation::Commit, Fault::Unavailable);
    p.block(async {
        let healed = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            house.house.faults.heal();
        };
        let (given_up, ()) = tokio::join!(p.service.give_up_js(&me, &became), healed);
        given_up.unwrap();
    });
    p.rest(10_000);
    assert_eq!((p.runs()[0].state, entries(&p).len()), (State::Cancelled, 1));
}
