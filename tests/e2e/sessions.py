"""Sessions across connections, processes and crashes: the part of `clients.py` that needs more than one connection.

Invariant: what a client was told stays true: the same intent, id or slot names the same session and the same symbols.
"""

import http.client
import json
import re
import tempfile
from pathlib import Path

import anyio

import by_hand
from answers import DEMO, seeds, symbols, tables
from harness import LegacySession, Server, modern_call, refusal_of, request, text_of

WIDE = 200


async def other_connections(case, over_http, over_stdio):
    with Server() as server:
        async with over_http(server)("modern") as first:
            opened = await first.call_tool("plasm_context", {"intent": "shared", "seeds": DEMO})
            canonical = opened.meta["plasm"]["logical_session_id"]
        for era in ("modern", "legacy"):
            async with case(f"http {era}: the canonical id works as logical_session_ref on another connection"):
                async with over_http(server)(era) as other:
                    await use_canonical(other, canonical)
        async with case("stdio: the canonical id works in another process on the same data"):
            async with over_stdio(server.data)("legacy") as other:
                await use_canonical(other, canonical)


async def use_canonical(client, canonical):
    arguments = {"logical_session_ref": canonical, "program": "Project[key]"}
    planned = await client.call_tool("plasm", arguments)
    assert not planned.is_error and planned.content[0].text.startswith("plan ok"), planned.content[0].text
    ran = await client.call_tool("plasm_run", arguments)
    keys = [row["key"] for row in tables(ran.content[0].text)["result"]]
    assert keys == ["API", "DOC", "MOB", "OPS", "SEC", "WEB"], keys
    # The session has a slot of this connection's own from now on, and the artifact is named by it.
    slot = ran.meta["plasm"]["logical_session_ref"]
    uri = ran.meta["plasm"]["steps"][0]["artifact_uri"]
    assert uri.startswith(f"plasm://session/{slot}/r/"), uri
    again = await client.call_tool("plasm_run", {**arguments, "logical_session_ref": slot})
    assert again.content[0].text == ran.content[0].text, again.content[0].text
    read = await client.call_tool("read_artifact", {"uri": uri})
    assert not read.is_error, read.content[0].text


async def two_intents(case, over_http, _over_stdio):
    for era in ("modern", "legacy"):
        async with case(f"http {era}: two intents are two sessions with their own symbols"):
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


async def two_processes(case, _over_http, over_stdio):
    async with case("stdio: two hosts on one data folder at the same time share a session"):
        with Server() as server:
            async with over_stdio(server.data)("modern") as one, over_stdio(server.data)("legacy") as two:
                first = await one.call_tool("plasm_context", {"intent": "two hosts", "seeds": seeds("Project")})
                second = await two.call_tool("plasm_context", {"intent": "two hosts", "seeds": seeds("Person")})
                assert symbols(first.content[0].text) == {"e1": "Project"}, first.content[0].text
                assert symbols(second.content[0].text) == {"e2": "Person"}, second.content[0].text
                ids = {answer.meta["plasm"]["logical_session_id"] for answer in (first, second)}
                assert len(ids) == 1, ids


# --- many at once


def wide_catalog(server_data):
    """A catalog with as many entities as there are calls."""
    folder = Path(f"{server_data}-catalogs")
    folder.mkdir()
    things = [f"Thing{n:02}" for n in range(WIDE)]
    lines = ["catalog: wide", "version: 1", "title: Wide", "origin: http://wide.localhost", "entities:"]
    lines += [f"  {thing}: {{about: a thing, key: [id], fields: {{id: string}}}}" for thing in things]
    lines += ["capabilities:"]
    lines += [f'  list_{thing}: {{query: {thing}, http: "GET /{thing}", rows: data}}' for thing in things]
    (folder / "wide.yaml").write_text("\n".join(lines) + "\n")
    return folder


