//! Forks, rewinds, the differences of two heaps, and heaps as files.

use serde_json::json;
use session::{
    ExecutionState, ForkRequest, OpenRequest, PlanRequest, RunJsRequest, RunRequest, SeedRequest, SessionTarget, Tags,
};
use testkit::tiny::TinyScripts;
use testkit::upstream::Rule;

use crate::harness::{self, commit_request, program_request};
use crate::js_harness::{
    JsHarness, Process, expect_completed, local_caller, logical_request, script_request, timer_step,
};

const OPEN_TICKET: &str = r#"Ticket.open(project="OPS", title="from a fork")"#;

fn fork(
    process: &Process,
    session: &str,
    intent: &str,
    at: Option<u64>,
) -> Result<session::ForkedSession, session::Error> {
    let request = ForkRequest { session: session.to_owned(), intent: intent.to_owned(), at };
    process.block_on(process.service.fork_session(&local_caller(), &request))
}

/// Adds 1 to the global `n` of a session and returns the run's value.
fn increment(process: &Process, session: &str) -> serde_json::Value {
    process.run_to_value(&logical_request(session, json!([{"add": ["n", 1]}])))
}

#[test]
fn a_fork_starts_as_a_copy_and_diverges() {
    let harness = JsHarness::new();
    harness.memory.upstream.add(Rule::get("/api/people").json(200, json!({"data": [{"id": "ada", "name": "Ada"}]})));
    let process = harness.process();
    process.open_session();
    harness::expect_finished(process.block_on(process.service.run(&local_caller(), &program_request("Person[name]"))));
    for n in 1..=3 {
        assert_eq!(increment(&process, "s0"), json!(n));
    }
    let forked = fork(&process, "s0", "another way", None).unwrap();
    assert_eq!(forked.slot.to_string(), "s1");
    assert_eq!(
        (increment(&process, "s1"), increment(&process, "s0"), increment(&process, "s1")),
        (json!(4), json!(4), json!(5))
    );
    // The fork has a log of its own, and starts with its parent's symbols and artifacts.
    let log_of = |session: &str| {
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical(session.into()))).unwrap()
    };
    assert_eq!((log_of("s0").len(), log_of("s1").len(), log_of("s1")[0].index), (4, 2, 0));
    assert_eq!(log_of("s1")[0].input_heap, Some(log_of("s0")[2].output_heap));
    process.block_on(process.service.artifact(&local_caller(), "plasm://session/s1/r/1")).unwrap();
    let result = harness::expect_finished(process.block_on(
        process.service.run(&local_caller(), &RunRequest { session: "s1".into(), ..program_request("Person[name]") }),
    ));
    assert_eq!(result.number, 2);
    assert!(process.block_on(process.service.artifact(&local_caller(), "plasm://session/s0/r/2")).is_err());
    // The intent of the fork finds it on any connection.
    let seeds = vec![SeedRequest::all("demo", "Person")];
    let reopened = process
        .block_on(process.service.open(&harness::caller("local", "elsewhere"), &OpenRequest::new("another way", seeds)))
        .unwrap();
    assert_eq!((reopened.session, reopened.continuity.new_symbol_space), (forked.session, false));
    // A fork can start at an entry. A missing entry and an intent that is in use are refused.
    let fork_of_entry = fork(&process, "s0", "from the start", Some(0)).unwrap();
    assert_eq!(increment(&process, &fork_of_entry.slot.to_string()), json!(2));
    assert_eq!(fork(&process, "s0", "x", Some(99)).unwrap_err().code(), "no_entry");
    assert_eq!(fork(&process, "s0", "another way", None).unwrap_err().code(), "intent_taken");
    assert_eq!(fork(&process, "s9", "y", None).unwrap_err().code(), "unknown_slot");
}

