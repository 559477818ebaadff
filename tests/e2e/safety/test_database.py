"""The database is what it was: replaced and deleted files are noticed before the next acknowledgement, and a lost database is not
replaced by an empty one."""

import json
import shutil
import sqlite3

from lib.client import modern_call, request
from lib.faults import open_session
from lib.server import Server, run_binary


def opened(server, count, prefix):
    """Opens sessions one by one and returns the intents whose opening was acknowledged."""
    acknowledged = []
    for number in range(count):
        intent = f"{prefix} {number}"
        arguments = {"intent": intent, "seeds": [{"api": "demo", "entity": "Project"}]}
        answer = modern_call(server.port, "plasm_context", arguments)
        if "result" in answer and not answer["result"].get("isError"):
            acknowledged.append(intent)
    return acknowledged


def intents(data):
    """The intents that a server finds in the data folder after a crash."""
    with Server(data=data) as server:
        answer = request(server.port, "GET", "/v1/sessions?limit=1000")
        return {session["intent"] for session in json.loads(answer.body)["sessions"]}


def test_what_is_acknowledged_after_the_wal_was_deleted_is_kept():
    with Server() as server:
        first = opened(server, 10, "before")
        for suffix in ("-wal", "-shm"):
            (server.data / f"tokamak.db{suffix}").unlink()
        later = opened(server, 40, "after")
        assert len(later) >= 38, later
        assert "deleted or replaced" in server.log_text()
        server.kill()
    found = intents(server.data)
    assert set(later) <= found, set(later) - found
    assert set(first) <= found, "the commits in the deleted WAL were moved into the database"


def test_what_is_acknowledged_after_the_database_was_replaced_is_kept():
    with Server() as server:
        opened(server, 5, "before")
        backup = server.data / "backup.db"
        with sqlite3.connect(server.data / "tokamak.db") as connection:
            connection.execute("VACUUM INTO ?", (str(backup),))
        connection.close()
        opened(server, 5, "lost with the replaced file")
        for suffix in ("-wal", "-shm"):
            (server.data / f"tokamak.db{suffix}").unlink()
        shutil.move(backup, server.data / "tokamak.db")
        later = opened(server, 40, "after")
        assert len(later) >= 38, later
        server.kill()
    found = intents(server.data)
    assert set(later) <= found, set(later) - found


def test_a_missing_database_beside_its_blobs_is_refused_unless_it_is_meant():
    with Server() as server:
        open_session(server)
        modern_call(server.port, "plasm_run", {"logical_session_ref": "s0", "program": "Ticket"})
        assert server.stop(30) == 0
    database = server.data / "tokamak.db"
    database.unlink()
    refused = run_binary("serve", "--port", "0", "--data", server.data)
    assert refused.returncode == 1 and "--new" in refused.stderr and "backup" in refused.stderr, refused.stderr
    assert not database.exists()
    assert run_binary("session", "list", "--data", server.data).returncode == 1
    with Server(data=server.data, arguments=("--new",)):
        assert database.exists()
    with Server(data=server.data):
        pass
