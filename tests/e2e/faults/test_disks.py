"""Storage that fails under a running server: a full disk, and a folder or a disk that becomes read-only.

Each time the call that needs the storage fails with a code and says what is wrong, everything else goes on, and the same server
goes on when the fault is gone.

Invariant: only small file systems of our own are filled or made read-only, which needs root.
"""

import json
import os
import shutil
import subprocess
import time

import pytest

from lib.answers import seeds
from lib.client import modern_call, refusal_of, request, text_of
from lib.disks import fill, small_disk
from lib.faults import PLAN, RUN, assert_alive, assert_runs, open_session
from lib.server import Server, run_binary

pytestmark = [
    pytest.mark.steps,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounting a small disk needs root"),
]


def run_until_refused(server):
    """Runs programs until one is refused: SQLite has room in its log for a few commits, and large results use it up."""
    for _ in range(400):
        answer = modern_call(server.port, "plasm_run", {**RUN, "program": "Ticket"})
        if answer["result"].get("isError"):
            return refusal_of(answer)
    raise AssertionError("400 results were kept on a full disk")


# --- a full disk


@pytest.fixture(scope="module")
def disk():
    with small_disk() as folder:
        yield folder


@pytest.fixture(scope="module")
def server(disk):
    with Server(data=disk / "data") as started:
        open_session(started)
        assert_runs(started)
        yield started


@pytest.fixture(scope="module")
def filler(disk, server):
    """The file that fills the disk after the server has started."""
    return fill(disk)


def test_on_a_full_disk_a_run_is_refused_with_storage_full_and_what_to_do(server, filler):
    refusal = run_until_refused(server)
    assert refusal.startswith("storage_full: ") and "space" in refusal or "full" in refusal, refusal


def test_on_a_full_disk_the_server_is_not_ready(server, filler):
    # A result is used for a second, so the first may be from before.
    deadline = time.monotonic() + 20
    while (answer := request(server.port, "GET", "/readyz")).status == 200:
        assert time.monotonic() < deadline, "ready on a full disk"
        time.sleep(0.3)
    assert answer.status == 503 and json.loads(answer.body)["code"] == "storage_full", answer
    assert request(server.port, "GET", "/healthz").status == 200


def test_on_a_full_disk_plans_are_made_and_old_results_are_read(server, filler):
    assert_alive(server)
    assert text_of(modern_call(server.port, "plasm_context", {"intent": "faults", "seeds": seeds("Project")}))
    assert "OPS" in text_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))


def test_when_the_disk_has_room_again_the_same_server_goes_on_and_nothing_was_lost(server, filler):
    filler.unlink()
    assert_runs(server)
    deadline = time.monotonic() + 20
    while request(server.port, "GET", "/readyz").status != 200:
        assert time.monotonic() < deadline, "not ready although there is room"
        time.sleep(0.3)
    open_session(server, "another")
    assert "OPS" in text_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))


def test_a_server_that_was_killed_on_a_full_disk_starts_when_there_is_room_with_everything_it_had(disk, server):
    filler = fill(disk)
    server.kill()
    filler.unlink()
    with Server(data=disk / "data") as again:
        assert "Session unchanged" in open_session(again)
        assert_runs(again)


# --- a folder and a disk that become read-only


@pytest.fixture(scope="module")
def second_disk():
    with small_disk() as folder:
        yield folder


@pytest.fixture(scope="module")
def blobs_server(second_disk):
    with Server(data=second_disk / "data") as started:
        open_session(started)
        assert_runs(started)
        yield started


@pytest.fixture(scope="module")
def read_only_blobs(second_disk, blobs_server):
    """Makes the folder of results read-only; the database is open and stays writable."""
    blobs = second_disk / "data" / "blobs"
    subprocess.run(["mount", "--bind", blobs, blobs], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", blobs], check=True)
    yield blobs
    if os.path.ismount(blobs):
        subprocess.run(["umount", "--lazy", blobs], check=True)


def test_with_a_read_only_folder_of_results_a_run_is_refused_with_storage_unavailable(blobs_server, read_only_blobs):
    refusal = refusal_of(modern_call(blobs_server.port, "plasm_run", {**RUN, "program": "Ticket"}))
    assert refusal.startswith("storage_unavailable: "), refusal


def test_with_a_read_only_folder_of_results_plans_are_made_and_old_results_are_read(blobs_server, read_only_blobs):
    assert_alive(blobs_server)
    assert text_of(modern_call(blobs_server.port, "plasm", PLAN)).startswith("plan ok")
    assert "OPS" in text_of(modern_call(blobs_server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))


def test_when_the_folder_can_be_written_again_the_same_server_goes_on(blobs_server, read_only_blobs):
    subprocess.run(["umount", "--lazy", read_only_blobs], check=True)
    text_of(modern_call(blobs_server.port, "plasm_run", {**RUN, "program": "Ticket"}))


def test_a_start_on_a_read_only_disk_is_refused_and_says_what_to_do(second_disk, blobs_server):
    blobs_server.stop(30)
    subprocess.run(["mount", "-o", "remount,ro", second_disk], check=True)
    try:
        ended = run_binary("serve", "--port", "0", "--data", second_disk / "data")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", second_disk], check=True)
    refusal = ended.stderr
    assert ended.returncode == 1 and "cannot write to" in refusal and "choose another" in refusal, refusal


def test_when_the_disk_can_be_written_again_everything_is_there(second_disk, blobs_server):
    with Server(data=second_disk / "data") as again:
        assert "Session unchanged" in open_session(again)
