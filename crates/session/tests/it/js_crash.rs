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

use crate::harness::{self, commit_of};
use crate::js_harness::{self, JsHarness, Process, code, completed, later, local, logical, timer, value};

const OPEN_ONE: &str = r#"Ticket.open(project="OPS", title="from code")"#;

fn plasm(program: &str) -> Value {
    json!({"await": [Call::Plasm { program: program.to_owned() }]})
}

fn lists_people(house: &JsHarness) {
    let people = json!({"data": [{"id": "ada", "name": "Ada"}]});
    house.house.upstream.add(Rule::get("/api/people").json(200, people));
}

/// Checks a session: contiguous indexes, the head is the last entry's heap and stored with its ancestors, and the
/// queue is empty.
fn check(p: &Process, session: &SessionTarget) -> usize {
    p.engine.forget();
    p.block(async {
        let log = p.service.session_log(&local(), session).await.unwrap();
        let lineage = p.service.session_lineage(&local(), session).await.unwrap();
        for (at, entry) in log.iter().enumerate() {
            assert_eq!(entry.index, at as u64);
        }
        assert_eq!(lineage.head, log.last().map(|entry| entry.output_heap));
        for entry in &log {
            // Read through the engine, which verifies the heap.
            let key = entry.output_heap.to_string();
            p.service.diff_heaps(&local(), &key, &key).await.unwrap();
        }
        log.len()
    })
}

#[test]
fn a_run_whose_process_died_continues_in_another() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let program = json!([{"set": ["a", 1]}, {"print": "one\n"}, timer(10_000), {"add": ["a", 1]}, {"print": "two\n"}, timer(10_000), {"add": ["a", 1]}]);
    let ran = p.run(&RunJsRequest { wait_ms: Some(12_000), ..logical("s0", program) }).unwrap();
    let after = p.run(&RunJsRequest { wait_ms: Some(0), ..logical("s0", json!([{"add": ["a", 100]}])) }).unwrap();
    assert_eq!((ran.state, after.state), (ExecutionState::Running, ExecutionState::Queued));
    // A pass in another process while the first one lives takes nothing.
    let other = house.process();
    assert_eq!(other.resume(), 0);
    drop(p);
    assert_eq!(other.resume(), 2);
    other.rest(15_000);
    let (ran, after) = (other.execution(&ran.id.to_string()), other.execution(&after.id.to_string()));
    assert_eq!((value(&ran), value(&after)), (json!(3), json!(103)));
    // Only the work since the last stored heap was repeated, and time had advanced.
    assert_eq!(ran.ended.unwrap().0 - ran.started.unwrap().0, 20_000);
    let output = other.block(other.service.execution_output(&local(), &ran.id.to_string(), &OutputRequest::default()));
    assert_eq!(output.unwrap().data, "one\ntwo\n");
    assert_eq!(other.engine.steps().iter().filter(|step| *step != "settle").count(), 1);
    assert_eq!(check(&other, &SessionTarget::Logical("s0".into())), 2);
}

#[test]
fn a_deadline_keeps_running_while_no_process_owns_the_run() {
    let house = JsHarness::new();
    let p = house.process();
    let ran = p.run(&RunJsRequest { timeout_ms: Some(5_000), ..later("n", json!([timer(60_000)])) }).unwrap();
    drop(p);
    house.time.advance(std::time::Duration::from_secs(30));
    let p = house.process();
    assert_eq!(p.resume(), 1);
    p.rest(10);
    assert_eq!(p.execution(&ran.id.to_string()).state, ExecutionState::TimedOut);
    completed(p.run(&js_harness::named("n", json!([]))));
}

