"""Collection works on a full disk, because it is what makes room there.

Invariant: only a small file system of our own is filled, which needs root.
"""

import hashlib
import os
import shutil
import time

import pytest

from lib.disks import fill, small_disk
from lib.faults import assert_runs, open_session
from lib.server import Server, run_binary

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounting a small disk needs root")
THREE_DAYS = 3 * 24 * 3600


def unreferenced_blob(data):
    """A blob that no row names and that nothing has put for days."""
    content = os.urandom(2 << 20)
    name = hashlib.sha256(content).hexdigest()
    path = data / "blobs" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    long_ago = time.time() - THREE_DAYS
    os.utime(path, (long_ago, long_ago))
    return path


def test_collection_deletes_blobs_on_a_full_disk():
    with small_disk() as disk:
        with Server(data=disk / "data") as server:
            open_session(server)
            assert_runs(server)
            blob = unreferenced_blob(server.data)
            fill(disk)
            collected = run_binary("gc", "--data", server.data)
            assert collected.returncode == 0, collected.stderr
            assert not blob.exists(), collected.stdout
            assert_runs(server)
