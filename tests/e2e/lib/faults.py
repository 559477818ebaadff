"""A session that a storage fault must not harm, and the checks that a server still works."""

from lib.answers import seeds, tables
from lib.client import modern_call, request, text_of
from lib.server import assert_did_not_panic

RUN = {"logical_session_ref": "s0", "program": "Project[key, name]"}
PLAN = {"logical_session_ref": "s0", "program": "Ticket.limit(2)"}


def open_session(server, intent="faults", entities=("Project", "Ticket")):
    return text_of(modern_call(server.port, "plasm_context", {"intent": intent, "seeds": seeds(*entities)}))


def assert_runs(server):
    rows = tables(text_of(modern_call(server.port, "plasm_run", RUN)))["result"]
    assert [row["key"] for row in rows] == ["API", "DOC", "MOB", "OPS", "SEC", "WEB"], rows


def assert_alive(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    assert request(server.port, "GET", "/healthz").status == 200
    assert_did_not_panic(server)
