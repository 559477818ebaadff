"""The official Python client on every tool, in both protocol eras, over HTTP and over stdio.

Invariant: each place (such as `http legacy`) has its own data folder; a test checks what a model or a client program sees.
"""

import json
import logging
import re
import uuid

import anyio
import pytest

from lib.answers import DEMO, fenced, seeds, symbols, tables
from lib.client import LEGACY, MODERN, TOOL_NAMES
from lib.mcp_client import call, over_http, over_stdio, plasm_meta, run
from lib.server import Server, new_folder
from mcp import MCPError

pytestmark = pytest.mark.steps
PLACES = ["http modern", "http legacy", "stdio modern", "stdio legacy"]
OPS = 'Ticket{project="OPS", state="open"}'
PROJECT_AND_TICKET = seeds("Ticket", "Project")

def context(**arguments):
    return "plasm_context", {"intent": "x", "seeds": DEMO, **arguments}


def plan(program, ref="s0"):
    return "plasm", {"logical_session_ref": ref, "program": program}


def artifact(uri="plasm://session/s0/r/1", **arguments):
    return "read_artifact", {"uri": uri, **arguments}


# Each refusal: the mistake, the call, the code of the answer, and the part of the answer that helps a model to correct itself.
REFUSALS = [
    ("an unknown argument", context(foo=1), "bad_arguments", "foo.*intent"),
    ("an argument of the wrong type", context(intent=7), "bad_arguments", "intent.*a text, not a number"),
    ("a list that is none", context(seeds="demo"), "bad_arguments", "seeds"),
    ("a number that is text", artifact(limit="all"), "bad_arguments", "limit"),
    ("a negative number", artifact(limit=-1), "bad_arguments", "limit"),
    ("an unknown field of a seed", context(seeds=[{"api": "demo", "name": "Ticket"}]), "bad_arguments", "name.*entity"),
    ("a missing argument", ("plasm_context", {"seeds": DEMO}), "bad_arguments", "intent"),
    ("a missing program", ("plasm_run", {"logical_session_ref": "s0"}), "bad_arguments", "program"),
    ("no arguments", ("plasm", {}), "bad_arguments", "logical_session_ref"),
    ("an empty intent", context(intent=" "), "bad_intent", "intent"),
    ("no seeds", context(seeds=[]), "bad_seeds", "demo"),
    ("an unknown API", context(seeds=seeds("Ticket", api="dmo")), "unknown_seed", "one of: demo"),
    ("an unknown entity", context(seeds=seeds("Tickt")), "unknown_seed", "one of: Ticket"),
    ("an unknown slot", plan("Ticket", ref="s77"), "unknown_slot", "call plasm_context"),
    ("a ref that is none", plan("Ticket", ref="zz"), "bad_ref", "call plasm_context"),
    ("an unknown session id", plan("Ticket", ref=str(uuid.uuid4())), "no_session", "call plasm_context"),
    ("an open bracket", plan("Project["), "bad_program", r"E0106 1:\d+ .*write: Project\[\]"),
    ("an unknown filter", plan('Ticket{statuz="open"}'), "bad_program", "E0204 1:8 .*state"),
    ("an unknown entity in a program", plan("Tickt"), "bad_program", "E0202 1:1 .*Ticket"),
    ("a bare $", plan("Project($)"), "bad_program", r"E\d{4} 1:9 .*\$"),
    ("an empty program", plan(""), "bad_program", "E0107"),
    ("an unknown artifact", artifact("plasm://session/s0/r/999"), "no_artifact", r"\b(call|use|run|read|one of)\b"),
    ("a URI that is none", artifact("junk"), "no_artifact", "plasm://"),
    ("an unknown API to look in", ("discover_capabilities", {"intent": "x", "apis": ["dmo"]}), "unknown_seed", "demo"),
    ("no goal", ("discover_capabilities", {"intent": " "}), "bad_intent", "intent"),
    ("a limit that is no number", ("discover_capabilities", {"intent": "x", "limit": "all"}), "bad_arguments", "limit"),
    ("a limit of no rows", ("discover_capabilities", {"intent": "x", "limit": 0}), "bad_arguments", "limit"),
    ("a query that is a list", ("list_registry", {"query": ["x"]}), "bad_arguments", "query"),
    ("an unknown field of an artifact", artifact(fields=["zz"]), "bad_arguments", "zz.*one of: number, title"),
]
# A refusal does not depend on the transport: two places that differ most see all of them, the others a sample.
PLACES_WITH_EVERY_REFUSAL = ("http modern", "stdio legacy")