#[test]
fn a_script_gets_the_rows_of_a_program() {
    let house = JsHarness::new();
    lists_people(&house);
    let p = house.process();
    p.block(harness::open(&p.service));
    let ran = completed(p.run(&logical("s0", json!([plasm("Person[name]")]))));
    let answer = value(&ran)[0].clone();
    assert_eq!(answer["rows"], json!([{"name": "Ada"}]), "{answer}");
    assert_eq!(
        (answer["coverage"].clone(), answer["artifact"].clone()),
        (json!("complete"), json!("plasm://session/s0/r/1"))
    );
    p.block(p.service.artifact(&local(), "plasm://session/s0/r/1")).unwrap();
    let wrong = p.run(&logical("s0", json!([plasm("Tickets.limit(")]))).unwrap();
    assert_eq!((wrong.state, wrong.error.unwrap().name.as_str()), (ExecutionState::Failed, "PlasmError"));
    let outside = p.run(&code(json!([plasm("Ticket")]))).unwrap();
    assert!(outside.error.unwrap().message.contains("logical session"));
    let planned = completed(p.run(&logical("s0", json!([{"await": [Call::Plan { program: OPEN_ONE.to_owned() }]}]))));
    assert_eq!(
        (value(&planned)[0]["verdict"].clone(), value(&planned)[0]["plan_commit_ref"].clone()),
        (json!("review"), json!("pc0"))
    );
    assert!(house.house.sent().is_empty());
}

#[test]
fn a_write_by_a_script_waits_for_an_approval_across_a_restart() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let program = json!([{"set": ["x", 1]}, plasm(OPEN_ONE), {"get": "x"}]);
    let ran = p.run(&RunJsRequest { timeout_ms: Some(500_000), ..logical("s0", program) }).unwrap();
    assert_eq!(ran.state, ExecutionState::WaitingReview);
    assert_eq!((ran.reviews.len(), ran.reviews[0].commit.as_str()), (1, "pc0"));
    assert!(ran.reviews[0].plan.contains("review"), "{}", ran.reviews[0].plan);
    p.rest(60_000);
    assert!(house.house.sent().is_empty());
    drop(p);
    let p = house.process();
    assert_eq!(p.resume(), 1);
    p.rest(5_000);
    assert_eq!(p.execution(&ran.id.to_string()).state, ExecutionState::WaitingReview);
    let approved = harness::finished(p.block(p.service.run(&local(), &commit_of("pc0"))));
    assert!(!approved.replayed);
    p.rest(2_000);
    assert_eq!(value(&p.execution(&ran.id.to_string())), json!(1));
    assert_eq!(house.house.times("from code"), 1);
}

#[test]
fn the_answer_of_an_approved_write_survives_a_crash_without_a_second_write() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let program = json!([plasm(OPEN_ONE), timer(10_000), {"set": ["done", true]}, {"get": "done"}]);
    let ran = p.run(&logical("s0", program)).unwrap();
    // Approved in another process while this one is stopped.
    let other = house.process();
    harness::finished(other.block(other.service.run(&local(), &commit_of("pc0"))));
    drop(p);
    for _ in 0..3 {
        let p = house.process();
        p.resume();
        p.rest(6_000);
    }
    assert_eq!(value(&other.execution(&ran.id.to_string())), json!(true));
    assert_eq!(house.house.times("from code"), 1);
}

#[test]
fn writes_allowed_without_a_review_are_done_once() {
    let mut house = JsHarness::new();
    house.settings = JsSettings { writes_without_review: true, ..house.settings };
    let p = house.process();
    p.block(harness::open(&p.service));
    let ran = p
        .run(&RunJsRequest { wait_ms: Some(1_000), ..logical("s0", json!([plasm(OPEN_ONE), timer(60_000)])) })
        .unwrap();
    assert_eq!((ran.state, house.house.times("from code")), (ExecutionState::Running, 1));
    drop(p);
    let p = house.process();
    p.resume();
    p.rest(1_000);
    assert_eq!(house.house.times("from code"), 1);
}