async def at_once(case, over_http, _over_stdio):
    server = Server()
    server.arguments = ("--catalogs", str(wide_catalog(server.data)))
    with server:
        answers = {}

        async def open_one(client, entity):
            arguments = {"intent": "all at once", "seeds": seeds(entity, api="wide")}
            answers[entity] = await client.call_tool("plasm_context", arguments)

        async with case(f"http: {WIDE} plasm_context calls at once on one intent all land"):
            connect = over_http(server)
            async with connect("modern") as a, connect("modern") as b, connect("legacy") as c, connect("legacy") as d:
                async with anyio.create_task_group() as tasks:
                    for n in range(WIDE):
                        tasks.start_soon(open_one, (a, b, c, d)[n % 4], f"Thing{n:02}")
            refused = [a.content[0].text for a in answers.values() if a.is_error]
            assert len(answers) == WIDE and not refused, f"{len(refused)} refused, first: {refused[0]}"
        async with case("http: replay shows each of them once, with the symbol its caller was told"):
            arguments = {"intent": "all at once", "seeds": seeds("Thing00", api="wide"), "replay": True}
            whole = symbols(text_of(modern_call(server.port, "plasm_context", arguments)))
            assert set(whole) == {f"e{n + 1}" for n in range(WIDE)}, whole
            for entity, answer in answers.items():
                told = symbols(answer.content[0].text)
                assert entity in told.values(), f"{entity} was not taught to its caller: {told}"
                assert told.items() <= whole.items(), f"{told} is not in {whole}"


# --- what a tenant may use


async def allowed(case, over_http, _over_stdio):
    rules = '[tenants.local]\ncatalogs = ["demo", "git*"]\ncapabilities = ["demo:ticket_*", "gitlab:*"]\nread_only = true\n'
    with Server(arguments=settings(rules)) as server:
        for era in ("modern", "legacy"):
            async with over_http(server)(era) as client:
                async with case(f"http {era}: what is not allowed is not found, listed or taught"):
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
                async with case(f"http {era}: what is not allowed is not planned or run"):
                    ref = taught.meta["plasm"]["logical_session_ref"]
                    for tool in ("plasm", "plasm_run"):
                        close = {"logical_session_ref": ref, "program": 'e1(project="OPS", number=1).close(note="x")'}
                        answer = await client.call_tool(tool, close)
                        assert answer.is_error and "E0210" in answer.content[0].text, answer.content[0].text


# --- crashes


def settings(text):
    """The arguments that make a server read these settings."""
    path = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    path.write_text(text)
    return ("--config", str(path))


async def restart(case, over_http, _over_stdio):
    # The server that comes after it writes slots by name: what a session was taught before still means the same.
    with Server(arguments=settings('[teaching]\nslots = "symbols"\n')) as first:
        crash = {"intent": "crash", "seeds": seeds("Project", "Ticket")}
        before = text_of(modern_call(first.port, "plasm_context", crash))
        project = re.search(r"^e2\{(p\d+)=\$", before, re.MULTILINE).group(1)
        number = re.search(r"^e2\[p\d+,(p\d+)", before, re.MULTILINE).group(1)
        program = {"logical_session_ref": "s0", "program": f'e2{{{project}="OPS"}}.limit(4)[{number}]'}
        ran = text_of(modern_call(first.port, "plasm_run", program))
        connect = over_http(first)
        async with connect("legacy") as stays, connect("modern") as stays_too:
            for client, intent in ((stays, "stays"), (stays_too, "stays too")):
                await client.call_tool("plasm_context", {"intent": intent, "seeds": seeds("Person")})
            first.kill()
            with Server(data=first.data, port=first.port) as second:
                async with case("http modern: after kill -9 the old slot and symbols still work"):
                    assert text_of(modern_call(second.port, "plasm_run", program)) == ran
                async with case("http modern: after kill -9 the same intent has the same table"):
                    assert text_of(modern_call(second.port, "plasm_context", {**crash, "replay": True})) == before
                    same = text_of(modern_call(second.port, "plasm_context", crash))
                    assert "Session unchanged (`e1`…`e2`)" in same, same
                async with case("http modern: after kill -9 old artifacts are readable and new ones get new numbers"):
                    read = {"uri": "plasm://session/s0/r/1"}
                    assert "number" in text_of(modern_call(second.port, "read_artifact", read))
                    text_of(modern_call(second.port, "read_artifact", {"uri": "plasm://session/s0/r/2"}))
                    refusal_of(modern_call(second.port, "read_artifact", {"uri": "plasm://session/s0/r/3"}))
                for era, client, ref in (("legacy", stays, "s0"), ("modern", stays_too, "s1")):
                    async with case(f"http {era}: a client that stays connected over a restart goes on"):
                        later = await client.call_tool("plasm_run", {"logical_session_ref": ref, "program": "e1.limit(1)"})
                        assert not later.is_error, later.content[0].text
                        assert [tool.name for tool in (await client.list_tools()).tools][0] == "plasm_context"


