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
    self, Harness, REMARKS, REMARKS_AT, THREE, TICKETS_AT, commit_of, detached, finished, forced, me, plan, program_of,
    running, states,
};

const DEAD: Duration = Duration::from_secs(21);

/// The API answers the first effect at once, and the second one when the gate opens.
fn stuck_at_the_second(path: &str) -> (Harness, Arc<Notify>) {
    let (house, gate) = (Harness::new(), Arc::new(Notify::new()));
    let row = json!({"project": "OPS", "number": 1, "id": 1});
    house.upstream.add(Rule::post(path).once().json(201, row.clone()));
    house.upstream.add(Rule::post(path).waits_for(&gate).once().json(201, row));
    house.works();
    (house, gate)
}

#[test]
fn a_run_without_waiting_gets_a_handle_at_once_and_its_result_later() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let process = house.process();
    process.open();
    let operation = running(process.run(detached(THREE)));
    assert_eq!((operation.handle.as_str(), operation.stopping), ("s0_o1", false));
    process.block(house.upstream.arrived(2));
    let operation = running(process.ask("wait(s0_o1)"));
    assert_eq!((operation.progress.effects_done, operation.progress.steps), (1, 2));
    gate.notify_one();
    let ended = finished(process.ask("wait(s0_o1)"));
    assert_eq!((states(&ended.outcome.receipts), ended.replayed), (vec!["done"; 3], false));
    // As often as it is asked, also in another process.
    let later = finished(house.process().ask("wait(s0_o1)"));
    assert_eq!((&later.outcome.receipts, later.number), (&ended.outcome.receipts, ended.number));
    assert_eq!(house.sent().len(), 3);
}

#[test]
fn a_run_longer_than_the_inline_time_becomes_an_operation() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let process = house.process_with(Limits { inline_ms: 50, ..Limits::default() });
    process.open();
    assert_eq!(running(process.run(forced(THREE))).handle, "s0_o1");
    gate.notify_one();
    assert_eq!(states(&finished(process.ask("wait(s0_o1)")).outcome.receipts), ["done"; 3]);
    // Among other steps an operation is a value.
    let both = finished(process.ask("a = wait(s0_o1)\na"));
    assert_eq!(both.outcome.returns.len(), 1);
}

#[test]
fn a_cancelled_run_stops_before_its_next_effect_and_reports_it() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let process = house.process();
    process.open();
    running(process.run(detached(THREE)));
    process.block(house.upstream.arrived(2));
    let stopping = running(process.ask("cancel(s0_o1)"));
    assert!(stopping.stopping);
    gate.notify_one();
    let ended = finished(process.ask("wait(s0_o1)"));
    assert!(ended.outcome.cancelled && ended.outcome.failed());
    // The effect in progress is awaited.
    assert_eq!((states(&ended.outcome.receipts), house.sent().len()), (vec!["done"; 2], 2));
    // A run that has ended cannot be cancelled.
    assert!(finished(process.ask("cancel(s0_o1)")).outcome.cancelled);
}

#[test]
fn another_process_can_cancel_a_run() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let (one, two) = (house.process(), house.process());
    one.open();
    running(one.run(detached(THREE)));
    one.block(house.upstream.arrived(2));
    assert!(running(two.ask("cancel(s0_o1)")).stopping);
    // The owner reads the cancellation with its next heartbeat.
    one.rest(6);
    gate.notify_one();
    let ended = finished(one.ask("wait(s0_o1)"));
    assert_eq!((ended.outcome.cancelled, house.sent().len()), (true, 2));
}

#[test]
fn a_leaving_caller_stops_its_run_before_the_next_effect_and_receipts_are_kept() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let process = house.process();
    process.open();
    process.block(async {
        let commit = plan(&process.service, THREE).await;
        let service = process.service.clone();
        let call = tokio::spawn(async move { service.run(&me(), &commit_of(&commit)).await });
        house.upstream.arrived(2).await;
        call.abort();
        let _ = call.await;
        gate.notify_one();
    });
    process.rest(1);
    let kept = finished(process.run(commit_of("pc0")));
    assert!(kept.replayed && kept.outcome.cancelled);
    assert_eq!((states(&kept.outcome.receipts), house.sent().len()), (vec!["done"; 2], 2));
}

