//! Processes that die during runs, storage that fails, damaged heaps: every answered run exists, no effect happens
//! twice, and the head always names a stored heap.

use base::{ExecutionId, Response};
use ports::scripts::Call;
use ports::store::Table;
use serde_json::{Value, json};
use session::{Execution, ExecutionState, JsSettings, OutputRequest, RunJsRequest, SessionTarget};
use testkit::faults::{Fault, Operation};
use testkit::tiny::TinyScripts;
use testkit::upstream::Rule;

use crate::harness::{self, commit_request};
use crate::js_harness::{
    JsHarness, Process, completed_value, expect_completed, local_caller, logical_request, named_request,
    script_request, timer_step, unawaited_request,
};

const OPEN_TICKET: &str = r#"Ticket.open(project="OPS", title="from code")"#;

fn plasm_step(program: &str) -> Value {
    json!({"await": [Call::Plasm { program: program.to_owned() }]})
}

fn add_people_list(harness: &JsHarness) {
    let people = json!({"data": [{"id": "ada", "name": "Ada"}]});
    harness.memory.upstream.add(Rule::get("/api/people").json(200, people));
}

/// Checks the log of a session and returns its length. The indexes have no gaps, the head is the heap of the last
/// entry, and every heap can be restored.
fn check_session(process: &Process, session: &SessionTarget) -> usize {
    process.engine.forget();
    process.block_on(async {
        let log = process.service.session_log(&local_caller(), session).await.unwrap();
        let lineage = process.service.session_lineage(&local_caller(), session).await.unwrap();
        for (index, entry) in log.iter().enumerate() {
            assert_eq!(entry.index, index as u64);
        }
        assert_eq!(lineage.head, log.last().map(|entry| entry.output_heap));
        for entry in &log {
            // The comparison reads the heap through the engine, which verifies it.
            let key = entry.output_heap.to_string();
            process.service.diff_heaps(&local_caller(), &key, &key).await.unwrap();
        }
        log.len()
    })
}

#[test]
fn a_run_whose_process_died_continues_in_another() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let program = json!([{"set": ["a", 1]}, {"print": "one\n"}, timer_step(10_000), {"add": ["a", 1]}, {"print": "two\n"}, timer_step(10_000), {"add": ["a", 1]}]);
    let execution = process.run(&RunJsRequest { wait_ms: Some(12_000), ..logical_request("s0", program) }).unwrap();
    let queued =
        process.run(&RunJsRequest { wait_ms: Some(0), ..logical_request("s0", json!([{"add": ["a", 100]}])) }).unwrap();
    assert_eq!((execution.state, queued.state), (ExecutionState::Running, ExecutionState::Queued));
    // Another process takes over no run while its owner is alive.
    let other = harness.process();
    assert_eq!(other.resume_runs(), 0);
    drop(process);
    assert_eq!(other.resume_runs(), 2);
    other.run_for_ms(15_000);
    let execution = other.execution(&execution.id.to_string());
    let queued = other.execution(&queued.id.to_string());
    assert_eq!((completed_value(&execution), completed_value(&queued)), (json!(3), json!(103)));
    // Only the work since the last stored heap was repeated. The run lasted as long as its two timers.
    assert_eq!(execution.ended.unwrap().0 - execution.started.unwrap().0, 20_000);
    let output = other.block_on(other.service.execution_output(
        &local_caller(),
        &execution.id.to_string(),
        &OutputRequest::default(),
    ));
    assert_eq!(output.unwrap().data, "one\ntwo\n");
    assert_eq!(other.engine.steps().iter().filter(|step| *step != "settle").count(), 1);
    assert_eq!(check_session(&other, &SessionTarget::Logical("s0".into())), 2);
}

#[test]
fn a_deadline_keeps_running_while_no_process_owns_the_run() {
    let harness = JsHarness::new();
    let process = harness.process();
    let execution = process
        .run(&RunJsRequest { timeout_ms: Some(5_000), ..unawaited_request("n", json!([timer_step(60_000)])) })
        .unwrap();
    drop(process);
    harness.time.advance(std::time::Duration::from_secs(30));
    let process = harness.process();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(10);
    assert_eq!(process.execution(&execution.id.to_string()).state, ExecutionState::TimedOut);
    expect_completed(process.run(&named_request("n", json!([]))));
}

