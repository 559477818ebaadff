"""Hostile programs: each alone, and then many times beside healthy sessions.

Invariants: the server lives to the end; every hostile run ends within its limits and says why; a healthy session's answers are
its own and right at every moment; its secret is in nothing that a hostile run answers, prints or leaves.
$HOSTILE_TIMES is the number of runs of each program in the crowd (3; the full measure is 1000). $HOSTILE_TIMEOUT_MS is the time
that each of them has there, or eight times as much where a program has more alone.
"""

import json
import os
import re
import threading
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostile_calls import READABLE, SECONDS_FOR_A_RUN, TIMEOUT_MS, exported, has, hostile, printed, run, short, tool
from hostile_programs import HOSTILE, TIMED_OUT, ends
from lib.answers import seeds
from lib.server import Server, assert_did_not_panic

TIMES = int(os.environ.get("HOSTILE_TIMES", "3"))
CROWD = 12
HEALTHY = 6
CROWD_TIMEOUT_MS = int(os.environ.get("HOSTILE_TIMEOUT_MS", TIMEOUT_MS))
# Healthy sessions pause between two steps, or they would take most of the time of a long run.
PAUSE_SECONDS = 0.01
# The most memory of the server at the end. Its heaps in memory have a limit of 512 MB.
RESIDENT_MB = 1200
# The number of heaps of hostile runs that are exported, compared with an empty one, and searched.
HEAPS_TO_SEARCH = 24

pytestmark = [pytest.mark.steps, pytest.mark.timeout(400 + TIMES * 20)]


@pytest.fixture(scope="module")
def left_alone():
    """The heap that each program left when it ran alone, by its name."""
    return {}


@pytest.mark.parametrize("name, code, wanted, more", HOSTILE, ids=[name for name, *_ in HOSTILE])
def test_a_hostile_program_ends_within_its_limits_and_says_why(server, left_alone, name, code, wanted, more):
    outcome = hostile(server.port, code, more)
    assert ends(outcome, wanted), short(outcome)
    assert len(json.dumps(outcome)) < 1_200_000, "the answer is as large as the harm"
    assert run(server.port, "6 * 7")["result"] == 42, "the server does not answer another run"
    if outcome["status"] == "completed":
        left_alone[name] = outcome["heap"]


def with_crowd_timeout(more):
    if CROWD_TIMEOUT_MS == TIMEOUT_MS:
        return more
    return {**more, "timeout_ms": min(more.get("timeout_ms", CROWD_TIMEOUT_MS), 8 * CROWD_TIMEOUT_MS)}


class Healthy(threading.Thread):
    """A session that counts and has a secret: every second one is a logical session, the others run on explicit heaps. The
    session stops at the first wrong answer."""

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

    def session_arguments(self):
        if self.ref:
            return {"logical_session_ref": self.ref}
        return {"heap": self.heap, "require_heap": True} if self.heap else {}

    def run(self):
        try:
            while not self.over.is_set():
                code = "count++; [secret, count]" if self.heap else f"let count = 1, secret = '{self.secret}'; [secret, count]"
                started = time.monotonic()
                outcome = run(self.port, code, **self.session_arguments())
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.steps += 1
                wanted = [self.secret, self.steps]
                assert outcome.get("result") == wanted, f"{short(outcome)} instead of {wanted}"
                self.heap = outcome["heap"]
                time.sleep(PAUSE_SECONDS)
        except Exception as problem:
            self.wrong = f"session {self.number}, step {self.steps}: {problem}"


