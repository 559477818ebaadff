//! Short runs, which are stored once: one commit each, no partial state, and no lost work when two processes meet.

use std::time::Duration;

use base::Digest;
use ports::Store;
use ports::store::{Range, Table};
use serde_json::{Value, json};
use session::{Execution, ExecutionState, RunJsRequest, SessionTarget};
use testkit::faults::{Fault, Operation};

use crate::harness;
use crate::js_harness::{JsHarness, Process, code, completed, local, logical, value};

pub fn add(more: &[Value]) -> RunJsRequest {
    let mut program = more.to_vec();
    program.extend([json!({"add": ["n", 1]}), json!({"print": "added\n"}), json!({"get": "n"})]);
    logical("s0", json!(program))
}

/// The number of unended runs, as a starting process sees it.
pub fn open(house: &JsHarness, p: &Process) -> usize {
    let range = Range {
        tenant: base::TenantId::local(),
        table: Table::OpenExecution,
        prefix: String::new(),
        after: None,
        limit: 100,
    };
    p.block(house.house.store.scan(&range)).unwrap().len()
}

pub fn entries(p: &Process) -> Vec<(u64, Digest)> {
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    log.iter().map(|entry| (entry.index, entry.output_heap)).collect()
}

#[test]
fn a_short_run_takes_one_commit_with_the_same_rows_as_a_long_one() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&add(&[])));
    let before = house.house.faults.calls(Operation::Commit);
    let ran = completed(p.run(&add(&[])));
    assert_eq!(house.house.faults.calls(Operation::Commit) - before, 1);
    assert_eq!((value(&ran), ran.output_lines), (json!(2), 1));
    assert_eq!(p.execution(&ran.id.to_string()).heap, ran.heap);
    assert_eq!(entries(&p).last(), Some(&(1, ran.heap.unwrap())));
    assert_eq!(open(&house, &p), 0);
    // A run that throws is stored too, and moves no head.
    let before = house.house.faults.calls(Operation::Commit);
    let threw = p.run(&logical("s0", json!([{"throw": "no"}]))).unwrap();
    assert_eq!((threw.state, house.house.faults.calls(Operation::Commit) - before), (ExecutionState::Failed, 1));
    assert_eq!(p.execution(&threw.id.to_string()).state, ExecutionState::Failed);
    assert_eq!(entries(&p).len(), 2);
    // A run outside of sessions behaves in the same way.
    let before = house.house.faults.calls(Operation::Commit);
    completed(p.run(&code(json!([{"set": ["x", 1]}]))));
    assert_eq!(house.house.faults.calls(Operation::Commit) - before, 1);
}

/// An answered run exists; a refused one does not exist or ends; no run counts twice.
#[test]
fn a_fault_at_the_only_commit_leaves_a_run_that_ended_once_or_none() {
    for fault in [Fault::Unavailable, Fault::LostAfter, Fault::Conflict] {
        for nth in 1..=3 {
            let house = JsHarness::new();
            let p = house.process();
            p.block(harness::open(&p.service));
            completed(p.run(&add(&[])));
            for later in 0..nth {
                house.house.faults.fail(Operation::Commit, 1 + later, fault);
            }
            let answered = p.run(&add(&[]));
            drop(p);
            house.house.faults.heal();
            let p = house.process();
            p.resume();
            p.rest(5_000);
            let all = p.block(p.service.executions(&local(), None, 10)).unwrap();
            assert!(all.iter().all(|e| e.state == ExecutionState::Completed), "{fault:?} {nth}: {all:?}");
            if let Ok(answered) = &answered {
                let found = all.iter().find(|e| e.id == answered.id);
                assert_eq!(found.map(value), Some(json!(2)), "{fault:?} {nth}");
            }
            assert_eq!(entries(&p).len(), all.len(), "{fault:?} {nth}");
            assert_eq!(value(&completed(p.run(&add(&[])))), json!(all.len() + 1), "{fault:?} {nth}");
            assert_eq!(open(&house, &p), 0);
        }
    }
}

