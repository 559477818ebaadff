"""Programs that mean harm, each alone and then many times beside sessions that mean none.

Invariants: only the standard library; the server lives to the end; every hostile run ends within its limits and says why;
what a healthy session answers is its own and right at every moment. $HOSTILE_TIMES says how often each one is run in the crowd
(default 3; the full measure is 1000) and $HOSTILE_TIMEOUT_MS what each may take there, or eight times that where it has more
alone: less is as hostile, and a thousand of each are then run within the hour.
"""

import json
import os
import re
import threading
import time
import uuid
from pathlib import Path

from harness import Server, Suite, request

suite = Suite("js_hostile")
TIMES = int(os.environ.get("HOSTILE_TIMES", "3"))
CROWD = 12
HEALTHY = 6
# Of one hostile run: what it may take, and what may pass until it is told of, the queue before it included.
TIMEOUT_MS = 400
CROWD_TIMEOUT_MS = int(os.environ.get("HOSTILE_TIMEOUT_MS", TIMEOUT_MS))
MEMORY_MB = 32
# Healthy sessions rest between two steps, or most of the time of a long run would be theirs.
REST_SECONDS = 0.01
TOLD_SECONDS = 60
# What the server may hold at the end. Its heaps in memory have a budget of 512 MB.
RESIDENT_MB = 1200

TIMED_OUT = ("timed_out", r"the run took longer than \d+ ms")
MEMORY = ("failed", r"the run used more than \d+ bytes of memory")
STACK = ("failed", r"Maximum call stack size exceeded")


def failed(pattern):
    return ("failed", pattern)


def completed(result):
    return ("completed", result)


def any_of(*ends):
    return ("any", ends)


# Everything that an engine could reach for while it reads a result, an error or a line of the console.
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

