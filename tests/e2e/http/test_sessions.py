"""Sessions and programs over HTTP: every route and every form of an answer, in the order in which a client would use them."""

import http.client
import json
import threading

import pytest

from lib.client import request
from lib.http_api import HttpApi, problem_of

pytestmark = pytest.mark.steps
WRITE = 'Comment.add(ticket=Ticket(project="OPS", number=1), text="over http")'
# Eight writes take longer than one call waits, so the operation can be watched while it runs.
LONG = '["a","b","c","d","e","f","g","h"] => Comment.add(ticket=Ticket(project="OPS", number=1), text="{{ _ }}")'


@pytest.fixture(scope="module")
def api(server):
    return HttpApi(server.port)


# --- sessions


def test_execute_answers_303_an_address_and_the_table(api, flow):
    flow.path, flow.opened = api.open("Project", "Ticket")
    assert flow.path == f"/execute/{flow.opened['prompt_hash']}/{flow.opened['session']}", flow.opened
    assert flow.opened["reused"] is False and flow.opened["prompt"].startswith("`s0`\n\n"), flow.opened
    assert flow.opened["entry_id"] == "demo" and flow.opened["entities"] == ["Project", "Ticket"], flow.opened


def test_the_same_entities_in_any_order_are_the_same_session_and_the_table_is_not_sent_again(api, flow):
    repeated_path, reused = api.open("Ticket", "Project")
    assert repeated_path == flow.path and reused["reused"] is True, reused
    assert reused["prompt"].startswith("`s0` _Session unchanged (`e1`…`e2`)."), reused["prompt"]
    assert "\n" not in reused["prompt"], reused["prompt"]


def test_other_entities_or_an_intent_are_other_sessions_and_an_id_opens_a_session_again(api, flow):
    other, _ = api.open("Project")
    with_intent, first = api.open("Project", intent="over http")
    assert len({flow.path, other, with_intent}) == 3
    by_id, second = api.open("Project", logical_session_id=first["logical_session_id"])
    assert by_id == with_intent and second["reused"] is True, second
    without_intent, third = api.open("Project", "Ticket", logical_session_id=flow.opened["logical_session_id"])
    assert without_intent == flow.path and third["reused"] is True, third
    answer = api("POST", "/execute", {"entry_id": "demo", "entities": ["Project"], "intent": "x", "logical_session_id": first["logical_session_id"]})
    problem_of(answer, 400, "bad_intent")


def test_get_shows_the_cumulative_table_the_revision_and_the_catalogs(api, flow):
    shown = json.loads(api("GET", flow.path).body)
    assert shown["revision"] == 1 and list(shown["catalogs"]) == ["demo"], shown
    assert shown["prompt"] in flow.opened["prompt"], shown["prompt"][:200]


def test_context_teaches_more_and_only_once(api, flow):
    seeds = {"seeds": [{"api": "demo", "entity": "Person"}]}
    more = json.loads(api("POST", f"{flow.path}/context", seeds).body)
    assert more["revision"] == 2 and "e3" in more["prompt"], more
    same = json.loads(api("POST", f"{flow.path}/context", seeds).body)
    assert same["revision"] == 2 and "unchanged" in same["prompt"], same
    shown = json.loads(api("GET", flow.path).body)
    assert shown["revision"] == 2 and "## Expanded capabilities" in shown["prompt"], shown["prompt"][-200:]


def test_v1_sessions_lists_sessions_and_shows_one_with_its_waves(api, flow):
    listed = json.loads(api("GET", "/v1/sessions?limit=2").body)
    assert len(listed["sessions"]) == 2 and listed["omitted"] == 1, listed
    one = json.loads(api("GET", f"/v1/sessions/{flow.opened['logical_session_id']}").body)
    assert len(one["waves"]) == 2 and one["runs"] == 0, one
    assert json.loads(api("GET", "/v1/sessions/over%20http").body)["intent"] == "over http"
    problem_of(api("GET", "/v1/sessions/00000000-0000-4000-8000-000000000000"), 404, "no_session")
    problem_of(api("GET", "/v1/sessions?limit=0"), 400, "bad_arguments")


def test_a_missing_thing_is_refused_with_a_list_of_the_existing_ones(api, flow):
    problem = problem_of(api("POST", "/execute", {"entry_id": "demo", "entities": ["Tikcet"]}), 404, "unknown_seed")
    assert "Ticket" in problem["detail"], problem
    problem_of(api("POST", "/execute", {"entry_id": "nope", "entities": ["X"]}), 404, "unknown_seed")
    problem_of(api("POST", "/execute", {"entry_id": "demo", "entities": []}), 400, "bad_seeds")
    nowhere = f"/execute/{'0' * 64}/00000000-0000-4000-8000-000000000000"
    for route in (nowhere, f"/execute/{'0' * 64}/{flow.opened['session']}", "/execute/x/y", "/execute/%00/%60"):
        problem_of(api("GET", route), 404, "no_session")


