"""The HTTP API through the real binary: every route, every form of an answer, and tools that nobody here wrote.

Invariant: what /openapi.json says is what the server does, judged by a validator and a fuzzer from outside.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from openapi_spec_validator import validate

from harness import Server, Suite, request

suite = Suite("http")
HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "wire" / "openapi.json"
WRITE = 'Comment.add(ticket=Ticket(project="OPS", number=1), text="over http")'
# More than one call's patience, so that an operation is seen under way: one call after another.
LONG = '["a","b","c","d","e","f","g","h"] => Comment.add(ticket=Ticket(project="OPS", number=1), text="{{ _ }}")'
FUZZ_SECONDS = int(os.environ.get("FUZZ_SECONDS", "25"))


class Api:
    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, body=b"", kind="application/json", accept="application/json"):
        body = json.dumps(body) if isinstance(body, dict) else body
        return request(self.port, method, path, body, {"Content-Type": kind, "Accept": accept}, seconds=30)

    def open(self, *entities, **more):
        answer = self("POST", "/execute", {"entry_id": "demo", "entities": list(entities), **more})
        assert answer.status == 303, f"{answer.status} {answer.body[:300]}"
        return answer.headers["location"], json.loads(answer.body)

    def run(self, path, program, query="", **more):
        return self("POST", f"{path}{query}", program, kind="text/plain", **more)


def refused(answer, status, code):
    assert answer.status == status, f"{answer.status} {answer.body[:300]}"
    assert answer.headers["content-type"] == "application/problem+json", answer.headers
    problem = json.loads(answer.body)
    assert problem["code"] == code and problem["type"] == f"urn:tokamak:problem:{code}", problem
    assert problem["status"] == status and problem["detail"], problem
    return problem


def sessions(api):
    with suite.case("POST /execute answers 303, an address and the table"):
        path, opened = api.open("Project", "Ticket")
        assert path == f"/execute/{opened['prompt_hash']}/{opened['session']}", opened
        assert opened["reused"] is False and opened["prompt"].startswith("`s0`\n\n"), opened
        assert opened["entry_id"] == "demo" and opened["entities"] == ["Project", "Ticket"], opened
    with suite.case("the same entities, in any order, are the same session, and the table is not sent again"):
        again, reused = api.open("Ticket", "Project")
        assert again == path and reused["reused"] is True, reused
        assert reused["prompt"].startswith("`s0` _Session unchanged (`e1`…`e2`)."), reused["prompt"]
        assert "\n" not in reused["prompt"], reused["prompt"]
    with suite.case("other entities, an intent, are other sessions; a session is opened again by its id"):
        other, _ = api.open("Project")
        named, first = api.open("Project", intent="over http")
        assert len({path, other, named}) == 3
        by_id, second = api.open("Project", logical_session_id=first["logical_session_id"])
        assert by_id == named and second["reused"] is True, second
        unnamed, third = api.open("Project", "Ticket", logical_session_id=opened["logical_session_id"])
        assert unnamed == path and third["reused"] is True, third
        answer = api("POST", "/execute", {"entry_id": "demo", "entities": ["Project"], "intent": "x", "logical_session_id": first["logical_session_id"]})
        refused(answer, 400, "bad_intent")
    with suite.case("GET shows the session: cumulative table, revision, catalogs"):
        shown = json.loads(api("GET", path).body)
        assert shown["revision"] == 1 and list(shown["catalogs"]) == ["demo"], shown
        assert shown["prompt"] in opened["prompt"], shown["prompt"][:200]
    with suite.case("POST …/context teaches more, and once only"):
        seeds = {"seeds": [{"api": "demo", "entity": "Person"}]}
        more = json.loads(api("POST", f"{path}/context", seeds).body)
        assert more["revision"] == 2 and "e3" in more["prompt"], more
        same = json.loads(api("POST", f"{path}/context", seeds).body)
        assert same["revision"] == 2 and "unchanged" in same["prompt"], same
        shown = json.loads(api("GET", path).body)
        assert shown["revision"] == 2 and "## Expanded capabilities" in shown["prompt"], shown["prompt"][-200:]
    with suite.case("GET /v1/sessions lists them, and shows one with its waves"):
        listed = json.loads(api("GET", "/v1/sessions?limit=2").body)
        assert len(listed["sessions"]) == 2 and listed["omitted"] == 1, listed
        one = json.loads(api("GET", f"/v1/sessions/{opened['logical_session_id']}").body)
        assert len(one["waves"]) == 2 and one["runs"] == 0, one
        assert json.loads(api("GET", "/v1/sessions/over%20http").body)["intent"] == "over http"
        refused(api("GET", "/v1/sessions/00000000-0000-4000-8000-000000000000"), 404, "no_session")
        refused(api("GET", "/v1/sessions?limit=0"), 400, "bad_arguments")
    with suite.case("what does not exist is said, with what does"):
        problem = refused(api("POST", "/execute", {"entry_id": "demo", "entities": ["Tikcet"]}), 404, "unknown_seed")
        assert "Ticket" in problem["detail"], problem
        refused(api("POST", "/execute", {"entry_id": "nope", "entities": ["X"]}), 404, "unknown_seed")
        refused(api("POST", "/execute", {"entry_id": "demo", "entities": []}), 400, "bad_seeds")
        nowhere = f"/execute/{'0' * 64}/00000000-0000-4000-8000-000000000000"
        for place in (nowhere, f"/execute/{'0' * 64}/{opened['session']}", "/execute/x/y", "/execute/%00/%60"):
            refused(api("GET", place), 404, "no_session")


def programs(api):
    path, _ = api.open("Project", "Ticket", "Comment")
    with suite.case("a program as text, its answer as JSON: all rows"):
        ran = json.loads(api.run(path, "Project[key]").body)
        assert ran["state"] == "finished" and ran["outcome"] == "ok", ran
        rows = ran["returns"][0]["rows"]
        assert [row["key"] for row in rows] == ["API", "DOC", "MOB", "OPS", "SEC", "WEB"], rows
        assert ran["returns"][0]["coverage"] == "complete" and ran["plasm"]["logical_session_ref"] == "s0", ran
    with suite.case("a program as JSON is the same"):
        assert json.loads(api("POST", path, {"program": "Project[key]"}).body)["returns"] == ran["returns"]
    with suite.case("NDJSON: a line for each row, and one for the rest"):
        answer = api.run(path, "Project[key]", accept="application/x-ndjson")
        assert answer.headers["content-type"] == "application/x-ndjson", answer.headers
        lines = [json.loads(line) for line in answer.body.decode().splitlines()]
        assert [line["row"] for line in lines[:-1]] == rows and lines[-1]["state"] == "finished", lines
    with suite.case("text: what a model would read"):
        answer = api.run(path, "Project[key]", accept="text/plain")
        assert answer.headers["content-type"].startswith("text/plain") and answer.body.startswith(b"## result (6 rows)"), answer
    with suite.case("an Accept that nobody speaks is 406, and nothing runs"):
        refused(api.run(path, "Project", accept="image/png"), 406, "not_acceptable")
    with suite.case("mode=plan calls nothing"):
        planned = json.loads(api.run(path, "Project[key]", "?mode=plan").body)
        assert planned["state"] == "planned" and planned["text"].startswith("plan ok"), planned
        assert "plan_commit_ref" not in planned, planned
    with suite.case("a write needs its commit: 409 with the plan, then once"):
        problem = refused(api.run(path, WRITE), 409, "review_needed")
        commit = problem["plan_commit_ref"]
        assert commit == "pc0" and commit in problem["detail"], problem
        first = json.loads(api("POST", f"{path}?plan_commit_ref={commit}").body)
        assert first["plasm"]["receipts"][0]["outcome"] == "done" and first["plasm"]["replayed"] is False, first
        again = json.loads(api("POST", f"{path}?plan_commit_ref={commit}").body)
        assert again["plasm"]["replayed"] is True and again["plasm"]["run_id"] == first["plasm"]["run_id"], again
        refused(api("POST", f"{path}?plan_commit_ref=pc9"), 404, "no_commit")
    with suite.case("force=true with a request_id runs once"):
        query = "?force=true&request_id=one"
        first, again = (json.loads(api.run(path, WRITE, query).body) for _ in range(2))
        assert again["plasm"]["replayed"] is True and first["plasm"]["run_id"] == again["plasm"]["run_id"], again
    with suite.case("artifacts by number and by id, uncut"):
        number = ran["plasm"]["steps"][0]["artifact_uri"].rsplit("/", 1)[1]
        by_number = json.loads(api("GET", f"{path}/artifacts/{number}").body)
        by_id = json.loads(api("GET", f"{path}/artifacts/{ran['plasm']['run_id']}").body)
        assert by_number == by_id and by_id["returns"][0]["rows"] == rows, by_id
        for other in ("99", "00000000-0000-4000-8000-000000000000", "x"):
            refused(api("GET", f"{path}/artifacts/{other}"), 404, "no_artifact")
    with suite.case("a wrong program is 400 with the line to correct"):
        problem = refused(api.run(path, "Ticket{statee=open}"), 400, "bad_program")
        assert "E0204" in problem["detail"], problem
        refused(api.run(path, ""), 400, "bad_arguments")
    return path


def streams(api, path):
    def events(answer):
        kinds = [line[7:] for line in answer.splitlines() if line.startswith("event: ")]
        data = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: ")]
        return kinds, data

    with suite.case("wait=false answers 202 and where the events are; the stream ends after the terminal one"):
        answer = api.run(path, LONG, "?wait=false&force=true")
        assert answer.status == 202, f"{answer.status} {answer.body[:300]}"
        running = json.loads(answer.body)
        assert running["stream"] == answer.headers["location"] and running["handle"] == "s0_o1", running
        stream = api("GET", running["stream"], accept="text/event-stream")
        assert stream.headers["content-type"] == "text/event-stream", stream.headers
        kinds, data = events(stream.body.decode())
        assert kinds[0] == "snapshot" and kinds[-1] == "terminal" and set(kinds[1:-1]) <= {"progress"}, kinds
        assert data[0]["op"]["handle"] == "s0_o1" and data[-1]["outcome"] == "ok", data[-1]
        assert len(data[-1]["plasm"]["receipts"]) == 8, data[-1]["plasm"]
    with suite.case("asked again, it says the same end"):
        kinds, data_again = events(api("GET", running["stream"]).body.decode())
        assert kinds == ["snapshot", "terminal"] and data_again[-1]["returns"] == data[-1]["returns"], kinds
    with suite.case("a client that goes away stops nothing"):
        handle = json.loads(api.run(path, LONG, "?wait=false&force=true").body)["handle"]
        left = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
        left.request("GET", f"{path}/operations/{handle}/stream")
        left.getresponse().read(10)
        left.close()
        kinds, data = events(api("GET", f"{path}/operations/{handle}/stream").body.decode())
        assert kinds[-1] == "terminal" and len(data[-1]["plasm"]["receipts"]) == 8 and data[-1]["outcome"] == "ok", data[-1]
    with suite.case("an operation that never was is 404, not a stream"):
        for handle in ("s0_o99", "s1_o1", "o1", "%0a"):
            answer = api("GET", f"{path}/operations/{handle}/stream", accept="text/event-stream")
            assert answer.status in (400, 404), f"{handle}: {answer.status} {answer.body[:200]}"


def hostile(api, path):
    with suite.case("a body of 20 MB is 413 on every route that takes one"):
        for place in ("/execute", path, f"{path}/context", "/v1/discover"):
            refused(api("POST", place, b'{"program":"' + b"x" * 20_000_000), 413, "too_large")
    with suite.case("a body of another kind is 415"):
        for place in ("/execute", path, f"{path}/context", "/v1/discover"):
            refused(api("POST", place, b"<x/>", kind="application/xml"), 415, "bad_content_type")
    with suite.case("mistakes in arguments are 400 in the caller's words"):
        for place, body, said in (
            ("/execute", b"{", "EOF"),
            ("/execute", b"[]", "it takes an object, not a list"),
            ("/execute", b'{"entry_id": 5, "entities": []}', "`entry_id`: it takes a text, not a number"),
            ("/v1/discover", b'{"intent": "x", "limit": "all"}', "`limit`: it takes a number, not a text"),
            ("/v1/discover", b'{"intent": "x", "limit": 1.5}', "`limit`: it takes a whole number from 0"),
            ("/v1/discover", b'{"intent": "x", "limit": 0}', "`limit` is from 1 to 32"),
            ("/v1/discover", b'{"intent": "x", "a\\u001b`b": 0}', "unknown field `a\ufffd'b`"),
            (f"{path}?mode=dance", b"{}", "dance"),
            (f"{path}?force=perhaps", b"{}", "true or false"),
            (path, b"[" * 100_000, "nested"),
            (path, b'{"program": "\xff"}', ""),
        ):
            problem = refused(api("POST", place, body), 400, "bad_arguments")
            assert said in problem["detail"], f"{body[:40]}: {problem}"
    with suite.case("no route, no method: 404 and 405 as problems"):
        refused(api("GET", "/nope"), 404, "no_route")
        refused(api("POST", "/healthz"), 405, "no_method")
    with suite.case("pages of elsewhere are refused on every route"):
        for place in ("/execute", path, "/v1/registry"):
            headers = {"Origin": "https://evil.example"}
            assert request(api.port, "POST", place, b"{}", headers).status == 403, place
            assert request(api.port, "GET", place, headers={"Host": "evil.example"}).status == 403, place


def described(server, api, path):
    description = json.loads(api("GET", "/openapi.json").body)
    with suite.case("the description is valid for openapi-spec-validator, and the one that is committed"):
        validate(description)
        assert description == json.loads(GOLDEN.read_text()), "tests/wire/openapi.json is another one"
    with suite.case(f"schemathesis finds nothing in {FUZZ_SECONDS} s: random and wrong requests to every route"):
        # What JavaScript takes is bounded in ways a schema does not say (limits of the settings, keys of heaps); those routes
        # are in the second run.
        fuzz(server, ("--exclude-path-regex", "^/api/"))
    with suite.case(f"schemathesis finds nothing in {FUZZ_SECONDS} s with the address of a real session"):
        _, _, prompt_hash, session = path.split("/")
        # A random program is well-formed JSON and a wrong program all the same.
        fuzz(server, ("--exclude-checks", "positive_data_acceptance"), {"prompt_hash": prompt_hash, "session": session})


def fuzz(server, arguments, parameters=None):
    folder = tempfile.mkdtemp(prefix="fuzz-")
    config = "".join(f'{name} = "{value}"\n' for name, value in (parameters or {}).items())
    Path(folder, "schemathesis.toml").write_text(f"[parameters]\n{config}")
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/openapi.json", "--no-color"]
    command += ["--max-time", str(FUZZ_SECONDS), "--generation-deterministic", "--request-timeout", "10", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FUZZ_SECONDS + 60)
    found = ran.stdout[ran.stdout.find("FAILURES") :] if "FAILURES" in ran.stdout else ran.stdout[-1500:]
    assert ran.returncode == 0, f"{found[:1500]} {ran.stderr[-300:]}"
    assert "Operations:" in ran.stdout and "0 selected" not in ran.stdout, ran.stdout[:500]


def logged(server, api, path):
    with suite.case("one INFO event for each execute, with session, mode, outcome and ms"):
        session = path.rsplit("/", 1)[1]
        api.run(path, "Project.limit(1)", "?mode=plan")
        lines = [json.loads(line) for line in Path(server.log).read_text().splitlines() if line.startswith("{")]
        events = [line for line in lines if line.get("target") == "tokamak::http_execute" and line["session"] == session]
        assert {event["outcome"] for event in events} >= {"ok", "planned", "review_needed", "bad_program", "running"}, events[-1]
        assert all(event["ms"] >= 0 and event["level"] == "INFO" for event in events)


def many(api):
    with suite.case("16 opens of one session at once are one session"):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(api.open("Person", "Ticket")[0])) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(answers) == 16 and len(set(answers)) == 1, answers


def main():
    with Server() as server:
        api = Api(server.port)
        with suite.group("sessions"):
            sessions(api)
        with suite.group("programs"):
            path = programs(api)
            streams(api, path)
            hostile(api, path)
            logged(server, api, path)
            many(api)
            described(server, api, path)
    suite.end()


main()