async def old_transport_session(case, _over_http, _over_stdio):
    with Server() as first:
        session = LegacySession(first.port)
        session.initialize()
        text_of(session.call("plasm_context", {"intent": "one", "seeds": seeds("Project")}).message())
        text_of(session.call("plasm_context", {"intent": "two", "seeds": seeds("Person")}).message())
        first.kill()
        with Server(data=first.data) as second:
            back = LegacySession(second.port, session=session.session)
            async with case("http legacy: after kill -9 the old Mcp-Session-Id simply works, with its slots"):
                answer = back.call("plasm_run", {"logical_session_ref": "s1", "program": "Person.limit(1)[name]"})
                assert answer.status == 200, f"{answer.status} {answer.body[:200]}"
                assert "## result (1 row)" in text_of(answer.message())
                other = back.call("plasm", {"logical_session_ref": "s0", "program": "Person"})
                assert "E0209" in refusal_of(other.message())
            async with case("http legacy: many calls at once may come back with the old id"):
                second_back = LegacySession(second.port, session=session.session)
                async with anyio.create_task_group() as tasks:
                    for _ in range(8):
                        tasks.start_soon(anyio.to_thread.run_sync, lambda: plan_ok(second_back))


async def listening(case, _over_http, _over_stdio):
    """A client of the older revisions keeps a stream open for what the server may have to say."""
    with Server() as first:
        session = LegacySession(first.port)
        session.initialize()
        text_of(session.call("plasm_context", {"intent": "listens", "seeds": seeds("Person")}).message())
        with Listening(session) as stream:
            assert stream.answer.status == 200, stream.answer.status
            first.kill()
            async with case("http legacy: an open stream ends with its server"):
                stream.ended()
        with Server(data=first.data, port=first.port):
            for title, last in (("may be opened again", None), ("goes on from the last event", "0")):
                async with case(f"http legacy: after kill -9 a stream {title} with the old id, and calls work beside it"):
                    with Listening(session, last) as stream:
                        kind = stream.answer.headers["Content-Type"]
                        assert stream.answer.status == 200 and kind == "text/event-stream", f"{stream.answer.status} {kind}"
                        answer = session.call("plasm_run", {"logical_session_ref": "s0", "program": "e1.limit(1)"})
                        assert "## result (1 row)" in text_of(answer.message()), answer.body[:200]


class Listening:
    """A GET stream of a transport session."""

    def __init__(self, session, last_event=None):
        self.headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session.session}
        self.headers["MCP-Protocol-Version"] = session.version
        if last_event:
            self.headers["Last-Event-ID"] = last_event
        self.connection = http.client.HTTPConnection("127.0.0.1", session.port, timeout=10)

    def __enter__(self):
        self.connection.request("GET", "/mcp", headers=self.headers)
        self.answer = self.connection.getresponse()
        return self

    def __exit__(self, *_):
        self.connection.close()

    def ended(self):
        try:
            self.answer.read()
        except (http.client.HTTPException, ConnectionError):
            pass


def plan_ok(session):
    answer = session.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
    assert text_of(answer.message()).startswith("plan ok"), answer.body[:200]


async def ended_transport_session(case, _over_http, _over_stdio):
    with Server() as server:
        session = LegacySession(server.port)
        session.initialize()
        headers = {"Mcp-Session-Id": session.session, "MCP-Protocol-Version": session.version}
        async with case("http legacy: a session the client ended is gone: 404"):
            ended = request(server.port, "DELETE", headers=headers)
            assert ended.status in (200, 202, 204), f"{ended.status} {ended.body[:200]}"
            after = session.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
            assert after.status == 404, f"{after.status} {after.body[:200]}"
        async with case("http legacy: a session id that was never given out is 404"):
            stranger = LegacySession(server.port, session="00000000-0000-4000-8000-000000000000")
            answer = stranger.call("plasm", {"logical_session_ref": "s0", "program": "Project"})
            assert answer.status == 404, f"{answer.status} {json.dumps(answer.body.decode())[:200]}"


GROUPS = [
    other_connections,
    two_intents,
    two_processes,
    at_once,
    allowed,
    restart,
    old_transport_session,
    listening,
    ended_transport_session,
    *by_hand.GROUPS,
]
