//! Effects whose answers were lost: they are unknown first, and settle once, by later looks.
//!
//! The time of each process is paused. It is the monotonic clock of that process; the wall clock is the harness's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::{Limits, Method, TenantId};
use ports::store::Table;
use ports::upstream::Error;
use serde_json::json;
use session::{RunRequest, SettledReceipts};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness::{
    Harness, Process, TICKETS_PATH, detached_request, expect_finished, expect_running, forced_request, local_caller,
    program_request, receipt_states,
};

const OPEN_ONE: &str = r#"Ticket.open(project="OPS", title="one")"#;
/// The settle time of the tests: twice the default time limit of a request.
const SETTLE_SECS: u64 = 60;

/// Whether the list of the API shows the ticket by now.
#[derive(Clone, Default)]
struct Shown(Arc<AtomicBool>);

impl Shown {
    fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Returns a harness whose API loses the answer to every write, and lists the ticket once the test says so.
fn with_lost_answers() -> (Harness, Shown) {
    let harness = Harness::new();
    harness.upstream.add(Rule::post(TICKETS_PATH).fails(|label| Error::Lost { label, cause: "reset".into() }));
    let shown = add_list(&harness);
    (harness, shown)
}

fn add_list(harness: &Harness) -> Shown {
    let shown = Shown::default();
    let is_shown = Arc::clone(&shown.0);
    harness.upstream.add(Rule::get("/api/tickets").answers(move |_| {
        let row = json!({"project": "OPS", "number": 7, "title": "one", "labels": []});
        let rows = if is_shown.load(Ordering::SeqCst) { vec![row] } else { Vec::new() };
        let body = json!({"total": rows.len(), "data": rows}).to_string().into_bytes();
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Ok(base::Response { status: 200, headers, body })
    }));
    shown
}

impl Process {
    fn settle(&self) -> SettledReceipts {
        self.block_on(self.service.settle_receipts(&[TenantId::local()])).unwrap()
    }

    /// Lets the background task of the process run for a time.
    fn settle_for_secs(&self, seconds: u64) -> usize {
        let mut closed = 0;
        for _ in 0..seconds.div_ceil(5) {
            self.run_for_secs(5);
            closed += self.settle().closed;
        }
        closed
    }

    fn artifact_states(&self) -> Vec<&'static str> {
        receipt_states(&self.stored_receipts())
    }

    fn stored_receipts(&self) -> Vec<exec::Receipt> {
        let caller = local_caller();
        self.block_on(self.service.artifact(&caller, "plasm://session/s0/r/1")).unwrap().receipts
    }
}

/// The reads that arrived at the API.
fn looks(harness: &Harness) -> usize {
    harness.upstream.calls().iter().filter(|call| call.request.method == Method::Get).count()
}

fn rows_in(harness: &Harness, table: Table) -> usize {
    harness.store.rows().into_iter().filter(|(key, _)| key.table == table).count()
}

fn request_with_id() -> RunRequest {
    RunRequest { request_id: Some("job".to_owned()), ..forced_request(OPEN_ONE) }
}

#[test]
fn an_effect_that_nobody_finds_has_failed_after_two_looks_and_two_settle_times() {
    let (harness, _) = with_lost_answers();
    let process = harness.process();
    process.open_session();
    let ended = expect_finished(process.run(request_with_id()));
    assert_eq!((receipt_states(&ended.outcome.receipts), ended.outcome.receipts[0].settles), (vec!["unknown"], true));
    let at_once = looks(&harness);
    assert_eq!(at_once, 1, "the run itself looks once");
    for _ in 0..2 {
        // The wall clock decides nothing, whether it jumps ahead or back.
        harness.clock.advance(Duration::from_secs(30 * 3600));
        let before = looks(&harness);
        assert_eq!(process.settle().closed, 0);
        process.run_for_secs(SETTLE_SECS - 1);
        harness.clock.set(crate::harness::START);
        assert_eq!((process.settle().closed, looks(&harness), process.artifact_states()), (0, before, vec!["unknown"]));
        process.run_for_secs(1);
        let closed = process.settle().closed;
        assert_eq!(looks(&harness), before + 1);
        assert_eq!(closed, before - at_once, "the first look alone proves nothing");
    }
    assert_eq!(process.artifact_states(), ["failed"]);
    let replayed = expect_finished(process.run(request_with_id()));
    assert_eq!((receipt_states(&replayed.outcome.receipts), replayed.replayed), (vec!["failed"], true));
    // It never changes again, and nothing looks again.
    assert_eq!((process.settle_for_secs(600), looks(&harness)), (0, at_once + 2));
    assert_eq!(rows_in(&harness, Table::Settlement), 0);
}