/// From the nth commit on nothing is durable, as after a crash there; then another process continues.
#[test]
fn a_write_by_a_script_continues_under_its_claim_after_a_crash_anywhere() {
    let remark = r#"Comment.add(ticket=Ticket(project="OPS", number=1), text="from code")"#;
    let (mut done, mut unknown) = (0, 0);
    for cut in 2..9 {
        let mut house = JsHarness::new();
        house.settings = JsSettings { writes_without_review: true, ..house.settings };
        let p = house.process();
        p.block(harness::open(&p.service));
        completed(p.run(&logical("s0", json!([{"set": ["before", 1]}]))));
        for nth in cut..cut + 100 {
            house.house.faults.fail(Operation::Commit, nth, Fault::Unavailable);
        }
        let program = json!([plasm(remark), {"set": ["x", 1]}, {"get": "x"}]);
        let ran = p.run(&RunJsRequest { wait_ms: Some(500), ..logical("s0", program) }).unwrap();
        drop(p);
        house.house.faults.heal();
        let p = house.process();
        p.resume();
        p.rest(5_000);
        let ran = p.execution(&ran.id.to_string());
        match ran.state {
            ExecutionState::Completed => {
                assert_eq!(house.house.times("from code"), 1, "{cut}");
                done += 1;
            }
            _ => {
                assert!(
                    ran.error.as_ref().is_some_and(|error| error.message.contains("nobody knows")),
                    "{cut}: {ran:?}"
                );
                assert_eq!(house.house.times("from code"), 1, "{cut}");
                unknown += 1;
            }
        }
    }
    // Only a crash between the call and its answer leaves the outcome unknown.
    assert!(done >= 5 && unknown == 1, "{done} done, {unknown} unknown");
}

#[test]
fn fetch_reaches_only_allowed_origins_and_an_interrupted_write_is_unknown() {
    let mut house = JsHarness::new();
    let fetch = |url: &str, method: &str| json!([{"await": [Call::Fetch { request: json!({"url": url, "method": method, "body": null}) }]}]);
    let p = house.process();
    let refused = p.run(&code(fetch("https://api.example.com/x", "GET"))).unwrap();
    let said = refused.error.unwrap().message;
    assert!(said.contains("from no origin") && said.contains("`fetch = [\"https://api.example.com\"]`"), "{said}");
    house.settings.fetch = vec![session::FetchRule::to(base::Origin::parse("https://api.example.com").unwrap())];
    let answer = |_: &ports::upstream::Call| Ok(Response { status: 200, headers: Vec::new(), body: b"hello".to_vec() });
    house.house.upstream.add(Rule::get("/x").answers(answer));
    house.house.upstream.add(Rule::post("/x").answers(answer));
    let p = house.process();
    let ran = completed(p.run(&code(fetch("https://api.example.com/x?a=1", "GET"))));
    assert_eq!((value(&ran)[0]["status"].clone(), value(&ran)[0]["body"].clone()), (json!(200), json!("aGVsbG8=")));
    assert_eq!(
        value(&completed(p.run(&code(fetch("https://api.example.com/x", "POST"))))),
        value(&ran)
            .as_array()
            .map(|_| json!([{"url": "https://api.example.com/x", "status": 200, "headers": [], "body": "aGVsbG8="}]))
            .unwrap()
    );
    let other = p.run(&code(fetch("https://evil.example.com/x", "GET"))).unwrap();
    let said = other.error.unwrap().message;
    assert!(
        said.contains("only from https://api.example.com;") && said.contains("[\"https://evil.example.com\"]"),
        "{said}"
    );
    // The process is killed between its last commit and the answer.
    house.house.faults.fail(Operation::Commit, 3, Fault::Unavailable);
    let mut asked = code(fetch("https://api.example.com/x", "POST"));
    asked.wait_ms = Some(100);
    let ran = p.run(&asked).unwrap();
    drop(p);
    house.house.faults.heal();
    let p = house.process();
    p.resume();
    p.rest(100);
    let ran = p.execution(&ran.id.to_string());
    assert_eq!((ran.state, ran.error.unwrap().name.as_str()), (ExecutionState::Failed, "UnknownOutcome"));
    let posts = house.house.upstream.calls().into_iter().filter(|call| call.request.method == base::Method::Post);
    assert_eq!(posts.count(), 2);
}

