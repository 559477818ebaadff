"""`notifications/cancelled` ends a run; a connection that breaks does not."""

import json
import socket
import time

import pytest

from lib.client import modern, modern_headers, request
from lib.javascript import NamedConnection, value_of

pytestmark = pytest.mark.steps
NAME = "a client that cancels"
SPINS = "for (let end = Date.now() + 1500; Date.now() < end;) {} globalThis.n = 2"
WAITS = "await new Promise(done => setTimeout(done, 1500)); globalThis.n = 2"


def start_call(port, headers, message):
    """Sends a call and returns the connection, without reading the answer."""
    content = json.dumps(message).encode()
    sent_headers = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**sent_headers, "Content-Length": len(content)}.items())
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + content)
    return connection


def newest(agent):
    return value_of(agent.tool("list_executions"))["executions"][0]


def newest_until(agent, state, seconds=15, after=None):
    """Waits until the newest run is in this state, and is not the run `after`. A run is listed only when it is stored."""
    deadline = time.monotonic() + seconds
    while ((run := newest(agent))["status"] != state or run["execution_id"] == after) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert run["status"] == state and run["execution_id"] != after, run
    return run


@pytest.fixture(scope="module")
def agent(server):
    connection = NamedConnection(server.port, NAME)
    connection.initialize()
    value_of(connection.tool("run_js", code="globalThis.n = 1"))
    return connection


@pytest.fixture(scope="module")
def headers(agent):
    return {"MCP-Protocol-Version": agent.version, "Mcp-Session-Id": agent.session}


def entries_of(agent):
    return len(value_of(agent.tool("list_session_snapshots"))["entries"])


def call(code, id):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "run_js", "arguments": {"code": code}}}


def test_notifications_cancelled_ends_a_run_as_cancel_execution_does_and_leaves_the_session_as_it_was(server, agent, headers):
    for id, (code, after) in enumerate([(SPINS, 0.02), (SPINS, 0.5), (WAITS, 0.02), (WAITS, 0.5)], 100):
        before = newest(agent)["execution_id"]
        with start_call(server.port, headers, call(code, id)):
            time.sleep(after)
            stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}}
            assert request(server.port, body=json.dumps(stop), headers=headers).status == 202
            newest_until(agent, "cancelled", 2, after=before)
    time.sleep(2)
    assert entries_of(agent) == 1 and newest(agent)["status"] == "cancelled"


def test_a_connection_that_breaks_ends_no_run_in_either_era(server, agent, headers):
    with start_call(server.port, headers, call(SPINS, 200)):
        time.sleep(0.5)
    newest_until(agent, "completed")
    assert entries_of(agent) == 2
    message = modern("tools/call", {"name": "run_js", "arguments": {"code": WAITS}})
    with start_call(server.port, {**modern_headers("tools/call", "run_js"), "X-MCP-Session-Id": NAME}, message):
        time.sleep(0.5)
    assert newest(agent)["status"] == "running"
    newest_until(agent, "completed")
    assert entries_of(agent) == 3
