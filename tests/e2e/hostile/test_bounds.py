"""Clients that hold what they do not use: transport sessions, connections, answers that they do not read.

The server counts: how much memory it needs, how many connections stay open, who is answered. No test measures a time.
"""

import http.client
import json
import os
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from lib.client import LegacySession, modern_call, request, text_of
from lib.hostile import SEEDS
from lib.server import Server, assert_did_not_panic, run_binary, settings

INITIALIZES = 4_000
# One session took 150 KB before idle ones were rows.
MEGABYTES_FOR_THEM = 50
SMALL = """
[connections]
places = 40
reserved = 8
per_address = 1000
"""


def resident_megabytes(server):
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def open_connections(server):
    """The established connections of a server's process, as the system counts them."""
    inodes = set()
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            link = os.readlink(descriptor)
        except OSError:
            continue
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    port = f":{server.port:04X}"
    return sum(1 for line in (l.split() for l in lines) if line[1].endswith(port) and line[3] == "01" and line[9] in inodes)


def eventually(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


# --- transport sessions


def initialize_many(server, count):
    """Opens transport sessions over one connection, and returns the ids of the first and the last."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    ids = []
    for _ in range(count):
        connection.request("POST", "/mcp", message, headers)
        answer = connection.getresponse()
        answer.read()
        ids.append(answer.headers["mcp-session-id"])
    connection.close()
    return ids[0], ids[-1]


def test_idle_transport_sessions_take_no_memory_and_each_comes_back():
    with Server() as server:
        initialize_many(server, 200)
        before = resident_megabytes(server)
        first, last = initialize_many(server, INITIALIZES)
        after = resident_megabytes(server)
        assert after - before < MEGABYTES_FOR_THEM, f"{INITIALIZES} sessions took {after - before:.0f} MB"
        for id in (first, last):
            back = LegacySession(server.port, session=id)
            assert text_of(back.call("plasm_context", {"intent": "back", "seeds": SEEDS}).message())
        assert_did_not_panic(server)


def test_a_stream_of_a_session_that_left_the_memory_is_opened_again():
    with Server(arguments=settings("[connections]\ntransport_sessions = 1\n")) as server:
        first, _ = initialize_many(server, 5)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as peer:
            peer.sendall(
                f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {first}\r\n"
                "MCP-Protocol-Version: 2025-06-18\r\n\r\n".encode()
            )
            assert peer.recv(4096).startswith(b"HTTP/1.1 200"), "the stream of a session that is only stored"
            # The session stays as long as its stream is open, whatever others do.
            initialize_many(server, 5)
            back = LegacySession(server.port, session=first)
            text_of(back.call("plasm_context", {"intent": "streamed", "seeds": SEEDS}).message())
            peer.settimeout(0.2)
            with pytest.raises(TimeoutError):
                while peer.recv(4096):
                    pass
        assert_did_not_panic(server)


def test_a_session_that_its_client_ended_does_not_come_back():
    with Server(arguments=settings("[connections]\ntransport_sessions = 1\n")) as server:
        session = LegacySession(server.port)
        session.initialize()
        initialize_many(server, 3)
        headers = {"Mcp-Session-Id": session.session, "MCP-Protocol-Version": "2025-06-18"}
        assert request(server.port, "DELETE", headers=headers).status == 200
        assert session.call("list_registry", {}).status == 404


def test_two_requests_with_one_id_are_one_request_and_one_refusal():
    with Server() as server:
        session = LegacySession(server.port)
        session.initialize()
        slow = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "run_js", "arguments": {
            "code": "await new Promise(done => setTimeout(done, 2000)); 1"}}}
        answers = []
        sending = threading.Thread(target=lambda: answers.append(session._post(slow)))
        sending.start()
        eventually(lambda: b'"running"' in request(server.port, "GET", "/api/executions").body)
        refused = session._post({**slow, "params": {"name": "list_registry", "arguments": {}}})
        assert (refused.status, refused.message()["id"]) == (400, 5), refused
        assert "under way" in refused.message()["error"]["message"]
        sending.join(30)
        assert '"completed"' in text_of(answers[0].message())
        # The id is free when its request was answered.
        assert text_of(session._post({**slow, "params": {"name": "list_registry", "arguments": {}}}).message())


# --- connections


class KeptConnection:
    """A connection that a client keeps after a request."""

    def __init__(self, port, path="/healthz"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        self.answer = self.socket.recv(65_536)

    def is_open(self):
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False


def test_idle_connections_lock_nobody_out():
    with Server(arguments=settings(SMALL)) as server:
        kept = [KeptConnection(server.port) for _ in range(200)]
        assert all(one.answer.startswith(b"HTTP/1.1 200") for one in kept), "each of them was answered"
        assert all(b"keep-alive: timeout=75" in one.answer for one in kept)
        eventually(lambda: open_connections(server) <= 21)
        still = [one.is_open() for one in kept]
        assert any(still) and still == sorted(still), "the oldest were closed"
        assert text_of(modern_call(server.port, "plasm_context", {"intent": "served", "seeds": SEEDS}))


def test_an_idle_connection_is_closed_after_the_time_that_was_announced():
    with Server(arguments=settings("[connections]\nidle_seconds = 1\n")) as server:
        kept = KeptConnection(server.port)
        assert b"keep-alive: timeout=1" in kept.answer
        eventually(lambda: not kept.is_open())


def test_silent_connections_do_not_take_the_reserved_places():
    with Server(arguments=settings(SMALL + "head_seconds = 600\n")) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(60)]
        # Half a request, so that the connections are not idle ones.
        for one in silent:
            one.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert request(server.port, "GET", "/healthz", seconds=60).status == 200
        assert text_of(modern_call(server.port, "plasm_context", {"intent": "served", "seeds": SEEDS}, seconds=60))
        assert open_connections(server) <= 40


def test_without_a_key_a_reserved_place_is_left_after_the_answer():
    limits = "[connections]\nplaces = 2\nreserved = 1\n[tenants.alpha]\n"
    arguments = settings(limits)
    with Server(arguments=arguments) as first:
        data = first.data
    key = run_binary("token", "new", "--tenant", "alpha", "--data", data, *arguments).stdout.strip()
    with Server(data=data, arguments=arguments) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as holding:
            # Takes the only place that is not reserved, and does not let go of it.
            holding.sendall(b"POST /api/exec HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\nContent-Type: application/json\r\n")
            holding.sendall(f"Authorization: Bearer {key}\r\n\r\n".encode())
            time.sleep(0.3)
            assert request(server.port, "GET", "/healthz").status == 200
            refused = request(server.port, "GET", "/v1/sessions")
            assert (refused.status, refused.headers["connection"]) == (401, "close")
            served = request(server.port, "GET", "/v1/sessions", headers={"Authorization": f"Bearer {key}"})
            assert served.status == 200 and "keep-alive" in served.headers


# --- answers that are not read


def large_answer(server):
    """The path of an answer of about a megabyte."""
    code = "console.log('x'.repeat(1000000)); 1"
    answer = json.loads(request(server.port, path="/api/exec", body=json.dumps({"code": code})).body)
    return f"/api/executions/{answer['execution_id']}/output?byte_offset=0&byte_limit=1000000"


class Unread:
    """A request whose client reads nothing of the answer."""

    def __init__(self, port, path):
        self.socket = socket.socket()
        # The smallest buffer that the system allows, so that the answer waits in the server.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def was_left_out(self):
        """Whether an answer says that too many wait, or the connection was cut."""
        self.socket.settimeout(0.5)
        received = b""
        try:
            while part := self.socket.recv(1_000_000):
                received = received[-1000:] + part
                if b"answers_waiting" in received:
                    return True
            return True
        except TimeoutError:
            return False
        except OSError:
            return True


def test_clients_that_do_not_read_are_cut_off():
    with Server(arguments=settings("[connections]\nwrite_seconds = 2\n")) as server:
        path = large_answer(server)
        # The system itself takes part of each answer, so a client asks again and again on its connection.
        unread = [Unread(server.port, path) for _ in range(10)]
        for one in unread:
            for _ in range(5):
                one.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        eventually(lambda: open_connections(server) > 0)
        eventually(lambda: open_connections(server) == 0)
        assert request(server.port, "GET", "/healthz").status == 200


def test_answers_that_are_not_read_are_bounded_and_others_are_answered():
    with Server(arguments=settings("[connections]\nanswers_mb = 4\nwrite_seconds = 600\n")) as server:
        path = large_answer(server)
        unread = []
        for _ in range(60):
            one = Unread(server.port, path)
            for _ in range(5):
                one.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            unread.append(one)
        # An honest client gets its whole answer beside them.
        eventually(lambda: request(server.port, "GET", path).status == 200)
        # Most of the others were refused for now, or cut off.
        left_out = [one for one in unread if one.was_left_out()]
        assert len(left_out) > 20, f"{len(left_out)} of {len(unread)}"
        assert_did_not_panic(server)


# --- lists


def test_lists_are_cut_and_read_on():
    with Server(arguments=settings("[limits]\nlist_rows = 3\n")) as server:
        headers = {"X-MCP-Session-Id": "listed"}
        for number in range(5):
            body = json.dumps({"code": f"globalThis.n = {number}", "tags": {"of": "list"}})
            assert request(server.port, path="/api/exec", body=body, headers=headers).status == 200
        whole = json.loads(request(server.port, "GET", "/api/sessions").body)
        assert whole == {"sessions": ["listed"]}, "a whole list has the fields that it always had"
        path = "/api/sessions/listed/snapshots?fields=index"
        first = json.loads(request(server.port, "GET", path).body)
        assert first == {"entries": [{"index": n} for n in range(3)], "has_more": True, "next": 2, "total": 5}
        rest = json.loads(request(server.port, "GET", f"{path}&after={first['next']}").body)
        assert rest == {"entries": [{"index": n} for n in (3, 4)]}
        found, arguments = [], {"tags": {"of": "list"}}
        while True:
            page = modern_call(server.port, "query_heaps_by_tags", arguments)["result"]["structuredContent"]
            found += [row["heap"] for row in page["results"]]
            if "next" not in page:
                break
            assert page["has_more"] is True and page["total"] == 5 and len(page["results"]) == 3
            arguments["after"] = page["next"]
        assert len(set(found)) == 5
        runs = json.loads(request(server.port, "GET", "/api/executions?limit=2").body)
        assert len(runs["executions"]) == 2 and runs["has_more"] is True
        older = json.loads(request(server.port, "GET", f"/api/executions?limit=500&after={runs['next']}").body)
        assert len(older["executions"]) == 3 and "next" not in older


def test_runs_that_no_caller_waits_for_are_bounded():
    with Server(arguments=settings("[limits]\ndetached_runs = 1\ndetached_runs_of_all = 1\n")) as server:
        text_of(modern_call(server.port, "plasm_context", {"intent": "detached", "seeds": SEEDS}))
        # The place is taken before the run starts, so of many at once some are refused, and the refusal says what to do.
        answers = []

        def send():
            arguments = {"logical_session_ref": "s0", "program": "Project", "wait": False}
            answers.append(modern_call(server.port, "plasm_run", arguments)["result"])

        for _ in range(20):
            threads = [threading.Thread(target=send) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            texts = [answer["content"][0]["text"] for answer in answers]
            refused = [text for text in texts if text.startswith("too_many_runs: ")]
            if refused:
                break
        assert refused and "wait(…)" in refused[0], texts[:3]
        assert any(not answer.get("isError") for answer in answers)
        eventually(lambda: not modern_call(server.port, "plasm_run", {
            "logical_session_ref": "s0", "program": "Project", "wait": False})["result"].get("isError"))
