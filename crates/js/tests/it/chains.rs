//! The chains of objects over many steps: their length, the size of the objects, and one object for a whole heap.

use std::sync::Arc;

use js::Engine;
use ports::Scripts;
use serde_json::json;

use crate::support::{Session, settings, wait};

#[test]
fn many_steps_need_few_links_and_small_objects() {
    let mut session = Session::new();
    session.run("let n = 0; const rows = []; for (let i = 0; i < 20000; i++) rows.push({i, name: 'row ' + i, even: i % 2 === 0})");
    let mut bytes = Vec::new();
    for step in 1..=300 {
        assert_eq!(session.json("rows[n % rows.length].name = 'seen ' + n; ++n"), json!(step));
        let last = session.last.as_ref().unwrap();
        assert!(last.heap.links <= 32, "step {step} needs {} objects", last.heap.links);
        bytes.push(last.heap.object.len());
    }
    assert_eq!(session.chain().len(), session.last.as_ref().unwrap().heap.links as usize);
    let early: usize = bytes[..100].iter().sum();
    let late: usize = bytes[200..].iter().sum();
    assert!(late < early * 2, "100 steps took {early} bytes at first and {late} later");
    session.move_to_new_engine();
    assert_eq!(session.json("[n, rows[299].name, rows.length]"), json!([300, "seen 299", 20000]));
}

#[test]
fn steps_on_restored_heaps_keep_chains_short() {
    let mut session = Session::new();
    session.run("let n = 0");
    for step in 1..=12 {
        session.move_to_new_engine();
        assert_eq!(session.json("++n"), json!(step));
        assert!(session.last.as_ref().unwrap().heap.links <= 32);
    }
}

#[test]
fn one_object_can_hold_a_whole_heap() {
    let mut session = Session::new();
    session.run("let kept = []");
    for i in 0..5 {
        session.run(&format!("kept.push({i})"));
    }
    let key = session.head.unwrap();
    let whole = wait(session.engine.standalone_object(key)).unwrap();
    assert_eq!(session.engine.header(&whole).unwrap().parent, None);
    let fresh = Arc::new(Engine::start(&settings()).unwrap());
    wait(fresh.admit(key, vec![whole])).unwrap();
    session.engine = fresh;
    assert_eq!(session.json("kept"), json!([0, 1, 2, 3, 4]));
}

#[test]
fn evicted_heaps_are_absent_and_can_be_admitted_again() {
    let settings = js::Settings { memory_bytes: 6 << 20, live_guests: 2, ..settings() };
    let mut session = Session::on(Arc::new(Engine::start(&settings).unwrap()));
    session.run("let mine = 'first'");
    let first = session.head;
    for i in 0..12 {
        session.head = None;
        session.run(&format!("const fill = Array.from({{length: 100000}}, (_, j) => j + {i})"));
    }
    session.head = first;
    let error = session.fails("mine");
    assert!(matches!(error, ports::scripts::Error::Absent(key) if Some(key) == first), "{error}");
    wait(session.engine.admit(first.unwrap(), session.chain())).unwrap();
    assert_eq!(session.json("mine"), json!("first"));
}

/// The ancestors of a heap are loaded as overlays of one memory file. A memory file for each of them would exceed the
/// budget.
#[test]
fn a_chain_of_large_changes_is_loaded_within_the_budget() {
    let mut session = Session::new();
    session.run("const bytes = new Uint8Array(24 << 20).fill(1); 0");
    for step in 1..=6 {
        session.run(&format!("bytes.fill({step} + 1, {step} * (3 << 20), {step} * (3 << 20) + (2 << 20)); 0"));
    }
    assert!(session.chain().len() >= 3, "{} objects", session.chain().len());
    let settings = js::Settings { memory_bytes: 96 << 20, ..settings() };
    let fresh = Arc::new(Engine::start(&settings).unwrap());
    wait(fresh.admit(session.head.unwrap(), session.chain())).unwrap();
    session.engine = fresh;
    let samples = "[0, 1, 6].map(step => bytes[step * (3 << 20)]).concat(bytes.length)";
    assert_eq!(session.json(samples), json!([1, 2, 7, 24 << 20]));
}

/// Pages that became zero again use no memory, also if there are many of them.
#[test]
fn freed_pages_use_no_memory() {
    let mut session = Session::new();
    session.run("let large = new Uint8Array(40 << 20).fill(1); let kept = 7; 0");
    let settings = js::Settings { memory_bytes: 64 << 20, ..settings() };
    for code in ["large = null; kept", "kept += 1"] {
        session.run(code);
    }
    let fresh = Arc::new(Engine::start(&settings).unwrap());
    wait(fresh.admit(session.head.unwrap(), session.chain())).unwrap();
    session.engine = fresh;
    assert_eq!(session.json("[large, kept]"), json!([null, 8]));
}

/// The cost of a step does not grow with the number of steps before it: neither its stored bytes nor the objects that a
/// reader needs.
#[test]
fn the_cost_of_a_step_does_not_grow_in_ten_thousand_steps() {
    const STEPS: usize = 10_000;
    let mut session = Session::new();
    session.run("let n = 0; const seen = new Map(); const log = []");
    let mut bytes = Vec::new();
    for step in 1..=STEPS {
        let code = "n++; seen.set(n % 100, {n, text: 'step ' + n}); log[n % 64] = seen.get(n % 100).text; [n, seen.size, log[n % 64]]";
        assert_eq!(session.json(code), json!([step, step.min(100), format!("step {step}")]));
        let last = session.last.as_ref().unwrap();
        assert!(last.heap.links <= 32, "step {step} needs {} objects", last.heap.links);
        bytes.push(last.heap.object.len());
        if step % 1_000 == 0 {
            assert_eq!(session.chain().len(), last.heap.links as usize, "at step {step}");
            session.move_to_new_engine();
        }
    }
    let mean = |sizes: &[usize]| sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
    let early = mean(&bytes[200..400]);
    let late = mean(&bytes[STEPS - 200..]);
    assert!(late <= early * 1.5, "steps took {early:.0} bytes at first and {late:.0} in the end");
    session.move_to_new_engine();
    let sum: usize = (STEPS - 99..=STEPS).sum();
    assert_eq!(session.json("[n, [...seen.values()].reduce((sum, one) => sum + one.n, 0)]"), json!([STEPS, sum]));
}
