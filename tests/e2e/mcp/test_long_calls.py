"""Calls that take long: progress notifications, and clients that cancel or disconnect.

Invariants: the test API counts the effects in a process of its own; every wait has an end.
"""

import json
import socket
import threading
import time
from collections import namedtuple

import anyio
import pytest

from lib.client import JSON_OR_EVENTS, LegacySession, modern, modern_call, modern_headers, request, text_of
from lib.test_api import SEEDS, TrackerApi, digest
from lib.effects import REMARKS, TEXTS, plan_commit, receipts, text_of_call
from lib.mcp_client import over_http, over_stdio
from lib.server import Server, new_folder

ONE = 'Comment.add(ticket=Ticket(project="OPS", number=42), text="one")'
PLACES = ["http modern", "http legacy", "stdio modern", "stdio legacy"]
Disconnecting = namedtuple("Disconnecting", "port session headers")


@pytest.fixture(scope="module")
def api():
    with TrackerApi() as started:
        yield started


# --- one client in each place


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: place.replace(" ", "-"))
def place(request):
    return request.param


@pytest.fixture(scope="module")
def connect(api, place):
    if place.startswith("http"):
        with Server(arguments=api.server_arguments()) as server:
            yield over_http(server)
    else:
        yield over_stdio(new_folder("data-"), api.server_arguments())


@pytest.fixture(scope="module")
def client(portal, connect, place):
    with portal.wrap_async_context_manager(connect(place.split()[1])) as connected:
        opened = portal.call(connected.call_tool, "plasm_context", {"intent": place, "seeds": SEEDS})
        assert not opened.is_error, opened.content[0].text
        yield connected


async def run(client, **arguments):
    return await client.call_tool("plasm_run", {"logical_session_ref": "s0", **arguments})


async def test_a_slow_call_reports_progress_before_it_answers(api, client):
    api.reset("slow=1500")
    events = []

    async def on_progress(progress, total, message):
        events.append("progress")

    arguments = {"logical_session_ref": "s0", "program": ONE, "force": True}
    text_of_call(await client.call_tool("plasm_run", arguments, progress_callback=on_progress))
    events.append("answer")
    # A notification that comes after the answer is a callback that never runs.
    await anyio.sleep(0.2)
    assert events[0] == "progress", events


async def test_a_client_that_cancels_stops_its_run_before_the_next_effect(api, client):
    api.reset("slow=300")
    commit = await plan_commit(client, "s0", REMARKS)
    with anyio.move_on_after(0.8):
        await run(client, plan_commit_ref=commit)
        raise AssertionError("it ended before the client gave up")
    await anyio.sleep(0.8)
    happened = len(api.effects())
    await anyio.sleep(0.8)
    assert 0 < happened < 6 and len(api.effects()) == happened, f"{happened}, then {len(api.effects())} effects"
    text = text_of_call(await run(client, plan_commit_ref=commit), error=True)
    assert "replayed" in text and "cancelled" in text and receipts(text) == (happened, 0, 0), text


async def test_a_client_that_cancels_its_wait_leaves_the_operation_alone(api, client):
    api.reset("slow=300")
    text = text_of_call(await run(client, program=REMARKS, force=True, wait=False))
    assert text.startswith("wait(s0_o"), text
    program = text.split("\n")[0]
    with anyio.move_on_after(0.5):
        await run(client, program=program)
        raise AssertionError("it ended before the client gave up")
    while (text := text_of_call(await run(client, program=program))).startswith("wait("):
        pass
    assert receipts(text) == (6, 0, 0) and len(api.effects()) == 6, f"{len(api.effects())} effects: {text}"


# --- connections that end, without a client library


def disconnect(port, message, headers, after):
    """Sends a request and disconnects after some seconds. Returns the bytes that had come by then."""
    body = json.dumps(message).encode()
    sent_headers = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Accept": JSON_OR_EVENTS, **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**sent_headers, "Content-Length": len(body)}.items())
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        time.sleep(after)
        connection.settimeout(0.1)
        try:
            return connection.recv(65536)
        except TimeoutError:
            return b""


def tool_call(arguments, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "plasm_run", "arguments": arguments}}


@pytest.fixture(scope="module")
def disconnecting(api):
    """A server with a session in each era, for clients that disconnect."""
    with Server(arguments=api.server_arguments()) as server:
        context = {"intent": "leaves", "seeds": SEEDS}
        text_of(modern_call(server.port, "plasm_context", context))
        session = LegacySession(server.port)
        session.initialize()
        text_of(session.call("plasm_context", context).message())
        headers = {"Mcp-Session-Id": session.session, "MCP-Protocol-Version": session.version}
        yield Disconnecting(server.port, session, headers)


def run_remarks(**more):
    return {"name": "plasm_run", "arguments": {"logical_session_ref": "s0", "program": REMARKS, "force": True, **more}}


async def test_a_modern_stream_that_its_client_closes_stops_the_run_before_the_next_effect(api, disconnecting):
    api.reset("slow=300")
    disconnect(disconnecting.port, modern("tools/call", run_remarks()), modern_headers("tools/call", "plasm_run"), 0.8)
    time.sleep(0.8)
    happened = len(api.effects())
    time.sleep(0.8)
    assert 0 < happened < 6 and len(api.effects()) == happened, f"{happened}, then {len(api.effects())} effects"


async def test_an_operation_goes_on_when_every_client_has_disconnected(api, disconnecting):
    api.reset("slow=200")
    message = modern("tools/call", run_remarks(wait=False))
    received = disconnect(disconnecting.port, message, modern_headers("tools/call", "plasm_run"), 0.5)
    assert b"wait(s0_o" in received, received
    await wait_for_all_effects(api)


async def test_a_legacy_stream_that_breaks_cancels_nothing_and_notifications_cancelled_does(api, disconnecting):
    port, session, headers = disconnecting
    arguments = run_remarks()["arguments"]
    api.reset("slow=200")
    disconnect(port, tool_call(arguments, 70), headers, 0.5)
    await wait_for_all_effects(api)
    api.reset("slow=300")
    calling = threading.Thread(target=disconnect, args=(port, tool_call(arguments, 71), headers, 3))
    calling.start()
    time.sleep(0.8)
    stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 71, "reason": "enough"}}
    assert request(port, body=json.dumps(stop), headers=headers).status == 202
    calling.join()
    assert 0 < len(api.effects()) < 6, api.effects()


async def wait_for_all_effects(api):
    with anyio.fail_after(60):
        while len(api.effects()) < 6:
            await anyio.sleep(0.1)
    assert api.effects() == [digest(text) for text in TEXTS], api.effects()
