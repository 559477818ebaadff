"""Heaps through the real binary, killed at random moments, again and again.

Sessions: eight clients run code over MCP and HTTP (steps that wait, forks, rewinds, tags, explicit heaps, named sessions,
cancels, failures) while one process, or two on one data folder, are killed. After every start all runs come to their end,
and the log, the head and the content of every heap are what the clients were told.

Invariants: what counts is what a client was told before the kill; nothing is repaired between two starts; the number of
kills is $JS_KILLS (60 unless told otherwise); a failure prints the seed that makes the same choices again.
"""

import os
import random
import tempfile
import threading
import time

import js_kills_waits
from harness import Server, Suite, request
from js_kills_load import Client, Told, idle, look

suite = Suite("js_kills")
KILLS = int(os.environ.get("JS_KILLS", "60"))
SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
CLIENTS = 8
# How long the runs that a kill interrupted may take to come to their end.
SETTLED = 30


def main():
    chance = random.Random(SEED)
    sessions(chance)
    js_kills_waits.continuations(suite, random.Random(chance.random()), SEED)
    js_kills_waits.reviews(suite, random.Random(chance.random()), SEED)
    suite.end()


def sessions(chance):
    told, began, kills = Told(), time.monotonic(), 0
    data = tempfile.mkdtemp(prefix="data-")
    with suite.case(f"{KILLS} kills under load: heads, logs and heaps are what was told after each start"):
        while kills < KILLS:
            kills += one_round(chance, data, told, kills)
    with suite.case("at the end all sessions are, the old ones too"):
        with Server(data=data, arguments=["--no-demo"]) as server:
            settled(server, "at the end")
            look(server.port, told, sorted(told.steps))
    with suite.case("the load was a load"):
        kinds = told.kinds
        assert kinds["completed runs"] > KILLS * 3, f"only {kinds['completed runs']} runs over {kills} kills"
        missing = [kind for kind in ("failed runs", "running runs", "forks", "rewinds", "tagged", "logs") if not kinds[kind]]
        assert not missing, f"nothing of {missing}"
        assert told.lost > 0, "no kill fell into a call"
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(told.kinds.items()))
    print(f"# js_kills: {kills} kills in {time.monotonic() - began:.0f} s, seed {SEED}; acknowledged: {counts}", flush=True)
    print(f"# js_kills: {told.lost} calls were cut off, {len(told.steps)} sessions", flush=True)


def one_round(chance, data, told, number):
    """Starts, looks, loads, kills; how many processes were killed."""
    where = f"seed {SEED}, round {number}"
    two = chance.random() < 0.2
    with Server(data=data, arguments=["--no-demo"]) as first:
        ready = request(first.port, "GET", "/readyz")
        assert ready.status == 200, f"{where}: not ready: {ready.body[:300]}"
        settled(first, where)
        older = sorted(set(told.steps) - told.touched)
        try:
            look(first.port, told, sorted(told.touched) + chance.sample(older, min(1, len(older))))
        except Exception as problem:
            raise AssertionError(f"{where}: {type(problem).__name__}: {problem}") from problem
        told.touched.clear()
        if not two:
            load(chance, [first], told, number)
            return 1
        with Server(data=data, arguments=["--no-demo"]) as second:
            load(chance, [first, second], told, number)
            return 2


def settled(server, where):
    until = time.monotonic() + SETTLED
    while not idle(server.port):
        assert time.monotonic() < until, f"{where}: runs are under way {SETTLED} s after the start"
        time.sleep(0.02)


def load(chance, servers, told, number):
    clients = [
        Client(servers[n % len(servers)].port, number, n, told, random.Random(chance.random()))
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


if __name__ == "__main__":
    main()
