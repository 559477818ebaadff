"""Programs with six writes, and readers of the reports on their effects."""

import json
import re

from lib.test_api import SEEDS
from lib.server import Server
from mcp import Client

TEXTS = [f"remark {n}" for n in range(6)]
LIST = json.dumps(TEXTS)
REMARKS = f'{LIST} => Comment.add(ticket=Ticket(project="OPS", number=42), text="{{{{ _ }}}}")'
TICKETS = f'{LIST} => Ticket.open(project="OPS", title="{{{{ _ }}}}")'


def server_of(api, data=None):
    return Server(data=data, arguments=["--no-demo", "--catalogs", str(api.catalogs())])


def connect(server):
    return Client(server.mcp, mode="auto", read_timeout_seconds=60)


async def open_session(client, intent):
    answer = await client.call_tool("plasm_context", {"intent": intent, "seeds": SEEDS})
    assert not answer.is_error, answer.content[0].text
    return answer.meta["plasm"]["logical_session_id"]


async def call(client, tool, ref, **arguments):
    return await client.call_tool(tool, {"logical_session_ref": ref, **arguments})


async def plan_commit(client, ref, program):
    answer = await call(client, "plasm", ref, program=program)
    text = answer.content[0].text
    commit = answer.meta["plasm"]["plan_commit_ref"]
    assert text.split("\n")[0].endswith(commit), f"the first line does not name {commit}: {text}"
    return commit


def text_of_call(answer, error=False):
    text = answer.content[0].text
    assert bool(answer.is_error) == error, f"isError is {answer.is_error}: {text}"
    return text


def receipts(text):
    """The numbers of done, unknown and failed effects in a text that a model reads."""
    done = sum(int(times or 1) for times in re.findall(r"^done: [^,\n]*?(?:, (\d+) times)?$", text, re.MULTILINE))
    return done, len(re.findall(r"^unknown\b", text, re.MULTILINE)), len(re.findall(r"^failed\b", text, re.MULTILINE))
