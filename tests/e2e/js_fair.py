"""Who waits for whom: a queue that is full says so, and loops without end do not stop the short runs of others.

Invariants: `busy` is an error with its code over MCP and a status over HTTP, and nothing of a refused run is stored; every accepted run
comes to its end, in order; a short run of another session completes within seconds, however many endless ones there are. Only the
standard library.
"""

import json
import tempfile
import time
from pathlib import Path

from answers import seeds
from harness import Server, Suite, request
from js_calls import FINAL, Modern, bad, good, until

suite = Suite("js_fair")
# Runs of one session that have not ended, as the settings have it by themselves.
QUEUE = 100
# What a short run may take beside endless ones.
SHORT_SECONDS = 3
SHORT_RUNS = 10
# Over HTTP.
BUSY = 429


def settings(**js):
    file = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    file.write_text("[js]\n" + "".join(f"{name} = {value}\n" for name, value in js.items()))
    return ("--config", str(file))


def opened(agent, intent):
    text, error = agent.tool("plasm_context", intent=intent, seeds=seeds("Project"))
    assert not error, text
    return "s" + text.split("`s", 1)[1].split("`", 1)[0]


def by_http(port, **asked):
    answer = request(port, "POST", "/api/exec", json.dumps(asked), {"X-MCP-Session-Id": asked.pop("session", None)})
    return answer.status, answer.headers, json.loads(answer.body)


def is_busy(port, agent, words, **asked):
    """Over MCP an error with its code, over HTTP its status; nothing of either is listed."""
    before = good(agent.tool("list_executions"))["executions"]
    said = bad(agent.tool("run_js", code="'refused'", wait_ms=0, **asked))
    assert isinstance(said, str) and said.startswith("busy: ") and words in said, said
    status, headers, problem = by_http(port, code="'refused'", wait_ms=0, **asked)
    assert status == BUSY and problem["code"] == "busy" and words in json.dumps(problem), (status, problem)
    assert "problem+json" in headers["content-type"], headers
    newest = good(agent.tool("list_executions"))["executions"]
    assert [run["execution_id"] for run in newest] == [run["execution_id"] for run in before], "a refused run is listed"


def full_queue(server):
    agent = Modern(server.port)
    ref, other = opened(agent, "a queue"), opened(agent, "another")
    good(agent.tool("run_js", code="let order = []", logical_session_ref=ref))
    first = good(agent.tool("run_js", code="await new Promise((done) => setTimeout(done, 1e6)); 0", logical_session_ref=ref, wait_ms=0, timeout_ms=60_000))
    queued = [good(agent.tool("run_js", code=f"order.push({n})", logical_session_ref=ref, wait_ms=0))["execution_id"] for n in range(QUEUE - 1)]
    with suite.case(f"a session with {QUEUE} runs that have not ended answers busy over MCP and over HTTP, and stores nothing"):
        for _ in range(3):
            is_busy(server.port, agent, f"{QUEUE} runs", logical_session_ref=ref)
    with suite.case("other sessions, and runs outside of any, go on beside it"):
        assert good(agent.tool("run_js", code="6 * 7", logical_session_ref=other))["result"] == 42
        assert good(agent.tool("run_js", code="6 * 7"))["result"] == 42
    with suite.case("one that ended makes room for one"):
        assert good(agent.tool("cancel_execution", execution_id=queued.pop())) == {"ok": True}
        more = good(agent.tool("run_js", code=f"order.push({QUEUE - 2})", logical_session_ref=ref, wait_ms=0))
        queued.append(more["execution_id"])
        is_busy(server.port, agent, f"{QUEUE} runs", logical_session_ref=ref)
    with suite.case("what was accepted runs, in its order, when the one before it has ended"):
        assert good(agent.tool("cancel_execution", execution_id=first["execution_id"])) == {"ok": True}
        for n, execution in enumerate(queued):
            assert until(agent, execution)["result"] == n + 1
        order = good(agent.tool("run_js", code="order", logical_session_ref=ref))["result"]
        assert order == list(range(QUEUE - 1)), order
        entries = good(agent.tool("list_session_snapshots", logical_session_ref=ref, fields="index,code"))["entries"]
        assert [e["index"] for e in entries] == list(range(QUEUE + 1)) and not any("refused" in e["code"] for e in entries), entries[-3:]


def small_bounds():
    with Server(arguments=settings(queue=3, runs=6)) as server:
        agent, named = Modern(server.port), Modern(server.port, "narrow")
        waits = {"code": "await new Promise((done) => setTimeout(done, 1e6))", "wait_ms": 0, "timeout_ms": 60_000}
        mine = [good(named.tool("run_js", **waits))["execution_id"] for _ in range(3)]
        with suite.case("a session with a name has the same bound, by the settings"):
            said = bad(named.tool("run_js", code="1", wait_ms=0))
            assert said.startswith("busy: ") and "3 runs" in said, said
            status, _, problem = by_http(server.port, code="1", wait_ms=0, session="narrow")
            assert status == BUSY and problem["code"] == "busy", (status, problem)
        with suite.case("a tenant has a bound over all its sessions, by the settings"):
            mine += [good(agent.tool("run_js", **waits))["execution_id"] for _ in range(3)]
            is_busy(server.port, agent, "6 runs")
            for execution in mine:
                assert good(agent.tool("cancel_execution", execution_id=execution)) == {"ok": True}
            assert good(agent.tool("run_js", code="6 * 7"))["result"] == 42


def beside_loops(server, loops):
    """Short runs of a logical session, of a named one and outside of any, while so many loops go on."""
    agent = Modern(server.port)
    ref = opened(agent, f"short beside {loops}")
    good(agent.tool("run_js", code="let n = 0", logical_session_ref=ref))
    endless = [good(agent.tool("run_js", code="for (;;) {}", wait_ms=0, timeout_ms=20_000))["execution_id"] for _ in range(loops)]
    time.sleep(0.3)
    with suite.case(f"{loops} endless loops of 20 s: each of {SHORT_RUNS} short runs of other sessions completes within {SHORT_SECONDS} s"):
        for n in range(SHORT_RUNS):
            who, where = [(agent, {"logical_session_ref": ref}), (Modern(server.port, "short"), {}), (agent, {})][n % 3]
            began = time.monotonic()
            ran = good(who.tool("run_js", code="globalThis.n = (globalThis.n ?? 0) + 1; 'short'", wait_ms=SHORT_SECONDS * 1000, **where))
            took = time.monotonic() - began
            assert ran["status"] == "completed" and ran["result"] == "short", f"run {n} is {ran['status']} after {took:.1f} s"
            assert took < SHORT_SECONDS, f"run {n} took {took:.1f} s"
    with suite.case(f"{loops} endless loops: they were under way all the time, and each is cancelled within {SHORT_SECONDS} s"):
        states = [good(agent.tool("get_execution", execution_id=execution))["status"] for execution in endless]
        assert not set(states) & set(FINAL), states
        began = time.monotonic()
        for execution in endless:
            assert good(agent.tool("cancel_execution", execution_id=execution)) == {"ok": True}
        assert all(until(agent, execution)["status"] == "cancelled" for execution in endless)
        assert time.monotonic() - began < SHORT_SECONDS, f"{time.monotonic() - began:.1f} s"


def main():
    with suite.group("a full queue"), Server() as server:
        full_queue(server)
    with suite.group("bounds of the settings"):
        small_bounds()
    for loops in (2, 8):
        with suite.group(f"{loops} loops"), Server() as server:
            beside_loops(server, loops)
    suite.end()


main()
