//! Runs that outlive their call: handles, cancellation, callers that leave, processes that die, and takeovers.

use std::sync::Arc;
use std::time::Duration;

use base::Limits;
use exec::{ReceiptState, Resolved};
use serde_json::json;
use session::RunRequest;
use testkit::faults::{Fault, Operation};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness::{
    self, ADD_THREE_COMMENTS, COMMENTS_PATH, Harness, OPEN_THREE_TICKETS, TICKETS_PATH, commit_request,
    detached_request, expect_finished, expect_running, forced_request, local_caller, plan_commit, program_request,
    receipt_states,
};

#[test]
fn a_run_without_waiting_gets_a_handle_at_once_and_its_result_later() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    let operation = expect_running(process.run(detached_request(OPEN_THREE_TICKETS)));
    assert_eq!((operation.handle.as_str(), operation.stopping), ("s0_o1", false));
    process.block_on(harness.upstream.arrived(2));
    let operation = expect_running(process.run_program("wait(s0_o1)"));
    assert_eq!((operation.progress.effects_done, operation.progress.steps), (1, 2));
    allow_answer.notify_one();
    let ended = expect_finished(process.run_program("wait(s0_o1)"));
    assert_eq!((receipt_states(&ended.outcome.receipts), ended.replayed), (vec!["done"; 3], false));
    // The result can be read again, also in another process.
    let later = expect_finished(harness.process().run_program("wait(s0_o1)"));
    assert_eq!((&later.outcome.receipts, later.number), (&ended.outcome.receipts, ended.number));
    assert_eq!(harness.sent_bodies().len(), 3);
}

#[test]
fn a_run_longer_than_the_inline_time_becomes_an_operation() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process_with(Limits { inline_ms: 50, ..Limits::default() });
    process.open_session();
    assert_eq!(expect_running(process.run(forced_request(OPEN_THREE_TICKETS))).handle, "s0_o1");
    allow_answer.notify_one();
    assert_eq!(receipt_states(&expect_finished(process.run_program("wait(s0_o1)")).outcome.receipts), ["done"; 3]);
    // The result of `wait` is a value that another step can use.
    let both = expect_finished(process.run_program("a = wait(s0_o1)\na"));
    assert_eq!(both.outcome.returns.len(), 1);
}

#[test]
fn a_cancelled_run_stops_before_its_next_effect_and_reports_it() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    expect_running(process.run(detached_request(OPEN_THREE_TICKETS)));
    process.block_on(harness.upstream.arrived(2));
    let stopping = expect_running(process.run_program("cancel(s0_o1)"));
    assert!(stopping.stopping);
    allow_answer.notify_one();
    let ended = expect_finished(process.run_program("wait(s0_o1)"));
    assert!(ended.outcome.cancelled && ended.outcome.failed());
    // The effect in progress is awaited.
    assert_eq!((receipt_states(&ended.outcome.receipts), harness.sent_bodies().len()), (vec!["done"; 2], 2));
    // A run that has ended cannot be cancelled.
    assert!(expect_finished(process.run_program("cancel(s0_o1)")).outcome.cancelled);
}

#[test]
fn another_process_can_cancel_a_run() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let owner = harness.process();
    let other = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(OPEN_THREE_TICKETS)));
    owner.block_on(harness.upstream.arrived(2));
    assert!(expect_running(other.run_program("cancel(s0_o1)")).stopping);
    // The owner reads the cancellation with its next heartbeat.
    owner.run_for_secs(6);
    allow_answer.notify_one();
    let ended = expect_finished(owner.run_program("wait(s0_o1)"));
    assert_eq!((ended.outcome.cancelled, harness.sent_bodies().len()), (true, 2));
}

#[test]
fn a_disconnected_caller_stops_its_run_before_the_next_effect_and_receipts_are_stored() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    process.block_on(async {
        let commit = plan_commit(&process.service, OPEN_THREE_TICKETS).await;
        let service = process.service.clone();
        let call = tokio::spawn(async move { service.run(&local_caller(), &commit_request(&commit)).await });
        harness.upstream.arrived(2).await;
        call.abort();
        let _ = call.await;
        allow_answer.notify_one();
    });
    process.run_for_secs(1);
    let stored = expect_finished(process.run(commit_request("pc0")));
    assert!(stored.replayed && stored.outcome.cancelled);
    assert_eq!((receipt_states(&stored.outcome.receipts), harness.sent_bodies().len()), (vec!["done"; 2], 2));
}

