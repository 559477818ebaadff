"""Keys and tenants through the real binary: for every route, tool and URI form, another tenant's handle is one that never was.

Invariant: a route of /openapi.json or a tool of tools/list that has no entry here fails the suite, so nothing new is forgotten.
Only the standard library.
"""

import json
import os
import re
import subprocess
import tempfile
import urllib.parse
import uuid
from pathlib import Path

from harness import TOKAMAK, LegacySession, Server, Suite, modern, modern_headers, request

suite = Suite("tenants")
SETTINGS = """
[limits]
rows = 5

[tenants.alpha]
[tenants.beta]
[tenants.slow]
calls_per_minute = 2
[tenants.reader]
catalogs = ["demo"]
read_only = true
"""
WRITE = 'Comment.add(ticket=Ticket(project="OPS", number=1), text="x")'
SEEDS = [{"api": "demo", "entity": entity, "capabilities": ["*"]} for entity in ("Project", "Ticket", "Comment")]
INTENT = "alpha's task"
NOT_FOUND = {"bad_ref", "no_session", "unknown_slot", "no_handle", "no_commit", "no_artifact", "no_catalog"}
NOT_FOUND |= {"no_execution", "no_heap"}
# What the seed lets answer something that never was without an error: no tags, an empty log, a run that starts fresh.
SILENT = {"get_heap_tags", "run_js", "GET /api/heaps/{key}/tags", "GET /api/sessions/{name}/snapshots", "POST /api/exec"}
# What belongs to one run of it.
OF_A_RUN = r'"(execution_id|heap|started_at|completed_at)":"[^"]*",?'