#[test]
fn a_fork_has_no_effects_until_it_is_promoted() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    fork(&process, "s0", "try it", None).unwrap();
    let in_fork = |program: &str| RunRequest { session: "s1".into(), ..program_request(program) };
    let refused = process.block_on(process.service.run(&local_caller(), &in_fork(OPEN_TICKET))).unwrap_err();
    assert_eq!(refused.code(), "fenced");
    let forced = RunRequest { force: true, ..in_fork(OPEN_TICKET) };
    assert_eq!(process.block_on(process.service.run(&local_caller(), &forced)).unwrap_err().code(), "fenced");
    // The plan is shown, but its commit does not run.
    let plan = PlanRequest { session: "s1".into(), program: OPEN_TICKET.into() };
    let commit = process.block_on(process.service.plan(&local_caller(), &plan)).unwrap().commit.unwrap();
    let by_commit = RunRequest { session: "s1".into(), ..commit_request(&commit) };
    assert_eq!(process.block_on(process.service.run(&local_caller(), &by_commit)).unwrap_err().code(), "fenced");
    let call = ports::scripts::Call::Plasm { program: OPEN_TICKET.to_owned() };
    let by_code = process.run(&logical_request("s1", json!([{"await": [call]}]))).unwrap();
    assert!(by_code.state == ExecutionState::Failed && by_code.error.unwrap().message.contains("promote_session"));
    assert!(harness.memory.sent_bodies().is_empty());
    process.block_on(process.service.promote_session(&local_caller(), "s1")).unwrap();
    harness::expect_finished(process.block_on(process.service.run(&local_caller(), &by_commit)));
    assert_eq!(harness.memory.times_sent("from a fork"), 1);
    assert_eq!(
        process.block_on(process.service.promote_session(&local_caller(), "s1")).unwrap_err().code(),
        "not_fenced"
    );
    assert_eq!(
        process.block_on(process.service.promote_session(&local_caller(), "s0")).unwrap_err().code(),
        "not_fenced"
    );
}

#[test]
fn a_rewind_is_an_entry_that_moves_the_head_back() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    for _ in 0..3 {
        increment(&process, "s0");
    }
    let entry = process.block_on(process.service.rewind_session(&local_caller(), "s0", 0)).unwrap();
    assert_eq!((entry.index, entry.rewound_to), (3, Some(0)));
    assert_eq!(increment(&process, "s0"), json!(2));
    let lineage = process
        .block_on(process.service.session_lineage(&local_caller(), &SessionTarget::Logical("s0".into())))
        .unwrap();
    assert_eq!(lineage.nodes.len(), 5);
    // The second run and the last one produced the same heap.
    assert_eq!(lineage.nodes[4].entry.output_heap, lineage.nodes[1].entry.output_heap);
    assert_eq!(lineage.nodes[4].previous, Some(3));
    assert_eq!(
        process.block_on(process.service.rewind_session(&local_caller(), "s0", 99)).unwrap_err().code(),
        "no_entry"
    );
    process.run(&RunJsRequest { wait_ms: Some(0), ..logical_request("s0", json!([{"hold": "a"}])) }).unwrap();
    assert_eq!(
        process.block_on(process.service.rewind_session(&local_caller(), "s0", 0)).unwrap_err().code(),
        "under_way"
    );
}

#[test]
fn two_heaps_are_compared_by_their_globals() {
    let harness = JsHarness::new();
    let process = harness.process();
    let run = |program| expect_completed(process.run(&script_request(program))).heap.unwrap().to_string();
    let a = run(json!([{"set": ["same", 1]}, {"set": ["gone", 1]}, {"set": ["n", 1]}]));
    let b = run(json!([{"set": ["same", 1]}, {"set": ["new", [1, 2]]}, {"set": ["n", 2]}]));
    process.engine.forget();
    let diff = process.block_on(process.service.diff_heaps(&local_caller(), &a, &b)).unwrap();
    let names = |list: &[session::GlobalSummary]| list.iter().map(|global| global.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&diff.added), names(&diff.removed), diff.unchanged),
        (vec!["new".to_owned()], vec!["gone".to_owned()], 1)
    );
    assert_eq!(
        (diff.changed.len(), diff.changed[0].before.preview.as_str(), diff.changed[0].after.preview.as_str()),
        (1, "1", "2")
    );
    assert_eq!(process.block_on(process.service.diff_heaps(&local_caller(), &a, "zz")).unwrap_err().code(), "bad_heap");
}

