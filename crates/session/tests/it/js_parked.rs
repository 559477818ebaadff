//! Runs that park in their first step, stored in one commit: no partial state, no second request, and no lost work
//! when two processes meet.

use std::sync::Arc;

use base::{Method, Origin};
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{Execution, ExecutionState, OutputRequest, RunJsRequest, SessionTarget};
use testkit::faults::{Fault, Operation};
use testkit::upstream::Rule;
use tokio::sync::Notify;

use crate::harness;
use crate::js_fast_path::{add, entries, open};
use crate::js_harness::{JsHarness, Process, code, completed, local, logical, named, timer, value};

/// Prints, waits and adds.
fn wait_and_add() -> RunJsRequest {
    RunJsRequest { wait_ms: Some(60_000), ..add(&[json!({"print": "waits\n"}), timer(1_000)]) }
}

fn printed(p: &Process, ran: &Execution) -> String {
    let asked = OutputRequest::default();
    p.block(p.service.execution_output(&local(), &ran.id.to_string(), &asked)).unwrap().data
}

/// Counts the commits during the work.
fn commits<T>(house: &JsHarness, work: impl FnOnce() -> T) -> (u64, T) {
    let before = house.house.faults.calls(Operation::Commit);
    let done = work();
    (house.house.faults.calls(Operation::Commit) - before, done)
}

#[test]
fn a_run_that_parks_in_its_first_step_takes_two_commits() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&add(&[])));
    let (count, ran) = commits(&house, || completed(p.run(&wait_and_add())));
    assert_eq!((count, value(&ran), printed(&p, &ran).as_str()), (2, json!(2), "waits\nadded\n"));
    let (count, early) = commits(&house, || p.run(&RunJsRequest { wait_ms: Some(500), ..wait_and_add() }).unwrap());
    assert_eq!((count, early.state, early.output_lines), (1, ExecutionState::Running, 1));
    assert_eq!((open(&house, &p), printed(&p, &early).as_str()), (1, "waits\n"));
    // The next run queues behind it.
    let next = p.run(&RunJsRequest { wait_ms: Some(200), ..add(&[]) }).unwrap();
    assert_eq!(next.state, ExecutionState::Queued);
    p.rest(3_000);
    let (ran, next) = (p.execution(&early.id.to_string()), p.execution(&next.id.to_string()));
    assert_eq!((value(&ran), value(&next)), (json!(3), json!(4)));
    assert_eq!((open(&house, &p), printed(&p, &ran).as_str()), (0, "waits\nadded\n"));
}

#[test]
fn a_heap_that_is_already_stored_does_not_hinder_a_run() {
    let house = JsHarness::new();
    let asked = code(json!([{"print": "x\n"}, {"set": ["x", 1]}, timer(1_000), {"get": "x"}]));
    let p = house.process();
    completed(p.run(&code(json!([]))));
    let run = |p: &Process| {
        let ran = completed(p.run(&asked));
        assert_eq!((value(&ran), printed(p, &ran).as_str()), (json!(1), "x\n"));
    };
    assert_eq!(commits(&house, || run(&p)).0, 2);
    // This process remembers what it stored. Another process learns by conflicts that both heaps exist, and stores
    // its engine first, which may be slow; its run is therefore accepted before that.
    assert_eq!(commits(&house, || run(&p)).0, 2);
    let other = house.process();
    assert_eq!(commits(&house, || run(&other)).0, 2 + 2 * 2);
}

/// A run with a large heap is accepted before the heap is stored.
#[test]
fn a_run_that_parks_with_a_large_heap_is_accepted_first() {
    let house = JsHarness::new();
    let p = house.process();
    let large = json!([{"set": ["x", noise(200_000)]}, timer(1_000), {"get": "x"}]);
    completed(p.run(&code(json!([]))));
    let (count, ran) = commits(&house, || completed(p.run(&RunJsRequest { wait_ms: Some(60_000), ..code(large) })));
    assert_eq!((count, value(&ran)), (3, json!(noise(200_000))));
}

/// Text that does not compress.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..bytes).map(|_| next()).collect()
}

