"""`plasm.plan()`: code plans a program, and someone outside commits it."""

import json

import pytest

from lib.answers import seeds, with_every_capability
from lib.javascript import ModernConnection, open_session, value_of

pytestmark = pytest.mark.steps
WRITE = """Ticket.open(project="OPS", title="planned by code")"""


@pytest.fixture(scope="module")
def agent(server):
    return ModernConnection(server.port)


@pytest.fixture(scope="module")
def ref(agent):
    return open_session(agent, "plan in JavaScript", with_every_capability(seeds("Project", "Ticket")))


@pytest.fixture(scope="module")
def run(agent, ref):
    return lambda code, **more: agent.tool("run_js", code=code, logical_session_ref=ref, **more)


@pytest.fixture(scope="module")
def count_tickets(run):
    def count_tickets(title):
        program = f'Ticket{{project="OPS"}}.filter{{title="{title}"}}[number]'
        return value_of(run(f"(await plasm('{program}')).rows.length"))["result"]

    return count_tickets


def test_a_planned_read_has_a_plan_and_a_verdict_and_reads_nothing(run, flow):
    flow.plan = value_of(run("await plasm.plan('Project[key, name]')"))["result"]
    assert set(flow.plan) >= {"plan", "verdict"} and flow.plan["plan"], flow.plan


def test_a_planned_write_has_a_commit_for_a_caller_outside_and_nothing_happens(run, count_tickets, flow):
    planning = value_of(run(f"globalThis.planned = await plasm.plan('{WRITE}'); planned"))
    flow.plan = planning["result"]
    assert planning["status"] == "completed" and flow.plan["plan_commit_ref"].startswith("pc") and flow.plan["verdict"], flow.plan
    assert count_tickets("planned by code") == 0


def test_the_commit_of_a_planned_write_runs_once_from_outside(agent, ref, run, count_tickets, flow):
    for _ in range(2):
        text, error = agent.tool("plasm_run", logical_session_ref=ref, plan_commit_ref=flow.plan["plan_commit_ref"])
        assert not error, text
    assert count_tickets("planned by code") == 1
    assert value_of(run("planned.plan_commit_ref"))["result"] == flow.plan["plan_commit_ref"], "the plan is in the heap"


def test_a_plan_of_a_wrong_program_is_an_error_of_the_code_that_says_what_is_wrong(run):
    for program in ("Nothing[here]", "Ticket.open(", "", "Ticket.open(nope=1)"):
        planning = value_of(run(f"let wrong; try {{ wrong = await plasm.plan({json.dumps(program)}) }} catch (e) {{ wrong = [e.name, e.message] }} wrong"))
        assert isinstance(planning["result"], list) and all(planning["result"]), (program, planning)


def test_plasm_and_plasm_plan_exist_in_logical_sessions_only(agent):
    assert value_of(agent.tool("run_js", code="typeof plasm"))["result"] == "undefined"