#[test]
fn a_script_gets_the_rows_of_a_program() {
    let harness = JsHarness::new();
    add_people_list(&harness);
    let process = harness.process();
    process.open_session();
    let execution = expect_completed(process.run(&logical_request("s0", json!([plasm_step("Person[name]")]))));
    let answer = completed_value(&execution)[0].clone();
    assert_eq!(answer["rows"], json!([{"name": "Ada"}]), "{answer}");
    assert_eq!(
        (answer["coverage"].clone(), answer["artifact"].clone()),
        (json!("complete"), json!("plasm://session/s0/r/1"))
    );
    process.block_on(process.service.artifact(&local_caller(), "plasm://session/s0/r/1")).unwrap();
    let wrong = process.run(&logical_request("s0", json!([plasm_step("Tickets.limit(")]))).unwrap();
    assert_eq!((wrong.state, wrong.error.unwrap().name.as_str()), (ExecutionState::Failed, "PlasmError"));
    let outside = process.run(&script_request(json!([plasm_step("Ticket")]))).unwrap();
    assert!(outside.error.unwrap().message.contains("logical session"));
    let planned = expect_completed(
        process.run(&logical_request("s0", json!([{"await": [Call::Plan { program: OPEN_TICKET.to_owned() }]}]))),
    );
    assert_eq!(
        (completed_value(&planned)[0]["verdict"].clone(), completed_value(&planned)[0]["plan_commit_ref"].clone()),
        (json!("review"), json!("pc0"))
    );
    assert!(harness.memory.sent_bodies().is_empty());
}

#[test]
fn a_write_by_a_script_waits_for_an_approval_across_a_restart() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let program = json!([{"set": ["x", 1]}, plasm_step(OPEN_TICKET), {"get": "x"}]);
    let execution = process.run(&RunJsRequest { timeout_ms: Some(500_000), ..logical_request("s0", program) }).unwrap();
    assert_eq!(execution.state, ExecutionState::WaitingReview);
    assert_eq!((execution.reviews.len(), execution.reviews[0].commit.as_str()), (1, "pc0"));
    assert!(execution.reviews[0].plan.contains("review"), "{}", execution.reviews[0].plan);
    process.run_for_ms(60_000);
    assert!(harness.memory.sent_bodies().is_empty());
    drop(process);
    let process = harness.process();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(5_000);
    assert_eq!(process.execution(&execution.id.to_string()).state, ExecutionState::WaitingReview);
    let approved =
        harness::expect_finished(process.block_on(process.service.run(&local_caller(), &commit_request("pc0"))));
    assert!(!approved.replayed);
    process.run_for_ms(2_000);
    assert_eq!(completed_value(&process.execution(&execution.id.to_string())), json!(1));
    assert_eq!(harness.memory.times_sent("from code"), 1);
}

#[test]
fn the_answer_of_an_approved_write_survives_a_crash_without_a_second_write() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let program = json!([plasm_step(OPEN_TICKET), timer_step(10_000), {"set": ["done", true]}, {"get": "done"}]);
    let execution = process.run(&logical_request("s0", program)).unwrap();
    // The write is approved in another process while this one is stopped.
    let other = harness.process();
    harness::expect_finished(other.block_on(other.service.run(&local_caller(), &commit_request("pc0"))));
    drop(process);
    for _ in 0..3 {
        let process = harness.process();
        process.resume_runs();
        process.run_for_ms(6_000);
    }
    assert_eq!(completed_value(&other.execution(&execution.id.to_string())), json!(true));
    assert_eq!(harness.memory.times_sent("from code"), 1);
}

#[test]
fn writes_allowed_without_a_review_are_done_once() {
    let mut harness = JsHarness::new();
    harness.settings = JsSettings { writes_without_review: true, ..harness.settings };
    let process = harness.process();
    process.open_session();
    let execution = process
        .run(&RunJsRequest {
            wait_ms: Some(1_000),
            ..logical_request("s0", json!([plasm_step(OPEN_TICKET), timer_step(60_000)]))
        })
        .unwrap();
    assert_eq!((execution.state, harness.memory.times_sent("from code")), (ExecutionState::Running, 1));
    drop(process);
    let process = harness.process();
    process.resume_runs();
    process.run_for_ms(1_000);
    assert_eq!(harness.memory.times_sent("from code"), 1);
}

