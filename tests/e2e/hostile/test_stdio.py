"""Broken messages over stdio, and the end of a stdio server."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from functools import partial

import pytest

from lib.client import modern, refusal_of, text_of
from lib.server import TOKAMAK, copy_compiled_engine, run_binary, settings

SEEDS = [{"api": "demo", "entity": "Project"}]
HELLO = json.dumps(modern("server/discover", {})).encode() + b"\n"


class Stdio:
    """`tokamak serve --stdio`, with the lines that it writes in a queue."""

    def __init__(self, era="modern", arguments=()):
        self.era = era
        self.last_id = 0
        data = tempfile.mkdtemp(prefix="data-")
        copy_compiled_engine(data)
        command = [TOKAMAK, "serve", "--stdio", "--data", data, *map(str, arguments)]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        if self.era == "legacy":
            client = {"name": "e2e", "version": "1"}
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            self.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}))
            self.read()
            self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(b"")

    def send(self, line):
        self.process.stdin.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
        self.process.stdin.flush()

    def read(self, seconds=10):
        """The next message; None when nothing comes."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return None
        assert line, f"the connection ended; exit code {self.process.wait(5)}"
        return json.loads(line)

    def call(self, tool, arguments):
        self.last_id += 1
        message = modern("tools/call", {"name": tool, "arguments": arguments}, self.last_id)
        if self.era == "legacy":
            del message["params"]["_meta"]
        return message

    def assert_alive(self):
        """Asserts that a normal call works, and returns the messages that came before its answer."""
        message = self.call("plasm_context", {"intent": "hostile", "seeds": SEEDS})
        self.send(json.dumps(message))
        before = []
        while answer := self.read():
            if answer.get("id") == message["id"]:
                text_of(answer)
                return before
            before.append(answer)
        raise AssertionError(f"a normal call is not answered, but {before}")

    def errors_for(self, line):
        """Sends a line and then a normal call, which must work. Returns the answers to the line."""
        self.send(line)
        answers = self.assert_alive()
        return answers or [late for late in [self.read(0.5)] if late]


@pytest.fixture(scope="module", params=["modern", "legacy"])
def stdio(request):
    with Stdio(request.param) as started:
        started.assert_alive()
        yield started


def program_message(stdio, text):
    return json.dumps(stdio.call("plasm", {"logical_session_ref": "s0", "program": text}))


BROKEN_LINES = {
    "half a JSON text": lambda program: b'{"jsonrpc":"2.0","id":99,"met',
    "not JSON": lambda program: b"hello",
    "not UTF-8": lambda program: b'{"jsonrpc":"2.0","id":99,"method":"\xff\xfe"}',
    "a program that is not UTF-8": lambda program: program("HERE").encode().replace(b"HERE", b"\xff\xfe"),
    "arguments nested 5,000 deep": lambda program: program("HERE").replace('"HERE"', "[" * 5_000 + "]" * 5_000),
    "a batch": lambda program: b'[{"jsonrpc":"2.0","id":99,"method":"ping"}]',
    "a message without a method": lambda program: b'{"jsonrpc":"2.0","id":99}',
    "a line of 20 MB": lambda program: program("x" * 20_000_000),
}


def test_the_connection_works_before_anything_bad_happens(stdio):
    stdio.assert_alive()


@pytest.mark.parametrize("make", BROKEN_LINES.values(), ids=BROKEN_LINES)
def test_a_broken_line_is_answered_with_a_json_rpc_error_and_the_connection_lives(stdio, make):
    line = make(partial(program_message, stdio))
    # Several times, because an answer that comes only sometimes is a mistake too.
    times = 5 if len(line) < 100_000 else 1
    answers = [stdio.errors_for(line) for _ in range(times)]
    codes = {answer["error"]["code"] for several in answers for answer in several}
    assert codes <= {-32700, -32600}, answers
    assert [] not in answers, f"no answer {answers.count([])} times of {times}"


def test_a_program_of_64_kib_and_one_byte_is_refused_with_e0111(stdio):
    [answer] = stdio.errors_for(program_message(stdio, "x" * 65_537))
    assert "E0111" in refusal_of(answer)


def test_a_program_of_10_mb_is_refused_with_the_limit_and_the_connection_lives(stdio):
    [answer] = stdio.errors_for(program_message(stdio, "x" * 10_000_000))
    refusal = refusal_of(answer) if "result" in answer else answer["error"]["message"]
    assert "E0111" in refusal or "64 KiB" in refusal, refusal


