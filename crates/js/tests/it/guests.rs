//! Guests that are used again for other heaps: nothing of the heap before is left in them.

use std::sync::Arc;

use js::{Engine, Settings};
use ports::Scripts;

use crate::support::{Session, settings, wait};

/// Programs that write here and there, grow, let go of much, throw, and stop in the middle of something. None of them looks at
/// the clock or draws a number: what they leave is the same wherever they run.
fn program(session: usize, step: usize) -> String {
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

fn engine(live: usize) -> Arc<Engine> {
    Arc::new(Engine::start(&Settings { live, ..settings() }).unwrap())
}

/// The keys of heaps are digests of all their bytes: equal keys are equal heaps to the last byte.
#[test]
fn what_a_guest_did_before_is_in_no_heap_after() {
    const SESSIONS: usize = 9;
    // No guest is ever kept, so each step has a new one; three are, so that they go from heap to heap.
    let (alone, shared) = (engine(0), engine(3));
    let mut apart: Vec<Session> = (0..SESSIONS).map(|_| Session::on(alone.clone())).collect();
    let mut together: Vec<Session> = (0..SESSIONS).map(|_| Session::on(shared.clone())).collect();
    for step in 0..14 {
        for turn in 0..SESSIONS {
            let session = (turn * 4 + step) % SESSIONS;
            let code = program(session, step);
            apart[session].run(&code);
            together[session].run(&code);
            assert_eq!(apart[session].head, together[session].head, "step {step} of session {session}: {code}");
        }
    }
}

#[test]
fn a_heap_made_ready_is_the_heap_it_is() {
    let (alone, shared) = (engine(0), engine(8));
    let mut apart = Session::on(alone);
    let mut ready = Session::on(shared.clone());
    for session in [&mut apart, &mut ready] {
        session.run("let n = 1; const rows = Array.from({length: 500}, (_, i) => ({i}))");
    }
    let made = ready.head.unwrap();
    // Others pass through the guests that there are.
    for other in 0..20 {
        Session::on(shared.clone()).run(&program(other, 1));
    }
    for _ in 0..3 {
        wait(shared.prepare(made)).unwrap();
    }
    for session in [&mut apart, &mut ready] {
        session.run("rows[7].i = ++n");
    }
    assert_eq!(apart.head, ready.head);
    let missing = base::Digest::of(b"no heap");
    assert!(matches!(wait(shared.prepare(missing)), Err(ports::scripts::Error::Absent(key)) if key == missing));
}
