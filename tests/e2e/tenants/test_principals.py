"""Principals with their own credentials: another principal's handle is answered like one that never existed.

The requests are those of the tables in tenants.py, which have every tool and route, sent by two principals of one tenant. Heaps and
their tags belong to the tenant, so requests that name only a heap are left out.
"""

import json

import pytest

from tenants import (
    ANSWERS_UNKNOWN_HANDLES,
    INTENT,
    NOT_FOUND,
    ROUTES,
    SEEDS,
    TOOLS,
    Installation,
    KeyedSession,
    Tenant,
    create_handles,
    execute_path,
    text_of_result,
    unknown_handles,
    uris,
    without_handles,
)

pytestmark = pytest.mark.steps
TOOLS_OF_HEAPS = {"get_heap_tags", "set_heap_tags", "delete_heap_tags", "diff_heaps"}
ROUTES_OF_HEAPS = {"GET /api/heaps/{key}", "GET /api/heaps/{key}/tags", "POST /api/heaps/{key}/tags"}


@pytest.fixture(scope="module")
def installation():
    return Installation('auth_resolution = "delegated"\n')


@pytest.fixture(scope="module")
def server(installation):
    installation.principals = {name: Tenant(installation, "alpha", name) for name in ("ada", "bob")}
    with installation.server() as started:
        for principal in installation.principals.values():
            principal.port = started.port
        yield started


@pytest.fixture(scope="module")
def ada(installation, server):
    return installation.principals["ada"]


@pytest.fixture(scope="module")
def bob(installation, server):
    return installation.principals["bob"]


@pytest.fixture(scope="module")
def handles(ada):
    return create_handles(ada)


@pytest.fixture(scope="module")
def never(handles):
    return unknown_handles(handles)


WITH_HANDLES = [name for name, make in TOOLS.items() if make and name not in TOOLS_OF_HEAPS]
ROUTES_WITH_HANDLES = sorted(route for route, make in ROUTES.items() if make and route not in ROUTES_OF_HEAPS)
URI_FORMS = list(uris({name: "" for name in ("session", "run", "prompt_hash", "execute", "execute_run", "bound_hash", "bound", "heap")}))
URI_FORMS.remove("heap")


def names_only_a_heap(arguments):
    return "heap" in arguments or str(arguments.get("uri", "")).startswith("heap://")


@pytest.mark.parametrize("name", WITH_HANDLES)
def test_a_tool_answers_another_principals_handle_like_one_that_never_existed(bob, handles, never, name):
    make = TOOLS[name]
    for mine, unknown in zip(make(handles), make(never), strict=True):
        if names_only_a_heap(mine):
            continue
        result, other = bob.tool(name, **mine), bob.tool(name, **unknown)
        text, expected = result["content"][0]["text"], other["content"][0]["text"]
        assert result.get("isError") or name in ANSWERS_UNKNOWN_HANDLES, f"{mine}: {text[:200]}"
        assert text.split(":")[0] in NOT_FOUND or text.startswith("{"), f"{mine}: {text[:200]}"
        assert without_handles(text, handles) == without_handles(expected, never), f"{text[:200]} is not {expected[:200]}"


@pytest.mark.parametrize("route", ROUTES_WITH_HANDLES)
def test_a_route_answers_another_principals_handle_like_one_that_never_existed(bob, handles, never, route):
    make = ROUTES[route]
    for (method, path, body), (_, other_path, other_body) in zip(make(handles), make(never)):
        if isinstance(body, dict) and names_only_a_heap(body):
            continue
        answer, other = bob.http(method, path, body), bob.http(method, other_path, other_body)
        assert answer.status == 404 or route in ANSWERS_UNKNOWN_HANDLES, f"{path}: {answer.status} {answer.body[:200]}"
        if answer.status == 404:
            assert json.loads(answer.body)["code"] in NOT_FOUND, answer.body[:200]
        mine, expected = without_handles(answer.body.decode(), handles), without_handles(other.body.decode(), never)
        assert mine == expected, f"{mine[:300]} is not {expected[:300]}"


