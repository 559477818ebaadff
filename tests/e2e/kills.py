"""The real binary under a mixed load from eight clients, killed at random moments, again and again.

After every start: each acknowledged answer of the round before, and a handful of older ones, is still true (symbols,
results, pages, operations, commits); at the end all of them are. The API's own count says that no effect happened twice.

Invariants: what counts is what a client was told before the kill; nothing is repaired between two starts; the number of
kills is $KILLS (300 unless told otherwise); a failure prints the seed that makes the same choices again.
"""

import os
import random
import tempfile
import threading
import time
from pathlib import Path

from harness import Server, Suite, request
from kills_load import Client, Told, answered
from tracker import Api, digest

suite = Suite("kills")
KILLS = int(os.environ.get("KILLS", "300"))
SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
CLIENTS = 8
# How many answers of earlier rounds are looked at after every start.
OLDER = 12
# How long a dead process is believed to live, and some.
TAKEN_OVER = 40


def main():
    chance = random.Random(SEED)
    told, began = Told(), time.monotonic()
    with Api() as api:
        arguments = settings(api)
        data = tempfile.mkdtemp(prefix="data-")
        happened = {}
        kills = 0
        with suite.case(f"{KILLS} kills under load: every acknowledged answer is there after each start"):
            while kills < KILLS:
                kills += one_round(chance, api, data, arguments, told, kills)
                count(api, happened)
                twice = [effect for effect, times in happened.items() if times > 1]
                assert not twice, f"seed {SEED}, after {kills} kills: an effect happened twice: {twice[:3]}"
        with suite.case("at the end all of them are, and everything that was begun has ended"):
            with Server(data=data, arguments=arguments) as server:
                all_of_it(server, told)
                count(api, happened)
        with suite.case("each effect that was told as done happened once, none twice"):
            wrong = [text for text in told.done if happened.get(digest(text)) != 1]
            assert not wrong and max(happened.values()) == 1, f"seed {SEED}: {len(wrong)} told but not once: {wrong[:3]}"
    least = KILLS * 2
    with suite.case("the load was a load"):
        assert len(told.facts) > least, f"only {len(told.facts)} answers were acknowledged over {kills} kills"
        missing = [kind for kind in ("symbols", "result", "page", "operation", "commit", "request") if not told.kinds[kind]]
        assert not missing, f"nothing of {missing}"
        assert told.lost > 0, "no kill fell into a call"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(told.kinds.items()))
    print(f"# kills: {kills} in {time.monotonic() - began:.0f} s, seed {SEED}; acknowledged: {kinds}", flush=True)
    print(f"# kills: {told.lost} calls were cut off, {sum(happened.values())} effects", flush=True)
    suite.end()


def settings(api):
    config = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    # Lists end early, so that there are pages to go on with.
    config.write_text("[limits]\nrows = 25\n")
    return ["--no-demo", "--catalogs", str(api.catalogs()), "--config", str(config)]


def one_round(chance, api, data, arguments, told, number):
    """Starts, looks, loads, kills; how many processes were killed."""
    if chance.random() < 0.05:
        return killed_at_birth(chance, data, arguments)
    two = chance.random() < 0.15
    with Server(data=data, arguments=arguments) as first:
        ready = request(first.port, "GET", "/readyz")
        assert ready.status == 200, f"seed {SEED}, round {number}: not ready: {ready.body[:300]}"
        look_at(first, told.of_round() + told.some(chance, OLDER), f"seed {SEED}, round {number}")
        told.next_round()
        if not two:
            load(chance, [first], told, number)
            return 1
        with Server(data=data, arguments=arguments) as second:
            load(chance, [first, second], told, number)
            return 2


def killed_at_birth(chance, data, arguments):
    server = Server(data=data, arguments=arguments)
    until = time.monotonic() + chance.uniform(0.0, 0.2)
    started = threading.Thread(target=lambda: enter(server), daemon=True)
    started.start()
    while server.process is None or time.monotonic() < until:
        time.sleep(0.002)
    server.kill()
    started.join(20)
    return 1


def enter(server):
    try:
        server.__enter__()
    except BaseException:  # it was killed, as it should be
        pass


def load(chance, servers, told, number):
    clients = [
        Client(servers[n % len(servers)].port, number, n, told, random.Random(chance.random()))
        for n in range(CLIENTS)
    ]
    threads = [threading.Thread(target=client.work, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for server in servers:
        time.sleep(chance.uniform(0.02, 0.35))
        server.kill()
    for client in clients:
        client.stop()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a client hangs"
    wrong = [client.wrong for client in clients if client.wrong]
    assert not wrong, f"seed {SEED}, round {number}: {wrong[0]}"


def look_at(server, facts, where):
    """Every fact, by four at a time."""
    wrong = []

    def some(share):
        for fact in share:
            try:
                fact.look(server.port)
            except Exception as problem:
                wrong.append(f"{fact.kind} {fact.name}: {type(problem).__name__}: {problem}")

    threads = [threading.Thread(target=some, args=(facts[n::4],), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    # At the end of a long run there is much to look at.
    seconds = 60 + len(facts) / 100
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), f"{where}: looking hangs"
    assert not wrong, f"{where}: {len(wrong)} of {len(facts)} are no longer true, first: {wrong[0]}"


def all_of_it(server, told):
    until = time.monotonic() + TAKEN_OVER
    for operation in told.operations:
        while (text := answered(server.port, "plasm_run", operation.ref, program=operation.program)).startswith("wait("):
            assert time.monotonic() < until, f"nobody took {operation.program} over: {text}"
            time.sleep(0.5)
    look_at(server, told.facts, f"seed {SEED}, at the end")


def count(api, happened):
    """What happened since the last count; the API forgets it, so that a long test stays as fast as a short one."""
    for effect in api.effects():
        happened[effect] = happened.get(effect, 0) + 1
    api.reset()


if __name__ == "__main__":
    main()