def pytest_generate_tests(metafunc):
    if "place" not in metafunc.fixturenames:
        return
    if "refusal" in metafunc.fixturenames:
        pairs = [
            pytest.param(place, refusal, id=f"{dashed(place)}-{dashed(refusal[0])}")
            for place in PLACES
            for refusal in (REFUSALS if place in PLACES_WITH_EVERY_REFUSAL else REFUSALS[::8])
        ]
        metafunc.parametrize("place, refusal", pairs, indirect=["place"], scope="module")
    else:
        metafunc.parametrize("place", PLACES, ids=dashed, indirect=True, scope="module")


def dashed(title):
    return title.replace(" ", "-")


@pytest.fixture(scope="module")
def place(request):
    return request.param


@pytest.fixture(scope="module")
def era(place):
    return place.split()[1]


@pytest.fixture(scope="module")
def intent(place):
    return f"tour {place}"


@pytest.fixture(scope="module")
def connect(place):
    if place.startswith("http"):
        with Server() as server:
            yield over_http(server)
    else:
        yield over_stdio(new_folder("data-"))


@pytest.fixture(scope="module")
def client(portal, connect, era):
    """One connection for the whole tour of one place."""
    with portal.wrap_async_context_manager(connect(era)) as connected:
        yield connected


@pytest.fixture(scope="module", autouse=True)
def warnings():
    """The warnings of the client library about the server."""
    handler = Warnings()
    logging.getLogger("mcp").addHandler(handler)
    logging.getLogger("mcp").propagate = False
    yield handler.messages
    logging.getLogger("mcp").removeHandler(handler)


class Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def test_client_and_server_agree_on_the_revision(client, era):
    expected = MODERN if era == "modern" else LEGACY[-1]
    assert client.protocol_version == expected, client.protocol_version
    assert client.server_info.name == "tokamak", client.server_info
    assert "plasm_context first" in client.instructions, client.instructions


async def test_exactly_the_served_capabilities_are_declared(client):
    declared = client.server_capabilities
    assert declared.tools is not None and declared.resources is not None, declared
    assert declared.prompts is None and declared.completions is None and declared.logging is None, declared
    try:
        await client.list_prompts()
    except MCPError as refused:
        assert refused.code == -32601, refused.error
    else:
        raise AssertionError("prompts/list is answered though prompts are not declared; want -32601")