#[test]
fn another_process_sees_an_active_run_and_does_not_start_it() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let (one, two) = (house.process(), house.process());
    one.open();
    let commit = one.block(plan(&one.service, THREE));
    running(one.run(RunRequest { wait: Some(false), ..commit_of(&commit) }));
    one.block(house.upstream.arrived(2));
    // The owner is alive and renews its heartbeat every few seconds.
    for _ in 0..8 {
        house.clock.advance(Duration::from_secs(5));
        one.rest(6);
        let seen = running(two.ask("wait(s0_o1)"));
        assert_eq!((seen.progress.effects_done, seen.handle.as_str()), (1, "s0_o1"));
        assert_eq!(running(two.run(commit_of(&commit))).handle, "s0_o1");
    }
    gate.notify_one();
    finished(one.ask("wait(s0_o1)"));
    let (asked, again) = (finished(two.ask("wait(s0_o1)")), finished(two.run(commit_of(&commit))));
    assert_eq!((asked.replayed, again.replayed, house.sent().len()), (false, true, 3));
}

#[test]
fn a_takeover_repeats_keyed_effects_under_their_key() {
    let (house, _gate) = stuck_at_the_second(TICKETS_AT);
    let one = house.process();
    one.open();
    let commit = one.block(plan(&one.service, THREE));
    running(one.run(RunRequest { wait: Some(false), ..commit_of(&commit) }));
    one.block(house.upstream.arrived(2));
    drop(one);
    let two = house.process();
    assert_eq!(running(two.ask("wait(s0_o1)")).handle, "s0_o1", "it may still live");
    house.clock.advance(DEAD);
    let ended = finished(two.ask("wait(s0_o1)"));
    let receipts = &ended.outcome.receipts;
    assert_eq!(states(receipts), ["done"; 3]);
    let resolved: Vec<_> = receipts.iter().map(|r| r.resolved.clone()).collect();
    assert_eq!(resolved, [Some(Resolved::Earlier), Some(Resolved::Repeated), None]);
    assert_eq!(["one", "two", "three"].map(|title| house.times(title)), [1, 2, 1]);
    let keys = house.keys("two");
    assert!(!keys[0].is_empty() && keys[0] == keys[1], "{keys:?}");
    // The commit knows the operation, and so does a third process.
    let replayed = finished(house.process().run(commit_of(&commit)));
    assert_eq!((replayed.replayed, replayed.number), (true, ended.number));
}

#[test]
fn an_effect_without_a_probe_stays_unknown_and_stops_later_ones() {
    let (house, _gate) = stuck_at_the_second(REMARKS_AT);
    let one = house.process();
    one.open();
    running(one.run(detached(REMARKS)));
    one.block(house.upstream.arrived(2));
    drop(one);
    house.clock.advance(DEAD);
    let two = house.process();
    let ended = finished(two.ask("wait(s0_o1)"));
    assert_eq!(states(&ended.outcome.receipts), ["done", "unknown"]);
    assert!(ended.outcome.failed());
    assert_eq!(["one", "two", "three"].map(|text| house.times(text)), [1, 1, 0]);
}

