"""Stored heaps that are damaged, exchanged or gone, under the real engine and store; and files of heaps that are not whole.

One data folder has a session whose head is large (a blob in a folder), one whose head is small (a row of SQLite), one that is
left alone, and one with a name. For each damage the folder is copied, the damage done while no process runs, and a server
started on it.

Invariants: a run on a damaged heap, and one in a session that stands on it, is an error that names the key; it never begins on
a fresh heap or on another one; the head and the log stay; every other session goes on. Nothing of a file that is refused is
there afterwards. Only the standard library.
"""

import json
import shutil
import sqlite3
import subprocess
import tempfile
import zlib
from pathlib import Path

from answers import seeds
from harness import TOKAMAK, Server, Suite, compiled_before
from js_calls import NOWHERE, Modern, bad, good

suite = Suite("js_damage")
# Different for each name, and too large for a row.
LARGE = "const owner = '{name}'; let rows = Array.from({{length: 20000}}, (_, i) => `{name} ${{i * 7919 % 10007}}`); rows.length"
SMALL = "const owner = '{name}'; let rows = ['{name} 0']; rows.length"
FIRST = "let count = 0, mine = '{name}'"
LOOK = "[owner, rows[0], ++count]"
# A run that cannot be stored is tried again for so long; one on a damaged heap is not.
LIMITS = {"timeout_ms": 1500, "wait_ms": 5000}


class House:
    """The folder that is copied, and what is in it."""

    def __init__(self):
        self.data = Path(tempfile.mkdtemp(prefix="data-"))
        with Server(self.data) as server:
            agent = Modern(server.port)
            self.refs, self.logs = {}, {}
            for name, code in (("large", LARGE), ("small", SMALL), ("sound", LARGE)):
                ref = opened(agent, name)
                good(agent.tool("run_js", code=FIRST.format(name=name), logical_session_ref=ref))
                good(agent.tool("run_js", code=code.format(name=name), logical_session_ref=ref))
                self.refs[name], self.logs[name] = ref, log_of(agent, ref)
            self.logs["named"] = [good(Modern(server.port, "named").tool("run_js", code="globalThis.n = 1; n"))["heap"]]
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


def opened(agent, intent):
    text, error = agent.tool("plasm_context", intent=intent, seeds=seeds("Project"))
    assert not error, text
    return text.split("`s", 1)[1].split("`", 1)[0].join(("s", ""))


def log_of(agent, ref):
    return good(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]


# --- what is in the database


def row_of(data, heap):
    """What the row of a heap says of it, and the object that is in it."""
    with sqlite3.connect(data / "tokamak.db") as database:
        (value,) = database.execute("SELECT value FROM row WHERE tbl = 'heap' AND id = ?", (heap,)).fetchone()
    head, _, object = value.partition(b"\n")
    return json.loads(head), object


def write_row(data, heap, head, object, summed=True):
    """In place of what is there. Where `summed`, its checksum is right: the damage is older than the row, or meant."""
    value = json.dumps(head, separators=(",", ":")).encode() + b"\n" + object
    with sqlite3.connect(data / "tokamak.db") as database:
        of = "WHERE tbl = 'heap' AND id = ?"
        tenant, version = database.execute(f"SELECT tenant, version FROM row {of}", (heap,)).fetchone()
        content = b"\0".join([tenant.encode(), b"heap", heap.encode(), b""]) + version.to_bytes(8, "little") + value
        if summed:
            database.execute(f"UPDATE row SET value = ?, sum = ? {of}", (value, zlib.crc32(content), heap))
        else:
            database.execute(f"UPDATE row SET value = ? {of}", (value, heap))


def remove_row(data, heap):
    with sqlite3.connect(data / "tokamak.db") as database:
        database.execute("DELETE FROM row WHERE tbl = 'heap' AND id = ?", (heap,))


def flipped(bytes_, at=None):
    at = len(bytes_) // 2 if at is None else at
    return bytes_[:at] + bytes([bytes_[at] ^ 4]) + bytes_[at + 1 :]


