"""A data folder with heaps of every kind, and the kinds of damage that a test does to a copy of it while no process runs.

The folder has a session whose head is large (a blob in a folder), one whose head is small (a row of SQLite), one that no damage
touches, and one with a name.
"""

import json
import shutil
import sqlite3
import tempfile
import zlib
from contextlib import closing
from pathlib import Path

from lib.javascript import ModernConnection, open_session, value_of
from lib.server import Server

# Different for each name, and too large for a row.
LARGE = "const owner = '{name}'; let rows = Array.from({{length: 20000}}, (_, i) => `{name} ${{i * 7919 % 10007}}`); rows.length"
SMALL = "const owner = '{name}'; let rows = ['{name} 0']; rows.length"
FIRST = "let count = 0, mine = '{name}'"
LOOK = "[owner, rows[0], ++count]"
# A run that cannot be stored is tried again until its deadline; one on a damaged heap is not.
LIMITS = {"timeout_ms": 1500, "wait_ms": 5000}


class DataFolder:
    """The folder, its sessions and their logs."""

    def __init__(self):
        self.data = Path(tempfile.mkdtemp(prefix="data-"))
        with Server(self.data) as server:
            agent = ModernConnection(server.port)
            self.refs, self.logs = {}, {}
            for name, code in (("large", LARGE), ("small", SMALL), ("sound", LARGE)):
                ref = open_session(agent, name)
                value_of(agent.tool("run_js", code=FIRST.format(name=name), logical_session_ref=ref))
                value_of(agent.tool("run_js", code=code.format(name=name), logical_session_ref=ref))
                self.refs[name], self.logs[name] = ref, log_of(agent, ref)
            self.logs["named"] = [value_of(ModernConnection(server.port, "named").tool("run_js", code="globalThis.n = 1; n"))["heap"]]
            assert server.stop(15) == 0
        blobs = {name: self.blob_of(self.head(name)) for name in ("large", "sound")}
        assert all(path.is_file() for path in blobs.values()), blobs
        assert row_of(self.data, self.head("small"))[0].get("blob") is None, "a small heap is in its row"
        self.blobs = {name: path.relative_to(self.data) for name, path in blobs.items()}

    def head(self, name):
        return self.logs[name][-1]["output_heap"]

    def first(self, name):
        return self.logs[name][0]["output_heap"]

    def blob_of(self, heap):
        name = row_of(self.data, heap)[0]["blob"]
        return self.data / "blobs" / name[:2] / name[2:]

    def copy(self):
        copy = Path(tempfile.mkdtemp(prefix="copy-")) / "data"
        shutil.copytree(self.data, copy)
        return copy


def log_of(agent, ref):
    return value_of(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]


# --- the database


def row_of(data, heap):
    """The head of a heap's row, and the image in it."""
    with closing(sqlite3.connect(data / "tokamak.db")) as database, database:
        (value,) = database.execute("SELECT value FROM row WHERE tbl = 'heap' AND id = ?", (heap,)).fetchone()
    head, _, image = value.partition(b"\n")
    return json.loads(head), image


def write_row(data, heap, head, image, summed=True):
    """Replaces the row of a heap. With `summed` the row has a correct checksum, as if the damage were older than the row."""
    value = json.dumps(head, separators=(",", ":")).encode() + b"\n" + image
    with closing(sqlite3.connect(data / "tokamak.db")) as database, database:
        of = "WHERE tbl = 'heap' AND id = ?"
        tenant, version = database.execute(f"SELECT tenant, version FROM row {of}", (heap,)).fetchone()
        content = b"\0".join([tenant.encode(), b"heap", heap.encode(), b""]) + version.to_bytes(8, "little") + value
        if summed:
            database.execute(f"UPDATE row SET value = ?, sum = ? {of}", (value, zlib.crc32(content), heap))
        else:
            database.execute(f"UPDATE row SET value = ? {of}", (value, heap))


def remove_row(data, heap):
    with closing(sqlite3.connect(data / "tokamak.db")) as database, database:
        database.execute("DELETE FROM row WHERE tbl = 'heap' AND id = ?", (heap,))


def flipped(bytes_, at=None):
    at = len(bytes_) // 2 if at is None else at
    return bytes_[:at] + bytes([bytes_[at] ^ 4]) + bytes_[at + 1 :]


# --- kinds of damage: the session whose head is damaged, and the change of a copy of the folder


def blob(change):
    def damage(folder, data):
        path = data / folder.blobs["large"]
        changed = change(path.read_bytes(), (data / folder.blobs["sound"]).read_bytes())
        path.unlink() if changed is None else path.write_bytes(changed)

    return "large", damage


def row(change, summed=True):
    def damage(folder, data):
        heap = folder.head("small")
        head, image = change(*row_of(data, heap), folder, data)
        write_row(data, heap, head, image, summed)

    return "small", damage


def other_blob(folder, data):
    """The row of the large heap names the blob of another heap."""
    head, image = row_of(data, folder.head("large"))
    write_row(data, folder.head("large"), {**head, "blob": row_of(data, folder.head("sound"))[0]["blob"]}, image)


DAMAGES = [
    ("a blob cut in half", *blob(lambda mine, _: mine[: len(mine) // 2])),
    ("an empty blob", *blob(lambda mine, _: b"")),
    ("a blob with a bit that flipped", *blob(lambda mine, _: flipped(mine))),
    ("a blob with another heap's bytes", *blob(lambda _, other: other)),
    ("a blob that went", *blob(lambda *_: None)),
    ("a row that names another heap's blob", "large", other_blob),
    ("a row with a bit that flipped", *row(lambda head, image, *_: (head, flipped(image)), summed=False)),
    ("an object with a bit that flipped", *row(lambda head, image, *_: (head, flipped(image)))),
    ("an object whose last byte is another one", *row(lambda head, image, *_: (head, flipped(image, len(image) - 1)))),
    ("an object whose header is another one", *row(lambda head, image, *_: (head, flipped(image, 12)))),
    ("an object cut in half", *row(lambda head, image, *_: (head, image[: len(image) // 2]))),
    ("an object that is empty", *row(lambda head, image, *_: (head, b""))),
    ("a row with another heap's content", *row(lambda head, image, folder, data: row_of(data, folder.first("sound")))),
    ("a row that went", "small", lambda folder, data: remove_row(data, folder.head("small"))),
    ("what a heap stands on went", "small", lambda folder, data: remove_row(data, folder.first("small"))),
]
MADE_AGAIN = {"a blob with a bit that flipped", "a blob that went", "an object with a bit that flipped", "a row with another heap's content"}
