"""What a hostile run leaves in a heap does no harm to who goes on from it: the second half of `js_hostile.py`.

Invariants: only the standard library; a heap whose prototypes are all traps still settles what the host owes it, says what went wrong
and can be compared; a large heap is stored as what it holds, not as what it spans.
"""

import json
import time

from answers import seeds
from js_hostile_calls import TIMEOUT_MS, api, hostile, run, short, tool
from js_hostile_programs import MEMORY, TAMPER, TIMED_OUT, ends, failed

# Taken before the traps, as any library would that means to outlive them.
TAKEN = "const wait = setTimeout, say = console.log, Wrong = RangeError, then = Promise.prototype.then, apply = Reflect.apply, P = Promise, ask = globalThis.plasm;"
# What the language itself reads of every promise and of everything that settles one; each has a case of its own, or is the language's.
SPECIES = "define(P.prototype, 'constructor', {__proto__: null, value: P}); define(P, species, {__proto__: null, value: P});"
PLAIN = "define(types[0].prototype, 'then', {__proto__: null, value: undefined}); define(types[0].prototype, 'toJSON', {__proto__: null, value: undefined});"
TIMER = "await {__proto__: null, then(done) { wait(() => done('settled'), 20) }}"
LOOPS = TAMPER.replace("throw new Error('tampered')", "for (;;);")
# Of a heap with 100 MB of one byte: the heap itself, and a step on it.
STORED_BYTES = 2_000_000
STEP_BYTES = 64_000


def kept(suite, server):
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
    tampered(suite, port)
    large(suite, server)
    with suite.case("a giant output is kept up to its cap, and the rest is counted"):
        ran = hostile(port, "for (let i = 0; i < 3000; i++) console.log('é'.repeat(500)); 1", {"timeout_ms": 20000})
        status, page = api(port, "GET", f"/api/executions/{ran['execution_id']}/output?byte_offset=0&byte_limit=100")
        assert status == 200 and page["dropped_bytes"] > 1_000_000, page
        assert page["total_bytes"] <= 1024 * 1024 and page["data"].startswith("éé"), page
        assert len(ran.get("output", "")) <= 4000, "an answer carries the head only"


