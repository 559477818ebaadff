"""The end of servers by a signal, whatever they do at that moment."""

import json
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lib.client import LegacySession, text_of
from lib.server import TOKAMAK, Server, copy_compiled_engine

SEEDS = [{"api": "demo", "entity": "Project"}]


def test_sigterm_ends_an_idle_server():
    with Server() as server:
        time.sleep(0.3)
        assert_normal_end(server.stop(12))


def test_sigterm_at_the_moment_of_the_ready_line_ends_the_server_each_time():
    codes = [stopped_at_once() for _ in range(20)]
    assert set(codes) == {0}, f"exit codes {codes}"


def test_sigint_ends_an_idle_server():
    with Server() as server:
        time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        assert_normal_end(server.process.wait(12))


def test_sigterm_ends_a_server_with_an_open_event_stream_within_12_s():
    with Server() as server:
        session = LegacySession(server.port)
        session.initialize()
        lines = f"Host: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session.session}\r\n"
        stream = open_connection(server.port, f"GET /mcp HTTP/1.1\r\n{lines}\r\n".encode())
        assert b"200 OK" in stream.recv(4096)
        assert_normal_end(server.stop(12))


def test_sigterm_ends_a_server_with_half_a_request_and_an_idle_connection_within_12_s():
    with Server() as server:
        half = open_connection(server.port, b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
        idle = open_connection(server.port, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        idle.recv(4096)
        assert_normal_end(server.stop(12))
        half.close()


def test_sigterm_answers_the_callers_that_wait_for_a_run_and_the_run_goes_on_after_the_next_start():
    code = "await new Promise(done => setTimeout(done, 6000)); 'whole'"
    settings = Path(tempfile.mkdtemp()) / "tokamak.toml"
    settings.write_text("drain_seconds = 3\n")
    with Server(arguments=("--config", str(settings))) as first:
        waiting = LegacySession(first.port)
        waiting.initialize()
        also = LegacySession(first.port)
        also.initialize()
        with ThreadPoolExecutor(2) as pool:
            waiting_call = pool.submit(lambda: waiting.call("run_js", {"code": code, "wait_ms": 60000}).message())
            time.sleep(0.7)
            id = json.loads(text_of(also.call("list_executions", {}).message()))["executions"][0]["execution_id"]
            watched = {"execution_id": id, "wait_ms": 60000}
            watching = pool.submit(lambda: also.call("get_execution", watched).message())
            time.sleep(0.3)
            assert_normal_end(first.stop(12))
            for answer in (waiting_call.result(1), watching.result(1)):
                run_state = json.loads(text_of(answer))
                assert (run_state["execution_id"], run_state["status"]) == (id, "running"), run_state
    with Server(data=first.data) as second:
        back = LegacySession(second.port)
        back.initialize()
        run_state = json.loads(text_of(back.call("get_execution", watched).message()))
        assert (run_state["status"], run_state["result"]) == ("completed", "whole"), run_state


def test_a_second_sigterm_does_no_harm():
    with Server() as server:
        server.process.terminate()
        time.sleep(0.05)
        assert server.stop(12) in (0, -signal.SIGTERM)


def test_sessions_of_the_time_before_sigterm_exist_after_the_next_start():
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
    """The exit code of a server that gets SIGTERM at the moment of its ready line."""
    data = tempfile.mkdtemp()
    copy_compiled_engine(data)
    command = [TOKAMAK, "serve", "--port", "0", "--data", data]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as server:
        try:
            server.stderr.readline()
            server.terminate()
            return server.wait(12)
        finally:
            server.kill()


def open_connection(port, sent):
    peer = socket.create_connection(("127.0.0.1", port), timeout=10)
    peer.sendall(sent)
    return peer


def assert_normal_end(code):
    assert code == 0, f"exit code {code}"