#[test]
fn a_late_write_is_found_by_a_later_look_and_every_answer_shows_it() {
    let (harness, shown) = with_lost_answers();
    let process = harness.process();
    process.open_session();
    expect_running(process.run(detached_request(OPEN_ONE)));
    let ended = expect_finished(process.run_program("wait(s0_o1)"));
    assert_eq!(receipt_states(&ended.outcome.receipts), ["unknown"]);
    let record = session::CallRecord::default().with_run(&ended);
    assert!(record.receipts[0].contains("unknown"), "{record:?}");
    process.service.record(&local_caller(), "s0", record);
    process.block_on(process.service.write_traces()).unwrap();
    assert_eq!(process.settle_for_secs(SETTLE_SECS), 0);
    shown.set();
    assert_eq!(process.settle_for_secs(2 * SETTLE_SECS), 1);
    let later = expect_finished(process.run_program("wait(s0_o1)"));
    assert_eq!(receipt_states(&later.outcome.receipts), ["done"]);
    assert_eq!(later.outcome.receipts[0].rows[0]["number"], json!(7));
    assert!(later.outcome.failed(), "the result of the run itself never changes");
    assert_eq!(process.artifact_states(), ["done"]);
    let trace = process.block_on(process.service.trace(&local_caller(), "s0")).unwrap();
    assert_eq!(
        (trace[0].receipts.as_slice(), trace[0].unsettled),
        (["demo:ticket_open done".to_owned()].as_slice(), None)
    );
}

#[test]
fn of_two_processes_one_looks_in_a_settle_time() {
    let (harness, _) = with_lost_answers();
    let (one, two) = (harness.process(), harness.process());
    one.open_session();
    expect_finished(one.run(forced_request(OPEN_ONE)));
    let at_once = looks(&harness);
    for process in [&one, &two] {
        assert_eq!(process.settle(), SettledReceipts { closed: 0, next: Some(Duration::from_secs(SETTLE_SECS)) });
    }
    two.run_for_secs(SETTLE_SECS);
    one.run_for_secs(SETTLE_SECS);
    two.settle();
    assert_eq!(looks(&harness), at_once + 1);
    assert_eq!(one.settle().next, Some(Duration::from_secs(SETTLE_SECS)), "it begins to wait again");
    assert_eq!(looks(&harness), at_once + 1);
    one.run_for_secs(SETTLE_SECS);
    assert_eq!((one.settle().closed, looks(&harness)), (1, at_once + 2));
    two.run_for_secs(SETTLE_SECS);
    assert_eq!((two.settle(), looks(&harness)), (SettledReceipts::default(), at_once + 2));
}

#[test]
fn a_restart_waits_the_whole_settle_time_again() {
    let (harness, _) = with_lost_answers();
    let first = harness.process();
    first.open_session();
    expect_finished(first.run(forced_request(OPEN_ONE)));
    first.settle();
    first.run_for_secs(SETTLE_SECS);
    first.settle();
    first.run_for_secs(SETTLE_SECS - 1);
    drop(first);
    let next = harness.process();
    assert_eq!(next.settle(), SettledReceipts { closed: 0, next: Some(Duration::from_secs(SETTLE_SECS)) });
    next.run_for_secs(SETTLE_SECS - 1);
    assert_eq!(next.settle().closed, 0);
    next.run_for_secs(1);
    assert_eq!((next.settle().closed, next.artifact_states()), (1, vec!["failed"]));
}

/// Starts a run whose write is on its way, and lets another process take it over from its frozen owner.
fn taken_over_from_a_frozen_owner() -> (Harness, Process, Process, Arc<Notify>) {
    let harness = Harness::new();
    let allow_answer = Arc::new(Notify::new());
    let row = json!({"project": "OPS", "number": 7, "title": "one", "labels": []});
    harness.upstream.add(Rule::post(TICKETS_PATH).waits_for(&allow_answer).once().json(201, row));
    harness.upstream.add(Rule::post(TICKETS_PATH).fails(|label| Error::Lost { label, cause: "reset".into() }));
    add_list(&harness);
    let (owner, other) = (harness.process(), harness.process());
    owner.open_session();
    expect_running(owner.run(detached_request(OPEN_ONE)));
    owner.block_on(harness.upstream.arrived(1));
    for _ in 0..2 {
        other.recover_programs();
        other.run_for_secs(25);
    }
    let ended = expect_finished(other.run(program_request("wait(s0_o1)")));
    assert_eq!(receipt_states(&ended.outcome.receipts), ["unknown"]);
    (harness, owner, other, allow_answer)
}