#[test]
fn another_process_sees_an_active_run_and_does_not_start_it() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let owner = harness.process();
    let other = harness.process();
    owner.open_session();
    let commit = owner.block_on(plan_commit(&owner.service, OPEN_THREE_TICKETS));
    expect_running(owner.run(RunRequest { wait: Some(false), ..commit_request(&commit) }));
    owner.block_on(harness.upstream.arrived(2));
    // The owner is alive and renews its heartbeat every few seconds.
    for _ in 0..8 {
        harness.clock.advance(Duration::from_secs(5));
        owner.run_for_secs(6);
        let operation = expect_running(other.run_program("wait(s0_o1)"));
        assert_eq!((operation.progress.effects_done, operation.handle.as_str()), (1, "s0_o1"));
        assert_eq!(expect_running(other.run(commit_request(&commit))).handle, "s0_o1");
    }
    allow_answer.notify_one();
    expect_finished(owner.run_program("wait(s0_o1)"));
    let waited = expect_finished(other.run_program("wait(s0_o1)"));
    let by_commit = expect_finished(other.run(commit_request(&commit)));
    assert_eq!((waited.replayed, by_commit.replayed, harness.sent_bodies().len()), (false, true, 3));
}

#[test]
fn a_takeover_repeats_keyed_effects_under_their_key() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let owner = harness.process();
    owner.open_session();
    let commit = owner.block_on(plan_commit(&owner.service, OPEN_THREE_TICKETS));
    expect_running(owner.run(RunRequest { wait: Some(false), ..commit_request(&commit) }));
    owner.block_on(harness.upstream.arrived(2));
    drop(owner);
    let other = harness.process();
    let ended = expect_finished(other.run_program("wait(s0_o1)"));
    let receipts = &ended.outcome.receipts;
    assert_eq!(receipt_states(receipts), ["done"; 3]);
    let resolved: Vec<_> = receipts.iter().map(|r| r.resolved.clone()).collect();
    assert_eq!(resolved, [Some(Resolved::Earlier), Some(Resolved::Repeated), None]);
    assert_eq!(["one", "two", "three"].map(|title| harness.times_sent(title)), [1, 2, 1]);
    let keys = harness.idempotency_keys("two");
    assert!(!keys[0].is_empty() && keys[0] == keys[1], "{keys:?}");
    // The commit knows the operation, and so does a third process.
    let replayed = expect_finished(harness.process().run(commit_request(&commit)));
    assert_eq!((replayed.replayed, replayed.number), (true, ended.number));
}

#[test]
fn an_effect_without_a_probe_stays_unknown_and_stops_later_ones() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(COMMENTS_PATH);
    let owner = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(ADD_THREE_COMMENTS)));
    owner.block_on(harness.upstream.arrived(2));
    drop(owner);
    let other = harness.process();
    let ended = expect_finished(other.run_program("wait(s0_o1)"));
    assert_eq!(receipt_states(&ended.outcome.receipts), ["done", "unknown"]);
    assert!(ended.outcome.failed());
    assert_eq!(["one", "two", "three"].map(|text| harness.times_sent(text)), [1, 1, 0]);
}