/// Every commit of a run fails once, loses its answer once, or is the last one of its process; then another process
/// continues.
#[test]
fn a_crash_at_any_commit_keeps_every_answered_run_and_adds_none() {
    let program = json!([{"set": ["a", 1]}, {"print": "x\n"}, timer(5), {"add": ["n", 1]}, timer(5), {"add": ["n", 1]}, {"get": "n"}]);
    let mut crashed = 0;
    for fault in [Fault::Unavailable, Fault::LostAfter, Fault::Conflict] {
        for (nth, wait) in (1..=5).flat_map(|nth| [(nth, 8), (nth, 2_000)]) {
            let house = JsHarness::new();
            let p = house.process();
            p.block(harness::open(&p.service));
            completed(p.run(&logical("s0", json!([{"set": ["n", 0]}]))));
            let before = house.house.faults.calls(Operation::Commit);
            house.house.faults.fail(Operation::Commit, nth, fault);
            let answered = p.run(&RunJsRequest { wait_ms: Some(wait), ..logical("s0", program.clone()) });
            let commits = house.house.faults.calls(Operation::Commit) - before;
            crashed += usize::from(commits >= nth);
            drop(p);
            house.house.faults.heal();
            let p = house.process();
            p.resume();
            p.rest(1_000);
            let executions = p.block(p.service.executions(&local(), None, 10)).unwrap();
            assert!(executions.iter().all(|e| e.state == ExecutionState::Completed), "{fault:?} {nth}: {executions:?}");
            if let Ok(answered) = &answered {
                assert!(executions.iter().any(|e| e.id == answered.id));
            }
            let entries = check(&p, &SessionTarget::Logical("s0".into()));
            assert_eq!(entries, executions.len(), "{fault:?} {nth}");
            for execution in executions.iter().filter(|e| e.input_heap.is_some()) {
                assert_eq!(value(execution), json!(2));
                let page =
                    p.block(p.service.execution_output(&local(), &execution.id.to_string(), &OutputRequest::default()));
                assert_eq!(page.unwrap().data, "x\n");
            }
        }
    }
    // The commits are: accepted, parked twice, then the process dies; or, for a call that waits, parked twice and
    // ended, the first together with the acceptance. Each fault met each of them.
    assert!(crashed >= 3 * (3 + 3), "only {crashed} commits were met");
}

#[test]
fn a_run_ends_correctly_after_a_crash_at_any_moment() {
    for ms in (0..60).step_by(3) {
        let house = JsHarness::new();
        lists_people(&house);
        let p = house.process();
        p.block(harness::open(&p.service));
        let read = Call::Plasm { program: "Person[name]".to_owned() };
        let calls: Vec<Call> = (0..5).map(|n| Call::Timer { ms: 10 + n }).chain([read]).collect();
        let step = json!({"await": calls});
        let program =
            json!([step.clone(), {"add": ["n", 1]}, step.clone(), {"add": ["n", 1]}, step, {"add": ["n", 1]}]);
        let ran = p.run(&RunJsRequest { wait_ms: Some(ms), ..logical("s0", program) }).unwrap();
        drop(p);
        let p = house.process();
        p.resume();
        p.rest(ms);
        drop(p);
        let p = house.process();
        p.resume();
        p.rest(10_000);
        assert_eq!(value(&p.execution(&ran.id.to_string())), json!(3));
        assert_eq!(check(&p, &SessionTarget::Logical("s0".into())), 1);
    }
}

#[test]
fn a_run_that_its_process_could_not_store_is_resumed() {
    let house = JsHarness::new();
    let p = house.process();
    // The storage fails for longer than the run retries.
    let ran = p.run(&later("n", json!([timer(10), {"set": ["x", 1]}, {"get": "x"}]))).unwrap();
    house.house.faults.fail_always(Operation::Commit, Fault::Unavailable);
    p.rest(60_000 / 4);
    assert_eq!(p.execution(&ran.id.to_string()).state, ExecutionState::Running);
    house.house.faults.heal();
    assert_eq!(p.resume(), 1);
    p.rest(1_000);
    assert_eq!(value(&p.execution(&ran.id.to_string())), json!(1));
}

