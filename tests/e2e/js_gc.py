"""Collection beside running work: sessions take steps in two servers while `tokamak gc` goes on in a loop and hours pass.

Retention is as small as it may be: two entries of a log keep their heap, and what nothing leads to goes after an hour. The hours
are made by moving the wall clock of all processes (clock.c), while no step is under way.

Invariants: a head, a tagged heap and what a run that waits stands on are never collected, whenever a pass falls; each is restored
after a restart with what it held. What nothing leads to goes, and its entry says so. A dry run changes nothing and says what the
next pass does. No pass sees an hour that files have not: blobs are made before the clock moves. Only the standard library and a
C compiler.
"""

import json
import os
import random
import sqlite3
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from answers import seeds
from clock import Clock
from harness import TOKAMAK, Server, Suite
from js_calls import FINAL, Modern, bad, good, until

suite = Suite("js_gc")
SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
MINUTE = 60
# Between two jumps, with steps and passes going on; together more than five times the grace period.
JUMPS = 14
SECONDS_BETWEEN = 0.7
DAYS = 10 * 24 * 60 * MINUTE * 1000
SETTINGS = f"""
[retention]
heaps = 1
log_entries = 2
executions = 1
grace_hours = 1
[js]
most_timeout_ms = {DAYS}
"""
LARGE = "globalThis.big = Array.from({{length: 20000}}, (_, i) => `row {n} ${{i * {factor} % 10007}}`); seen.push({n}); seen.length"
WAIT = "await new Promise((done) => setTimeout(done, 3 * 3600 * 1000));"


class Session(threading.Thread):
    """A session that counts, and remembers what each of its heaps holds."""

    def __init__(self, ports, name, chance, logical):
        super().__init__(daemon=True)
        self.ports, self.name, self.chance = ports, name, chance
        self.agents = [Modern(port, None if logical else name) for port in ports]
        self.nobody = [Modern(port) for port in ports]
        self.ref = opened(self.agents[0], name) if logical else None
        self.heaps, self.tagged, self.outside = [], {}, {}
        self.busy, self.over, self.wrong = threading.Lock(), threading.Event(), None

    def step(self, code=None, **more):
        n = len(self.heaps)
        code = code or f"globalThis.seen ??= []; seen.push({n}); seen.length"
        where = {"logical_session_ref": self.ref} if self.ref else {}
        # A session with a name begins afresh unless it is told what to stand on.
        where |= {"heap": self.heaps[-1], "require_heap": True} if self.heaps and not self.ref else {}
        ran = good(self.chance.choice(self.agents).tool("run_js", code=code, **where, **more))
        assert ran["status"] == "completed" and ran["result"] == n + 1, f"step {n}: {ran}"
        self.heaps.append(ran["heap"])
        return ran["heap"]

    def run(self):
        try:
            while not self.over.is_set():
                with self.busy:
                    self.one_of_many()
                time.sleep(0.02)
        except Exception as problem:
            self.wrong = f"{self.name}, step {len(self.heaps)}: {type(problem).__name__}: {problem}"

    def one_of_many(self):
        what = self.chance.random()
        # Few, since each keeps all that it stands on.
        if what < 0.96 or len(self.heaps) < 4:
            tags = {"kept": f"{self.name} {len(self.heaps)}"} if self.chance.random() < 0.01 else None
            heap = self.step(**({"tags": tags} if tags else {}))
            if tags:
                self.tagged[heap] = len(self.heaps)
        elif what < 0.98:
            self.keep(self.chance.randrange(max(0, len(self.heaps) - 30), len(self.heaps)))
        else:
            self.run_outside(self.chance.randrange(max(0, len(self.heaps) - 30), len(self.heaps)))

    def keep(self, at):
        """An older heap, which a pass may be about to take: it has its tag, or it is gone; nothing in between."""
        answer, refused = self.chance.choice(self.nobody).tool("set_heap_tags", heap=self.heaps[at], tags={"kept": f"{self.name} {at}"})
        assert not refused or "no heap" in answer["error"], answer
        if not refused:
            self.tagged[self.heaps[at]] = at + 1

    def run_outside(self, at):
        """Stands on an older heap, outside of the session: it runs, or is told that the heap is gone."""
        asked = {"code": f"seen.push('outside {self.name}'); seen.length", "heap": self.heaps[at], "require_heap": True}
        answer, refused = self.chance.choice(self.nobody).tool("run_js", **asked)
        if refused:
            assert isinstance(answer, str) and answer.startswith("no_heap"), answer
            return
        assert answer["result"] == at + 2, answer
        self.outside[answer["heap"]] = at + 2


