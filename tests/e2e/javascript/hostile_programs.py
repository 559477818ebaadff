"""Hostile programs, and how each of them must end.

Invariant: an end is the words that the program's caller reads, exact where that is possible; a fault of the engine is none of them.
"""

import re

TIMED_OUT = ("timed_out", r"^TimeoutError: the run took longer than \d+ ms$")
MEMORY = ("failed", r"^RangeError: the run used more than \d+ bytes of memory$")
STACK = ("failed", r"^RangeError: Maximum call stack size exceeded$")
UNREADABLE = ("completed", r"^\[unreadable\]$")
# Names of the language and of this product; none of a host that could be reached through one.
LOOK = ("completed", r"^Object,Function,(?!.*\b(?:process|require|__host|Deno|Bun|std|os|scriptArgs|load|loadScript|print|gc|WebAssembly)\b)(?s:.*)\{\} +at <eval> \(run\.js:1:\d+\)\s*$")


def failed(pattern):
    return ("failed", pattern)


def completed(result):
    return ("completed", result)


def any_of(*ends):
    return ("any", ends)


# Sets traps on everything that an engine could read while it converts a result, an error or a line of output.
TAMPER = """
const define = Object.defineProperty, names = Reflect.ownKeys;
const bad = () => { throw new Error('tampered') };
const types = [Object, Function, Array, String, Number, Boolean, Symbol, BigInt, Promise, Map, Set, WeakMap, RegExp, Error, TypeError, RangeError, Date, Uint8Array, ArrayBuffer, URL, Headers, Response, EventTarget, AbortSignal, TextDecoder];
const holders = [JSON, Reflect, Object, Promise, Math, Symbol, Array, Number, console, crypto, performance];
const words = ['then', 'toJSON', 'value', 'get', 'set', 'name', 'message', 'stack', 'cause', 'id', 'kind', 'ms', 'program', 'length', '0'];
const globals = ['Promise', 'JSON', 'Error', 'Object', 'Array', 'Symbol', 'console', 'setTimeout', 'structuredClone', 'URL', 'Reflect'];
let all = [];
for (let at = 0; at < types.length; at++) all[at] = names(types[at].prototype);
let own = [];
for (let at = 0; at < holders.length; at++) own[at] = names(holders[at]);
const trap = {__proto__: null, get: bad, set: bad, configurable: true};
const put = (holder, name) => { try { define(holder, name, trap) } catch {} };
for (let i = 0; i < holders.length; i++) for (let n = 0; n < own[i].length; n++) put(holders[i], own[i][n]);
for (let i = types.length - 1; i >= 0; i--) for (let n = 0; n < all[i].length; n++) if (all[i][n] !== '__proto__') put(types[i].prototype, all[i][n]);
for (let at = 0; at < words.length; at++) put(types[0].prototype, words[at]);
for (let at = 0; at < globals.length; at++) put(globalThis, globals[at]);
41 + 1
"""
# Each program: its name, its code, the end that it must have, and more arguments of its run.
HOSTILE = [
    ("a loop without end", "for (;;) {}", TIMED_OUT, {}),
    ("a loop in finally", "try { for (;;); } finally { for (;;); }", TIMED_OUT, {}),
    ("an idle await", "await new Promise((done) => setTimeout(done, 1e9))", TIMED_OUT, {}),
    ("an await that nothing settles", "await new Promise(() => {})", failed("nothing will settle"), {}),
    ("an interval without end", "await new Promise(() => setInterval(() => {}, 1))", TIMED_OUT, {}),
    ("an array of a thousand million", "new Array(1e9).fill(0)", any_of(MEMORY, TIMED_OUT), {}),
    ("memory by objects", "const all = []; for (;;) all.push({})", any_of(MEMORY, TIMED_OUT), {"timeout_ms": 5000}),
    ("memory, caught", "const all = []; for (;;) try { for (;;) all.push(new Uint8Array(1e6).fill(1)) } catch {}", MEMORY, {"timeout_ms": 5000}),
    ("a string doubled", "let s = 'x'; for (;;) { s += s; s.indexOf('y') }", any_of(MEMORY, failed("^InternalError: string too long$")), {"timeout_ms": 5000}),
    ("a string doubled as a rope", "let s = 'x'; for (;;) s += s", any_of(MEMORY, failed("^InternalError: string too long$")), {"timeout_ms": 5000}),
    ("a regular expression that blows up", "/^(a+)+$/.test('a'.repeat(60) + 'b')", TIMED_OUT, {}),
    ("a regular expression with lookbehind", "/(?<=(x+x+)+y)z/.test('x'.repeat(60) + 'z')", any_of(TIMED_OUT, completed(False)), {}),
    ("recursion", "(function f() { f() })()", STACK, {}),
    ("recursion through JSON", "let d = []; for (let i = 0; i < 1e5; i++) d = [d]; JSON.stringify(d)", STACK, {"timeout_ms": 5000}),
    ("recursion through a proxy", "const p = new Proxy({}, {get: (t, k, r) => r[k]}); p.x", STACK, {}),
    ("recursion through eval", "eval('('.repeat(1e6))", STACK, {"timeout_ms": 5000}),
    ("tampered prototypes", TAMPER, completed(42), {}),
    ("a giant output", "for (let i = 0; i < 1e5; i++) console.log('x'.repeat(1000)); 'said'", any_of(completed("said"), TIMED_OUT), {"timeout_ms": 5000}),
    ("a giant result", "'x'.repeat(2e6)", completed(r"bytes more; at most \d+ are kept"), {}),
    ("a giant result of objects", "Array.from({length: 2e5}, (_, i) => i)", completed(r"bytes more; at most \d+ are kept"), {}),
    ("a giant error", "throw new Error('x'.repeat(8e6))", failed(r"bytes more; at most \d+ are kept"), {}),
    ("a storm of promises", "await Promise.all(Array.from({length: 1e7}, (_, i) => Promise.resolve(i)))", any_of(MEMORY, TIMED_OUT), {"timeout_ms": 5000}),
    ("a storm of timers", "for (;;) setTimeout(() => {}, 1e6)", failed("at most 10000 host calls"), {"timeout_ms": 5000}),
    ("jobs without end", "const again = () => Promise.resolve().then(again); await again()", any_of(MEMORY, TIMED_OUT), {}),
    ("rejections without end", "for (let i = 0; ; i++) Promise.reject(new Error('r' + i))", any_of(MEMORY, TIMED_OUT), {"timeout_ms": 3000}),
    ("a proxy as result", "new Proxy({}, {ownKeys() { throw 1 }, get() { throw 2 }, getPrototypeOf() { throw 3 }})", UNREADABLE, {}),
    ("a proxy that does not end", "new Proxy({}, {ownKeys() { for (;;); }, get() { for (;;); }})", TIMED_OUT, {}),
    ("a proxy thrown", "throw new Proxy(new Error('x'), {get() { throw 1 }, getPrototypeOf() { throw 2 }})", failed(r"^Uncaught: \[Object: null prototype\] \{\}$"), {}),
    ("a revoked proxy", "const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); proxy", UNREADABLE, {}),
    ("throwing getters", "({get a() { throw 1 }, get [Symbol.toStringTag]() { throw 2 }, get toJSON() { throw 3 }})", completed(r"^\{ a: \[Getter\], toJSON: \[Getter\], \[Symbol\(Symbol.toStringTag\)\]: \[Getter\] \}$"), {}),
    ("an error that does not say what it is", "throw Object.defineProperties(new Error('x'), {message: {get() { for (;;); }}})", TIMED_OUT, {}),
    ("toJSON without end", "({toJSON() { for (;;); }})", TIMED_OUT, {}),
    ("a thenable without end", "await ({then() { for (;;); }})", TIMED_OUT, {}),
    ("Intl", "new Intl.NumberFormat('de-DE')", failed("de-DE"), {}),
    ("Intl that is not there", "new Intl.Collator('en')", failed("^TypeError: not a function$"), {}),
    ("FinalizationRegistry", "const r = new FinalizationRegistry(() => { for (;;); }); for (let i = 0; i < 1e5; i++) { const o = {}; o.o = o; r.register(o, i) } 'registered'", any_of(completed("registered"), TIMED_OUT, MEMORY), {"timeout_ms": 3000}),
    ("stack traces of its own", "Error.prepareStackTrace = () => { for (;;); }; null.x", TIMED_OUT, {}),
    ("a stack trace without limit", "Error.stackTraceLimit = Infinity; (function f() { f() })()", any_of(STACK, TIMED_OUT), {"timeout_ms": 3000}),
    ("modules", "await import('fs')", failed("^ReferenceError: could not load module 'fs'$"), {}),
    ("blocking", "Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)", failed("^ReferenceError: Atomics is not defined$"), {}),
    ("code in code", "for (;;) Function('for (;;);')()", TIMED_OUT, {}),
    ("100 MB in bytes, more than it may", "new Uint8Array(100e6).fill(1).length", MEMORY, {}),
    ("100 MB in bytes", "globalThis.large = new Uint8Array(100e6).fill(1); large.length", completed(100000000), {"memory_mb": 160, "timeout_ms": 20000}),
    ("a look around", "[...Object.getOwnPropertyNames(globalThis)].join() + JSON.stringify(mcp.headers) + String(new Error().stack)", LOOK, {}),
]
# Programs that look for the memory of others: each counts the bytes that are not zero.
LEFTOVERS = [
    ("50 MB of a new buffer", "let n = 0; for (const w of new Uint32Array(new ArrayBuffer(50e6))) if (w !== 0) n++; n", completed(0), {"memory_mb": 128, "timeout_ms": 30000}),
    ("new arrays of every size", "let n = 0; const kept = []; for (let size = 1; size < 3e5; size = size * 2 + 3) for (let k = 0; k < 8; k++) { const a = new Uint8Array(size); for (let i = 0; i < size; i++) n += a[i]; if (k % 2) kept.push(a) } n", completed(0), {"timeout_ms": 20000}),
    ("memory that was filled and given back", "let n = 0; for (let turn = 0; turn < 6; turn++) { for (const size of [24, 100, 4000, 70000, 1000000]) { let a = new Uint8Array(size).fill(0x5a); a = null; const b = new Uint32Array(size >> 2); for (let i = 0; i < b.length; i++) if (b[i]) n++ } } n", completed(0), {"timeout_ms": 20000}),
    ("memory that held strings and objects", "let n = 0; for (let turn = 0; turn < 20; turn++) { let junk = Array.from({length: 500}, (_, i) => ({text: 'junk '.repeat(i % 40) + i})); junk = null; const b = new Uint8Array(100 + turn * 3001); for (let i = 0; i < b.length; i++) if (b[i]) n++ } n", completed(0), {"timeout_ms": 20000}),
    ("buffers that grow", "let n = 0; const look = (b) => { for (const x of new Uint8Array(b)) if (x) n++ }; for (let k = 0; k < 20; k++) { const b = new ArrayBuffer(8, {maxByteLength: 2e5}); b.resize(2e5); look(b); b.resize(8); b.resize(1e5); look(b); look(new ArrayBuffer(16).transfer(9e4)) } n", completed(0), {"timeout_ms": 20000}),
    ("holes, slices and views past the end", "let n = 0; const a = new Array(1e5); for (let i = 0; i < 1e5; i++) if (a[i] !== undefined) n++; const u = new Uint8Array(1e4); for (const i of [1e4, 1e5, 1e6, 2 ** 31, -1, 2 ** 32]) if (u[i] !== undefined) n++; for (const x of u.slice(5000)) if (x) n++; let thrown = 0; for (const at of [1e4, 9997, -1, 2 ** 32 - 2]) try { new DataView(u.buffer).getUint32(at); n++ } catch { thrown++ } [n, thrown]", completed([0, 4]), {"timeout_ms": 20000}),
]
# Programs that leave suspended work in their heap.
SUSPENDED = [
    ("suspended generators", "function* g() { try { for (let i = 0; ; i++) yield i } finally { while (true); } } const its = Array.from({length: 200}, g); its.map((it) => (it.next(), it.next().value)).length", completed(200), {"timeout_ms": 5000}),
    ("suspended async generators", "async function* g() { for (let i = 0; ; i++) yield await i } const its = Array.from({length: 50}, g); let last; for (const it of its) last = (await it.next()).value; last", completed(0), {"timeout_ms": 5000}),
    ("pending promises", "const settle = []; const pending = Array.from({length: 1000}, () => new Promise((done) => settle.push(done)).then((v) => { for (;;); })); pending.length", completed(1000), {"timeout_ms": 5000}),
    ("async functions that wait for ever", "const gate = new Promise(() => {}); const running = Array.from({length: 500}, async (_, i) => { try { await gate } finally { for (;;); } }); running.length", completed(500), {"timeout_ms": 5000}),
    ("timers that are left", "for (let i = 0; i < 100; i++) setInterval(() => { for (;;); }, 1); 'left'", completed("^left$"), {"timeout_ms": 5000}),
]

HOSTILE += LEFTOVERS + SUSPENDED


def ends(run, wanted):
    """Whether a run ended in the wanted way, with the wanted reason."""
    state, expected = wanted
    if state == "any":
        return any(ends(run, end) for end in expected)
    if run.get("status") != state:
        return False
    if state == "completed":
        result = run.get("result")
        return bool(re.search(expected, result)) if isinstance(expected, str) and isinstance(result, str) else result == expected
    error = run["error"]
    return bool(error["name"]) and bool(re.search(expected, f"{error['name']}: {error['message']}"))
