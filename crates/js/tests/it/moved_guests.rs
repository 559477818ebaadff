//! Tests that a guest which was moved to another heap contains no byte of its earlier heap.

use std::sync::Arc;

use js::{Engine, Settings};
use ports::Scripts;

use crate::support::{Session, settings, wait};

/// Returns a script for this step of a session. The scripts write in several places, grow, free much memory, throw, and
/// leave a generator half way. No script reads the clock or a random number, so the heaps are the same on every guest.
fn script(session: usize, step: usize) -> String {
    let secret = format!("session {session} step {step} ").repeat(40);
    match (session * 5 + step * 3) % 8 {
        0 => format!("globalThis.kept = [...(globalThis.kept ?? []), '{secret}'.slice({step})]; kept.length"),
        1 => format!(
            "(() => {{ const big = []; for (let i = 0; i < 3000; i++) big.push('{secret}' + i); return big.length }})()"
        ),
        2 => format!("function f{step}(n) {{ return n === 0 ? '{secret}' : f{step}(n - 1) }} f{step}(200).length"),
        3 => format!("throw new Error('{secret}')"),
        4 => format!("globalThis.bytes = new Uint8Array({}).fill({step}); bytes.length", 70_000 + 5_000 * session),
        5 => "globalThis.kept = undefined; globalThis.bytes = undefined; 0".to_owned(),
        6 => "globalThis.g ??= (function* () { let n = 0; while (true) yield n++ })(); g.next().value".to_owned(),
        _ => format!("globalThis.m ??= new Map(); m.set('{step}', {{at: {step}, text: '{secret}'}}); m.size"),
    }
}

fn engine(live_guests: usize) -> Arc<Engine> {
    Arc::new(Engine::start(&Settings { live_guests, ..settings() }).unwrap())
}

/// The key of a heap is a digest of all its bytes, so equal keys mean equal heaps to the last byte.
#[test]
fn heaps_do_not_depend_on_the_earlier_heaps_of_a_guest() {
    const SESSIONS: usize = 9;
    // With 0 live guests each step has a new guest. With 3 live guests, guests move from heap to heap.
    let new_guests = engine(0);
    let moved_guests = engine(3);
    let mut on_new_guests: Vec<Session> = (0..SESSIONS).map(|_| Session::on(new_guests.clone())).collect();
    let mut on_moved_guests: Vec<Session> = (0..SESSIONS).map(|_| Session::on(moved_guests.clone())).collect();
    for step in 0..14 {
        for turn in 0..SESSIONS {
            let session = (turn * 4 + step) % SESSIONS;
            let code = script(session, step);
            on_new_guests[session].run(&code);
            on_moved_guests[session].run(&code);
            let heads = (on_new_guests[session].head, on_moved_guests[session].head);
            assert_eq!(heads.0, heads.1, "step {step} of session {session}: {code}");
        }
    }
}

#[test]
fn preparing_a_guest_does_not_change_its_heap() {
    let shared = engine(8);
    let mut unprepared = Session::on(engine(0));
    let mut prepared = Session::on(shared.clone());
    for session in [&mut unprepared, &mut prepared] {
        session.run("let n = 1; const rows = Array.from({length: 500}, (_, i) => ({i}))");
    }
    let heap = prepared.head.unwrap();
    // The scripts of other sessions move the existing guests.
    for other in 0..20 {
        Session::on(shared.clone()).run(&script(other, 1));
    }
    for _ in 0..3 {
        wait(shared.prepare(heap)).unwrap();
    }
    for session in [&mut unprepared, &mut prepared] {
        session.run("rows[7].i = ++n");
    }
    assert_eq!(unprepared.head, prepared.head);
    let missing = base::Digest::of(b"no heap");
    assert!(matches!(wait(shared.prepare(missing)), Err(ports::scripts::Error::Absent(key)) if key == missing));
}
