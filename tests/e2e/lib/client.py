"""Plain HTTP and MCP without a client library, for what no honest client would send and for exact control of connections.

Invariant: every request has a timeout; only the standard library is used.
"""

import http.client
import json
from dataclasses import dataclass
from pathlib import Path

GOLDEN_TOOLS = Path(__file__).parents[2] / "wire" / "tools.case"
MODERN = "2026-07-28"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
JSON_OR_EVENTS = "application/json, text/event-stream"
# The names of all tools, in order: the first case of the golden file, so that the list is kept in one place.
TOOL_NAMES = GOLDEN_TOOLS.read_text().split("---\n", 1)[1].split("===", 1)[0].split()


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


def request(port, method="POST", path="/mcp", body=b"", headers=None, seconds=30):
    """One request on a connection of its own. A header whose value is None is not sent."""
    wanted = {"Content-Type": "application/json", "Accept": JSON_OR_EVENTS, **(headers or {})}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        body = body if isinstance(body, bytes) else body.encode()
        sent = {name: value for name, value in wanted.items() if value is not None}
        connection.request(method, path, body or None, sent)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def modern(method, params, id=1):
    """A request of 2026-07-28, which carries everything that the server must know of its client."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


def modern_headers(method, name=None):
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    return {**headers, "Mcp-Name": name} if name else headers


def modern_call(port, tool, arguments, seconds=30):
    """Calls a tool and returns the JSON-RPC message that answers the call."""
    message = modern("tools/call", {"name": tool, "arguments": arguments})
    headers = modern_headers("tools/call", tool)
    return request(port, body=json.dumps(message), headers=headers, seconds=seconds).message()


class LegacySession:
    """A client of an older revision that can come back with the session id of an earlier connection."""

    def __init__(self, port, session=None, version="2025-06-18"):
        self.port = port
        self.version = version
        # The transport session that the server gave out, or one of an earlier connection.
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
        return request(self.port, body=json.dumps(message), headers=headers)


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