#[test]
fn a_resumed_run_that_reads_other_rows_reports_its_earlier_effects() {
    let house = Harness::new();
    let gate = Arc::new(Notify::new());
    let list = |rows: &[u32]| {
        let data: Vec<_> = rows.iter().map(|n| json!({"project": "OPS", "number": n})).collect();
        Rule::get("/api/tickets").json(200, json!({"data": data, "total": rows.len()}))
    };
    house.upstream.add(list(&[1, 2, 3]).once());
    house.upstream.add(list(&[3]));
    let at = |n: u32| Rule::post(&format!("/api/projects/OPS/tickets/{n}/close"));
    house.upstream.add(at(1).json(200, json!({"project": "OPS", "number": 1})));
    house.upstream.add(at(2).json(200, json!({"project": "OPS", "number": 2})));
    house.upstream.add(at(3).waits_for(&gate).json(200, json!({"project": "OPS", "number": 3})));
    let one = house.process();
    one.open();
    running(one.run(detached(r#"Ticket{state=open}.limit(3) => _.close(note="bye")"#)));
    one.block(house.upstream.arrived(4));
    drop(one);
    house.clock.advance(DEAD);
    let ended = finished(house.process().ask("wait(s0_o1)"));
    // Row 1 is another ticket now, so the old plan has no effect on it.
    assert!(ended.outcome.failed());
    assert_eq!(states(&ended.outcome.receipts), ["done", "done", "unknown"]);
    assert_eq!(house.sent().len(), 3);
}

#[test]
fn of_two_processes_that_take_a_run_over_one_succeeds() {
    for path in [TICKETS_AT, REMARKS_AT] {
        let program = if path == TICKETS_AT { THREE } else { REMARKS };
        let (house, _gate) = stuck_at_the_second(path);
        let one = house.process();
        one.open();
        running(one.run(detached(program)));
        one.block(house.upstream.arrived(2));
        drop(one);
        house.clock.advance(DEAD);
        let (two, three) = (house.service(), house.service());
        let ask = |service: &Arc<session::Service>| {
            let service = service.clone();
            async move { service.run(&me(), &program_of("wait(s0_o1)")).await }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let answers = runtime.block_on(async {
            let calls = [&two, &three, &two, &three].map(|service| tokio::spawn(ask(service)));
            let mut answers = Vec::new();
            for call in calls {
                answers.push(call.await.unwrap().unwrap());
            }
            answers
        });
        let ended: Vec<u64> = answers.into_iter().filter_map(|a| a.finished()).map(|ran| ran.number).collect();
        assert!(!ended.is_empty() && ended.iter().all(|n| *n == ended[0]), "{ended:?}");
        assert!(["one", "two", "three"].iter().all(|text| house.times(text) <= 2));
        assert_eq!(house.times("one"), 1);
        assert_eq!(house.times("three"), usize::from(path == TICKETS_AT));
    }
}

#[test]
fn a_paused_process_has_no_further_effect_after_a_takeover() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let (one, two) = (house.process(), house.process());
    one.open();
    running(one.run(detached(THREE)));
    one.block(house.upstream.arrived(2));
    house.clock.advance(DEAD);
    let ended = finished(two.ask("wait(s0_o1)"));
    assert_eq!(states(&ended.outcome.receipts), ["done"; 3]);
    let sent = house.sent().len();
    // The paused process wakes up, gets its answer, and tries to continue.
    gate.notify_one();
    one.rest(30);
    assert_eq!((house.sent().len(), house.times("three")), (sent, 1));
    let asked = finished(one.ask("wait(s0_o1)"));
    assert_eq!((asked.number, states(&asked.outcome.receipts)), (ended.number, vec!["done"; 3]));
}

#[test]
fn an_unknown_outcome_does_not_replace_a_known_one() {
    let (house, gate) = stuck_at_the_second(REMARKS_AT);
    let (one, two) = (house.process(), house.process());
    one.open();
    running(one.run(detached(REMARKS)));
    one.block(house.upstream.arrived(2));
    house.clock.advance(DEAD);
    assert_eq!(states(&finished(two.ask("wait(s0_o1)")).outcome.receipts), ["done", "unknown"]);
    gate.notify_one();
    one.rest(30);
    // The paused process learned the outcome of the second effect and stores it. It starts no third one.
    let stored = receipts(&house);
    assert_eq!(states(&stored), ["done", "done"]);
    assert_eq!(house.sent().len(), 2);
}

#[test]
fn a_known_answer_stays_when_the_answer_of_the_repetition_is_lost() {
    let (house, gate, lost) = (Harness::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let row = json!({"project": "OPS", "number": 1});
    let timeout = |label| ports::upstream::Error::Timeout { label, ms: 10 };
    house.upstream.add(Rule::post(TICKETS_AT).once().json(201, row.clone()));
    house.upstream.add(Rule::post(TICKETS_AT).waits_for(&gate).once().json(201, row));
    house.upstream.add(Rule::post(TICKETS_AT).waits_for(&lost).once().fails(timeout));
    house.upstream.add(Rule::post(TICKETS_AT).fails(timeout));
    let (one, two) = (house.process(), house.process());
    one.open();
    running(one.run(detached(THREE)));
    one.block(house.upstream.arrived(2));
    house.clock.advance(DEAD);
    running(two.ask("wait(s0_o1)"));
    assert_eq!(house.times("two"), 2, "sent again under its key");
    // The paused process wakes up and stores its answer; then the other process learns that its own answer was lost.
    gate.notify_one();
    one.rest(1);
    assert_eq!(states(&receipts(&house)), ["done", "done"]);
    lost.notify_one();
    let ended = finished(two.ask("wait(s0_o1)"));
    assert_eq!((states(&receipts(&house)), house.times("three")), (vec!["done", "done"], 0));
    assert_eq!(states(&ended.outcome.receipts), ["done", "done"]);
}

fn receipts(house: &Harness) -> Vec<exec::Receipt> {
    let rows = house.store.rows().into_iter().filter(|(key, _)| key.table == ports::store::Table::Receipt);
    rows.map(|(_, row)| serde_json::from_slice(&row.value).unwrap()).collect()
}

#[test]
fn a_cancelled_run_stays_cancelled_after_a_takeover() {
    let (house, _gate) = stuck_at_the_second(TICKETS_AT);
    let one = house.process();
    one.open();
    running(one.run(detached(THREE)));
    one.block(house.upstream.arrived(2));
    running(one.ask("cancel(s0_o1)"));
    drop(one);
    house.clock.advance(DEAD);
    let ended = finished(house.process().ask("wait(s0_o1)"));
    assert!(ended.outcome.cancelled);
    // The outcome of the second effect is unknown, and no request was sent to find out.
    assert_eq!((states(&ended.outcome.receipts), house.sent().len()), (vec!["done", "unknown"], 2));
}

#[test]
fn a_process_that_dies_before_its_run_has_a_handle_leaves_receipts() {
    let (house, _gate) = stuck_at_the_second(TICKETS_AT);
    let one = house.process();
    one.open();
    let commit = one.block(plan(&one.service, THREE));
    one.block(async {
        let service = one.service.clone();
        let request = commit_of(&commit);
        tokio::spawn(async move { service.run(&me(), &request).await });
        house.upstream.arrived(2).await;
    });
    drop(one);
    for _ in 0..2 {
        let answer = house.process().run(commit_of(&commit));
        assert_eq!(states(&harness::told(&answer)), ["done", "open"]);
        assert_eq!(answer.unwrap_err().code(), "interrupted");
    }
    assert_eq!(house.sent().len(), 2);
}

#[test]
fn a_run_whose_handle_cannot_be_stored_is_awaited() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let process = house.process();
    process.open();
    house.faults.fail(Operation::Commit, 1, Fault::Unavailable);
    house.faults.fail(Operation::Commit, 2, Fault::LostAfter);
    gate.notify_one();
    let answer = process.run(detached(r#"Ticket.open(project="OPS", title="one")"#));
    // Its caller learns the outcome in both cases.
    let told = harness::told(&answer);
    match answer {
        Ok(session::RunAnswer::Running(operation)) => {
            let ended = finished(process.ask(&format!("wait({})", operation.handle)));
            assert_eq!(ended.outcome.receipts.len(), house.sent().len());
        }
        _ => assert_eq!(told.len(), house.sent().len()),
    }
}

#[test]
fn an_operation_whose_result_could_not_be_stored_is_finished_later() {
    let (house, gate) = stuck_at_the_second(TICKETS_AT);
    let process = house.process_with(Limits { row_bytes: 0, ..Limits::default() });
    process.open();
    running(process.run(detached(THREE)));
    process.block(house.upstream.arrived(2));
    house.faults.fail_always(Operation::PutBlob, Fault::Full);
    gate.notify_one();
    let failed = process.ask("wait(s0_o1)");
    assert_eq!(states(&harness::told(&failed)), ["done"; 3]);
    assert_eq!(failed.unwrap_err().code(), "storage_full");
    house.faults.heal();
    house.clock.advance(DEAD);
    let ended = finished(process.ask("wait(s0_o1)"));
    assert_eq!((states(&ended.outcome.receipts), house.sent().len()), (vec!["done"; 3], 3));
    assert!(ended.outcome.receipts.iter().all(|r| r.state == ReceiptState::Done));
}

#[test]
fn foreign_and_unknown_handles_are_refused() {
    let house = Harness::working();
    let process = house.process();
    process.open();
    process.block(harness::open_as(&process.service, &me(), "another task"));
    running_or_done(&process);
    for program in ["wait(s0_o9)", "cancel(s0_o9)"] {
        assert_eq!(process.ask(program).unwrap_err().code(), "no_handle");
    }
    let foreign = RunRequest { session: "s1".into(), ..program_of("wait(s0_o1)") };
    let refused = process.run(foreign).unwrap_err();
    assert!(format!("{refused} {refused:?}").contains("s1_o1"), "{refused:?}");
}

fn running_or_done(process: &harness::Process) {
    process.run(detached(THREE)).unwrap();
}