@pytest.mark.parametrize("id_first", [True, False])
def test_a_line_above_16_mib_is_refused_under_its_id_with_its_limit(stdio, id_first):
    message = stdio.call("plasm", {"logical_session_ref": "s0", "program": "x" * 20_000_000})
    if not id_first:
        message["id"] = message.pop("id")
    [answer] = stdio.errors_for(json.dumps(message))
    assert answer["id"] == message["id"], answer
    assert "16777216" in answer["error"]["message"], answer


def sleeping(stdio, seconds):
    code = f"await new Promise(done => setTimeout(done, {seconds * 1000})); 'slept'"
    return stdio.call("run_js", {"code": code, "wait_ms": 60_000})


def test_of_two_requests_with_one_id_the_second_is_refused(stdio):
    first = sleeping(stdio, 2)
    stdio.send(json.dumps(first))
    second = stdio.call("list_registry", {})
    stdio.send(json.dumps({**second, "id": first["id"]}))
    refused, answered = stdio.read(), stdio.read()
    assert refused["id"] == first["id"] and "under way" in refused["error"]["message"], refused
    assert answered["id"] == first["id"] and "slept" in text_of(answered)
    stdio.assert_alive()


def test_what_is_under_way_is_bounded():
    with Stdio(arguments=settings("[connections]\nrequests_under_way = 2\n")) as server:
        server.assert_alive()
        sent = [sleeping(server, 2) for _ in range(3)]
        for message in sent:
            server.send(json.dumps(message))
        refused = server.read()
        assert refused["id"] == sent[2]["id"] and refused["error"]["code"] == -32000, refused
        assert "2 requests" in refused["error"]["message"]
        assert {server.read()["id"], server.read()["id"]} == {sent[0]["id"], sent[1]["id"]}
        server.assert_alive()


def test_an_empty_line_is_ignored(stdio):
    stdio.send(b"")
    stdio.assert_alive()


# --- the end of a server


def test_a_first_message_that_is_an_answer_does_not_end_the_server():
    with Stdio() as server:
        server.send('{"jsonrpc":"2.0","id":1,"result":{}}')
        server.assert_alive()


def test_standard_input_that_is_closed_at_the_start_is_a_normal_end():
    ended = run_binary("serve", "--stdio", "--data", tempfile.mkdtemp())
    assert (ended.returncode, ended.stdout) == (0, ""), ended


def test_half_a_line_and_the_end_of_input_is_a_normal_end():
    with Stdio() as server:
        server.process.stdin.write(b'{"jsonrpc":')
        server.process.stdin.close()
        assert_normal_end(server.process.wait(10))


def test_the_end_of_the_client_is_the_end_of_the_server():
    with Stdio() as server:
        server.assert_alive()
        server.process.stdin.close()
        assert_normal_end(server.process.wait(10))


def test_open_calls_have_the_time_of_the_setting_after_the_end_of_input():
    with Stdio(arguments=settings("drain_seconds = 30\n")) as server:
        server.assert_alive()
        # Longer than the 5 s that the SDK would wait.
        message = sleeping(server, 7)
        server.send(json.dumps(message))
        server.process.stdin.close()
        answer = server.read(25)
        assert answer["id"] == message["id"] and "slept" in text_of(answer)
        assert_normal_end(server.process.wait(10))


@pytest.mark.parametrize("in_a_call", [True, False])
def test_a_client_that_no_longer_reads_is_the_end_of_the_server(in_a_call):
    reading, writing = os.pipe()
    data = tempfile.mkdtemp()
    copy_compiled_engine(data)
    command = [TOKAMAK, "serve", "--stdio", "--data", data]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.DEVNULL)
    try:
        os.close(writing)
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert os.read(reading, 100)
        if in_a_call:
            code = "await new Promise(done => setTimeout(done, 600000))"
            call = modern("tools/call", {"name": "run_js", "arguments": {"code": code, "wait_ms": 600_000, "timeout_ms": 600_000}}, 2)
            server.stdin.write(json.dumps(call).encode() + b"\n")
            server.stdin.flush()
        # Standard input stays open: the server must not wait for more requests.
        os.close(reading)
        assert_normal_end(server.wait(20))
    finally:
        server.kill()
        server.wait(10)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_is_a_normal_end_within_12_s(name):
    with Stdio() as server:
        server.assert_alive()
        server.process.send_signal(getattr(signal, name))
        assert_normal_end(server.process.wait(12))


def test_a_closed_standard_output_ends_the_server_without_a_panic():
    reading, writing = os.pipe()
    command = [TOKAMAK, "serve", "--stdio", "--data", tempfile.mkdtemp()]
    os.close(reading)
    ended = subprocess.run(command, input=HELLO, stdout=writing, stderr=subprocess.PIPE, timeout=10)
    os.close(writing)
    assert ended.returncode in (0, 1) and b"panicked" not in ended.stderr, ended


def assert_normal_end(code):
    assert code == 0, f"exit code {code}"
