"""Sessions over several connections and processes: the same intent, id or slot names the same session and the same symbols."""

import json
from pathlib import Path

import anyio
import pytest

from lib.answers import DEMO, seeds, symbols, tables, with_every_capability
from lib.client import LegacySession, modern_call, request, text_of
from lib.mcp_client import over_http, over_stdio
from lib.server import Server, new_folder, settings

ERAS = ("modern", "legacy")
THINGS_OF_THE_WIDE_CATALOG = 200

@pytest.fixture(scope="module")
def canonical(portal, server):
    """The id of a session that another connection has opened."""

    async def open_session():
        async with over_http(server)() as client:
            opened = await client.call_tool("plasm_context", {"intent": "shared", "seeds": DEMO})
            return opened.meta["plasm"]["logical_session_id"]

    return portal.call(open_session)


@pytest.mark.parametrize("era", ERAS)
async def test_the_canonical_id_works_on_another_connection(server, canonical, era):
    async with over_http(server)(era) as other:
        await assert_id_is_usable(other, canonical)


async def test_the_canonical_id_works_in_another_process_on_the_same_data(server, canonical):
    async with over_stdio(server.data)("legacy") as other:
        await assert_id_is_usable(other, canonical)


async def assert_id_is_usable(client, canonical):
    arguments = {"logical_session_ref": canonical, "program": "Project[key]"}
    planned = await client.call_tool("plasm", arguments)
    assert not planned.is_error and planned.content[0].text.startswith("plan ok"), planned.content[0].text
    ran = await client.call_tool("plasm_run", arguments)
    keys = [row["key"] for row in tables(ran.content[0].text)["result"]]
    assert keys == ["API", "DOC", "MOB", "OPS", "SEC", "WEB"], keys
    # This connection has now a slot for the session, and the artifact is named after the slot.
    slot = ran.meta["plasm"]["logical_session_ref"]
    uri = ran.meta["plasm"]["steps"][0]["artifact_uri"]
    assert uri.startswith(f"plasm://session/{slot}/r/"), uri
    repeated = await client.call_tool("plasm_run", {**arguments, "logical_session_ref": slot})
    assert repeated.content[0].text == ran.content[0].text, repeated.content[0].text
    read = await client.call_tool("read_artifact", {"uri": uri})
    assert not read.is_error, read.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_two_intents_are_two_sessions_with_their_own_symbols(era):
    with Server() as server:
        async with over_http(server)(era) as client:
            one = await client.call_tool("plasm_context", {"intent": "one", "seeds": seeds("Project")})
            two = await client.call_tool("plasm_context", {"intent": "two", "seeds": seeds("Person")})
            assert symbols(one.content[0].text) == {"e1": "Project"}, one.content[0].text
            assert symbols(two.content[0].text) == {"e1": "Person"}, two.content[0].text
            refs = [answer.meta["plasm"]["logical_session_ref"] for answer in (one, two)]
            assert refs == ["s0", "s1"], refs
            other = await client.call_tool("plasm", {"logical_session_ref": "s1", "program": "Project"})
            assert other.is_error and "E0209" in other.content[0].text, other.content[0].text


async def test_two_hosts_on_one_data_folder_share_a_session():
    with Server() as server:
        async with over_stdio(server.data)("modern") as one, over_stdio(server.data)("legacy") as two:
            first = await one.call_tool("plasm_context", {"intent": "two hosts", "seeds": seeds("Project")})
            second = await two.call_tool("plasm_context", {"intent": "two hosts", "seeds": seeds("Person")})
            assert symbols(first.content[0].text) == {"e1": "Project"}, first.content[0].text
            assert symbols(second.content[0].text) == {"e2": "Person"}, second.content[0].text
            ids = {answer.meta["plasm"]["logical_session_id"] for answer in (first, second)}
            assert len(ids) == 1, ids


# --- many calls at once


def wide_catalog(server_data):
    """A catalog with as many entities as there are calls."""
    folder = Path(f"{server_data}-catalogs")
    folder.mkdir()
    things = [f"Thing{n:02}" for n in range(THINGS_OF_THE_WIDE_CATALOG)]
    lines = ["catalog: wide", "version: 1", "title: Wide", "origin: http://wide.localhost", "entities:"]
    lines += [f"  {thing}: {{about: a thing, key: [id], fields: {{id: string}}}}" for thing in things]
    lines += ["capabilities:"]
    lines += [f'  list_{thing}: {{query: {thing}, http: "GET /{thing}", rows: data}}' for thing in things]
    (folder / "wide.yaml").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def wide_server():
    data = new_folder("data-")
    with Server(data, arguments=("--catalogs", wide_catalog(data))) as started:
        yield started


