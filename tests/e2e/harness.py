"""What the Python suites stand on: a server to test, plain HTTP to it, and one line for each check.

Invariants: a server never outlives the block that started it; every wait has an end; only the standard library.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOKAMAK = os.environ.get("TOKAMAK", "target/debug/tokamak")
MODERN = "2026-07-28"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
BOTH = "application/json, text/event-stream"

# A suite that is told to stop unwinds, and so ends its servers.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Suite:
    """Counts checks and says how each went, in one line."""

    def __init__(self, name):
        self.name = name
        self.failed = 0

    @contextmanager
    def case(self, title):
        try:
            yield
        except Exception as problem:
            self.failed += 1
            print(f"FAIL {self.name}: {title}: {one_line(problem)}", flush=True)
        else:
            print(f"ok {self.name}: {title}", flush=True)

    @contextmanager
    def group(self, title):
        """Checks that stand or fall with what they share; says nothing when they could be made."""
        try:
            yield
        except Exception as problem:
            self.failed += 1
            print(f"FAIL {self.name}: {title}: not all was checked: {one_line(problem)}", flush=True)

    def end(self):
        sys.exit(1 if self.failed else 0)


def one_line(problem):
    while getattr(problem, "exceptions", None):  # a group of one task's errors
        problem = problem.exceptions[0]
    kind = "" if isinstance(problem, AssertionError) else f"{type(problem).__name__}: "
    return " ".join(f"{kind}{problem}".split())[:600]


class Server:
    """`tokamak serve` over HTTP on a free port, with its own data folder unless one is given."""

    def __init__(self, data=None, port=0, arguments=()):
        self.data = Path(data or tempfile.mkdtemp(prefix="data-"))
        self.port = port
        self.arguments = arguments
        self.process = None

    def __enter__(self):
        self.log = log = tempfile.mkstemp(prefix="server-", suffix=".log")[1]
        compiled_before(self.data)
        command = [TOKAMAK, "serve", "--port", str(self.port), "--data", str(self.data), *self.arguments]
        with open(log, "wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr)
        try:
            ready = self._first_line(log)
            assert ready.startswith("ready http://127.0.0.1:"), f"not the ready line: {ready}"
            self.url = ready.split()[1]
            self.port = int(self.url.rsplit(":", 1)[1])
            self.mcp = f"{self.url}/mcp"
            keep_compiled(self.data)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        self.kill()

    def _first_line(self, log):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            ended = self.process.poll()
            said = Path(log).read_text(errors="replace")
            assert ended is None, f"the server ended with {ended}: {said}"
            if said.startswith("ready ") and "\n" in said:
                return said.split("\n", 1)[0]
            if "\n" in said:  # it says why it will not start, and ends: what it said is whole then
                ended = self.process.wait(10)
                raise AssertionError(f"the server ended with {ended}: {Path(log).read_text(errors='replace')}")
            time.sleep(0.02)
        raise AssertionError("the server was not ready within 20 s")

    def kill(self):
        """As a crash: no goodbye."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, seconds):
        """As a supervisor: SIGTERM, and the exit code."""
        self.process.terminate()
        return self.process.wait(seconds)


def compiled_before(data):
    """Compiling the JavaScript engine takes seconds, and each new data folder would do it again."""
    kept, folder = Path(tempfile.gettempdir()) / "engines", data / "engines"
    if kept.exists() and not folder.exists():
        data.mkdir(parents=True, exist_ok=True)
        shutil.copytree(kept, folder)


def keep_compiled(data):
    kept, folder = Path(tempfile.gettempdir()) / "engines", data / "engines"
    if folder.exists() and not kept.exists():
        copy = Path(tempfile.mkdtemp(prefix="engines-")) / "engines"
        shutil.copytree(folder, copy)
        try:
            copy.rename(kept)
        except OSError:
            pass  # another one was faster


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def message(self):
        """The JSON-RPC answer, whether it came as JSON or as the last event of a stream."""
        text = self.body.decode()
        if "text/event-stream" in self.headers.get("content-type", ""):
            data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
            text = [d for d in data if d][-1]
        return json.loads(text)


def request(port, method="POST", path="/mcp", body=b"", headers=None, seconds=10):
    given = {"Content-Type": "application/json", "Accept": BOTH, **(headers or {})}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        body = body if isinstance(body, bytes) else body.encode()
        kept = {k: v for k, v in given.items() if v is not None}
        connection.request(method, path, body or None, kept)
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def modern(method, params, id=1):
    """A 2026-07-28 request: everything the server must know is in it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


def modern_headers(method, name=None):
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    return {**headers, "Mcp-Name": name} if name else headers


def modern_call(port, tool, arguments, seconds=20):
    """One tool call without a client library; the JSON-RPC message that answers it."""
    message = modern("tools/call", {"name": tool, "arguments": arguments})
    headers = modern_headers("tools/call", tool)
    return request(port, body=json.dumps(message), headers=headers, seconds=seconds).message()


class LegacySession:
    """A client of an older revision, by hand, so that it can come back with the session id it had."""

    def __init__(self, port, session=None, version="2025-06-18"):
        self.port = port
        self.version = version
        self.session = session
        self.last_id = 0

    def initialize(self):
        client = {"name": "e2e", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": client}
        answer = self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.session = answer.headers["mcp-session-id"]
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer.message()["result"]

    def call(self, tool, arguments):
        self.last_id += 1
        params = {"name": tool, "arguments": arguments}
        return self._post({"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params})

    def _post(self, message):
        headers = {"MCP-Protocol-Version": self.version}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if message["method"] == "initialize":
            headers = {}
        return request(self.port, body=json.dumps(message), headers=headers, seconds=20)


def text_of(message):
    """The text of a tool's result that is not an error."""
    result = message["result"]
    assert not result.get("isError"), f"isError: {result['content'][0]['text']}"
    return result["content"][0]["text"]


def refusal_of(message):
    """The text of a tool's result that is an error."""
    result = message.get("result")
    assert result, f"not a result: {message}"
    assert result.get("isError") is True, f"not an error: {result['content'][0]['text'][:200]}"
    return result["content"][0]["text"]
