"""Tenants with keys, everything that one tenant owns, and every request that names it.

Invariant: a route of /openapi.json or a tool of tools/list without an entry here fails a test, so a new one is not forgotten.
"""

import json
import os
import re
import subprocess
import tempfile
import urllib.parse
import uuid
from pathlib import Path

from lib.client import LegacySession, modern, modern_headers, request
from lib.server import TOKAMAK, Server

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
# These answer a handle that never existed without an error: no tags, an empty log, a run that starts fresh.
ANSWERS_UNKNOWN_HANDLES = {"get_heap_tags", "run_js", "GET /api/heaps/{key}/tags", "GET /api/sessions/{name}/snapshots", "POST /api/exec"}


class Tenant:
    """A tenant with a key, and its requests."""

    def __init__(self, installation, name, principal="default"):
        self.key = subprocess.run(
            [TOKAMAK, "token", "new", "--tenant", name, "--principal", principal, "--config", installation.config, "--data", installation.data],
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


class Installation:
    def __init__(self, more_settings=""):
        folder = Path(tempfile.mkdtemp(prefix="tenants-"))
        self.data = str(folder / "data")
        self.config = str(folder / "tokamak.toml")
        Path(self.config).write_text(more_settings + SETTINGS)

    def server(self):
        return Server(data=self.data, arguments=("--config", self.config))


class KeyedSession(LegacySession):
    """A transport session whose requests carry the key of a tenant."""

    def __init__(self, tenant, session=None):
        super().__init__(tenant.port, session)
        self.tenant = tenant

    def _post(self, message):
        return self.send("POST", json.dumps(message), message["method"] == "initialize")

    def send(self, method, body=b"", first=False):
        headers = {} if first else {"MCP-Protocol-Version": self.version, "Mcp-Session-Id": self.session}
        return request(self.port, method, "/mcp", body, {**headers, **self.tenant.headers()})


def text_of_result(result):
    assert not result.get("isError"), result["content"][0]["text"]
    return result["content"][0]["text"]


# --- the handles of alpha


def create_handles(alpha):
    """One of everything that has a handle, by the names that the tables below use."""
    opened = alpha.tool("plasm_context", intent=INTENT, seeds=SEEDS)
    text_of_result(opened)
    session = opened["_meta"]["plasm"]["logical_session_id"]
    ran = alpha.tool("plasm_run", logical_session_ref="s0", program="Ticket{project=\"OPS\"}")
    assert "page(s0_pg1)" in text_of_result(ran), text_of_result(ran)
    run = ran["_meta"]["plasm"]["run_id"]
    planned = alpha.tool("plasm", logical_session_ref="s0", program=WRITE)
    assert planned["_meta"]["plasm"]["plan_commit_ref"] == "pc0", text_of_result(planned)
    operation = text_of_result(alpha.tool("plasm_run", logical_session_ref="s0", program="Project.limit(2)", wait=False))
    execute = alpha.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"]})
    assert execute.status == 303, execute
    opened_execute = json.loads(execute.body)
    path = execute.headers["location"]
    again = json.loads(alpha.http("POST", path, b"Project.limit(1)", Content_Type="text/plain").body)
    alpha.http("POST", f"{path}?wait=false", b"Project.limit(1)", Content_Type="text/plain")
    bound = json.loads(alpha.http("POST", "/execute", {"entry_id": "demo", "entities": ["Project"], "intent": INTENT}).body)
    script = json.loads(text_of_result(alpha.tool("run_js", code="globalThis.secret = 42", logical_session_ref="s0", tags={"of": "alpha"})))
    assert script["status"] == "completed", script
    return {
        "execution": script["execution_id"],
        "heap": script["heap"],
        "session": session,
        "run": run,
        "operation": "s0_o1" if operation.startswith("wait(") else None,
        "prompt_hash": opened_execute["prompt_hash"],
        "execute": opened_execute["session"],
        "execute_run": again["plasm"]["run_id"],
        "bound_hash": bound["prompt_hash"],
        "bound": bound["session"],
    }


def unknown_handles(handles):
    """Handles of the same shapes that never existed."""
    return {
        **handles,
        **{name: str(uuid.uuid4()) for name in ("session", "run", "execute", "execute_run", "bound", "execution")},
        "heap": "0" * 64,
        "prompt_hash": "0" * 64,
        "bound_hash": "0" * 64,
    }


def uris(handles):
    """Every form of a URI that reads something."""
    return {
        "short": "plasm://session/s0/r/1",
        "short with a label": "plasm://session/s0/r/1#result",
        "short with the session's id": f"plasm://session/{handles['session']}/r/1",
        "canonical": f"plasm://execute/{handles['bound_hash']}/{handles['bound']}/run/{handles['run']}",
        "canonical without an intent": f"plasm://execute/{handles['prompt_hash']}/{handles['execute']}/run/{handles['execute_run']}",
        "plan": "plasm://session/s0/p/1",
        "plan with the session's id": f"plasm://session/{handles['session']}/p/1",
        "bare": "plasm://r/1",
        "heap": f"heap://{handles['heap']}",
    }


# Each tool: the calls with another tenant's handles. None where a tool takes no handle; the end of test_isolation.py tests those.
TOOLS = {
    "plasm_context": None,  # finds sessions by intent within the tenant
    "discover_capabilities": None,  # reads the registry as the tenant sees it
    "list_registry": None,
    "plasm": lambda handles: [
        {"logical_session_ref": handles["session"], "program": "Project"},
        {"logical_session_ref": "s0", "program": "Project"},
        {"logical_session_ref": handles["session"], "program": "page(s0_pg1)"},
    ],
    "plasm_run": lambda handles: [
        {"logical_session_ref": handles["session"], "program": "Project"},
        {"logical_session_ref": "s0", "program": "Project"},
        {"logical_session_ref": handles["session"], "program": "page(s0_pg1)"},
        {"logical_session_ref": handles["session"], "program": "wait(s0_o1)"},
        {"logical_session_ref": handles["session"], "program": "cancel(s0_o1)"},
        {"logical_session_ref": handles["session"], "plan_commit_ref": "pc0"},
        {"logical_session_ref": handles["session"], "program": WRITE, "force": True, "request_id": "r1"},
    ],
    "read_artifact": lambda handles: [{"uri": uri} for uri in uris(handles).values()],
    "run_js": lambda handles: [
        {"code": "typeof secret", "heap": handles["heap"]},
        {"code": "typeof secret", "logical_session_ref": handles["session"]},
        {"code": "typeof secret", "heap": handles["heap"], "require_heap": True},
    ],
    "get_execution": lambda handles: [{"execution_id": handles["execution"]}],
    "get_execution_output": lambda handles: [{"execution_id": handles["execution"]}],
    "cancel_execution": lambda handles: [{"execution_id": handles["execution"]}],
    "list_executions": None,
    "list_sessions": None,
    "query_heaps_by_tags": None,
    "list_session_snapshots": lambda handles: [{"logical_session_ref": handles["session"]}],
    "get_heap_tags": lambda handles: [{"heap": handles["heap"]}],
    "set_heap_tags": lambda handles: [{"heap": handles["heap"], "tags": {"of": "beta"}}],
    "delete_heap_tags": lambda handles: [{"heap": handles["heap"]}],
    "fork_session": lambda handles: [{"logical_session_ref": handles["session"], "intent": "a fork"}],
    "promote_session": lambda handles: [{"logical_session_ref": handles["session"]}],
    "rewind_session": lambda handles: [{"logical_session_ref": handles["session"], "index": 0}],
    "diff_heaps": lambda handles: [{"a": handles["heap"], "b": handles["heap"]}],
}


# A tenant with a session of its own, and handles that only the other tenant's session has: the call and the code of its answer.
IN_OWN_SESSION = [
    ("plasm_run", {"logical_session_ref": "s0", "program": "page(s0_pg1)"}, "no_handle"),
    ("plasm_run", {"logical_session_ref": "s0", "program": "wait(s0_o1)"}, "no_handle"),
    ("plasm_run", {"logical_session_ref": "s0", "program": "cancel(s0_o1)"}, "no_handle"),
    ("plasm_run", {"logical_session_ref": "s0", "plan_commit_ref": "pc0"}, "no_commit"),
    ("read_artifact", {"uri": "plasm://session/s0/r/1"}, "no_artifact"),
    ("read_artifact", {"uri": "plasm://session/s0/p/1"}, "no_artifact"),
    ("read_artifact", {"uri": "plasm://r/1"}, "no_artifact"),
]


# Each route: the requests with another tenant's handles. None where neither path nor body has one.
ROUTES = {
    "GET /healthz": None,
    "GET /readyz": None,
    "GET /openapi.json": None,
    "POST /v1/discover": None,
    "GET /v1/registry": None,
    "GET /v1/registry/{id}": None,
    "GET /v1/sessions": None,
    "GET /v1/sessions/{logical_session}": lambda handles: [
        ("GET", f"/v1/sessions/{handles['session']}", b""),
        ("GET", "/v1/sessions/s0", b""),
        ("GET", f"/v1/sessions/{urllib.parse.quote(INTENT)}", b""),
    ],
    "GET /v1/traces": None,
    "GET /v1/traces/{logical_session}": lambda handles: [
        ("GET", f"/v1/traces/{handles['session']}", b""),
        ("GET", "/v1/traces/s0", b""),
        ("GET", f"/v1/traces/{urllib.parse.quote(INTENT)}", b""),
    ],
    "GET /metrics": None,  # counts of all tenants are for the operator
    "POST /api/exec": lambda handles: [
        ("POST", "/api/exec", {"code": "typeof secret", "heap": handles["heap"]}),
        ("POST", "/api/exec", {"code": "typeof secret", "logical_session_ref": handles["session"]}),
    ],
    "GET /api/executions": None,
    "GET /api/executions/{id}": lambda handles: [("GET", f"/api/executions/{handles['execution']}", b"")],
    "GET /api/executions/{id}/output": lambda handles: [("GET", f"/api/executions/{handles['execution']}/output", b"")],
    "POST /api/executions/{id}/cancel": lambda handles: [("POST", f"/api/executions/{handles['execution']}/cancel", b"")],
    "GET /api/sessions": None,
    "GET /api/sessions/{name}/snapshots": lambda handles: [("GET", f"/api/sessions/{handles['session']}/snapshots", b"")],
    "GET /api/heaps/{key}": lambda handles: [("GET", f"/api/heaps/{handles['heap']}", b"")],
    "GET /api/heaps/{key}/tags": lambda handles: [("GET", f"/api/heaps/{handles['heap']}/tags", b"")],
    "POST /api/heaps/{key}/tags": lambda handles: [("POST", f"/api/heaps/{handles['heap']}/tags", {"tags": {"of": "beta"}})],
    "POST /execute": lambda handles: [
        ("POST", "/execute", {"entry_id": "demo", "entities": ["Project"], "logical_session_id": handles["session"]}),
    ],
    "GET /execute/{prompt_hash}/{session}": lambda handles: [("GET", execute_path(handles), b""), ("GET", session_path(handles), b"")],
    "POST /execute/{prompt_hash}/{session}": lambda handles: [
        ("POST", execute_path(handles), {"program": "Project"}),
        ("POST", session_path(handles), {"program": "page(s0_pg1)"}),
        ("POST", f"{session_path(handles)}?mode=plan", {"program": "Project"}),
        ("POST", f"{session_path(handles)}?plan_commit_ref=pc0", {}),
        ("POST", f"{session_path(handles)}?force=true&request_id=r1", {"program": WRITE}),
    ],
    "POST /execute/{prompt_hash}/{session}/context": lambda handles: [
        ("POST", f"{execute_path(handles)}/context", {"seeds": SEEDS[:1]}),
    ],
    "GET /execute/{prompt_hash}/{session}/operations/{handle}/stream": lambda handles: [
        ("GET", f"{execute_path(handles)}/operations/s0_o1/stream", b""),
        ("GET", f"{session_path(handles)}/operations/s0_o1/stream", b""),
    ],
    "GET /execute/{prompt_hash}/{session}/artifacts/{run}": lambda handles: [
        ("GET", f"{execute_path(handles)}/artifacts/1", b""),
        ("GET", f"{execute_path(handles)}/artifacts/{handles['execute_run']}", b""),
        ("GET", f"{session_path(handles)}/artifacts/{handles['run']}", b""),
    ],
}


def execute_path(handles):
    return f"/execute/{handles['prompt_hash']}/{handles['execute']}"


def session_path(handles):
    return f"/execute/{handles['bound_hash']}/{handles['bound']}"


# The parts of an answer that differ between two runs of the same code.
OF_A_RUN = r'"(execution_id|heap|started_at|completed_at)":"[^"]*",?'


def without_handles(text, handles):
    """The text without its handles and without the parts that differ between two runs."""
    for value in handles.values():
        if value and len(value) > 8:
            text = text.replace(value, "HANDLE")
    return re.sub(OF_A_RUN, "", re.sub(r'"x-request-id":"[^"]*"', "", text))


def run_cli(installation, *arguments):
    command = [TOKAMAK, *arguments, "--config", installation.config, "--data", installation.data]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}).stdout
