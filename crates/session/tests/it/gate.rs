//! Plan commits and request ids: one run for each, for any number of callers and under any storage fault.

use std::sync::Arc;
use std::time::Duration;

use session::{Error, RunAnswer, RunRequest, Service};
use testkit::faults::{Fault, Operation};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness::{
    self, Harness, THREE, caller, commit_of, finished, forced, me, open, open_as, plan, program_of, running, states,
    told,
};

const MINUTE: Duration = Duration::from_secs(60);

async fn world() -> (Harness, Arc<Service>) {
    let house = Harness::working();
    let service = house.service();
    open(&service).await;
    (house, service)
}

fn under(id: &str, program: &str) -> RunRequest {
    RunRequest { request_id: Some(id.to_owned()), ..forced(program) }
}

#[tokio::test]
async fn a_reviewed_plan_runs_once_under_its_commit() {
    let (house, service) = world().await;
    let refused = service.run(&me(), &program_of(THREE)).await.unwrap_err();
    let Error::Review { commit, explained } = &refused else { panic!("{refused}") };
    assert!(explained.contains("at most demo:ticket_open 3 times"), "{explained}");
    assert_eq!((commit.as_str(), house.sent().len()), ("pc0", 0));
    let first = finished(service.run(&me(), &commit_of("pc0")).await);
    assert_eq!((first.replayed, states(&first.outcome.receipts)), (false, vec!["done"; 3]));
    // With the program, with the model's quotes around it, and after the commit's time: the recorded result.
    house.clock.advance(60 * MINUTE);
    for request in
        [commit_of("pc0"), commit_of("`pc0`"), RunRequest { program: Some(THREE.into()), ..commit_of("pc0") }]
    {
        let again = finished(service.run(&me(), &request).await);
        assert!(again.replayed);
        assert_eq!(again.outcome.receipts, first.outcome.receipts);
        assert_eq!((again.number, again.run), (first.number, first.run));
    }
    assert_eq!(house.sent().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_concurrent_callers_one_runs_the_plan() {
    for round in 0..30 {
        let (house, service) = world().await;
        let other = house.service();
        open(&other).await;
        let commit = plan(&service, THREE).await;
        let call = |at: usize| {
            // Every second round uses two processes.
            let service = if round % 2 == 1 && at % 2 == 1 { other.clone() } else { service.clone() };
            let request = commit_of(&commit);
            tokio::spawn(async move { service.run(&me(), &request).await })
        };
        let calls: Vec<_> = (0..16).map(call).collect();
        let mut first = 0;
        for (at, call) in calls.into_iter().enumerate() {
            match call.await.unwrap() {
                Ok(RunAnswer::Finished(ran)) if !ran.replayed => first += 1,
                Ok(RunAnswer::Finished(ran)) => assert_eq!(states(&ran.outcome.receipts), ["done"; 3]),
                Ok(RunAnswer::Running(operation)) => assert_eq!(operation.handle, "s0_o1"),
                // Another process cannot tell an active run from a dead one.
                Err(Error::Interrupted { .. }) if round % 2 == 1 => {}
                Err(error) => panic!("round {round}, caller {at}: {error}"),
            }
        }
        assert_eq!((first, house.sent().len()), (1, 3), "round {round}");
        let after = finished(service.run(&me(), &commit_of(&commit)).await);
        assert!(after.replayed);
    }
}

#[tokio::test]
async fn a_second_caller_gets_the_handle_of_the_active_run() {
    let (house, gate) = (Harness::new(), Arc::new(Notify::new()));
    house.upstream.add(
        Rule::post(harness::TICKETS_AT)
            .waits_for(&gate)
            .once()
            .json(201, serde_json::json!({"project": "OPS", "number": 1})),
    );
    house.works();
    let service = house.service();
    open(&service).await;
    let commit = plan(&service, THREE).await;
    let first = tokio::spawn({
        let (service, request) = (service.clone(), commit_of(&commit));
        async move { service.run(&me(), &request).await }
    });
    house.upstream.arrived(1).await;
    let second = running(service.run(&me(), &commit_of(&commit)).await);
    let third = running(service.run(&me(), &commit_of(&commit)).await);
    assert_eq!((second.handle.as_str(), third.handle.as_str()), ("s0_o1", "s0_o1"));
    // The first caller leaves. The run continues, because another caller has its handle.
    first.abort();
    let _ = first.await;
    gate.notify_one();
    let ended = finished(service.run(&me(), &program_of("wait(s0_o1)")).await);
    assert_eq!((states(&ended.outcome.receipts), ended.outcome.cancelled), (vec!["done"; 3], false));
    assert!(finished(service.run(&me(), &commit_of(&commit)).await).replayed);
    assert_eq!(house.sent().len(), 3);
}

#[tokio::test]
async fn a_commit_is_for_one_program_of_one_session_of_one_tenant() {
    let (house, service) = world().await;
    let commit = plan(&service, THREE).await;
    let other = RunRequest { program: Some(THREE.replace("three", "four")), ..commit_of(&commit) };
    let code = |answer: Result<RunAnswer, Error>| answer.unwrap_err().code();
    assert_eq!(code(service.run(&me(), &other).await), "other_plan");
    open_as(&service, &me(), "another task").await;
    let elsewhere = RunRequest { session: "s1".into(), ..commit_of(&commit) };
    assert_eq!(code(service.run(&me(), &elsewhere).await), "no_commit");
    let stranger = caller("acme", "a");
    open_as(&service, &stranger, "task").await;
    assert_eq!(code(service.run(&stranger, &commit_of(&commit)).await), "no_commit");
    for unknown in ["pc9", "pc", "0", "", "pc-1", "pc99999999999999999999999"] {
        assert_eq!(code(service.run(&me(), &commit_of(unknown)).await), "no_commit", "{unknown}");
    }
    let nothing = RunRequest { session: "s0".into(), ..RunRequest::default() };
    assert_eq!(code(service.run(&me(), &nothing).await), "bad_arguments");
    assert_eq!(house.sent().len(), 0);
    // None of these refusals used the commit.
    assert!(!finished(service.run(&me(), &commit_of(&commit)).await).replayed);
}

#[tokio::test]
async fn an_unused_commit_is_valid_for_ten_minutes() {
    let (house, service) = world().await;
    let (used, unused) = (plan(&service, THREE).await, plan(&service, THREE).await);
    assert_ne!(used, unused);
    house.clock.advance(10 * MINUTE);
    assert!(!finished(service.run(&me(), &commit_of(&used)).await).replayed, "to the end of its time");
    house.clock.advance(Duration::from_millis(1));
    assert_eq!(service.run(&me(), &commit_of(&unused)).await.unwrap_err().code(), "expired_commit");
    assert_eq!(house.sent().len(), 3);
}

#[tokio::test]
async fn now_means_the_time_of_the_plan() {
    let (house, service) = world().await;
    let program = r#"Ticket.open(project="OPS", title="late", due=today)"#;
    let commit = plan(&service, program).await;
    house.clock.advance(MINUTE);
    let request = RunRequest { program: Some(program.into()), ..commit_of(&commit) };
    finished(service.run(&me(), &request).await);
    finished(service.run(&me(), &forced(program)).await);
    let sent = house.sent();
    assert!(sent[0].contains("2026-01-01") && sent[1].contains("2026-01-02"), "{sent:?}");
}

#[tokio::test]
async fn a_request_id_runs_once() {
    let (house, service) = world().await;
    let first = finished(service.run(&me(), &under("job-7", THREE)).await);
    let again = finished(house.service().run(&me(), &under("job-7", THREE)).await);
    assert_eq!((first.replayed, again.replayed, house.sent().len()), (false, true, 3));
    assert_eq!(again.outcome.receipts, first.outcome.receipts);
    let other = THREE.replace("three", "four");
    assert_eq!(service.run(&me(), &under("job-7", &other)).await.unwrap_err().code(), "other_plan");
    for bad in [String::new(), "x".repeat(201)] {
        assert_eq!(service.run(&me(), &under(&bad, THREE)).await.unwrap_err().code(), "bad_arguments");
    }
    let unforced = RunRequest { force: false, ..under("job-8", THREE) };
    assert_eq!(service.run(&me(), &unforced).await.unwrap_err().code(), "review_needed");
    // The same id in another session is another id.
    open_as(&service, &me(), "another task").await;
    let elsewhere = RunRequest { session: "s1".into(), ..under("job-7", THREE) };
    assert!(!finished(service.run(&me(), &elsewhere).await).replayed);
    assert_eq!(house.sent().len(), 6);
}

#[tokio::test]
async fn a_run_refused_for_a_missing_page_does_not_use_its_commit() {
    let (house, service) = world().await;
    let program = format!("{THREE}, page(s0_pg1)");
    let commit = plan(&service, &program).await;
    for _ in 0..2 {
        assert_eq!(service.run(&me(), &commit_of(&commit)).await.unwrap_err().code(), "no_handle");
    }
    assert_eq!(house.sent().len(), 0);
}

/// Fails the nth call of one kind in every way, once or permanently, and repeats the request when the storage works
/// again.
#[tokio::test]
async fn no_effect_is_repeated_or_forgotten_under_any_storage_fault() {
    let faults = [Fault::Unavailable, Fault::Full, Fault::LostAfter];
    // More calls of each kind than a run makes.
    let operations = [(Operation::Commit, 12), (Operation::Get, 30), (Operation::PutBlob, 3), (Operation::Scan, 2)];
    for ((operation, most), fault) in operations.into_iter().flat_map(|o| faults.map(|f| (o, f))) {
        for nth in 1..=most {
            for for_good in [false, true] {
                for named in [false, true] {
                    sweep((operation, fault, nth), for_good, named).await;
                }
            }
        }
    }
}

async fn sweep((operation, fault, nth): (Operation, Fault, u64), for_good: bool, named: bool) {
    let (house, service) = world().await;
    let at = format!("{operation:?} {nth} {fault:?}, for good: {for_good}, by request id: {named}");
    if for_good {
        (nth..nth + 200).for_each(|nth| house.faults.fail(operation, nth, fault));
    } else {
        house.faults.fail(operation, nth, fault);
    }
    let planned = service.run(&me(), &program_of(THREE)).await.unwrap_err();
    let request = match &planned {
        _ if named => under("job", THREE),
        Error::Review { commit, .. } => commit_of(commit),
        failed => {
            assert!(failed.code().starts_with("storage_"), "{at}: {failed}");
            return assert_eq!(house.sent().len(), 0, "{at}: nothing was asked for");
        }
    };
    let first = service.run(&me(), &request).await;
    let at_first = house.sent().len();
    // Every effect that left is in the answer, unless an earlier answer had it.
    let is_told = told(&first);
    if let Err(error) = &first {
        assert!(error.code().starts_with("storage_"), "{at}: {error}");
    }
    assert!(is_told.len() >= at_first, "{at}: {at_first} left, {is_told:?} told by {first:?}");
    house.faults.heal();
    let again = service.run(&me(), &request).await;
    let sent = house.sent().len();
    for title in ["one", "two", "three"] {
        assert!(house.times(title) <= 1, "{at}: {title} left twice");
    }
    let (told_again, done) = (told(&again), states(&told(&again)).iter().filter(|s| **s == "done").count());
    assert!(told_again.len() >= sent, "{at}: {sent} left, {again:?}");
    assert!(done <= sent, "{at}: {sent} left, {done} are told as done");
    match again {
        Ok(RunAnswer::Finished(ran)) => assert_eq!(ran.replayed, first.is_ok() || at_first > 0, "{at}"),
        Err(Error::Interrupted { .. }) => assert!(first.is_err(), "{at}"),
        other => panic!("{at}: {other:?}"),
    }
}
