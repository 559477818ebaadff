"""Storage that fails under a running server: a full disk, a folder that became read-only, damaged rows, pages and blobs.

Each time: the call that needs it fails with a code and says what is wrong, the process lives, everything else goes on, and
when the fault is gone the server goes on without a restart.

Invariants: a file system that is filled or made read-only is a small one of our own; only the standard library.
"""

import json
import os
import random
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from answers import seeds, tables
from harness import TOKAMAK, Server, Suite, modern_call, refusal_of, request, text_of

suite = Suite("faults")
MEGABYTE = 1024 * 1024
RUN = {"logical_session_ref": "s0", "program": "Project[key, name]"}
PLAN = {"logical_session_ref": "s0", "program": "Ticket.limit(2)"}


def main():
    if os.geteuid() == 0 and shutil.which("mount"):
        with small_disk() as disk:
            full(disk)
        with small_disk() as disk:
            read_only(disk)
    else:
        print("# faults: the full disk and the read-only folder need root, who may mount; left out", flush=True)
    damaged_blob(lambda data: data[: len(data) // 2], "truncated")
    damaged_blob(flipped, "bit-flipped")
    lost_blob()
    damaged_row()
    damaged_pages()
    suite.end()


def opened(server, intent="faults", entities=("Project", "Ticket")):
    return text_of(modern_call(server.port, "plasm_context", {"intent": intent, "seeds": seeds(*entities)}))


def ran(server):
    rows = tables(text_of(modern_call(server.port, "plasm_run", RUN)))["result"]
    assert [row["key"] for row in rows] == ["API", "DOC", "MOB", "OPS", "SEC", "WEB"], rows


def alive(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    assert request(server.port, "GET", "/healthz").status == 200
    said = Path(server.log).read_text(errors="replace")
    assert "panicked" not in said, said[-2000:]


# --- disks


@contextmanager
def small_disk(size="24m"):
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)


def fill(disk):
    """Until nothing more fits."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (MEGABYTE, 4096, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                pass
    return filler


def full(disk):
    with Server(data=disk / "data") as server:
        opened(server)
        ran(server)
        filler = fill(disk)
        with suite.case("a full disk: a run is refused with storage_full, and says what to do"):
            said = until_refused(server)
            assert said.startswith("storage_full: ") and "space" in said or "full" in said, said
        with suite.case("a full disk: the process lives, plans are still made and old results still read"):
            alive(server)
            assert text_of(modern_call(server.port, "plasm_context", {"intent": "faults", "seeds": seeds("Project")}))
            assert "OPS" in text_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))
        filler.unlink()
        with suite.case("a disk that has room again: the same server goes on, and nothing was lost"):
            ran(server)
            opened(server, "another")
            assert "OPS" in text_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))
        fill(disk)
        server.kill()
    with suite.case("a server that was killed on a full disk starts when there is room, with everything it had"):
        filler.unlink()
        with Server(data=disk / "data") as again:
            assert "Session unchanged" in opened(again)
            ran(again)


def until_refused(server):
    """SQLite has room in its log for some commits more; large results find the end soon."""
    for _ in range(400):
        answer = modern_call(server.port, "plasm_run", {**RUN, "program": "Ticket"})
        if answer["result"].get("isError"):
            return refusal_of(answer)
    raise AssertionError("400 results were kept on a full disk")


def read_only(disk):
    with Server(data=disk / "data") as server:
        opened(server)
        ran(server)
        # The database is open and cannot be taken back; the folder of results can.
        blobs = disk / "data" / "blobs"
        subprocess.run(["mount", "--bind", blobs, blobs], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", blobs], check=True)
        try:
            with suite.case("a folder that became read-only: a run is refused with storage_unavailable"):
                said = refusal_of(modern_call(server.port, "plasm_run", {**RUN, "program": "Ticket"}))
                assert said.startswith("storage_unavailable: "), said
            with suite.case("a folder that became read-only: the process lives, plans are made, old results are read"):
                alive(server)
                assert text_of(modern_call(server.port, "plasm", PLAN)).startswith("plan ok")
                assert "OPS" in text_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))
        finally:
            subprocess.run(["umount", "--lazy", blobs], check=True)
        with suite.case("a folder that can be written again: the same server goes on"):
            text_of(modern_call(server.port, "plasm_run", {**RUN, "program": "Ticket"}))
        server.stop(15)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with suite.case("a data folder on a read-only disk: the start is refused and says what to do"):
        command = [TOKAMAK, "serve", "--port", "0", "--data", str(disk / "data")]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        said = ended.stderr.decode()
        assert ended.returncode == 1 and "cannot write to" in said and "choose another" in said, said
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    with suite.case("the disk can be written again: everything is there"), Server(data=disk / "data") as again:
        assert "Session unchanged" in opened(again)


# --- damage


def blobs(data):
    return [path for path in (data / "blobs").rglob("*") if path.is_file() and path.parent.name not in ("tmp", "damaged")]


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def artifact_of(server):
    """The blob that a run of a large list made."""
    before = set(blobs(server.data))
    text_of(modern_call(server.port, "plasm_run", {**RUN, "program": "Ticket"}))
    made = [path for path in blobs(server.data) if path not in before]
    assert len(made) == 1, f"{len(made)} new blobs"
    return made[0]


def damaged_blob(change, kind):
    with Server() as server:
        opened(server)
        ran(server)
        blob = artifact_of(server)
        blob.write_bytes(change(blob.read_bytes()))
        name = blob.parent.name + blob.name
        with suite.case(f"a {kind} blob: reading it is refused with its name"):
            said = refusal_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/2"}))
            assert said.startswith("lost_artifact: ") and name in said, said
        with suite.case(f"a {kind} blob: it is set aside and the rest goes on"):
            assert (server.data / "blobs" / "damaged" / name).exists() and not blob.exists()
            assert "OPS" in text_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/1"}))
            ran(server)
            alive(server)


def lost_blob():
    with Server() as server:
        opened(server)
        ran(server)
        blob = artifact_of(server)
        blob.unlink()
        with suite.case("a blob that went: reading it is refused with its name, the rest goes on"):
            said = refusal_of(modern_call(server.port, "read_artifact", {"uri": "plasm://session/s0/r/2"}))
            assert blob.parent.name + blob.name in said, said
            ran(server)


def damaged_row():
    with Server() as server:
        opened(server, "sound")
        opened(server, "wounded", ("Person",))
        server.stop(15)
    database = server.data / "tokamak.db"
    content = database.read_bytes()
    at = content.find(b'"intent":"wounded"')
    assert at > 0, "the row is not where it was thought to be"
    database.write_bytes(content[:at] + b'"intent":"wOunded"' + content[at + 18 :])
    with Server(data=server.data) as again:
        with suite.case("a changed byte in a row: its session is refused with storage_damaged and the row's name"):
            answer = modern_call(again.port, "plasm_context", {"intent": "wounded", "seeds": seeds("Person")})
            said = refusal_of(answer)
            assert said.startswith("storage_damaged: ") and "logical_session/" in said, said
        with suite.case("a changed byte in a row: every other session goes on"):
            assert "Session unchanged" in opened(again, "sound")
            ran(again)
            alive(again)


def damaged_pages():
    """Pages of the database, one after the other, on copies of one folder: an error, or what was there; nothing else."""
    with Server() as server:
        for number in range(40):
            opened(server, f"session {number}", ("Project",))
        server.stop(15)
    whole = (server.data / "tokamak.db").read_bytes()
    pages = range(1, len(whole) // 4096)
    chance = random.Random(7)
    with suite.case("broken pages of the database: refused at the start, or named in a call; the rest goes on"):
        told = [broken_page(server.data, whole, page) for page in chance.sample(pages, 6)]
        assert any(refused for refused, _ in told), "no broken page was noticed"
        assert sum(sound for _, sound in told) > 60, f"too little could still be used: {told}"


def broken_page(data, whole, page):
    """How many sessions were refused, and how many are as they were."""
    copy = Path(tempfile.mkdtemp(prefix="data-")) / "copy"
    shutil.copytree(data, copy)
    start, end = page * 4096, (page + 1) * 4096
    (copy / "tokamak.db").write_bytes(whole[:start] + b"\xa5" * 4096 + whole[end:])
    try:
        with Server(data=copy) as server:
            refused, sound = 0, 0
            for number in range(40):
                seed = {"intent": f"session {number}", "seeds": seeds("Project")}
                result = modern_call(server.port, "plasm_context", seed)["result"]
                text = result["content"][0]["text"]
                if result.get("isError"):
                    assert text.startswith("storage_damaged: "), f"page {page}: {text}"
                    refused += 1
                elif "**The earlier session was missing or expired.**" in text:
                    # What it was taught cannot be read: it has a new symbol space, and is told so.
                    refused += 1
                else:
                    assert "Session unchanged" in text, f"page {page}: session {number} is a new one: {json.dumps(text)}"
                    sound += 1
            alive(server)
            return refused, sound
    except AssertionError as problem:
        if "the server ended with 1" not in str(problem):
            raise
        assert "tokamak.db" in str(problem) and "damaged" in str(problem), problem
        return 1, 0


if __name__ == "__main__":
    main()
