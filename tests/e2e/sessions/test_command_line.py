"""Sessions from the command line, on the data folder of a running server."""

import json
import time

import pytest

from lib.answers import seeds
from lib.client import modern_call, text_of
from lib.server import run_binary

pytestmark = pytest.mark.steps
SEEDS = ("--seed", "demo:Project", "--seed", "demo:Ticket:*")


@pytest.fixture(scope="module")
def data(server):
    return server.data


def tokamak(data, *arguments, given=None, code=0):
    """The output of a command; its error output when it must end with another code than 0."""
    more = {"input": given} if given is not None else {}
    ended = run_binary(*arguments, "--data", data, seconds=120, **more)
    assert ended.returncode == code, f"{arguments[0]}: {ended.returncode}, not {code}: {ended.stdout}{ended.stderr}"
    return ended.stdout if code == 0 else ended.stderr


def test_context_plan_and_run_share_a_session_with_the_server(server, data):
    opened = json.loads(tokamak(data, "context", "by hand", *SEEDS, "--json"))
    assert opened["logical_session_ref"] == "s0" and opened["new_symbol_space"], opened
    assert "plan ok" in tokamak(data, "plan", "Project[key]")
    assert "6 rows" in tokamak(data, "run", "--session", "by hand", given="Project[key]")
    same = text_of(modern_call(server.port, "plasm_context", {"intent": "by hand", "seeds": seeds("Project")}))
    assert "Session unchanged" in same, same
    ran = text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": "s0", "program": "Project[key]"}))
    assert "6 rows" in ran, ran


def test_a_write_is_shown_first_and_runs_once_under_its_commit(data):
    write = 'Ticket.open(project="OPS", title="by hand")'
    refused = tokamak(data, "run", write, code=1)
    assert "review_needed" in refused and "pc0" in refused, refused
    first = json.loads(tokamak(data, "run", "--commit", "pc0", "--json"))
    repeated = json.loads(tokamak(data, "run", "--commit", "pc0", "--json"))
    assert first["plasm"]["replayed"] is False and repeated["plasm"]["replayed"] is True, repeated
    assert first["artifact"] == repeated["artifact"], repeated


def test_artifact_session_list_and_session_show(data):
    assert "OPS" in tokamak(data, "artifact", "plasm://session/s0/r/1")
    stored = json.loads(tokamak(data, "artifact", "plasm://session/s0/r/1", "--json"))
    assert len(stored["returns"][0]["rows"]) == 6, stored
    assert "Project[key]" in tokamak(data, "artifact", "plasm://session/s0/p/1")
    listed = json.loads(tokamak(data, "session", "list", "--json"))["sessions"]
    assert [s["intent"] for s in listed] == ["by hand"], listed
    time.sleep(1)  # The server writes its trace a moment after the call.
    shown = tokamak(data, "session", "show", "by hand")
    assert "plasm_run" in shown and "tokens" in shown and "demo:ticket_open done" in shown, shown


def test_exit_codes_1_2_and_3(data):
    assert "E0202" in tokamak(data, "run", "Nothing", code=2)
    tokamak(data, "run", "--session", "s7", "Project", code=3)
    tokamak(data, "artifact", "plasm://session/s0/r/99", code=3)
    tokamak(data, "context", "x", "--seed", "demo", code=2)
    tokamak(data, "context", "x", "--seed", "demo:Nothing", code=3)


def test_gc_dry_run_counts_and_removes_nothing_of_a_session_in_use(data):
    counted = json.loads(tokamak(data, "gc", "--dry-run", "--json"))
    assert counted["rows"] == {} and counted["blobs"] == 0 and counted["dry_run"], counted
    tokamak(data, "gc")
    assert "6 rows" in tokamak(data, "run", "Project[key]")


def test_a_removed_session_is_gone_for_the_server_too(server, data):
    tokamak(data, "session", "rm", "by hand")
    gone = modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": "Project"})
    assert gone["result"]["isError"] and "no_session" in gone["result"]["content"][0]["text"], gone
