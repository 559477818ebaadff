"""The reports of a server on its calls: spans to a collector, traces over HTTP, metrics."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lib.answers import seeds
from lib.client import modern_call, request, text_of
from lib.server import Server, settings


class Collector(BaseHTTPRequestHandler):
    exported = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Collector.exported.append((self.path, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    """A server that has answered two calls and refused one."""
    collector = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    with Server(arguments=settings(f'[telemetry]\notlp = "http://127.0.0.1:{collector.server_port}"\n')) as started:
        text_of(modern_call(started.port, "plasm_context", {"intent": "observed", "seeds": seeds("Project")}))
        text_of(modern_call(started.port, "plasm_run", {"logical_session_ref": "s0", "program": "Project[key]"}))
        modern_call(started.port, "plasm_run", {"logical_session_ref": "s0", "program": "Nothing"})
        yield started
    collector.shutdown()


@pytest.fixture(scope="module")
def spans(server):
    deadline = time.monotonic() + 30
    spans = []
    while len(spans) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
        spans = [span for _, body in Collector.exported for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    return spans


def test_each_call_is_a_span_and_all_calls_of_a_session_are_one_trace(spans):
    assert {path for path, _ in Collector.exported} == {"/v1/traces"}, Collector.exported
    assert [s["name"] for s in spans] == ["plasm_context", "plasm_run", "plasm_run"], spans
    assert len({s["traceId"] for s in spans}) == 1 and len({s["spanId"] for s in spans}) == 3, spans
    assert all(len(s["traceId"]) == 32 and len(s["spanId"]) == 16 for s in spans), spans
    assert [s["status"]["code"] for s in spans] == [1, 1, 2], spans
    assert spans[1]["events"], "a run has its steps"


def test_the_trace_of_the_session_is_shown_over_http(server, spans):
    listed = request(server.port, "GET", "/v1/traces").message()["sessions"]
    trace = request(server.port, "GET", f"/v1/traces/{listed[0]['logical_session_id']}").message()
    calls = [(call["tool"], call["outcome"]) for call in trace["calls"]]
    assert calls == [("plasm_context", "ok"), ("plasm_run", "ok"), ("plasm_run", "bad_program")], calls
    assert trace["calls"][1]["steps"] and trace["calls"][1]["answer_chars"] > 0, trace
    missing = request(server.port, "GET", "/v1/traces/00000000-0000-4000-8000-000000000000")
    assert missing.status == 404, missing.status


def test_metrics_count_the_calls_with_bounded_labels(server):
    text = request(server.port, "GET", "/metrics").body.decode()
    assert 'tokamak_calls_total{tool="plasm_run",outcome="ok"} 1' in text, text
    assert "tokamak_call_seconds_bucket" in text and text.endswith("# EOF\n"), text