# --- damages: the session that is hit, and what is done to a copy of the folder


def blob(change):
    def damage(house, data):
        path = data / house.blobs["large"]
        changed = change(path.read_bytes(), (data / house.blobs["sound"]).read_bytes())
        path.unlink() if changed is None else path.write_bytes(changed)

    return "large", damage


def row(change, summed=True):
    def damage(house, data):
        heap = house.head("small")
        head, object = change(*row_of(data, heap), house, data)
        write_row(data, heap, head, object, summed)

    return "small", damage


def other_blob(house, data):
    """The row of the large heap names the blob of another heap."""
    head, object = row_of(data, house.head("large"))
    write_row(data, house.head("large"), {**head, "blob": row_of(data, house.head("sound"))[0]["blob"]}, object)


DAMAGES = [
    ("a blob cut in half", *blob(lambda mine, _: mine[: len(mine) // 2])),
    ("an empty blob", *blob(lambda mine, _: b"")),
    ("a blob with a bit that flipped", *blob(lambda mine, _: flipped(mine))),
    ("a blob with another heap's bytes", *blob(lambda _, other: other)),
    ("a blob that went", *blob(lambda *_: None)),
    ("a row that names another heap's blob", "large", other_blob),
    ("a row with a bit that flipped", *row(lambda head, object, *_: (head, flipped(object)), summed=False)),
    ("an object with a bit that flipped", *row(lambda head, object, *_: (head, flipped(object)))),
    ("an object whose last byte is another one", *row(lambda head, object, *_: (head, flipped(object, len(object) - 1)))),
    ("an object whose header is another one", *row(lambda head, object, *_: (head, flipped(object, 12)))),
    ("an object cut in half", *row(lambda head, object, *_: (head, object[: len(object) // 2]))),
    ("an object that is empty", *row(lambda head, object, *_: (head, b""))),
    ("a row with another heap's content", *row(lambda head, object, house, data: row_of(data, house.first("sound")))),
    ("a row that went", "small", lambda house, data: remove_row(data, house.head("small"))),
    ("what a heap stands on went", "small", lambda house, data: remove_row(data, house.first("small"))),
]
MADE_AGAIN = {"a blob with a bit that flipped", "a blob that went", "an object with a bit that flipped", "a row with another heap's content"}


def names(answer, *keys):
    """An error that names one of these keys, whether it is a run that failed or a refusal."""
    value = bad(answer)
    text = json.dumps(value)
    assert any(key in text for key in keys), f"no key is named: {text[:300]}"
    assert isinstance(value, str) or value["status"] == "failed", f"not at once: {text[:300]}"


def damaged(house, title, name, damage):
    data = house.copy()
    damage(house, data)
    heap, first, ref, log = house.head(name), house.first(name), house.refs[name], house.logs[name]
    gone = "went" in title and name == "small"
    with suite.group(title), Server(data) as server:
        agent = Modern(server.port)
        with suite.case(f"{title}: a run in its session and one on the heap are errors that name it, each time"):
            for _ in range(2):
                names(agent.tool("run_js", code=LOOK, logical_session_ref=ref, **LIMITS), heap, first)
                # A key that is not in storage is the one that may be fresh, and says so.
                if not gone or title.startswith("what"):
                    names(agent.tool("run_js", code="typeof rows", heap=heap, **LIMITS), heap, first)
                for more in ({}, {"logical_session_ref": ref}):
                    asked = {"code": "typeof rows", "heap": heap, "require_heap": True, **more, **LIMITS}
                    names(agent.tool("run_js", **asked), heap, first)
        with suite.case(f"{title}: the log can be read and the head is where it was"):
            assert log_of(agent, ref) == log
            if not title.startswith("what"):
                names(agent.tool("diff_heaps", a=house.head("sound"), b=heap), heap)
        with suite.case(f"{title}: every other session goes on"):
            for other in {"large", "small", "sound"} - {name}:
                ran = good(agent.tool("run_js", code=LOOK, logical_session_ref=house.refs[other]))
                assert ran["result"] == [other, f"{other} 0", 1], ran
            ran = good(Modern(server.port, "named").tool("run_js", code="++n", heap=house.logs["named"][0], require_heap=True))
            assert ran["result"] == 2, ran
        if not title.startswith("what"):
            with suite.case(f"{title}: the session goes back to a heap that is whole, and on from there"):
                entry = good(agent.tool("rewind_session", logical_session_ref=ref, index=0))["entry"]
                assert entry["rewound_to"] == 0, entry
                assert good(agent.tool("run_js", code="[typeof owner, ++count]", logical_session_ref=ref))["result"] == ["undefined", 1]
        with suite.case(f"{title}: the process lives"):
            assert server.process.poll() is None
            assert "panicked" not in Path(server.log).read_text(errors="replace")
            assert server.stop(15) == 0


def made_again(house, title, name, damage, read_before):
    """The code that made a damaged heap, run again: it has the same key. What a session then stands on can be read."""
    data, heap = house.copy(), house.head(name)
    damage(house, data)
    how = "after someone has tried to read it" if read_before else "unread until then"
    with suite.case(f"{title}, {how}: a session that makes the same heap anew stands on one that can be read, or is refused"):
        with Server(data) as server:
            agent = Modern(server.port)
            ref = opened(agent, "again")
            if read_before:
                bad(agent.tool("run_js", code="1", heap=heap, require_heap=True, **LIMITS))
            good(agent.tool("run_js", code=FIRST.format(name=name), logical_session_ref=ref))
            code = (LARGE if name == "large" else SMALL).format(name=name)
            ran, error = agent.tool("run_js", code=code, logical_session_ref=ref, **LIMITS)
            log = log_of(agent, ref)
            assert error or log[-1]["output_heap"] == ran["heap"] == heap, (ran, log)
            assert server.stop(15) == 0
        with Server(data) as server:
            looked, wanted = ("typeof owner", "undefined") if error else (LOOK, [name, f"{name} 0", 1])
            ran, wrong = Modern(server.port).tool("run_js", code=looked, logical_session_ref=ref)
            assert not wrong, f"the head moved to a heap that cannot be read: {json.dumps(ran)[:300]}"
            assert ran["result"] == wanted, ran


# --- files


def folder_of_data():
    data = Path(tempfile.mkdtemp(prefix="data-"))
    compiled_before(data)
    return data


def tokamak(*arguments):
    return subprocess.run([TOKAMAK, "--json", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def export(house, name, folder):
    out = folder / f"{name}.heap"
    done = tokamak("heap", "export", house.head(name), "-o", out, "--data", house.data)
    assert done.returncode == 0, done.stderr
    head, _, rest = out.read_bytes().partition(b"\n")
    head = json.loads(head)
    return head, rest[: head["guest_bytes"]], rest[head["guest_bytes"] :]


def file_of(head, guest, object):
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + guest + object


def files(house):
    folder = Path(tempfile.mkdtemp(prefix="files-"))
    head, guest, object = export(house, "large", folder)
    other_head, _, other = export(house, "sound", folder)
    whole = file_of(head, guest, object)
    assert whole == (folder / "large.heap").read_bytes(), "the file is not made of what it seems to be made of"
    lengths = {"guest_bytes": len(guest) + 1, "object_bytes": len(object) - 1}
    swapped = {**head, "object_bytes": len(other)}
    refused = [
        ("nothing at all", b"", "first line"),
        ("its first line alone", whole[: whole.index(b"\n") + 1], "long"),
        ("half of its engine", whole[: len(guest) // 2], "long"),
        ("half of it", whole[: len(whole) // 2], "long"),
        ("all but the last byte", whole[:-1], "long"),
        ("a byte more", whole + b"\0", "long"),
        ("parts at another place", file_of({**head, **lengths}, guest, object), "heap"),
        *((f"a bit that flipped at {at} of its object", file_of(head, guest, flipped(object, at)), "heap") for at in (0, 9, 10, 41, 42, 60, len(object) // 2, len(object) - 1)),
        ("another heap's object", file_of(swapped, guest, other), head["heap"]),
        ("another heap's key", file_of({**head, "heap": other_head["heap"]}, guest, object), other_head["heap"]),
        ("a key that nothing has", file_of({**head, "heap": NOWHERE}, guest, object), NOWHERE),
        ("an engine that is another than it says", file_of({**head, "engine": NOWHERE}, guest, object), "engine"),
        ("an engine that is none", file_of({**head, "engine": NOWHERE, "guest_bytes": 4}, b"none", object), "engine"),
        ("another size of its memory", file_of({**head, "memory_bytes": head["memory_bytes"] + 65536}, guest, object), "heap"),
        ("a format of tomorrow", file_of({**head, "format": "tokamak-heap/2"}, guest, object), "heap"),
        ("an object that stands on another", file_of({**head, "object_bytes": len(row_of(house.data, house.head("small"))[1])}, guest, row_of(house.data, house.head("small"))[1]), "another heap"),
        ("the object without the file around it", object, "first line"),
        ("a picture", b"\x89PNG\r\n\x1a\n" + bytes(5000), "first line"),
        ("text", b'{"heap": "text"}\n', "first line"),
        ("a line without end", b"{" * 100_000, "first line"),
    ]
    for title, content, word in refused:
        with suite.case(f"heap import of {title}: refused, says what is wrong, and nothing is taken in"):
            path, data = folder / "wrong.heap", folder_of_data()
            path.write_bytes(content)
            done = tokamak("heap", "import", path, "--data", data)
            assert done.returncode in (1, 2, 3), f"it ended with {done.returncode}: {done.stdout}"
            assert word in done.stderr + done.stdout and "panicked" not in done.stderr, done.stderr
            assert list_of(data) == [], "it was taken in"
    with suite.case("heap import of a file that is not there, and of a folder: refused"):
        for path in (folder / "nothing.heap", folder):
            done = tokamak("heap", "import", path, "--data", folder_of_data())
            assert done.returncode in (1, 2, 3) and str(path) in done.stderr + done.stdout, done
    with suite.case("heap import of the file as it was exported: the heap is there, and is what it was"):
        data = folder_of_data()
        for _ in range(2):
            done = tokamak("heap", "import", folder / "large.heap", "--data", data)
            assert done.returncode == 0 and json.loads(done.stdout)["heap"] == house.head("large"), done
        assert list_of(data) == [house.head("large")]
        (folder / "look.js").write_text(LOOK)
        done = tokamak("js", folder / "look.js", "--heap", house.head("large"), "--data", data)
        assert json.loads(done.stdout)[-1]["result"] == ["large", "large 0", 1], done
    with suite.case("heap import over a damaged heap: it is whole again, or that is an error"):
        data = house.copy()
        (data / house.blobs["large"]).write_bytes(b"")
        done = tokamak("heap", "import", folder / "large.heap", "--data", data)
        looked = tokamak("js", folder / "look.js", "--heap", house.head("large"), "--data", data)
        whole = looked.returncode == 0 and json.loads(looked.stdout)[-1]["result"] == ["large", "large 0", 1]
        assert whole or done.returncode != 0, f"import said {done.stdout.strip()}, and then: {looked.stderr}"


def list_of(data):
    done = tokamak("heap", "list", "--data", data)
    assert done.returncode == 0, done.stderr
    return [heap["heap"] for heap in json.loads(done.stdout)["heaps"]]


def main():
    house = House()
    for title, name, damage in DAMAGES:
        damaged(house, title, name, damage)
    for title, name, damage in DAMAGES:
        for read_before in (False, True) if title in MADE_AGAIN else ():
            made_again(house, title, name, damage, read_before)
    with suite.group("files"):
        files(house)
    suite.end()


main()
