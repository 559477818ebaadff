"""Leases of runs: killed, frozen and cancelled owners, with writes that wait for a place at a slow origin.

Invariant: the test API runs in a process that no test stops. Its count says what left, so a write that left twice, or after it was
cancelled or taken over, is counted.
"""

import os
import signal
import time

import anyio
import pytest

from lib.effects import LIST, call, open_session, plan_commit, receipts, text_of_call
from lib.http_peer import Peer
from lib.javascript import ModernConnection, value_of, wait_for_end
from lib.server import Server, settings
from lib.test_api import TrackerApi
from mcp import Client

TICKETS = f'{LIST} => Ticket.open(project="OPS", title="{{{{ _ }}}}")'
REMARKS = f'{LIST} => Comment.add(ticket=Ticket(project="OPS", number=42), text="{{{{ _ }}}}")'
# A process that is frozen longer than this loses its runs (crates/durable/src/owners.rs), and the others look every 5 s.
SECONDS_OF_A_LEASE = 20
SECONDS_UNTIL_TAKEN_OVER = SECONDS_OF_A_LEASE + 15
# The promise for runs of a killed process after a restart.
SECONDS_TO_GO_ON = 10
ONE_PLACE = "[limits]\ncalls_per_origin = 1\n"


def server_with(api, text="", data=None):
    return Server(data=data, arguments=[*api.server_arguments(), *settings(text)])


def connect(server):
    return Client(server.mcp, mode="auto", read_timeout_seconds=60)


async def until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        await anyio.sleep(0.1)


async def start_detached(client, intent, program):
    """Starts a run that nobody waits for. Returns its session and handle."""
    ref = await open_session(client, intent)
    commit = await plan_commit(client, ref, program)
    text = text_of_call(await call(client, "plasm_run", ref, plan_commit_ref=commit, wait=False))
    assert text.startswith("wait("), text
    return ref, text[len("wait(") : text.index(")")]


async def freeze(server):
    """Stops a process while its next write waits at the API. A process that is frozen inside a commit holds the lock of the database, and
    all others wait for it; that is another promise (docs/running.md)."""
    await anyio.sleep(0.7)
    os.kill(server.process.pid, signal.SIGSTOP)


async def outcome_of(client, ref, handle):
    """The answer of `wait` for a run, whether it succeeded or not."""
    return (await call(client, "plasm_run", ref, program=f"wait({handle})")).content[0].text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", [TICKETS, REMARKS], ids=["keyed", "plain"])
async def test_runs_that_nobody_asks_for_go_on_after_a_kill(program):
    with TrackerApi() as api:
        api.reset("slow=300;when=after")
        with server_with(api) as server:
            async with connect(server) as client:
                ref, handle = await start_detached(client, "unattended", program)
                await until(lambda: len(api.effects()) > 1, 30, api.effects)
            server.kill()
        with server_with(api, data=server.data) as next_server:
            # The run is over before the first question.
            if program is TICKETS:
                await until(lambda: len(api.effects()) == 6, SECONDS_TO_GO_ON, lambda: f"{len(api.effects())} effects")
            await anyio.sleep(3)
            happened = api.effects()
            async with connect(next_server) as client:
                text = await outcome_of(client, ref, handle)
        assert happened == api.effects() and len(happened) == len(set(happened)), "an effect was repeated"
        done, unknown, failed = receipts(text)
        assert failed == 0 and done <= len(happened) <= done + unknown, text
        if program is TICKETS:
            assert (done, unknown) == (6, 0), text
        else:
            # The API does not recognise repetitions, so the write that was under way is unknown and nothing follows it.
            assert unknown == 1, text


@pytest.mark.timeout(300)
async def test_a_frozen_owner_loses_its_run_and_sends_nothing_when_it_wakes_up():
    with TrackerApi() as api:
        api.reset("slow=1500;when=before")
        with server_with(api) as one, server_with(api, data=one.data) as two:
            async with connect(one) as client:
                ref, handle = await start_detached(client, "frozen", TICKETS)
                await until(lambda: len(api.effects()) >= 1, 30, api.effects)
            await freeze(one)
            try:
                await until(lambda: len(api.effects()) == 6, SECONDS_UNTIL_TAKEN_OVER + 15, lambda: f"{len(api.effects())} effects")
                async with connect(two) as client:
                    text = ""
                    with anyio.fail_after(30):
                        while not text.startswith("## "):
                            text = text_of_call(await call(client, "plasm_run", ref, program=f"wait({handle})"))
                assert receipts(text) == (6, 0, 0), text
            finally:
                os.kill(one.process.pid, signal.SIGCONT)
            await anyio.sleep(8)
            happened = api.effects()
            assert len(happened) == len(set(happened)) == 6, "the frozen process sent more"
            async with connect(one) as client:
                again = text_of_call(await call(client, "plasm_run", ref, program=f"wait({handle})"))
            assert receipts(again) == (6, 0, 0), again


