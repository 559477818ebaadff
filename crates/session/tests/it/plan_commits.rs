//! Plan commits and request ids: one run for each, for any number of callers and under any storage fault.

use std::sync::Arc;
use std::time::Duration;

use session::{Error, RunAnswer, RunRequest, Service};
use testkit::faults::{Fault, Operation};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness::{
    self, Harness, OPEN_THREE_TICKETS, answered_receipts, caller, commit_request, expect_finished, expect_running,
    forced_request, local_caller, open_session, open_session_as, plan_commit, program_request, receipt_states,
};

const MINUTE: Duration = Duration::from_secs(60);

async fn harness_with_open_session() -> (Harness, Arc<Service>) {
    let harness = Harness::with_working_api();
    let service = harness.service();
    open_session(&service).await;
    (harness, service)
}

fn request_with_id(id: &str, program: &str) -> RunRequest {
    RunRequest { request_id: Some(id.to_owned()), ..forced_request(program) }
}

#[tokio::test]
async fn a_reviewed_plan_runs_once_under_its_commit() {
    let (harness, service) = harness_with_open_session().await;
    let refused = service.run(&local_caller(), &program_request(OPEN_THREE_TICKETS)).await.unwrap_err();
    let Error::Review { commit, explained } = &refused else { panic!("{refused}") };
    assert!(explained.contains("at most demo:ticket_open 3 times"), "{explained}");
    assert_eq!((commit.as_str(), harness.sent_bodies().len()), ("pc0", 0));
    let first = expect_finished(service.run(&local_caller(), &commit_request("pc0")).await);
    assert_eq!((first.replayed, receipt_states(&first.outcome.receipts)), (false, vec!["done"; 3]));
    // A used commit returns the recorded result: after its time, with backquotes, and together with its program.
    harness.clock.advance(60 * MINUTE);
    for request in [
        commit_request("pc0"),
        commit_request("`pc0`"),
        RunRequest { program: Some(OPEN_THREE_TICKETS.into()), ..commit_request("pc0") },
    ] {
        let repeated = expect_finished(service.run(&local_caller(), &request).await);
        assert!(repeated.replayed);
        assert_eq!(repeated.outcome.receipts, first.outcome.receipts);
        assert_eq!((repeated.number, repeated.run), (first.number, first.run));
    }
    assert_eq!(harness.sent_bodies().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_many_concurrent_callers_runs_the_plan() {
    for round in 0..30 {
        let (harness, service) = harness_with_open_session().await;
        let other = harness.service();
        open_session(&other).await;
        let commit = plan_commit(&service, OPEN_THREE_TICKETS).await;
        let call = |caller: usize| {
            // Every second round uses two processes.
            let service = if round % 2 == 1 && caller % 2 == 1 { other.clone() } else { service.clone() };
            let request = commit_request(&commit);
            tokio::spawn(async move { service.run(&local_caller(), &request).await })
        };
        let calls: Vec<_> = (0..16).map(call).collect();
        let mut first_runs = 0;
        for (caller, call) in calls.into_iter().enumerate() {
            match call.await.unwrap() {
                Ok(RunAnswer::Finished(result)) if !result.replayed => first_runs += 1,
                Ok(RunAnswer::Finished(result)) => assert_eq!(receipt_states(&result.outcome.receipts), ["done"; 3]),
                Ok(RunAnswer::Running(operation)) => assert_eq!(operation.handle, "s0_o1"),
                Err(error) => panic!("round {round}, caller {caller}: {error}"),
            }
        }
        assert_eq!((first_runs, harness.sent_bodies().len()), (1, 3), "round {round}");
        let after = expect_finished(service.run(&local_caller(), &commit_request(&commit)).await);
        assert!(after.replayed);
    }
}

#[tokio::test]
async fn a_second_caller_gets_the_handle_of_the_active_run() {
    let harness = Harness::new();
    let allow_answer = Arc::new(Notify::new());
    harness.upstream.add(
        Rule::post(harness::TICKETS_PATH)
            .waits_for(&allow_answer)
            .once()
            .json(201, serde_json::json!({"project": "OPS", "number": 1})),
    );
    harness.add_working_api();
    let service = harness.service();
    open_session(&service).await;
    let commit = plan_commit(&service, OPEN_THREE_TICKETS).await;
    let first = tokio::spawn({
        let service = service.clone();
        let request = commit_request(&commit);
        async move { service.run(&local_caller(), &request).await }
    });
    harness.upstream.arrived(1).await;
    let second = expect_running(service.run(&local_caller(), &commit_request(&commit)).await);
    let third = expect_running(service.run(&local_caller(), &commit_request(&commit)).await);
    assert_eq!((second.handle.as_str(), third.handle.as_str()), ("s0_o1", "s0_o1"));
    // The first caller disconnects. The run continues, because another caller has its handle.
    first.abort();
    let _ = first.await;
    allow_answer.notify_one();
    let ended = expect_finished(service.run(&local_caller(), &program_request("wait(s0_o1)")).await);
    assert_eq!((receipt_states(&ended.outcome.receipts), ended.outcome.cancelled), (vec!["done"; 3], false));
    assert!(expect_finished(service.run(&local_caller(), &commit_request(&commit)).await).replayed);
    assert_eq!(harness.sent_bodies().len(), 3);
}

#[tokio::test]
async fn a_commit_is_for_one_program_of_one_session_of_one_tenant() {
    let (harness, service) = harness_with_open_session().await;
    let commit = plan_commit(&service, OPEN_THREE_TICKETS).await;
    let other = RunRequest { program: Some(OPEN_THREE_TICKETS.replace("three", "four")), ..commit_request(&commit) };
    let code = |answer: Result<RunAnswer, Error>| answer.unwrap_err().code();
    assert_eq!(code(service.run(&local_caller(), &other).await), "other_plan");
    open_session_as(&service, &local_caller(), "another task").await;
    let elsewhere = RunRequest { session: "s1".into(), ..commit_request(&commit) };
    assert_eq!(code(service.run(&local_caller(), &elsewhere).await), "no_commit");
    let stranger = caller("acme", "a");
    open_session_as(&service, &stranger, "task").await;
    assert_eq!(code(service.run(&stranger, &commit_request(&commit)).await), "no_commit");
    for unknown in ["pc9", "pc", "0", "", "pc-1", "pc99999999999999999999999"] {
        assert_eq!(code(service.run(&local_caller(), &commit_request(unknown)).await), "no_commit", "{unknown}");
    }
    let neither_program_nor_commit = RunRequest { session: "s0".into(), ..RunRequest::default() };
    assert_eq!(code(service.run(&local_caller(), &neither_program_nor_commit).await), "bad_arguments");
    assert_eq!(harness.sent_bodies().len(), 0);
    // None of these refusals used the commit.
    assert!(!expect_finished(service.run(&local_caller(), &commit_request(&commit)).await).replayed);
}

#[tokio::test]
async fn an_unused_commit_is_valid_for_ten_minutes() {
    let (harness, service) = harness_with_open_session().await;
    let used = plan_commit(&service, OPEN_THREE_TICKETS).await;
    let unused = plan_commit(&service, OPEN_THREE_TICKETS).await;
    assert_ne!(used, unused);
    harness.clock.advance(10 * MINUTE);
    assert!(
        !expect_finished(service.run(&local_caller(), &commit_request(&used)).await).replayed,
        "a commit is valid up to its last millisecond"
    );
    harness.clock.advance(Duration::from_millis(1));
    assert_eq!(service.run(&local_caller(), &commit_request(&unused)).await.unwrap_err().code(), "expired_commit");
    assert_eq!(harness.sent_bodies().len(), 3);
}

#[tokio::test]
async fn now_means_the_time_of_the_plan() {
    let (harness, service) = harness_with_open_session().await;
    let program = r#"Ticket.open(project="OPS", title="late", due=today)"#;
    let commit = plan_commit(&service, program).await;
    harness.clock.advance(MINUTE);
    let request = RunRequest { program: Some(program.into()), ..commit_request(&commit) };
    expect_finished(service.run(&local_caller(), &request).await);
    expect_finished(service.run(&local_caller(), &forced_request(program)).await);
    let sent = harness.sent_bodies();
    assert!(sent[0].contains("2026-01-01") && sent[1].contains("2026-01-02"), "{sent:?}");
}

#[tokio::test]
async fn a_request_id_runs_once() {
    let (harness, service) = harness_with_open_session().await;
    let first = expect_finished(service.run(&local_caller(), &request_with_id("job-7", OPEN_THREE_TICKETS)).await);
    let repeated =
        expect_finished(harness.service().run(&local_caller(), &request_with_id("job-7", OPEN_THREE_TICKETS)).await);
    assert_eq!((first.replayed, repeated.replayed, harness.sent_bodies().len()), (false, true, 3));
    assert_eq!(repeated.outcome.receipts, first.outcome.receipts);
    let other = OPEN_THREE_TICKETS.replace("three", "four");
    assert_eq!(service.run(&local_caller(), &request_with_id("job-7", &other)).await.unwrap_err().code(), "other_plan");
    for bad in [String::new(), "x".repeat(201)] {
        assert_eq!(
            service.run(&local_caller(), &request_with_id(&bad, OPEN_THREE_TICKETS)).await.unwrap_err().code(),
            "bad_arguments"
        );
    }
    let unforced = RunRequest { force: false, ..request_with_id("job-8", OPEN_THREE_TICKETS) };
    assert_eq!(service.run(&local_caller(), &unforced).await.unwrap_err().code(), "review_needed");
    // The same id in another session is another id.
    open_session_as(&service, &local_caller(), "another task").await;
    let elsewhere = RunRequest { session: "s1".into(), ..request_with_id("job-7", OPEN_THREE_TICKETS) };
    assert!(!expect_finished(service.run(&local_caller(), &elsewhere).await).replayed);
    assert_eq!(harness.sent_bodies().len(), 6);
}

#[tokio::test]
async fn a_run_refused_for_a_missing_page_does_not_use_its_commit() {
    let (harness, service) = harness_with_open_session().await;
    let program = format!("{OPEN_THREE_TICKETS}, page(s0_pg1)");
    let commit = plan_commit(&service, &program).await;
    for _ in 0..2 {
        assert_eq!(service.run(&local_caller(), &commit_request(&commit)).await.unwrap_err().code(), "no_handle");
    }
    assert_eq!(harness.sent_bodies().len(), 0);
}

/// Fails the nth storage call of one kind in every way, once or permanently, and repeats the request when the storage
/// works again.
#[tokio::test]
async fn no_effect_is_repeated_or_forgotten_under_any_storage_fault() {
    let faults = [Fault::Unavailable, Fault::Full, Fault::LostAfter];
    // More calls of each kind than a run makes.
    let operations = [(Operation::Commit, 12), (Operation::Get, 30), (Operation::PutBlob, 3), (Operation::Scan, 2)];
    for ((operation, most_calls), fault) in operations.into_iter().flat_map(|o| faults.map(|f| (o, f))) {
        for nth in 1..=most_calls {
            for permanent in [false, true] {
                for by_request_id in [false, true] {
                    check_storage_fault(operation, fault, nth, permanent, by_request_id).await;
                }
            }
        }
    }
}

async fn check_storage_fault(operation: Operation, fault: Fault, nth: u64, permanent: bool, by_request_id: bool) {
    let (harness, service) = harness_with_open_session().await;
    let context = format!("{operation:?} {nth} {fault:?}, permanent: {permanent}, by request id: {by_request_id}");
    if permanent {
        (nth..nth + 200).for_each(|nth| harness.faults.fail(operation, nth, fault));
    } else {
        harness.faults.fail(operation, nth, fault);
    }
    let planned = service.run(&local_caller(), &program_request(OPEN_THREE_TICKETS)).await.unwrap_err();
    let request = match &planned {
        _ if by_request_id => request_with_id("job", OPEN_THREE_TICKETS),
        Error::Review { commit, .. } => commit_request(commit),
        failed => {
            assert!(failed.code().starts_with("storage_"), "{context}: {failed}");
            return assert_eq!(harness.sent_bodies().len(), 0, "{context}: no effect was requested");
        }
    };
    let first = service.run(&local_caller(), &request).await;
    let sent_at_first = harness.sent_bodies().len();
    // The first answer has a receipt of every effect that was sent.
    let first_receipts = answered_receipts(&first);
    if let Err(error) = &first {
        assert!(error.code().starts_with("storage_"), "{context}: {error}");
    }
    assert!(first_receipts.len() >= sent_at_first, "{context}: {sent_at_first} sent, {first_receipts:?} in {first:?}");
    harness.faults.heal();
    let mut repeated = service.run(&local_caller(), &request).await;
    // A run whose result could not be stored is continued when it is asked for the second time.
    for _ in 0..3 {
        if matches!(repeated, Ok(RunAnswer::Running(_))) {
            repeated = service.run(&local_caller(), &request).await;
        }
    }
    let sent = 3.min(harness.sent_bodies().len());
    for title in ["one", "two", "three"] {
        let mut keys = harness.idempotency_keys(title);
        keys.dedup();
        assert!(keys.len() <= 1, "{context}: {title} was sent again under another key");
    }
    let receipts = answered_receipts(&repeated);
    let done = receipt_states(&receipts).iter().filter(|state| **state == "done").count();
    assert!(receipts.len() >= sent, "{context}: {sent} sent, {repeated:?}");
    assert!(done <= sent, "{context}: {sent} sent, {done} reported as done");
    match repeated {
        Ok(RunAnswer::Finished(result)) => assert!(result.replayed || first.is_err(), "{context}"),
        other => panic!("{context}: {other:?}"),
    }
}