class Crowd:
    """Each hostile program $HOSTILE_TIMES times, a dozen at a time."""

    def __init__(self, port, healthy):
        self.port, self.healthy = port, healthy
        self.work = [(i, entry) for i in range(TIMES) for entry in HOSTILE]
        # Programs that run at the same time are of different kinds, and the same ones in each test run.
        self.work.sort(key=lambda item: (item[0], mixed_order(item[1][0], item[0])))
        self.lock, self.wrong, self.seen, self.counts, self.heaps = threading.Lock(), [], [], {}, {}

    def run_programs(self):
        while True:
            with self.lock:
                if not self.work or len(self.wrong) > 5:
                    return
                _, (name, code, wanted, more) = self.work.pop()
            try:
                outcome = hostile(self.port, code, with_crowd_timeout(more))
                text = json.dumps(outcome) + printed(self.port, outcome)
                # In a crowd a run may reach its deadline before it reaches its own mistake.
                good = ends(outcome, wanted) or ends(outcome, TIMED_OUT)
                problem = None if good else f"{name}: {short(outcome)}"
            except Exception as error:
                problem, outcome, text = f"{name}: {type(error).__name__}: {error}", {}, ""
            with self.lock:
                self.counts[outcome.get("status")] = self.counts.get(outcome.get("status"), 0) + 1
                self.heaps.setdefault(name, set()).update({outcome["heap"]} if "heap" in outcome else set())
                self.wrong += [problem] if problem else []
                self.seen += [f"{name} has seen session {one.number}" for one in self.healthy if has(text, one.secret)]

    def run(self):
        threads = [threading.Thread(target=self.run_programs, daemon=True) for _ in range(CROWD)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def mixed_order(name, round):
    return sum((i + 7) * ord(c) * (round + 3) for i, c in enumerate(name)) % 9973


@pytest.fixture(scope="module")
def crowd():
    """Every program several times, a dozen at a time, beside healthy sessions."""
    with Server() as server:
        healthy = [Healthy(server.port, n) for n in range(HEALTHY)]
        hostiles = Crowd(server.port, healthy)
        for thread in healthy:
            thread.start()
        hostiles.run()
        for thread in healthy:
            thread.over.set()
        for thread in healthy:
            thread.join(SECONDS_FOR_A_RUN)
        yield SimpleNamespace(server=server, healthy=healthy, hostiles=hostiles)


def test_in_a_crowd_every_program_ends_within_its_limits_and_says_why(crowd):
    counts = crowd.hostiles.counts
    assert not crowd.hostiles.wrong, "; ".join(crowd.hostiles.wrong)
    assert sum(counts.values()) == TIMES * len(HOSTILE), counts


def test_beside_a_crowd_every_healthy_session_answers_what_is_right(crowd):
    healthy = crowd.healthy
    assert not [session for session in healthy if session.is_alive()], "a healthy session hangs"
    wrong = [session.wrong for session in healthy if session.wrong]
    assert not wrong, wrong
    assert all(session.steps >= 3 for session in healthy), [session.steps for session in healthy]


def test_no_answer_and_no_output_of_a_hostile_run_has_a_secret_of_a_session(crowd):
    assert not crowd.hostiles.seen, crowd.hostiles.seen[:3]


def test_a_program_leaves_in_a_crowd_byte_by_byte_what_it_leaves_alone(crowd, left_alone):
    heaps = crowd.hostiles.heaps
    comparable = [name for name in left_alone if heaps.get(name)]
    different = [name for name in comparable if heaps[name] != {left_alone[name]}]
    assert not different, f"another heap than alone: {different}"
    assert len(comparable) >= 12, comparable


def test_no_exported_heap_and_no_difference_has_a_secret_of_a_session(crowd):
    server, healthy = crowd.server, crowd.healthy
    searched = sorted((name, max(heaps)) for name, heaps in crowd.hostiles.heaps.items() if heaps)[:HEAPS_TO_SEARCH]
    empty = run(server.port, "0")["heap"]
    for session in healthy:
        found = has(exported(server.data, session.heap), session.secret)
        assert not READABLE or found, "a secret is not found in the heap that holds it"
    for name, heap in searched:
        difference, error = tool(server.port, "diff_heaps", a=empty, b=heap)
        assert not error, f"{name}: {difference}"
        for text in (json.dumps(difference), exported(server.data, heap)):
            leaked = [session for session in healthy if has(text, session.secret)]
            assert not leaked, f"{name} has left a session's secret"


def test_after_a_crowd_the_server_lives_with_bounded_memory_and_stops_normally(crowd):
    server = crowd.server
    assert server.process.poll() is None, f"it ended with {server.process.poll()}"
    memory = resident_mb(server.process.pid)
    assert memory < RESIDENT_MB, f"{memory} MB resident"
    assert_did_not_panic(server)
    assert run(server.port, "6 * 7")["result"] == 42
    assert server.stop(30) == 0


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024