class Collector(threading.Thread):
    """Passes, one after the other, by the command line."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.over, self.wrong = place, threading.Event(), None
        self.passes, self.condemned, self.gone, self.blobs = 0, 0, 0, 0

    def run(self):
        try:
            while not self.over.is_set():
                done = collect(self.place, ("gc",) if self.passes % 2 else ("heap", "gc"))
                self.passes += 1
                self.condemned += done["condemned"]
                self.gone += done["rows"].get("heap", 0)
                self.blobs += done["blobs"]
        except Exception as problem:
            self.wrong = f"pass {self.passes}: {type(problem).__name__}: {problem}"


def collect(place, command=("gc",), *more):
    done = subprocess.run([TOKAMAK, "--json", *command, *more, *place], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    assert counted["unread"] == [], counted
    return counted


def opened(agent, intent):
    text, error = agent.tool("plasm_context", intent=intent, seeds=[{**seed, "capabilities": ["*"]} for seed in seeds("Project", "Ticket")])
    assert not error, text
    return text.split("`s", 1)[1].split("`", 1)[0].join(("s", ""))


def stored(data):
    """Every row with its version, and every blob."""
    with sqlite3.connect(data / "tokamak.db") as database:
        rows = database.execute("SELECT tbl, id, version FROM row WHERE tbl <> 'trace' ORDER BY tbl, id").fetchall()
    return rows, sorted(str(path) for path in (data / "blobs").rglob("*") if path.is_file())


def holds(agent, heap, count, what):
    ran, refused = agent.tool("run_js", code="seen.length", heap=heap, require_heap=True)
    assert not refused, f"{what}: {ran}"
    assert ran["result"] == count, f"{what}: {heap} holds {ran['result']} instead of {count}"


def beside_work(clock, place, data, servers, chance):
    """Returns the sessions, and the runs that wait: what they are to come to."""
    ports = [server.port for server in servers]
    agent = Modern(ports[0])
    large = Session(ports, "large", chance, True)
    for n in range(6):
        large.step(("globalThis.seen ??= []; " if n == 0 else "") + LARGE.format(n=n, factor=7919 + 2 * n))
    sessions = [Session(ports, f"session {n}", random.Random(chance.random()), n % 3 < 2) for n in range(6)]
    sleeper = Session(ports, "sleeper", chance, True)
    for _ in range(5):
        sleeper.step()
    long = {"timeout_ms": DAYS, "wait_ms": 300}
    waits = {
        "in its session": (good(agent.tool("run_js", code=f"let before = seen.length; {WAIT} [before, seen.length]", logical_session_ref=sleeper.ref, **long)), [5, 5]),
        "on an old heap": (good(agent.tool("run_js", code=f"let before = seen.length; {WAIT} [before, seen.length]", heap=sleeper.heaps[1], **long)), [2, 2]),
    }
    reviewed = opened(agent, "reviewed")
    code = """let text = 'kept'; await plasm('Ticket.open(project="OPS", title="never")'); text"""
    review = good(agent.tool("run_js", code=code, logical_session_ref=reviewed, **long))
    assert review["status"] == "waiting_review" and all(ran["status"] == "running" for ran, _ in waits.values()), (review, waits)
    collector = Collector(place)
    for thread in (*sessions, collector):
        thread.start()
    offset = 0
    for _ in range(JUMPS):
        time.sleep(SECONDS_BETWEEN)
        for session in sessions:
            session.busy.acquire()
        offset += chance.randint(12, 38) * MINUTE
        clock.to(offset)
        for session in sessions:
            session.busy.release()
    for thread in (*sessions, collector):
        thread.over.set()
    for thread in (*sessions, collector):
        thread.join(60)
    steps, tagged = sum(len(s.heaps) for s in sessions), sum(len(s.tagged) for s in sessions)
    with suite.case(f"beside {collector.passes} passes over {offset / 3600:.1f} hours, {len(sessions)} sessions took {steps} steps, each right (seed {SEED})"):
        assert not [t.wrong for t in (*sessions, collector) if t.wrong], [t.wrong for t in (*sessions, collector) if t.wrong]
        assert not [t for t in (*sessions, collector) if t.is_alive()], "one of them hangs"
        assert steps > 100 and tagged > 5 and collector.passes > JUMPS // 2, (steps, tagged, collector.passes)
        assert collector.gone > 20 and collector.blobs >= 3, f"only {collector.gone} heaps and {collector.blobs} blobs went"
    return [large, sleeper, *sessions], waits, review, offset


def to_the_end(clock, place, data, offset):
    """Two passes with the grace period between them, each after a dry one."""
    for _ in range(2):
        offset += 61 * MINUTE
        clock.to(offset)
        with suite.case(f"{offset / 3600:.1f} hours later: a dry run removes nothing, and says what the pass does"):
            for command in (("gc",), ("heap", "gc")):
                before = stored(data)
                dry = collect(place, command, "--dry-run")
                assert dry["dry_run"] is True and stored(data) == before, "a dry run changed something"
            real = collect(place)
            rows, blobs = stored(data)
            assert len(before[0]) - len(rows) == sum(real["rows"].values()), (dry, real)
            assert len(before[1]) - len(blobs) == real["blobs"], (dry, real)
            assert (dry["rows"].get("heap"), dry["condemned"]) == (real["rows"].get("heap"), real["condemned"]), (dry, real)
    return offset


def restored(server, sessions):
    """After a restart: heads, tagged heaps, heaps outside of sessions; and what is gone is gone everywhere."""
    agent = Modern(server.port)
    with suite.case("every head, every tagged heap and every heap outside of sessions is restored with what it held"):
        for session in sessions:
            holds(agent, session.heaps[-1], len(session.heaps), f"the head of {session.name}")
            for heap, count in session.tagged.items():
                holds(agent, heap, count, f"a tagged heap of {session.name}")
            for heap, count in session.outside.items():
                holds(agent, heap, count, f"a heap outside of {session.name}")
    gone, kept = 0, 0
    with suite.case("an entry says that its heap is gone, or its heap is restored with what it held; the newest two are never gone"):
        for session in sessions:
            who = agent if session.ref else Modern(server.port, session.name)
            asked = {"logical_session_ref": session.ref} if session.ref else {}
            entries = good(who.tool("list_session_snapshots", **asked))["entries"]
            # A run that waited has ended since, and is the newest.
            entries = entries[: len(session.heaps)]
            assert [e["output_heap"] for e in entries] == session.heaps, f"{session.name}: the log is not what was told"
            assert not any(e.get("heap_gone") for e in entries[-2:]), entries[-2:]
            for at, entry in enumerate(entries):
                if not entry.get("heap_gone"):
                    holds(agent, entry["output_heap"], at + 1, f"entry {at} of {session.name}")
                    kept += 1
                    continue
                gone += 1
                assert entry["output_heap"] not in session.tagged, f"a tagged heap is gone: {entry}"
                if gone % 10 == 0:
                    assert bad(agent.tool("run_js", code="1", heap=entry["output_heap"], require_heap=True)).startswith("no_heap")
                    assert entry["output_heap"] in good(agent.tool("run_js", code="1", heap=entry["output_heap"]))["warning"]
                if gone % 10 == 1 and session.ref:
                    assert bad(agent.tool("rewind_session", logical_session_ref=session.ref, index=at))
                    assert bad(agent.tool("fork_session", logical_session_ref=session.ref, intent=f"to {at} of {session.name}", at=at))
    with suite.case(f"{gone} entries lost their heap and {kept} kept it"):
        # What a tag or a run outside leads to stands on others.
        assert gone * 5 > kept, "many old heaps should have gone"


def waited(server, waits, review):
    agent = Modern(server.port)
    for title, (ran, wanted) in waits.items():
        with suite.case(f"a run that waited {title} over all passes and a restart goes on with what it had"):
            assert until(agent, ran["execution_id"])["result"] == wanted
    with suite.case("a write that waits for its review still waits, with the same plan"):
        found = good(agent.tool("get_execution", execution_id=review["execution_id"]))
        assert found["status"] == "waiting_review" and found["reviews"] == review["reviews"], found
        assert good(agent.tool("cancel_execution", execution_id=review["execution_id"])) == {"ok": True}


def days_later(clock, place, data, sessions, offset):
    """Heaps outside of sessions go after a day, and their runs; heads and tags stay for as long as they are that."""
    for _ in range(2):
        offset += 2 * 24 * 60 * MINUTE
        clock.to(offset)
        collect(place)
    with Server(data, arguments=place[2:]) as server:
        agent = Modern(server.port)
        with suite.case("days later: heads and tagged heaps are there, heaps outside of sessions and ended runs are not"):
            for session in sessions:
                holds(agent, session.heaps[-1], len(session.heaps), f"the head of {session.name}")
                for heap, count in session.tagged.items():
                    holds(agent, heap, count, f"a tagged heap of {session.name}")
                for heap in set(session.outside) - set(session.tagged):
                    assert bad(agent.tool("run_js", code="1", heap=heap, require_heap=True)).startswith("no_heap"), heap
            for session in sessions[:3]:
                session.agents = [agent]
                session.step()


def refused_settings():
    with suite.case("retention of nothing is refused at the start"):
        for name in ("grace_hours", "heaps", "log_entries"):
            file = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
            file.write_text(f"[retention]\n{name} = 0\n")
            done = subprocess.run([TOKAMAK, "gc", "--config", file, "--data", tempfile.mkdtemp()], capture_output=True, text=True, timeout=20)
            assert done.returncode == 2 and f"retention.{name}" in done.stderr, done


def main():
    refused_settings()
    chance, data = random.Random(SEED), Path(tempfile.mkdtemp(prefix="data-"))
    clock = Clock(Path(tempfile.mkdtemp(prefix="clock-")))
    settings = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    settings.write_text(SETTINGS)
    place = ("--data", str(data), "--config", str(settings))
    with suite.group(f"seed {SEED}"), clock.moved():
        with Server(data, arguments=place[2:]) as one, Server(data, arguments=place[2:]) as two:
            sessions, waits, review, offset = beside_work(clock, place, data, (one, two), chance)
            assert one.stop(20) == 0 and two.stop(20) == 0
        offset = to_the_end(clock, place, data, offset)
        with Server(data, arguments=place[2:]) as server:
            restored(server, sessions)
            waited(server, waits, review)
            assert server.stop(20) == 0
        # The head of the one that slept has moved since.
        days_later(clock, place, data, [s for s in sessions if s.name != "sleeper"], offset)
    suite.end()


main()