#[test]
fn a_run_reports_why_its_heap_cannot_be_stored_and_continues_when_it_can() {
    let house = JsHarness::new();
    let p = house.process();
    // The engine's program is stored with the first run.
    completed(p.run(&code(json!([]))));
    let big = code(json!([{"set": ["big", "x".repeat(100_000)]}, {"get": "big"}]));
    house.house.faults.fail_always(Operation::PutBlob, Fault::Unavailable);
    let ran = p.run(&big).unwrap();
    let id = ran.id.to_string();
    assert!(ran.state == ExecutionState::Running && ran.heap.is_none());
    assert!(ran.warning.unwrap().contains("storage_unavailable"));
    assert!(p.execution(&id).warning.unwrap().contains("storage_unavailable"));
    house.house.faults.heal();
    assert_eq!(p.resume(), 1);
    p.rest(1_000);
    let ended = completed(Ok(p.execution(&id)));
    assert!(ended.heap.is_some() && ended.warning.is_none());
    // The storage fails for longer than the run's time limit.
    house.house.faults.fail_always(Operation::PutBlob, Fault::Unavailable);
    let other = code(json!([{"set": ["big", "y".repeat(100_000)]}]));
    let ran = p.run(&RunJsRequest { timeout_ms: Some(1_000), ..other }).unwrap();
    p.rest(5_000);
    assert_eq!(p.resume(), 1);
    p.rest(100);
    let ended = p.execution(&ran.id.to_string());
    assert!(ended.state == ExecutionState::TimedOut && ended.error.unwrap().message.contains("storage_unavailable"));
}

#[test]
fn two_processes_take_turns_in_one_session() {
    let house = JsHarness::new();
    let (p, other) = (house.process(), house.process());
    p.block(harness::open(&p.service));
    let add = |p: &Process, wait: u64| {
        p.run(&RunJsRequest { wait_ms: Some(wait), ..logical("s0", json!([{"add": ["n", 1]}, timer(50)])) }).unwrap()
    };
    let ids: Vec<ExecutionId> =
        [add(&p, 0), add(&other, 0), add(&p, 0), add(&other, 0)].map(|e: Execution| e.id).to_vec();
    for _ in 0..40 {
        p.rest(50);
        other.rest(50);
    }
    let values: Vec<Value> = ids.iter().map(|id| value(&p.execution(&id.to_string()))).collect();
    // The value is a timer's answer; the counts are in the heap.
    assert_eq!(values.len(), 4);
    assert_eq!(value(&completed(p.run(&logical("s0", json!([{"get": "n"}]))))), json!(4));
    assert_eq!(check(&p, &SessionTarget::Logical("s0".into())), 5);
}

#[test]
fn a_cancel_from_another_process_takes_effect() {
    let house = JsHarness::new();
    let (p, other) = (house.process(), house.process());
    let ran = p.run(&later("n", json!([{"spin": 20_000}]))).unwrap();
    p.rest(100);
    other.block(other.service.cancel_execution(&local(), &ran.id.to_string())).unwrap();
    p.rest(2_000);
    // The cancelled run computes no further.
    completed(p.run(&js_harness::named("n", json!([{"set": ["x", 1]}]))));
    assert_eq!(p.execution(&ran.id.to_string()).state, ExecutionState::Cancelled);
}