/// All commits fail from a certain one on, as if the process had crashed there. Then another process continues.
#[test]
fn a_write_by_a_script_happens_once_after_a_crash_at_any_commit() {
    let add_comment = r#"Comment.add(ticket=Ticket(project="OPS", number=1), text="from code")"#;
    let mut done = 0;
    let mut unknown = 0;
    for first_failure in 2..9 {
        let mut harness = JsHarness::new();
        harness.settings = JsSettings { writes_without_review: true, ..harness.settings };
        let process = harness.process();
        process.open_session();
        expect_completed(process.run(&logical_request("s0", json!([{"set": ["before", 1]}]))));
        for nth in first_failure..first_failure + 100 {
            harness.memory.faults.fail(Operation::Commit, nth, Fault::Unavailable);
        }
        let program = json!([plasm_step(add_comment), {"set": ["x", 1]}, {"get": "x"}]);
        let execution = process.run(&RunJsRequest { wait_ms: Some(500), ..logical_request("s0", program) }).unwrap();
        drop(process);
        harness.memory.faults.heal();
        let process = harness.process();
        process.resume_runs();
        process.run_for_ms(5_000);
        let execution = process.execution(&execution.id.to_string());
        match execution.state {
            ExecutionState::Completed => {
                assert_eq!(harness.memory.times_sent("from code"), 1, "{first_failure}");
                done += 1;
            }
            _ => {
                assert!(
                    execution.error.as_ref().is_some_and(|error| error.message.contains("nobody knows")),
                    "{first_failure}: {execution:?}"
                );
                assert_eq!(harness.memory.times_sent("from code"), 1, "{first_failure}");
                unknown += 1;
            }
        }
    }
    // The outcome is unknown only after a crash between the call and its stored answer.
    assert!(done >= 5 && unknown == 1, "{done} done, {unknown} unknown");
}

#[test]
fn fetch_reaches_only_allowed_origins_and_an_interrupted_write_is_unknown() {
    let mut harness = JsHarness::new();
    let fetch = |url: &str, method: &str| json!([{"await": [Call::Fetch { request: json!({"url": url, "method": method, "body": null}) }]}]);
    let process = harness.process();
    let refused = process.run(&script_request(fetch("https://api.example.com/x", "GET"))).unwrap();
    let message = refused.error.unwrap().message;
    assert!(
        message.contains("from no origin") && message.contains("`fetch = [\"https://api.example.com\"]`"),
        "{message}"
    );
    harness.settings.fetch = vec![session::FetchRule::to(base::Origin::parse("https://api.example.com").unwrap())];
    let answer = |_: &ports::upstream::Call| Ok(Response { status: 200, headers: Vec::new(), body: b"hello".to_vec() });
    harness.memory.upstream.add(Rule::get("/x").answers(answer));
    harness.memory.upstream.add(Rule::post("/x").answers(answer));
    let process = harness.process();
    let execution = expect_completed(process.run(&script_request(fetch("https://api.example.com/x?a=1", "GET"))));
    assert_eq!(
        (completed_value(&execution)[0]["status"].clone(), completed_value(&execution)[0]["body"].clone()),
        (json!(200), json!("aGVsbG8="))
    );
    assert_eq!(
        process.run_to_value(&script_request(fetch("https://api.example.com/x", "POST"))),
        completed_value(&execution)
            .as_array()
            .map(|_| json!([{"url": "https://api.example.com/x", "status": 200, "headers": [], "body": "aGVsbG8="}]))
            .unwrap()
    );
    let other = process.run(&script_request(fetch("https://evil.example.com/x", "GET"))).unwrap();
    let message = other.error.unwrap().message;
    assert!(
        message.contains("only from https://api.example.com;") && message.contains("[\"https://evil.example.com\"]"),
        "{message}"
    );
    let posts = || {
        let calls = harness.memory.upstream.calls().into_iter();
        calls.filter(|call| call.request.method == base::Method::Post).count()
    };
    // The process is killed at each of its commits: before the receipt of the request is stored, and before its answer is.
    let (mut not_sent, mut unknown) = (0, 0);
    for nth in 1..=6 {
        let posts_before = posts();
        harness.memory.faults.fail(Operation::Commit, nth, Fault::Unavailable);
        let process = harness.process();
        let mut request = script_request(fetch("https://api.example.com/x", "POST"));
        request.wait_ms = Some(100);
        let answered = process.run(&request);
        let was_sent = posts() > posts_before;
        drop(process);
        harness.memory.faults.heal();
        let Ok(execution) = answered else { continue };
        let process = harness.process();
        if execution.state.is_final() || process.resume_runs() == 0 {
            continue;
        }
        process.run_for_ms(100);
        let execution = process.execution(&execution.id.to_string());
        assert_eq!(posts() - posts_before, 1, "{nth} {execution:?}");
        let outcome = (execution.state, execution.error.map(|error| error.name));
        if was_sent {
            unknown += 1;
            assert_eq!(outcome, (ExecutionState::Failed, Some("UnknownOutcome".to_owned())), "{nth}");
        } else {
            not_sent += 1;
            assert_eq!(outcome, (ExecutionState::Completed, None), "{nth}");
        }
    }
    assert!(not_sent > 0 && unknown > 0, "{not_sent} {unknown}");
}

