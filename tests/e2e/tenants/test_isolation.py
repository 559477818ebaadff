"""Another tenant's handle is answered exactly like a handle that never existed, for every tool, route and form of URI."""

import json

import pytest

from tenants import (
    ANSWERS_UNKNOWN_HANDLES,
    IN_OWN_SESSION,
    INTENT,
    NOT_FOUND,
    ROUTES,
    SEEDS,
    TOOLS,
    WRITE,
    Installation,
    KeyedSession,
    Tenant,
    create_handles,
    execute_path,
    session_path,
    text_of_result,
    unknown_handles,
    uris,
    without_handles,
)

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def installation():
    return Installation()


@pytest.fixture(scope="module")
def server(installation):
    # The keys exist before the server starts, because a server without keys asks for none.
    installation.tenants = {name: Tenant(installation, name) for name in ("alpha", "beta", "reader")}
    with installation.server() as started:
        for tenant in installation.tenants.values():
            tenant.port = started.port
        yield started


@pytest.fixture(scope="module")
def alpha(installation, server):
    return installation.tenants["alpha"]


@pytest.fixture(scope="module")
def beta(installation, server):
    return installation.tenants["beta"]


@pytest.fixture(scope="module")
def reader(installation, server):
    return installation.tenants["reader"]


@pytest.fixture(scope="module")
def handles(alpha):
    """Everything that alpha owns."""
    return create_handles(alpha)


@pytest.fixture(scope="module")
def never(handles):
    """The same names with values that never existed."""
    return unknown_handles(handles)


WITH_HANDLES = [name for name, make in TOOLS.items() if make]
ROUTES_WITH_HANDLES = sorted(route for route, make in ROUTES.items() if make)
URI_FORMS = list(uris({name: "" for name in ("session", "run", "prompt_hash", "execute", "execute_run", "bound_hash", "bound", "heap")}))


def test_every_tool_has_an_entry_in_the_table(alpha):
    listed = [tool["name"] for tool in alpha.mcp("tools/list", {})["result"]["tools"]]
    assert set(listed) == set(TOOLS), f"not here: {set(listed) - set(TOOLS)}; not there: {set(TOOLS) - set(listed)}"


@pytest.mark.parametrize("name", WITH_HANDLES)
def test_a_tool_answers_another_tenants_handle_like_one_that_never_existed(beta, handles, never, name):
    make = TOOLS[name]
    for mine, unknown in zip(make(handles), make(never), strict=True):
        result, other = beta.tool(name, **mine), beta.tool(name, **unknown)
        text, expected = result["content"][0]["text"], other["content"][0]["text"]
        assert result.get("isError") or name in ANSWERS_UNKNOWN_HANDLES, f"{mine}: {text[:200]}"
        assert text.split(":")[0] in NOT_FOUND or text.startswith("{"), f"{mine}: {text[:200]}"
        assert without_handles(text, handles) == without_handles(expected, never), f"{text[:200]} is not {expected[:200]}"


def test_the_owners_handles_still_work_with_every_tool(alpha, handles):
    text_of_result(alpha.tool("plasm_run", logical_session_ref="s0", program="page(s0_pg1)"))
    for form, uri in uris(handles).items():
        assert not alpha.tool("read_artifact", uri=uri).get("isError"), f"{form}: {uri}"


