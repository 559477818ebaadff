//! Tests that search the bytes of heaps for secrets that a script no longer references.
//! Invariant: a script computes the secret from other numbers, so that its source does not contain the secret. Only the
//! tests of the source itself write the secret into the source.

use std::collections::{BTreeMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use js::Engine;
use ports::Scripts;
use ports::scripts::{Outcome, Thrown};
use serde_json::json;

use crate::support::{Session, settings, wait};

/// The secret. The search finds any eight consecutive characters of it, because a part of a secret must not leak
/// either.
const SECRET: &str = "kT4-qZ9wLm2#xRv8pYc5hBn7jDs3fGu6eWa1oXi0";
const PART_LENGTH: usize = 8;
/// The distances in bytes between two characters of the secret: 1 or 2 in a string, and 8 in an array of numbers.
const STRIDES: [usize; 3] = [1, 2, 8];

/// Returns an expression whose value is the secret.
fn secret() -> String {
    format!("String.fromCharCode(...{})", codes())
}

/// Returns an expression whose value is the secret as an array of character codes.
fn codes() -> String {
    let hidden: Vec<u8> = SECRET.bytes().map(|byte| byte ^ 0x15).collect();
    format!("{hidden:?}.map((n) => n ^ 0x15)")
}

/// Returns a script in which `$S` stands for the secret and `$C` for its character codes.
fn script(code: &str) -> String {
    code.replace("$S", &secret()).replace("$C", &codes())
}

/// Returns the positions of parts of the secret in a memory, each with its stride.
fn find_parts(memory: &[u8], secret: &str) -> Vec<(usize, usize)> {
    let parts: HashSet<&[u8]> = secret.as_bytes().windows(PART_LENGTH).collect();
    let mut may_begin_part = [false; 256];
    secret.bytes().for_each(|byte| may_begin_part[byte as usize] = true);
    let mut positions = Vec::new();
    for at in (0..memory.len()).filter(|at| may_begin_part[memory[*at] as usize]) {
        for stride in STRIDES {
            let Some(window) = memory.get(at..at + PART_LENGTH * stride) else { continue };
            let mut part = [0; PART_LENGTH];
            part.iter_mut().zip(window.chunks_exact(stride)).for_each(|(byte, unit)| *byte = unit[0]);
            let is_padded = || window.chunks_exact(stride).all(|unit| unit[1..].iter().all(|byte| *byte == 0));
            if parts.contains(part.as_slice()) && is_padded() {
                positions.push((at, stride));
            }
        }
    }
    positions
}

impl Session {
    /// Returns whether the head contains a part of the secret. Another engine reads the head from its stored objects.
    fn head_contains(&mut self, secret: &str) -> bool {
        // Tests run on several threads. Without the lock, the `forget` of one test could evict the heap that another
        // test has just admitted.
        static READER: LazyLock<Mutex<Engine>> = LazyLock::new(|| Mutex::new(Engine::start(&settings()).unwrap()));
        let reader = READER.lock().unwrap_or_else(PoisonError::into_inner);
        reader.forget();
        let head = self.head.unwrap();
        wait(reader.admit(head, self.chain())).unwrap();
        let memory = wait(reader.memory(head)).unwrap();
        assert_eq!(memory.len() as u64, self.last.as_ref().unwrap().heap.memory_bytes);
        !find_parts(&memory, secret).is_empty()
    }

    /// Returns whether the secret is gone after one more run.
    fn is_wiped_after_next_run(&mut self) -> bool {
        self.run("0");
        !self.head_contains(SECRET)
    }
}

#[test]
fn a_secret_that_is_held_is_found() {
    for code in ["let kept = $S; 0", "let kept = $S + '\u{1f600}'; 0", "let kept = $C; 0", "let kept = {[$S]: 1}; 0"] {
        let mut session = Session::new();
        session.run(&script(code));
        assert!(session.head_contains(SECRET), "{code}");
        assert!(!session.head_contains("mB8-sV5xTn1#oWd4lJa9kRf2pHz7gCe0yQu6"));
    }
}

/// Each value is made in one run and dropped in the next one. The heap is searched after one more run.
#[test]
fn a_dropped_value_is_in_no_later_heap() {
    let large = "Array.from({length: 300}, (_, i) => $S + i)";
    let cases = [
        ("let kept = $S; 0", "kept = null; 0"),
        ("let kept = $S + '\u{1f600}'; 0", "kept = null; 0"),
        ("let kept = ''; for (const code of $C) kept += String.fromCharCode(code); 0", "kept = ''; 0"),
        ("let kept = $S.repeat(500) + $S.repeat(900); kept.length", "kept = kept.length"),
        ("let kept = 'a'.repeat(3000) + $S + 'b'.repeat(3000); 0", "kept = kept.slice(0, 1000); 0"),
        (&format!("let kept = {large}; 0"), "kept.length = 3; kept.fill(''); 0"),
        (&format!("let kept = new Map({large}.map((s) => [s, {{s}}])); 0"), "kept.clear(); 0"),
        (&format!("let kept = new Set({large}); 0"), "for (const one of [...kept]) kept.delete(one); kept.size"),
        ("let kept = {[$S]: $S, other: 1}; 0", "for (const name of ['other', $S]) delete kept[name]; 0"),
        ("let kept = {a: {b: {c: $S}}}; 0", "delete kept.a.b; 0"),
        ("let kept = Symbol($S); 0", "kept = 0"),
        ("let kept = BigInt('0x' + [...$S].map((c) => c.charCodeAt().toString(16)).join('')); 0", "kept = 0n; 0"),
        ("let kept = ((s) => () => s)($S); 0", "kept = null; 0"),
        ("let kept = (function* (s) { yield s.length; yield s })($S); kept.next().value", "kept.return(); 0"),
        ("let kept = (function* (s) { yield s.length; yield s })($S); kept.next().value", "[...kept].length"),
        ("let kept = new WeakMap([[globalThis, $S]]); 0", "kept.delete(globalThis)"),
        ("let kept = new (class { #s = $S; forget() { this.#s = 0 } })(); 0", "kept.forget(); 0"),
        ("let kept = /./g; kept.exec($S); $S.replace(/(.)(.)/g, '$2$1').length", "kept = 0"),
        ("let kept = new RegExp($S.replace(/[^a-z0-9]/gi, '.')); 0", "kept = 0"),
        ("let kept = new Error($S); 0", "kept = 0"),
        ("let kept = structuredClone({s: [$S]}); 0", "kept = 0"),
        ("let kept = new Headers({'x-token': $S}); 0", "kept = 0"),
        ("let kept = Promise.resolve($S); await kept; 0", "kept = 0"),
        ("let kept = new Function('return ' + JSON.stringify($S)); kept().length", "kept = 0"),
    ];
    let mut not_wiped = cases.to_vec();
    not_wiped.retain(|(make, drop)| {
        let mut session = Session::new();
        session.run(&script(make));
        session.run(&script(drop));
        !session.is_wiped_after_next_run()
    });
    assert!(not_wiped.is_empty(), "the secret is still in the heap: {not_wiped:#?}");
}

#[test]
fn a_temporary_value_is_in_no_later_heap() {
    let cases = [
        "$S.length",
        "$S",
        "({deep: [$S, new Map([[$S, $S]])]})",
        "new Map([[$S, $S]])",
        "Symbol($S)",
        "throw new Error($S)",
        "throw $S",
        "Promise.reject(new TypeError($S)); 0",
        "null[$S]",
        "eval($S)",
        "console.log($S, {$: $S}); console.error([$S]); console.table([{a: $S}]); 0",
        "console.group($S); console.log(1); console.groupEnd(); console.count($S); console.countReset($S); 0",
        "JSON.stringify(JSON.parse(JSON.stringify({a: [$S]}))).length",
        "btoa($S) + atob(btoa($S))",
        "[...new TextEncoder().encode($S)].length + new TextDecoder().decode(new Uint8Array($C)).length",
        "(await crypto.subtle.digest('SHA-256', new Uint8Array($C))).byteLength",
        "$S.split('').reverse().sort().map((c) => c + $S).join($S).normalize().toUpperCase().length",
        "(function deep(n, s) { return n ? deep(n - 1, s) : s.length })(500, $S)",
        "await (async (s) => { await null; return s.length })($S)",
        "for await (const s of (async function* () { yield $S; yield $S })()) s.length",
        "setTimeout((s) => s.length, 1e6, $S); 0",
        "$C.sort().length",
    ];
    let mut not_wiped = cases.to_vec();
    not_wiped.retain(|code| {
        let mut session = Session::new();
        session.run(&script(code));
        !session.is_wiped_after_next_run()
    });
    assert!(not_wiped.is_empty(), "the secret is still in the heap: {not_wiped:#?}");
}

/// A block that shrinks in place frees its rest, which must be wiped like a whole block.
#[test]
fn the_rest_of_a_shrunk_block_is_wiped() {
    let mut not_wiped = Vec::new();
    for bytes in [64, 200, 440, 2_000, 40_000, 300_000] {
        let fill = format!(
            "const fill = (b) => {{ const all = new Uint8Array(b), codes = $C; for (let at = 0; at + 50 < all.length; at += 50) \
             all.set(codes, at); return b }}; let kept = fill(new ArrayBuffer({bytes}, {{maxByteLength: 400000}})); 0"
        );
        for smaller in [
            "kept.resize(3); 0",
            "kept.resize(0); 0",
            "kept = kept.transfer(3); 0",
            "kept = kept.transferToFixedLength(3); 0",
            "kept.resize(3); kept.resize(30); 0",
            "new Uint8Array(kept).fill(0); 0",
            "kept = kept.slice(0, 3); 0",
        ] {
            let mut session = Session::new();
            session.run(&script(&fill));
            session.run(smaller);
            if !session.is_wiped_after_next_run() {
                not_wiped.push(format!("{bytes} bytes: {smaller}"));
            }
        }
    }
    for smaller in [
        "while (kept.length) kept.pop()",
        "while (kept.length > 2) kept.shift(); kept[0] = kept[1] = 0",
        "kept.length = 0",
        "kept.splice(0, 38); kept.fill(0); 0",
        "kept.copyWithin(0, 30).fill(7); 0",
    ] {
        let mut session = Session::new();
        session.run(&script("let kept = $C; 0"));
        session.run(smaller);
        if !session.is_wiped_after_next_run() {
            not_wiped.push(smaller.to_owned());
        }
    }
    assert!(not_wiped.is_empty(), "the secret is still in the heap: {not_wiped:#?}");
}

#[test]
fn the_source_of_a_run_is_in_no_later_heap_unless_one_of_its_functions_is() {
    for code in [
        format!("'{SECRET}'.length"),
        format!("// {SECRET}\n0"),
        format!("let once = `{SECRET}`; once = 0"),
        format!("let {} = 1; 0 // {SECRET}", "a".repeat(40)),
        format!("(() => '{SECRET}')().length"),
        format!("throw '{SECRET}'"),
        format!("'{SECRET}' is no program"),
    ] {
        let mut session = Session::new();
        session.run(&code);
        assert!(session.is_wiped_after_next_run(), "{code}");
    }
    let mut session = Session::new();
    session.run(&format!("function kept() {{ return '{SECRET}' }} 0"));
    assert!(session.head_contains(SECRET), "a function can return its source");
    session.run("function kept() {} 0");
    assert!(session.is_wiped_after_next_run(), "the function was declared again");
}

#[test]
fn answers_and_arguments_of_calls_are_in_no_later_heap() {
    let error = || Thrown { name: SECRET.into(), message: SECRET.into(), stack: String::new() };
    for (code, answer) in [
        ("(await plasm('x')).rows.length", Ok(json!({"rows": [SECRET, {"a": SECRET}]}))),
        ("const {rows} = await plasm('x'); rows.length = 0", Ok(json!({"rows": [SECRET]}))),
        ("await plasm('x'); 0", Ok(json!(SECRET.repeat(2000)))),
        ("await plasm('x').catch(() => 0)", Err(error())),
        ("await plasm('x')", Err(error())),
        ("const asked = $S; await plasm(asked); 0", Ok(json!(0))),
        ("(await Promise.race([plasm($S), plasm('y')])).length", Ok(json!(SECRET))),
    ] {
        let mut session = Session::new();
        // A constant at the top level stays in the heap. Inside a function it belongs to the run only.
        let in_function = format!("await (async () => {{ {} }})()", with_return(code));
        let calls = session.pending_calls(&script(&in_function));
        let answers = calls.iter().map(|call| (call.id, answer.clone())).collect();
        session.settle(answers);
        assert!(session.is_wiped_after_next_run(), "{code}");
    }
}

/// Turns the last statement of a script into a `return`.
fn with_return(code: &str) -> String {
    match code.rsplit_once("; ") {
        Some((before, last)) => format!("{before}; return {last}"),
        None => format!("return {code}"),
    }
}

/// A long substring refers to the whole string and is not a copy.
#[test]
fn a_long_substring_keeps_the_whole_string() {
    for (length, keeps_whole) in [(1_024, false), (1_025, true)] {
        let mut session = Session::new();
        let make = format!("let kept = ('a'.repeat(2000) + $S + 'b'.repeat(2000)).slice(0, {length}); kept.length");
        session.run(&script(&make));
        assert_eq!(session.is_wiped_after_next_run(), !keeps_whole, "{length}");
        session.run("kept = ''; 0");
        assert!(session.is_wiped_after_next_run(), "{length}");
    }
}

/// Objects that reference each other are freed when the garbage collector runs. It runs when the heap has grown by
/// half.
#[test]
fn a_ring_is_wiped_when_it_is_collected() {
    let mut session = Session::new();
    session.run(&script("(() => { const ring = {text: $S}; ring.ring = ring })(); new URL('x:' + $S); 0"));
    session.run("let grown = Array.from({length: 30000}, (_, i) => ({i})); grown = 0");
    assert!(session.is_wiped_after_next_run());
}

/// The code reads headers from the host each time. A heap contains them only if the code stored them.
#[test]
fn headers_are_read_only_and_in_no_heap_unless_code_stores_them() {
    let name = "x-mcp-token";
    let reads = [
        "mcp.headers['x-mcp-token'].length",
        "Object.entries(mcp.headers).flat().join().length",
        "JSON.stringify(mcp).length",
        "({...mcp.headers})['x-mcp-token'].length",
        "(({headers: {['x-mcp-token']: token}}) => token.length)(mcp)",
        "for (const one in mcp.headers) mcp.headers[one].toUpperCase()",
        "console.log(mcp, mcp.headers, `${mcp.headers['x-mcp-token']}`); 0",
        "new Headers(mcp.headers).get('x-mcp-token').length",
        "structuredClone({...mcp.headers})['x-mcp-token'].length",
        "mcp.headers",
        "throw new Error(mcp.headers['x-mcp-token'])",
        "await plasm('x'); mcp.headers['x-mcp-token'].length",
    ];
    let headers = |value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    for code in reads {
        let mut session = Session::new();
        session.surroundings.headers = headers(SECRET);
        if let Outcome::Waiting { owed: calls } = session.run(code) {
            assert!(!session.head_contains(SECRET), "while it waits");
            session.settle(calls.iter().map(|call| (call.id, Ok(json!(0)))).collect());
        }
        assert!(!session.head_contains(SECRET), "{code}");
    }
    let writes = [
        "mcp.headers = {'x-mcp-token': 'forged'}",
        "'use strict'; mcp.headers = {}",
        "mcp.headers['x-mcp-token'] = 'forged'",
        "delete mcp.headers['x-mcp-token']; delete mcp.headers",
        "Object.assign(mcp.headers, {'x-mcp-token': 'forged', more: 1})",
        "Object.defineProperty(mcp, 'headers', {value: {}})",
        "Object.defineProperty(mcp.headers, 'x-mcp-token', {value: 'forged'})",
        "Object.setPrototypeOf(mcp.headers, {more: 1})",
        "Object.defineProperty(Object.prototype, 'x-mcp-token', {set(v) { globalThis.seen = v }, get: () => 'forged'})",
        "JSON.parse = () => ({headers: {}}); Object.keys = () => []; Object.freeze = (o) => (globalThis.seen = o)",
        "Object.getOwnPropertyDescriptor(mcp, 'headers').get = () => ({})",
        "Reflect.set(mcp, 'headers', {}) || Reflect.set(mcp.headers, 'more', 1)",
    ];
    let mut session = Session::new();
    session.surroundings.headers = headers("Qn7/first-Yr3");
    for code in writes {
        session.run(code);
        assert_eq!(
            session.json("[{...mcp.headers}, typeof seen]"),
            json!([headers("Qn7/first-Yr3"), "undefined"]),
            "{code}"
        );
    }
    session.surroundings.headers = headers("Bk2/other-Wd8");
    session.move_to_new_engine();
    assert_eq!(session.json("mcp.headers"), json!(headers("Bk2/other-Wd8")));
    assert!(!session.head_contains("Qn7/first-Yr3"));
    session.surroundings.headers.clear();
    assert_eq!(session.json("mcp.headers"), json!({}));
    // A header value that a script stores in a variable is in its heap.
    session.surroundings.headers = headers(SECRET);
    session.run("let kept = mcp.headers; 0");
    assert!(session.head_contains(SECRET));
}