/// Each commit of a run fails, loses its answer, or meets a conflict. Then another process continues.
#[test]
fn a_crash_at_any_commit_keeps_every_answered_run_and_adds_none() {
    let program = json!([{"set": ["a", 1]}, {"print": "x\n"}, timer_step(5), {"add": ["n", 1]}, timer_step(5), {"add": ["n", 1]}, {"get": "n"}]);
    let mut faults_met = 0;
    for fault in [Fault::Unavailable, Fault::LostAfter, Fault::Conflict] {
        for (nth, wait_ms) in (1..=5).flat_map(|nth| [(nth, 8), (nth, 2_000)]) {
            let harness = JsHarness::new();
            let process = harness.process();
            process.open_session();
            expect_completed(process.run(&logical_request("s0", json!([{"set": ["n", 0]}]))));
            let before = harness.memory.faults.calls(Operation::Commit);
            harness.memory.faults.fail(Operation::Commit, nth, fault);
            let answered =
                process.run(&RunJsRequest { wait_ms: Some(wait_ms), ..logical_request("s0", program.clone()) });
            let commits = harness.memory.faults.calls(Operation::Commit) - before;
            faults_met += usize::from(commits >= nth);
            drop(process);
            harness.memory.faults.heal();
            let process = harness.process();
            process.resume_runs();
            process.run_for_ms(1_000);
            let executions = process.block_on(process.service.executions(&local_caller(), None, 10)).unwrap();
            assert!(executions.iter().all(|e| e.state == ExecutionState::Completed), "{fault:?} {nth}: {executions:?}");
            if let Ok(answered) = &answered {
                assert!(executions.iter().any(|e| e.id == answered.id));
            }
            let entries = check_session(&process, &SessionTarget::Logical("s0".into()));
            assert_eq!(entries, executions.len(), "{fault:?} {nth}");
            for execution in executions.iter().filter(|e| e.input_heap.is_some()) {
                assert_eq!(completed_value(execution), json!(2));
                let page = process.block_on(process.service.execution_output(
                    &local_caller(),
                    &execution.id.to_string(),
                    &OutputRequest::default(),
                ));
                assert_eq!(page.unwrap().data, "x\n");
            }
        }
    }
    // A call that waits briefly makes three commits before its process dies: accepted, parked, parked. A call that
    // waits for the end makes three as well: accepted and parked, parked, ended. Each fault must have met each of them.
    assert!(faults_met >= 3 * (3 + 3), "only {faults_met} faults met a commit");
}

#[test]
fn a_run_ends_correctly_after_a_crash_at_any_moment() {
    for ms in (0..60).step_by(3) {
        let harness = JsHarness::new();
        add_people_list(&harness);
        let process = harness.process();
        process.open_session();
        let read = Call::Plasm { program: "Person[name]".to_owned() };
        let calls: Vec<Call> = (0..5).map(|n| Call::Timer { ms: 10 + n }).chain([read]).collect();
        let step = json!({"await": calls});
        let program =
            json!([step.clone(), {"add": ["n", 1]}, step.clone(), {"add": ["n", 1]}, step, {"add": ["n", 1]}]);
        let execution = process.run(&RunJsRequest { wait_ms: Some(ms), ..logical_request("s0", program) }).unwrap();
        drop(process);
        let process = harness.process();
        process.resume_runs();
        process.run_for_ms(ms);
        drop(process);
        let process = harness.process();
        process.resume_runs();
        process.run_for_ms(10_000);
        assert_eq!(completed_value(&process.execution(&execution.id.to_string())), json!(3));
        assert_eq!(check_session(&process, &SessionTarget::Logical("s0".into())), 1);
    }
}

#[test]
fn a_run_that_its_process_could_not_store_is_resumed() {
    let harness = JsHarness::new();
    let process = harness.process();
    // The storage fails for longer than the run retries.
    let execution =
        process.run(&unawaited_request("n", json!([timer_step(10), {"set": ["x", 1]}, {"get": "x"}]))).unwrap();
    harness.memory.faults.fail_always(Operation::Commit, Fault::Unavailable);
    process.run_for_ms(60_000 / 4);
    assert_eq!(process.execution(&execution.id.to_string()).state, ExecutionState::Running);
    harness.memory.faults.heal();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(1_000);
    assert_eq!(completed_value(&process.execution(&execution.id.to_string())), json!(1));
}

