"""Files are for their owner: whatever the umask is, and whatever an earlier version or a copy left behind."""

import os
import subprocess
from pathlib import Path

import pytest

from lib.client import modern_call, text_of
from lib.faults import open_session
from lib.javascript import ModernConnection, value_of
from lib.server import TOKAMAK, Server, new_folder, run_binary


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def exposed(folder):
    """Every file and folder with a permission for other users."""
    paths = [Path(folder), *Path(folder).rglob("*")]
    return {str(path.relative_to(folder)): oct(path.stat().st_mode) for path in paths if path.stat().st_mode & 0o077}


def use(server):
    """Makes rows, blobs, heaps and plans."""
    open_session(server)
    text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": "s0", "program": "Ticket"}))
    return value_of(ModernConnection(server.port).tool("run_js", code="globalThis.x = 'y'.repeat(300000)"))["heap"]


def test_a_new_data_folder_is_for_its_owner_with_any_umask(open_umask):
    data = new_folder("parent-") / "data"
    secret = {**os.environ, "TOKAMAK_SECRETS_KEY": "a passphrase"}
    subprocess.run([TOKAMAK, "secret", "set", "T", "--data", data], input="value", text=True, env=secret, check=True)
    with Server(data=data) as server:
        heap = use(server)
        names = {path.name for path in data.iterdir()}
        assert {"tokamak.db", "tokamak.db-wal", "tokamak.db-shm", "secrets.enc", "blobs", "processes"} <= names, names
        # The suite itself copies the compiled engine into the folder.
        assert {name: mode for name, mode in exposed(data).items() if not name.startswith("engines")} == {}
        out = new_folder("export-") / "heap.bin"
        exported = run_binary("heap", "export", heap, "-o", out, "--data", data)
        assert exported.returncode == 0, exported.stderr
        assert out.stat().st_mode & 0o777 == 0o600


def test_a_data_folder_that_others_can_read_is_repaired_with_a_warning():
    with Server() as server:
        use(server)
    data = server.data
    data.chmod(0o755)
    for name in ("tokamak.db", "tokamak.db-wal", "tokamak.db-shm"):
        if (data / name).exists():
            (data / name).chmod(0o644)
    with Server(data=data) as again:
        assert data.stat().st_mode & 0o777 == 0o700
        assert all((data / f"tokamak.db{suffix}").stat().st_mode & 0o777 == 0o600 for suffix in ("", "-wal", "-shm"))
        assert "other users of this machine could read this folder" in again.log_text()
        open_session(again)


def test_a_folder_of_other_people_is_refused_and_left_as_it_is():
    home = new_folder("home-")
    (home / "letter.txt").write_text("dear")
    home.chmod(0o755)
    refused = run_binary("serve", "--port", "0", "--data", home)
    assert refused.returncode == 1 and "choose a folder of its own" in refused.stderr, refused.stderr
    assert home.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in home.iterdir()] == ["letter.txt"]


def test_the_blobs_and_the_database_elsewhere_are_for_their_owner_too(open_umask):
    parent = new_folder("parent-")
    arguments = ("--blobs", parent / "elsewhere", "--session-db-path", parent / "rows.db")
    with Server(data=parent / "data", arguments=arguments) as server:
        use(server)
        open_session(server, "another", ("Project",))
        assert exposed(parent / "elsewhere") == {}
        assert all((parent / f"rows.db{suffix}").stat().st_mode & 0o777 == 0o600 for suffix in ("", "-wal", "-shm"))
