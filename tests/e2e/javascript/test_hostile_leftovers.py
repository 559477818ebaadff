"""Hostile state in a heap does no harm to the next run on that heap.

A heap whose prototypes are all traps still settles its host calls, says what went wrong and can be compared. A large heap is
stored as what it holds, not as what it spans.
"""

import json

import pytest

from hostile_calls import TIMEOUT_MS, api, hostile, run, short, tool
from hostile_programs import MEMORY, TAMPER, TIMED_OUT, ends, failed
from lib.answers import seeds

pytestmark = pytest.mark.steps
# The programs take these before the traps are set, as a library would that means to survive them.
TAKEN = "const wait = setTimeout, say = console.log, Wrong = RangeError, then = Promise.prototype.then, apply = Reflect.apply, P = Promise, ask = globalThis.plasm;"
# The language itself reads these of every promise and of everything that settles one; each has a test of its own.
SPECIES = "define(P.prototype, 'constructor', {__proto__: null, value: P}); define(P, species, {__proto__: null, value: P});"
PLAIN = "define(types[0].prototype, 'then', {__proto__: null, value: undefined}); define(types[0].prototype, 'toJSON', {__proto__: null, value: undefined});"
TIMER = "await {__proto__: null, then(done) { wait(() => done('settled'), 20) }}"
LOOPS = TAMPER.replace("throw new Error('tampered')", "for (;;);")
# Limits for a heap with 100 MB of one byte: the heap itself, and a step on it.
STORED_BYTES = 2_000_000
STEP_BYTES = 64_000


@pytest.fixture(scope="module")
def port(server):
    return server.port


@pytest.fixture(scope="module")
def step(port):
    """Runs one step, which must complete."""

    def step(name, code, heap=None, **more):
        outcome = run(port, code, **({"heap": heap} if heap else {}), **more)
        assert outcome["status"] == "completed", f"{name}: {short(outcome)}"
        return outcome

    return step


def tampered_heap(port, code, **more):
    outcome = run(port, code, **more)
    assert outcome["status"] == "completed" and outcome["result"] == 42, short(outcome)
    return outcome["heap"]


def test_suspended_generators_go_on_from_the_heap(port, step):
    maker = step("make", "function* g() { try { for (let i = 0; ; i++) yield i } finally { while (true); } } const it = g(); it.next(); it.next().value")
    assert step("go on", "it.next().value", maker["heap"])["result"] == 2
    outcome = run(port, "it.return()", heap=maker["heap"], timeout_ms=TIMEOUT_MS)
    assert ends(outcome, TIMED_OUT), short(outcome)
    assert step("as before", "it.next().value", maker["heap"])["result"] == 2


def test_pending_promises_settle_in_a_later_run(port, step):
    maker = step("make", "let settle; const pending = new Promise((done) => { settle = done }).then((v) => v + 1); 'pending'")
    assert step("settle", "settle(41); await pending", maker["heap"])["result"] == 42
    outcome = run(port, "await pending", heap=maker["heap"])
    assert ends(outcome, failed("nothing will settle")), short(outcome)


def test_timers_end_with_their_run(step):
    maker = step("make", "let fired = 0; setInterval(() => { fired++; for (;;); }, 1); 'left'")
    assert step("look", "await new Promise((done) => setTimeout(done, 30)); fired", maker["heap"])["result"] == 0


# --- tampered prototypes


def test_a_heap_with_tampered_prototypes_answers_and_its_errors_and_output_are_readable(port):
    heap = tampered_heap(port, f"{TAKEN}{TAMPER}")
    assert run(port, "40 + 2", heap=heap)["result"] == 42
    assert "result" not in run(port, "undefined", heap=heap)
    for code, name, message in (
        ("throw 1", "Uncaught", "1"),
        ("1;\nthrow new Wrong('mine')", None, "mine"),
        ("null.f()", None, "cannot read property 'f' of null"),
        ("nowhere", "ReferenceError", "nowhere is not defined"),
        ("let q = ;", "SyntaxError", "unexpected token in expression: ';'"),
    ):
        outcome = run(port, code, heap=heap)
        assert outcome["status"] == "failed" and outcome["error"]["message"] == message, short(outcome)
        # The prototype of an error is a trap, so its name is the default one.
        assert outcome["error"]["name"] == (name or "Error"), short(outcome)
    outcome = run(port, "say('line', 'x', 1n, null, undefined, Symbol.iterator ?? 0); 1", heap=heap)
    assert outcome["status"] == "failed", short(outcome)
    outcome = run(port, "say('line', 'x', 1n, null, undefined, new Wrong('shown')); 1", heap=heap)
    assert outcome["result"] == 1 and outcome["output"] == "line x 1n null undefined Error: shown\n", short(outcome)


def test_a_timer_settles_on_a_heap_with_tampered_prototypes(port):
    heap = tampered_heap(port, f"{TAKEN} const species = Symbol.species; {TAMPER.replace('41 + 1', '')} {SPECIES} 42")
    outcome = run(port, TIMER, heap=heap)
    assert outcome.get("result") == "settled", short(outcome)
    assert run(port, TIMER, heap=outcome["heap"]).get("result") == "settled", "and again, on what that left"


