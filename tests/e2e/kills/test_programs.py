"""The binary under a mixed load from eight clients, killed at random moments, again and again.

After every start each acknowledged answer of the round before, and a handful of older ones, is still true (symbols, results, pages,
operations, commits); at the end all of them are. The API's own count says that no effect happened twice.

Invariants: only an answer that a client read before the kill counts; nothing is repaired between two starts; the number of kills is
$KILLS (300 unless it is set); a failure prints the seed that makes the same choices again ($KILLS_SEED).
"""

import os
import random
import tempfile
import threading
import time
from types import SimpleNamespace

import pytest

from lib.client import request
from lib.test_api import TrackerApi, digest
from lib.server import Server, settings
from program_load import Client, Facts, text_even_of_a_refusal

KILLS = int(os.environ.get("KILLS", "300"))
SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
CLIENTS = 8
# The number of answers of earlier rounds that are checked after every start.
OLDER = 12
# Another process takes an operation over when its owner has been silent for 20 s.
SECONDS_UNTIL_TAKEN_OVER = 60

pytestmark = [pytest.mark.steps, pytest.mark.serial, pytest.mark.long, pytest.mark.timeout(300 + KILLS * 6)]


@pytest.fixture(scope="module")
def load_test():
    """The API, the arguments and the data of all servers, and everything that the clients read."""
    with TrackerApi() as api:
        # Lists end early, so that there are pages to go on with.
        arguments = api.server_arguments(*settings("[limits]\nrows = 25\n"))
        data = tempfile.mkdtemp(prefix="data-")
        yield SimpleNamespace(api=api, arguments=arguments, data=data, facts=Facts(), happened={}, kills=0)


def test_after_each_kill_every_acknowledged_answer_is_there(load_test, record_property):
    chance, began = random.Random(SEED), time.monotonic()
    facts, happened = load_test.facts, load_test.happened
    while load_test.kills < KILLS:
        load_test.kills += one_round(chance, load_test.api, load_test.data, load_test.arguments, facts, load_test.kills)
        count_effects(load_test.api, happened)
        twice = [effect for effect, times in happened.items() if times > 1]
        assert not twice, f"seed {SEED}, after {load_test.kills} kills: an effect happened twice: {twice[:3]}"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(facts.kinds.items()))
    print(f"{load_test.kills} kills in {time.monotonic() - began:.0f} s, seed {SEED}; acknowledged: {kinds}")
    print(f"{facts.lost} calls were cut off, {sum(happened.values())} effects")


def test_at_the_end_every_answer_is_there_and_every_operation_has_ended(load_test):
    with Server(data=load_test.data, arguments=load_test.arguments) as server:
        check_everything(server, load_test.facts)
        count_effects(load_test.api, load_test.happened)


def test_each_acknowledged_effect_happened_once_and_none_twice(load_test):
    happened = load_test.happened
    wrong = [text for text in load_test.facts.done if happened.get(digest(text)) != 1]
    assert not wrong and max(happened.values()) == 1, f"seed {SEED}: {len(wrong)} acknowledged but not once: {wrong[:3]}"


def test_the_load_was_heavy_enough(load_test):
    facts, least = load_test.facts, KILLS * 2
    assert len(facts.facts) > least, f"only {len(facts.facts)} answers were acknowledged over {load_test.kills} kills"
    missing = [kind for kind in ("symbols", "result", "page", "operation", "commit", "request") if not facts.kinds[kind]]
    assert not missing, f"nothing of {missing}"
    assert facts.lost > 0, "no kill fell into a call"


def one_round(chance, api, data, arguments, facts, number):
    """Starts a server, checks the facts, loads the server and kills it. Returns the number of killed processes."""
    if chance.random() < 0.05:
        return kill_during_start(chance, data, arguments)
    two = chance.random() < 0.15
    with Server(data=data, arguments=arguments) as first:
        ready = request(first.port, "GET", "/readyz")
        assert ready.status == 200, f"seed {SEED}, round {number}: not ready: {ready.body[:300]}"
        check_facts(first, facts.of_round() + facts.some(chance, OLDER), f"seed {SEED}, round {number}")
        facts.next_round()
        if not two:
            load(chance, [first], facts, number)
            return 1
        with Server(data=data, arguments=arguments) as second:
            load(chance, [first, second], facts, number)
            return 2


def kill_during_start(chance, data, arguments):
    server = Server(data=data, arguments=arguments)
    until = time.monotonic() + chance.uniform(0.0, 0.2)
    started = threading.Thread(target=lambda: start_and_expect_a_kill(server), daemon=True)
    started.start()
    while server.process is None or time.monotonic() < until:
        time.sleep(0.002)
    server.kill()
    started.join(20)
    return 1


def start_and_expect_a_kill(server):
    try:
        server.__enter__()
    except BaseException:  # The server was killed during its start.
        pass


def load(chance, servers, facts, number):
    clients = [
        Client(servers[n % len(servers)].port, number, n, facts, random.Random(chance.random()))
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


def check_facts(server, facts, where):
    """Checks every fact, in four threads."""
    wrong = []

    def check_share(share):
        for fact in share:
            try:
                fact.look(server.port)
            except Exception as problem:
                wrong.append(f"{fact.kind} {fact.name}: {type(problem).__name__}: {problem}")

    threads = [threading.Thread(target=check_share, args=(facts[n::4],), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    # A long run has many facts at the end.
    seconds = 60 + len(facts) / 100
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), f"{where}: looking hangs"
    assert not wrong, f"{where}: {len(wrong)} of {len(facts)} are no longer true, first: {wrong[0]}"


def check_everything(server, facts):
    until = time.monotonic() + SECONDS_UNTIL_TAKEN_OVER
    for operation in facts.operations:
        while (text := text_even_of_a_refusal(server.port, "plasm_run", operation.ref, program=operation.program)).startswith("wait("):
            assert time.monotonic() < until, f"no process took {operation.program} over: {text}"
            time.sleep(0.5)
    check_facts(server, facts.facts, f"seed {SEED}, at the end")


def count_effects(api, happened):
    """Adds the effects since the last count. The API then forgets them, so a long test stays as fast as a short one."""
    for effect in api.effects():
        happened[effect] = happened.get(effect, 0) + 1
    api.reset()
