"""JavaScript in logical sessions: the head, programs inside code, forks, rewinds, and runs over a restart."""

import json
import tempfile
from types import SimpleNamespace

import pytest

from lib.answers import DEMO, with_every_capability
from lib.javascript import NamedConnection, error_of, open_session, value_of, wait_for_end
from lib.server import Server

pytestmark = pytest.mark.steps
SEEDS = with_every_capability(DEMO)


@pytest.fixture(scope="module")
def agent(server):
    connection = NamedConnection(server.port)
    connection.initialize()
    return connection


@pytest.fixture(scope="module")
def ref(agent):
    return open_session(agent, "count in JavaScript", SEEDS)


def test_a_logical_session_goes_on_from_its_head_with_let_class_and_closures(agent, ref):
    value_of(agent.tool("run_js", code="let n = 0; class A { #p = 7; get p() { return this.#p } } const add = () => ++n", logical_session_ref=ref))
    for n in (1, 2):
        run = value_of(agent.tool("run_js", code="add()", logical_session_ref=ref))
        assert run["result"] == n, run
    assert value_of(agent.tool("run_js", code="new A().p", logical_session_ref=ref))["result"] == 7
    entries = value_of(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]
    assert [e["index"] for e in entries] == [0, 1, 2, 3], entries


def test_a_program_inside_code_reads_an_api(agent, ref):
    run = value_of(agent.tool("run_js", code="(await plasm('Project[name]')).rows.length", logical_session_ref=ref))
    assert run["result"] > 0, run


def test_a_write_inside_code_waits_for_a_commit_from_outside(agent, ref):
    write = """(await plasm('Ticket.open(project="OPS", title="asked for by code")')).rows[0].title"""
    run = value_of(agent.tool("run_js", code=write, logical_session_ref=ref))
    assert run["status"] == "waiting_review", run
    commit = run["reviews"][0]["plan_commit_ref"]
    answer, error = agent.tool("plasm_run", logical_session_ref=ref, plan_commit_ref=commit)
    assert not error, answer
    ended = wait_for_end(agent, run["execution_id"])
    assert ended["status"] == "completed" and ended["result"] == "asked for by code", ended


def test_a_fork_goes_its_own_way_and_does_not_write_and_a_rewind_goes_back(agent, ref):
    fork = value_of(agent.tool("fork_session", logical_session_ref=ref, intent="another count", at=1))
    fork_ref = fork["logical_session_ref"]
    assert fork["fenced"] is True and fork_ref != ref, fork
    assert value_of(agent.tool("run_js", code="add()", logical_session_ref=fork_ref))["result"] == 2
    answer = error_of(agent.tool("plasm_run", logical_session_ref=fork_ref, program='Ticket.open(project="OPS", title="x")', force=True))
    assert answer.startswith("fenced"), answer
    assert value_of(agent.tool("promote_session", logical_session_ref=fork_ref)) == {"ok": True}
    entry = value_of(agent.tool("rewind_session", logical_session_ref=ref, index=1))["entry"]
    assert entry["rewound_to"] == 1, entry
    assert value_of(agent.tool("run_js", code="add()", logical_session_ref=ref))["result"] == 2


def test_two_heaps_are_compared_and_a_heap_is_read_as_a_resource(agent, ref):
    entries = value_of(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]
    a, b = entries[0]["output_heap"], entries[1]["output_heap"]
    diff = value_of(agent.tool("diff_heaps", a=a, b=b))
    assert [c["name"] for c in diff["changed"]] == ["n"] and diff["added"] == [], diff
    info = json.loads(value_of(agent.tool("read_artifact", uri=f"heap://{b}")))
    assert info["heap"] == b and a in info["parents"] and info["memory_bytes"] > 0, info


# --- over a restart


@pytest.fixture(scope="module")
def restarted():
    """A server after a crash, and the runs that its predecessor had accepted."""
    data = tempfile.mkdtemp(prefix="data-")
    with Server(data) as server:
        agent = NamedConnection(server.port, "survivor", more_headers={"X-MCP-Team": "red"})
        agent.initialize()
        ref = open_session(agent, "survive", SEEDS)
        value_of(agent.tool("run_js", code="let kept = new Map([['a', [1n]]])", logical_session_ref=ref))
        value_of(agent.tool("run_js", code="1"))
        waits = "let out = []; for (let i = 0; i < 20; i++) out.push(...await Promise.all([1, 2].map(n => new Promise(r => setTimeout(() => r(n), 50))))); out.length"
        running = value_of(agent.tool("run_js", code=waits, logical_session_ref=ref, wait_ms=300))
        assert running["status"] == "running", running
        queued = value_of(agent.tool("run_js", code="out.length + kept.size", logical_session_ref=ref, wait_ms=0))
        server.kill()
    with Server(data) as server:
        back = NamedConnection(server.port, session=agent.session)
        yield SimpleNamespace(agent=back, ref=ref, running=running, queued=queued)


def test_runs_of_a_killed_server_go_on_in_the_next_one_in_their_order(restarted):
    assert wait_for_end(restarted.agent, restarted.running["execution_id"])["result"] == 40
    assert wait_for_end(restarted.agent, restarted.queued["execution_id"])["result"] == 41


def test_a_connection_keeps_its_name_and_its_headers_over_a_restart(restarted):
    assert len(value_of(restarted.agent.tool("list_session_snapshots"))["entries"]) == 1
    assert value_of(restarted.agent.tool("run_js", code="mcp.headers['x-mcp-team']"))["result"] == "red"


def test_the_log_has_no_gaps_after_a_restart(restarted):
    entries = value_of(restarted.agent.tool("list_session_snapshots", logical_session_ref=restarted.ref))["entries"]
    assert [entry["index"] for entry in entries] == [0, 1, 2], entries
