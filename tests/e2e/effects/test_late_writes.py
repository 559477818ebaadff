"""Writes whose answers are lost: some happen after the client gave up, some never, some at once.

Invariant: what any answer ever called failed is not at the API later, by the API's own list.
"""

import tempfile
from pathlib import Path

import anyio
import pytest

from lib.answers import seeds, with_every_capability
from lib.effects import call, connect
from lib.server import Server, settings
from lib.test_api import TrackerApi

COUNT = 30
SETTLES = 2
# The client gives up after a second. A late write happens a second later, within the settle time.
LATE = "late=2000"
FAULTS = {"late": LATE, "never": "close;when=before", "at once": "close"}
EXPECTED = {"late": "done", "never": "failed", "at once": "done"}
SECONDS_UNTIL_SETTLED = 120


def catalogs(api):
    """The tracker, whose `ticket_open` has no key, a settle time, and a parameter that selects its fault."""
    text = (api.catalogs() / "tracker.yaml").read_text()
    before, after = text.split("  ticket_open:\n", 1)
    after = after.replace("    idempotency: {header: Idempotency-Key}\n", f"    settles: {SETTLES}\n", 1)
    after = after.replace("    params:\n", "    headers: {X-Demo-Fault: \"{fault}\"}\n    params:\n      fault: string\n", 1)
    folder = Path(tempfile.mkdtemp(prefix="catalogs-"))
    (folder / "tracker.yaml").write_text(f"{before}  ticket_open:\n{after}")
    return folder


def titles(api):
    """The titles of all tickets of the project, as the API lists them."""
    found, page = [], 1
    while rows := api.ask(f"/api/tickets?project=OPS&per_page=100&page={page}")["data"]:
        found += [row["title"] for row in rows]
        page += 1
    return found


async def state_of(client, ref, title, fault):
    """The state of the only effect of a run, which runs with the first question."""
    program = f'Ticket.open(project="OPS", title="{title}", fault="{fault}")'
    answer = await call(client, "plasm_run", ref, program=program, force=True, request_id=title)
    outcomes = [receipt["outcome"].split(" ")[0] for receipt in answer.meta["plasm"]["receipts"]]
    assert len(outcomes) == 1, answer.content[0].text
    return outcomes[0], answer.content[0].text


async def ask_all(server, ref, writes, concurrent=8):
    """The state of each write, asked for in several calls at a time. Returns the session too."""
    states, places = {}, anyio.Semaphore(concurrent)
    async with connect(server) as client:
        if ref is None:
            answer = await client.call_tool(
                "plasm_context",
                {"intent": "late writes", "seeds": with_every_capability(seeds("Ticket", "Project", api="tracker"))},
            )
            assert not answer.is_error, answer.content[0].text
            ref = answer.meta["plasm"]["logical_session_id"]

        async def ask(title, kind):
            async with places:
                states[title] = await state_of(client, ref, title, FAULTS[kind])

        async with anyio.create_task_group() as tasks:
            for title, kind in writes.items():
                tasks.start_soon(ask, title, kind)
    return ref, states


@pytest.mark.timeout(420)
@pytest.mark.parametrize("restarts", [False, True])
async def test_no_write_that_was_called_failed_is_there_later_and_all_settle(restarts):
    writes = {f"{kind} {n}": kind for n in range(COUNT) for kind in FAULTS}
    with TrackerApi() as api:
        arguments = ["--no-demo", "--catalogs", str(catalogs(api)), *settings("[limits]\nrequest_timeout_ms = 1000\n")]
        with Server(arguments=arguments) as server:
            ref, first = await ask_all(server, None, writes)
            for title, (state, text) in first.items():
                expected = {"late": {"unknown"}, "never": {"unknown"}, "at once": {"done", "unknown"}}[writes[title]]
                assert state in expected, f"{title}: {text}"
                assert state != "unknown" or "ask again" in text, text
            if not restarts:
                called_failed = await settle(api, server, ref, writes)
        if restarts:
            with Server(data=server.data, arguments=arguments) as next_server:
                called_failed = await settle(api, next_server, ref, writes)
        await anyio.sleep(3 * SETTLES)
        there = set(titles(api))
    assert there.isdisjoint(called_failed), f"called failed, and there later: {there & called_failed}"
    assert {title for title, kind in writes.items() if kind != "never"} <= there


async def settle(api, server, ref, writes):
    """Asks until every write has settled. Returns the titles that were ever called failed."""
    called_failed, states = set(), {}
    with anyio.fail_after(SECONDS_UNTIL_SETTLED):
        while not states or any(state == "unknown" for state, _ in states.values()):
            await anyio.sleep(1)
            ref, states = await ask_all(server, ref, writes)
            now = {title for title, (state, _) in states.items() if state == "failed"}
            assert called_failed <= now, "a settled receipt changed"
            called_failed |= now
            assert called_failed.isdisjoint(titles(api)), called_failed & set(titles(api))
    for title, (state, text) in states.items():
        assert state == EXPECTED[writes[title]], f"{title}: {text}"
    return called_failed
