//! The bounds on what one caller can make the server keep, list or do: slots, lists, runs without a waiting caller, checks of readiness.

use access::Caller;
use base::{Limits, LogicalSessionId, Slot};
use ports::Store;
use ports::store::{Batch, Expect, Key, Range, Table};
use serde_json::json;
use session::{Error, ListRequest, OpenRequest, SeedRequest, SessionTarget, Tags};
use testkit::faults::{Fault, Operation};

use crate::harness::{
    self, Harness, MemoryService, OPEN_THREE_TICKETS, TICKETS_PATH, detached_request, expect_finished, expect_running,
    forced_request, local_caller,
};
use crate::js_harness::{JsHarness, Process, named_request};

fn principal() -> Caller {
    Caller::local()
}

fn open_request(intent: &str) -> OpenRequest {
    OpenRequest::new(intent, vec![SeedRequest::all("demo", "Project")])
}

/// Returns the size of the largest row of the principal's connection.
async fn largest_connection_row(fixture: &MemoryService) -> usize {
    let range = Range {
        tenant: principal().tenant,
        table: Table::Connection,
        prefix: String::new(),
        after: None,
        limit: 100_000,
    };
    fixture.store.scan(&range).await.unwrap().iter().map(|(_, row)| row.value.len()).max().unwrap()
}

#[tokio::test]
async fn the_rows_of_a_connection_stay_small_however_many_sessions_it_opens() {
    let fixture = MemoryService::with_demo();
    let mut sessions = Vec::new();
    for number in 0..200_u32 {
        let opened = fixture.service.open(&principal(), &open_request(&format!("task {number}"))).await.unwrap();
        assert_eq!(opened.slot, Slot(number));
        sessions.push(opened.session);
    }
    let largest = largest_connection_row(&fixture).await;
    assert!(largest < 3_500, "the row of a connection has {largest} bytes");
    for (number, session) in sessions.iter().enumerate() {
        let slot = format!("s{number}");
        assert_eq!(fixture.service.session_id(&principal(), &slot).await.unwrap(), *session, "{slot}");
        let view = fixture.service.session_view(&principal(), &session.to_string()).await.unwrap();
        assert_eq!(view.slot, Some(Slot(number as u32)));
        let again = fixture.service.open(&principal(), &open_request(&format!("task {number}"))).await.unwrap();
        assert_eq!((again.slot, again.session), (Slot(number as u32), *session));
    }
    assert!(matches!(fixture.service.session_id(&principal(), "s200").await, Err(Error::UnknownSlot { .. })));
    // The two forms of a day later: the slots are known, and the time of use is written.
    fixture.advance_days(2);
    assert_eq!(fixture.service.open(&principal(), &open_request("task 7")).await.unwrap().slot, Slot(7));
}

#[tokio::test]
async fn the_slots_of_an_earlier_version_are_read_and_leave_the_row_in_portions() {
    let fixture = MemoryService::with_demo();
    let old: Vec<LogicalSessionId> =
        (0..1_000_u128).map(|n| LogicalSessionId::from_random((n + (1 << 100)).to_be_bytes())).collect();
    let key = Key::new(&principal().tenant, Table::Connection, principal().connection.row_id());
    let row = json!({"slots": old, "used": 0, "runs": 3}).to_string().into_bytes();
    fixture.store.commit(Batch::default().put(key.clone(), row, Expect::Absent)).await.unwrap();
    for number in 0..6 {
        let opened = fixture.service.open(&principal(), &open_request(&format!("task {number}"))).await.unwrap();
        assert_eq!(opened.slot, Slot(1_000 + number));
        for (number, session) in old.iter().enumerate().step_by(37) {
            assert_eq!(fixture.service.session_id(&principal(), &format!("s{number}")).await.unwrap(), *session);
        }
    }
    let value = fixture.store.get(&key).await.unwrap().unwrap().value;
    let row: serde_json::Value = serde_json::from_slice(&value).unwrap();
    assert!(row["slots"].as_array().unwrap().len() <= 64 && row["runs"] == 3, "{row}");
}

#[tokio::test]
async fn a_transport_session_opens_only_as_many_sessions_as_the_limit_allows() {
    let limits = Limits { slots_per_connection: 3, ..Limits::default() };
    let fixture = MemoryService::with_demo_and_limits(limits);
    for number in 0..3 {
        fixture.service.open(&local_caller(), &open_request(&format!("task {number}"))).await.unwrap();
    }
    let refused = fixture.service.open(&local_caller(), &open_request("one more")).await.unwrap_err();
    assert_eq!(refused.code(), "too_many_sessions");
    assert!(refused.to_string().contains("3 sessions"), "{refused}");
    fixture.service.open(&local_caller(), &open_request("task 1")).await.unwrap();
    fixture.service.open(&harness::caller("local", "b"), &open_request("one more")).await.unwrap();
}