#[test]
fn nothing_is_called_failed_while_a_frozen_owner_may_still_send_it() {
    let (_harness, owner, other, allow_answer) = taken_over_from_a_frozen_owner();
    assert_eq!((other.settle_for_secs(3600), other.artifact_states()), (0, vec!["unknown"]));
    allow_answer.notify_one();
    owner.run_for_secs(1);
    assert_eq!(other.artifact_states(), ["done"], "the answer that the frozen owner got");
    assert_eq!((other.settle_for_secs(600), other.artifact_states()), (0, vec!["done"]));
}

#[test]
fn after_the_death_of_the_frozen_owner_the_effect_settles() {
    let (_harness, owner, other, _allow_answer) = taken_over_from_a_frozen_owner();
    assert_eq!(other.settle_for_secs(600), 0);
    drop(owner);
    assert_eq!((other.settle_for_secs(2 * SETTLE_SECS - 10), other.artifact_states()), (0, vec!["unknown"]));
    assert_eq!((other.settle_for_secs(30), other.artifact_states()), (1, vec!["failed"]));
}

#[test]
fn a_receipt_that_a_dead_process_left_open_settles_although_its_run_is_not_continued() {
    let harness = Harness::new();
    let never = Arc::new(Notify::new());
    harness.upstream.add(Rule::post(TICKETS_PATH).waits_for(&never).json(201, json!({})));
    let shown = add_list(&harness);
    let owner = harness.process();
    owner.open_session();
    owner.block_on(async {
        let service = owner.service.clone();
        tokio::spawn(async move { service.run(&local_caller(), &forced_request(OPEN_ONE)).await });
        harness.upstream.arrived(1).await;
    });
    drop(owner);
    let next = harness.process();
    assert_eq!(
        (next.settle(), next.recover_programs()),
        (SettledReceipts::default(), 1),
        "its next owner decides first"
    );
    next.run_for_secs(1);
    assert_eq!(next.artifact_states(), ["unknown"]);
    shown.set();
    assert_eq!((next.settle_for_secs(2 * SETTLE_SECS), next.artifact_states()), (1, vec!["done"]));
}

#[test]
fn looks_that_decide_nothing_never_close_a_receipt_and_end_some_day() {
    let harness = Harness::new();
    harness.upstream.add(Rule::post(TICKETS_PATH).fails(|label| Error::Lost { label, cause: "reset".into() }));
    harness.upstream.add(Rule::get("/api/tickets").json(500, json!({})));
    let process = harness.process_with(Limits { request_timeout_ms: 1_000, ..Limits::default() });
    process.open_session();
    expect_finished(process.run(forced_request(OPEN_ONE)));
    process.settle();
    let mut begun = 0;
    while rows_in(&harness, Table::Settlement) > 0 {
        process.run_for_secs(3600);
        assert_eq!(process.settle().closed, 0);
        begun += 1;
        assert!(begun <= 100, "it looks without an end");
    }
    assert_eq!((begun, process.artifact_states()), (100, vec!["unknown"]));
    assert!(!process.stored_receipts()[0].settles, "it promises nothing any more");
}

#[test]
fn arguments_are_stored_only_while_the_outcome_is_unknown_and_go_with_the_session() {
    let harness = Harness::with_working_api();
    let process = harness.process();
    process.open_session();
    expect_finished(process.run(forced_request(OPEN_ONE)));
    assert_eq!((rows_in(&harness, Table::Receipt), rows_in(&harness, Table::Settlement)), (1, 0));
    let (harness, _) = with_lost_answers();
    let process = harness.process();
    process.open_session();
    expect_finished(process.run(forced_request(OPEN_ONE)));
    assert_eq!(rows_in(&harness, Table::Settlement), 1);
    process.block_on(process.service.remove_session(&local_caller(), "s0")).unwrap();
    assert_eq!((rows_in(&harness, Table::Receipt), rows_in(&harness, Table::Settlement)), (0, 0));
    assert_eq!(process.settle(), SettledReceipts::default());
}