#[test]
fn a_resumed_run_that_reads_other_rows_reports_its_earlier_effects() {
    let harness = Harness::new();
    let allow_answer = Arc::new(Notify::new());
    let ticket_list = |rows: &[u32]| {
        let data: Vec<_> = rows.iter().map(|n| json!({"project": "OPS", "number": n})).collect();
        Rule::get("/api/tickets").json(200, json!({"data": data, "total": rows.len()}))
    };
    harness.upstream.add(ticket_list(&[1, 2, 3]).once());
    harness.upstream.add(ticket_list(&[3]));
    let close_ticket = |n: u32| Rule::post(&format!("/api/projects/OPS/tickets/{n}/close"));
    harness.upstream.add(close_ticket(1).json(200, json!({"project": "OPS", "number": 1})));
    harness.upstream.add(close_ticket(2).json(200, json!({"project": "OPS", "number": 2})));
    harness.upstream.add(close_ticket(3).waits_for(&allow_answer).json(200, json!({"project": "OPS", "number": 3})));
    let owner = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(r#"Ticket{state=open}.limit(3) => _.close(note="bye")"#)));
    owner.block_on(harness.upstream.arrived(4));
    drop(owner);
    let ended = expect_finished(harness.process().run_program("wait(s0_o1)"));
    // Row 1 is another ticket now, so the old plan has no effect on it.
    assert!(ended.outcome.failed());
    assert_eq!(receipt_states(&ended.outcome.receipts), ["done", "done", "unknown"]);
    assert_eq!(harness.sent_bodies().len(), 3);
}

#[test]
fn only_one_of_two_takeovers_of_a_run_succeeds() {
    for path in [TICKETS_PATH, COMMENTS_PATH] {
        let program = if path == TICKETS_PATH { OPEN_THREE_TICKETS } else { ADD_THREE_COMMENTS };
        let (harness, _allow_answer) = Harness::with_stuck_second_write(path);
        let owner = harness.process();
        owner.open_session();
        expect_running(owner.run(detached_request(program)));
        owner.block_on(harness.upstream.arrived(2));
        drop(owner);
        let other = harness.service();
        let third = harness.service();
        let wait_for_run = |service: &Arc<session::Service>| {
            let service = service.clone();
            async move { service.run(&local_caller(), &program_request("wait(s0_o1)")).await }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let answers = runtime.block_on(async {
            let calls = [&other, &third, &other, &third].map(|service| tokio::spawn(wait_for_run(service)));
            let mut answers = Vec::new();
            for call in calls {
                answers.push(call.await.unwrap().unwrap());
            }
            answers
        });
        let run_numbers: Vec<u64> =
            answers.into_iter().filter_map(|a| a.finished()).map(|result| result.number).collect();
        assert!(
            !run_numbers.is_empty() && run_numbers.iter().all(|number| *number == run_numbers[0]),
            "{run_numbers:?}"
        );
        assert!(["one", "two", "three"].iter().all(|text| harness.times_sent(text) <= 2));
        assert_eq!(harness.times_sent("one"), 1);
        assert_eq!(harness.times_sent("three"), usize::from(path == TICKETS_PATH));
    }
}

#[test]
fn a_paused_process_has_no_further_effect_after_a_takeover() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let owner = harness.process();
    let other = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(OPEN_THREE_TICKETS)));
    owner.block_on(harness.upstream.arrived(2));
    owner.lose_leases();
    let ended = expect_finished(other.run_program("wait(s0_o1)"));
    assert_eq!(receipt_states(&ended.outcome.receipts), ["done"; 3]);
    let sent = harness.sent_bodies().len();
    // The paused process wakes up, gets its answer, and tries to continue.
    allow_answer.notify_one();
    owner.run_for_secs(30);
    assert_eq!((harness.sent_bodies().len(), harness.times_sent("three")), (sent, 1));
    let waited = expect_finished(owner.run_program("wait(s0_o1)"));
    assert_eq!((waited.number, receipt_states(&waited.outcome.receipts)), (ended.number, vec!["done"; 3]));
}

#[test]
fn an_unknown_outcome_does_not_replace_a_known_one() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(COMMENTS_PATH);
    let owner = harness.process();
    let other = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(ADD_THREE_COMMENTS)));
    owner.block_on(harness.upstream.arrived(2));
    owner.lose_leases();
    assert_eq!(
        receipt_states(&expect_finished(other.run_program("wait(s0_o1)")).outcome.receipts),
        ["done", "unknown"]
    );
    allow_answer.notify_one();
    owner.run_for_secs(30);
    // The paused process learned the outcome of the second effect and stores it. It starts no third one.
    let stored = stored_receipts(&harness);
    assert_eq!(receipt_states(&stored), ["done", "done"]);
    assert_eq!(harness.sent_bodies().len(), 2);
}

