"""Full queues are refused, and endless loops do not stop the short runs of others.

Invariants: `busy` is an error with its code over MCP and a status over HTTP, and nothing of a refused run is stored; every
accepted run comes to its end, in order.
"""

import json

import pytest

from lib.client import request
from lib.javascript import FINAL, ModernConnection, error_of, open_session, value_of, wait_for_end
from lib.server import Server, settings

pytestmark = pytest.mark.steps(again_for="loops")
# The default limit of runs of one session that have not ended.
QUEUE = 100
SHORT_RUNS = 10
# The HTTP status of `busy`.
BUSY = 429


def run_over_http(port, **arguments):
    answer = request(port, "POST", "/api/exec", json.dumps(arguments), {"X-MCP-Session-Id": arguments.pop("session", None)})
    return answer.status, answer.headers, json.loads(answer.body)


def assert_busy(port, agent, words, **arguments):
    """Asserts that a run is refused as busy over MCP and HTTP, and is not listed."""
    before = value_of(agent.tool("list_executions"))["executions"]
    refusal = error_of(agent.tool("run_js", code="'refused'", wait_ms=0, **arguments))
    assert isinstance(refusal, str) and refusal.startswith("busy: ") and words in refusal, refusal
    status, headers, problem = run_over_http(port, code="'refused'", wait_ms=0, **arguments)
    assert status == BUSY and problem["code"] == "busy" and words in json.dumps(problem), (status, problem)
    assert "problem+json" in headers["content-type"], headers
    newest = value_of(agent.tool("list_executions"))["executions"]
    assert [run["execution_id"] for run in newest] == [run["execution_id"] for run in before], "a refused run is listed"


# --- the queue of one session


@pytest.fixture(scope="module")
def agent(server):
    return ModernConnection(server.port)


@pytest.fixture(scope="module")
def ref(agent):
    return open_session(agent, "a queue")


@pytest.fixture(scope="module")
def first(agent, ref):
    """A run that waits until it is cancelled."""
    value_of(agent.tool("run_js", code="let order = []", logical_session_ref=ref))
    code = "await new Promise((done) => setTimeout(done, 1e6)); 0"
    return value_of(agent.tool("run_js", code=code, logical_session_ref=ref, wait_ms=0, timeout_ms=120_000))


@pytest.fixture(scope="module")
def queued(agent, ref, first):
    """The runs behind the first one: as many as the queue takes."""
    return [
        value_of(agent.tool("run_js", code=f"order.push({n})", logical_session_ref=ref, wait_ms=0))["execution_id"]
        for n in range(QUEUE - 1)
    ]


def test_a_session_with_100_unfinished_runs_is_busy_over_mcp_and_http_and_stores_nothing(server, agent, ref, queued):
    for _ in range(3):
        assert_busy(server.port, agent, f"{QUEUE} runs", logical_session_ref=ref)


def test_other_sessions_and_runs_outside_of_sessions_go_on_beside_a_full_queue(agent, queued):
    other = open_session(agent, "another")
    assert value_of(agent.tool("run_js", code="6 * 7", logical_session_ref=other))["result"] == 42
    assert value_of(agent.tool("run_js", code="6 * 7"))["result"] == 42


def test_a_run_that_ends_makes_room_for_one_other(server, agent, ref, queued):
    assert value_of(agent.tool("cancel_execution", execution_id=queued.pop())) == {"ok": True}
    added = value_of(agent.tool("run_js", code=f"order.push({QUEUE - 2})", logical_session_ref=ref, wait_ms=0))
    queued.append(added["execution_id"])
    assert_busy(server.port, agent, f"{QUEUE} runs", logical_session_ref=ref)