# name, code, how it ends, and more of its arguments
HOSTILE = [
    ("a loop without end", "for (;;) {}", TIMED_OUT, {}),
    ("a loop in finally", "try { for (;;); } finally { for (;;); }", TIMED_OUT, {}),
    ("an idle await", "await new Promise((done) => setTimeout(done, 1e9))", TIMED_OUT, {}),
    ("an await that nothing settles", "await new Promise(() => {})", failed("nothing will settle"), {}),
    ("an interval without end", "await new Promise(() => setInterval(() => {}, 1))", TIMED_OUT, {}),
    ("an array of a thousand million", "new Array(1e9).fill(0)", any_of(MEMORY, TIMED_OUT), {}),
    ("memory by objects", "const all = []; for (;;) all.push({})", any_of(MEMORY, TIMED_OUT), {"timeout_ms": 5000}),
    ("memory, caught", "const all = []; for (;;) try { for (;;) all.push(new Uint8Array(1e6).fill(1)) } catch {}", MEMORY, {"timeout_ms": 5000}),
    ("a string doubled", "let s = 'x'; for (;;) { s += s; s.indexOf('y') }", any_of(MEMORY, failed("string")), {"timeout_ms": 5000}),
    ("a string doubled as a rope", "let s = 'x'; for (;;) s += s", any_of(MEMORY, TIMED_OUT, failed("string")), {"timeout_ms": 5000}),
    ("a regular expression that blows up", "/^(a+)+$/.test('a'.repeat(60) + 'b')", TIMED_OUT, {}),
    ("a regular expression with lookbehind", "/(?<=(x+x+)+y)z/.test('x'.repeat(60) + 'z')", any_of(TIMED_OUT, completed(False)), {}),
    ("recursion", "(function f() { f() })()", STACK, {}),
    ("recursion through JSON", "let d = []; for (let i = 0; i < 1e5; i++) d = [d]; JSON.stringify(d)", STACK, {"timeout_ms": 5000}),
    ("recursion through a proxy", "const p = new Proxy({}, {get: (t, k, r) => r[k]}); p.x", STACK, {}),
    ("recursion through eval", "eval('('.repeat(1e6))", failed("."), {"timeout_ms": 5000}),
    ("tampered prototypes", TAMPER, completed(42), {}),
    ("a giant output", "for (let i = 0; i < 1e5; i++) console.log('x'.repeat(1000)); 'said'", any_of(completed("said"), TIMED_OUT), {"timeout_ms": 5000}),
    ("a giant result", "'x'.repeat(2e6)", completed(r"bytes more; at most \d+ are kept"), {}),
    ("a giant result of objects", "Array.from({length: 2e5}, (_, i) => i)", completed(r"bytes more; at most \d+ are kept"), {}),
    ("a giant error", "throw new Error('x'.repeat(8e6))", failed(r"bytes more; at most \d+ are kept"), {}),
    ("a storm of promises", "await Promise.all(Array.from({length: 1e7}, (_, i) => Promise.resolve(i)))", any_of(MEMORY, TIMED_OUT), {"timeout_ms": 5000}),
    ("a storm of timers", "for (;;) setTimeout(() => {}, 1e6)", failed("at most 10000 host calls"), {"timeout_ms": 5000}),
    ("jobs without end", "const again = () => Promise.resolve().then(again); await again()", any_of(MEMORY, TIMED_OUT), {}),
    ("rejections without end", "for (let i = 0; ; i++) Promise.reject(new Error('r' + i))", any_of(MEMORY, TIMED_OUT), {"timeout_ms": 3000}),
    ("a proxy as result", "new Proxy({}, {ownKeys() { throw 1 }, get() { throw 2 }, getPrototypeOf() { throw 3 }})", completed("."), {}),
    ("a proxy that does not end", "new Proxy({}, {ownKeys() { for (;;); }, get() { for (;;); }})", TIMED_OUT, {}),
    ("a proxy thrown", "throw new Proxy(new Error('x'), {get() { throw 1 }, getPrototypeOf() { throw 2 }})", failed("."), {}),
    ("a revoked proxy", "const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); proxy", completed("."), {}),
    ("throwing getters", "({get a() { throw 1 }, get [Symbol.toStringTag]() { throw 2 }, get toJSON() { throw 3 }})", completed("."), {}),
    ("an error that does not say what it is", "throw Object.defineProperties(new Error('x'), {message: {get() { for (;;); }}})", TIMED_OUT, {}),
    ("toJSON without end", "({toJSON() { for (;;); }})", TIMED_OUT, {}),
    ("a thenable without end", "await ({then() { for (;;); }})", TIMED_OUT, {}),
    ("Intl", "new Intl.NumberFormat('de-DE')", failed("de-DE"), {}),
    ("Intl that is not there", "new Intl.Collator('en')", failed("."), {}),
    ("FinalizationRegistry", "const r = new FinalizationRegistry(() => { for (;;); }); for (let i = 0; i < 1e5; i++) { const o = {}; o.o = o; r.register(o, i) } 'registered'", any_of(completed("registered"), TIMED_OUT, MEMORY), {"timeout_ms": 3000}),
    ("stack traces of its own", "Error.prepareStackTrace = () => { for (;;); }; null.x", TIMED_OUT, {}),
    ("a stack trace without limit", "Error.stackTraceLimit = Infinity; (function f() { f() })()", any_of(STACK, TIMED_OUT), {"timeout_ms": 3000}),
    ("modules", "await import('fs')", failed("."), {}),
    ("blocking", "Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)", any_of(failed("."), TIMED_OUT), {}),
    ("code in code", "for (;;) Function('for (;;);')()", TIMED_OUT, {}),
    ("100 MB in bytes, more than it may", "new Uint8Array(100e6).fill(1).length", MEMORY, {}),
    ("100 MB in bytes", "globalThis.large = new Uint8Array(100e6).fill(1); large.length", completed(100000000), {"memory_mb": 160, "timeout_ms": 20000}),
    ("a look around", "[...Object.getOwnPropertyNames(globalThis)].join() + JSON.stringify(mcp.headers) + String(new Error().stack)", completed("."), {}),
]


def api(port, method, path, value=None, headers=None, seconds=TOLD_SECONDS):
    answer = request(port, method, path, json.dumps(value) if value is not None else b"", headers, seconds)
    return answer.status, json.loads(answer.body)


def run(port, code, **more):
    """A run to its end, whichever way it ends."""
    status, ran = api(port, "POST", "/api/exec", {"code": code, **more})
    until = time.monotonic() + TOLD_SECONDS
    while status == 202 and time.monotonic() < until:
        time.sleep(0.02)
        status, ran = api(port, "GET", f"/api/executions/{ran['execution_id']}")
        if ran["status"] in ("queued", "running"):
            status = 202
    return ran


def hostile(port, code, more):
    return run(port, code, **{"timeout_ms": TIMEOUT_MS, "memory_mb": MEMORY_MB, **more})


