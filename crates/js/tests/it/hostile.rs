//! Objects that are damaged, swapped or made up: each is refused by name, and none becomes another heap.

use std::sync::Arc;

use base::Digest;
use js::Engine;
use ports::Scripts;
use ports::scripts::{Error, Input, Step, Stop, Surroundings};
use serde_json::json;

use crate::support::{LIMITS, Session, settings, wait};

#[test]
fn a_damaged_object_is_never_a_heap() {
    let mut session = Session::new();
    session.run("let a = 'one'");
    let parent = session.head.unwrap();
    session.run("let b = 'two'");
    let key = session.head.unwrap();
    let chain = session.chain();
    assert_eq!(chain.len(), 2);
    let fresh = Arc::new(Engine::start(&settings()).unwrap());
    let refused = |objects: Vec<Vec<u8>>, expected: Error, what: &str| {
        let error = wait(fresh.admit(key, objects)).expect_err(what);
        assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{what}");
        let step = Step {
            heap: Some(key),
            input: Input::Evaluate { code: "1".into() },
            limits: LIMITS,
            surroundings: Arc::new(Surroundings::default()),
            stop: Stop::default(),
            turns: None,
        };
        assert!(matches!(wait(fresh.step(step)), Err(Error::Absent(absent)) if absent == key), "{what}");
    };
    // Whichever of the two is damaged is named, also where its own word for itself is what changed.
    for (which, named) in [(0, parent), (1, key)] {
        for at in (0..42).chain((42..chain[which].len()).step_by(7)) {
            let mut damaged = chain.clone();
            damaged[which][at] ^= 0x10;
            refused(damaged, Error::Damaged(named), &format!("byte {at} of object {which} changed"));
        }
        for length in [0, 1, 9, 41, 42, 115, 116, chain[which].len() - 1] {
            let mut cut = chain.clone();
            cut[which].truncate(length);
            refused(cut, Error::Damaged(named), &format!("object {which} cut to {length}"));
        }
    }
    refused(vec![chain[1].clone()], Error::Absent(parent), "its parent is missing");
    refused(vec![chain[1].clone(), chain[0].clone()], Error::Absent(parent), "out of order");
    refused(vec![chain[0].clone()], Error::Damaged(key), "another heap");
    refused(vec![chain[0].clone(), chain[0].clone()], Error::Damaged(parent), "twice the same");
    refused(vec![b"TOKAHEAP".to_vec()], Error::Damaged(key), "no more than the magic");
    wait(fresh.admit(key, chain)).unwrap();
    session.engine = fresh;
    assert_eq!(session.json("[a, b]"), json!(["one", "two"]));
}

#[test]
fn what_is_no_engine_is_refused() {
    let session = Session::new();
    let guest = session.engine.guest().to_vec();
    let mut cut = guest.clone();
    cut.truncate(guest.len() / 2);
    let mut flipped = guest.clone();
    let middle = flipped.len() / 3;
    for byte in &mut flipped[middle..middle + 64] {
        *byte = !*byte;
    }
    for (what, bytes) in [
        ("nothing", vec![]),
        ("words", b"not an engine".to_vec()),
        ("an empty module", b"\0asm\x01\0\0\0".to_vec()),
        ("half of one", cut),
        ("a broken one", flipped),
    ] {
        let error = wait(session.engine.admit_engine(bytes)).expect_err(what);
        assert!(matches!(error, Error::NotAnEngine), "{what}: {error}");
    }
}

#[test]
fn a_heap_that_is_not_here_is_absent_not_fresh() {
    let mut session = Session::new();
    let unknown = Digest::of(b"no such heap");
    session.head = Some(unknown);
    assert!(matches!(session.fails("1"), Error::Absent(key) if key == unknown));
    assert!(matches!(wait(session.engine.admit(unknown, Vec::new())), Err(Error::Absent(key)) if key == unknown));
    assert!(matches!(wait(session.engine.standalone_object(unknown)), Err(Error::Absent(key)) if key == unknown));
    assert!(matches!(wait(session.engine.globals(unknown)), Err(Error::Absent(key)) if key == unknown));
}
