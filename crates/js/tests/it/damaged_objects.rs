//! Tests of damaged, swapped and invented objects: loading each of them returns an error with the requested key.

use std::sync::Arc;

use base::Digest;
use js::Engine;
use ports::Scripts;
use ports::scripts::{Error, Input, Step, Stop, Surroundings};
use serde_json::json;

use crate::support::{LIMITS, Session, settings, wait};

#[test]
fn a_damaged_object_is_refused_and_named() {
    let mut session = Session::new();
    session.run("let a = 'one'");
    let parent = session.head.unwrap();
    session.run("let b = 'two'");
    let key = session.head.unwrap();
    let chain = session.chain();
    assert_eq!(chain.len(), 2);
    let fresh = Arc::new(Engine::start(&settings()).unwrap());
    let assert_refused = |objects: Vec<Vec<u8>>, expected: Error, case: &str| {
        let error = wait(fresh.admit(key, objects)).expect_err(case);
        assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{case}");
        let step = Step {
            heap: Some(key),
            input: Input::Evaluate { code: "1".into() },
            limits: LIMITS,
            surroundings: Arc::new(Surroundings::default()),
            stop: Stop::default(),
            turns: None,
        };
        assert!(matches!(wait(fresh.step(step)), Err(Error::Absent(absent)) if absent == key), "{case}");
    };
    // The error names the damaged object, also if the damage is in the key that the object holds.
    for (index, expected_key) in [(0, parent), (1, key)] {
        for at in (0..42).chain((42..chain[index].len()).step_by(7)) {
            let mut damaged = chain.clone();
            damaged[index][at] ^= 0x10;
            let case = format!("byte {at} of object {index} changed");
            assert_refused(damaged, Error::Damaged(expected_key), &case);
        }
        for length in [0, 1, 9, 41, 42, 115, 116, chain[index].len() - 1] {
            let mut cut = chain.clone();
            cut[index].truncate(length);
            let case = format!("object {index} cut to {length}");
            assert_refused(cut, Error::Damaged(expected_key), &case);
        }
    }
    assert_refused(vec![chain[1].clone()], Error::Absent(parent), "its parent is missing");
    assert_refused(vec![chain[1].clone(), chain[0].clone()], Error::Absent(parent), "out of order");
    assert_refused(vec![chain[0].clone()], Error::Damaged(key), "another heap");
    assert_refused(vec![chain[0].clone(), chain[0].clone()], Error::Damaged(parent), "the same object twice");
    assert_refused(vec![b"TOKAHEAP".to_vec()], Error::Damaged(key), "only the magic number");
    wait(fresh.admit(key, chain)).unwrap();
    session.engine = fresh;
    assert_eq!(session.json("[a, b]"), json!(["one", "two"]));
}

#[test]
fn bytes_that_are_no_engine_are_refused() {
    let session = Session::new();
    let guest = session.engine.guest().to_vec();
    let mut cut = guest.clone();
    cut.truncate(guest.len() / 2);
    let mut flipped = guest.clone();
    let middle = flipped.len() / 3;
    for byte in &mut flipped[middle..middle + 64] {
        *byte = !*byte;
    }
    for (case, bytes) in [
        ("nothing", vec![]),
        ("words", b"not an engine".to_vec()),
        ("an empty module", b"\0asm\x01\0\0\0".to_vec()),
        ("half of an engine", cut),
        ("an engine with flipped bytes", flipped),
    ] {
        let error = wait(session.engine.admit_engine(bytes)).expect_err(case);
        assert!(matches!(error, Error::NotAnEngine), "{case}: {error}");
    }
}

#[test]
fn an_unknown_heap_is_absent_and_not_replaced_by_a_fresh_one() {
    let mut session = Session::new();
    let unknown = Digest::of(b"no such heap");
    session.head = Some(unknown);
    assert!(matches!(session.fails("1"), Error::Absent(key) if key == unknown));
    assert!(matches!(wait(session.engine.admit(unknown, Vec::new())), Err(Error::Absent(key)) if key == unknown));
    assert!(matches!(wait(session.engine.standalone_object(unknown)), Err(Error::Absent(key)) if key == unknown));
    assert!(matches!(wait(session.engine.globals(unknown)), Err(Error::Absent(key)) if key == unknown));
}