def in_crowd(more):
    if CROWD_TIMEOUT_MS == TIMEOUT_MS:
        return more
    return {**more, "timeout_ms": min(more.get("timeout_ms", CROWD_TIMEOUT_MS), 8 * CROWD_TIMEOUT_MS)}


def ends(ran, wanted):
    """Whether it ended so, and said why."""
    state, what = wanted
    if state == "any":
        return any(ends(ran, one) for one in what)
    if ran.get("status") != state:
        return False
    if state == "completed":
        result = ran.get("result")
        return bool(re.search(what, result)) if isinstance(what, str) and isinstance(result, str) else result == what or what == "."
    error = ran["error"]
    return bool(error["name"]) and bool(re.search(what, f"{error['name']}: {error['message']}"))


def short(ran):
    return json.dumps(ran)[:300]


def alone(server):
    for name, code, wanted, more in HOSTILE:
        with suite.case(f"{name}, alone"):
            started = time.monotonic()
            ran = hostile(server.port, code, more)
            took = time.monotonic() - started
            assert ends(ran, wanted), short(ran)
            most = (more.get("timeout_ms", TIMEOUT_MS)) / 1000 + 5
            assert took < most, f"it took {took:.1f} s"
            assert len(json.dumps(ran)) < 1_200_000, "the answer is as large as the harm"
            assert run(server.port, "6 * 7")["result"] == 42, "the server is not well"


def kept(server):
    """What a hostile run leaves in a session does no harm to the session itself."""
    port = server.port

    def step(name, code, heap=None, **more):
        ran = run(port, code, **({"heap": heap} if heap else {}), **more)
        assert ran["status"] == "completed", f"{name}: {short(ran)}"
        return ran

    with suite.case("generators, suspended in the heap"):
        made = step("make", "function* g() { try { for (let i = 0; ; i++) yield i } finally { while (true); } } const it = g(); it.next(); it.next().value")
        assert step("go on", "it.next().value", made["heap"])["result"] == 2
        ran = run(port, "it.return()", heap=made["heap"], timeout_ms=TIMEOUT_MS)
        assert ends(ran, TIMED_OUT), short(ran)
        assert step("as before", "it.next().value", made["heap"])["result"] == 2
    with suite.case("pending promises, kept in the heap"):
        made = step("make", "let settle; const pending = new Promise((done) => { settle = done }).then((v) => v + 1); 'pending'")
        assert step("settle", "settle(41); await pending", made["heap"])["result"] == 42
        ran = run(port, "await pending", heap=made["heap"])
        assert ends(ran, failed("nothing will settle")), short(ran)
    with suite.case("timers that were left are gone with their run"):
        made = step("make", "let fired = 0; setInterval(() => { fired++; for (;;); }, 1); 'left'")
        assert step("look", "await new Promise((done) => setTimeout(done, 30)); fired", made["heap"])["result"] == 0
    with suite.case("a heap with tampered prototypes still answers, and its globals are compared"):
        made = step("tamper", TAMPER)
        assert step("count", "40 + 2", made["heap"])["result"] == 42
        assert "result" not in step("nothing", "undefined", made["heap"])
        ran = run(port, "throw 1", heap=made["heap"])
        assert ran["status"] == "failed", short(ran)
        status, info = api(port, "GET", f"/api/heaps/{made['heap']}")
        assert status == 200 and info["heap"] == made["heap"], info
    with suite.case("100 MB in the heap: the next step is as quick, and the bytes are the same"):
        made = step("make", "const large = new Uint8Array(100e6); large.fill(7); 'made'", memory_mb=256, timeout_ms=30000)
        ran = step("look", "large[0] + large[99999999]", made["heap"], memory_mb=256)
        assert ran["result"] == 14, short(ran)
        ran = run(port, "1", heap=made["heap"], memory_mb=32)
        assert ends(ran, MEMORY), short(ran)
    with suite.case("a giant output is kept up to its cap, and the rest is counted"):
        ran = hostile(port, "for (let i = 0; i < 3000; i++) console.log('é'.repeat(500)); 1", {"timeout_ms": 20000})
        status, page = api(port, "GET", f"/api/executions/{ran['execution_id']}/output?byte_offset=0&byte_limit=100")
        assert status == 200 and page["dropped_bytes"] > 1_000_000, page
        assert page["total_bytes"] <= 1024 * 1024 and page["data"].startswith("éé"), page
        assert len(ran.get("output", "")) <= 4000, "an answer carries the head only"