@pytest.fixture(scope="module")
def answers_at_once(portal, wide_server):
    """The answers of 200 `plasm_context` calls on one intent, from four connections at the same time."""
    answers = {}

    async def open_one(client, entity):
        arguments = {"intent": "all at once", "seeds": seeds(entity, api="wide")}
        answers[entity] = await client.call_tool("plasm_context", arguments)

    async def open_all():
        connect = over_http(wide_server)
        async with connect("modern") as a, connect("modern") as b, connect("legacy") as c, connect("legacy") as d:
            async with anyio.create_task_group() as tasks:
                for n in range(THINGS_OF_THE_WIDE_CATALOG):
                    tasks.start_soon(open_one, (a, b, c, d)[n % 4], f"Thing{n:02}")

    portal.call(open_all)
    return answers


def test_200_contexts_at_once_on_one_intent_are_all_accepted(answers_at_once):
    refused = [answer.content[0].text for answer in answers_at_once.values() if answer.is_error]
    assert len(answers_at_once) == THINGS_OF_THE_WIDE_CATALOG and not refused, f"{len(refused)} refused, first: {refused[:1]}"


def test_replay_shows_each_of_200_entities_once_with_the_symbol_that_its_caller_got(wide_server, answers_at_once):
    arguments = {"intent": "all at once", "seeds": seeds("Thing00", api="wide"), "replay": True}
    whole = symbols(text_of(modern_call(wide_server.port, "plasm_context", arguments)))
    assert set(whole) == {f"e{n + 1}" for n in range(THINGS_OF_THE_WIDE_CATALOG)}, whole
    for entity, answer in answers_at_once.items():
        taught = symbols(answer.content[0].text)
        assert entity in taught.values(), f"{entity} was not taught to its caller: {taught}"
        assert taught.items() <= whole.items(), f"{taught} is not in {whole}"


# --- the limits of a tenant


RULES = '[tenants.local]\ncatalogs = ["demo", "git*"]\ncapabilities = ["demo:ticket_*", "gitlab:*"]\nread_only = true\n'


@pytest.fixture(scope="module")
def restricted():
    with Server(arguments=settings(RULES)) as started:
        yield started


async def open_close_session(client):
    tickets = with_every_capability(seeds("Ticket"))
    return await client.call_tool("plasm_context", {"intent": "close", "seeds": tickets})


@pytest.mark.parametrize("era", ERAS)
async def test_forbidden_capabilities_are_not_discovered_listed_or_taught(restricted, era):
    async with over_http(restricted)(era) as client:
        found = await client.call_tool("discover_capabilities", {"intent": "close tickets, comment on them"})
        assert "demo\tTicket" in found.content[0].text, found.content[0].text
        assert "Comment" not in found.content[0].text, found.content[0].text
        listed = (await client.call_tool("list_registry", {})).content[0].text
        assert "gitlab" in listed and "github" not in listed and "stripe" not in listed, listed
        refused = await client.call_tool("plasm_context", {"intent": "x", "seeds": seeds("Ticket", "Comment")})
        assert refused.is_error and "no entity `Comment`" in refused.content[0].text, refused.content[0].text
        taught = await client.call_tool(
            "plasm_context",
            {"intent": "close", "seeds": [{"api": "demo", "entity": "Ticket", "capabilities": ["*"]}]},
        )
        assert not taught.is_error and ".m1" not in taught.content[0].text, taught.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_forbidden_capabilities_are_not_planned_or_run(restricted, era):
    async with over_http(restricted)(era) as client:
        taught = await open_close_session(client)
        ref = taught.meta["plasm"]["logical_session_ref"]
        for tool in ("plasm", "plasm_run"):
            close = {"logical_session_ref": ref, "program": 'e1(project="OPS", number=1).close(note="x")'}
            answer = await client.call_tool(tool, close)
            assert answer.is_error and "E0210" in answer.content[0].text, answer.content[0].text


# --- transport sessions that ended


def test_a_transport_session_that_its_client_ended_is_404(server):
    session = LegacySession(server.port)
    session.initialize()
    headers = {"Mcp-Session-Id": session.session, "MCP-Protocol-Version": session.version}
    ended = request(server.port, "DELETE", headers=headers)
    assert ended.status in (200, 202, 204), f"{ended.status} {ended.body[:200]}"
    after = session.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
    assert after.status == 404, f"{after.status} {after.body[:200]}"


def test_a_transport_session_id_that_was_never_given_out_is_404(server):
    stranger = LegacySession(server.port, session="00000000-0000-4000-8000-000000000000")
    answer = stranger.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
    assert answer.status == 404, f"{answer.status} {json.dumps(answer.body.decode())[:200]}"