#[test]
fn a_heap_moves_to_another_server_in_one_file() {
    let harness = JsHarness::new();
    let other_server = JsHarness::new();
    let process = harness.process();
    let first = expect_completed(process.run(&script_request(json!([{"set": ["x", 1]}])))).heap.unwrap();
    let second = RunJsRequest { heap: Some(first.to_string()), ..script_request(json!([{"set": ["y", 2]}])) };
    let heap = expect_completed(process.run(&second)).heap.unwrap();
    process.engine.forget();
    let file = process.block_on(process.service.export_heap(&local_caller(), &heap.to_string())).unwrap();
    // The other server has never had the engine that made the heap.
    let other_process = other_server.process_with(TinyScripts::build("a tiny engine, newer"));
    assert_eq!(
        other_process.block_on(other_process.service.import_heap(&local_caller(), &file, &Tags::new())).unwrap(),
        heap
    );
    other_process.engine.forget();
    let request =
        RunJsRequest { heap: Some(heap.to_string()), require_heap: true, ..script_request(json!([{"add": ["x", 1]}])) };
    assert_eq!(other_process.run_to_value(&request), json!(2));
    // Importing twice is the same as once; an incomplete file is refused.
    other_process.block_on(other_process.service.import_heap(&local_caller(), &file, &Tags::new())).unwrap();
    for cut in [0, 10, file.len() - 1] {
        assert!(
            other_process
                .block_on(other_process.service.import_heap(&local_caller(), &file[..cut], &Tags::new()))
                .is_err(),
            "{cut}"
        );
    }
    let fresh = JsHarness::new();
    let third_process = fresh.process();
    let at = file.windows(5).rposition(|part| part == b"\"x\":1").unwrap();
    let mut changed = file.clone();
    changed[at + 4] = b'7';
    assert_eq!(
        third_process
            .block_on(third_process.service.import_heap(&local_caller(), &changed, &Tags::new()))
            .unwrap_err()
            .code(),
        "damaged_heap"
    );
    assert!(third_process.block_on(third_process.service.heaps(&local_caller(), None, 10)).unwrap().is_empty());
}

/// The parents show the history of a heap, even if storage keeps it in another chain or without a parent.
#[test]
fn the_parents_of_a_heap_are_those_it_was_derived_from_by_runs() {
    let mut harness = JsHarness::new();
    // Each heap is stored without a parent.
    harness.settings.links = 1;
    let process = harness.process();
    let run_on = |heap: Option<base::Digest>, program| {
        let request = RunJsRequest { heap: heap.map(|heap| heap.to_string()), ..script_request(program) };
        expect_completed(process.run(&request)).heap.unwrap()
    };
    let info =
        |heap: base::Digest| process.block_on(process.service.heap_info(&local_caller(), &heap.to_string())).unwrap();
    let first = run_on(None, json!([{"set": ["x", 1]}]));
    let second = run_on(Some(first), json!([{"set": ["x", 2]}]));
    let third = run_on(Some(second), json!([{"set": ["x", 3]}]));
    let after_timer = run_on(Some(third), json!([timer_step(10), {"set": ["x", 4]}]));
    process.run_for_ms(50);
    assert_eq!(info(after_timer).parents, [third, second, first]);
    assert_eq!((info(third).parents, info(third).stored_against), (vec![second, first], vec![]));
    assert_eq!((info(second).parents, info(first).parents), (vec![first], vec![]));
    // A run that produces an existing heap does not change its history, so the parents never form a ring.
    assert_eq!(run_on(Some(third), json!([{"set": ["x", 2]}])), second);
    assert_eq!(run_on(Some(third), json!([{"set": ["x", 1]}])), first);
    assert_eq!((info(second).parents, info(first).parents), (vec![first], vec![]));
    let listed = process.block_on(process.service.heaps(&local_caller(), None, 100)).unwrap();
    assert_eq!(listed.iter().find(|info| info.heap == third).unwrap().parents, [second]);
    // The list of ancestors is bounded.
    let mut newest = third;
    let mut chain = vec![first, second, third];
    for n in 10..40 {
        newest = run_on(Some(newest), json!([{"set": ["x", n]}]));
        chain.push(newest);
    }
    let nearest: Vec<base::Digest> = chain.iter().rev().skip(1).take(20).copied().collect();
    assert_eq!(info(newest).parents, nearest);
}