def tampered(suite, port):
    """After tampering with everything an engine could reach for."""

    def made(code, **more):
        ran = run(port, code, **more)
        assert ran["status"] == "completed" and ran["result"] == 42, short(ran)
        return ran["heap"]

    with suite.case("a heap with tampered prototypes still answers, and its errors and console say what they are"):
        heap = made(f"{TAKEN}{TAMPER}")
        assert run(port, "40 + 2", heap=heap)["result"] == 42
        assert "result" not in run(port, "undefined", heap=heap)
        for code, name, message in (
            ("throw 1", "Uncaught", "1"),
            ("1;\nthrow new Wrong('mine')", None, "mine"),
            ("null.f()", None, "cannot read property 'f' of null"),
            ("nowhere", "ReferenceError", "nowhere is not defined"),
            ("let q = ;", "SyntaxError", "unexpected token in expression: ';'"),
        ):
            ran = run(port, code, heap=heap)
            assert ran["status"] == "failed" and ran["error"]["message"] == message, short(ran)
            # The name of an error is read from its prototype, which is a trap; then it is the plain one.
            assert ran["error"]["name"] == (name or "Error"), short(ran)
        ran = run(port, "say('line', 'x', 1n, null, undefined, Symbol.iterator ?? 0); 1", heap=heap)
        assert ran["status"] == "failed", short(ran)
        ran = run(port, "say('line', 'x', 1n, null, undefined, new Wrong('shown')); 1", heap=heap)
        assert ran["result"] == 1 and ran["output"] == "line x 1n null undefined Error: shown\n", short(ran)
    with suite.case("a heap with tampered prototypes: a timer settles"):
        heap = made(f"{TAKEN} const species = Symbol.species; {TAMPER.replace('41 + 1', '')} {SPECIES} 42")
        ran = run(port, TIMER, heap=heap)
        assert ran.get("result") == "settled", short(ran)
        assert run(port, TIMER, heap=ran["heap"]).get("result") == "settled", "and again, on what that left"
    with suite.case("a heap whose promises have a trap for a constructor: a timer settles"):
        ran = run(port, TIMER, heap=made(f"{TAKEN}{TAMPER}"))
        assert ran.get("result") == "settled", short(ran)
    with suite.case("a heap with tampered prototypes: plasm() in a logical session settles"):
        text, error = tool(port, "plasm_context", intent="tampered", seeds=seeds("Project"))
        assert not error, text
        ref = "s" + text.split("`s", 1)[1].split("`", 1)[0]
        made(f"{TAKEN} const species = Symbol.species; {TAMPER.replace('41 + 1', '')} {SPECIES} {PLAIN} 42", logical_session_ref=ref)
        asks = "await {__proto__: null, then(done, no) { apply(then, ask('Project[key]'), [(found) => done(found.rows[0].key + found.rows.length), no]) }}"
        ran = run(port, asks, logical_session_ref=ref)
        assert ran.get("result") == "API6", short(ran)
        wrong = "await {__proto__: null, then(done, no) { apply(then, ask('Nothing[here]'), [done, (e) => done('refused')]) }}"
        assert run(port, wrong, logical_session_ref=ref).get("result") == "refused"
    with suite.case("a toJSON on Object.prototype does not change what plasm() asks for"):
        asks = "Object.prototype.toJSON = () => ({program: 'Ticket.limit(1)[title]'}); const got = await plasm('Project[key]'); delete Object.prototype.toJSON; got.rows[0].key"
        ran = run(port, asks, heap="", logical_session_ref=ref)
        assert ran.get("result") == "API", short(ran)
    for title, code in (("throw", TAMPER), ("do not end", LOOPS)):
        with suite.case(f"a heap whose getters {title} is compared with another one, in time, and says what it has"):
            empty, heap = run(port, "0")["heap"], made(code)
            started = time.monotonic()
            found, error = tool(port, "diff_heaps", a=empty, b=heap)
            took = time.monotonic() - started
            assert not error, found
            added = {one["name"]: one for one in found["added"]}
            assert {"define", "names", "bad", "types", "trap", "own", "all"} <= set(added), sorted(added)
            assert added["bad"]["kind"] == "function", added["bad"]
            assert found["removed"] == [], found["removed"]
            assert took < 10 and len(json.dumps(found)) < 500_000, f"{took:.1f} s, {len(json.dumps(found))} characters"
            back, error = tool(port, "diff_heaps", a=heap, b=empty)
            assert not error and {one["name"] for one in back["removed"]} == set(added), back
            assert run(port, "6 * 7")["result"] == 42


def large(suite, server):
    port = server.port

    def stored(heap):
        return api(port, "GET", f"/api/heaps/{heap}")[1]["stored_bytes"]

    def kept_bytes():
        return sum(path.stat().st_size for path in server.data.rglob("*") if path.is_file())

    with suite.case("100 MB in the heap: it is stored as what it holds, a step on it as what it changes, and the bytes are the same"):
        before = kept_bytes()
        made = run(port, "const large = new Uint8Array(100e6); large.fill(7); 'made'", memory_mb=256, timeout_ms=30000)
        assert made["status"] == "completed" and stored(made["heap"]) < STORED_BYTES, (short(made), stored(made["heap"]))
        heap = made["heap"]
        for n in range(5):
            ran = run(port, f"large[{n} * 1e7] = {n}; large[0] + large[99999999]", heap=heap, memory_mb=256, timeout_ms=30000)
            assert ran.get("result") == 7, short(ran)
            heap = ran["heap"]
            assert stored(heap) < STEP_BYTES, f"step {n} is {stored(heap)} bytes"
        assert kept_bytes() - before < STORED_BYTES + 6 * STEP_BYTES + 4_000_000, f"{kept_bytes() - before} bytes more"
        ran = run(port, "1", heap=heap, memory_mb=32)
        assert ends(ran, MEMORY), short(ran)