/// Killed after its one commit, the run continues in another process.
#[test]
fn a_run_stored_as_parked_continues_in_another_process() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let early = p.run(&RunJsRequest { wait_ms: Some(500), ..wait_and_add() }).unwrap();
    drop(p);
    let p = house.process();
    assert_eq!(p.resume(), 1);
    p.rest(5_000);
    let ran = p.execution(&early.id.to_string());
    assert_eq!((value(&ran), printed(&p, &ran).as_str()), (json!(1), "waits\nadded\n"));
    assert_eq!((entries(&p).len(), open(&house, &p)), (1, 0));
}

/// Faults at the given commits of a parked run, which then ends here or, if its process dies, in another one.
fn with_faults(faults: &[(u64, Fault)], dies: bool) {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&add(&[])));
    for (nth, fault) in faults {
        house.house.faults.fail(Operation::Commit, *nth, *fault);
    }
    let wait_ms = Some(if dies { 900 } else { 60_000 });
    let answered = p.run(&RunJsRequest { wait_ms, ..wait_and_add() });
    drop(p);
    house.house.faults.heal();
    let p = house.process();
    p.resume();
    p.rest(20_000);
    let all = p.block(p.service.executions(&local(), None, 10)).unwrap();
    let told = format!("{faults:?} {dies}: {answered:?}, {all:?}");
    assert!(all.iter().all(|e| e.state == ExecutionState::Completed), "{told}");
    // A run is refused only if it could not be accepted either.
    let refused = faults.starts_with(&[(1, Fault::Unavailable), (2, Fault::Unavailable)]);
    assert_eq!(answered.is_err(), refused, "{told}");
    assert_eq!(all.len(), 2 - usize::from(refused), "{told}");
    if let Ok(answered) = &answered {
        let found = all.iter().find(|e| e.id == answered.id).unwrap();
        assert_eq!((value(found), printed(&p, found).as_str()), (json!(2), "waits\nadded\n"), "{told}");
    }
    assert_eq!((entries(&p).len(), open(&house, &p)), (all.len(), 0), "{told}");
    assert_eq!(value(&completed(p.run(&add(&[])))), json!(all.len() + 1), "{told}");
}

#[test]
fn a_fault_while_a_run_parks_loses_and_duplicates_nothing() {
    use Fault::{Conflict, LostAfter, Unavailable};
    for dies in [false, true] {
        for fault in [Unavailable, LostAfter, Conflict] {
            for (first, many) in [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)] {
                let faults: Vec<_> = (first..first + many).map(|nth| (nth, fault)).collect();
                with_faults(&faults, dies);
            }
        }
        with_faults(&[(1, Unavailable), (2, LostAfter)], dies);
        with_faults(&[(1, Unavailable), (3, Unavailable)], dies);
        with_faults(&[(1, Unavailable), (3, LostAfter)], dies);
        with_faults(&[(1, Conflict), (2, LostAfter)], dies);
        with_faults(&[(1, LostAfter), (2, Unavailable)], dies);
    }
}

#[test]
fn two_processes_with_parked_runs_in_one_session_take_turns() {
    for (mine, theirs) in [(0, 0), (60, 20), (20, 60), (150, 20), (90, 110)] {
        let house = JsHarness::new();
        let (p, other) = (house.process(), house.process());
        p.block(harness::open(&p.service));
        let asked = |spin: u64| {
            let spin = json!({"spin": spin});
            let program = [spin, json!({"print": "waits\n"}), timer(500)];
            RunJsRequest { wait_ms: Some(60_000), ..add(&program) }
        };
        let (a, b, me) = (asked(mine), asked(theirs), local());
        let both = async { tokio::join!(p.service.run_js(&me, &a), other.service.run_js(&me, &b)) };
        let (a, b) = p.block(both);
        let (a, b) = (completed(a), completed(b));
        let mut values = [value(&a), value(&b)].map(|value| value.as_i64().unwrap());
        values.sort_unstable();
        assert_eq!(values, [1, 2], "{mine} {theirs}");
        for ran in [&a, &b] {
            assert_eq!(printed(&p, ran), "waits\nadded\n", "{mine} {theirs}");
        }
        assert_eq!((entries(&p).len(), open(&house, &p)), (2, 0));
    }
}

const ORIGIN: &str = "https://api.example.com";

