//! Runs that park in their first step and are stored in one commit, without partial state or lost work.

use std::sync::Arc;

use base::{Method, Origin};
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{Execution, ExecutionState, OutputRequest, RunJsRequest, SessionTarget};
use testkit::faults::{Fault, Operation};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::js_fast_path::{increment_request, log_entries, open_run_count};
use crate::js_harness::{
    JsHarness, Process, completed_value, expect_completed, local_caller, logical_request, named_request,
    script_request, timer_step,
};

/// Returns a request that prints a line, waits for a second and then adds 1.
fn wait_and_add() -> RunJsRequest {
    RunJsRequest { wait_ms: Some(60_000), ..increment_request(&[json!({"print": "waits\n"}), timer_step(1_000)]) }
}

fn output_of(process: &Process, execution: &Execution) -> String {
    let request = OutputRequest::default();
    process
        .block_on(process.service.execution_output(&local_caller(), &execution.id.to_string(), &request))
        .unwrap()
        .data
}

/// Returns the number of commits during the work, and the result of the work.
fn count_commits<T>(harness: &JsHarness, work: impl FnOnce() -> T) -> (u64, T) {
    let before = harness.memory.faults.calls(Operation::Commit);
    let done = work();
    (harness.memory.faults.calls(Operation::Commit) - before, done)
}

#[test]
fn a_run_that_parks_in_its_first_step_takes_two_commits() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&increment_request(&[])));
    let (count, execution) = count_commits(&harness, || expect_completed(process.run(&wait_and_add())));
    assert_eq!(
        (count, completed_value(&execution), output_of(&process, &execution).as_str()),
        (2, json!(2), "waits\nadded\n")
    );
    let (count, running) =
        count_commits(&harness, || process.run(&RunJsRequest { wait_ms: Some(500), ..wait_and_add() }).unwrap());
    assert_eq!((count, running.state, running.output_lines), (1, ExecutionState::Running, 1));
    assert_eq!((open_run_count(&harness, &process), output_of(&process, &running).as_str()), (1, "waits\n"));
    // The next run queues behind it.
    let next = process.run(&RunJsRequest { wait_ms: Some(200), ..increment_request(&[]) }).unwrap();
    assert_eq!(next.state, ExecutionState::Queued);
    process.run_for_ms(3_000);
    let execution = process.execution(&running.id.to_string());
    let next = process.execution(&next.id.to_string());
    assert_eq!((completed_value(&execution), completed_value(&next)), (json!(3), json!(4)));
    assert_eq!((open_run_count(&harness, &process), output_of(&process, &execution).as_str()), (0, "waits\nadded\n"));
}

#[test]
fn a_heap_that_is_already_stored_does_not_hinder_a_run() {
    let harness = JsHarness::new();
    let request = script_request(json!([{"print": "x\n"}, {"set": ["x", 1]}, timer_step(1_000), {"get": "x"}]));
    let process = harness.process();
    expect_completed(process.run(&script_request(json!([]))));
    let run = |process: &Process| {
        let execution = expect_completed(process.run(&request));
        assert_eq!((completed_value(&execution), output_of(process, &execution).as_str()), (json!(1), "x\n"));
    };
    assert_eq!(count_commits(&harness, || run(&process)).0, 2);
    // This process knows which heaps it stored. Another process learns by conflicts that both heaps exist. It also
    // has to store its engine first, which may be slow, so its run is accepted before that.
    assert_eq!(count_commits(&harness, || run(&process)).0, 2);
    let other = harness.process();
    assert_eq!(count_commits(&harness, || run(&other)).0, 2 + 2 * 2);
}

/// Storing a large heap takes time, so the run is accepted before that.
#[test]
fn a_run_that_parks_with_a_large_heap_is_accepted_first() {
    let harness = JsHarness::new();
    let process = harness.process();
    let large = json!([{"set": ["x", incompressible_text(200_000)]}, timer_step(1_000), {"get": "x"}]);
    expect_completed(process.run(&script_request(json!([]))));
    let (count, execution) = count_commits(&harness, || {
        expect_completed(process.run(&RunJsRequest { wait_ms: Some(60_000), ..script_request(large) }))
    });
    assert_eq!((count, completed_value(&execution)), (3, json!(incompressible_text(200_000))));
}

/// Returns text that does not compress.
fn incompressible_text(bytes: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..bytes).map(|_| next()).collect()
}

