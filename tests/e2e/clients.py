"""The official Python client on every tool, in both protocol eras, over HTTP and over stdio.

Invariants: every group of checks has its own data folder; a check says what a model or a client program would see.
The client picks the era by `mode`: `legacy` sends `initialize`; `auto` asks `server/discover` and may fall back to it.
"""

import json
import logging
import os
import re
import tempfile
import uuid
from contextlib import asynccontextmanager

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

import catalogs
import sessions
from answers import DEMO, seeds, symbols, tables
from harness import LEGACY, MODERN, TOKAMAK, LegacySession, Server, Suite, modern, modern_headers, request

suite = Suite("clients")
MODE = {"modern": "auto", "legacy": "legacy"}
TOOLS = ["plasm_context", "discover_capabilities", "plasm", "plasm_run", "read_artifact", "list_registry"]
TOOLS += ["run_js", "get_execution", "get_execution_output", "cancel_execution", "list_executions", "list_sessions"]
TOOLS += ["list_session_snapshots", "get_heap_tags", "set_heap_tags", "delete_heap_tags", "query_heaps_by_tags"]
TOOLS += ["fork_session", "promote_session", "rewind_session", "diff_heaps"]
OPS = 'Ticket{project="OPS", state="open"}'


def opens(**arguments):
    return "plasm_context", {"intent": "x", "seeds": DEMO, **arguments}


def plans(program, ref="s0"):
    return "plasm", {"logical_session_ref": ref, "program": program}


def reads(uri="plasm://session/s0/r/1", **arguments):
    return "read_artifact", {"uri": uri, **arguments}


# What is wrong, the call, the code of the refusal, and what of it helps a model to correct itself.
REFUSALS = [
    ("an unknown argument", opens(foo=1), "bad_arguments", "foo.*intent"),
    ("an argument of the wrong type", opens(intent=7), "bad_arguments", "intent.*a text, not a number"),
    ("a list that is none", opens(seeds="demo"), "bad_arguments", "seeds"),
    ("a number that is text", reads(limit="all"), "bad_arguments", "limit"),
    ("a negative number", reads(limit=-1), "bad_arguments", "limit"),
    ("an unknown field of a seed", opens(seeds=[{"api": "demo", "name": "Ticket"}]), "bad_arguments", "name.*entity"),
    ("a missing argument", ("plasm_context", {"seeds": DEMO}), "bad_arguments", "intent"),
    ("a missing program", ("plasm_run", {"logical_session_ref": "s0"}), "bad_arguments", "program"),
    ("no arguments", ("plasm", {}), "bad_arguments", "logical_session_ref"),
    ("an empty intent", opens(intent=" "), "bad_intent", "intent"),
    ("no seeds", opens(seeds=[]), "bad_seeds", "demo"),
    ("an unknown API", opens(seeds=seeds("Ticket", api="dmo")), "unknown_seed", "one of: demo"),
    ("an unknown entity", opens(seeds=seeds("Tickt")), "unknown_seed", "one of: Ticket"),
    ("an unknown slot", plans("Ticket", ref="s77"), "unknown_slot", "call plasm_context"),
    ("a ref that is none", plans("Ticket", ref="zz"), "bad_ref", "call plasm_context"),
    ("an unknown session id", plans("Ticket", ref=str(uuid.uuid4())), "no_session", "call plasm_context"),
    ("an open bracket", plans("Project["), "bad_program", r"E0106 1:\d+ .*write: Project\[\]"),
    ("an unknown filter", plans('Ticket{statuz="open"}'), "bad_program", "E0204 1:8 .*state"),
    ("an unknown entity in a program", plans("Tickt"), "bad_program", "E0202 1:1 .*Ticket"),
    ("a bare $", plans("Project($)"), "bad_program", r"E\d{4} 1:9 .*\$"),
    ("an empty program", plans(""), "bad_program", "E0107"),
    ("an unknown artifact", reads("plasm://session/s0/r/999"), "no_artifact", r"\b(call|use|run|read|one of)\b"),
    ("a URI that is none", reads("junk"), "no_artifact", "plasm://"),
    ("an unknown API to look in", ("discover_capabilities", {"intent": "x", "apis": ["dmo"]}), "unknown_seed", "demo"),
    ("no goal", ("discover_capabilities", {"intent": " "}), "bad_intent", "intent"),
    ("a limit that is no number", ("discover_capabilities", {"intent": "x", "limit": "all"}), "bad_arguments", "limit"),
    ("a limit of no rows", ("discover_capabilities", {"intent": "x", "limit": 0}), "bad_arguments", "limit"),
    ("a query that is a list", ("list_registry", {"query": ["x"]}), "bad_arguments", "query"),
    ("an unknown field of an artifact", reads(fields=["zz"]), "bad_arguments", "zz.*one of: number, title"),
]