#[test]
fn a_run_reports_why_its_heap_cannot_be_stored_and_continues_when_it_can() {
    let harness = JsHarness::new();
    let process = harness.process();
    // The engine's program is stored with the first run.
    expect_completed(process.run(&script_request(json!([]))));
    let big = script_request(json!([{"set": ["big", "x".repeat(100_000)]}, {"get": "big"}]));
    harness.memory.faults.fail_always(Operation::PutBlob, Fault::Unavailable);
    let execution = process.run(&big).unwrap();
    let id = execution.id.to_string();
    assert!(execution.state == ExecutionState::Running && execution.heap.is_none());
    assert!(execution.warning.unwrap().contains("storage_unavailable"));
    assert!(process.execution(&id).warning.unwrap().contains("storage_unavailable"));
    harness.memory.faults.heal();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(1_000);
    let ended = expect_completed(Ok(process.execution(&id)));
    assert!(ended.heap.is_some() && ended.warning.is_none());
    // The storage fails for longer than the run's time limit.
    harness.memory.faults.fail_always(Operation::PutBlob, Fault::Unavailable);
    let other = script_request(json!([{"set": ["big", "y".repeat(100_000)]}]));
    let execution = process.run(&RunJsRequest { timeout_ms: Some(1_000), ..other }).unwrap();
    process.run_for_ms(5_000);
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(100);
    let ended = process.execution(&execution.id.to_string());
    assert!(ended.state == ExecutionState::TimedOut && ended.error.unwrap().message.contains("storage_unavailable"));
}

#[test]
fn two_processes_take_turns_in_one_session() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    process.open_session();
    let add_and_wait = |process: &Process, wait: u64| {
        process
            .run(&RunJsRequest {
                wait_ms: Some(wait),
                ..logical_request("s0", json!([{"add": ["n", 1]}, timer_step(50)]))
            })
            .unwrap()
    };
    let ids: Vec<ExecutionId> =
        [add_and_wait(&process, 0), add_and_wait(&other, 0), add_and_wait(&process, 0), add_and_wait(&other, 0)]
            .map(|e: Execution| e.id)
            .to_vec();
    for _ in 0..40 {
        process.run_for_ms(50);
        other.run_for_ms(50);
    }
    let values: Vec<Value> = ids.iter().map(|id| completed_value(&process.execution(&id.to_string()))).collect();
    // The values of these runs are answers of timers. The count is in the heap.
    assert_eq!(values.len(), 4);
    assert_eq!(process.run_to_value(&logical_request("s0", json!([{"get": "n"}]))), json!(4));
    assert_eq!(check_session(&process, &SessionTarget::Logical("s0".into())), 5);
}

#[test]
fn a_cancel_from_another_process_takes_effect() {
    let harness = JsHarness::new();
    let process = harness.process();
    let other = harness.process();
    let execution = process.run(&unawaited_request("n", json!([{"spin": 20_000}]))).unwrap();
    process.run_for_ms(100);
    other.block_on(other.service.cancel_execution(&local_caller(), &execution.id.to_string())).unwrap();
    process.run_for_ms(2_000);
    // The cancelled run does not block the session.
    expect_completed(process.run(&named_request("n", json!([{"set": ["x", 1]}]))));
    assert_eq!(process.execution(&execution.id.to_string()).state, ExecutionState::Cancelled);
}