async def test_tools_list_is_exactly_these_tools_with_plasm_context_first(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == TOOL_NAMES, names


async def test_every_tool_has_a_title_annotations_and_a_schema_closed_to_unknown_fields(client):
    for tool in (await client.list_tools()).tools:
        assert tool.title and tool.description, tool.name
        hints = tool.annotations
        assert hints.read_only_hint is not None, tool.name
        for schema in objects_of(tool.input_schema):
            # Tags may have any name, and each is a text.
            assert schema.get("additionalProperties") in (False, {"type": "string"}), f"{tool.name}: {schema}"
        assert '"format": "uint' not in json.dumps(tool.input_schema), f"{tool.name} has an integer format"
        assert tool.output_schema is None, f"{tool.name} has an output schema"


async def test_resource_templates_name_the_artifact(client):
    templates = (await client.list_resource_templates()).resource_templates
    assert templates[0].uri_template == "plasm://session/{session}/r/{number}", templates
    assert all(t.uri_template.startswith(("plasm://", "heap://")) for t in templates), templates


def objects_of(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects_of(value)


async def test_plasm_context_opens_a_session_and_teaches_a_table(client, intent):
    answer = await call(client, "plasm_context", intent=intent, seeds=PROJECT_AND_TICKET)
    assert answer.startswith("`s0`\n"), answer[:80]
    assert symbols(answer) == {"e1": "Project", "e2": "Ticket"}, symbols(answer)


async def test_the_same_intent_is_the_same_session_unchanged(client, intent):
    repeated = await call(client, "plasm_context", intent=intent, seeds=PROJECT_AND_TICKET)
    assert re.match(r"`s0` _Session unchanged \(`e1`…`e2`\)\. Use .*_$", repeated), repeated


async def test_the_canonical_id_is_in_meta_exactly_when_there_is_no_transport_session(client, place, intent):
    meta = await plasm_meta(client, "plasm_context", intent=intent, seeds=PROJECT_AND_TICKET)
    assert meta["logical_session_ref"] == "s0", meta
    assert ("logical_session_id" in meta) == (place != "http legacy"), meta
    assert meta["continuity"] == {"stale_binding_recovered": False, "new_symbol_space": False}, meta


async def test_plasm_shows_a_plan_and_runs_nothing(client, flow):
    flow.program = f'busy = {OPS}.limit(5)\nbusy[number, title], Project("OPS")[name]'
    plan = await call(client, "plasm", logical_session_ref="s0", program=flow.program)
    assert plan.startswith("plan ok · 4 steps"), plan
    assert "query Ticket" in plan and "get Project" in plan, plan
    meta = await plasm_meta(client, "plasm", logical_session_ref="s0", program=flow.program)
    assert meta["dry_run"] is True and meta["dry_verdict"] == "ok" and meta["plan"]["steps"], meta
    unread = await client.call_tool("read_artifact", {"uri": "plasm://session/s0/r/1"})
    assert unread.is_error, "a plan left an artifact"


async def test_plasm_run_answers_the_rows_of_every_return(client, flow):
    rows = await run(client, flow.program)
    assert [len(rows[label]) for label in ("result", "result2")] == [5, 1], rows
    assert list(rows["result"][0]) == ["number", "title"], rows["result"][0]
    assert rows["result2"] == [{"name": "Operations"}], rows["result2"]


async def test_more_seeds_teach_only_the_new_rows_and_old_symbols_stay(client, intent):
    keys = await run(client, "e1[p5]")
    more = await call(client, "plasm_context", intent=intent, seeds=seeds("Ticket", "Comment", "Person"))
    assert symbols(more) == {"e3": "Comment", "e4": "Person"}, symbols(more)
    assert "# Write a program" not in more, "the contract is taught again"
    assert await run(client, "e1[p5]") == keys, keys


async def test_replay_teaches_everything_again_each_entity_once(client, intent, flow):
    whole = await call(client, "plasm_context", intent=intent, seeds=PROJECT_AND_TICKET, replay=True)
    flow.everything = {"e1": "Project", "e2": "Ticket", "e3": "Comment", "e4": "Person"}
    assert symbols(whole) == flow.everything, symbols(whole)
    assert "# Write a program" in whole, "the contract is not in the replay"


async def test_a_refused_seed_changes_nothing(client, intent, flow):
    mixed = seeds("Project") + seeds("Nothing")
    refused = await client.call_tool("plasm_context", {"intent": intent, "seeds": mixed})
    assert refused.is_error, refused.content[0].text
    assert symbols(await call(client, "plasm_context", intent=intent, seeds=PROJECT_AND_TICKET, replay=True)) == flow.everything


async def test_filters_are_sent_to_the_api(client):
    rows = (await run(client, f"{OPS}[project, state]"))["result"]
    assert rows and all(row == {"project": "OPS", "state": "open"} for row in rows), rows[:3]


async def test_symbols_and_names_mean_the_same(client):
    assert await run(client, "e1[p5]") == await run(client, "Project[key]")


async def test_limit_cuts_a_list(client):
    rows = await run(client, 'Ticket{project="OPS"}.limit(3)[number]')
    assert len(rows["result"]) == 3, rows


async def test_a_projection_keeps_the_named_columns_in_its_order(client):
    rows = await run(client, 'Ticket(project="OPS", number=42)[title, number]')
    assert [list(row) for row in rows["result"]] == [["title", "number"]], rows


async def test_a_relation_to_one_is_the_entity_that_the_field_names(client):
    rows = await run(client, 't = Ticket(project="OPS", number=42)\nt[reporter], t.reporter[id, name]')
    assert rows["result"][0]["reporter"] == rows["result2"][0]["id"], rows


async def test_a_relation_to_many_lists_the_entities_that_belong_to_it(client):
    program = 't = Ticket(project="OPS", number=42)\nt.comments[ticket, author], t.comments.limit(2)[id]'
    rows = await run(client, program)
    assert len(rows["result"]) >= 3 and len(rows["result2"]) == 2, rows


async def test_a_long_result_is_cut_for_the_model_and_says_where_the_rest_is(client, flow):
    answer = await client.call_tool("plasm_run", {"logical_session_ref": "s0", "program": 'Ticket{project="API"}'})
    shown = answer.content[0].text
    flow.uri = answer.meta["plasm"]["steps"][0]["artifact_uri"]
    assert f"read_artifact {flow.uri}" in shown and len(shown) < 5000, f"{len(shown)} characters, {flow.uri}: {shown[-200:]}"
    assert len(tables(shown)["result"]) < answer.meta["plasm"]["steps"][0]["row_count"] == 56, answer.meta


async def test_read_artifact_and_resources_read_give_the_same_rows(client, flow):
    resource = (await client.read_resource(flow.uri)).contents[0]
    assert resource.mime_type == "application/json", resource.mime_type
    stored = [row["title"] for row in json.loads(resource.text)["returns"][0]["rows"]]
    read = await call(client, "read_artifact", uri=flow.uri, fields=["title"], limit=1000)
    assert [line for line in read.splitlines() if line in set(stored)] == stored, read[:300]


async def test_read_artifact_reads_a_portion_with_the_requested_fields(client, flow):
    part = (await call(client, "read_artifact", uri=flow.uri, offset=40, limit=2, fields=["number"])).splitlines()
    assert part[-3:] == ["number", "41", "42"], part


async def test_read_artifact_refuses_each_unknown_field(client, flow):
    for fields in (["nmber"], ["number", "nmber"], ["number", "title", "nmber"]):
        refused = await client.call_tool("read_artifact", {"uri": flow.uri, "fields": fields})
        assert refused.is_error and "no field `nmber`; one of: " in refused.content[0].text, f"{fields}: {refused.content[0].text[:200]}"


async def test_a_long_portion_is_cut_at_40_000_characters_and_says_so(client, flow):
    ran = await client.call_tool("plasm_run", {"logical_session_ref": "s0", "program": "Ticket"})
    flow.uri = ran.meta["plasm"]["steps"][0]["artifact_uri"]
    long = await call(client, "read_artifact", uri=flow.uri, limit=100_000)
    assert 30_000 < len(long) <= 40_100 and "cut" in long.splitlines()[-1], f"{len(long)}: {long[-100:]}"


async def test_an_unknown_resource_is_a_json_rpc_error(client, place):
    try:
        await client.read_resource("plasm://session/s0/r/999")
    except MCPError as refused:
        # The older revisions have -32002 for this; 2026-07-28 uses `invalid params`.
        assert refused.code == (-32602 if "modern" in place else -32002), refused.error
    else:
        raise AssertionError("it was answered")


async def test_a_goal_is_answered_with_rows_that_are_seeds(client, place):
    answer = await client.call_tool("discover_capabilities", {"intent": "who owns the overdue demo tickets", "limit": 3})
    assert answer.structured_content is None, answer.structured_content
    rows = fenced(answer.content[0].text, ["api", "entity", "description"])
    assert {row["api"] for row in rows} == {"demo"}, rows
    assert {"Ticket", "Person"} <= {row["entity"] for row in rows}, rows
    assert answer.meta["plasm"]["discovery"]["shown"] == len(rows) == 3, answer.meta
    assert answer.meta["plasm"]["discovery"]["omitted"] > 0, answer.meta
    seeded = [{"api": row["api"], "entity": row["entity"]} for row in rows]
    assert symbols(await call(client, "plasm_context", intent=f"found {place}", seeds=seeded)), rows


async def test_a_paraphrase_finds_an_entity_that_it_does_not_name(client):
    reply = await call(client, "discover_capabilities", intent="give a buyer the money back")
    assert fenced(reply)[0]["entity"] == "Refund", reply


async def test_a_typed_answer_is_the_same_decision_as_json_and_as_text(client):
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


async def test_only_the_requested_apis_are_searched_by_id_or_alias(client):
    reply = fenced(await call(client, "discover_capabilities", intent="comments", apis=["gh"]))
    assert reply and {row["api"] for row in reply} == {"github"}, reply


async def test_a_search_without_results_lists_the_entities_of_every_api(client):
    reply = await call(client, "discover_capabilities", intent="zzyzx")
    assert "Nothing here" in reply and "\tProject, Person, Ticket, Comment" in reply, reply[:300]


async def test_list_registry_names_every_api_its_entities_and_its_missing_secrets(client):
    listed = fenced(await call(client, "list_registry"), ["api", "title", "version", "entities", "auth"])
    by_id = {row["api"]: row for row in listed}
    assert by_id["demo"]["auth"] == "none needed" and "Ticket" in by_id["demo"]["entities"], by_id["demo"]
    assert by_id["stripe"]["auth"] == "missing: STRIPE_SECRET_KEY not set", by_id["stripe"]
    assert by_id["github"]["auth"] == "optional: GITHUB_TOKEN not set", by_id["github"]
    some = fenced(await call(client, "list_registry", query="weather"))
    assert [row["api"] for row in some] == ["open-meteo"], some


async def test_a_mistake_is_refused_with_its_code_and_what_to_do(client, refusal):
    _, (tool, arguments), code, correction = refusal
    answer = await client.call_tool(tool, arguments)
    reply = answer.content[0].text
    assert answer.is_error, f"it was accepted: {reply[:200]}"
    assert reply.startswith(f"{code}: "), reply
    assert re.search(correction, reply[len(code) :], re.DOTALL), f"no /{correction}/ in: {reply}"


async def test_an_unknown_tool_is_a_json_rpc_error_that_names_the_known_ones(client):
    try:
        answer = await client.call_tool("plasm_contxt", {})
    except MCPError as refused:
        assert refused.code == -32602 and "plasm_context" in str(refused), refused.error
    else:
        raise AssertionError(f"it was answered: {answer}")


async def test_a_call_with_a_progress_token_hears_something_at_once(client):
    heard = []

    async def on_progress(progress, total, message):
        heard.append(progress)

    arguments = {"logical_session_ref": "s0", "program": "Project"}
    await client.call_tool("plasm_run", arguments, progress_callback=on_progress)
    await anyio.sleep(0.2)
    assert heard, "no progress notification"


async def test_a_program_of_2_mb_is_refused_three_times_and_the_connection_goes_on(connect, era):
    # On its own connection, because a client may lose it.
    async with connect(era) as client:
        tool, arguments = plan("x" * 2_000_000)
        await call(client, "plasm_context", intent="large", seeds=seeds("Project"))
        for _ in range(3):
            try:
                answer = await client.call_tool(tool, arguments, read_timeout_seconds=5)
            except MCPError as refused:
                assert "timed out" not in str(refused), f"{refused}: no answer carried the id of the request"
            else:
                assert answer.is_error and "E0111" in answer.content[0].text, answer.content[0].text[:200]
            assert await run(client, "Project[key]")


def test_the_client_library_warned_of_nothing(warnings):
    assert not warnings, f"{len(warnings)} times, first: {warnings[0]}"