@asynccontextmanager
async def case(title):
    with suite.case(title), anyio.fail_after(30):
        yield


def over_http(server):
    return lambda era: Client(server.mcp, mode=MODE[era], read_timeout_seconds=20)


def over_stdio(data):
    def connect(era):
        command = StdioServerParameters(command=TOKAMAK, args=["serve", "--stdio", "--data", str(data)])
        return Client(stdio_client(command, errlog=open(os.devnull, "w")), mode=MODE[era], read_timeout_seconds=20)

    return connect


async def text(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    found = "\n".join(block.text for block in answer.content)
    assert not answer.is_error, f"isError: {found}"
    assert answer.structured_content is None, "a text tool sends structuredContent, which hides its text in some hosts"
    return found


async def plasm_meta(client, tool, **arguments):
    return (await client.call_tool(tool, arguments)).meta["plasm"]


async def run(client, program, ref="s0"):
    return tables(await text(client, "plasm_run", logical_session_ref=ref, program=program))


# --- one connection, all tools


async def tour(connect, era, where):
    """Each step builds on the one before, as a host would go."""
    at = f"{where} {era}"
    async with connect(era) as client:
        await handshake(client, era, at)
        await lists(client, at)
        await context_plan_run(client, at)
        await programs(client, at)
        await artifacts(client, at)
        await discovery(client, at)
        await refusals(client, at)
        await signs_of_life(client, at)


async def handshake(client, era, at):
    async with case(f"{at}: the client and the server agree on the revision"):
        expected = MODERN if era == "modern" else LEGACY[-1]
        assert client.protocol_version == expected, client.protocol_version
        assert client.server_info.name == "tokamak", client.server_info
        assert "plasm_context first" in client.instructions, client.instructions
    async with case(f"{at}: no capability is declared that is not served, and none served that is not declared"):
        declared = client.server_capabilities
        assert declared.tools is not None and declared.resources is not None, declared
        assert declared.prompts is None and declared.completions is None and declared.logging is None, declared
        try:
            await client.list_prompts()
        except MCPError as refused:
            assert refused.code == -32601, refused.error
        else:
            raise AssertionError("prompts/list is answered though prompts are not declared; want -32601")


async def lists(client, at):
    async with case(f"{at}: tools/list is exactly these tools, plasm_context first"):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == TOOLS, names
    async with case(f"{at}: every tool has a title, annotations and a schema closed to unknown fields"):
        for tool in (await client.list_tools()).tools:
            assert tool.title and tool.description, tool.name
            hints = tool.annotations
            assert hints.read_only_hint is not None, tool.name
            for schema in objects_of(tool.input_schema):
                # Tags are any names, each with a text.
                assert schema.get("additionalProperties") in (False, {"type": "string"}), f"{tool.name}: {schema}"
            assert '"format": "uint' not in json.dumps(tool.input_schema), f"{tool.name} has an integer format"
            assert tool.output_schema is None, f"{tool.name} has an output schema"
    async with case(f"{at}: resources/templates/list names the artifact"):
        templates = (await client.list_resource_templates()).resource_templates
        assert templates[0].uri_template == "plasm://session/{session}/r/{number}", templates
        assert all(t.uri_template.startswith(("plasm://", "heap://")) for t in templates), templates


async def discovery(client, at):
    async with case(f"{at}: a goal is answered with rows that are seeds"):
        answer = await client.call_tool("discover_capabilities", {"intent": "who owns the overdue demo tickets", "limit": 3})
        assert answer.structured_content is None, answer.structured_content
        rows = fenced(answer.content[0].text, ["api", "entity", "description"])
        assert {row["api"] for row in rows} == {"demo"}, rows
        assert {"Ticket", "Person"} <= {row["entity"] for row in rows}, rows
        assert answer.meta["plasm"]["discovery"]["shown"] == len(rows) == 3, answer.meta
        assert answer.meta["plasm"]["discovery"]["omitted"] > 0, answer.meta
        seeded = [{"api": row["api"], "entity": row["entity"]} for row in rows]
        assert symbols(await text(client, "plasm_context", intent=f"found {at}", seeds=seeded)), rows
    async with case(f"{at}: a paraphrase finds what it does not name"):
        found = await text(client, "discover_capabilities", intent="give a buyer the money back")
        assert fenced(found)[0]["entity"] == "Refund", found
    async with case(f"{at}: a typed answer is a decision, the same as JSON and as text"):
        for intent, decision in (
            ("list the Stripe invoices", "ready"),
            ("open issues", "clarify_api"),
            ("stripe", "clarify_entity"),
            ("transcribe this podcast", "no_match"),
        ):
            answer = await client.call_tool("discover_capabilities", {"intent": intent, "typed": True})
            typed = answer.structured_content
            assert json.loads(answer.content[0].text) == typed, answer.content
            assert typed["decision"] == decision, f"{intent}: {typed}"
            assert bool(typed["options"]) == (decision != "no_match"), typed
            assert "demo" in typed.get("apis", ["demo"]), typed
    async with case(f"{at}: only the APIs asked for are looked through, by id or alias"):
        found = fenced(await text(client, "discover_capabilities", intent="comments", apis=["gh"]))
        assert found and {row["api"] for row in found} == {"github"}, found
    async with case(f"{at}: whoever finds nothing is told what there is"):
        told = await text(client, "discover_capabilities", intent="zzyzx")
        assert "Nothing here" in told and "\tProject, Person, Ticket, Comment" in told, told[:300]
    async with case(f"{at}: list_registry names every API, its entities and what it still needs"):
        listed = fenced(await text(client, "list_registry"), ["api", "title", "version", "entities", "auth"])
        by_id = {row["api"]: row for row in listed}
        assert by_id["demo"]["auth"] == "none needed" and "Ticket" in by_id["demo"]["entities"], by_id["demo"]
        assert by_id["stripe"]["auth"] == "missing: STRIPE_SECRET_KEY not set", by_id["stripe"]
        assert by_id["github"]["auth"] == "optional: GITHUB_TOKEN not set", by_id["github"]
        some = fenced(await text(client, "list_registry", query="weather"))
        assert [row["api"] for row in some] == ["open-meteo"], some


def fenced(answer, columns=None):
    """The rows of a fenced table, each a dict of cells."""
    fence, head, *rows, end = answer.split("\n")
    assert (fence, end) == ("```tsv", "```"), answer
    assert columns is None or head.split("\t") == columns, head
    return [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]


def objects_of(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects_of(value)


async def context_plan_run(client, at):
    intent, two = f"tour {at}", seeds("Ticket", "Project")
    async with case(f"{at}: plasm_context opens a session and teaches a table"):
        answer = await text(client, "plasm_context", intent=intent, seeds=two)
        assert answer.startswith("`s0`\n"), answer[:80]
        assert symbols(answer) == {"e1": "Project", "e2": "Ticket"}, symbols(answer)
    async with case(f"{at}: the same intent is the same session, unchanged"):
        again = await text(client, "plasm_context", intent=intent, seeds=two)
        assert re.match(r"`s0` _Session unchanged \(`e1`…`e2`\)\. Use .*_$", again), again
    async with case(f"{at}: the canonical id is in _meta exactly when there is no transport session"):
        meta = await plasm_meta(client, "plasm_context", intent=intent, seeds=two)
        assert meta["logical_session_ref"] == "s0", meta
        assert ("logical_session_id" in meta) == (at != "http legacy"), meta
        assert meta["continuity"] == {"stale_binding_recovered": False, "new_symbol_space": False}, meta
    async with case(f"{at}: plasm shows a plan and runs nothing"):
        program = f'busy = {OPS}.limit(5)\nbusy[number, title], Project("OPS")[name]'
        plan = await text(client, "plasm", logical_session_ref="s0", program=program)
        assert plan.startswith("plan ok · 4 steps"), plan
        assert "query Ticket" in plan and "get Project" in plan, plan
        meta = await plasm_meta(client, "plasm", logical_session_ref="s0", program=program)
        assert meta["dry_run"] is True and meta["dry_verdict"] == "ok" and meta["plan"]["steps"], meta
        unread = await client.call_tool("read_artifact", {"uri": "plasm://session/s0/r/1"})
        assert unread.is_error, "a plan left an artifact"
    async with case(f"{at}: plasm_run answers the rows of every return"):
        rows = await run(client, program)
        assert [len(rows[label]) for label in ("result", "result2")] == [5, 1], rows
        assert list(rows["result"][0]) == ["number", "title"], rows["result"][0]
        assert rows["result2"] == [{"name": "Operations"}], rows["result2"]
    async with case(f"{at}: more seeds teach only the new rows, and old symbols stay"):
        keys = await run(client, "e1[p5]")
        more = await text(client, "plasm_context", intent=intent, seeds=seeds("Ticket", "Comment", "Person"))
        assert symbols(more) == {"e3": "Comment", "e4": "Person"}, symbols(more)
        assert "# Write a program" not in more, "the contract is taught again"
        assert await run(client, "e1[p5]") == keys, keys
    async with case(f"{at}: replay teaches everything again, each entity once"):
        whole = await text(client, "plasm_context", intent=intent, seeds=two, replay=True)
        everything = {"e1": "Project", "e2": "Ticket", "e3": "Comment", "e4": "Person"}
        assert symbols(whole) == everything, symbols(whole)
        assert "# Write a program" in whole, "the contract is not in the replay"
    async with case(f"{at}: a refused seed changes nothing"):
        mixed = seeds("Project") + seeds("Nothing")
        refused = await client.call_tool("plasm_context", {"intent": intent, "seeds": mixed})
        assert refused.is_error, refused.content[0].text
        assert symbols(await text(client, "plasm_context", intent=intent, seeds=two, replay=True)) == everything


async def programs(client, at):
    async with case(f"{at}: filters are sent to the API"):
        rows = (await run(client, f"{OPS}[project, state]"))["result"]
        assert rows and all(row == {"project": "OPS", "state": "open"} for row in rows), rows[:3]
    async with case(f"{at}: symbols and names are the same thing"):
        assert await run(client, "e1[p5]") == await run(client, "Project[key]")
    async with case(f"{at}: limit cuts a list"):
        rows = await run(client, 'Ticket{project="OPS"}.limit(3)[number]')
        assert len(rows["result"]) == 3, rows
    async with case(f"{at}: a projection keeps the columns it names, in its order"):
        rows = await run(client, 'Ticket(project="OPS", number=42)[title, number]')
        assert [list(row) for row in rows["result"]] == [["title", "number"]], rows
    async with case(f"{at}: a relation to one is the entity the field names"):
        rows = await run(client, 't = Ticket(project="OPS", number=42)\nt[reporter], t.reporter[id, name]')
        assert rows["result"][0]["reporter"] == rows["result2"][0]["id"], rows
    async with case(f"{at}: a relation to many lists what belongs to it"):
        program = 't = Ticket(project="OPS", number=42)\nt.comments[ticket, author], t.comments.limit(2)[id]'
        rows = await run(client, program)
        assert len(rows["result"]) >= 3 and len(rows["result2"]) == 2, rows


async def artifacts(client, at):
    async with case(f"{at}: a long result is cut for the model and says where the rest is"):
        answer = await client.call_tool("plasm_run", {"logical_session_ref": "s0", "program": 'Ticket{project="API"}'})
        shown = answer.content[0].text
        uri = answer.meta["plasm"]["steps"][0]["artifact_uri"]
        assert f"read_artifact {uri}" in shown and len(shown) < 5000, f"{len(shown)} characters, {uri}: {shown[-200:]}"
        assert len(tables(shown)["result"]) < answer.meta["plasm"]["steps"][0]["row_count"] == 56, answer.meta
    async with case(f"{at}: read_artifact and resources/read give the same rows"):
        resource = (await client.read_resource(uri)).contents[0]
        assert resource.mime_type == "application/json", resource.mime_type
        stored = [row["title"] for row in json.loads(resource.text)["returns"][0]["rows"]]
        read = await text(client, "read_artifact", uri=uri, fields=["title"], limit=1000)
        assert [line for line in read.splitlines() if line in set(stored)] == stored, read[:300]
    async with case(f"{at}: read_artifact reads a portion, with the fields asked for"):
        part = (await text(client, "read_artifact", uri=uri, offset=40, limit=2, fields=["number"])).splitlines()
        assert part[-3:] == ["number", "41", "42"], part
    async with case(f"{at}: a long portion is cut at 40,000 characters and says so"):
        ran = await client.call_tool("plasm_run", {"logical_session_ref": "s0", "program": "Ticket"})
        uri = ran.meta["plasm"]["steps"][0]["artifact_uri"]
        long = await text(client, "read_artifact", uri=uri, limit=100_000)
        assert 30_000 < len(long) <= 40_100 and "cut" in long.splitlines()[-1], f"{len(long)}: {long[-100:]}"
    async with case(f"{at}: an unknown resource is a JSON-RPC error"):
        try:
            await client.read_resource("plasm://session/s0/r/999")
        except MCPError as refused:
            # -32002 in the older revisions; 2026-07-28 moved it to invalid params
            assert refused.code == (-32602 if "modern" in at else -32002), refused.error
        else:
            raise AssertionError("it was answered")


async def refusals(client, at):
    # What a tool says does not depend on the way to it: all of it on two ways that differ most, samples on the others.
    whole = at in ("http modern", "stdio legacy")
    for title, (tool, arguments), code, correction in REFUSALS if whole else REFUSALS[::8]:
        async with case(f"{at}: {title} is refused with {code} and what to do"):
            answer = await client.call_tool(tool, arguments)
            told = answer.content[0].text
            assert answer.is_error, f"it was accepted: {told[:200]}"
            assert told.startswith(f"{code}: "), told
            assert re.search(correction, told[len(code) :], re.DOTALL), f"no /{correction}/ in: {told}"
    async with case(f"{at}: an unknown tool is a JSON-RPC error that names the known ones"):
        try:
            answer = await client.call_tool("plasm_contxt", {})
        except MCPError as refused:
            assert refused.code == -32602 and "plasm_context" in str(refused), refused.error
        else:
            raise AssertionError(f"it was answered: {answer}")


async def too_large(connect, era, where):
    """On its own connection, because a client may lose it."""
    async with case(f"{where} {era}: a program of 2 MB is refused at once, three times, and the connection goes on"):
        async with connect(era) as client:
            tool, arguments = plans("x" * 2_000_000)
            await text(client, "plasm_context", intent="large", seeds=seeds("Project"))
            for _ in range(3):
                try:
                    answer = await client.call_tool(tool, arguments, read_timeout_seconds=5)
                except MCPError as refused:
                    assert "timed out" not in str(refused), f"{refused}: no answer carried the id of the request"
                else:
                    assert answer.is_error and "E0111" in answer.content[0].text, answer.content[0].text[:200]
                assert await run(client, "Project[key]")


async def signs_of_life(client, at):
    async with case(f"{at}: a call with a progress token hears something at once"):
        heard = []

        async def on_progress(progress, total, message):
            heard.append(progress)

        arguments = {"logical_session_ref": "s0", "program": "Project"}
        await client.call_tool("plasm_run", arguments, progress_callback=on_progress)
        await anyio.sleep(0.2)
        assert heard, "no progress notification"


async def over_the_http_api():
    """The same answers as the tools, for programs."""
    with Server() as server:

        def ask(method, path, body=None):
            sent = json.dumps(body).encode() if body is not None else b""
            headers = {"Content-Type": "application/json"} if body is not None else {}
            answer = request(server.port, method, path, sent, headers)
            return answer.status, json.loads(answer.body)

        async with case("http: POST /v1/discover answers rows, and a decision when asked for one"):
            status, found = ask("POST", "/v1/discover", {"intent": "list the Stripe invoices", "limit": 2})
            assert status == 200 and found["shown"] == 2 and found["omitted"] > 0, found
            assert (found["rows"][0]["api"], found["rows"][0]["entity"]) == ("stripe", "Invoice"), found
            status, typed = ask("POST", "/v1/discover", {"intent": "open issues", "typed": True})
            assert status == 200 and typed["decision"] == "clarify_api" and len(typed["options"]) > 1, typed
        async with case("http: what discover cannot read is refused with a code"):
            for body, code in (
                ({"intent": " "}, "bad_intent"),
                ({"intent": "x", "apis": ["dmo"]}, "unknown_seed"),
                ({"intent": "x", "more": 1}, "bad_arguments"),
                ({}, "bad_arguments"),
            ):
                status, refused = ask("POST", "/v1/discover", body)
                assert status == (404 if code == "unknown_seed" else 400) and refused["code"] == code, f"{body}: {status} {refused}"
            assert ask("GET", "/v1/discover")[0] == 405
        async with case("http: the registry is listed, and one API of it shown"):
            status, listed = ask("GET", "/v1/registry")
            by_id = {one["id"]: one for one in listed["catalogs"]}
            assert status == 200 and by_id["demo"]["auth"] == {"state": "open"}, by_id["demo"]
            assert by_id["stripe"]["auth"] == {"state": "lacking", "not_set": ["STRIPE_SECRET_KEY"]}, by_id["stripe"]
            assert [one["id"] for one in ask("GET", "/v1/registry?query=weather")[1]["catalogs"]] == ["open-meteo"]
            status, github = ask("GET", "/v1/registry/gh")
            issue = next(entity for entity in github["entities"] if entity["name"] == "Issue")
            assert status == 200 and github["id"] == "github", github
            assert any(one["name"] == "issue_open" and one["kind"] == "create" for one in issue["capabilities"]), issue
            status, refused = ask("GET", "/v1/registry/nope")
            assert status == 404 and refused["code"] == "no_catalog", refused


def hints_of(server, method):
    answer = request(server.port, body=json.dumps(modern(method, {})), headers=modern_headers(method)).message()
    return answer["result"].get("ttlMs"), answer["result"].get("cacheScope")


async def core():
    core = ("plasm_context", "discover_capabilities", "plasm", "plasm_run", "read_artifact", "run_js", "get_execution")
    wanted = [name for name in TOOLS if name in core]
    folder = tempfile.mkdtemp(prefix="config-")
    config = os.path.join(folder, "tokamak.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write('tools = "core"\n')
    for said, arguments in (("by a flag", ["--tools", "core"]), ("by the settings", ["--config", config])):
        async with case(f"--tools core, {said}: the same shorter list for everybody, and what is not in it is unknown"):
            with Server(arguments=arguments) as server:
                for era in ("modern", "legacy"):
                    async with over_http(server)(era) as client:
                        names = [tool.name for tool in (await client.list_tools()).tools]
                        assert names == wanted, names
                        try:
                            await client.call_tool("list_registry", {})
                        except MCPError as refused:
                            assert refused.code == -32602 and "unknown tool" in str(refused), refused
                        else:
                            raise AssertionError("a tool that is not offered is answered")
    async with case("--tools all beats the settings"):
        with Server(arguments=["--config", config, "--tools", "all"]) as server:
            async with over_http(server)("modern") as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS


async def revisions():
    with Server() as server:
        async with case("http modern: what may be kept says for how long and for whom"):
            kept = {method: hints_of(server, method) for method in ("server/discover", "tools/list", "resources/templates/list")}
            assert kept["tools/list"] == kept["resources/templates/list"] == (86_400_000, "public"), kept
            assert kept["server/discover"][0] == 60_000, kept
        for version in LEGACY:
            async with case(f"http: a client of {version} is answered in {version}"):
                hello = LegacySession(server.port, version=version).initialize()
                assert hello["protocolVersion"] == version, hello
        async with case("http: a client of a revision nobody knows is offered one"):
            hello = LegacySession(server.port, version="1999-01-01").initialize()
            assert hello["protocolVersion"] in LEGACY, hello


class Warnings(logging.Handler):
    """What the client library has to say about the server."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.told = []

    def emit(self, record):
        self.told.append(record.getMessage())


async def main():
    warnings = Warnings()
    logging.getLogger("mcp").addHandler(warnings)
    logging.getLogger("mcp").propagate = False
    for era in ("modern", "legacy"):
        with suite.group(f"http {era}"), Server() as server:
            await tour(over_http(server), era, "http")
            await too_large(over_http(server), era, "http")
        with suite.group(f"stdio {era}"):
            connect = over_stdio(tempfile.mkdtemp(prefix="data-"))
            await tour(connect, era, "stdio")
            await too_large(connect, era, "stdio")
    with suite.group("http api"):
        await over_the_http_api()
    with suite.group("http revisions"):
        await revisions()
    with suite.group("core"):
        await core()
    async with case("the client library warned of nothing"):
        assert not warnings.told, f"{len(warnings.told)} times, first: {warnings.told[0]}"
    for group in sessions.GROUPS + catalogs.GROUPS:
        with suite.group(group.__name__):
            await group(case, over_http, over_stdio)


if __name__ == "__main__":
    anyio.run(main)
    suite.end()
