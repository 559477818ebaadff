"""Heaps and sessions of JavaScript under kills: eight clients run code while one process, or two on one data folder, are killed.

The clients make steps that wait, forks, rewinds, tags, runs on explicit heaps and in named sessions, cancels and failures, over MCP
and HTTP. After every start all runs come to their end, and the log, the head and the content of every heap are what the clients
were told.

Invariants: only an answer that a client read before the kill counts; nothing is repaired between two starts; the number of kills is
$JS_KILLS (60 unless it is set); a failure prints the seed that makes the same choices again ($KILLS_SEED).
"""

import os
import random
import tempfile
import threading
import time
from types import SimpleNamespace

import pytest

from lib.client import request
from lib.server import Server
from script_load import Client, Facts, check, is_idle

KILLS = int(os.environ.get("JS_KILLS", "60"))
SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
CLIENTS = 8
# The longest time until the interrupted runs have come to their end.
SECONDS_UNTIL_IDLE = 60

pytestmark = [pytest.mark.steps, pytest.mark.serial, pytest.mark.long, pytest.mark.timeout(300 + KILLS * 8)]


@pytest.fixture(scope="module")
def load_test():
    """The data of all servers, and everything that the clients read."""
    return SimpleNamespace(data=tempfile.mkdtemp(prefix="data-"), facts=Facts(), kills=0)


def test_after_each_kill_heads_logs_and_heaps_are_what_the_clients_were_told(load_test):
    chance, began, facts = random.Random(SEED), time.monotonic(), load_test.facts
    while load_test.kills < KILLS:
        load_test.kills += one_round(chance, load_test.data, facts, load_test.kills)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(facts.kinds.items()))
    print(f"{load_test.kills} kills in {time.monotonic() - began:.0f} s, seed {SEED}; acknowledged: {counts}")
    print(f"{facts.lost} calls were cut off, {len(facts.steps)} sessions")


def test_at_the_end_every_session_is_what_its_clients_were_told(load_test):
    with Server(data=load_test.data, arguments=["--no-demo"]) as server:
        wait_until_idle(server, "at the end")
        check(server.port, load_test.facts, sorted(load_test.facts.steps))


def test_the_load_was_heavy_enough(load_test):
    facts, kinds = load_test.facts, load_test.facts.kinds
    assert kinds["completed runs"] > KILLS * 3, f"only {kinds['completed runs']} runs over {load_test.kills} kills"
    missing = [kind for kind in ("failed runs", "running runs", "forks", "rewinds", "tagged", "logs") if not kinds[kind]]
    assert not missing, f"nothing of {missing}"
    assert facts.lost > 0, "no kill fell into a call"


def one_round(chance, data, facts, number):
    """Starts a server, checks the facts, loads the server and kills it. Returns the number of killed processes."""
    where = f"seed {SEED}, round {number}"
    two = chance.random() < 0.2
    with Server(data=data, arguments=["--no-demo"]) as first:
        ready = request(first.port, "GET", "/readyz")
        assert ready.status == 200, f"{where}: not ready: {ready.body[:300]}"
        wait_until_idle(first, where)
        older = sorted(set(facts.steps) - facts.touched)
        try:
            check(first.port, facts, sorted(facts.touched) + chance.sample(older, min(1, len(older))))
        except Exception as problem:
            raise AssertionError(f"{where}: {type(problem).__name__}: {problem}") from problem
        facts.touched.clear()
        if not two:
            load(chance, [first], facts, number)
            return 1
        with Server(data=data, arguments=["--no-demo"]) as second:
            load(chance, [first, second], facts, number)
            return 2


def wait_until_idle(server, where):
    deadline = time.monotonic() + SECONDS_UNTIL_IDLE
    while not is_idle(server.port):
        assert time.monotonic() < deadline, f"{where}: runs are under way {SECONDS_UNTIL_IDLE} s after the start"
        time.sleep(0.02)


def load(chance, servers, facts, number):
    clients = [
        Client(servers[n % len(servers)].port, number, n, facts, random.Random(chance.random()))
        for n in range(CLIENTS)
    ]
    threads = [threading.Thread(target=client.work, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for server in servers:
        time.sleep(chance.uniform(0.05, 0.6))
        server.kill()
    for client in clients:
        client.stop()
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive(), f"seed {SEED}, round {number}: a client hangs"
    wrong = [client.wrong for client in clients if client.wrong]
    assert not wrong, f"seed {SEED}, round {number}: {wrong[0]}"
