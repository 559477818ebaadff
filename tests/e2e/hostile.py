"""What a careless or hostile peer may send over HTTP, and what the server must make of it; only the standard library.

Invariant: after every attack the health check answers and a normal call works. Processes and stdio are in
`hostile_process.py`.
"""

import json
import socket
import threading
import time

import hostile_process
from harness import (
    BOTH,
    LegacySession,
    Server,
    Suite,
    modern,
    modern_call,
    modern_headers,
    refusal_of,
    request,
    text_of,
)

suite = Suite("hostile")
SEEDS = [{"api": "demo", "entity": "Project"}]
# Longer than any honest client needs to send a request over loopback.
PATIENCE = 35

CALL = modern("tools/call", {"name": "plasm", "arguments": {"logical_session_ref": "s0", "program": "HERE"}})
CALL_HEADERS = modern_headers("tools/call", "plasm")


def call_with(program_json):
    """The bytes of a call whose `program` is this JSON text, valid or not."""
    return json.dumps(CALL).encode().replace(b'"HERE"', program_json)


MALFORMED = {
    "an empty body": b"",
    "half a JSON text": b'{"jsonrpc":"2.0","id":1,"met',
    "not JSON": b"hello",
    "a NUL byte": b"\0",
    "a number": b"42",
    "a message without a method": b'{"jsonrpc":"2.0","id":1}',
    "a message of another protocol version": b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
    "an empty batch": b"[]",
    "a method that is not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "a program that is not UTF-8": call_with(b'"\xff\xfe\xc3("'),
    "a raw NUL in a program": call_with(b'"e1\0"'),
    "half a surrogate pair": call_with(b'"\\ud800"'),
    "arguments nested 5,000 deep": call_with(b"[" * 5_000 + b"]" * 5_000),
    "arguments nested 100,000 deep": call_with(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
}

PROGRAMS = {
    "60,000 (": "(" * 60_000,
    "60,000 [": "[" * 60_000,
    "60,000 {": "{" * 60_000,
    "60,000 quotes": '"' * 60_000,
    "60,000 backslashes": "\\" * 60_000,
    "60,000 minus signs": "-" * 60_000,
    "60,000 newlines": "\n" * 60_000,
    "60,000 NULs": "\0" * 60_000,
    "16,000 gets in each other": "e1(" * 16_000 + '"x"' + ")" * 16_000,
    "9,000 filters in each other": "e1{p1=" * 9_000 + "1" + "}" * 9_000,
    "30,000 lists in each other": "e1([" + "[" * 30_000 + "]" * 30_000 + "])",
    "7,000 steps in a row": "e1" + ".limit(1)" * 7_000,
    "6,000 names": "\n".join(f"a{n}=e1" for n in range(6_000)) + "\na0",
    "15,000 returns": ", ".join(["e1"] * 15_000),
    "a name of 60,000 letters": "e" * 60_000,
    "a number of 60,000 digits": "e1.limit(" + "9" * 60_000 + ")",
    "30,000 combining characters": "e1" + "\u0301" * 30_000,
    "21,000 letters of three bytes": "\u3164" * 21_000,
    "text that runs right to left": '"\u202e' + "\u05d0" * 20_000 + '"',
}


def main():
    with suite.group("slow peers"), Server() as patient:
        slow = SlowPeers(patient.port)
        for attack in ATTACKS:
            with suite.group(attack.__name__), Server() as server:
                open_session(server)
                attack(server)
        hostile_process.main(suite)
        open_session(patient)
        slow.judge(patient)
    suite.end()


def open_session(server):
    text_of(modern_call(server.port, "plasm_context", {"intent": "hostile", "seeds": SEEDS}))


def alive(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    health = request(server.port, "GET", "/healthz")
    assert (health.status, health.body) == (200, b'{"status":"ok"}'), f"/healthz: {health}"
    planned = text_of(modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": "Project[key]"}))
    assert planned.startswith("plan ok"), planned


def says_why(answer):
    """A refusal has a code and words that a program can read: problem+json, or a JSON-RPC error."""
    try:
        body = json.loads(answer.body)
    except ValueError:
        return False
    return bool(body.get("code") and body.get("detail")) or bool(body.get("error", {}).get("message"))


# --- bodies and headers


def malformed_bodies(server):
    statuses, silent = {}, []
    for title, body in MALFORMED.items():
        with suite.case(f"{title} is refused"):
            answer = request(server.port, body=body, headers=CALL_HEADERS)
            statuses[title] = answer.status
            if not says_why(answer):
                silent.append(title)
            assert 400 <= answer.status < 500, f"{answer.status} {answer.body[:200]}"
            alive(server)
    with suite.case("what is not a JSON-RPC message is a bad request (400)"):
        others = {title: status for title, status in statuses.items() if status != 400}
        assert not others, f"{len(others)} of {len(statuses)}: {others}"
    with suite.case("every such refusal is JSON with a code"):
        assert not silent, f"{len(silent)} of {len(statuses)}: {silent}"


def wrong_requests(server):
    tools = json.dumps(modern("tools/list", {}))
    stream = {"Accept": "text/event-stream"}
    wrong = [
        ("a body that says it is text", {"body": tools, "headers": {"Content-Type": "text/plain"}}, {415}),
        ("a body that says nothing", {"body": tools, "headers": {"Content-Type": None}}, {415}),
        ("a client that accepts only HTML", {"body": tools, "headers": {"Accept": "text/html"}}, {406}),
        ("a GET without a session", {"method": "GET", "headers": stream}, {400, 405}),
        ("a DELETE without a session", {"method": "DELETE"}, {400, 405}),
        ("a GET with a session nobody has", {"method": "GET", "headers": {**stream, "Mcp-Session-Id": "x"}}, {404}),
        (
            "a session id of 9,999 letters",
            {"method": "GET", "headers": {**stream, "Mcp-Session-Id": "x" * 9_999}},
            {404},
        ),
        ("a session id that is a path", {"method": "GET", "headers": {**stream, "Mcp-Session-Id": "../../etc"}}, {404}),
        ("an unknown method of HTTP", {"method": "BREW"}, {405}),
        ("a revision nobody knows", {"body": tools, "headers": {"MCP-Protocol-Version": "2999-01-01"}}, {400}),
        ("an unknown path", {"method": "GET", "path": "/nowhere"}, {404}),
        ("a path that climbs", {"method": "GET", "path": "/mcp/../../etc/passwd"}, {404}),
        ("a path with a NUL", {"method": "GET", "path": "/%00"}, {404}),
        ("a POST to the health check", {"path": "/healthz"}, {405}),
    ]
    silent = []
    for title, sent, statuses in wrong:
        with suite.case(f"{title} is refused"):
            answer = request(server.port, **sent)
            if not says_why(answer):
                silent.append(title)
            assert answer.status in statuses, f"{answer.status} {answer.body[:200]}"
            alive(server)
    with suite.case("every such refusal is JSON with a code too"):
        assert not silent, f"{len(silent)} of {len(wrong)}: {silent}"


def forms_of_an_answer(server):
    """In 2026-07-28: one JSON body of a known length, or events where signs of life were asked for."""
    headers = modern_headers("tools/call", "list_registry")
    with suite.case("an answer is one JSON body with its length"):
        message = modern("tools/call", {"name": "list_registry", "arguments": {}})
        answer = request(server.port, body=json.dumps(message), headers=headers)
        assert answer.status == 200 and answer.headers["content-type"] == "application/json", answer.headers
        assert int(answer.headers["content-length"]) == len(answer.body), answer.headers
        assert json.loads(answer.body)["id"] == 1
    with suite.case("an answer with progress before it is a stream of events"):
        message["params"]["_meta"]["progressToken"] = 7
        answer = request(server.port, body=json.dumps(message), headers=headers)
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.headers
        assert b"notifications/progress" in answer.body and answer.message()["id"] == 1, answer.body[:300]
    with suite.case("a method that is none of the endpoint's is refused with those that are (405)"):
        answer = request(server.port, "PATCH", body=b"{}")
        assert answer.status == 405 and "POST" in answer.headers.get("allow", ""), (answer.status, answer.headers)


def large_requests(server):
    with suite.case("a program of 10 MB is refused (413)"):
        body = call_with(b'"' + b"x" * 10_000_000 + b'"')
        answer = exchange(server.port, head("POST", body=body) + body)
        assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
        alive(server)
    with suite.case("a body without a length that never ends is refused (413)"):
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        answer = exchange(server.port, head("POST", {"Transfer-Encoding": "chunked"}) + chunk * 64)
        assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
        alive(server)
    with suite.case("a program of 64 KiB and one byte is refused with E0111"):
        told = refusal_of(modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": "x" * 65_537}))
        assert "E0111" in told and "65536" in told, told
        alive(server)
    with suite.case("a program of exactly 64 KiB is read"):
        program = "Project[key]" + " " * (65_536 - 12)
        text_of(modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": program}))
    with suite.case("an intent of 100,000 letters is refused"):
        told = refusal_of(modern_call(server.port, "plasm_context", {"intent": "x" * 100_000, "seeds": SEEDS}))
        assert told.startswith("bad_intent: "), told[:200]
        alive(server)
    with suite.case("10,000 seeds are refused"):
        told = refusal_of(modern_call(server.port, "plasm_context", {"intent": "x", "seeds": SEEDS * 10_000}))
        assert told.startswith("bad_seeds: "), told[:200]
        alive(server)
    with suite.case("a header of 1 MB is refused (431)"):
        answer = exchange(server.port, head("GET", {"X-Large": "a" * 1_000_000}))
        assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")), answer[:200]
        alive(server)
    with suite.case("1,000 headers are refused (431)"):
        answer = exchange(server.port, head("GET", {f"X-{n}": "a" for n in range(1_000)}))
        assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")), answer[:200]
        alive(server)


def strange_programs(server):
    for title, program in PROGRAMS.items():
        for tool in ("plasm", "plasm_run"):
            if server.process.poll() is not None:
                server.__enter__()  # one crash is one failure
            with suite.case(f"{tool} answers {title} within 10 s and 40,000 characters"):
                assert len(program.encode()) <= 65_536, "the case is wrong: the program is too long"
                message = modern_call(server.port, tool, {"logical_session_ref": "s0", "program": program}, seconds=10)
                told = message["result"]["content"][0]["text"]
                if message["result"].get("isError"):
                    assert told.startswith(("bad_program: ", "review_needed: ")), told[:200]
                alive(server)
                assert len(told) <= 40_000, f"an answer of {len(told):,} characters"


def strangers(server):
    page = {"Origin": "https://evil.example"}
    for path, method in (("/mcp", "POST"), ("/healthz", "GET"), ("/nowhere", "GET")):
        with suite.case(f"{path} refuses another name in Host (403)"):
            answer = request(server.port, method, path, headers={"Host": "evil.example"})
            assert (answer.status, json.loads(answer.body)["code"]) == (403, "host_refused"), answer
        with suite.case(f"{path} refuses the page of another site (403)"):
            answer = request(server.port, method, path, headers=page)
            assert (answer.status, json.loads(answer.body)["code"]) == (403, "origin_refused"), answer
    names = {"no name": b"", "our name inside another": b"127.0.0.1.evil.example", "a user": b"127.0.0.1@evil.example"}
    for title, name in names.items():
        with suite.case(f"{title} in Host is refused (403 or 400)"):
            answer = exchange(server.port, b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: " + name + b"\r\n\r\n")
            assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400")), answer[:200]
    with suite.case("a page without an origin (null) is refused (403)"):
        assert request(server.port, "GET", "/healthz", headers={"Origin": "null"}).status == 403
    with suite.case("a page of this server on another port is refused (403)"):
        other = {"Origin": f"http://127.0.0.1:{server.port + 1}"}
        assert request(server.port, "GET", "/healthz", headers=other).status == 403
    with suite.case("a page of this server itself is served"):
        own = {"Origin": f"http://127.0.0.1:{server.port}"}
        assert request(server.port, "GET", "/healthz", headers=own).status == 200
    with suite.case("localhost is a name of this server"):
        assert request(server.port, "GET", "/healthz", headers={"Host": f"localhost:{server.port}"}).status == 200
        alive(server)


# --- connections


def head(method, headers=None, body=None):
    lines = {"Host": "127.0.0.1", "Connection": "close", "Content-Type": "application/json", "Accept": BOTH}
    lines |= CALL_HEADERS | (headers or {})
    if body is not None:
        lines["Content-Length"] = str(len(body))
    said = [f"{method} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
    return "\r\n".join(said).encode()


def exchange(port, sent, seconds=10):
    """All that comes back for these bytes, even when the server stops reading them."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as peer:
        try:
            peer.sendall(sent)
        except (BrokenPipeError, ConnectionResetError):
            pass
        found = b""
        try:
            while part := peer.recv(65_536):
                found += part
        except ConnectionResetError:
            pass
        return found


def broken_connections(server):
    broken = {
        "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
        "a negative length": head("POST", {"Content-Length": "-1"}),
        "a length that is no number": head("POST", {"Content-Length": "many"}),
        "two lengths": head("POST", {"Content-Length": "5", "content-length": "7"}) + b"{}{}{}{}",
        "a chunk size that is no number": head("POST", {"Transfer-Encoding": "chunked"}) + b"xyz\r\n{}\r\n0\r\n\r\n",
    }
    for title, sent in broken.items():
        with suite.case(f"{title} is refused"):
            answer = exchange(server.port, sent)
            assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer[:200]
            alive(server)
    with suite.case("200 connections opened and closed"):
        for _ in range(200):
            socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
        alive(server)
    with suite.case("200 connections that say half a request do not keep others out"):
        held = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(200)]
        for peer in held:
            peer.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        alive(server)
        for peer in held:
            peer.close()
        alive(server)
    with suite.case("50 clients that leave before the answer"):
        body = json.dumps(CALL).replace("HERE", "Project[key]").encode()
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as peer:
                peer.sendall(head("POST", body=body) + body)
        alive(server)
    with suite.case("100 older clients that say hello and leave without a goodbye"):
        for _ in range(100):
            LegacySession(server.port).initialize()
        alive(server)


class SlowPeers:
    """Peers that begin and do not go on; they wait while the other checks run."""

    def __init__(self, port):
        self.port = port
        self.ended = {}
        self.started = time.monotonic()
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        kinds = {
            "half a header": (head("POST", body=body)[:40], 0),
            "half a body": (head("POST", body=body) + body[:10], 0),
            "a header at one byte a second": (head("GET"), 1),
        }
        self.threads = {}
        for kind, (sent, pause) in kinds.items():
            self.threads[kind] = threading.Thread(target=self._wait, args=(kind, sent, pause), daemon=True)
            self.threads[kind].start()

    def _wait(self, kind, sent, pause):
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE + 5) as peer:
            try:
                if pause:
                    peer.settimeout(pause)
                    self._drip(peer, sent)
                else:
                    peer.sendall(sent)
                    while peer.recv(1000):
                        pass
            except TimeoutError:
                return
            except OSError:
                pass  # a reset ends it too
            self.ended[kind] = time.monotonic() - self.started

    def _drip(self, peer, sent):
        for byte in sent[:PATIENCE]:
            peer.sendall(bytes([byte]))
            try:
                if peer.recv(1000) == b"":
                    return
            except TimeoutError:
                continue
        raise TimeoutError

    def judge(self, server):
        for kind, thread in self.threads.items():
            thread.join(max(0, PATIENCE - (time.monotonic() - self.started)))
            with suite.case(f"a peer that sends {kind} is cut off within {PATIENCE} s"):
                assert kind in self.ended, "it still holds its connection"
                assert self.ended[kind] <= PATIENCE, f"after {self.ended[kind]:.0f} s"
        with suite.case("and the server lives"):
            alive(server)


ATTACKS = [
    malformed_bodies,
    wrong_requests,
    forms_of_an_answer,
    large_requests,
    strange_programs,
    strangers,
    broken_connections,
]

if __name__ == "__main__":
    main()
