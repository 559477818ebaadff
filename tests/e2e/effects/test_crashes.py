"""Effects of a server that is killed at random moments.

Invariant: the test API runs in a process that no test kills, and its count says what happened.
"""

import os
import random
import threading
import time

import anyio
import pytest

from lib.test_api import TrackerApi, digest
from lib.effects import REMARKS, TEXTS, TICKETS, call, connect, open_session, plan_commit, receipts, server_of, text_of_call

# The number of kills, and how many more there may be until one of them falls into an effect.
KILLS = int(os.environ.get("EFFECT_KILLS", "14"))
MOST_KILLS = 4 * KILLS
# Another process takes a run over when its owner has been silent for 20 s.
SECONDS_UNTIL_TAKEN_OVER = 60


@pytest.mark.timeout(900)
async def test_after_a_kill_at_any_moment_every_effect_happened_at_most_once_and_is_reported(record_property):
    rounds, unknown, data = 0, 0, None
    with TrackerApi() as api:
        while rounds < KILLS or unknown == 0 and rounds < MOST_KILLS:
            with anyio.fail_after(120):
                data, unknown_now = await kill_during_a_run(api, data, rounds)
            rounds, unknown = rounds + 1, unknown + unknown_now
    record_property("kills", rounds)
    record_property("kills within an effect", unknown)
    assert unknown > 0, f"none of {rounds} kills fell into an effect"


async def kill_during_a_run(api, data, round_number):
    """Kills a server during one run and checks what the next server reports. Returns the data folder and the number of unknown effects."""
    # A caller cannot tell whether the delay is before the effect or after it.
    api.reset(random.choice(["slow=30", "slow=30;when=after"]))
    with server_of(api, data) as server:
        async with connect(server) as client:
            ref = await open_session(client, f"kill {round_number}")
            commit = await plan_commit(client, ref, REMARKS)
        calls = threading.Thread(target=lambda: anyio.run(call_until_the_server_is_gone, server, ref, commit), daemon=True)
        calls.start()
        await anyio.sleep(random.uniform(0.02, 0.4))
        server.kill()
        calls.join(10)
    with server_of(api, server.data) as next_server:
        async with connect(next_server) as client:
            # The next server continues the run. Its end is the same for every later question.
            text = "wait("
            while text.startswith("wait("):
                text = (await call(client, "plasm_run", ref, plan_commit_ref=commit)).content[0].text
            happened = api.effects()
            again = (await call(client, "plasm_run", ref, plan_commit_ref=commit)).content[0].text
    texts = [text, again]
    assert happened == api.effects(), "asking again did something"
    assert happened == [digest(text) for text in TEXTS[: len(happened)]], "not each once, in order"
    done, unknown, failed = receipts(texts[0])
    where = f"round {round_number}: {len(happened)} effects happened, reported: {texts[0]}"
    assert failed == 0 and unknown <= 1 and done <= len(happened) <= done + unknown, where
    assert receipts(texts[1])[:2] == (done, unknown), f"{where}; then: {texts[1]}"
    assert texts[0].startswith("## "), where
    return server.data, unknown


async def call_until_the_server_is_gone(server, ref, commit):
    try:
        async with connect(server) as client:
            await call(client, "plasm_run", ref, plan_commit_ref=commit)
    except BaseException:  # The server is gone; any error of the client is right.
        pass


async def test_an_operation_of_a_killed_process_goes_on_in_the_next_one_and_keyed_effects_happen_once():
    with TrackerApi() as api:
        api.reset("slow=150;when=after")
        with server_of(api) as server:
            async with connect(server) as client:
                ref = await open_session(client, "taken over")
                commit = await plan_commit(client, ref, TICKETS)
                text = text_of_call(await call(client, "plasm_run", ref, plan_commit_ref=commit, wait=False))
                assert text.startswith("wait(s0_o1)"), text
                await anyio.sleep(0.5)
            server.kill()
        before = len(api.effects())
        with server_of(api, server.data) as next_server:
            async with connect(next_server) as client:
                until = time.monotonic() + SECONDS_UNTIL_TAKEN_OVER + 15
                while (text := text_of_call(await call(client, "plasm_run", ref, program="wait(s0_o1)"))).startswith("wait("):
                    assert time.monotonic() < until, f"no process took it over: {text}"
                    await anyio.sleep(1)
                replayed = text_of_call(await call(client, "plasm_run", ref, plan_commit_ref=commit))
        happened = api.effects()
        assert 0 < before < 6, f"{before} effects before the kill"
        assert len(happened) == len(set(happened)) == 6, f"{len(happened)} effects"
        assert receipts(text) == (6, 0, 0), text
        assert "replayed: " in replayed and receipts(replayed) == (6, 0, 0), replayed
