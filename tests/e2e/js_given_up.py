"""Calls of run_js that their client gives up, and calls whose client is only gone.

Invariants: only the standard library; `notifications/cancelled` ends a run, whatever it does; nothing else that a client leaves undone does.
"""

import json
import socket
import time

from harness import modern, modern_headers, request
from js_calls import Named, good

SPINS = "for (let end = Date.now() + 1500; Date.now() < end;) {} globalThis.n = 2"
WAITS = "await new Promise(done => setTimeout(done, 1500)); globalThis.n = 2"


def send(port, headers, message):
    """The connection on which the answer would come."""
    content = json.dumps(message).encode()
    given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**given, "Content-Length": len(content)}.items())
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + content)
    return connection


def newest(agent):
    return good(agent.tool("list_executions"))["executions"][0]


def newest_until(agent, state, seconds=15):
    deadline = time.monotonic() + seconds
    while (found := newest(agent))["status"] != state and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found["status"] == state, found
    return found


def given_up(suite, server):
    agent = Named(server.port, "who gives up")
    agent.initialize()
    headers = {"MCP-Protocol-Version": agent.version, "Mcp-Session-Id": agent.session}
    good(agent.tool("run_js", code="globalThis.n = 1"))

    def entries():
        return len(good(agent.tool("list_session_snapshots"))["entries"])

    def call(code, id):
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "run_js", "arguments": {"code": code}}}

    with suite.case("notifications/cancelled ends a run as cancel_execution does, and its session stays where it was"):
        for id, (code, after) in enumerate([(SPINS, 0.02), (SPINS, 0.5), (WAITS, 0.02), (WAITS, 0.5)], 100):
            before = newest(agent)["execution_id"]
            with send(server.port, headers, call(code, id)):
                time.sleep(after)
                stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}}
                assert request(server.port, body=json.dumps(stop), headers=headers).status == 202
                assert newest_until(agent, "cancelled", 2)["execution_id"] != before, f"{code} after {after} s"
        time.sleep(2)
        assert entries() == 1 and newest(agent)["status"] == "cancelled"
    with suite.case("a connection that breaks ends no run, in either era"):
        with send(server.port, headers, call(SPINS, 200)):
            time.sleep(0.5)
        newest_until(agent, "completed")
        assert entries() == 2
        message = modern("tools/call", {"name": "run_js", "arguments": {"code": WAITS}})
        with send(server.port, {**modern_headers("tools/call", "run_js"), "X-MCP-Session-Id": "who gives up"}, message):
            time.sleep(0.5)
        assert newest(agent)["status"] == "running"
        newest_until(agent, "completed")
        assert entries() == 3


def dropped(suite, agent):
    with suite.case("an answer says that its output is only the head, and that some was dropped"):
        short = good(agent.tool("run_js", code="console.log('x')"))
        assert not {"output_has_more", "output_next_byte_offset", "dropped_bytes"} & set(short), short
        long = good(agent.tool("run_js", code="for (let i = 0; i < 500; i++) console.log('0123456789')"))
        assert long["output_has_more"] is True and "dropped_bytes" not in long, long
        much = good(agent.tool("run_js", code="for (let i = 0; i < 2100; i++) console.log('x'.repeat(999))"))
        assert much["output_has_more"] is True and much["dropped_bytes"] > 1_000_000, much
        page = good(agent.tool("get_execution_output", execution_id=much["execution_id"]))
        assert page["dropped_bytes"] == much["dropped_bytes"], page
