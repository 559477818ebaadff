"""A data folder of an older format: it is migrated at the first start, unless a process of the older version still uses it.

The older format is made from a folder of the binary under test: format 3 differs from format 4 by a table and a column, which are
empty as long as no row has index entries.
"""

import os
import sqlite3
import subprocess
import sys

import pytest

from lib.faults import assert_runs, open_session
from lib.server import Server, run_binary

HOLD = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT count(*) FROM row').fetchone(); print(flush=True); sys.stdin.read()"


def version_of(data):
    database = sqlite3.connect(data / "tokamak.db")
    try:
        return database.execute("PRAGMA user_version").fetchone()[0]
    finally:
        database.close()


@pytest.fixture
def old_folder(monkeypatch):
    """A folder of format 3 with a session that has run once."""
    with Server() as server:
        open_session(server)
        assert_runs(server)
        assert server.stop(30) == 0
    database = sqlite3.connect(server.data / "tokamak.db")
    database.executescript("DROP TABLE row_index; ALTER TABLE row DROP COLUMN keys; PRAGMA user_version = 3")
    database.close()
    # The lines about a migration come before the ready line, which `Server` expects first.
    monkeypatch.setenv("RUST_LOG", "error")
    return server.data


def test_the_first_start_migrates_and_a_clean_stop_removes_the_copy(old_folder):
    copy = old_folder / "tokamak.db.format-3"
    with Server(data=old_folder) as server:
        assert copy.exists()
        assert_runs(server)
        server.kill()
    assert copy.exists(), "a kill is not a clean stop"
    with Server(data=old_folder) as server:
        assert_runs(server)
        assert server.stop(30) == 0
    assert not copy.exists()
    assert not (old_folder / "tokamak.db.migrating").exists()
    assert version_of(old_folder) == 4


def test_the_copy_is_the_folder_as_it_was(old_folder):
    with Server(data=old_folder) as server:
        server.kill()
    for suffix in ("", "-wal", "-shm"):
        (old_folder / f"tokamak.db{suffix}").unlink(missing_ok=True)
    os.rename(old_folder / "tokamak.db.format-3", old_folder / "tokamak.db")
    assert version_of(old_folder) == 3
    with Server(data=old_folder) as server:
        assert_runs(server)


def test_an_older_process_on_the_folder_is_named_and_nothing_changes(old_folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, old_folder / "tokamak.db"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        holder.stdout.readline()
        refused = run_binary("serve", "--port", 0, "--data", old_folder)
        assert refused.returncode == 1, refused
        assert f"process {holder.pid} still uses it" in refused.stderr, refused.stderr
        assert "end every Tokamak process on this folder" in refused.stderr, refused.stderr
        assert not (old_folder / "tokamak.db.format-3").exists()
    finally:
        holder.communicate()
    assert version_of(old_folder) == 3
    with Server(data=old_folder) as server:
        assert_runs(server)


def test_a_command_migrates_too_and_tells_the_progress(old_folder, monkeypatch):
    monkeypatch.setenv("RUST_LOG", "info")
    listed = run_binary("session", "list", "--data", old_folder)
    assert listed.returncode == 0, listed
    for part in ("from format 3 to format 4 starts", "pages are copied", "step 4 (`index entries`) is durable", "is complete"):
        assert part in listed.stderr, listed.stderr
    assert version_of(old_folder) == 4
