"""JavaScript over HTTP: routes, names in headers, and callers that disconnect."""

import json
import socket
import time

import pytest

from lib.client import LEGACY, modern, modern_headers, request
from lib.javascript import UNKNOWN_HEAP, NamedConnection, value_and_error, value_of
from lib.server import Server


@pytest.fixture
def api(server):
    def api(method, path, value=None, headers=None):
        answer = request(server.port, method, path, json.dumps(value) if value is not None else b"", headers)
        return answer.status, json.loads(answer.body)

    return api


def test_runs_output_cancellation_sessions_heaps_and_problems_over_http(api):
    status, run = api("POST", "/api/exec", {"code": "console.log('x'); globalThis.q = 1"}, {"X-MCP-Session-Id": "by http"})
    assert status == 200 and run["status"] == "completed", run
    id, heap = run["execution_id"], run["heap"]
    assert api("GET", f"/api/executions/{id}")[1]["heap"] == heap
    assert api("GET", f"/api/executions/{id}?wait_ms=5000")[1]["heap"] == heap
    assert api("GET", f"/api/executions/{id}?wait_ms=soon")[0] == 400
    assert api("GET", f"/api/executions/{id}/output?line_offset=0")[1]["data"] == "x\n"
    assert api("GET", "/api/executions?limit=1")[1]["executions"][0]["execution_id"] == id
    assert "by http" in api("GET", "/api/sessions")[1]["sessions"]
    assert len(api("GET", "/api/sessions/by%20http/snapshots?fields=index")[1]["entries"]) == 1
    assert api("POST", f"/api/heaps/{heap}/tags", {"tags": {"a": "b"}})[1] == {"ok": True}
    assert api("GET", f"/api/heaps/{heap}")[1]["tags"] == {"a": "b"}
    status, run = api("POST", "/api/exec", {"code": "for (;;) {}", "wait_ms": 0})
    assert status == 202, run
    assert api("POST", f"/api/executions/{run['execution_id']}/cancel")[1] == {"ok": True}
    status, problem = api("POST", f"/api/executions/{run['execution_id']}/cancel")
    assert status == 409 and problem["code"] == "ended", problem
    for path, status, code in [("/api/executions/x", 404, "no_execution"), (f"/api/heaps/{UNKNOWN_HEAP}", 404, "no_heap"), ("/api/heaps/zz", 400, "bad_heap")]:
        refusal = api("GET", path)
        assert refusal[0] == status and refusal[1]["code"] == code, refusal


UNUSABLE_NAMES = {"not ASCII": "caf\u00e9", "empty": "", "too long": "n" * 257}


def test_an_unusable_session_name_is_refused_with_the_header_named(server):
    # Otherwise a run would go unlogged and its caller would not learn of that.
    for title, name in UNUSABLE_NAMES.items():
        header = {"X-MCP-Session-Id": name.encode("latin-1")}
        status, problem = post(server, "/api/exec", {"code": "1"}, header)
        assert (status, problem["code"]) == (400, "bad_session_name") and "X-MCP-Session-Id" in problem["detail"], (title, problem)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
        status, refusal = post(server, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}, header)
        assert status == 400 and "X-MCP-Session-Id" in refusal["error"]["message"], (title, refusal)
        message = modern("tools/call", {"name": "run_js", "arguments": {"code": "1"}})
        status, refusal = post(server, "/mcp", message, {**modern_headers("tools/call", "run_js"), **header})
        assert status == 400 and "X-MCP-Session-Id" in refusal["error"]["message"], (title, refusal)


def test_a_session_name_is_read_however_many_headers_there_are(server):
    many = {f"X-MCP-More-{n}": "x" for n in range(60)}
    status, run = post(server, "/api/exec", {"code": "Object.keys(mcp.headers).length"}, {**many, "X-MCP-Session-Id": "among many"})
    assert status == 200 and run["result"] == 32, run
    assert "among many" in json.loads(request(server.port, "GET", "/api/sessions", b"").body)["sessions"]


def post(server, path, value, headers):
    answer = request(server.port, "POST", path, json.dumps(value), headers)
    return answer.status, json.loads(answer.body)


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_connection_has_the_name_of_initialize_and_later_headers_name_nothing(server, version):
    agent = NamedConnection(server.port, f"named once {version}", version=version)
    agent.initialize()
    value_of(agent.tool("run_js", code="1"))
    message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "run_js", "arguments": {"code": "2"}}}
    headers = {"MCP-Protocol-Version": agent.version, "Mcp-Session-Id": agent.session, "X-MCP-Session-Id": "another name"}
    value_of(value_and_error(request(server.port, body=json.dumps(message), headers=headers, seconds=20).message()))
    assert [e["code"] for e in value_of(agent.tool("list_session_snapshots"))["entries"]] == ["1", "2"]
    assert "another name" not in value_of(agent.tool("list_sessions"))["sessions"]


def test_a_run_goes_on_when_its_caller_disconnects_while_it_is_accepted():
    with Server() as server:
        for number in range(40):
            content = json.dumps({"code": f"{number}", "wait_ms": 50}).encode()
            name = "X-MCP-Session-Id: disconnects\r\n" if number % 2 else ""
            head = f"POST /api/exec HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{name}Content-Length: {len(content)}\r\n\r\n"
            with socket.create_connection(("127.0.0.1", server.port)) as caller:
                caller.sendall(head.encode() + content)
                time.sleep(number / 10_000)

        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            listed = json.loads(request(server.port, "GET", "/api/executions?limit=100", b"").body)["executions"]
            if listed and all(run["status"] == "completed" for run in listed):
                break
            time.sleep(0.05)
        assert listed and all(run["status"] == "completed" for run in listed), listed
        # This line of the log would mean that only recovery found the run, seconds later.
        assert "took over" not in server.log_text()