# --- programs


@pytest.fixture(scope="module")
def path(api):
    """The address of the session that the programs run in."""
    opened, _ = api.open("Project", "Ticket", "Comment")
    return opened


def test_a_program_as_text_is_answered_with_all_rows_as_json(api, path, flow):
    flow.ran = json.loads(api.run(path, "Project[key]").body)
    assert flow.ran["state"] == "finished" and flow.ran["outcome"] == "ok", flow.ran
    flow.rows = flow.ran["returns"][0]["rows"]
    assert [row["key"] for row in flow.rows] == ["API", "DOC", "MOB", "OPS", "SEC", "WEB"], flow.rows
    assert flow.ran["returns"][0]["coverage"] == "complete" and flow.ran["plasm"]["logical_session_ref"] == "s0", flow.ran


def test_a_program_as_json_has_the_same_answer(api, path, flow):
    assert json.loads(api("POST", path, {"program": "Project[key]"}).body)["returns"] == flow.ran["returns"]


def test_ndjson_has_a_line_for_each_row_and_one_for_the_rest(api, path, flow):
    answer = api.run(path, "Project[key]", accept="application/x-ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson", answer.headers
    lines = [json.loads(line) for line in answer.body.decode().splitlines()]
    assert [line["row"] for line in lines[:-1]] == flow.rows and lines[-1]["state"] == "finished", lines


def test_text_is_the_answer_that_a_model_would_read(api, path):
    answer = api.run(path, "Project[key]", accept="text/plain")
    assert answer.headers["content-type"].startswith("text/plain") and answer.body.startswith(b"## result (6 rows)"), answer


def test_an_unknown_accept_header_is_406_and_nothing_runs(api, path):
    problem_of(api.run(path, "Project", accept="image/png"), 406, "not_acceptable")


def test_mode_plan_calls_nothing(api, path):
    planned = json.loads(api.run(path, "Project[key]", "?mode=plan").body)
    assert planned["state"] == "planned" and planned["text"].startswith("plan ok"), planned
    assert "plan_commit_ref" not in planned, planned


def test_a_write_is_409_with_its_plan_and_runs_once_under_its_commit(api, path):
    problem = problem_of(api.run(path, WRITE), 409, "review_needed")
    commit = problem["plan_commit_ref"]
    assert commit == "pc0" and commit in problem["detail"], problem
    first = json.loads(api("POST", f"{path}?plan_commit_ref={commit}").body)
    assert first["plasm"]["receipts"][0]["outcome"] == "done" and first["plasm"]["replayed"] is False, first
    repeated = json.loads(api("POST", f"{path}?plan_commit_ref={commit}").body)
    assert repeated["plasm"]["replayed"] is True and repeated["plasm"]["run_id"] == first["plasm"]["run_id"], repeated
    problem_of(api("POST", f"{path}?plan_commit_ref=pc9"), 404, "no_commit")


def test_a_forced_write_with_a_request_id_runs_once(api, path):
    query = "?force=true&request_id=one"
    first, repeated = (json.loads(api.run(path, WRITE, query).body) for _ in range(2))
    assert repeated["plasm"]["replayed"] is True and first["plasm"]["run_id"] == repeated["plasm"]["run_id"], repeated


def test_artifacts_are_read_by_number_and_by_id_without_cuts(api, path, flow):
    number = flow.ran["plasm"]["steps"][0]["artifact_uri"].rsplit("/", 1)[1]
    by_number = json.loads(api("GET", f"{path}/artifacts/{number}").body)
    by_id = json.loads(api("GET", f"{path}/artifacts/{flow.ran['plasm']['run_id']}").body)
    assert by_number == by_id and by_id["returns"][0]["rows"] == flow.rows, by_id
    for other in ("99", "00000000-0000-4000-8000-000000000000", "x"):
        problem_of(api("GET", f"{path}/artifacts/{other}"), 404, "no_artifact")


def test_a_wrong_program_is_400_with_the_line_to_correct(api, path):
    problem = problem_of(api.run(path, "Ticket{statee=open}"), 400, "bad_program")
    assert "E0204" in problem["detail"], problem
    problem_of(api.run(path, ""), 400, "bad_arguments")


# --- operations and their streams


def events(answer):
    """The kinds and the data of the events of a stream."""
    kinds = [line[7:] for line in answer.splitlines() if line.startswith("event: ")]
    data = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: ")]
    return kinds, data


def test_wait_false_answers_202_with_a_stream_that_ends_after_the_terminal_event(api, path, flow):
    answer = api.run(path, LONG, "?wait=false&force=true")
    assert answer.status == 202, f"{answer.status} {answer.body[:300]}"
    flow.running = json.loads(answer.body)
    assert flow.running["stream"] == answer.headers["location"] and flow.running["handle"] == "s0_o1", flow.running
    stream = api("GET", flow.running["stream"], accept="text/event-stream")
    assert stream.headers["content-type"] == "text/event-stream", stream.headers
    kinds, flow.data = events(stream.body.decode())
    assert kinds[0] == "snapshot" and kinds[-1] == "terminal" and set(kinds[1:-1]) <= {"progress"}, kinds
    assert flow.data[0]["op"]["handle"] == "s0_o1" and flow.data[-1]["outcome"] == "ok", flow.data[-1]
    assert len(flow.data[-1]["plasm"]["receipts"]) == 8, flow.data[-1]["plasm"]


def test_a_stream_that_is_read_again_has_the_same_end(api, flow):
    kinds, data_again = events(api("GET", flow.running["stream"]).body.decode())
    assert kinds == ["snapshot", "terminal"] and data_again[-1]["returns"] == flow.data[-1]["returns"], kinds


def test_a_client_that_disconnects_stops_nothing(api, path, flow):
    handle = json.loads(api.run(path, LONG, "?wait=false&force=true").body)["handle"]
    left = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
    left.request("GET", f"{path}/operations/{handle}/stream")
    left.getresponse().read(10)
    left.close()
    kinds, flow.data = events(api("GET", f"{path}/operations/{handle}/stream").body.decode())
    assert kinds[-1] == "terminal" and len(flow.data[-1]["plasm"]["receipts"]) == 8 and flow.data[-1]["outcome"] == "ok", flow.data[-1]


def test_an_unknown_operation_is_an_error_and_not_a_stream(api, path):
    for handle in ("s0_o99", "s1_o1", "o1", "%0a"):
        answer = api("GET", f"{path}/operations/{handle}/stream", accept="text/event-stream")
        assert answer.status in (400, 404), f"{handle}: {answer.status} {answer.body[:200]}"


# --- mistakes


def test_a_body_of_20_mb_is_413_on_every_route_that_takes_one(api, path):
    for route in ("/execute", path, f"{path}/context", "/v1/discover"):
        problem_of(api("POST", route, b'{"program":"' + b"x" * 20_000_000), 413, "too_large")


def test_a_body_of_another_type_is_415(api, path):
    for route in ("/execute", path, f"{path}/context", "/v1/discover"):
        problem_of(api("POST", route, b"<x/>", kind="application/xml"), 415, "bad_content_type")


def test_wrong_arguments_are_400_in_the_words_of_the_caller(api, path):
    for route, body, words in (
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
        problem = problem_of(api("POST", route, body), 400, "bad_arguments")
        assert words in problem["detail"], f"{body[:40]}: {problem}"


def test_an_unknown_route_is_404_and_an_unknown_method_405_both_as_problems(api):
    problem_of(api("GET", "/nope"), 404, "no_route")
    problem_of(api("POST", "/healthz"), 405, "no_method")


def test_pages_of_other_sites_are_refused_on_every_route(api, path):
    for route in ("/execute", path, "/v1/registry"):
        headers = {"Origin": "https://evil.example"}
        assert request(api.port, "POST", route, b"{}", headers).status == 403, route
        assert request(api.port, "GET", route, headers={"Host": "evil.example"}).status == 403, route


# --- logs, and many callers at once


def test_each_execute_logs_one_info_event_with_session_mode_outcome_and_milliseconds(server, api, path):
    session = path.rsplit("/", 1)[1]
    api.run(path, "Project.limit(1)", "?mode=plan")
    lines = [json.loads(line) for line in server.log_text().splitlines() if line.startswith("{")]
    events = [line for line in lines if line.get("target") == "tokamak::http_execute" and line["session"] == session]
    assert {event["outcome"] for event in events} >= {"ok", "planned", "review_needed", "bad_program", "running"}, events[-1]
    assert all(event["ms"] >= 0 and event["level"] == "INFO" for event in events)


def test_sixteen_opens_of_one_session_at_the_same_time_are_one_session(api):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(api.open("Person", "Ticket")[0])) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 16 and len(set(answers)) == 1, answers
