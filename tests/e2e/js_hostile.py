"""Programs that mean harm, each alone and then many times beside sessions that mean none.

Invariants: only the standard library; the server lives to the end; every hostile run ends within its limits and says why;
what a healthy session answers is its own and right at every moment; its secret is in nothing that a hostile run answers, prints
or leaves, and what one leaves is, byte by byte, what it left alone. $HOSTILE_TIMES says how often each one is run in the crowd
(default 3; the full measure is 1000) and $HOSTILE_TIMEOUT_MS what each may take there, or eight times that where it has more
alone: less is as hostile, and a thousand of each are then run within the hour.
"""

import json
import os
import re
import threading
import time
import uuid
from pathlib import Path

from answers import seeds
from harness import Server, Suite
from js_hostile_calls import READABLE, TIMEOUT_MS, TOLD_SECONDS, exported, has, hostile, printed, run, short, tool
from js_hostile_kept import kept
from js_hostile_programs import HOSTILE, TIMED_OUT, ends

suite = Suite("js_hostile")
TIMES = int(os.environ.get("HOSTILE_TIMES", "3"))
CROWD = 12
HEALTHY = 6
CROWD_TIMEOUT_MS = int(os.environ.get("HOSTILE_TIMEOUT_MS", TIMEOUT_MS))
# Healthy sessions rest between two steps, or most of the time of a long run would be theirs.
REST_SECONDS = 0.01
# What the server may hold at the end. Its heaps in memory have a budget of 512 MB.
RESIDENT_MB = 1200
# Of what hostile runs left: so many heaps are exported, compared with an empty one, and searched.
SEARCHED = 24


def in_crowd(more):
    if CROWD_TIMEOUT_MS == TIMEOUT_MS:
        return more
    return {**more, "timeout_ms": min(more.get("timeout_ms", CROWD_TIMEOUT_MS), 8 * CROWD_TIMEOUT_MS)}


def alone(server):
    """The heap that each one left, by its name."""
    left = {}
    for name, code, wanted, more in HOSTILE:
        with suite.case(f"{name}, alone"):
            started = time.monotonic()
            ran = hostile(server.port, code, more)
            took = time.monotonic() - started
            assert ends(ran, wanted), short(ran)
            most = (more.get("timeout_ms", TIMEOUT_MS)) / 1000 + 5
            assert took < most, f"it took {took:.1f} s"
            assert len(json.dumps(ran)) < 1_200_000, "the answer is as large as the harm"
            assert run(server.port, "6 * 7")["result"] == 42, "the server is not well"
            if ran["status"] == "completed":
                left[name] = ran["heap"]
    return left


