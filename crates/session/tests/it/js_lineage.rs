//! Forks, rewinds, the differences of two heaps, and heaps as files.

use serde_json::json;
use session::{
    ExecutionState, ForkRequest, OpenRequest, PlanRequest, RunJsRequest, RunRequest, SeedRequest, SessionTarget, Tags,
};
use testkit::tiny::TinyScripts;
use testkit::upstream::Rule;

use crate::harness::{self, commit_of, program_of};
use crate::js_harness::{self, JsHarness, Process, completed, local, logical, timer, value};

const OPEN_ONE: &str = r#"Ticket.open(project="OPS", title="from a fork")"#;

fn fork(p: &Process, session: &str, intent: &str, at: Option<u64>) -> Result<session::ForkedSession, session::Error> {
    let asked = ForkRequest { session: session.to_owned(), intent: intent.to_owned(), at };
    p.block(p.service.fork_session(&local(), &asked))
}

fn add(p: &Process, session: &str) -> serde_json::Value {
    value(&completed(p.run(&logical(session, json!([{"add": ["n", 1]}])))))
}

#[test]
fn a_fork_starts_as_a_copy_and_diverges() {
    let house = JsHarness::new();
    house.house.upstream.add(Rule::get("/api/people").json(200, json!({"data": [{"id": "ada", "name": "Ada"}]})));
    let p = house.process();
    p.block(harness::open(&p.service));
    harness::finished(p.block(p.service.run(&local(), &program_of("Person[name]"))));
    for n in 1..=3 {
        assert_eq!(add(&p, "s0"), json!(n));
    }
    let forked = fork(&p, "s0", "another way", None).unwrap();
    assert_eq!(forked.slot.to_string(), "s1");
    assert_eq!((add(&p, "s1"), add(&p, "s0"), add(&p, "s1")), (json!(4), json!(4), json!(5)));
    // The fork has a log of its own, and starts with its parent's symbols and artifacts.
    let log =
        |session: &str| p.block(p.service.session_log(&local(), &SessionTarget::Logical(session.into()))).unwrap();
    assert_eq!((log("s0").len(), log("s1").len(), log("s1")[0].index), (4, 2, 0));
    assert_eq!(log("s1")[0].input_heap, Some(log("s0")[2].output_heap));
    p.block(p.service.artifact(&local(), "plasm://session/s1/r/1")).unwrap();
    let ran = harness::finished(
        p.block(p.service.run(&local(), &RunRequest { session: "s1".into(), ..program_of("Person[name]") })),
    );
    assert_eq!(ran.number, 2);
    assert!(p.block(p.service.artifact(&local(), "plasm://session/s0/r/2")).is_err());
    // Its intent finds it again on any connection.
    let seeds = vec![SeedRequest::all("demo", "Person")];
    let again = p
        .block(p.service.open(&harness::caller("local", "elsewhere"), &OpenRequest::new("another way", seeds)))
        .unwrap();
    assert_eq!((again.session, again.continuity.new_symbol_space), (forked.session, false));
    // Forks of an entry, of a missing entry, and with an intent that is taken.
    let early = fork(&p, "s0", "from the start", Some(0)).unwrap();
    assert_eq!(add(&p, &early.slot.to_string()), json!(2));
    assert_eq!(fork(&p, "s0", "x", Some(99)).unwrap_err().code(), "no_entry");
    assert_eq!(fork(&p, "s0", "another way", None).unwrap_err().code(), "intent_taken");
    assert_eq!(fork(&p, "s9", "y", None).unwrap_err().code(), "unknown_slot");
}

#[test]
fn a_fork_has_no_effects_until_it_is_promoted() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    fork(&p, "s0", "try it", None).unwrap();
    let in_fork = |program: &str| RunRequest { session: "s1".into(), ..program_of(program) };
    let refused = p.block(p.service.run(&local(), &in_fork(OPEN_ONE))).unwrap_err();
    assert_eq!(refused.code(), "fenced");
    let forced = RunRequest { force: true, ..in_fork(OPEN_ONE) };
    assert_eq!(p.block(p.service.run(&local(), &forced)).unwrap_err().code(), "fenced");
    // The plan is shown, but its commit does not run.
    let plan = PlanRequest { session: "s1".into(), program: OPEN_ONE.into() };
    let commit = p.block(p.service.plan(&local(), &plan)).unwrap().commit.unwrap();
    let by_commit = RunRequest { session: "s1".into(), ..commit_of(&commit) };
    assert_eq!(p.block(p.service.run(&local(), &by_commit)).unwrap_err().code(), "fenced");
    let call = ports::scripts::Call::Plasm { program: OPEN_ONE.to_owned() };
    let by_code = p.run(&logical("s1", json!([{"await": [call]}]))).unwrap();
    assert!(by_code.state == ExecutionState::Failed && by_code.error.unwrap().message.contains("promote_session"));
    assert!(house.house.sent().is_empty());
    p.block(p.service.promote_session(&local(), "s1")).unwrap();
    harness::finished(p.block(p.service.run(&local(), &by_commit)));
    assert_eq!(house.house.times("from a fork"), 1);
    assert_eq!(p.block(p.service.promote_session(&local(), "s1")).unwrap_err().code(), "not_fenced");
    assert_eq!(p.block(p.service.promote_session(&local(), "s0")).unwrap_err().code(), "not_fenced");
}

