"""Requests as raw bytes, and the check that a server still works after an attack."""

import json
import socket

from lib.client import JSON_OR_EVENTS, modern, modern_call, modern_headers, request, text_of

SEEDS = [{"api": "demo", "entity": "Project"}]

CALL = modern("tools/call", {"name": "plasm", "arguments": {"logical_session_ref": "s0", "program": "HERE"}})
CALL_HEADERS = modern_headers("tools/call", "plasm")


def call_with(program_json):
    """The bytes of a call whose `program` is this JSON text, valid or not."""
    return json.dumps(CALL).encode().replace(b'"HERE"', program_json)


def open_session(server):
    text_of(modern_call(server.port, "plasm_context", {"intent": "hostile", "seeds": SEEDS}))


def assert_alive(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    health = request(server.port, "GET", "/healthz")
    assert (health.status, health.body) == (200, b'{"status":"ok"}'), f"/healthz: {health}"
    planned = text_of(modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": "Project[key]"}))
    assert planned.startswith("plan ok"), planned


def http_head(method, headers=None, body=None):
    lines = {"Host": "127.0.0.1", "Connection": "close", "Content-Type": "application/json", "Accept": JSON_OR_EVENTS}
    lines |= CALL_HEADERS | (headers or {})
    if body is not None:
        lines["Content-Length"] = str(len(body))
    text = [f"{method} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
    return "\r\n".join(text).encode()


def exchange(port, sent, seconds=10):
    """The server's answer to these bytes, even when the server stops reading them."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as peer:
        try:
            peer.sendall(sent)
        except (BrokenPipeError, ConnectionResetError):
            pass
        received = b""
        try:
            while part := peer.recv(65_536):
                received += part
        except ConnectionResetError:
            pass
        return received
