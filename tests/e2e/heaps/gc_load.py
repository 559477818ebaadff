"""Sessions that take steps in two servers, and a collector that runs pass after pass beside them."""

import json
import sqlite3
import subprocess
import threading
import time
from contextlib import closing

from lib.answers import seeds, with_every_capability
from lib.javascript import ModernConnection, open_session, value_of
from lib.server import TOKAMAK

SEEDS = with_every_capability(seeds("Project", "Ticket"))


class Session(threading.Thread):
    """A session that counts, and remembers what each of its heaps holds."""

    def __init__(self, ports, name, chance, logical):
        super().__init__(daemon=True)
        self.ports, self.name, self.chance = ports, name, chance
        self.agents = [ModernConnection(port, None if logical else name) for port in ports]
        self.unnamed = [ModernConnection(port) for port in ports]
        self.ref = open_session(self.agents[0], name, SEEDS) if logical else None
        self.heaps, self.tagged, self.outside = [], {}, {}
        self.busy, self.over, self.wrong = threading.Lock(), threading.Event(), None

    def step(self, code=None, **more):
        n = len(self.heaps)
        code = code or f"globalThis.seen ??= []; seen.push({n}); seen.length"
        where = {"logical_session_ref": self.ref} if self.ref else {}
        # A named session starts fresh without an explicit heap.
        where |= {"heap": self.heaps[-1], "require_heap": True} if self.heaps and not self.ref else {}
        run = value_of(self.chance.choice(self.agents).tool("run_js", code=code, **where, **more))
        assert run["status"] == "completed" and run["result"] == n + 1, f"step {n}: {run}"
        self.heaps.append(run["heap"])
        return run["heap"]

    def run(self):
        try:
            while not self.over.is_set():
                with self.busy:
                    self.one_action()
                time.sleep(0.02)
        except Exception as problem:
            self.wrong = f"{self.name}, step {len(self.heaps)}: {type(problem).__name__}: {problem}"

    def one_action(self):
        dice = self.chance.random()
        # Only a few heaps are tagged, because each keeps all heaps that it stands on.
        if dice < 0.96 or len(self.heaps) < 4:
            tags = {"kept": f"{self.name} {len(self.heaps)}"} if self.chance.random() < 0.01 else None
            heap = self.step(**({"tags": tags} if tags else {}))
            if tags:
                self.tagged[heap] = len(self.heaps)
        elif dice < 0.98:
            self.keep(self.chance.randrange(max(0, len(self.heaps) - 30), len(self.heaps)))
        else:
            self.run_outside(self.chance.randrange(max(0, len(self.heaps) - 30), len(self.heaps)))

    def keep(self, at):
        """Tags an older heap, which a pass may be about to delete: the heap then has its tag, or it is gone."""
        answer, refused = self.chance.choice(self.unnamed).tool("set_heap_tags", heap=self.heaps[at], tags={"kept": f"{self.name} {at}"})
        assert not refused or "no heap" in answer["error"], answer
        if not refused:
            self.tagged[self.heaps[at]] = at + 1

    def run_outside(self, at):
        """Runs code on an older heap, outside of the session: it runs, or is refused because the heap is gone."""
        asked = {"code": f"seen.push('outside {self.name}'); seen.length", "heap": self.heaps[at], "require_heap": True}
        answer, refused = self.chance.choice(self.unnamed).tool("run_js", **asked)
        if refused:
            assert isinstance(answer, str) and answer.startswith("no_heap"), answer
            return
        assert answer["result"] == at + 2, answer
        self.outside[answer["heap"]] = at + 2


class Collector(threading.Thread):
    """Runs one pass after the other from the command line."""

    def __init__(self, data_arguments):
        super().__init__(daemon=True)
        self.place, self.over, self.wrong = data_arguments, threading.Event(), None
        self.passes, self.condemned, self.gone, self.blobs = 0, 0, 0, 0

    def run(self):
        try:
            while not self.over.is_set():
                ended = collect(self.place, ("gc",) if self.passes % 2 else ("heap", "gc"))
                self.passes += 1
                self.condemned += ended["condemned"]
                self.gone += ended["rows"].get("heap", 0)
                self.blobs += ended["blobs"]
        except Exception as problem:
            self.wrong = f"pass {self.passes}: {type(problem).__name__}: {problem}"


def collect(data_arguments, command=("gc",), *more):
    ended = subprocess.run([TOKAMAK, "--json", *command, *more, *data_arguments], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    counts = json.loads(ended.stdout)
    assert counts["unread"] == [], counts
    return counts


def stored_rows_and_blobs(data):
    """Every row with its version, and every blob."""
    with closing(sqlite3.connect(data / "tokamak.db")) as database, database:
        rows = database.execute("SELECT tbl, id, version FROM row WHERE tbl <> 'trace' ORDER BY tbl, id").fetchall()
    return rows, sorted(str(path) for path in (data / "blobs").rglob("*") if path.is_file())


def assert_holds(agent, heap, count, description):
    run, refused = agent.tool("run_js", code="seen.length", heap=heap, require_heap=True)
    assert not refused, f"{description}: {run}"
    assert run["result"] == count, f"{description}: {heap} holds {run['result']} instead of {count}"