#[test]
fn a_rewind_is_an_entry_that_moves_the_head_back() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    for _ in 0..3 {
        add(&p, "s0");
    }
    let entry = p.block(p.service.rewind_session(&local(), "s0", 0)).unwrap();
    assert_eq!((entry.index, entry.rewound_to), (3, Some(0)));
    assert_eq!(add(&p, "s0"), json!(2));
    let lineage = p.block(p.service.session_lineage(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(lineage.nodes.len(), 5);
    // The second run and the last one produced the same heap.
    assert_eq!(lineage.nodes[4].entry.output_heap, lineage.nodes[1].entry.output_heap);
    assert_eq!(lineage.nodes[4].previous, Some(3));
    assert_eq!(p.block(p.service.rewind_session(&local(), "s0", 99)).unwrap_err().code(), "no_entry");
    p.run(&RunJsRequest { wait_ms: Some(0), ..logical("s0", json!([{"hold": "a"}])) }).unwrap();
    assert_eq!(p.block(p.service.rewind_session(&local(), "s0", 0)).unwrap_err().code(), "under_way");
}

#[test]
fn two_heaps_are_compared_by_their_globals() {
    let house = JsHarness::new();
    let p = house.process();
    let run = |program| completed(p.run(&js_harness::code(program))).heap.unwrap().to_string();
    let a = run(json!([{"set": ["same", 1]}, {"set": ["gone", 1]}, {"set": ["n", 1]}]));
    let b = run(json!([{"set": ["same", 1]}, {"set": ["new", [1, 2]]}, {"set": ["n", 2]}]));
    p.engine.forget();
    let diff = p.block(p.service.diff_heaps(&local(), &a, &b)).unwrap();
    let names = |list: &[session::GlobalSummary]| list.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&diff.added), names(&diff.removed), diff.unchanged),
        (vec!["new".to_owned()], vec!["gone".to_owned()], 1)
    );
    assert_eq!(
        (diff.changed.len(), diff.changed[0].before.preview.as_str(), diff.changed[0].after.preview.as_str()),
        (1, "1", "2")
    );
    assert_eq!(p.block(p.service.diff_heaps(&local(), &a, "zz")).unwrap_err().code(), "bad_heap");
}

#[test]
fn a_heap_moves_to_another_server_in_one_file() {
    let (house, other) = (JsHarness::new(), JsHarness::new());
    let p = house.process();
    let first = completed(p.run(&js_harness::code(json!([{"set": ["x", 1]}])))).heap.unwrap();
    let second = RunJsRequest { heap: Some(first.to_string()), ..js_harness::code(json!([{"set": ["y", 2]}])) };
    let heap = completed(p.run(&second)).heap.unwrap();
    p.engine.forget();
    let file = p.block(p.service.export_heap(&local(), &heap.to_string())).unwrap();
    // Another engine, which has never seen the engine that made the heap.
    let q = other.process_with(TinyScripts::build("a tiny engine, newer"));
    assert_eq!(q.block(q.service.import_heap(&local(), &file, &Tags::new())).unwrap(), heap);
    q.engine.forget();
    let asked = RunJsRequest {
        heap: Some(heap.to_string()),
        require_heap: true,
        ..js_harness::code(json!([{"add": ["x", 1]}]))
    };
    assert_eq!(value(&completed(q.run(&asked))), json!(2));
    // Importing twice is the same as once; an incomplete file is refused.
    q.block(q.service.import_heap(&local(), &file, &Tags::new())).unwrap();
    for cut in [0, 10, file.len() - 1] {
        assert!(q.block(q.service.import_heap(&local(), &file[..cut], &Tags::new())).is_err(), "{cut}");
    }
    let fresh = JsHarness::new();
    let r = fresh.process();
    let at = file.windows(5).rposition(|part| part == b"\"x\":1").unwrap();
    let mut changed = file.clone();
    changed[at + 4] = b'7';
    assert_eq!(r.block(r.service.import_heap(&local(), &changed, &Tags::new())).unwrap_err().code(), "damaged_heap");
    assert!(r.block(r.service.heaps(&local(), None, 10)).unwrap().is_empty());
}