def test_accepted_runs_run_in_order_when_the_first_one_ends(agent, ref, first, queued):
    assert value_of(agent.tool("cancel_execution", execution_id=first["execution_id"])) == {"ok": True}
    for n, execution in enumerate(queued):
        assert wait_for_end(agent, execution)["result"] == n + 1
    order = value_of(agent.tool("run_js", code="order", logical_session_ref=ref))["result"]
    assert order == list(range(QUEUE - 1)), order
    entries = value_of(agent.tool("list_session_snapshots", logical_session_ref=ref, fields="index,code"))["entries"]
    assert [e["index"] for e in entries] == list(range(QUEUE + 1)) and not any("refused" in e["code"] for e in entries), entries[-3:]


# --- limits of the settings


WAITS = {"code": "await new Promise((done) => setTimeout(done, 1e6))", "wait_ms": 0, "timeout_ms": 120_000}


@pytest.fixture(scope="module")
def narrow_server():
    with Server(arguments=settings("[js]\nqueue = 3\nruns = 6\n")) as started:
        yield started


@pytest.fixture(scope="module")
def waiting(narrow_server):
    """Three runs of one named session that wait until they are cancelled."""
    named = ModernConnection(narrow_server.port, "narrow")
    return [value_of(named.tool("run_js", **WAITS))["execution_id"] for _ in range(3)]


def test_the_settings_limit_the_queue_of_a_named_session(narrow_server, waiting):
    named = ModernConnection(narrow_server.port, "narrow")
    refusal = error_of(named.tool("run_js", code="1", wait_ms=0))
    assert refusal.startswith("busy: ") and "3 runs" in refusal, refusal
    status, _, problem = run_over_http(narrow_server.port, code="1", wait_ms=0, session="narrow")
    assert status == BUSY and problem["code"] == "busy", (status, problem)


def test_the_settings_limit_the_runs_of_a_tenant_over_all_its_sessions(narrow_server, waiting):
    agent = ModernConnection(narrow_server.port)
    waiting += [value_of(agent.tool("run_js", **WAITS))["execution_id"] for _ in range(3)]
    assert_busy(narrow_server.port, agent, "6 runs")
    for execution in waiting:
        assert value_of(agent.tool("cancel_execution", execution_id=execution)) == {"ok": True}
    assert value_of(agent.tool("run_js", code="6 * 7"))["result"] == 42


# --- endless loops


@pytest.fixture(scope="module", params=[2, 8], ids=["2-loops", "8-loops"])
def loops(request):
    return request.param


@pytest.fixture(scope="module")
def agent_beside_loops(loops):
    with Server() as started:
        yield ModernConnection(started.port)


@pytest.fixture(scope="module")
def endless(agent_beside_loops, loops):
    """Loops that end only after two minutes, or when they are cancelled."""
    loop = {"code": "for (;;) {}", "wait_ms": 0, "timeout_ms": 120_000}
    return [value_of(agent_beside_loops.tool("run_js", **loop))["execution_id"] for _ in range(loops)]


def test_short_runs_of_other_sessions_complete_while_every_endless_loop_is_under_way(agent_beside_loops, endless):
    agent = agent_beside_loops
    ref = open_session(agent, "short beside loops")
    value_of(agent.tool("run_js", code="let n = 0", logical_session_ref=ref, wait_ms=60_000))
    for n in range(SHORT_RUNS):
        connection, where = [(agent, {"logical_session_ref": ref}), (ModernConnection(agent.port, "short"), {}), (agent, {})][n % 3]
        code = "globalThis.n = (globalThis.n ?? 0) + 1; 'short'"
        run = value_of(connection.tool("run_js", code=code, wait_ms=60_000, **where))
        assert run["status"] == "completed" and run["result"] == "short", f"run {n} is {run['status']}"
    states = [value_of(agent.tool("get_execution", execution_id=execution))["status"] for execution in endless]
    assert not set(states) & set(FINAL), f"the short runs had to wait for the end of a loop: {states}"


def test_every_endless_loop_is_cancelled(agent_beside_loops, endless):
    for execution in endless:
        assert value_of(agent_beside_loops.tool("cancel_execution", execution_id=execution)) == {"ok": True}
    assert all(wait_for_end(agent_beside_loops, execution)["status"] == "cancelled" for execution in endless)