/// The first process is killed after the one commit that stores the parked run.
#[test]
fn a_run_stored_as_parked_continues_in_another_process() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let running = process.run(&RunJsRequest { wait_ms: Some(500), ..wait_and_add() }).unwrap();
    drop(process);
    let process = harness.process();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(5_000);
    let execution = process.execution(&running.id.to_string());
    assert_eq!((completed_value(&execution), output_of(&process, &execution).as_str()), (json!(1), "waits\nadded\n"));
    assert_eq!((log_entries(&process).len(), open_run_count(&harness, &process)), (1, 0));
}

/// Lets the given commits of a parked run fail. The run then ends in its process or, if that dies, in another one.
fn check_run_with_faults(faults: &[(u64, Fault)], process_dies: bool) {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&increment_request(&[])));
    for (nth, fault) in faults {
        harness.memory.faults.fail(Operation::Commit, *nth, *fault);
    }
    let wait_ms = Some(if process_dies { 900 } else { 60_000 });
    let answered = process.run(&RunJsRequest { wait_ms, ..wait_and_add() });
    drop(process);
    harness.memory.faults.heal();
    let process = harness.process();
    process.resume_runs();
    process.run_for_ms(20_000);
    let all = process.block_on(process.service.executions(&local_caller(), None, 10)).unwrap();
    let context = format!("{faults:?} {process_dies}: {answered:?}, {all:?}");
    assert!(all.iter().all(|e| e.state == ExecutionState::Completed), "{context}");
    // A run is refused only if it could not be accepted either.
    let refused = faults.starts_with(&[(1, Fault::Unavailable), (2, Fault::Unavailable)]);
    assert_eq!(answered.is_err(), refused, "{context}");
    assert_eq!(all.len(), 2 - usize::from(refused), "{context}");
    if let Ok(answered) = &answered {
        let stored = all.iter().find(|e| e.id == answered.id).unwrap();
        assert_eq!(
            (completed_value(stored), output_of(&process, stored).as_str()),
            (json!(2), "waits\nadded\n"),
            "{context}"
        );
    }
    assert_eq!((log_entries(&process).len(), open_run_count(&harness, &process)), (all.len(), 0), "{context}");
    assert_eq!(process.run_to_value(&increment_request(&[])), json!(all.len() + 1), "{context}");
}

#[test]
fn a_fault_while_a_run_parks_loses_and_duplicates_nothing() {
    use Fault::{Conflict, LostAfter, Unavailable};
    for process_dies in [false, true] {
        for fault in [Unavailable, LostAfter, Conflict] {
            for (first, count) in [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)] {
                let faults: Vec<_> = (first..first + count).map(|nth| (nth, fault)).collect();
                check_run_with_faults(&faults, process_dies);
            }
        }
        check_run_with_faults(&[(1, Unavailable), (2, LostAfter)], process_dies);
        check_run_with_faults(&[(1, Unavailable), (3, Unavailable)], process_dies);
        check_run_with_faults(&[(1, Unavailable), (3, LostAfter)], process_dies);
        check_run_with_faults(&[(1, Conflict), (2, LostAfter)], process_dies);
        check_run_with_faults(&[(1, LostAfter), (2, Unavailable)], process_dies);
    }
}

#[test]
fn two_processes_with_parked_runs_in_one_session_take_turns() {
    for (own_ms, other_ms) in [(0, 0), (60, 20), (20, 60), (150, 20), (90, 110)] {
        let harness = JsHarness::new();
        let process = harness.process();
        let other = harness.process();
        process.open_session();
        let spin_and_wait = |ms: u64| {
            let spin = json!({"spin": ms});
            let program = [spin, json!({"print": "waits\n"}), timer_step(500)];
            RunJsRequest { wait_ms: Some(60_000), ..increment_request(&program) }
        };
        let own_request = spin_and_wait(own_ms);
        let other_request = spin_and_wait(other_ms);
        let user = local_caller();
        let (first, second) = process.block_on(async {
            tokio::join!(process.service.run_js(&user, &own_request), other.service.run_js(&user, &other_request))
        });
        let first = expect_completed(first);
        let second = expect_completed(second);
        let mut values = [completed_value(&first), completed_value(&second)].map(|value| value.as_i64().unwrap());
        values.sort_unstable();
        assert_eq!(values, [1, 2], "{own_ms} {other_ms}");
        for execution in [&first, &second] {
            assert_eq!(output_of(&process, execution), "waits\nadded\n", "{own_ms} {other_ms}");
        }
        assert_eq!((log_entries(&process).len(), open_run_count(&harness, &process)), (2, 0));
    }
}

const ORIGIN: &str = "https://api.example.com";