#[test]
fn a_known_answer_stays_when_the_answer_of_the_repetition_is_lost() {
    let harness = Harness::new();
    let allow_answer = Arc::new(Notify::new());
    let allow_timeout = Arc::new(Notify::new());
    let row = json!({"project": "OPS", "number": 1});
    let timeout = |label| ports::upstream::Error::Timeout { label, ms: 10 };
    harness.upstream.add(Rule::post(TICKETS_PATH).once().json(201, row.clone()));
    harness.upstream.add(Rule::post(TICKETS_PATH).waits_for(&allow_answer).once().json(201, row));
    harness.upstream.add(Rule::post(TICKETS_PATH).waits_for(&allow_timeout).once().fails(timeout));
    harness.upstream.add(Rule::post(TICKETS_PATH).fails(timeout));
    let owner = harness.process();
    let other = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(OPEN_THREE_TICKETS)));
    owner.block_on(harness.upstream.arrived(2));
    owner.lose_leases();
    expect_running(other.run_program("wait(s0_o1)"));
    assert_eq!(harness.times_sent("two"), 2, "the effect is repeated under its key");
    // The paused process wakes up and stores its answer; then the other process learns that its own answer was lost.
    allow_answer.notify_one();
    owner.run_for_secs(1);
    assert_eq!(receipt_states(&stored_receipts(&harness)), ["done", "done"]);
    allow_timeout.notify_one();
    let ended = expect_finished(other.run_program("wait(s0_o1)"));
    assert_eq!((receipt_states(&stored_receipts(&harness)), harness.times_sent("three")), (vec!["done", "done"], 0));
    assert_eq!(receipt_states(&ended.outcome.receipts), ["done", "done"]);
}

fn stored_receipts(harness: &Harness) -> Vec<exec::Receipt> {
    let rows = harness.store.rows().into_iter().filter(|(key, _)| key.table == ports::store::Table::Receipt);
    rows.map(|(_, row)| serde_json::from_slice(&row.value).unwrap()).collect()
}

#[test]
fn a_cancelled_run_stays_cancelled_after_a_takeover() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let owner = harness.process();
    owner.open_session();
    expect_running(owner.run(detached_request(OPEN_THREE_TICKETS)));
    owner.block_on(harness.upstream.arrived(2));
    expect_running(owner.run_program("cancel(s0_o1)"));
    drop(owner);
    let ended = expect_finished(harness.process().run_program("wait(s0_o1)"));
    assert!(ended.outcome.cancelled);
    // The outcome of the second effect is unknown, and no request was sent to find out.
    assert_eq!((receipt_states(&ended.outcome.receipts), harness.sent_bodies().len()), (vec!["done", "unknown"], 2));
}

#[test]
fn a_claimed_run_of_a_dead_process_goes_on_when_its_commit_is_sent_again() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let commit = run_commit_until_a_kill(&harness, OPEN_THREE_TICKETS);
    for replayed in [false, true] {
        let ended = expect_finished(harness.process().run(commit_request(&commit)));
        assert_eq!((receipt_states(&ended.outcome.receipts), ended.replayed), (vec!["done"; 3], replayed));
    }
    assert_eq!(["one", "two", "three"].map(|title| harness.times_sent(title)), [1, 2, 1]);
}

#[test]
fn a_claimed_run_of_a_dead_process_goes_on_although_nobody_asks() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let commit = run_commit_until_a_kill(&harness, OPEN_THREE_TICKETS);
    let next = harness.process();
    assert_eq!(next.recover_programs(), 1);
    next.run_for_secs(1);
    assert_eq!((next.recover_programs(), harness.sent_bodies().len()), (0, 4));
    let ended = expect_finished(next.run(commit_request(&commit)));
    assert_eq!((receipt_states(&ended.outcome.receipts), ended.replayed), (vec!["done"; 3], true));
}

