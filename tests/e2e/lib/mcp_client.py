"""The official Python client, connected to the binary over HTTP and over stdio in both protocol eras.

The client picks the era by its `mode`: `legacy` sends `initialize`; `auto` asks `server/discover` first.
"""

import os

from mcp.client.stdio import stdio_client

from lib.answers import tables
from lib.server import TOKAMAK
from mcp import Client, StdioServerParameters

MODE = {"modern": "auto", "legacy": "legacy"}
SECONDS_FOR_A_CALL = 60


def over_http(server):
    return lambda era="modern": Client(server.mcp, mode=MODE[era], read_timeout_seconds=SECONDS_FOR_A_CALL)


def over_stdio(data, arguments=()):
    def connect(era="modern"):
        command = StdioServerParameters(command=TOKAMAK, args=["serve", "--stdio", "--data", str(data), *map(str, arguments)])
        transport = stdio_client(command, errlog=open(os.devnull, "w"))
        return Client(transport, mode=MODE[era], read_timeout_seconds=SECONDS_FOR_A_CALL)

    return connect


async def call(client, tool, **arguments):
    """The text of a tool's answer, which must not be an error."""
    answer = await client.call_tool(tool, arguments)
    answer_text = "\n".join(block.text for block in answer.content)
    assert not answer.is_error, f"isError: {answer_text}"
    assert answer.structured_content is None, "a text tool sends structuredContent, which hides its text in some hosts"
    return answer_text


async def plasm_meta(client, tool, **arguments):
    return (await client.call_tool(tool, arguments)).meta["plasm"]


async def run(client, program, ref="s0"):
    """The rows of every return of a program."""
    return tables(await call(client, "plasm_run", logical_session_ref=ref, program=program))
