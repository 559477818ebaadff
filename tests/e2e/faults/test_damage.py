"""Damaged and missing blobs, rows and pages: each is named when it is needed, and everything else goes on."""

import json
import random
import shutil
import sqlite3
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.answers import seeds
from lib.client import modern_call, refusal_of, text_of
from lib.faults import RUN, assert_alive, assert_runs, open_session
from lib.server import Server

pytestmark = pytest.mark.steps(again_for="damaged")


def blobs(data):
    return [path for path in (data / "blobs").rglob("*") if path.is_file() and path.parent.name not in ("tmp", "damaged")]


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def new_blob_of(server):
    """The blob that a run of a large list made."""
    before = set(blobs(server.data))
    text_of(modern_call(server.port, "plasm_run", {**RUN, "program": "Ticket"}))
    made = [path for path in blobs(server.data) if path not in before]
    assert len(made) == 1, f"{len(made)} new blobs"
    return made[0]


# --- blobs


def truncated(data):
    return data[: len(data) // 2]


@pytest.fixture(scope="module", params=[truncated, flipped], ids=["truncated", "bit-flipped"])
def damaged(request):
    """A server whose second result is in a damaged blob."""
    with Server() as server:
        open_session(server)
        assert_runs(server)
        blob = new_blob_of(server)
        blob.write_bytes(request.param(blob.read_bytes()))
        yield SimpleNamespace(server=server, blob=blob, name=blob.parent.name + blob.name)


def test_reading_a_damaged_blob_is_refused_with_its_name(damaged):
    refusal = refusal_of(modern_call(damaged.server.port, "read_artifact", {"uri": "plasm://session/s0/r/2"}))
    assert refusal.startswith("lost_artifact: ") and damaged.name in refusal, refusal


def test_a_damaged_blob_is_set_aside_and_the_rest_goes_on(damaged):
    assert (damaged.server.data / "blobs" / "damaged" / damaged.name).exists() and not damaged.blob.exists()
    assert "OPS" in text_of(modern_call(damaged.server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))
    assert_runs(damaged.server)
    assert_alive(damaged.server)


def test_reading_a_missing_blob_is_refused_with_its_name_and_the_rest_goes_on():
    with Server() as server:
        open_session(server)
        assert_runs(server)
        blob = new_blob_of(server)
        blob.unlink()
        refusal = refusal_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/2"}))
        assert blob.parent.name + blob.name in refusal, refusal
        assert_runs(server)


# --- the database


@pytest.fixture(scope="module")
def server_with_damaged_row():
    with Server() as server:
        open_session(server, "sound")
        open_session(server, "wounded", ("Person",))
        assert server.stop(30) == 0
    database = server.data / "tokamak.db"
    # Rows that are still in the log of SQLite move into the file.
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = database.read_bytes()
    at = content.find(b'"intent":"wounded"')
    assert at > 0, "the intent of the session is not in the database file"
    database.write_bytes(content[:at] + b'"intent":"wOunded"' + content[at + 18 :])
    with Server(data=server.data) as started:
        yield started


def test_the_session_of_a_damaged_row_is_refused_with_storage_damaged_and_the_name_of_the_row(server_with_damaged_row):
    answer = modern_call(server_with_damaged_row.port, "plasm_context", {"intent": "wounded", "seeds": seeds("Person")})
    refusal = refusal_of(answer)
    assert refusal.startswith("storage_damaged: ") and "logical_session/" in refusal, refusal


def test_every_session_without_a_damaged_row_goes_on(server_with_damaged_row):
    assert "Session unchanged" in open_session(server_with_damaged_row, "sound")
    assert_runs(server_with_damaged_row)
    assert_alive(server_with_damaged_row)


def test_broken_pages_are_refused_at_the_start_or_named_in_a_call_and_the_rest_goes_on():
    # Each page is broken in a copy of one folder. A session is refused or unchanged, never silently another one.
    with Server() as server:
        for number in range(40):
            open_session(server, f"session {number}", ("Project",))
        assert server.stop(30) == 0
    whole = (server.data / "tokamak.db").read_bytes()
    pages = range(1, len(whole) // 4096)
    chance = random.Random(7)
    counts = [broken_page(server.data, whole, page) for page in chance.sample(pages, 6)]
    assert any(refused for refused, _ in counts), "no broken page was noticed"
    assert sum(unchanged for _, unchanged in counts) > 60, f"too little could still be used: {counts}"


def broken_page(data, whole, page):
    """Breaks one page in a copy. Returns the number of refused and of unchanged sessions."""
    copy = Path(tempfile.mkdtemp(prefix="data-")) / "copy"
    shutil.copytree(data, copy)
    start, end = page * 4096, (page + 1) * 4096
    (copy / "tokamak.db").write_bytes(whole[:start] + b"\xa5" * 4096 + whole[end:])
    try:
        with Server(data=copy) as server:
            refused, unchanged = 0, 0
            for number in range(40):
                seed = {"intent": f"session {number}", "seeds": seeds("Project")}
                result = modern_call(server.port, "plasm_context", seed)["result"]
                text = result["content"][0]["text"]
                if result.get("isError"):
                    assert text.startswith("storage_damaged: "), f"page {page}: {text}"
                    refused += 1
                elif "**The earlier session was missing or expired.**" in text:
                    # The taught table cannot be read, so the session has a new symbol space, and its caller is told.
                    refused += 1
                else:
                    assert "Session unchanged" in text, f"page {page}: session {number} is a new one: {json.dumps(text)}"
                    unchanged += 1
            assert_alive(server)
            return refused, unchanged
    except AssertionError as problem:
        if "the server ended with 1" not in str(problem):
            raise
        assert "tokamak.db" in str(problem) and "damaged" in str(problem), problem
        return 1, 0