class Tenant:
    """A tenant's key, and what it does with it."""

    def __init__(self, home, name):
        self.key = subprocess.run(
            [TOKAMAK, "token", "new", "--tenant", name, "--config", home.config, "--data", home.data],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        self.port = None

    def headers(self):
        return {"Authorization": f"Bearer {self.key}"}

    def http(self, method, path, body=b"", **headers):
        body = json.dumps(body) if isinstance(body, dict) else body
        headers = {"Accept": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return request(self.port, method, path, body, {**headers, **self.headers()}, seconds=20)

    def mcp(self, method, params, name=None, capabilities=None):
        headers = {**modern_headers(method, name), **self.headers()}
        message = modern(method, params)
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities or {}
        answer = request(self.port, body=json.dumps(message), headers=headers, seconds=20)
        assert answer.status == 200 or answer.headers["content-type"] == "application/json", answer
        return answer.message()

    def tool(self, name, **arguments):
        return self.mcp("tools/call", {"name": name, "arguments": arguments}, name)["result"]


class Home:
    def __init__(self):
        folder = Path(tempfile.mkdtemp(prefix="tenants-"))
        self.data = str(folder / "data")
        self.config = str(folder / "tokamak.toml")
        Path(self.config).write_text(SETTINGS)

    def server(self):
        return Server(data=self.data, arguments=("--config", self.config))


def said(result):
    assert not result.get("isError"), result["content"][0]["text"]
    return result["content"][0]["text"]


# --- what alpha has


def handles(alpha):
    """One of everything, by its name in the tables below."""
    opened = alpha.tool("plasm_context", intent=INTENT, seeds=SEEDS)
    said(opened)
    session = opened["_meta"]["plasm"]["logical_session_id"]
    ran = alpha.tool("plasm_run", logical_session_ref="s0", program="Ticket{project=\"OPS\"}")
    assert "page(s0_pg1)" in said(ran), said(ran)
    run = ran["_meta"]["plasm"]["run_id"]
    planned = alpha.tool("plasm", logical_session_ref="s0", program=WRITE)
    assert planned["_meta"]["plasm"]["plan_commit_ref"] == "pc0", said(planned)
    waiting = said(alpha.tool("plasm_run", logical_session_ref="s0", program="Project.limit(2)", wait=False))
    execute = alpha.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"]})
    assert execute.status == 303, execute
    place = json.loads(execute.body)
    path = execute.headers["location"]
    again = json.loads(alpha.http("POST", path, b"Project.limit(1)", Content_Type="text/plain").body)
    alpha.http("POST", f"{path}?wait=false", b"Project.limit(1)", Content_Type="text/plain")
    bound = json.loads(alpha.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"], "intent": INTENT}).body)
    script = json.loads(said(alpha.tool("run_js", code="globalThis.secret = 42", logical_session_ref="s0", tags={"of": "alpha"})))
    assert script["status"] == "completed", script
    return {
        "execution": script["execution_id"],
        "heap": script["heap"],
        "session": session,
        "run": run,
        "operation": "s0_o1" if waiting.startswith("wait(") else None,
        "prompt_hash": place["prompt_hash"],
        "execute": place["session"],
        "execute_run": again["plasm"]["run_id"],
        "bound_hash": bound["prompt_hash"],
        "bound": bound["session"],
    }


def made_up(theirs):
    """The same shapes, of things that never were."""
    return {
        **theirs,
        **{name: str(uuid.uuid4()) for name in ("session", "run", "execute", "execute_run", "bound", "execution")},
        "heap": "0" * 64,
        "prompt_hash": "0" * 64,
        "bound_hash": "0" * 64,
    }


def uris(of):
    """Every form of a URI that reads something."""
    return {
        "short": "plasm://session/s0/r/1",
        "short with a label": "plasm://session/s0/r/1#result",
        "short with the session's id": f"plasm://session/{of['session']}/r/1",
        "canonical": f"plasm://execute/{of['bound_hash']}/{of['bound']}/run/{of['run']}",
        "canonical without an intent": f"plasm://execute/{of['prompt_hash']}/{of['execute']}/run/{of['execute_run']}",
        "plan": "plasm://session/s0/p/1",
        "plan with the session's id": f"plasm://session/{of['session']}/p/1",
        "bare": "plasm://r/1",
        "heap": f"heap://{of['heap']}",
    }


# Each tool: what to call it with, given the handles; None where it takes no handle (and says why).
TOOLS = {
    "plasm_context": None,  # finds sessions by intent within the tenant: `own_sessions`
    "discover_capabilities": None,  # reads the registry as the tenant sees it: `own_registry`
    "list_registry": None,
    "plasm": lambda of: [
        {"logical_session_ref": of["session"], "program": "Project"},
        {"logical_session_ref": "s0", "program": "Project"},
        {"logical_session_ref": of["session"], "program": "page(s0_pg1)"},
    ],
    "plasm_run": lambda of: [
        {"logical_session_ref": of["session"], "program": "Project"},
        {"logical_session_ref": "s0", "program": "Project"},
        {"logical_session_ref": of["session"], "program": "page(s0_pg1)"},
        {"logical_session_ref": of["session"], "program": "wait(s0_o1)"},
        {"logical_session_ref": of["session"], "program": "cancel(s0_o1)"},
        {"logical_session_ref": of["session"], "plan_commit_ref": "pc0"},
        {"logical_session_ref": of["session"], "program": WRITE, "force": True, "request_id": "r1"},
    ],
    "read_artifact": lambda of: [{"uri": uri} for uri in uris(of).values()],
    "run_js": lambda of: [
        {"code": "typeof secret", "heap": of["heap"]},
        {"code": "typeof secret", "logical_session_ref": of["session"]},
        {"code": "typeof secret", "heap": of["heap"], "require_heap": True},
    ],
    "get_execution": lambda of: [{"execution_id": of["execution"]}],
    "get_execution_output": lambda of: [{"execution_id": of["execution"]}],
    "cancel_execution": lambda of: [{"execution_id": of["execution"]}],
    "list_executions": None,  # `own_sessions`
    "list_sessions": None,
    "query_heaps_by_tags": None,
    "list_session_snapshots": lambda of: [{"logical_session_ref": of["session"]}],
    "get_heap_tags": lambda of: [{"heap": of["heap"]}],
    "set_heap_tags": lambda of: [{"heap": of["heap"], "tags": {"of": "beta"}}],
    "delete_heap_tags": lambda of: [{"heap": of["heap"]}],
    "fork_session": lambda of: [{"logical_session_ref": of["session"], "intent": "a fork"}],
    "promote_session": lambda of: [{"logical_session_ref": of["session"]}],
    "rewind_session": lambda of: [{"logical_session_ref": of["session"], "index": 0}],
    "diff_heaps": lambda of: [{"a": of["heap"], "b": of["heap"]}],
}

# What a tenant with a session of its own is told of handles that only the other's session has.
IN_OWN_SESSION = [
    ("plasm_run", {"logical_session_ref": "s0", "program": "page(s0_pg1)"}, "no_handle"),
    ("plasm_run", {"logical_session_ref": "s0", "program": "wait(s0_o1)"}, "no_handle"),
    ("plasm_run", {"logical_session_ref": "s0", "program": "cancel(s0_o1)"}, "no_handle"),
    ("plasm_run", {"logical_session_ref": "s0", "plan_commit_ref": "pc0"}, "no_commit"),
    ("read_artifact", {"uri": "plasm://session/s0/r/1"}, "no_artifact"),
    ("read_artifact", {"uri": "plasm://session/s0/p/1"}, "no_artifact"),
    ("read_artifact", {"uri": "plasm://r/1"}, "no_artifact"),
]

# Each route: requests with the other's handles; None where its path and body have none.
ROUTES = {
    "GET /healthz": None,
    "GET /readyz": None,
    "GET /openapi.json": None,
    "POST /v1/discover": None,
    "GET /v1/registry": None,
    "GET /v1/registry/{id}": None,
    "GET /v1/sessions": None,  # `own_sessions`
    "GET /v1/sessions/{logical_session}": lambda of: [
        ("GET", f"/v1/sessions/{of['session']}", b""),
        ("GET", "/v1/sessions/s0", b""),
        ("GET", f"/v1/sessions/{urllib.parse.quote(INTENT)}", b""),
    ],
    "GET /v1/traces": None,  # `own_sessions`
    "GET /v1/traces/{logical_session}": lambda of: [
        ("GET", f"/v1/traces/{of['session']}", b""),
        ("GET", "/v1/traces/s0", b""),
        ("GET", f"/v1/traces/{urllib.parse.quote(INTENT)}", b""),
    ],
    "GET /metrics": None,  # counts of all tenants are the operator's: `own_sessions`
    "POST /api/exec": lambda of: [
        ("POST", "/api/exec", {"code": "typeof secret", "heap": of["heap"]}),
        ("POST", "/api/exec", {"code": "typeof secret", "logical_session_ref": of["session"]}),
    ],
    "GET /api/executions": None,  # `own_sessions`
    "GET /api/executions/{id}": lambda of: [("GET", f"/api/executions/{of['execution']}", b"")],
    "GET /api/executions/{id}/output": lambda of: [("GET", f"/api/executions/{of['execution']}/output", b"")],
    "POST /api/executions/{id}/cancel": lambda of: [("POST", f"/api/executions/{of['execution']}/cancel", b"")],
    "GET /api/sessions": None,
    "GET /api/sessions/{name}/snapshots": lambda of: [("GET", f"/api/sessions/{of['session']}/snapshots", b"")],
    "GET /api/heaps/{key}": lambda of: [("GET", f"/api/heaps/{of['heap']}", b"")],
    "GET /api/heaps/{key}/tags": lambda of: [("GET", f"/api/heaps/{of['heap']}/tags", b"")],
    "POST /api/heaps/{key}/tags": lambda of: [("POST", f"/api/heaps/{of['heap']}/tags", {"tags": {"of": "beta"}})],
    "POST /execute": lambda of: [
        ("POST", "/execute", {"entry_id": "demo", "entities": ["Project"], "logical_session_id": of["session"]}),
    ],
    "GET /execute/{prompt_hash}/{session}": lambda of: [("GET", place(of), b""), ("GET", bound(of), b"")],
    "POST /execute/{prompt_hash}/{session}": lambda of: [
        ("POST", place(of), {"program": "Project"}),
        ("POST", bound(of), {"program": "page(s0_pg1)"}),
        ("POST", f"{bound(of)}?mode=plan", {"program": "Project"}),
        ("POST", f"{bound(of)}?plan_commit_ref=pc0", {}),
        ("POST", f"{bound(of)}?force=true&request_id=r1", {"program": WRITE}),
    ],
    "POST /execute/{prompt_hash}/{session}/context": lambda of: [
        ("POST", f"{place(of)}/context", {"seeds": SEEDS[:1]}),
    ],
    "GET /execute/{prompt_hash}/{session}/operations/{handle}/stream": lambda of: [
        ("GET", f"{place(of)}/operations/s0_o1/stream", b""),
        ("GET", f"{bound(of)}/operations/s0_o1/stream", b""),
    ],
    "GET /execute/{prompt_hash}/{session}/artifacts/{run}": lambda of: [
        ("GET", f"{place(of)}/artifacts/1", b""),
        ("GET", f"{place(of)}/artifacts/{of['execute_run']}", b""),
        ("GET", f"{bound(of)}/artifacts/{of['run']}", b""),
    ],
}


def place(of):
    return f"/execute/{of['prompt_hash']}/{of['execute']}"


def bound(of):
    return f"/execute/{of['bound_hash']}/{of['bound']}"


def without(text, of):
    """A text in which the handles have no more to tell apart."""
    for value in of.values():
        if value and len(value) > 8:
            text = text.replace(value, "HANDLE")
    return re.sub(OF_A_RUN, "", re.sub(r'"x-request-id":"[^"]*"', "", text))


# --- checks


def every_tool(alpha, beta, theirs):
    never = made_up(theirs)
    listed = [tool["name"] for tool in alpha.mcp("tools/list", {})["result"]["tools"]]
    with suite.case("every tool has an entry here"):
        assert set(listed) == set(TOOLS), f"not here: {set(listed) - set(TOOLS)}; not there: {set(TOOLS) - set(listed)}"
    for name in listed:
        make = TOOLS.get(name)
        if not make:
            continue
        with suite.case(f"{name}: another tenant's handles are none"):
            for mine, unknown in zip(make(theirs), make(never)):
                result, other = beta.tool(name, **mine), beta.tool(name, **unknown)
                text, expected = result["content"][0]["text"], other["content"][0]["text"]
                assert result.get("isError") or name in SILENT, f"{mine}: {text[:200]}"
                assert text.split(":")[0] in NOT_FOUND or text.startswith("{"), f"{mine}: {text[:200]}"
                assert without(text, theirs) == without(expected, never), f"{text[:200]} is not {expected[:200]}"
    with suite.case("the other tenant's own handles still work"):
        said(alpha.tool("plasm_run", logical_session_ref="s0", program="page(s0_pg1)"))
        for form, uri in uris(theirs).items():
            assert not alpha.tool("read_artifact", uri=uri).get("isError"), f"{form}: {uri}"


def every_route(alpha, beta, theirs):
    never = made_up(theirs)
    described = json.loads(alpha.http("GET", "/openapi.json").body)["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    with suite.case("every route has an entry here"):
        assert routes == set(ROUTES), f"not here: {routes - set(ROUTES)}; not there: {set(ROUTES) - routes}"
    for route in sorted(routes):
        make = ROUTES.get(route)
        if not make:
            continue
        with suite.case(f"{route}: another tenant's handles are none"):
            for (method, path, body), (_, other_path, other_body) in zip(make(theirs), make(never)):
                answer, other = beta.http(method, path, body), beta.http(method, other_path, other_body)
                assert answer.status == 404 or route in SILENT, f"{path}: {answer.status} {answer.body[:200]}"
                if answer.status == 404:
                    assert answer.headers["content-type"] == "application/problem+json", answer.headers
                    assert json.loads(answer.body)["code"] in NOT_FOUND, answer.body[:200]
                mine, expected = without(answer.body.decode(), theirs), without(other.body.decode(), never)
                assert mine == expected, f"{mine[:300]} is not {expected[:300]}"
    with suite.case("the other tenant's own addresses still work"):
        for path in (place(theirs), bound(theirs)):
            assert alpha.http("GET", path).status == 200, path
        assert alpha.http("GET", f"{bound(theirs)}/artifacts/{theirs['run']}").status == 200
        stream = alpha.http("GET", f"{place(theirs)}/operations/s0_o1/stream", Accept="text/event-stream")
        assert stream.status == 200 and b"event: terminal" in stream.body, stream


def every_uri(alpha, beta, theirs):
    for form, uri in uris(theirs).items():
        with suite.case(f"resources/read: {form} of another tenant is not found"):
            refused = beta.mcp("resources/read", {"uri": uri}, uri)
            assert refused.get("error"), refused
            assert alpha.mcp("resources/read", {"uri": uri}, uri).get("result"), f"alpha cannot read {uri}"
    with suite.case("resources/list names nothing of another tenant"):
        assert alpha.mcp("resources/list", {})["result"]["resources"]
        assert beta.mcp("resources/list", {})["result"]["resources"] == []


def every_task(alpha, beta, theirs):
    if not theirs["operation"]:
        return  # It ended before it was given a handle.
    task, never = (f"{of['session']}_o1" for of in (theirs, made_up(theirs)))
    known = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    for method, more in (("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})):
        with suite.case(f"{method}: a task of another tenant is not found"):
            refused = beta.mcp(method, {"taskId": task, **more}, task, known)["error"]
            other = beta.mcp(method, {"taskId": never, **more}, never, known)["error"]
            assert refused["code"] == -32602, refused
            assert refused["message"].replace(task, "TASK") == other["message"].replace(never, "TASK"), refused
            assert alpha.mcp(method, {"taskId": task, **more}, task, known).get("result"), "alpha cannot"


def own_sessions(alpha, beta, theirs):
    with suite.case("a list of sessions has the tenant's own, and no other"):
        listed = [tenant.http("GET", "/v1/sessions").body.decode() for tenant in (alpha, beta)]
        assert theirs["session"] in listed[0] and json.loads(listed[1])["sessions"] == [], listed[1]
        listed = [tenant.http("GET", "/v1/traces").body.decode() for tenant in (alpha, beta)]
        assert theirs["session"] in listed[0] and json.loads(listed[1])["sessions"] == [], listed[1]
    with suite.case("lists of runs, names and tags of JavaScript have the tenant's own, and no other"):
        assert theirs["execution"] in said(alpha.tool("list_executions")) and theirs["session"] in said(alpha.tool("list_sessions"))
        assert theirs["heap"] in said(alpha.tool("query_heaps_by_tags", tags={"of": "alpha"}))
        assert theirs["execution"] in alpha.http("GET", "/api/executions").body.decode()
        listed = [said(beta.tool("list_executions")), said(beta.tool("list_sessions")), said(beta.tool("query_heaps_by_tags", tags={}))]
        listed += [beta.http("GET", path).body.decode() for path in ("/api/executions", "/api/sessions")]
        leaked = [text for text in listed if any(theirs[name] in text for name in ("execution", "session", "heap"))]
        assert not leaked, leaked[0][:300]
    with suite.case("what the process counts is not for tenants"):
        assert [tenant.http("GET", "/metrics").status for tenant in (alpha, beta)] == [404, 404]
    with suite.case("the same intent is another session for another tenant"):
        opened = beta.tool("plasm_context", intent=INTENT, seeds=SEEDS[:1])
        assert "unchanged" not in said(opened), said(opened)
        assert opened["_meta"]["plasm"]["logical_session_id"] != theirs["session"]
        mine = beta.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"]})
        assert json.loads(mine.body)["reused"] is False, mine.body
        assert mine.headers["location"] != place(theirs)
    for tool, arguments, code in IN_OWN_SESSION:
        with suite.case(f"{tool} {arguments}: a handle of the same name is not the other's"):
            text = beta.tool(tool, **arguments)["content"][0]["text"]
            assert text.startswith(f"{code}:"), text[:200]


def own_registry(reader):
    with suite.case("a tenant's registry, discovery and instructions are its own"):
        listed = json.loads(reader.http("GET", "/v1/registry").body)["catalogs"]
        assert [catalog["id"] for catalog in listed] == ["demo"], listed
        assert reader.http("GET", "/v1/registry/github").status == 404
        found = reader.http("POST", "/v1/discover", {"intent": "issues of a repository on github"})
        assert "github" not in found.body.decode(), found.body
        told = reader.mcp("server/discover", {})["result"]
        assert told["instructions"].endswith("APIs here: demo."), told["instructions"][-80:]
    with suite.case("a read-only tenant has no writes"):
        opened = said(reader.tool("plasm_context", intent="comment on tickets", seeds=SEEDS))
        assert ".add(" not in opened, opened
        text = reader.tool("plasm_run", logical_session_ref="s0", program=WRITE, force=True)["content"][0]["text"]
        assert text.startswith("bad_program:"), text[:200]


def transport_sessions(alpha, beta):
    class Keyed(LegacySession):
        tenant = None

        def _post(self, message):
            return self.send("POST", json.dumps(message), message["method"] == "initialize")

        def send(self, method, body=b"", first=False):
            headers = {} if first else {"MCP-Protocol-Version": self.version, "Mcp-Session-Id": self.session}
            return request(self.port, method, "/mcp", body, {**headers, **self.tenant.headers()}, seconds=20)

    mine = Keyed(alpha.port)
    mine.tenant = alpha
    mine.initialize()
    assert mine.call("plasm_context", {"intent": "legacy", "seeds": SEEDS[:1]}).status == 200
    stolen = Keyed(beta.port, session=mine.session)
    stolen.tenant = beta
    with suite.case("another tenant's Mcp-Session-Id is 404: POST, GET and DELETE"):
        answers = [stolen.call("plasm", {"logical_session_ref": "s0", "program": "Project"}), stolen.send("GET"), stolen.send("DELETE")]
        assert [answer.status for answer in answers] == [404, 404, 404], answers
    with suite.case("and its own goes on"):
        answer = mine.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
        assert answer.status == 200 and b"plan ok" in answer.body, answer


def keys(server, alpha, home):
    routes = [route.split(" ", 1) for route in ROUTES] + [["POST", "/mcp"], ["GET", "/mcp"], ["DELETE", "/mcp"], ["GET", "/nowhere"]]
    for name, headers in {"no key": {}, "a wrong key": {"Authorization": "Bearer tk_alpha_" + "0" * 64}, "another scheme": {"Authorization": "Basic YTpi"}}.items():
        with suite.case(f"with {name} every route but health is 401, and says how to ask"):
            for method, path in routes:
                answer = request(server.port, method, urllib.parse.quote(path), b"{}" if method == "POST" else b"", headers)
                if path in ("/healthz", "/readyz"):
                    assert answer.status == 200, f"{path}: {answer.status}"
                    continue
                assert answer.status == 401, f"{method} {path}: {answer.status} {answer.body[:100]}"
                assert answer.headers["www-authenticate"].startswith("Bearer "), answer.headers
                assert json.loads(answer.body)["code"] == "unauthorized", answer.body
    with suite.case("a stranger is not told which files are broken"):
        ready = json.loads(request(server.port, "GET", "/readyz").body)
        assert ready["catalog_problems"]["first"] == [], ready
    with suite.case("a revoked key is refused from the next request on"):
        gone = Tenant(home, "alpha")
        gone.port = server.port
        assert gone.http("GET", "/v1/registry").status == 200
        listed = json.loads(run_cli(home, "token", "list", "--tenant", "alpha", "--json"))["keys"]
        run_cli(home, "token", "revoke", listed[-1]["id"])
        assert gone.http("GET", "/v1/registry").status == 401
        assert alpha.http("GET", "/v1/registry").status == 200
    with suite.case("a tenant's calls per minute are bounded, and it is told until when"):
        slow = Tenant(home, "slow")
        slow.port = server.port
        answers = [slow.http("GET", "/v1/registry") for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429], answers
        assert int(answers[2].headers["retry-after"]) > 0 and json.loads(answers[2].body)["code"] == "rate_limited"
    with suite.case("no key is in the data folder, the log or a list"):
        texts = [path.read_bytes() for path in Path(home.data).rglob("*") if path.is_file()]
        texts += [Path(server.log).read_bytes(), run_cli(home, "token", "list").encode()]
        assert not any(alpha.key.encode() in text for text in texts)


def without_auth(home):
    with suite.case("listening elsewhere without a key is refused"):
        data = tempfile.mkdtemp(prefix="data-")
        command = [TOKAMAK, "serve", "--listen", "0.0.0.0", "--port", "0", "--data", data]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert refused.returncode == 2 and "token new" in refused.stderr, refused
    with suite.case("a server whose last key was revoked still asks for one"):
        other = Home()
        Tenant(other, "alpha")
        listed = json.loads(run_cli(other, "token", "list", "--json"))["keys"]
        run_cli(other, "token", "revoke", listed[0]["id"])
        with other.server() as server:
            assert request(server.port, "GET", "/v1/registry").status == 401
    with suite.case("a key in the settings is let in without any in the store"):
        other = Home()
        made = json.loads(run_cli(other, "token", "new", "--tenant", "alpha", "--principal", "ci", "--print", "--json"))
        text = SETTINGS.replace("[tenants.alpha]\n", f"[tenants.alpha]\nkeys = [{made['setting']}]\n")
        Path(other.config).write_text(text)
        with other.server() as server:
            headers = {"Authorization": f"Bearer {made['key']}"}
            assert request(server.port, "GET", "/v1/registry", headers=headers).status == 200
            assert request(server.port, "GET", "/v1/registry").status == 401


def run_cli(home, *arguments):
    command = [TOKAMAK, *arguments, "--config", home.config, "--data", home.data]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}).stdout


def main():
    home = Home()
    alpha, beta, reader = (Tenant(home, name) for name in ("alpha", "beta", "reader"))
    with home.server() as server:
        for tenant in (alpha, beta, reader):
            tenant.port = server.port
        with suite.group("handles of another tenant"):
            theirs = handles(alpha)
            every_tool(alpha, beta, theirs)
            every_route(alpha, beta, theirs)
            every_uri(alpha, beta, theirs)
            every_task(alpha, beta, theirs)
            own_sessions(alpha, beta, theirs)
        with suite.group("registry"):
            own_registry(reader)
        with suite.group("transport sessions"):
            transport_sessions(alpha, beta)
        with suite.group("keys"):
            keys(server, alpha, home)
    without_auth(home)
    suite.end()


main()
