"""A wall clock that jumps under a running server: a year ahead, more than a year back, and to where it was.

A refusal that depends on the time (a reviewed plan is good for ten minutes) has its code; everything else goes on: symbols,
results, JavaScript heaps, counters, the trace. No effect happens twice.
"""

import json
from itertools import pairwise

import pytest

from lib.answers import tables
from lib.client import modern_call, refusal_of, request, text_of
from lib.clock import DAY, Clock
from lib.server import Server, assert_did_not_panic, new_folder, run_binary

pytestmark = pytest.mark.steps
SEEDS = [{"api": "demo", "entity": "Project"}, {"api": "demo", "entity": "Ticket", "capabilities": ["*"]}]
OPEN = 'Ticket.open(project="OPS", title="{}")'


def call(server, tool, **arguments):
    return modern_call(server.port, tool, arguments)


def open_session(server):
    return text_of(call(server, "plasm_context", intent="clock", seeds=SEEDS))


def run(server, program="Project[key, name]"):
    return text_of(call(server, "plasm_run", logical_session_ref="s0", program=program))


def artifact(server, number):
    return call(server, "read_artifact", uri=f"plasm://session/s0/r/{number}")


def plan_commit(server, title):
    answer = call(server, "plasm", logical_session_ref="s0", program=OPEN.format(title))
    return answer["result"]["_meta"]["plasm"]["plan_commit_ref"]


def run_commit(server, commit):
    return call(server, "plasm_run", logical_session_ref="s0", plan_commit_ref=commit)


def js(server, code):
    run_state = json.loads(text_of(call(server, "run_js", code=code, logical_session_ref="s0", wait_ms=20_000)))
    assert run_state["status"] == "completed", run_state
    return run_state["result"]


def count_tickets(server, title):
    """The number of tickets with this title in the API's list."""
    rows = tables(run(server, f'Ticket{{project="OPS"}}.filter{{title="{title}"}}[number, title]'))
    return len(rows.get("result", []))


def assert_sound(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    assert request(server.port, "GET", "/readyz").status == 200
    assert_did_not_panic(server)


@pytest.fixture(scope="module")
def clock():
    return Clock(new_folder("clock-"))


@pytest.fixture(scope="module")
def server(clock):
    with clock.in_new_processes():
        started = Server().__enter__()
    yield started
    started.kill()


def test_before_the_jumps_there_are_a_session_a_result_a_plan_and_a_heap(server, flow):
    assert "e1" in open_session(server)
    assert "OPS" in run(server)
    flow.old = plan_commit(server, "before the jump")
    assert js(server, "globalThis.steps = [Date.now()]; steps.length") == 1


def test_400_days_ahead_a_reviewed_plan_is_too_old_and_nothing_runs(server, clock, flow):
    clock.move_to(400 * DAY)
    refusal = refusal_of(run_commit(server, flow.old))
    assert refusal.startswith("expired_commit: "), refusal
    assert count_tickets(server, "before the jump") == 0


def test_400_days_ahead_session_results_runs_and_heap_go_on(server):
    assert "Session unchanged" in open_session(server)
    assert "OPS" in text_of(artifact(server, 1))
    assert "OPS" in run(server)
    assert js(server, "steps.push(Date.now())") == 2
    assert_sound(server)


def test_800_days_back_a_plan_from_the_future_runs_once(server, clock):
    ahead = plan_commit(server, "planned ahead")
    clock.move_to(-400 * DAY)
    first, again = run_commit(server, ahead), run_commit(server, ahead)
    assert not first["result"].get("isError"), text_of(first)
    assert not again["result"].get("isError"), text_of(again)
    assert count_tickets(server, "planned ahead") == 1


def test_800_days_back_session_results_runs_and_heap_go_on_and_numbers_count_up(server):
    assert "Session unchanged" in open_session(server)
    assert "OPS" in text_of(artifact(server, 1))
    assert "OPS" in run(server)
    assert js(server, "steps.push(Date.now())") == 3
    assert_sound(server)


def test_back_at_the_right_time_all_steps_are_in_the_heap_and_in_the_log_in_order(server, clock):
    clock.move_to(0)
    assert js(server, "steps.push(Date.now())") == 4
    assert js(server, "steps[1] - steps[0] > 399 * 864e5 && steps[2] < steps[0] && steps[3] > steps[0]") is True
    log = json.loads(text_of(call(server, "list_session_snapshots", logical_session_ref="s0")))["entries"]
    assert [entry["index"] for entry in log] == [0, 1, 2, 3, 4], log
    assert all(one["output_heap"] == two["input_heap"] for one, two in pairwise(log)), log


def test_back_at_the_right_time_the_trace_has_the_calls_and_a_collection_removes_nothing(server):
    counted = run_binary("gc", "--dry-run", "--json", "--data", server.data).stdout
    assert '"blobs":0' in counted.replace(" ", ""), counted
    assert_sound(server)


def test_a_server_with_the_right_clock_finds_everything(server):
    server.kill()
    with Server(data=server.data) as again:
        assert "Session unchanged" in open_session(again)
        assert "OPS" in text_of(artifact(again, 1))
        assert js(again, "steps.length") == 4