#[test]
fn a_damaged_heap_is_reported_and_the_head_stays() {
    for damage in ["truncated", "changed", "swapped", "gone"] {
        let harness = JsHarness::new();
        let process = harness.process();
        process.open_session();
        let first = expect_completed(process.run(&logical_request("s0", json!([{"set": ["x", 1]}])))).heap.unwrap();
        let head = expect_completed(process.run(&logical_request("s0", json!([{"set": ["y", 2]}])))).heap.unwrap();
        let rows = harness.memory.store.rows();
        let heap_row = |heap: base::Digest| {
            rows.iter().find(|(key, _)| key.table == Table::Heap && key.id == heap.to_string()).unwrap()
        };
        let (key, row) = heap_row(first);
        let mut bytes = row.value.clone();
        match damage {
            "truncated" => bytes.truncate(bytes.len() - 3),
            "changed" => *bytes.iter_mut().rev().find(|byte| **byte == b'1').unwrap() = b'7',
            _ => bytes = heap_row(head).1.value.clone(),
        }
        let batch = if damage == "gone" {
            ports::store::Batch::default().delete(key.clone(), ports::store::Expect::Any)
        } else {
            ports::store::Batch::default().put(key.clone(), bytes, ports::store::Expect::Any)
        };
        process.block_on(ports::Store::commit(harness.memory.store.as_ref(), batch)).unwrap();
        process.engine.forget();
        let execution = process.run(&logical_request("s0", json!([{"get": "x"}]))).unwrap();
        assert_eq!(execution.state, ExecutionState::Failed, "{damage}");
        let error = execution.error.unwrap();
        let names_heap = error.message.contains(&first.to_string()) || error.message.contains(&head.to_string());
        assert!(error.name == "damaged_heap" && names_heap, "{damage}: {error:?}");
        let lineage = process
            .block_on(process.service.session_lineage(&local_caller(), &SessionTarget::Logical("s0".into())))
            .unwrap();
        assert_eq!((lineage.head, lineage.nodes.len()), (Some(head), 2), "{damage}");
    }
}

#[test]
fn large_heaps_are_blobs_and_a_damaged_blob_is_reported() {
    let harness = JsHarness::new();
    let process = harness.process();
    let execution = expect_completed(process.run(&script_request(json!([{"set": ["big", "x".repeat(100_000)]}]))));
    let heap = execution.heap.unwrap();
    let guest = base::Digest::of(b"a tiny engine");
    let blob = harness.memory.blobs.digests().into_iter().find(|digest| *digest != guest).unwrap();
    let read_big = RunJsRequest { heap: Some(heap.to_string()), ..script_request(json!([{"get": "big"}])) };
    process.engine.forget();
    assert_eq!(process.run_to_value(&read_big).as_str().unwrap().len(), 100_000);
    harness.memory.blobs.damage(&blob);
    process.engine.forget();
    let execution = process.run(&read_big).unwrap();
    assert!(execution.state == ExecutionState::Failed && execution.error.unwrap().message.contains(&heap.to_string()));
}

#[test]
fn a_heap_of_an_older_engine_runs_on_that_engine() {
    let harness = JsHarness::new();
    let process = harness.process();
    let heap = expect_completed(process.run(&script_request(json!([{"set": ["x", 1]}])))).heap.unwrap();
    drop(process);
    let process = harness.process_with(TinyScripts::build("a tiny engine of the next release"));
    let execution = expect_completed(
        process.run(&RunJsRequest { heap: Some(heap.to_string()), ..script_request(json!([{"add": ["x", 1]}])) }),
    );
    assert_eq!(completed_value(&execution), json!(2));
    let info =
        process.block_on(process.service.heap_info(&local_caller(), &execution.heap.unwrap().to_string())).unwrap();
    assert_eq!(info.engine, base::Digest::of(b"a tiny engine"));
    // Without the program of the old engine, the error names that engine.
    harness.memory.blobs.remove(&base::Digest::of(b"a tiny engine"));
    let process = harness.process_with(TinyScripts::build("a tiny engine of the release after"));
    let execution = process.run(&RunJsRequest { heap: Some(heap.to_string()), ..script_request(json!([])) }).unwrap();
    let error = execution.error.unwrap();
    assert!(error.name == "no_engine" && error.message.contains(&base::Digest::of(b"a tiny engine").to_string()));
}

#[test]
fn long_chains_are_merged_and_steps_stay_small() {
    let mut harness = JsHarness::new();
    harness.settings.links = 8;
    let process = harness.process();
    process.open_session();
    for _ in 0..40 {
        expect_completed(process.run(&logical_request("s0", json!([{"add": ["n", 1]}]))));
        process.run_for_ms(1);
    }
    let links: Vec<u64> = harness
        .memory
        .store
        .rows()
        .iter()
        .filter(|(key, _)| key.table == Table::Heap)
        .map(|(_, row)| {
            let end = row.value.iter().position(|byte| *byte == b'\n').unwrap();
            serde_json::from_slice::<Value>(&row.value[..end]).unwrap()["links"].as_u64().unwrap()
        })
        .collect();
    assert!(links.len() == 40 && links.iter().all(|links| *links <= 9), "{links:?}");
    assert!(links.iter().filter(|links| **links == 1).count() >= 4);
    drop(process);
    let process = harness.process();
    assert_eq!(process.run_to_value(&logical_request("s0", json!([{"get": "n"}]))), json!(40));
}