#[test]
fn a_forced_run_whose_caller_was_cut_off_by_a_kill_ends_as_interrupted_with_its_receipts() {
    let (harness, _allow_answer) = Harness::with_stuck_second_write(COMMENTS_PATH);
    let owner = harness.process();
    owner.open_session();
    owner.block_on(async {
        let service = owner.service.clone();
        tokio::spawn(async move { service.run(&local_caller(), &forced_request(ADD_THREE_COMMENTS)).await });
        harness.upstream.arrived(2).await;
    });
    drop(owner);
    let next = harness.process();
    assert_eq!(next.recover_programs(), 1);
    next.run_for_secs(1);
    let artifact = next.block_on(next.service.artifact(&local_caller(), "plasm://session/s0/r/1")).unwrap();
    assert_eq!(receipt_states(&artifact.receipts), ["done", "unknown"]);
    assert!(artifact.returns[0].error.as_deref().unwrap().starts_with("interrupted: "), "{:?}", artifact.returns);
    assert_eq!((next.recover_programs(), harness.sent_bodies().len()), (0, 2));
}

/// Starts a run by its commit and kills the process during the second effect. Returns the commit.
fn run_commit_until_a_kill(harness: &Harness, program: &str) -> String {
    let owner = harness.process();
    owner.open_session();
    let commit = owner.block_on(plan_commit(&owner.service, program));
    owner.block_on(async {
        let (service, request) = (owner.service.clone(), commit_request(&commit));
        tokio::spawn(async move { service.run(&local_caller(), &request).await });
        harness.upstream.arrived(2).await;
    });
    commit
}

#[test]
fn a_run_whose_handle_cannot_be_stored_is_awaited() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process();
    process.open_session();
    harness.faults.fail(Operation::Commit, 1, Fault::Unavailable);
    harness.faults.fail(Operation::Commit, 2, Fault::LostAfter);
    allow_answer.notify_one();
    let answer = process.run(detached_request(r#"Ticket.open(project="OPS", title="one")"#));
    // Its caller learns the outcome in both cases.
    let receipts = harness::answered_receipts(&answer);
    match answer {
        Ok(session::RunAnswer::Running(operation)) => {
            let ended = expect_finished(process.run_program(&format!("wait({})", operation.handle)));
            assert_eq!(ended.outcome.receipts.len(), harness.sent_bodies().len());
        }
        _ => assert_eq!(receipts.len(), harness.sent_bodies().len()),
    }
}

#[test]
fn an_operation_whose_result_could_not_be_stored_is_finished_later() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let process = harness.process_with(Limits { row_bytes: 0, ..Limits::default() });
    process.open_session();
    expect_running(process.run(detached_request(OPEN_THREE_TICKETS)));
    process.block_on(harness.upstream.arrived(2));
    harness.faults.fail_always(Operation::PutBlob, Fault::Full);
    allow_answer.notify_one();
    let failed = process.run_program("wait(s0_o1)");
    assert_eq!(receipt_states(&harness::answered_receipts(&failed)), ["done"; 3]);
    assert_eq!(failed.unwrap_err().code(), "storage_full");
    harness.faults.heal();
    let ended = expect_finished(process.run_program("wait(s0_o1)"));
    assert_eq!((receipt_states(&ended.outcome.receipts), harness.sent_bodies().len()), (vec!["done"; 3], 3));
    assert!(ended.outcome.receipts.iter().all(|r| r.state == ReceiptState::Done));
}

#[test]
fn foreign_and_unknown_handles_are_refused() {
    let harness = Harness::with_working_api();
    let process = harness.process();
    process.open_session();
    process.block_on(harness::open_session_as(&process.service, &local_caller(), "another task"));
    process.run(detached_request(OPEN_THREE_TICKETS)).unwrap();
    for program in ["wait(s0_o9)", "cancel(s0_o9)"] {
        assert_eq!(process.run_program(program).unwrap_err().code(), "no_handle");
    }
    let foreign = RunRequest { session: "s1".into(), ..program_request("wait(s0_o1)") };
    let refused = process.run(foreign).unwrap_err();
    assert!(format!("{refused} {refused:?}").contains("s1_o1"), "{refused:?}");
}