#[test]
fn a_session_that_another_process_changed_gets_both_runs() {
    for (mine, theirs) in [(60, 20), (20, 60), (300, 20), (300, 150), (40, 40), (90, 110)] {
        let house = JsHarness::new();
        let (p, other) = (house.process(), house.process());
        p.block(harness::open(&p.service));
        completed(p.run(&add(&[])));
        let (a, b) = (add(&[json!({"spin": mine})]), add(&[json!({"spin": theirs})]));
        let me = local();
        let both = async { tokio::join!(p.service.run_js(&me, &a), other.service.run_js(&me, &b)) };
        let (a, b) = p.block(both);
        let mut values = [value(&completed(a)), value(&completed(b))].map(|value| value.as_i64().unwrap());
        values.sort_unstable();
        assert_eq!(values, [2, 3], "{mine} {theirs}");
        let log = entries(&p);
        assert_eq!(log.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(value(&completed(p.run(&add(&[])))), json!(4));
        assert_eq!(open(&house, &p), 0);
    }
}

#[test]
fn a_long_run_is_stored_while_active_and_can_be_finished_by_another_process() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let (asked, me) = (add(&[json!({"spin": 5_000})]), local());
    // The caller leaves after half a second, and the process dies soon after.
    let early = p.block(async {
        tokio::select! {
            _ = p.service.run_js(&me, &asked) => None,
            () = tokio::time::sleep(Duration::from_millis(500)) => Some(p.service.executions(&me, None, 10).await.unwrap()),
        }
    });
    let early: Vec<Execution> = early.unwrap();
    assert_eq!(early.iter().map(|e| e.state).collect::<Vec<_>>(), [ExecutionState::Running]);
    assert_eq!(open(&house, &p), 1);
    // The next run queues behind it.
    let next = p.run(&RunJsRequest { wait_ms: Some(200), ..add(&[]) }).unwrap();
    assert_eq!(next.state, ExecutionState::Queued);
    drop(p);
    let p = house.process();
    assert_eq!(p.resume(), 2);
    p.rest(20_000);
    let values = [early[0].id, next.id].map(|id| value(&p.execution(&id.to_string())));
    assert_eq!(values, [json!(1), json!(2)]);
    assert_eq!(open(&house, &p), 0);
}

/// A step on an outdated heap is not awaited, and its time does not count against the run.
#[test]
fn a_long_run_whose_session_changed_restarts_at_once_with_its_full_time() {
    let house = JsHarness::new();
    let (p, other) = (house.process(), house.process());
    p.block(harness::open(&p.service));
    let asked = RunJsRequest { timeout_ms: Some(6_000), ..add(&[json!({"spin": 5_000})]) };
    let (theirs, me) = (add(&[json!({"spin": 20})]), local());
    let took = p.block(async {
        let started = tokio::time::Instant::now();
        let (a, b) = tokio::join!(p.service.run_js(&me, &asked), other.service.run_js(&me, &theirs));
        assert_eq!((value(&completed(a)), value(&completed(b))), (json!(2), json!(1)));
        started.elapsed()
    });
    assert!(took < Duration::from_millis(5_500), "{took:?}");
}

#[test]
fn simultaneous_runs_are_bounded_and_each_is_answered_in_time() {
    let mut house = JsHarness::new();
    house.settings.queue = 5;
    let p = house.process();
    p.block(harness::open(&p.service));
    let (asked, me) = (RunJsRequest { wait_ms: Some(400), ..add(&[json!({"spin": 90})]) }, local());
    let answers = p.block(async {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..30 {
            let (service, asked, me) = (p.service.clone(), asked.clone(), me.clone());
            calls.spawn(async move {
                let started = tokio::time::Instant::now();
                (service.run_js(&me, &asked).await, started.elapsed())
            });
        }
        calls.join_all().await
    });
    let busy = answers.iter().filter(|(answer, _)| matches!(answer, Err(error) if error.code() == "busy")).count();
    let slowest = answers.iter().map(|(_, took)| *took).max().unwrap();
    assert!(slowest < Duration::from_millis(600), "{slowest:?}");
    // The first run, those that followed it, and a queue of five.
    assert!((20..=26).contains(&busy), "{busy} of 30 were refused");
    p.rest(10_000);
    let all = p.block(p.service.executions(&local(), None, 100)).unwrap();
    assert!(all.len() == 30 - busy && all.iter().all(|e| e.state == ExecutionState::Completed), "{all:?}");
    let values: std::collections::BTreeSet<i64> = all.iter().map(|e| value(e).as_i64().unwrap()).collect();
    assert_eq!(values.len(), all.len());
    assert_eq!(entries(&p).len(), all.len());
}