@pytest.mark.parametrize("form", URI_FORMS)
def test_resources_read_does_not_find_another_principals_uri(ada, bob, handles, form):
    uri = uris(handles)[form]
    refused = bob.mcp("resources/read", {"uri": uri}, uri)
    assert refused.get("error"), refused
    assert ada.mcp("resources/read", {"uri": uri}, uri).get("result"), f"ada cannot read {uri}"


@pytest.mark.parametrize("method, more", [("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})])
def test_a_task_of_another_principal_is_not_found(bob, handles, never, method, more):
    task, unknown = (f"{owner['session']}_o1" for owner in (handles, never))
    known = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    refused = bob.mcp(method, {"taskId": task, **more}, task, known)["error"]
    other = bob.mcp(method, {"taskId": unknown, **more}, unknown, known)["error"]
    assert refused["message"].replace(task, "TASK") == other["message"].replace(unknown, "TASK"), refused


def test_lists_have_the_principals_own(ada, bob, handles):
    paths = ("/v1/sessions", "/v1/traces", "/api/executions", "/api/sessions")
    listed = {path: [one.http("GET", path).body.decode() for one in (ada, bob)] for path in paths}
    for path, (of_ada, of_bob) in listed.items():
        found = [name for name in ("execution", "session") if handles[name] in of_bob]
        assert not found, f"{path}: {of_bob[:300]}"
        assert handles["execution"] in of_ada or handles["session"] in of_ada, f"{path}: {of_ada[:300]}"
    assert bob.mcp("resources/list", {})["result"]["resources"] == []
    for name in ("list_executions", "list_sessions"):
        text = text_of_result(bob.tool(name))
        assert handles["execution"] not in text and handles["session"] not in text, text[:300]


def test_the_owners_handles_still_work(ada, handles):
    text_of_result(ada.tool("plasm_run", logical_session_ref="s0", program="page(s0_pg1)"))
    for form, uri in uris(handles).items():
        assert not ada.tool("read_artifact", uri=uri).get("isError"), f"{form}: {uri}"
    assert ada.http("GET", execute_path(handles)).status == 200


def test_the_same_intent_is_another_session_for_another_principal(bob, handles):
    opened = bob.tool("plasm_context", intent=INTENT, seeds=SEEDS[:1])
    assert "unchanged" not in text_of_result(opened), text_of_result(opened)
    assert opened["_meta"]["plasm"]["logical_session_id"] != handles["session"]
    mine = bob.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"]})
    assert json.loads(mine.body)["reused"] is False, mine.body


def test_the_same_name_is_another_session_for_another_principal(ada, bob):
    named = {"X_MCP_Session_Id": "shared"}
    assert ada.http("POST", "/api/exec", {"code": "globalThis.a = 1"}, Content_Type="application/json", **named).status == 200
    logs = [json.loads(one.http("GET", "/api/sessions/shared/snapshots").body)["entries"] for one in (ada, bob)]
    assert [len(log) for log in logs] == [1, 0], logs
    assert json.loads(ada.http("GET", "/api/sessions").body)["sessions"].count("shared") == 1


def test_another_principals_transport_session_is_404_for_post_get_and_delete(ada, bob):
    session = KeyedSession(ada)
    session.initialize()
    assert session.call("plasm_context", {"intent": "legacy", "seeds": SEEDS[:1]}).status == 200
    stolen = KeyedSession(bob, session=session.session)
    answers = [stolen.call("plasm", {"logical_session_ref": "s0", "program": "Project"}), stolen.send("GET"), stolen.send("DELETE")]
    assert [answer.status for answer in answers] == [404, 404, 404], answers
    answer = session.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
    assert answer.status == 200 and b"plan ok" in answer.body, answer
