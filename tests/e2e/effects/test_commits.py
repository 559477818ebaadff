"""Commits, replays, operations and pages, on a server without faults.

Invariant: the effects that a server reports are held against the test API's own count of the effects that happened.
"""

import re

import anyio
import pytest

from lib.answers import tables
from lib.test_api import TrackerApi, digest
from lib.effects import REMARKS, TEXTS, TICKETS, call, connect, open_session, plan_commit, receipts, server_of, text_of_call
from lib.server import Server, settings


@pytest.fixture(scope="module")
def api():
    with TrackerApi() as started:
        yield started


@pytest.fixture(scope="module")
def client(portal, api):
    with server_of(api) as server, portal.wrap_async_context_manager(connect(server)) as connected:
        yield connected


@pytest.fixture(scope="module")
def ref(portal, client):
    return portal.call(open_session, client, "commits")


@pytest.fixture(autouse=True)
def no_effects_yet(api):
    api.reset()


async def test_a_write_without_a_commit_is_refused_and_nothing_happens(api, client, ref):
    api.reset()
    text = text_of_call(await call(client, "plasm_run", ref, program=REMARKS), error=True)
    assert text.startswith("review_needed: nothing ran") and "plan_commit_ref: pc0" in text, text
    assert api.effects() == [], api.effects()


async def test_a_committed_plan_runs_once_and_is_replayed_afterwards(api, client, ref):
    commit = await plan_commit(client, ref, REMARKS)
    first = text_of_call(await call(client, "plasm_run", ref, plan_commit_ref=commit))
    assert receipts(first) == (6, 0, 0), first
    answers = []

    async def ask():
        answers.append(text_of_call(await call(client, "plasm_run", ref, plan_commit_ref=commit)))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ask)
    assert all("replayed: nothing ran again" in text and receipts(text) == (6, 0, 0) for text in answers), answers
    assert api.effects() == [digest(text) for text in TEXTS], "not one effect for each text, in order"


async def test_another_program_under_the_same_commit_is_refused(client, ref):
    commit = await plan_commit(client, ref, REMARKS)
    answer = await call(client, "plasm_run", ref, program=TICKETS, plan_commit_ref=commit)
    assert text_of_call(answer, error=True).startswith("other_plan: "), answer.content[0].text


async def test_the_same_request_id_runs_once(api, client, ref):
    api.reset()
    forced = {"program": REMARKS, "force": True, "request_id": "job-7"}
    first = text_of_call(await call(client, "plasm_run", ref, **forced))
    repeated = text_of_call(await call(client, "plasm_run", ref, **forced))
    assert "replayed" not in first and "replayed: nothing ran again" in repeated, repeated
    assert api.effects() == [digest(text) for text in TEXTS], api.effects()


async def start_without_waiting(client, ref):
    """Starts six writes as an operation and returns its handle, such as `s0_o1`."""
    text = text_of_call(await call(client, "plasm_run", ref, program=REMARKS, force=True, wait=False))
    return re.match(r"wait\((s0_o\d+)\)\n", text).group(1)


async def test_wait_false_answers_a_handle_and_wait_answers_the_result(api, client, ref):
    api.reset("slow=100")
    handle = await start_without_waiting(client, ref)
    while (text := text_of_call(await call(client, "plasm_run", ref, program=f"wait({handle})"))).startswith("wait("):
        pass
    assert receipts(text) == (6, 0, 0), text
    assert len(api.effects()) == 6, api.effects()


async def test_cancel_stops_before_the_next_effect(api, client, ref):
    api.reset("slow=200")
    handle = await start_without_waiting(client, ref)
    while not api.effects():
        await anyio.sleep(0.05)
    answer = await call(client, "plasm_run", ref, program=f"cancel({handle})")
    while answer.content[0].text.startswith("wait("):
        answer = await call(client, "plasm_run", ref, program=f"wait({handle})")
    text, happened = text_of_call(answer, error=True), len(api.effects())
    assert "cancelled: " in text and 0 < happened < 6, f"{happened} effects: {text}"
    assert receipts(text) == (happened, 0, 0), f"{happened} effects: {text}"


async def test_a_list_goes_on_by_its_handles_to_its_end_over_restarts(api):
    arguments = api.server_arguments(*settings("[limits]\nrows = 50\n"))
    api.reset()
    numbers, program, data = [], "Ticket[project, number]", None
    while program:
        # Each page comes from another server process.
        with Server(data=data, arguments=arguments) as server:
            data = server.data
            async with connect(server) as client:
                ref = await open_session(client, "pages")
                answer = await call(client, "plasm_run", ref, program=program)
                text = text_of_call(answer)
        more = re.search(r"^more of result: (page\(s0_pg\d+\))$", text, re.MULTILINE)
        rows = tables(text)["result"]
        numbers += [(row["project"], row["number"]) for row in rows]
        program = more and more[1]
    assert len(numbers) == len(set(numbers)) == 321, f"{len(numbers)} rows, {len(set(numbers))} different ones"