fn tags(of: &[(&str, &str)]) -> Tags {
    of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Returns a process with five entries in the log of the session `log` and five tagged heaps.
fn process_with_lists(limits: Limits) -> (JsHarness, Process) {
    let harness = JsHarness { limits, ..JsHarness::new() };
    let process = harness.process();
    for number in 0..5 {
        let mut request = named_request("log", json!([{"set": ["a", number]}]));
        request.tags = Some(tags(&[("of", "list"), ("text", &"x".repeat(1_000))]));
        process.run(&request).unwrap();
        process.run(&named_request(&format!("name {number}"), json!([{"set": ["a", number]}]))).unwrap();
    }
    (harness, process)
}

#[test]
fn lists_are_cut_by_rows_and_say_how_to_read_on() {
    let (_harness, process) = process_with_lists(Limits { list_rows: 2, ..Limits::default() });
    let (caller, service) = (local_caller(), &process.service);
    let (mut heaps, mut names, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    let mut request = ListRequest::default();
    loop {
        let page = process.block_on(service.heaps_by_tags(&caller, &tags(&[("of", "list")]), &request)).unwrap();
        assert!(page.rows.len() <= 2 && page.total == 5);
        heaps.extend(page.rows.into_iter().map(|(heap, _)| heap));
        request.after = page.next;
        if request.after.is_none() {
            break;
        }
    }
    request.after = None;
    loop {
        let page = process.block_on(service.js_sessions(&caller, &request)).unwrap();
        assert!(page.rows.len() <= 2 && page.total == 6);
        names.extend(page.rows);
        request.after = page.next;
        if request.after.is_none() {
            break;
        }
    }
    let target = SessionTarget::Named("log".to_owned());
    request.after = None;
    loop {
        let page = process.block_on(service.session_log_page(&caller, &target, &request, true)).unwrap();
        assert!(page.rows.len() <= 2 && page.total == 5);
        indexes.extend(page.rows.iter().map(|entry| entry.index));
        request.after = page.next;
        if request.after.is_none() {
            break;
        }
    }
    assert!(heaps.is_sorted() && heaps.len() == 5, "{heaps:?}");
    assert_eq!(names, ["log", "name 0", "name 1", "name 2", "name 3", "name 4"]);
    assert_eq!(indexes, [0, 1, 2, 3, 4]);
    let (executions, next) = process.block_on(service.executions_page(&caller, None, 500)).unwrap();
    assert_eq!(executions.len(), 2);
    let (older, _) = process.block_on(service.executions_page(&caller, next, 500)).unwrap();
    assert!(older[0].id < executions[1].id);
    let (sessions, omitted) = process.block_on(service.named_sessions(&caller)).unwrap();
    assert_eq!((sessions.len(), omitted), (2, 4));
}

#[test]
fn lists_are_cut_by_bytes_and_a_page_has_at_least_one_row() {
    let (_harness, process) = process_with_lists(Limits { list_bytes: 2_500, ..Limits::default() });
    let (caller, service) = (local_caller(), &process.service);
    let all = ListRequest::default();
    let page = process.block_on(service.heaps_by_tags(&caller, &Tags::new(), &all)).unwrap();
    assert_eq!((page.rows.len(), page.total), (2, 5), "each row has about 1,100 bytes");
    let (_harness, process) = process_with_lists(Limits { list_bytes: 1, ..Limits::default() });
    let page = process.block_on(process.service.heaps_by_tags(&caller, &Tags::new(), &all)).unwrap();
    assert_eq!((page.rows.len(), page.next.is_some()), (1, true));
    let target = SessionTarget::Named("log".to_owned());
    let page = process.block_on(process.service.session_log_page(&caller, &target, &all, false)).unwrap();
    assert_eq!((page.rows.len(), page.next.as_deref()), (1, Some("0")));
}

#[test]
fn runs_that_no_caller_waits_for_are_bounded_per_tenant_and_in_total() {
    let (harness, allow_answer) = Harness::with_stuck_second_write(TICKETS_PATH);
    let limits = Limits { detached_runs: 1, detached_runs_of_all: 2, ..Limits::default() };
    let process = harness.process_with(limits);
    process.open_session();
    expect_running(process.run(detached_request(OPEN_THREE_TICKETS)));
    process.block_on(harness.upstream.arrived(2));
    let refused = process.run(detached_request("Ticket.limit(1)")).unwrap_err();
    assert_eq!(refused.code(), "too_many_runs");
    assert!(
        refused.to_string().contains("this tenant has 1 runs") && refused.to_string().contains("wait(…)"),
        "{refused}"
    );
    // Questions about a run need no place, and neither does a run whose caller waits.
    let asked = session::RunRequest { wait: Some(false), ..harness::program_request("wait(s0_o1)") };
    expect_running(process.run(asked));
    allow_answer.notify_one();
    expect_finished(process.run_program("wait(s0_o1)"));
    process.run_for_secs(1);
    expect_finished(process.run(forced_request(OPEN_THREE_TICKETS)));
    process.block_on(async { tokio::task::yield_now().await });
    assert!(process.run(detached_request(OPEN_THREE_TICKETS)).is_ok(), "the place is free again");
}

#[test]
fn readiness_needs_a_write_and_few_are_made() {
    let harness = Harness::new();
    let process = harness.process();
    process.block_on(process.service.check_writable()).unwrap();
    harness.faults.fail(Operation::Commit, 1, Fault::Full);
    // Asked again within a second, the answer is the same without another write.
    process.block_on(process.service.check_writable()).unwrap();
    process.run_for_secs(2);
    let refused = process.block_on(process.service.check_writable()).unwrap_err();
    assert_eq!(refused.code(), "storage_full");
    process.run_for_secs(2);
    process.block_on(process.service.check_writable()).unwrap();
}
