"""Connections that run JavaScript, over HTTP and stdio, and readers of the answers.

Invariants: only the standard library is used; a process that is started here is ended here.
"""

import json
import re
import subprocess
import threading
import time

from lib.answers import seeds as seeds_of
from lib.client import LegacySession, modern, modern_headers, request
from lib.server import TOKAMAK, copy_compiled_engine

KEY = re.compile(r"^[0-9a-f]{64}$")
MOMENT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
# A well-formed heap key that no heap has.
UNKNOWN_HEAP = "0" * 64
FINAL = ("completed", "failed", "cancelled", "timed_out")
# The end of a text that is too long for a model; the JSON of the same answer is complete.
CUT = "(cut at 40000 characters; ask for less at once)"
NO_SESSION_NAME = {"entries": [{"error": "no session ID available (send X-MCP-Session-Id header)"}]}


class NamedConnection(LegacySession):
    """A connection of an older revision that names its session on `initialize`, and never again."""

    def __init__(self, port, name=None, session=None, more_headers=None, version="2025-06-18"):
        super().__init__(port, session, version)
        self.name, self.more_headers = name, more_headers or {}

    def _post(self, message):
        if message["method"] != "initialize":
            return super()._post(message)
        headers = {**({"X-MCP-Session-Id": self.name} if self.name else {}), **self.more_headers}
        return request(self.port, body=json.dumps(message), headers=headers)

    def tool(self, tool, **arguments):
        return value_and_error(self.call(tool, arguments).message())


class ModernConnection:
    """A client of 2026-07-28, where each request carries the session name, because there is no `initialize`."""

    def __init__(self, port, name=None, more_headers=None):
        self.port = port
        self.headers = {**({"X-MCP-Session-Id": name} if name else {}), **(more_headers or {})}

    def tool(self, tool, **arguments):
        message = modern("tools/call", {"name": tool, "arguments": arguments})
        headers = {**modern_headers("tools/call", tool), **self.headers}
        seconds = 30 + arguments.get("wait_ms", 0) / 1000
        return value_and_error(request(self.port, body=json.dumps(message), headers=headers, seconds=seconds).message())


class StdioConnection:
    """A server of its own over standard input and output, whose session is named by an argument."""

    def __init__(self, data, name=None, arguments=()):
        copy_compiled_engine(data)
        session_name = ("--session-id", name) if name else ()
        command = [TOKAMAK, "serve", "--stdio", "--data", str(data), *session_name, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        # Ends a server that does not answer, because reading its output has no timeout.
        self.timer = threading.Timer(180, self.process.kill)
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
            self.process.wait(30)
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
        return value_and_error(self.ask("tools/call", {"name": tool, "arguments": arguments}))


def value_and_error(message):
    """The JSON of a tool's answer (or its text where there is no JSON), and whether it is an error."""
    result = message["result"]
    structured = result.get("structuredContent")
    text = result["content"][0]["text"]
    if structured is not None:
        assert text.endswith(CUT) or json.loads(text) == structured, f"text and JSON differ: {text}"
        return structured, bool(result.get("isError"))
    return text, bool(result.get("isError"))


def value_of(answer):
    """The value of a tool's answer that is not an error."""
    value, error = answer
    assert not error, f"isError: {value}"
    return value


def error_of(answer):
    """The value of a tool's answer that is an error."""
    value, error = answer
    assert error, f"not an error: {value}"
    return value


def wait_for_end(connection, execution, states=FINAL, seconds=60):
    """Waits until a run is in one of these states and returns what `get_execution` says then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        run = value_of(connection.tool("get_execution", execution_id=execution))
        if run["status"] in states:
            return run
        time.sleep(0.02)
    raise AssertionError(f"still {run['status']} after {seconds} s")


def open_session(connection, intent, seeds=None):
    """Opens a logical session and returns its slot, such as `s0`."""
    text = value_of(connection.tool("plasm_context", intent=intent, seeds=seeds or seeds_of("Project")))
    return re.search(r"`(s\d+)`", text).group(1)
