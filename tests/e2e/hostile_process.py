"""The process under attack: what comes in on stdio, what it finds when it starts, and how it ends.

Invariant: a refusal to start has the exit code and the words that say what to do; only the standard library.
"""

import json
import os
import pty
import queue
import re
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import TOKAMAK, LegacySession, Server, modern, refusal_of, text_of

SEEDS = [{"api": "demo", "entity": "Project"}]
HELLO = json.dumps(modern("server/discover", {})).encode() + b"\n"


def main(suite):
    for era in ("modern", "legacy"):
        with suite.group(f"stdio {era}"):
            stdio_messages(suite, era)
    with suite.group("stdio ends"):
        stdio_ends(suite)
    with suite.group("start"):
        refuses_to_start(suite)
    with suite.group("stop"):
        stops(suite)
    with suite.group("secret"):
        asks_for_a_secret(suite)


# --- stdio


class Stdio:
    """`tokamak serve --stdio` and the lines it writes."""

    def __init__(self, era="modern"):
        self.era = era
        self.last_id = 0
        data = tempfile.mkdtemp(prefix="data-")
        command = [TOKAMAK, "serve", "--stdio", "--data", data]
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

    def alive(self):
        """A normal call works; whatever else was answered before it."""
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
        """Sends a line and a normal call, which must work; what was answered to the line."""
        self.send(line)
        answers = self.alive()
        return answers or [late for late in [self.read(0.5)] if late]


def stdio_messages(suite, era):
    with Stdio(era) as server:
        with suite.case(f"stdio {era}: works before anything bad happens"):
            server.alive()

        def program(text):
            return json.dumps(server.call("plasm", {"logical_session_ref": "s0", "program": text}))

        broken = {
            "half a JSON text": b'{"jsonrpc":"2.0","id":99,"met',
            "not JSON": b"hello",
            "not UTF-8": b'{"jsonrpc":"2.0","id":99,"method":"\xff\xfe"}',
            "a program that is not UTF-8": program("HERE").encode().replace(b"HERE", b"\xff\xfe"),
            "arguments nested 5,000 deep": program("HERE").replace('"HERE"', "[" * 5_000 + "]" * 5_000),
            "a batch": b'[{"jsonrpc":"2.0","id":99,"method":"ping"}]',
            "a message without a method": b'{"jsonrpc":"2.0","id":99}',
            "a line of 20 MB": program("x" * 20_000_000),
        }
        unanswered = []
        for title, line in broken.items():
            with suite.case(f"stdio {era}: the connection lives after {title}"):
                # Several times, because an answer that is only sometimes given is none.
                times = 5 if len(line) < 100_000 else 1
                answers = [server.errors_for(line) for _ in range(times)]
                codes = {answer["error"]["code"] for told in answers for answer in told}
                assert codes <= {-32700, -32600}, answers
                if [] in answers:
                    unanswered.append(f"{title} ({answers.count([])} of {times})")
        with suite.case(f"stdio {era}: what is not a message is answered with a JSON-RPC error (-32700 or -32600)"):
            assert not unanswered, f"silence after {', '.join(unanswered)}"
        with suite.case(f"stdio {era}: a program of 64 KiB and one byte is refused with E0111"):
            [answer] = server.errors_for(program("x" * 65_537))
            assert "E0111" in refusal_of(answer)
        with suite.case(f"stdio {era}: a program of 10 MB is refused with what is allowed, and the connection lives"):
            [answer] = server.errors_for(program("x" * 10_000_000))
            told = refusal_of(answer) if "result" in answer else answer["error"]["message"]
            assert "E0111" in told or "64 KiB" in told, told
        with suite.case(f"stdio {era}: an empty line is nothing"):
            server.send(b"")
            server.alive()