#[test]
fn a_damaged_heap_is_reported_and_the_head_stays() {
    for how in ["truncated", "changed", "swapped", "gone"] {
        let house = JsHarness::new();
        let p = house.process();
        p.block(harness::open(&p.service));
        let first = completed(p.run(&logical("s0", json!([{"set": ["x", 1]}])))).heap.unwrap();
        let head = completed(p.run(&logical("s0", json!([{"set": ["y", 2]}])))).heap.unwrap();
        let rows = house.house.store.rows();
        let of = |heap: base::Digest| {
            rows.iter().find(|(key, _)| key.table == Table::Heap && key.id == heap.to_string()).unwrap()
        };
        let (key, row) = of(first);
        let mut bytes = row.value.clone();
        match how {
            "truncated" => bytes.truncate(bytes.len() - 3),
            "changed" => *bytes.iter_mut().rev().find(|byte| **byte == b'1').unwrap() = b'7',
            _ => bytes = of(head).1.value.clone(),
        }
        let batch = if how == "gone" {
            ports::store::Batch::default().delete(key.clone(), ports::store::Expect::Any)
        } else {
            ports::store::Batch::default().put(key.clone(), bytes, ports::store::Expect::Any)
        };
        p.block(ports::Store::commit(house.house.store.as_ref(), batch)).unwrap();
        p.engine.forget();
        let ran = p.run(&logical("s0", json!([{"get": "x"}]))).unwrap();
        assert_eq!(ran.state, ExecutionState::Failed, "{how}");
        let error = ran.error.unwrap();
        let named = error.message.contains(&first.to_string()) || error.message.contains(&head.to_string());
        assert!(error.name == "damaged_heap" && named, "{how}: {error:?}");
        let lineage = p.block(p.service.session_lineage(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
        assert_eq!((lineage.head, lineage.nodes.len()), (Some(head), 2), "{how}");
    }
}

#[test]
fn large_heaps_are_blobs_and_a_damaged_blob_is_reported() {
    let house = JsHarness::new();
    let p = house.process();
    let ran = completed(p.run(&code(json!([{"set": ["big", "x".repeat(100_000)]}]))));
    let heap = ran.heap.unwrap();
    let guest = base::Digest::of(b"a tiny engine");
    let blob = house.house.blobs.digests().into_iter().find(|digest| *digest != guest).unwrap();
    let again = RunJsRequest { heap: Some(heap.to_string()), ..code(json!([{"get": "big"}])) };
    p.engine.forget();
    assert_eq!(value(&completed(p.run(&again))).as_str().unwrap().len(), 100_000);
    house.house.blobs.damage(&blob);
    p.engine.forget();
    let ran = p.run(&again).unwrap();
    assert!(ran.state == ExecutionState::Failed && ran.error.unwrap().message.contains(&heap.to_string()));
}

#[test]
fn a_heap_of_an_older_engine_runs_on_that_engine() {
    let house = JsHarness::new();
    let p = house.process();
    let heap = completed(p.run(&code(json!([{"set": ["x", 1]}])))).heap.unwrap();
    drop(p);
    let p = house.process_with(TinyScripts::build("a tiny engine of the next release"));
    let ran = completed(p.run(&RunJsRequest { heap: Some(heap.to_string()), ..code(json!([{"add": ["x", 1]}])) }));
    assert_eq!(value(&ran), json!(2));
    let info = p.block(p.service.heap_info(&local(), &ran.heap.unwrap().to_string())).unwrap();
    assert_eq!(info.engine, base::Digest::of(b"a tiny engine"));
    // If its program is lost, the error names it.
    let house_blobs = house.house.blobs.clone();
    house_blobs.remove(&base::Digest::of(b"a tiny engine"));
    let p = house.process_with(TinyScripts::build("a tiny engine of the release after"));
    let ran = p.run(&RunJsRequest { heap: Some(heap.to_string()), ..code(json!([])) }).unwrap();
    let error = ran.error.unwrap();
    assert!(error.name == "no_engine" && error.message.contains(&base::Digest::of(b"a tiny engine").to_string()));
}

#[test]
fn long_chains_are_merged_and_steps_stay_small() {
    let mut house = JsHarness::new();
    house.settings.links = 8;
    let p = house.process();
    p.block(harness::open(&p.service));
    for _ in 0..40 {
        completed(p.run(&logical("s0", json!([{"add": ["n", 1]}]))));
        p.rest(1);
    }
    let links: Vec<u64> = house
        .house
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
    drop(p);
    let p = house.process();
    assert_eq!(value(&completed(p.run(&logical("s0", json!([{"get": "n"}]))))), json!(40));
}
