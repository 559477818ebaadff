//! The limits of time, memory and stack: the heap of a session survives a step that exceeds a limit.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ports::Scripts;
use ports::scripts::{Error, Input, Step, Stop, Surroundings};
use serde_json::json;

use crate::support::{LIMITS, Session, engine, wait};

/// Returns a step that runs until its deadline, its stop or its engine ends it.
fn endless_step(stop: &Stop) -> Step {
    Step {
        heap: None,
        input: Input::Evaluate { code: "for (;;);".to_owned() },
        limits: LIMITS,
        surroundings: Arc::new(Surroundings::default()),
        stop: stop.clone(),
        turns: None,
    }
}

#[test]
fn a_deadline_ends_every_kind_of_code() {
    let mut session = Session::new();
    session.run("let kept = 'kept'");
    session.limits.deadline_ms = 100;
    for code in [
        "for (;;);",
        "while (true) { try { (() => { throw 1 })() } catch {} }",
        "await null; for (;;);",
        "const again = () => Promise.resolve().then(again); await again()",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "({toJSON() { for (;;); }})",
        "({get x() { for (;;); }})",
        "new Proxy({}, {ownKeys() { for (;;); }, get() { for (;;); }})",
        "try { for (;;); } finally { for (;;); }",
        "[1, 2, 3].sort(() => { for (;;); })",
        "'x'.replace(/x/g, () => { for (;;); })",
        "JSON.parse('[1]', () => { for (;;); })",
    ] {
        let error = session.fails(code);
        assert!(matches!(error, Error::Deadline(100)), "{code}: {error}");
    }
    session.limits = LIMITS;
    assert_eq!(session.json("kept"), json!("kept"));
}

#[test]
fn memory_is_bounded_and_code_cannot_catch_the_error() {
    let mut session = Session::new();
    session.run("let kept = 'kept'");
    session.limits.memory_bytes = 32 << 20;
    for code in [
        "new Array(1e8).fill(0)",
        "new Uint8Array(1e9)",
        "let text = 'x'; for (;;) { text += text; text.indexOf('y') }",
        "const all = []; for (;;) all.push({})",
        "const all = []; try { for (;;) all.push(new Uint8Array(1e6)) } catch { 'caught' }",
        "await null; const all = []; for (;;) all.push([])",
        "await null; try { new Uint8Array(1e9) } catch { 'caught' } finally { 'too' }",
        "const map = new Map(); for (let i = 0; ; i++) map.set(i, 'v' + i)",
        "Promise.all(Array.from({length: 1e7}, (_, i) => Promise.resolve(i)))",
        "let deep = []; for (;;) deep = [deep]",
        "JSON.stringify(Array.from({length: 3e6}, () => 'abcdefghijklmnop')).length",
    ] {
        let error = session.fails(code);
        assert!(matches!(error, Error::Memory(33_554_432)), "{code}: {error}");
    }
    assert_eq!(session.json("kept"), json!("kept"));
    session.limits.memory_bytes = 1 << 20;
    assert!(matches!(session.fails("kept"), Error::Memory(_)), "the heap alone is larger");
}