def stdio_ends(suite):
    with suite.case("stdio: a first message that is an answer does not end the server"):
        with Stdio() as server:
            server.send('{"jsonrpc":"2.0","id":1,"result":{}}')
            server.alive()
    with suite.case("stdio: standard input closed at the start is a normal end (0)"):
        ended = start("--stdio", "--data", tempfile.mkdtemp(), stdin=subprocess.DEVNULL)
        assert (ended.returncode, ended.stdout) == (0, b""), ended
    with suite.case("stdio: half a line and the end is a normal end (0)"):
        with Stdio() as server:
            server.process.stdin.write(b'{"jsonrpc":')
            server.process.stdin.close()
            ended_well(server.process.wait(10))
    with suite.case("stdio: the client's end is the server's end (0)"):
        with Stdio() as server:
            server.alive()
            server.process.stdin.close()
            ended_well(server.process.wait(10))
    for name in ("SIGTERM", "SIGINT"):
        with suite.case(f"stdio: {name} is a normal end (0) within 12 s"):
            with Stdio() as server:
                server.alive()
                server.process.send_signal(getattr(signal, name))
                ended_well(server.process.wait(12))
    with suite.case("stdio: a reader that went away ends the server, not with a crash"):
        reading, writing = os.pipe()
        command = [TOKAMAK, "serve", "--stdio", "--data", tempfile.mkdtemp()]
        os.close(reading)
        ended = subprocess.run(command, input=HELLO, stdout=writing, stderr=subprocess.PIPE, timeout=10)
        os.close(writing)
        assert ended.returncode in (0, 1) and b"panicked" not in ended.stderr, ended


def ended_well(code):
    assert code == 0, f"exit code {code}"


# --- starting


def start(*arguments, before=(), stdin=subprocess.DEVNULL):
    """Runs `tokamak serve` that is meant to end by itself."""
    command = [TOKAMAK, *before, "serve", *map(str, arguments)]
    return subprocess.run(command, stdin=stdin, capture_output=True, timeout=20)


def refuses_to_start(suite):
    place = Path(tempfile.mkdtemp(prefix="start-"))
    (place / "file").write_text("in the way")
    (place / "damaged.toml").write_text('port = 3000\nlisten = "127.0.0.1\n')
    (place / "unknown.toml").write_text("prot = 3000\n")
    (place / "wrong.toml").write_text('port = 3000\ndrain_seconds = "ten"\n')
    (place / "latin.toml").write_bytes(b'data = "caf\xe9"\n')
    damaged = database(place / "damaged", b"\x00\xffnot a database\n" * 1_000)
    short = database(place / "short", b"hello")
    catalogs = {name: catalog(place / name, text) for name, text in CATALOGS.items()}
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        free = ("--port", 0, "--data", place / "data")
        refusals = [
            ("a busy port", ("--port", port, "--data", place / "data"), 1, r"--port"),
            ("a data folder below a file", ("--port", 0, "--data", place / "file" / "data"), 1, r"file/data.*folder"),
            ("a data folder that is a file", ("--port", 0, "--data", place / "file"), 1, r"data folder"),
            ("damaged settings", ("--config", place / "damaged.toml", *free), 2, r"damaged\.toml.*line 2, column 20"),
            ("an unknown setting", ("--config", place / "unknown.toml", *free), 2, r"line 1, column 1.*`prot`.*`port`"),
            ("a setting of the wrong type", ("--config", place / "wrong.toml", *free), 2, r"line 2, column 17"),
            ("settings that are not UTF-8", ("--config", place / "latin.toml", *free), 2, r"latin\.toml.*UTF-8"),
            ("missing settings", ("--config", place / "none.toml", *free), 3, r"none\.toml does not exist"),
            ("a damaged database", ("--port", 0, "--data", damaged), 1, r"tokamak\.db.*damaged.*backup"),
            ("a database that is a word", ("--port", 0, "--data", short), 1, r"tokamak\.db.*damaged"),
            ("a damaged database on stdio", ("--stdio", "--data", damaged), 1, r"tokamak\.db.*damaged"),
            ("an address others can reach", ("--listen", "0.0.0.0", *free), 2, r"0\.0\.0\.0 is not a loopback"),
            ("an address others can reach over IPv6", ("--listen", "::", *free), 2, r"not a loopback"),
            ("a port that is none", ("--port", "99999"), 2, r"--port"),
            ("a missing catalogs folder", ("--catalogs", place / "nowhere", *free), 3, r"nowhere does not exist"),
        ]
        for name, folder in catalogs.items():
            strict = ("--strict-catalogs", "--catalogs", folder, *free)
            refusals.append((f"a catalog with {name}, strictly,", strict, 2, CATALOG_ERRORS[name]))
        for title, arguments, code, words in refusals:
            with suite.case(f"start: {title} ends with {code} and says why"):
                ended = start(*arguments)
                told = ended.stderr.decode()
                assert ended.returncode == code, f"exit {ended.returncode}: {told}"
                assert re.search(words, told, re.DOTALL), f"no /{words}/ in: {told}"
                assert "panicked" not in told and ended.stdout == b"", f"{told} {ended.stdout}"
            with suite.case(f"start: {title} is one JSON object with --json"):
                told = start(*arguments, before=["--json"]).stderr.decode()
                error = json.loads(told)["error"]
                assert re.fullmatch("[a-z_]+", error["code"]) and error["message"], error
    with suite.case("start: nothing was left in the data folder of a start that was refused for its arguments"):
        assert not (place / "data").exists(), list((place / "data").iterdir())


