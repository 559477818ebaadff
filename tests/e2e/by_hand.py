"""Sessions from the command line beside a running server, and what the server tells of itself: traces, metrics, spans.

Invariant: the command line, MCP and HTTP work on the same sessions; a collector that nobody here wrote could read the spans.
"""

import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from answers import seeds
from harness import TOKAMAK, Server, modern_call, request, text_of

SEEDS = ("--seed", "demo:Project", "--seed", "demo:Ticket:*")


def tokamak(data, *arguments, given=None, code=0):
    command = [TOKAMAK, *arguments, "--data", str(data)]
    ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert ended.returncode == code, f"{arguments[0]}: {ended.returncode}, not {code}: {ended.stdout}{ended.stderr}"
    return ended.stdout if code == 0 else ended.stderr


async def command_line(case, _over_http, _over_stdio):
    with Server() as server:
        data = server.data
        async with case("command line: context, plan and run share a session with the server"):
            opened = json.loads(tokamak(data, "context", "by hand", *SEEDS, "--json"))
            assert opened["logical_session_ref"] == "s0" and opened["new_symbol_space"], opened
            assert "plan ok" in tokamak(data, "plan", "Project[key]")
            assert "6 rows" in tokamak(data, "run", "--session", "by hand", given="Project[key]")
            same = text_of(modern_call(server.port, "plasm_context", {"intent": "by hand", "seeds": seeds("Project")}))
            assert "Session unchanged" in same, same
            ran = text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": "s0", "program": "Project[key]"}))
            assert "6 rows" in ran, ran
        async with case("command line: a write is shown first and runs once under its commit"):
            write = 'Ticket.open(project="OPS", title="by hand")'
            refused = tokamak(data, "run", write, code=1)
            assert "review_needed" in refused and "pc0" in refused, refused
            first = json.loads(tokamak(data, "run", "--commit", "pc0", "--json"))
            again = json.loads(tokamak(data, "run", "--commit", "pc0", "--json"))
            assert first["plasm"]["replayed"] is False and again["plasm"]["replayed"] is True, again
            assert first["artifact"] == again["artifact"], again
        async with case("command line: artifact, session list and show"):
            assert "OPS" in tokamak(data, "artifact", "plasm://session/s0/r/1")
            stored = json.loads(tokamak(data, "artifact", "plasm://session/s0/r/1", "--json"))
            assert len(stored["returns"][0]["rows"]) == 6, stored
            assert "Project[key]" in tokamak(data, "artifact", "plasm://session/s0/p/1")
            listed = json.loads(tokamak(data, "session", "list", "--json"))["sessions"]
            assert [s["intent"] for s in listed] == ["by hand"], listed
            time.sleep(1)  # the server writes its calls a moment later
            shown = tokamak(data, "session", "show", "by hand")
            assert "plasm_run" in shown and "tokens" in shown and "demo:ticket_open done" in shown, shown
        async with case("command line: exit codes 1, 2 and 3"):
            assert "E0202" in tokamak(data, "run", "Nothing", code=2)
            tokamak(data, "run", "--session", "s7", "Project", code=3)
            tokamak(data, "artifact", "plasm://session/s0/r/99", code=3)
            tokamak(data, "context", "x", "--seed", "demo", code=2)
            tokamak(data, "context", "x", "--seed", "demo:Nothing", code=3)
        async with case("command line: gc says what would go, and takes nothing of a session in use"):
            said = json.loads(tokamak(data, "gc", "--dry-run", "--json"))
            assert said["rows"] == {} and said["blobs"] == 0 and said["dry_run"], said
            tokamak(data, "gc")
            assert "6 rows" in tokamak(data, "run", "Project[key]")
        async with case("command line: a removed session is gone for the server too"):
            tokamak(data, "session", "rm", "by hand")
            gone = modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": "Project"})
            assert gone["result"]["isError"] and "no_session" in gone["result"]["content"][0]["text"], gone


class Collector(BaseHTTPRequestHandler):
    taken = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Collector.taken.append((self.path, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


async def telemetry(case, _over_http, _over_stdio):
    collector = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    server = Server()
    config = Path(f"{server.data}.toml")
    config.write_text(f'[telemetry]\notlp = "http://127.0.0.1:{collector.server_port}"\n')
    server.arguments = ("--config", str(config))
    with server:
        text_of(modern_call(server.port, "plasm_context", {"intent": "told", "seeds": seeds("Project")}))
        text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": "s0", "program": "Project[key]"}))
        modern_call(server.port, "plasm_run", {"logical_session_ref": "s0", "program": "Nothing"})
        deadline = time.monotonic() + 10
        spans = []
        while len(spans) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
            spans = [s for _, body in Collector.taken for s in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        async with case("telemetry: each call is a span, all of one session one trace"):
            assert {path for path, _ in Collector.taken} == {"/v1/traces"}, Collector.taken
            assert [s["name"] for s in spans] == ["plasm_context", "plasm_run", "plasm_run"], spans
            assert len({s["traceId"] for s in spans}) == 1 and len({s["spanId"] for s in spans}) == 3, spans
            assert all(len(s["traceId"]) == 32 and len(s["spanId"]) == 16 for s in spans), spans
            assert [s["status"]["code"] for s in spans] == [1, 1, 2], spans
            assert spans[1]["events"], "a run has its steps"
        async with case("telemetry: the trace of the session over HTTP"):
            listed = request(server.port, "GET", "/v1/traces").message()["sessions"]
            trace = request(server.port, "GET", f"/v1/traces/{listed[0]['logical_session_id']}").message()
            calls = [(call["tool"], call["outcome"]) for call in trace["calls"]]
            assert calls == [("plasm_context", "ok"), ("plasm_run", "ok"), ("plasm_run", "bad_program")], calls
            assert trace["calls"][1]["steps"] and trace["calls"][1]["answer_chars"] > 0, trace
            missing = request(server.port, "GET", "/v1/traces/00000000-0000-4000-8000-000000000000")
            assert missing.status == 404, missing.status
        async with case("telemetry: metrics have the calls, with bounded labels"):
            text = request(server.port, "GET", "/metrics").body.decode()
            assert 'tokamak_calls_total{tool="plasm_run",outcome="ok"} 1' in text, text
            assert "tokamak_call_seconds_bucket" in text and text.endswith("# EOF\n"), text
    collector.shutdown()


GROUPS = [command_line, telemetry]