class Healthy(threading.Thread):
    """A session that counts, with a secret of its own: every second one a logical session, the others on explicit heaps. It
    stops at the first answer that is not right."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number = port, number
        self.secret = f"secret-{number}-{uuid.uuid4()}"
        self.steps, self.wrong, self.over = 0, None, threading.Event()
        self.slowest, self.heap, self.ref = 0.0, None, None
        if number % 2:
            text, error = tool(port, "plasm_context", intent=f"healthy {number}", seeds=seeds("Project"))
            assert not error, text
            self.ref = "s" + text.split("`s", 1)[1].split("`", 1)[0]

    def where(self):
        if self.ref:
            return {"logical_session_ref": self.ref}
        return {"heap": self.heap, "require_heap": True} if self.heap else {}

    def run(self):
        try:
            while not self.over.is_set():
                code = "count++; [secret, count]" if self.heap else f"let count = 1, secret = '{self.secret}'; [secret, count]"
                started = time.monotonic()
                ran = run(self.port, code, **self.where())
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.steps += 1
                wanted = [self.secret, self.steps]
                assert ran.get("result") == wanted, f"{short(ran)} instead of {wanted}"
                self.heap = ran["heap"]
                time.sleep(REST_SECONDS)
        except Exception as problem:
            self.wrong = f"session {self.number}, step {self.steps}: {problem}"


class Crowd:
    """Each hostile program $HOSTILE_TIMES times, a dozen at a time."""

    def __init__(self, port, healthy):
        self.port, self.healthy = port, healthy
        self.work = [(i, entry) for i in range(TIMES) for entry in HOSTILE]
        # Neighbours are of different kinds, and the same in each run.
        self.work.sort(key=lambda item: (item[0], hash_of(item[1][0], item[0])))
        self.lock, self.wrong, self.seen, self.counts, self.heaps = threading.Lock(), [], [], {}, {}

    def one_of_many(self):
        while True:
            with self.lock:
                if not self.work or len(self.wrong) > 5:
                    return
                _, (name, code, wanted, more) = self.work.pop()
            try:
                ran = hostile(self.port, code, in_crowd(more))
                text = json.dumps(ran) + printed(self.port, ran)
                # Slow neighbours may take a run's time, so that its deadline comes before its own mistake.
                good = ends(ran, wanted) or ends(ran, TIMED_OUT)
                problem = None if good else f"{name}: {short(ran)}"
            except Exception as error:
                problem, ran, text = f"{name}: {type(error).__name__}: {error}", {}, ""
            with self.lock:
                self.counts[ran.get("status")] = self.counts.get(ran.get("status"), 0) + 1
                self.heaps.setdefault(name, set()).update({ran["heap"]} if "heap" in ran else set())
                self.wrong += [problem] if problem else []
                self.seen += [f"{name} has seen session {one.number}" for one in self.healthy if has(text, one.secret)]

    def run(self):
        threads = [threading.Thread(target=self.one_of_many, daemon=True) for _ in range(CROWD)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def crowd(server, left):
    healthy = [Healthy(server.port, n) for n in range(HEALTHY)]
    hostiles, started = Crowd(server.port, healthy), time.monotonic()
    for thread in healthy:
        thread.start()
    hostiles.run()
    for thread in healthy:
        thread.over.set()
    for thread in healthy:
        thread.join(TOLD_SECONDS)
    took, counts = time.monotonic() - started, hostiles.counts
    steps, slowest = sum(t.steps for t in healthy), max(t.slowest for t in healthy)
    with suite.case(f"{TIMES} times each of {len(HOSTILE)}: every one ends within its limits and says why ({took:.0f} s, {counts})"):
        assert not hostiles.wrong, "; ".join(hostiles.wrong)
        assert sum(counts.values()) == TIMES * len(HOSTILE), counts
    with suite.case(f"beside them {HEALTHY} healthy sessions answer what is right ({steps} steps, the slowest {slowest:.1f} s)"):
        assert not [t for t in healthy if t.is_alive()], "a healthy session hangs"
        assert not [t.wrong for t in healthy if t.wrong], [t.wrong for t in healthy if t.wrong]
        assert all(t.steps >= 3 for t in healthy), [t.steps for t in healthy]
    secrets(server, left, hostiles, healthy)
    with suite.case("the server lives, its memory is bounded, and it stops in good order"):
        assert server.process.poll() is None, f"it ended with {server.process.poll()}"
        memory = resident_mb(server.process.pid)
        assert memory < RESIDENT_MB, f"{memory} MB resident"
        said = Path(server.log).read_text(errors="replace")
        assert "panicked" not in said, said[said.index("panicked") - 200 :][:600]
        assert run(server.port, "6 * 7")["result"] == 42
        assert server.stop(20) == 0


def secrets(server, left, hostiles, healthy):
    """What hostile runs answered, printed and left, held against what the sessions beside them have."""
    with suite.case("no answer and no console of a hostile run has a session's secret"):
        assert not hostiles.seen, hostiles.seen[:3]
    same = [name for name in left if hostiles.heaps.get(name)]
    with suite.case(f"what {len(same)} of them left in the crowd is, byte by byte, what they left alone"):
        other = [name for name in same if hostiles.heaps[name] != {left[name]}]
        assert not other, f"another heap than alone: {other}"
        assert len(same) >= 12, same
    some = sorted((name, max(heaps)) for name, heaps in hostiles.heaps.items() if heaps)[:SEARCHED]
    empty = run(server.port, "0")["heap"]
    how = "unpacked" if READABLE else "as they are stored, since there is no zstd here"
    with suite.case(f"no secret is in {len(some)} exported heaps ({how}), nor in what they differ in from an empty one"):
        for one in healthy:
            assert not READABLE or has(exported(server.data, one.heap), one.secret), "a secret is not found where it is"
        for name, heap in some:
            differs, error = tool(server.port, "diff_heaps", a=empty, b=heap)
            assert not error, f"{name}: {differs}"
            for where in (json.dumps(differs), exported(server.data, heap)):
                assert not [one for one in healthy if has(where, one.secret)], f"{name} has left a session's secret"


def hash_of(name, round):
    return sum((i + 7) * ord(c) * (round + 3) for i, c in enumerate(name)) % 9973


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024


def main():
    left = {}
    with suite.group("alone"), Server() as server:
        left = alone(server)
        kept(suite, server)
    with suite.group("in a crowd"), Server() as server:
        crowd(server, left)
    suite.end()


main()
