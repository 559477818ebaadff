"""Protocol revisions, cache hints and the choice of offered tools."""

import json

import pytest

from lib.client import LEGACY, TOOL_NAMES, LegacySession, modern, modern_headers, request
from lib.mcp_client import over_http
from lib.server import Server, settings
from mcp import MCPError

CORE_TOOLS = ["plasm_context", "discover_capabilities", "plasm", "plasm_run", "read_artifact", "run_js", "get_execution"]
CORE_BY_SETTINGS = settings('tools = "core"\n')

def hints_of(server, method):
    answer = request(server.port, body=json.dumps(modern(method, {})), headers=modern_headers(method)).message()
    return answer["result"].get("ttlMs"), answer["result"].get("cacheScope")


def test_answers_that_may_be_cached_say_for_how_long_and_for_whom(server):
    kept = {method: hints_of(server, method) for method in ("server/discover", "tools/list", "resources/templates/list")}
    assert kept["tools/list"] == kept["resources/templates/list"] == (86_400_000, "public"), kept
    assert kept["server/discover"][0] == 60_000, kept


@pytest.mark.parametrize("version", LEGACY)
def test_a_client_of_an_older_revision_is_answered_in_that_revision(server, version):
    hello = LegacySession(server.port, version=version).initialize()
    assert hello["protocolVersion"] == version, hello


def test_a_client_of_an_unknown_revision_is_offered_a_known_one(server):
    hello = LegacySession(server.port, version="1999-01-01").initialize()
    assert hello["protocolVersion"] in LEGACY, hello


@pytest.mark.parametrize("arguments", [("--tools", "core"), CORE_BY_SETTINGS], ids=["by-a-flag", "by-the-settings"])
async def test_core_tools_are_the_same_short_list_in_both_eras_and_all_others_are_unknown(arguments):
    with Server(arguments=arguments) as server:
        for era in ("modern", "legacy"):
            async with over_http(server)(era) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert names == CORE_TOOLS, names
                try:
                    await client.call_tool("list_registry", {})
                except MCPError as refused:
                    assert refused.code == -32602 and "unknown tool" in str(refused), refused
                else:
                    raise AssertionError("a tool that is not offered is answered")


async def test_tools_all_overrides_the_settings():
    with Server(arguments=[*CORE_BY_SETTINGS, "--tools", "all"]) as server:
        async with over_http(server)("modern") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOL_NAMES