/// The stored chain of a heap is not its history.
#[test]
fn the_parents_of_a_heap_are_those_it_was_derived_from_by_runs() {
    let mut house = JsHarness::new();
    // Each heap is stored without a parent.
    house.settings.links = 1;
    let p = house.process();
    let on = |heap: Option<base::Digest>, program| {
        let asked = RunJsRequest { heap: heap.map(|heap| heap.to_string()), ..js_harness::code(program) };
        completed(p.run(&asked)).heap.unwrap()
    };
    let info = |heap: base::Digest| p.block(p.service.heap_info(&local(), &heap.to_string())).unwrap();
    let first = on(None, json!([{"set": ["x", 1]}]));
    let second = on(Some(first), json!([{"set": ["x", 2]}]));
    let third = on(Some(second), json!([{"set": ["x", 3]}]));
    let waited = on(Some(third), json!([timer(10), {"set": ["x", 4]}]));
    p.rest(50);
    assert_eq!(info(waited).parents, [third, second, first]);
    assert_eq!((info(third).parents, info(third).stored_against), (vec![second, first], vec![]));
    assert_eq!((info(second).parents, info(first).parents), (vec![first], vec![]));
    // Producing a heap again does not change its history; returning to an earlier heap makes no ring.
    assert_eq!(on(Some(third), json!([{"set": ["x", 2]}])), second);
    assert_eq!(on(Some(third), json!([{"set": ["x", 1]}])), first);
    assert_eq!((info(second).parents, info(first).parents), (vec![first], vec![]));
    let listed = p.block(p.service.heaps(&local(), None, 100)).unwrap();
    assert_eq!(listed.iter().find(|info| info.heap == third).unwrap().parents, [second]);
    // The list of ancestors is bounded.
    let (mut at, mut all) = (third, vec![first, second, third]);
    for n in 10..40 {
        at = on(Some(at), json!([{"set": ["x", n]}]));
        all.push(at);
    }
    let nearest: Vec<base::Digest> = all.iter().rev().skip(1).take(20).copied().collect();
    assert_eq!(info(at).parents, nearest);
}

#[test]
fn named_sessions_are_listed_resolved_and_removed() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    assert_eq!(add(&p, "s0"), json!(1));
    let id = p.block(p.service.session_id(&local(), "s0")).unwrap().to_string();
    let named = |name: &str| js_harness::named(name, json!([{"add": ["n", 1]}]));
    for name in ["by name", "s7"] {
        completed(p.run(&named(name)));
        p.rest(10);
    }
    completed(p.run(&named("by name")));
    let listed = p.block(p.service.named_sessions(&local())).unwrap();
    let listed: Vec<(&str, u64)> = listed.iter().map(|session| (session.name.as_str(), session.js_entries)).collect();
    assert_eq!(listed, [("by name", 2), ("s7", 1)]);
    assert_eq!(p.block(p.service.list_sessions(&local())).unwrap()[0].js_entries, 1);
    let meant = |what: &str| p.block(p.service.session_target(&local(), what));
    for logical in ["s0", "task", id.as_str()] {
        assert_eq!(meant(logical).unwrap(), SessionTarget::Logical(id.clone()), "{logical}");
    }
    for name in ["by name", "never used", "s7"] {
        assert_eq!(meant(name).unwrap(), SessionTarget::Named(name.to_owned()));
    }
    let nobodys = base::LogicalSessionId::from_random(ports::Entropy::bytes(house.house.entropy.as_ref()));
    assert_eq!(meant("s8").unwrap_err().code(), "unknown_slot");
    assert_eq!(meant(&nobodys.to_string()).unwrap_err().code(), "no_session");
    // Removed with its log, so the reused name starts at 0.
    let remove = |name: &str| p.block(p.service.remove_named_session(&local(), name));
    let held = p.run(&js_harness::later("by name", json!([{"hold": "a"}]))).unwrap();
    assert_eq!(remove("by name").unwrap_err().code(), "under_way");
    p.block(p.service.cancel_execution(&local(), &held.id.to_string())).unwrap();
    remove("by name").unwrap();
    assert_eq!(remove("by name").unwrap_err().code(), "no_session");
    completed(p.run(&named("by name")));
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Named("by name".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0]);
    assert_eq!(add(&p, "s0"), json!(2), "others are as they were");
}
