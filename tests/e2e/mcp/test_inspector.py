"""The official inspector's command line: lists and calls the tools in both eras, over HTTP and over stdio.

Invariant: each call is a new connection, so a host that reconnects before every call sees the same.
"""

import json
import subprocess
import tempfile
from types import SimpleNamespace

import pytest

from lib.client import TOOL_NAMES
from lib.server import TOKAMAK, Server

pytestmark = pytest.mark.steps
PLACES = ["http modern", "stdio modern", "http legacy", "stdio legacy"]
PROGRAM = "Project[key]"
ROWS = r'\nkey\nAPI\nDOC\nMOB\nOPS\nSEC\nWEB"'
CONTEXT = {"intent": "inspector", "seeds": [{"api": "demo", "entity": "Project"}]}
# The inspector's exit code for a tool that answers isError.
TOOL_ERROR = 5


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: place.replace(" ", "-"))
def place(request):
    return request.param


@pytest.fixture(scope="module")
def address(place):
    """The inspector's arguments that name the server."""
    if place.startswith("http"):
        with Server() as server:
            yield ["--server-url", server.mcp, "--transport", "http"]
    else:
        data = tempfile.mkdtemp(prefix="data-")
        yield ["--transport", "stdio", TOKAMAK, "serve", "--stdio", "--data", data]


def inspect(era, *arguments):
    """One run: its exit code, its output, and its complaints without the lines of a stdio server."""
    command = ["inspector", "--cli", "--protocol-era", era, "--format", "json", *arguments]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    complaints = [line for line in ended.stderr.splitlines() if not line.startswith(("ready stdio", '{"timestamp"'))]
    return SimpleNamespace(code=ended.returncode, output=ended.stdout, complaints="\n".join(complaints))


def call(place, address, tool, arguments, era=None):
    tool_arguments = ["--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    return inspect(era or place.split()[1], "--method", "tools/call", *tool_arguments, *address)


def assert_answers(run, wanted):
    assert run.code == 0, f"{run.output} {run.complaints}"
    assert wanted in run.output, f"no {wanted} in {run.output}"


@pytest.fixture(scope="module")
def ref(place, address):
    """The session's slot. Over legacy HTTP a slot belongs to one transport session, so only the canonical id lasts.

    A modern connection shows that id, and the same intent finds the same session.
    """
    if place != "http legacy":
        return "s0"
    run = call(place, address, "plasm_context", CONTEXT, era="modern")
    return run.output.split('"logical_session_id":"')[1].split('"')[0]


def test_tools_list_has_no_portability_problem_under_strict(place, address):
    run = inspect(place.split()[1], "--method", "tools/list", "--strict", *address)
    assert run.code == 0 and not run.complaints, f"{run.output} {run.complaints}"
    # The name of a tool stands before its title, that of an argument does not.
    names = [part.rsplit('"name":"', 1)[1].strip('"') for part in run.output.split(',"title"')[:-1] if part.endswith('"')]
    assert names == TOOL_NAMES, names


def test_plasm_context_teaches(place, address):
    assert_answers(call(place, address, "plasm_context", CONTEXT), r"`s0`\n\n```\n")


def test_plasm_plans(place, address, ref):
    assert_answers(call(place, address, "plasm", {"logical_session_ref": ref, "program": PROGRAM}), '"text":"plan ok')


def test_plasm_run_runs(place, address, ref):
    assert_answers(call(place, address, "plasm_run", {"logical_session_ref": ref, "program": PROGRAM}), ROWS)


def test_read_artifact_reads(place, address, ref):
    assert_answers(call(place, address, "read_artifact", {"uri": f"plasm://session/{ref}/r/1"}), ROWS)


def test_an_unknown_slot_is_an_error_that_says_what_to_do(place, address):
    run = call(place, address, "plasm", {"logical_session_ref": "s9", "program": "Project"})
    assert run.code == TOOL_ERROR, f"exit {run.code}: {run.output}"
    assert "call plasm_context" in run.output.split("unknown_slot: ", 1)[1], run.output