class Healthy(threading.Thread):
    """A session that counts, with a secret of its own. It stops at the first answer that is not right."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number = port, number
        self.secret = f"secret-{number}-{uuid.uuid4()}"
        self.steps, self.wrong, self.over = 0, None, threading.Event()
        self.slowest = 0.0

    def run(self):
        try:
            heap = None
            while not self.over.is_set():
                code = "count++; [secret, count]" if heap else f"let count = 1, secret = '{self.secret}'; [secret, count]"
                started = time.monotonic()
                ran = run(self.port, code, **({"heap": heap, "require_heap": True} if heap else {}))
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.steps += 1
                wanted = [self.secret, self.steps]
                assert ran.get("result") == wanted, f"{short(ran)} instead of {wanted}"
                heap = ran["heap"]
                time.sleep(REST_SECONDS)
        except Exception as problem:
            self.wrong = f"session {self.number}, step {self.steps}: {problem}"


def crowd(server):
    """Each hostile program $HOSTILE_TIMES times, a dozen at a time, beside healthy sessions."""
    work = [(i, entry) for i in range(TIMES) for entry in HOSTILE]
    # Neighbours are of different kinds, and the same in each run.
    work.sort(key=lambda item: (item[0], hash_of(item[1][0], item[0])))
    healthy = [Healthy(server.port, n) for n in range(HEALTHY)]
    wrong, lock, counts = [], threading.Lock(), {}

    def one_of_many():
        while True:
            with lock:
                if not work or len(wrong) > 5:
                    return
                _, (name, code, wanted, more) = work.pop()
            try:
                ran = hostile(server.port, code, in_crowd(more))
                text = json.dumps(ran)
                # Slow neighbours may take a run's time, so that its deadline comes before its own mistake.
                good = ends(ran, wanted) or ends(ran, TIMED_OUT)
                problem = None if good else f"{name}: {text[:300]}"
                if "secret-" in text:
                    problem = f"{name} has seen another session: {text[:300]}"
            except Exception as error:
                problem, ran = f"{name}: {type(error).__name__}: {error}", {}
            with lock:
                counts[ran.get("status")] = counts.get(ran.get("status"), 0) + 1
                if problem:
                    wrong.append(problem)

    started = time.monotonic()
    for thread in healthy:
        thread.start()
    threads = [threading.Thread(target=one_of_many, daemon=True) for _ in range(CROWD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for thread in healthy:
        thread.over.set()
    for thread in healthy:
        thread.join(TOLD_SECONDS)
    took = time.monotonic() - started
    steps, slowest = sum(t.steps for t in healthy), max(t.slowest for t in healthy)
    with suite.case(f"{TIMES} times each of {len(HOSTILE)}: every one ends within its limits and says why ({took:.0f} s, {counts})"):
        assert not wrong, "; ".join(wrong)
        assert sum(counts.values()) == TIMES * len(HOSTILE), counts
    with suite.case(f"beside them {HEALTHY} healthy sessions answer what is right ({steps} steps, the slowest {slowest:.1f} s)"):
        assert not [t for t in healthy if t.is_alive()], "a healthy session hangs"
        assert not [t.wrong for t in healthy if t.wrong], [t.wrong for t in healthy if t.wrong]
        assert all(t.steps >= 3 for t in healthy), [t.steps for t in healthy]
    with suite.case("the server lives, its memory is bounded, and it stops in good order"):
        assert server.process.poll() is None, f"it ended with {server.process.poll()}"
        memory = resident_mb(server.process.pid)
        assert memory < RESIDENT_MB, f"{memory} MB resident"
        said = Path(server.log).read_text(errors="replace")
        assert "panicked" not in said, said[said.index("panicked") - 200 :][:600]
        assert run(server.port, "6 * 7")["result"] == 42
        assert server.stop(20) == 0


def hash_of(name, round):
    return sum((i + 7) * ord(c) * (round + 3) for i, c in enumerate(name)) % 9973


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024


def main():
    with suite.group("alone"), Server() as server:
        alone(server)
        kept(server)
    with suite.group("in a crowd"), Server() as server:
        crowd(server)
    suite.end()


main()