CATALOGS = {
    "broken YAML": "catalog: x\nversion: 1\nentities: [\n",
    "an unknown field": "catalog: x\nversion: 1\ntitle: X\norigin: http://x.localhost\nentitees: {}\n",
    "a relation to nothing": (
        "catalog: x\nversion: 1\ntitle: X\norigin: http://x.localhost\nentities:\n"
        "  A:\n    about: a\n    key: [id]\n    fields: {id: string, b: {ref: Nothing}}\n"
        "capabilities:\n  a_list: {query: A, http: GET /a, rows: data}\n"
    ),
    "bytes that are not UTF-8": b"catalog: x\ntitle: caf\xe9\n",
}
CATALOG_ERRORS = {
    "broken YAML": r"broken\.yaml:\d+:\d+: ",
    "an unknown field": r"broken\.yaml:5:1: .*`entitees`.*entities",
    "a relation to nothing": r"broken\.yaml:9:\d+: .*Nothing",
    "bytes that are not UTF-8": r"broken\.yaml.*UTF-8",
}


def catalog(folder, text):
    folder.mkdir()
    (folder / "broken.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def database(folder, content):
    folder.mkdir()
    (folder / "tokamak.db").write_bytes(content)
    return folder


# --- stopping


def stops(suite):
    with suite.case("stop: SIGTERM ends an idle server with 0"):
        with Server() as server:
            time.sleep(0.3)
            ended_well(server.stop(12))
    with suite.case("stop: SIGTERM at the moment of the ready line, twenty times, ends with 0 too"):
        codes = [stopped_at_once() for _ in range(20)]
        assert set(codes) == {0}, f"exit codes {codes}"
    with suite.case("stop: SIGINT does the same"):
        with Server() as server:
            time.sleep(0.3)
            server.process.send_signal(signal.SIGINT)
            ended_well(server.process.wait(12))
    with suite.case("stop: SIGTERM ends a server with an open SSE stream with 0 within 12 s"):
        with Server() as server:
            session = LegacySession(server.port)
            session.initialize()
            lines = f"Host: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session.session}\r\n"
            stream = hold(server.port, f"GET /mcp HTTP/1.1\r\n{lines}\r\n".encode())
            assert b"200 OK" in stream.recv(4096)
            ended_well(server.stop(12))
    with suite.case("stop: SIGTERM ends a server with half a request and an idle connection with 0 within 12 s"):
        with Server() as server:
            half = hold(server.port, b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
            idle = hold(server.port, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            idle.recv(4096)
            ended_well(server.stop(12))
            half.close()
    with suite.case("stop: SIGTERM answers who waits for a run, which goes on after the next start"):
        code = "await new Promise(done => setTimeout(done, 6000)); 'whole'"
        settings = Path(tempfile.mkdtemp()) / "tokamak.toml"
        settings.write_text("drain_seconds = 3\n")
        with Server(arguments=("--config", str(settings))) as first:
            waiting = LegacySession(first.port)
            waiting.initialize()
            also = LegacySession(first.port)
            also.initialize()
            with ThreadPoolExecutor(2) as pool:
                ran = pool.submit(lambda: waiting.call("run_js", {"code": code, "wait_ms": 60000}).message())
                time.sleep(0.7)
                id = json.loads(text_of(also.call("list_executions", {}).message()))["executions"][0]["execution_id"]
                asked = {"execution_id": id, "wait_ms": 60000}
                seen = pool.submit(lambda: also.call("get_execution", asked).message())
                time.sleep(0.3)
                ended_well(first.stop(12))
                for answer in (ran.result(1), seen.result(1)):
                    told = json.loads(text_of(answer))
                    assert (told["execution_id"], told["status"]) == (id, "running"), told
        with Server(data=first.data) as second:
            back = LegacySession(second.port)
            back.initialize()
            told = json.loads(text_of(back.call("get_execution", asked).message()))
            assert (told["status"], told["result"]) == ("completed", "whole"), told
    with suite.case("stop: a second SIGTERM does not spoil it"):
        with Server() as server:
            server.process.terminate()
            time.sleep(0.05)
            assert server.stop(12) in (0, -signal.SIGTERM)
    with suite.case("stop: what was taught before SIGTERM is there after the next start"):
        with Server() as first:
            session = LegacySession(first.port)
            session.initialize()
            text_of(session.call("plasm_context", {"intent": "stop", "seeds": SEEDS}).message())
            first.stop(12)
        with Server(data=first.data) as second:
            back = LegacySession(second.port, session=session.session)
            same = text_of(back.call("plasm_context", {"intent": "stop", "seeds": SEEDS}).message())
            assert "Session unchanged" in same, same


def stopped_at_once():
    """The exit code of a server that is told to stop as soon as it says that it is ready."""
    command = [TOKAMAK, "serve", "--port", "0", "--data", tempfile.mkdtemp()]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as server:
        try:
            server.stderr.readline()
            server.terminate()
            return server.wait(12)
        finally:
            server.kill()


def hold(port, sent):
    peer = socket.create_connection(("127.0.0.1", port), timeout=10)
    peer.sendall(sent)
    return peer


# --- secrets (what needs a terminal; the rest is in crates/cli/tests/it/secrets.rs)


def asks_for_a_secret(suite):
    data = tempfile.mkdtemp(prefix="data-")
    surroundings = {**os.environ, "TOKAMAK_SECRETS_KEY": "right"}
    command = [TOKAMAK, "secret", "set", "TYPED", "--data", data]
    with suite.case("secret: at a terminal the value is asked for and not shown"):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(TOKAMAK, command, surroundings)
        said = said_until(terminal, b"Value of TYPED: ")
        # The words come before the terminal stops showing what is typed; a person is slower than that.
        until_silent(terminal)
        os.write(terminal, b"hunter2\n")
        said += said_until(terminal, b"TYPED is set")
        assert os.waitpid(child, 0)[1] == 0 and b"hunter2" not in said, said
    with suite.case("secret: what was typed is kept"):
        listed = subprocess.run([TOKAMAK, "secret", "list", "--data", data], env=surroundings, capture_output=True)
        assert listed.stdout == b"TYPED\n", listed


def until_silent(terminal):
    deadline = time.monotonic() + 10
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        assert time.monotonic() < deadline, "the terminal still shows what is typed"
        time.sleep(0.01)


def said_until(terminal, words):
    said = b""
    while words not in said:
        said += os.read(terminal, 1024)
    return said
