//! Runs as tasks that clients poll: one name on every connection, invisible to other tenants, valid after a restart.

use std::time::Duration;

use session::{Error, RunAnswer};

use crate::harness::{
    Harness, OPEN_THREE_TICKETS, TICKETS_PATH, caller, detached_request, expect_finished, expect_running, local_caller,
    open_session_as, receipt_states,
};

#[test]
fn a_task_is_queried_without_waiting_until_it_has_a_result() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    let task = expect_running(process.run(detached_request(OPEN_THREE_TICKETS))).task;
    process.block_on(harness.upstream.arrived(2));
    let other = caller("local", "another connection");
    let state = process.block_on(process.service.task(&other, &task, false)).unwrap();
    assert_eq!(expect_running(state.answer).progress.effects_done, 1);
    allow_answer.notify_one();
    process.run_for_secs(1);
    harness.clock.advance(Duration::from_secs(60));
    let ended = process.block_on(process.service.task(&other, &task, false)).unwrap();
    assert_eq!(ended.started, state.started);
    assert_eq!(receipt_states(&expect_finished(ended.answer).outcome.receipts), ["done"; 3]);
    // The task stays available: for another process, and for a caller that wants to cancel it.
    let later = harness.process();
    let cancel_answer = later.block_on(later.service.task(&local_caller(), &task, true)).unwrap();
    assert!(!expect_finished(cancel_answer.answer).outcome.cancelled);
    assert_eq!(harness.sent_bodies().len(), 3);
}

#[test]
fn a_task_of_a_dead_process_continues_in_the_queried_process() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    let task = expect_running(process.run(detached_request(OPEN_THREE_TICKETS))).task;
    process.block_on(harness.upstream.arrived(2));
    drop(process);
    let next = harness.process();
    let state = next.block_on(next.service.task(&local_caller(), &task, false)).unwrap();
    assert!(matches!(state.answer, Ok(RunAnswer::Running(_))), "{state:?}");
    next.run_for_secs(1);
    let ended = next.block_on(next.service.task(&local_caller(), &task, false)).unwrap();
    assert_eq!(receipt_states(&expect_finished(ended.answer).outcome.receipts), ["done"; 3]);
}

#[test]
fn a_cancelled_task_stops_before_its_next_effect() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    let task = expect_running(process.run(detached_request(OPEN_THREE_TICKETS))).task;
    process.block_on(harness.upstream.arrived(2));
    let cancelled = process.block_on(process.service.task(&local_caller(), &task, true)).unwrap();
    assert!(expect_running(cancelled.answer).stopping);
    allow_answer.notify_one();
    process.run_for_secs(1);
    let ended = expect_finished(process.block_on(process.service.task(&local_caller(), &task, false)).unwrap().answer);
    assert!(ended.outcome.cancelled);
    assert_eq!(receipt_states(&ended.outcome.receipts), ["done"; 2]);
    assert_eq!(harness.sent_bodies().len(), 2);
}

#[test]
fn unknown_and_foreign_task_names_get_the_same_refusal() {
    let harness = Harness::with_working_api();
    let process = harness.process();
    process.open_session();
    let task = match process.run(detached_request(OPEN_THREE_TICKETS)).unwrap() {
        RunAnswer::Running(operation) => operation.task,
        RunAnswer::Finished(_) => panic!("a detached run is not awaited"),
    };
    let stranger = caller("another", "a");
    process.block_on(open_session_as(&process.service, &stranger, "task"));
    let (session, _) = task.split_once('_').unwrap();
    let unknown = [format!("{session}_o2"), format!("{session}_o01"), format!("{session}_o+1"), session.to_owned()];
    let malformed = ["", "_o1", "s0_o1", "00000000-0000-4000-8000-000000000000_o1"].map(str::to_owned);
    for cancel in [false, true] {
        for name in unknown.iter().chain(&malformed) {
            let refused = process.block_on(process.service.task(&local_caller(), name, cancel));
            assert!(matches!(refused, Err(Error::NoHandle(_))), "{name}: {refused:?}");
        }
        let refused = process.block_on(process.service.task(&stranger, &task, cancel));
        assert!(matches!(refused, Err(Error::NoHandle(_))), "{refused:?}");
    }
    assert!(process.block_on(process.service.task(&local_caller(), &task, false)).is_ok());
}
