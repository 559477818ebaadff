"""What the JavaScript suites share: a connection with a name, over HTTP and stdio, and how answers are read.

Invariants: only the standard library; a process that is started here is ended here.
"""

import json
import re
import subprocess
import threading
import time

from harness import TOKAMAK, LegacySession, modern, modern_headers, request

KEY = re.compile(r"^[0-9a-f]{64}$")
MOMENT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
NOWHERE = "0" * 64
FINAL = ("completed", "failed", "cancelled", "timed_out")
# A text that is too long for a model; the JSON beside it is whole.
CUT = "(cut at 40000 characters; ask for less at once)"
NO_NAME = {"entries": [{"error": "no session ID available (send X-MCP-Session-Id header)"}]}


class Named(LegacySession):
    """A connection of an older revision that names its session on `initialize`, and never again."""

    def __init__(self, port, name=None, session=None, more=None, version="2025-06-18"):
        super().__init__(port, session, version)
        self.name, self.more = name, more or {}

    def _post(self, message):
        if message["method"] != "initialize":
            return super()._post(message)
        headers = {**({"X-MCP-Session-Id": self.name} if self.name else {}), **self.more}
        return request(self.port, body=json.dumps(message), headers=headers, seconds=20)

    def tool(self, tool, **arguments):
        return body(self.call(tool, arguments).message())


class Modern:
    """The same in 2026-07-28, where no connection is begun: each request says who it is."""

    def __init__(self, port, name=None, more=None):
        self.port = port
        self.headers = {**({"X-MCP-Session-Id": name} if name else {}), **(more or {})}

    def tool(self, tool, **arguments):
        message = modern("tools/call", {"name": tool, "arguments": arguments})
        headers = {**modern_headers("tools/call", tool), **self.headers}
        return body(request(self.port, body=json.dumps(message), headers=headers, seconds=20).message())


def body(message):
    """The JSON of a tool's answer, and whether it is an error; as text it is the same."""
    result = message["result"]
    structured = result.get("structuredContent")
    text = result["content"][0]["text"]
    if structured is not None:
        assert text.endswith(CUT) or json.loads(text) == structured, f"text and JSON differ: {text}"
        return structured, bool(result.get("isError"))
    return text, bool(result.get("isError"))


def good(answer):
    value, error = answer
    assert not error, f"isError: {value}"
    return value


def bad(answer):
    value, error = answer
    assert error, f"not an error: {value}"
    return value


def until(connection, execution, states=FINAL, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = good(connection.tool("get_execution", execution_id=execution))
        if found["status"] in states:
            return found
        time.sleep(0.02)
    raise AssertionError(f"still {found['status']} after {seconds} s")


class Stdio:
    """A server of its own over standard input and output, named by argument."""

    def __init__(self, data, name=None, arguments=()):
        named = ("--session-id", name) if name else ()
        command = [TOKAMAK, "serve", "--stdio", "--data", str(data), *named, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.timer = threading.Timer(60, self.process.kill)
        self.last_id = 0

    def __enter__(self):
        self.timer.start()
        client = {"name": "e2e", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.stdin.close()
        try:
            self.process.wait(15)
        finally:
            self.process.kill()

    def _write(self, message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last_id += 1
        self._write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.last_id:
                return message

    def tool(self, tool, **arguments):
        return body(self.ask("tools/call", {"name": tool, "arguments": arguments}))