def test_every_route_has_an_entry_in_the_table(alpha):
    described = json.loads(alpha.http("GET", "/openapi.json").body)["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    assert routes == set(ROUTES), f"not here: {routes - set(ROUTES)}; not there: {set(ROUTES) - routes}"


@pytest.mark.parametrize("route", ROUTES_WITH_HANDLES)
def test_a_route_answers_another_tenants_handle_like_one_that_never_existed(beta, handles, never, route):
    make = ROUTES[route]
    for (method, path, body), (_, other_path, other_body) in zip(make(handles), make(never)):
        answer, other = beta.http(method, path, body), beta.http(method, other_path, other_body)
        assert answer.status == 404 or route in ANSWERS_UNKNOWN_HANDLES, f"{path}: {answer.status} {answer.body[:200]}"
        if answer.status == 404:
            assert answer.headers["content-type"] == "application/problem+json", answer.headers
            assert json.loads(answer.body)["code"] in NOT_FOUND, answer.body[:200]
        mine, expected = without_handles(answer.body.decode(), handles), without_handles(other.body.decode(), never)
        assert mine == expected, f"{mine[:300]} is not {expected[:300]}"


def test_the_owners_addresses_still_work(alpha, handles):
    for path in (execute_path(handles), session_path(handles)):
        assert alpha.http("GET", path).status == 200, path
    assert alpha.http("GET", f"{session_path(handles)}/artifacts/{handles['run']}").status == 200
    stream = alpha.http("GET", f"{execute_path(handles)}/operations/s0_o1/stream", Accept="text/event-stream")
    assert stream.status == 200 and b"event: terminal" in stream.body, stream


@pytest.mark.parametrize("form", URI_FORMS)
def test_resources_read_does_not_find_another_tenants_uri(alpha, beta, handles, form):
    uri = uris(handles)[form]
    refused = beta.mcp("resources/read", {"uri": uri}, uri)
    assert refused.get("error"), refused
    assert alpha.mcp("resources/read", {"uri": uri}, uri).get("result"), f"alpha cannot read {uri}"


def test_resources_list_names_nothing_of_another_tenant(alpha, beta, handles):
    assert alpha.mcp("resources/list", {})["result"]["resources"]
    assert beta.mcp("resources/list", {})["result"]["resources"] == []


@pytest.mark.parametrize("method, more", [("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})])
def test_a_task_of_another_tenant_is_not_found(alpha, beta, handles, never, method, more):
    if not handles["operation"]:
        pytest.skip("the run of alpha ended before it got a handle")
    task, unknown = (f"{owner['session']}_o1" for owner in (handles, never))
    known = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    refused = beta.mcp(method, {"taskId": task, **more}, task, known)["error"]
    other = beta.mcp(method, {"taskId": unknown, **more}, unknown, known)["error"]
    assert refused["code"] == -32602, refused
    assert refused["message"].replace(task, "TASK") == other["message"].replace(unknown, "TASK"), refused
    assert alpha.mcp(method, {"taskId": task, **more}, task, known).get("result"), "alpha cannot"


# --- lists and names of a tenant's own


def test_lists_of_sessions_and_traces_have_the_tenants_own(alpha, beta, handles):
    listed = [tenant.http("GET", "/v1/sessions").body.decode() for tenant in (alpha, beta)]
    assert handles["session"] in listed[0] and json.loads(listed[1])["sessions"] == [], listed[1]
    listed = [tenant.http("GET", "/v1/traces").body.decode() for tenant in (alpha, beta)]
    assert handles["session"] in listed[0] and json.loads(listed[1])["sessions"] == [], listed[1]


def test_lists_of_runs_session_names_and_tags_have_the_tenants_own(alpha, beta, handles):
    assert handles["execution"] in text_of_result(alpha.tool("list_executions")) and handles["session"] in text_of_result(alpha.tool("list_sessions"))
    assert handles["heap"] in text_of_result(alpha.tool("query_heaps_by_tags", tags={"of": "alpha"}))
    assert handles["execution"] in alpha.http("GET", "/api/executions").body.decode()
    listed = [text_of_result(beta.tool("list_executions")), text_of_result(beta.tool("list_sessions")), text_of_result(beta.tool("query_heaps_by_tags", tags={}))]
    listed += [beta.http("GET", path).body.decode() for path in ("/api/executions", "/api/sessions")]
    leaked = [text for text in listed if any(handles[name] in text for name in ("execution", "session", "heap"))]
    assert not leaked, leaked[0][:300]


def test_metrics_are_not_for_tenants(alpha, beta):
    assert [tenant.http("GET", "/metrics").status for tenant in (alpha, beta)] == [404, 404]


def test_the_same_intent_is_another_session_for_another_tenant(alpha, beta, handles):
    opened = beta.tool("plasm_context", intent=INTENT, seeds=SEEDS[:1])
    assert "unchanged" not in text_of_result(opened), text_of_result(opened)
    assert opened["_meta"]["plasm"]["logical_session_id"] != handles["session"]
    mine = beta.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"]})
    assert json.loads(mine.body)["reused"] is False, mine.body
    assert mine.headers["location"] != execute_path(handles)


@pytest.mark.parametrize("tool, arguments, code", IN_OWN_SESSION)
def test_a_handle_of_the_same_name_is_not_the_one_of_the_other_tenant(beta, tool, arguments, code):
    text = beta.tool(tool, **arguments)["content"][0]["text"]
    assert text.startswith(f"{code}:"), text[:200]


def test_registry_discovery_and_instructions_are_the_tenants_own(reader):
    listed = json.loads(reader.http("GET", "/v1/registry").body)["catalogs"]
    assert [catalog["id"] for catalog in listed] == ["demo"], listed
    assert reader.http("GET", "/v1/registry/github").status == 404
    found = reader.http("POST", "/v1/discover", {"intent": "issues of a repository on github"})
    assert "github" not in found.body.decode(), found.body
    discovered = reader.mcp("server/discover", {})["result"]
    assert discovered["instructions"].endswith("APIs here: demo."), discovered["instructions"][-80:]


def test_a_read_only_tenant_has_no_writes(reader):
    opened = text_of_result(reader.tool("plasm_context", intent="comment on tickets", seeds=SEEDS))
    assert ".add(" not in opened, opened
    text = reader.tool("plasm_run", logical_session_ref="s0", program=WRITE, force=True)["content"][0]["text"]
    assert text.startswith("bad_program:"), text[:200]


# --- transport sessions


@pytest.fixture(scope="module")
def own_session(alpha):
    session = KeyedSession(alpha)
    session.initialize()
    assert session.call("plasm_context", {"intent": "legacy", "seeds": SEEDS[:1]}).status == 200
    return session


def test_another_tenants_transport_session_is_404_for_post_get_and_delete(beta, own_session):
    stolen = KeyedSession(beta, session=own_session.session)
    answers = [stolen.call("plasm", {"logical_session_ref": "s0", "program": "Project"}), stolen.send("GET"), stolen.send("DELETE")]
    assert [answer.status for answer in answers] == [404, 404, 404], answers


def test_a_transport_session_goes_on_after_another_tenant_has_tried_to_use_it(own_session):
    answer = own_session.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
    assert answer.status == 200 and b"plan ok" in answer.body, answer
