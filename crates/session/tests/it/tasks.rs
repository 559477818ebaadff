//! Operations under the name that clients poll: the same on every connection, invisible to other tenants, and valid
//! after a restart.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use session::{Error, RunAnswer};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness::{Harness, THREE, TICKETS_AT, caller, detached, finished, me, open_as, running, states};

fn stuck() -> (Harness, Arc<Notify>) {
    let (house, gate) = (Harness::new(), Arc::new(Notify::new()));
    let row = json!({"project": "OPS", "number": 1, "id": 1});
    house.upstream.add(Rule::post(TICKETS_AT).once().json(201, row.clone()));
    house.upstream.add(Rule::post(TICKETS_AT).waits_for(&gate).once().json(201, row));
    house.works();
    (house, gate)
}

#[test]
fn a_task_is_queried_without_waiting_until_it_has_a_result() {
    let (house, gate) = stuck();
    let process = house.process();
    process.open();
    let task = running(process.run(detached(THREE))).task;
    process.block(house.upstream.arrived(2));
    let other = caller("local", "another connection");
    let state = process.block(process.service.task(&other, &task, false)).unwrap();
    assert_eq!(running(state.answer).progress.effects_done, 1);
    gate.notify_one();
    process.rest(1);
    house.clock.advance(Duration::from_secs(60));
    let ended = process.block(process.service.task(&other, &task, false)).unwrap();
    assert_eq!(ended.started, state.started);
    assert_eq!(states(&finished(ended.answer).outcome.receipts), ["done"; 3]);
    // The task stays available: for another process, and for a caller that wants to cancel it.
    let later = house.process();
    let again = later.block(later.service.task(&me(), &task, true)).unwrap();
    assert!(!finished(again.answer).outcome.cancelled);
    assert_eq!(house.sent().len(), 3);
}

#[test]
fn a_task_of_a_dead_process_continues_in_the_queried_process() {
    let (house, _gate) = stuck();
    let process = house.process();
    process.open();
    let task = running(process.run(detached(THREE))).task;
    process.block(house.upstream.arrived(2));
    drop(process);
    let next = house.process();
    let state = next.block(next.service.task(&me(), &task, false)).unwrap();
    assert!(matches!(state.answer, Ok(RunAnswer::Running(_))), "{state:?}");
    house.clock.advance(Duration::from_secs(21));
    next.block(next.service.task(&me(), &task, false)).unwrap();
    next.rest(1);
    let ended = next.block(next.service.task(&me(), &task, false)).unwrap();
    assert_eq!(states(&finished(ended.answer).outcome.receipts), ["done"; 3]);
}

#[test]
fn a_cancelled_task_stops_before_its_next_effect() {
    let (house, gate) = stuck();
    let process = house.process();
    process.open();
    let task = running(process.run(detached(THREE))).task;
    process.block(house.upstream.arrived(2));
    let told = process.block(process.service.task(&me(), &task, true)).unwrap();
    assert!(running(told.answer).stopping);
    gate.notify_one();
    process.rest(1);
    let ended = finished(process.block(process.service.task(&me(), &task, false)).unwrap().answer);
    assert!(ended.outcome.cancelled);
    assert_eq!(states(&ended.outcome.receipts), ["done"; 2]);
    assert_eq!(house.sent().len(), 2);
}

#[test]
fn unknown_and_foreign_task_names_get_the_same_refusal() {
    let house = Harness::working();
    let process = house.process();
    process.open();
    let task = match process.run(detached(THREE)).unwrap() {
        RunAnswer::Running(operation) => operation.task,
        RunAnswer::Finished(_) => panic!("it was not to be waited for"),
    };
    let stranger = caller("another", "a");
    process.block(open_as(&process.service, &stranger, "task"));
    let (session, _) = task.split_once('_').unwrap();
    let nothing = [format!("{session}_o2"), format!("{session}_o01"), format!("{session}_o+1"), session.to_owned()];
    let junk = ["", "_o1", "s0_o1", "00000000-0000-4000-8000-000000000000_o1"].map(str::to_owned);
    for cancel in [false, true] {
        for name in nothing.iter().chain(&junk) {
            let refused = process.block(process.service.task(&me(), name, cancel));
            assert!(matches!(refused, Err(Error::NoHandle(_))), "{name}: {refused:?}");
        }
        let refused = process.block(process.service.task(&stranger, &task, cancel));
        assert!(matches!(refused, Err(Error::NoHandle(_))), "{refused:?}");
    }
    assert!(process.block(process.service.task(&me(), &task, false)).is_ok());
}