#[test]
fn endless_recursion_is_a_range_error() {
    for code in [
        "(function f() { f() })()",
        "const f = (n) => [n].map(f); f(1)",
        "class A { get x() { return this.x } } new A().x",
        "const p = new Proxy({}, {get(t, k, r) { return r[k] }}); p.x",
        "let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; JSON.stringify(deep)",
        "JSON.parse('['.repeat(1e7))",
        "JSON.parse('{\"a\":'.repeat(1e6))",
        "JSON.parse('['.repeat(1e5) + ']'.repeat(1e5), (k, v) => v)",
        "eval('('.repeat(1e6))",
        "eval('['.repeat(1e6))",
        "eval('-'.repeat(1e6) + '1')",
        "eval('a=>'.repeat(1e6) + '1')",
        "eval('{'.repeat(1e6))",
        "eval('if(1)'.repeat(1e6))",
        "eval('`${'.repeat(1e6))",
        "eval('x' + '**1'.repeat(1e6))",
        "eval('({a:'.repeat(1e6))",
        "eval('function f(){'.repeat(1e5))",
        "eval('new '.repeat(1e6) + 'X')",
        "(function f() { `${{toString: f}}` })()",
        "const o = {}; o.toJSON = () => JSON.stringify(o); JSON.stringify(o)",
        "new RegExp('(?:'.repeat(1e6))",
        "new RegExp('(?='.repeat(1e6))",
        "let chain = {}; for (let i = 0; i < 1e5; i++) chain = new Proxy(chain, {}); chain.x",
        "'x'.replace(/x/, function f() { return 'x'.replace(/x/, f) })",
        "await null; (function f() { f() })()",
        "Reflect.apply(function f() { Reflect.apply(f, null, []) }, null, [])",
        "(function* g() { yield* g() })().next()",
    ] {
        let thrown = Session::new().threw(code);
        assert!(["RangeError", "SyntaxError"].contains(&thrown.name.as_str()), "{code}: {thrown:?}");
    }
    assert_eq!(
        Session::new().json("try { (function f() { f() })() } catch (error) { error.name }"),
        json!("RangeError")
    );
}

#[test]
fn a_step_can_be_stopped_from_outside() {
    let engine = engine();
    let stop = Stop::default();
    let step = endless_step(&stop);
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        stop.stop();
    });
    assert!(matches!(wait(engine.step(step.clone())), Err(Error::Stopped)));
    stopper.join().unwrap();
    assert!(matches!(wait(engine.step(step)), Err(Error::Stopped)), "a stopped step does not start");
}

#[test]
fn a_full_queue_answers_busy() {
    let settings = js::Settings { threads: 1, max_threads: 1, queue: 1, ..crate::support::settings() };
    let engine = Arc::new(js::Engine::start(&settings).unwrap());
    let stop = Stop::default();
    let step = endless_step(&stop);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (engine, step) = (engine.clone(), step.clone());
            thread::spawn(move || wait(engine.step(step)))
        })
        .collect();
    // One step runs on the only thread and one step is in the queue. The other steps are refused.
    while waiting.iter().filter(|thread| thread.is_finished()).count() < 6 {
        thread::sleep(Duration::from_millis(1));
    }
    stop.stop();
    let answers: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
    let busy = answers.iter().filter(|answer| matches!(answer, Err(Error::Busy))).count();
    let stopped = answers.iter().filter(|answer| matches!(answer, Err(Error::Stopped))).count();
    assert!(busy >= 6 && stopped >= 1 && busy + stopped == 8, "{busy} busy, {stopped} stopped");
}

#[test]
fn dropping_an_engine_ends_its_steps() {
    let engine = js::Engine::start(&crate::support::settings()).unwrap();
    let mut step = endless_step(&Stop::default());
    step.limits.deadline_ms = 3_600_000;
    // The caller gives up while the step runs. Dropping the engine then waits for its threads, which end the step.
    let answer = wait(async { tokio::time::timeout(Duration::from_millis(50), engine.step(step)).await });
    assert!(answer.is_err(), "the caller has given up");
    drop(engine);
}

#[test]
fn endless_scripts_do_not_block_others() {
    let settings = js::Settings { threads: 1, max_threads: 8, ..crate::support::settings() };
    let engine = Arc::new(js::Engine::start(&settings).unwrap());
    let stop = Stop::default();
    let step = endless_step(&stop);
    let endless: Vec<_> = (0..5)
        .map(|_| {
            let (engine, step) = (engine.clone(), step.clone());
            thread::spawn(move || wait(engine.step(step)))
        })
        .collect();
    let mut session = Session::on(engine);
    for i in 0..10 {
        assert_eq!(session.json(&format!("{i} + 1")), json!(i + 1));
    }
    assert!(endless.iter().all(|thread| !thread.is_finished()), "they still run");
    stop.stop();
    for thread in endless {
        assert!(matches!(thread.join().unwrap(), Err(Error::Stopped)));
    }
}