fn post_step() -> Value {
    json!({"await": [Call::Fetch { request: json!({"url": format!("{ORIGIN}/x"), "method": "POST", "body": null}) }]})
}

fn harness_with_fetch(rule: Rule) -> JsHarness {
    let mut harness = JsHarness::new();
    harness.settings.fetch = vec![session::FetchRule::to(Origin::parse(ORIGIN).unwrap())];
    harness.memory.upstream.add(rule);
    harness
}

fn post_count(harness: &JsHarness) -> usize {
    harness.memory.upstream.calls().iter().filter(|call| call.request.method == Method::Post).count()
}

/// The effect is sent once and its answer arrives, however the commits around it fail.
#[test]
fn an_effect_of_a_first_step_is_done_once() {
    use Fault::{Conflict, LostAfter, Unavailable};
    let fault_lists: [&[(u64, Fault)]; 7] = [
        &[],
        &[(1, LostAfter)],
        &[(1, Unavailable)],
        &[(1, Conflict)],
        &[(1, Conflict), (2, Conflict)],
        &[(1, Unavailable), (2, LostAfter)],
        &[(2, LostAfter)],
    ];
    for faults in fault_lists {
        for queue in [1, 100] {
            let mut harness = harness_with_fetch(Rule::post("/x").bytes(200, "yes"));
            harness.settings.queue = queue;
            let process = harness.process();
            expect_completed(process.run(&named_request("n", json!([]))));
            for (nth, fault) in faults {
                harness.memory.faults.fail(Operation::Commit, *nth, *fault);
            }
            let request = named_request("n", json!([post_step(), {"set": ["x", 1]}, {"get": "x"}]));
            let execution = process.run(&RunJsRequest { wait_ms: Some(60_000), ..request });
            assert_eq!(
                (completed_value(&expect_completed(execution)), post_count(&harness)),
                (json!(1), 1),
                "{faults:?} {queue}"
            );
            process.run_for_ms(10_000);
            assert_eq!(
                (process.resume_runs(), post_count(&harness), open_run_count(&harness, &process)),
                (0, 1, 0),
                "{faults:?} {queue}"
            );
            expect_completed(process.run(&named_request("n", json!([]))));
        }
    }
}

#[test]
fn an_effect_interrupted_by_a_crash_is_unknown_and_not_repeated() {
    let allow_answer = Arc::new(Notify::new());
    let harness = harness_with_fetch(Rule::post("/x").bytes(200, "yes").waits_for(&allow_answer));
    let process = harness.process();
    let running = process
        .run(&RunJsRequest { wait_ms: Some(500), ..script_request(json!([post_step(), {"get": "x"}])) })
        .unwrap();
    assert_eq!((running.state, post_count(&harness)), (ExecutionState::Running, 1));
    drop(process);
    let process = harness.process();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(2_000);
    let execution = process.execution(&running.id.to_string());
    assert_eq!((execution.state, execution.error.unwrap().name.as_str()), (ExecutionState::Failed, "UnknownOutcome"));
    assert_eq!((post_count(&harness), open_run_count(&harness, &process)), (1, 0));
}

/// A program that only reads is stored together with its run. The plan of a write is stored only after the run.
#[test]
fn a_run_is_stored_before_it_shows_the_plan_of_a_write() {
    let harness = JsHarness::new();
    let people = json!({"data": [{"id": "ada", "name": "Ada"}]});
    harness.memory.upstream.add(Rule::get("/api/people").json(200, people));
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&increment_request(&[])));
    let plasm_request = |program: &str| {
        let program = json!([{"await": [Call::Plasm { program: program.to_owned() }]}, {"get": "n"}]);
        RunJsRequest { wait_ms: Some(2_000), timeout_ms: Some(100_000), ..logical_request("s0", program) }
    };
    harness.memory.faults.fail(Operation::Commit, 2, Fault::Unavailable);
    let (_, read) = count_commits(&harness, || process.run(&plasm_request("Person[name]")));
    assert_eq!(completed_value(&expect_completed(read)), json!(1));
    harness.memory.faults.heal();
    let (count, write) = count_commits(&harness, || {
        process.run(&plasm_request(r#"Ticket.open(project="OPS", title="from code")"#)).unwrap()
    });
    // The three commits accept the run, store the plan and park the run.
    assert_eq!((count, write.state, write.reviews.len()), (3, ExecutionState::WaitingReview, 1));
    assert_eq!((write.reviews[0].commit.as_str(), harness.memory.sent_bodies().len()), ("pc0", 0));
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.len(), 2);
}