def test_a_timer_settles_on_a_heap_whose_promises_have_a_trap_for_a_constructor(port):
    outcome = run(port, TIMER, heap=tampered_heap(port, f"{TAKEN}{TAMPER}"))
    assert outcome.get("result") == "settled", short(outcome)


@pytest.fixture(scope="module")
def ref(port):
    text, error = tool(port, "plasm_context", intent="tampered", seeds=seeds("Project"))
    assert not error, text
    return "s" + text.split("`s", 1)[1].split("`", 1)[0]


def test_plasm_in_a_logical_session_settles_on_a_heap_with_tampered_prototypes(port, ref):
    text, error = tool(port, "plasm_context", intent="tampered", seeds=seeds("Project"))
    assert not error, text
    ref = "s" + text.split("`s", 1)[1].split("`", 1)[0]
    tampered_heap(port, f"{TAKEN} const species = Symbol.species; {TAMPER.replace('41 + 1', '')} {SPECIES} {PLAIN} 42", logical_session_ref=ref)
    code = "await {__proto__: null, then(done, no) { apply(then, ask('Project[key]'), [(found) => done(found.rows[0].key + found.rows.length), no]) }}"
    outcome = run(port, code, logical_session_ref=ref)
    assert outcome.get("result") == "API6", short(outcome)
    wrong = "await {__proto__: null, then(done, no) { apply(then, ask('Nothing[here]'), [done, (e) => done('refused')]) }}"
    assert run(port, wrong, logical_session_ref=ref).get("result") == "refused"


def test_a_tojson_on_object_prototype_does_not_change_the_program_that_plasm_runs(port, ref):
    code = "Object.prototype.toJSON = () => ({program: 'Ticket.limit(1)[title]'}); const got = await plasm('Project[key]'); delete Object.prototype.toJSON; got.rows[0].key"
    outcome = run(port, code, heap="", logical_session_ref=ref)
    assert outcome.get("result") == "API", short(outcome)


@pytest.mark.parametrize("code", [TAMPER, LOOPS], ids=["getters-that-throw", "getters-that-do-not-end"])
def test_a_heap_with_hostile_getters_is_compared_with_another_heap(port, code):
    empty, heap = run(port, "0")["heap"], tampered_heap(port, code)
    difference, error = tool(port, "diff_heaps", a=empty, b=heap)
    assert not error, difference
    added = {one["name"]: one for one in difference["added"]}
    assert {"define", "names", "bad", "types", "trap", "own", "all"} <= set(added), sorted(added)
    assert added["bad"]["kind"] == "function", added["bad"]
    assert difference["removed"] == [], difference["removed"]
    assert len(json.dumps(difference)) < 500_000, f"{len(json.dumps(difference))} characters"
    reverse, error = tool(port, "diff_heaps", a=heap, b=empty)
    assert not error and {one["name"] for one in reverse["removed"]} == set(added), reverse
    assert run(port, "6 * 7")["result"] == 42


# --- large heaps and outputs


def test_100_mb_of_one_byte_are_stored_as_what_they_hold_and_a_step_as_what_it_changes(server, port):
    def stored_bytes(heap):
        return api(port, "GET", f"/api/heaps/{heap}")[1]["stored_bytes"]

    def stored_bytes_of_all():
        return sum(path.stat().st_size for path in server.data.rglob("*") if path.is_file())

    before = stored_bytes_of_all()
    maker = run(port, "const large = new Uint8Array(100e6); large.fill(7); 'made'", memory_mb=256, timeout_ms=30000)
    assert maker["status"] == "completed" and stored_bytes(maker["heap"]) < STORED_BYTES, (short(maker), stored_bytes(maker["heap"]))
    heap = maker["heap"]
    for n in range(5):
        outcome = run(port, f"large[{n} * 1e7] = {n}; large[0] + large[99999999]", heap=heap, memory_mb=256, timeout_ms=30000)
        assert outcome.get("result") == 7, short(outcome)
        heap = outcome["heap"]
        assert stored_bytes(heap) < STEP_BYTES, f"step {n} is {stored_bytes(heap)} bytes"
    assert stored_bytes_of_all() - before < STORED_BYTES + 6 * STEP_BYTES + 4_000_000, f"{stored_bytes_of_all() - before} bytes more"
    outcome = run(port, "1", heap=heap, memory_mb=32)
    assert ends(outcome, MEMORY), short(outcome)


def test_a_giant_output_is_kept_up_to_its_limit_and_the_rest_is_counted(port):
    outcome = hostile(port, "for (let i = 0; i < 3000; i++) console.log('é'.repeat(500)); 1", {"timeout_ms": 20000})
    status, page = api(port, "GET", f"/api/executions/{outcome['execution_id']}/output?byte_offset=0&byte_limit=100")
    assert status == 200 and page["dropped_bytes"] > 1_000_000, page
    assert page["total_bytes"] <= 1024 * 1024 and page["data"].startswith("éé"), page
    assert len(outcome.get("output", "")) <= 4000, "an answer carries the head only"