fn post() -> Value {
    json!({"await": [Call::Fetch { request: json!({"url": format!("{ORIGIN}/x"), "method": "POST", "body": null}) }]})
}

fn sending(rule: Rule) -> JsHarness {
    let mut house = JsHarness::new();
    house.settings.fetch = vec![session::FetchRule::to(Origin::parse(ORIGIN).unwrap())];
    house.house.upstream.add(rule);
    house
}

fn posts(house: &JsHarness) -> usize {
    house.house.upstream.calls().iter().filter(|call| call.request.method == Method::Post).count()
}

/// Under any fault of the commit that stores a run with an effect, the effect is done once and its answer delivered.
#[test]
fn an_effect_of_a_first_step_is_done_once() {
    use Fault::{Conflict, LostAfter, Unavailable};
    let all: [&[(u64, Fault)]; 7] = [
        &[],
        &[(1, LostAfter)],
        &[(1, Unavailable)],
        &[(1, Conflict)],
        &[(1, Conflict), (2, Conflict)],
        &[(1, Unavailable), (2, LostAfter)],
        &[(2, LostAfter)],
    ];
    for faults in all {
        for queue in [1, 100] {
            let mut house = sending(Rule::post("/x").bytes(200, "yes"));
            house.settings.queue = queue;
            let p = house.process();
            completed(p.run(&named("n", json!([]))));
            for (nth, fault) in faults {
                house.house.faults.fail(Operation::Commit, *nth, *fault);
            }
            let asked = named("n", json!([post(), {"set": ["x", 1]}, {"get": "x"}]));
            let ran = p.run(&RunJsRequest { wait_ms: Some(60_000), ..asked });
            assert_eq!((value(&completed(ran)), posts(&house)), (json!(1), 1), "{faults:?} {queue}");
            p.rest(10_000);
            assert_eq!((p.resume(), posts(&house), open(&house, &p)), (0, 1, 0), "{faults:?} {queue}");
            completed(p.run(&named("n", json!([]))));
        }
    }
}

#[test]
fn an_effect_interrupted_by_a_crash_is_unknown_and_not_repeated() {
    let gate = Arc::new(Notify::new());
    let house = sending(Rule::post("/x").bytes(200, "yes").waits_for(&gate));
    let p = house.process();
    let early = p.run(&RunJsRequest { wait_ms: Some(500), ..code(json!([post(), {"get": "x"}])) }).unwrap();
    assert_eq!((early.state, posts(&house)), (ExecutionState::Running, 1));
    drop(p);
    let p = house.process();
    assert_eq!(p.resume(), 1);
    p.rest(2_000);
    let ran = p.execution(&early.id.to_string());
    assert_eq!((ran.state, ran.error.unwrap().name.as_str()), (ExecutionState::Failed, "UnknownOutcome"));
    assert_eq!((posts(&house), open(&house, &p)), (1, 0));
}

/// A read of a program is stored with its run; the plan of a write is stored only after the run.
#[test]
fn a_run_is_stored_before_it_shows_the_plan_of_a_write() {
    let house = JsHarness::new();
    let people = json!({"data": [{"id": "ada", "name": "Ada"}]});
    house.house.upstream.add(Rule::get("/api/people").json(200, people));
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&add(&[])));
    let asked = |program: &str| {
        let program = json!([{"await": [Call::Plasm { program: program.to_owned() }]}, {"get": "n"}]);
        RunJsRequest { wait_ms: Some(2_000), timeout_ms: Some(100_000), ..logical("s0", program) }
    };
    house.house.faults.fail(Operation::Commit, 2, Fault::Unavailable);
    let (_, read) = commits(&house, || p.run(&asked("Person[name]")));
    assert_eq!(value(&completed(read)), json!(1));
    house.house.faults.heal();
    let (count, write) = commits(&house, || p.run(&asked(r#"Ticket.open(project="OPS", title="from code")"#)).unwrap());
    // Accepted, plan stored, parked.
    assert_eq!((count, write.state, write.reviews.len()), (3, ExecutionState::WaitingReview, 1));
    assert_eq!((write.reviews[0].commit.as_str(), house.house.sent().len()), ("pc0", 0));
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.len(), 2);
}
