//! Tests of the state that a heap preserves: on a live guest, from a heap in memory, and from stored objects.

use serde_json::json;

use crate::support::Session;

const MAKE: &str = "
    const closure = ((n) => () => ++n)(10);
    class Account { #balance = 5; static made = 0; constructor() { Account.made++ } pay(n) { this.#balance -= n; return this.#balance } }
    const account = new Account();
    const map = new Map([['k', {v: 1}], [NaN, 2]]), set = new Set([1, 'a']);
    const key = {}, weak = new WeakMap([[key, 'weak']]);
    const symbol = Symbol('mine'), keyed = {[symbol]: 's', [Symbol.for('shared')]: 't'};
    const date = new Date(86400000), big = 2n ** 70n;
    const pattern = /a(?<x>.)/g; pattern.exec('ab ac');
    const bytes = new Uint8Array([1, 2, 3]), view = new DataView(bytes.buffer), floats = new Float64Array([0.5]);
    const computed = {get twice() { return this.n * 2 }, n: 21};
    const frozen = Object.freeze({f: 1});
    const cycle = {name: 'c'}; cycle.self = cycle;
    function* count() { let i = 0; while (true) { const step = yield i; i += step ?? 1 } }
    const generator = count(); generator.next(); generator.next(5);
    async function* ticks() { let n = 0; while (true) n += (yield n) ?? 1 }
    const async_generator = ticks(); await async_generator.next();
    let settle; const pending = new Promise((done) => { settle = done }).then((v) => v + '!');
    const reference = new WeakRef(key);
    const nested = [[1, [2, [3]]], {deep: {er: 'x'}}];
    const text = 'ü'.repeat(1000) + '\u{1f600}';
    0";

const USE: &str = "
    settle('later');
    [closure(), account.pay(1), Account.made, map.get('k').v, map.get(NaN), set.has('a'), weak.get(key),
     keyed[symbol], keyed[Symbol.for('shared')], date.toISOString(), String(big), pattern.lastIndex, pattern.exec('ab ac').groups.x,
     [...bytes], view.getUint8(1), floats[0], computed.twice, Object.isFrozen(frozen), cycle.self === cycle,
     generator.next(10).value, (await async_generator.next(5)).value, await pending, reference.deref() === key, nested, text.length]";

#[test]
fn every_kind_of_state_survives() {
    let expected = json!([
        11, 4, 1, 1, 2, true, "weak", "s", "t", "1970-01-02T00:00:00.000Z", "1180591620717411303424", 2, "c",
        [1, 2, 3], 2, 0.5, 42, true, true, 15, 5, "later!", true, [[1, [2, [3]]], {"deep": {"er": "x"}}], 1002
    ]);
    let mut session = Session::new();
    session.run(MAKE);
    let made = session.head;
    assert_eq!(session.json(USE), expected, "on a live guest");
    session.head = made;
    assert_eq!(session.json(USE), expected, "from a heap in memory");
    session.head = made;
    session.move_to_new_engine();
    assert_eq!(session.json(USE), expected, "from stored objects");
}

#[test]
fn two_restores_of_one_heap_draw_different_random_numbers() {
    let mut session = Session::new();
    session.run("const draw = () => [Math.random(), Math.random()]");
    let heap = session.head;
    let mut draws = Vec::new();
    for _ in 0..4 {
        session.head = heap;
        draws.push(session.json("draw()"));
    }
    session.head = heap;
    session.move_to_new_engine();
    draws.push(session.json("draw()"));
    for (index, draw) in draws.iter().enumerate() {
        assert!(!draws[..index].contains(draw), "{draws:?}");
        assert!(draw[0] != draw[1], "{draws:?}");
    }
}

/// Freed memory is zeroed. So a secret that a script no longer references is not in the heap, and the object stays
/// small.
#[test]
fn an_image_contains_no_freed_memory() {
    let mut session = Session::new();
    session.run("(() => { let all = ''; for (let i = 0; i < 20000; i++) all += 'secret-' + i; return all.length })()");
    let last = session.last.as_ref().unwrap();
    assert!(last.heap.memory_bytes > 5 << 20, "the script used memory: {}", last.heap.memory_bytes);
    assert!(last.heap.object.len() < 150_000, "the object has {} bytes", last.heap.object.len());
    session.run("(function deep(n, secret) { return n ? deep(n - 1, secret + n) : secret.length })(2000, 's')");
    let last = session.last.as_ref().unwrap();
    assert!(last.heap.object.len() < 150_000, "the object has {} bytes", last.heap.object.len());
}

#[test]
fn a_large_typed_array_survives() {
    let mut session = Session::new();
    session.run("const large = new Uint8Array(20e6); for (let i = 0; i < large.length; i += 4096) large[i] = i / 4096");
    session.move_to_new_engine();
    let sum: u64 = (0..20_000_000_u64.div_ceil(4096)).map(|i| i % 256).sum();
    assert_eq!(
        session.json("let sum = 0; for (let i = 0; i < large.length; i += 4096) sum += large[i]; sum"),
        json!(sum)
    );
}

/// The callback of a `FinalizationRegistry` runs as a job after the registered object was freed. An object in a
/// reference cycle is freed when the garbage collector runs, which may be in a later run and in another process.
#[test]
fn a_finalization_registry_works_after_its_heap_was_stored() {
    let mut session = Session::new();
    session.run(
        "const gone = [], registry = new FinalizationRegistry((held) => gone.push(held));
         let one = {}, two = {}, three = {}, token = {}, reference = new WeakRef(one);
         registry.register(one, 'one'); registry.register(two, 'two'); registry.register(three, 'three', token);
         (() => { const ring = {}; ring.ring = ring; registry.register(ring, 'ring') })(); 0",
    );
    session.move_to_new_engine();
    assert_eq!(session.json("gone"), json!([]), "all objects are alive");
    assert_eq!(session.json("registry.unregister(token)"), json!(true));
    session.move_to_new_engine();
    // The run that drops the object sees the callback after its next await. Here the run ends before.
    assert_eq!(session.json("one = null; [gone.length, reference.deref() === undefined]"), json!([0, true]));
    session.move_to_new_engine();
    assert_eq!(session.json("gone"), json!(["one"]));
    assert_eq!(
        session.json("two = three = null; await null; gone"),
        json!(["one", "two"]),
        "the third was unregistered"
    );
    session.move_to_new_engine();
    // The ring is freed when the heap has grown enough for the garbage collector to run.
    session.run("let grown = Array.from({length: 30000}, (_, i) => ({i})); grown = null");
    session.move_to_new_engine();
    assert_eq!(session.json("gone"), json!(["one", "two", "ring"]));
}