@pytest.mark.timeout(300)
async def test_a_frozen_owner_whose_writes_waited_for_a_place_sends_none_of_them():
    with TrackerApi() as api:
        api.reset("slow=3000;when=before")
        with server_with(api, ONE_PLACE) as one, server_with(api, ONE_PLACE, data=one.data) as two:
            async with connect(one) as client:
                runs = [await start_detached(client, f"waits {n}", f'Ticket.open(project="OPS", title="title {n}")') for n in range(6)]
                await until(lambda: len(api.effects()) >= 1, 30, api.effects)
            await freeze(one)
            try:
                await until(lambda: len(api.effects()) == 6, SECONDS_UNTIL_TAKEN_OVER + 40, lambda: f"{len(api.effects())} effects")
            finally:
                os.kill(one.process.pid, signal.SIGCONT)
            await anyio.sleep(10)
            happened = api.effects()
            assert len(happened) == len(set(happened)) == 6, f"{len(happened)} effects of 6 runs"
            async with connect(two) as client:
                for ref, handle in runs:
                    text = text_of_call(await call(client, "plasm_run", ref, program=f"wait({handle})"))
                    assert receipts(text)[0] == 1, text


@pytest.mark.timeout(200)
async def test_a_cancelled_write_that_waits_for_a_place_never_leaves():
    with TrackerApi() as api:
        api.reset("slow=2500;when=after")
        with server_with(api, ONE_PLACE) as server:
            async with connect(server) as client:
                runs = [await start_detached(client, f"cancel {n}", f'Ticket.open(project="OPS", title="title {n}")') for n in range(17)]
                await until(lambda: len(api.effects()) == 1, 30, api.effects)
                for ref, handle in runs[1:]:
                    await call(client, "plasm_run", ref, program=f"cancel({handle})")
                # Time enough for a second write to take the place of the first.
                await anyio.sleep(6)
                happened = len(api.effects())
                texts = [await outcome_of(client, ref, handle) for ref, handle in runs]
    assert happened == 1, f"{happened - 1} of 16 cancelled writes left"
    assert [receipts(text)[0] for text in texts] == [1] + 16 * [0], texts


# --- fetch in scripts


def post_code(origin, count):
    body = f"fetch('{origin}/slow?ms=1500&n=' + n, {{method: 'POST', body: 'x'}})"
    return f"(await Promise.all([...Array({count}).keys()].map(n => {body}.then(r => r.status, e => e.name)))).join()"


def posts(peer):
    return [one["path"] for one in peer.requests if one["method"] == "POST"]


@pytest.mark.timeout(200)
async def test_posts_of_a_script_leave_once_over_a_kill_and_those_that_waited_for_a_place_leave_later():
    with Peer() as peer:
        arguments = settings(f'{ONE_PLACE}[js]\nfetch = ["{peer.origin}"]\n')
        with Server(arguments=arguments) as server:
            agent = ModernConnection(server.port)
            run = value_of(agent.tool("run_js", code=post_code(peer.origin, 5), wait_ms=0))["execution_id"]
            await until(lambda: len(posts(peer)) == 1, 30, lambda: posts(peer))
            server.kill()
        with Server(data=server.data, arguments=arguments) as next_server:
            agent = ModernConnection(next_server.port)
            ended = wait_for_end(agent, run, seconds=60)
        assert sorted(posts(peer)) == sorted({f"/slow?ms=1500&n={n}" for n in range(5)}), posts(peer)
        answers = ended["result"].split(",")
        assert answers.count("UnknownOutcome") == 1 and answers.count("200") == 4, ended


@pytest.mark.timeout(200)
async def test_a_cancelled_script_whose_posts_wait_for_a_place_sends_none_of_them():
    with Peer() as peer:
        with Server(arguments=settings(f'{ONE_PLACE}[js]\nfetch = ["{peer.origin}"]\n')) as server:
            agent = ModernConnection(server.port)
            run = value_of(agent.tool("run_js", code=post_code(peer.origin, 5), wait_ms=0))["execution_id"]
            await until(lambda: len(posts(peer)) == 1, 30, lambda: posts(peer))
            value_of(agent.tool("cancel_execution", execution_id=run))
            await anyio.sleep(6)
            assert len(posts(peer)) == 1, posts(peer)


@pytest.mark.timeout(250)
@pytest.mark.parametrize("killed", [False, True], ids=["alive", "killed"])
async def test_programs_of_cancelled_scripts_that_wait_for_a_place_never_leave(killed):
    text = f"{ONE_PLACE}[js]\nwrites_without_review = true\n"
    with TrackerApi() as api:
        api.reset("slow=2500;when=before")
        with server_with(api, text) as server:
            agent, runs = ModernConnection(server.port), []
            async with connect(server) as client:
                for n in range(6):
                    ref = await open_session(client, f"script {n}")
                    code = f"""await plasm('Ticket.open(project="OPS", title="script {n}")')"""
                    runs.append(value_of(agent.tool("run_js", code=code, logical_session_ref=ref, wait_ms=0))["execution_id"])
            await until(lambda: len(api.effects()) == 1, 30, api.effects)
            if killed:
                server.kill()
            else:
                check_that_cancelled_programs_stay(api, agent, runs)
        if killed:
            with server_with(api, text, data=server.data) as next_server:
                check_that_cancelled_programs_stay(api, ModernConnection(next_server.port), runs)


def check_that_cancelled_programs_stay(api, agent, runs):
    """Cancels every script. Only the writes that left before it may be at the API."""
    for run in runs:
        agent.tool("cancel_execution", execution_id=run)
    left_before = len(api.effects())
    time.sleep(8)
    # One write may have had its place at the moment of its cancellation, and is counted when its answer is due.
    assert len(api.effects()) <= left_before + 1, f"{len(api.effects()) - left_before} writes of cancelled scripts left"
