"""Calls that take long: their signs of life, clients that give up or leave, and tasks that outlive the server.

Invariants: what happened is what the demo API counted, in a process of its own; every wait has an end.
"""

import json
import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from effects import REMARKS, TEXTS, TICKETS, planned, receipts, said
from harness import BOTH, TOKAMAK, LegacySession, Server, Suite, modern, modern_headers, request, text_of
from tracker import SEEDS, Api, digest

suite = Suite("calls")
ONE = 'Comment.add(ticket=Ticket(project="OPS", number=42), text="one")'
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@asynccontextmanager
async def case(title):
    with suite.case(title), anyio.fail_after(60):
        yield


def arguments_of(api, *more):
    return ["--no-demo", "--catalogs", str(api.catalogs()), *more]


@asynccontextmanager
async def connected(api, where, era):
    mode = "auto" if era == "modern" else "legacy"
    if where == "http":
        with Server(arguments=arguments_of(api)) as server:
            async with Client(server.mcp, mode=mode, read_timeout_seconds=30) as client:
                yield client
        return
    data = tempfile.mkdtemp(prefix="data-")
    command = StdioServerParameters(command=TOKAMAK, args=["serve", "--stdio", "--data", data, *arguments_of(api)])
    transport = stdio_client(command, errlog=open(os.devnull, "w"))
    async with Client(transport, mode=mode, read_timeout_seconds=30) as client:
        yield client


async def run(client, **arguments):
    return await client.call_tool("plasm_run", {"logical_session_ref": "s0", **arguments})


async def every_place(api):
    for where in ("http", "stdio"):
        for era in ("modern", "legacy"):
            at = f"{where} {era}"
            with suite.group(at):
                async with connected(api, where, era) as client:
                    opened = await client.call_tool("plasm_context", {"intent": at, "seeds": SEEDS})
                    assert not opened.is_error, opened.content[0].text
                    async with case(f"{at}: a call that is silent for long says at once that it goes on"):
                        await heard(api, client)
                    async with case(f"{at}: a client that gives up stops its run before the next effect"):
                        await gives_up(api, client)
                    async with case(f"{at}: giving up on wait(..) leaves the operation alone"):
                        await gives_up_waiting(api, client)


async def heard(api, client):
    api.reset("slow=1500")
    started, times = time.monotonic(), []

    async def on_progress(progress, total, message):
        times.append(time.monotonic() - started)

    arguments = {"logical_session_ref": "s0", "program": ONE, "force": True}
    said(await client.call_tool("plasm_run", arguments, progress_callback=on_progress))
    took = time.monotonic() - started
    assert took > 1.5 and times and times[0] < 1, f"heard after {times}, answered after {took}"


async def gives_up(api, client):
    api.reset("slow=300")
    commit = await planned(client, "s0", REMARKS)
    with anyio.move_on_after(0.8):
        await run(client, plan_commit_ref=commit)
        raise AssertionError("it ended before the client gave up")
    await anyio.sleep(0.8)
    happened = len(api.effects())
    await anyio.sleep(0.8)
    assert 0 < happened < 6 and len(api.effects()) == happened, f"{happened}, then {len(api.effects())} effects"
    text = said(await run(client, plan_commit_ref=commit), error=True)
    assert "replayed" in text and "cancelled" in text and receipts(text) == (happened, 0, 0), text


async def gives_up_waiting(api, client):
    api.reset("slow=300")
    text = said(await run(client, program=REMARKS, force=True, wait=False))
    assert text.startswith("wait(s0_o"), text
    program = text.split("\n")[0]
    with anyio.move_on_after(0.5):
        await run(client, program=program)
        raise AssertionError("it ended before the client gave up")
    while (text := said(await run(client, program=program))).startswith("wait("):
        pass
    assert receipts(text) == (6, 0, 0) and len(api.effects()) == 6, f"{len(api.effects())} effects: {text}"


# --- connections that end, without a client library in between


def hang_up(port, message, headers, after):
    """Sends a request and ends the connection while it is answered; what had come by then."""
    body = json.dumps(message).encode()
    given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Accept": BOTH, **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**given, "Content-Length": len(body)}.items())
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


async def leaves(api):
    with Server(arguments=arguments_of(api)) as server:
        context = {"intent": "leaves", "seeds": SEEDS}
        async with case("http modern: a stream that its client closes stops the run before the next effect"):
            text_of(ask_http(server.port, "tools/call", {"name": "plasm_context", "arguments": context}))
            api.reset("slow=300")
            params = {"name": "plasm_run", "arguments": {"logical_session_ref": "s0", "program": REMARKS, "force": True}}
            hang_up(server.port, modern("tools/call", params), modern_headers("tools/call", "plasm_run"), 0.8)
            time.sleep(0.8)
            happened = len(api.effects())
            time.sleep(0.8)
            assert 0 < happened < 6 and len(api.effects()) == happened, f"{happened}, then {len(api.effects())} effects"
        async with case("http modern: an operation goes on when everybody has left"):
            api.reset("slow=200")
            params["arguments"]["wait"] = False
            told = hang_up(server.port, modern("tools/call", params), modern_headers("tools/call", "plasm_run"), 0.3)
            assert b"wait(s0_o" in told, told
            await all_done(api)
        session = LegacySession(server.port)
        session.initialize()
        headers = {"Mcp-Session-Id": session.session, "MCP-Protocol-Version": session.version}
        arguments = {"logical_session_ref": "s0", "program": REMARKS, "force": True}
        async with case("http legacy: a stream that breaks is no wish to stop; notifications/cancelled is one"):
            text_of(session.call("plasm_context", context).message())
            api.reset("slow=200")
            hang_up(server.port, tool_call(arguments, 70), headers, 0.5)
            await all_done(api)
            api.reset("slow=300")
            calling = threading.Thread(target=hang_up, args=(server.port, tool_call(arguments, 71), headers, 3))
            calling.start()
            time.sleep(0.8)
            stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 71, "reason": "enough"}}
            assert request(server.port, body=json.dumps(stop), headers=headers).status == 202
            calling.join()
            assert 0 < len(api.effects()) < 6, api.effects()


async def all_done(api):
    with anyio.fail_after(20):
        while len(api.effects()) < 6:
            await anyio.sleep(0.1)
    assert api.effects() == [digest(text) for text in TEXTS], api.effects()


# --- tasks


def declaring(method, params, id=1, capabilities=TASKS):
    message = modern(method, params, id)
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities
    return message


def ask_http(port, method, params, capabilities=TASKS):
    name = params.get("name") or params.get("taskId")
    message = declaring(method, params, capabilities=capabilities)
    return request(port, body=json.dumps(message), headers=modern_headers(method, name), seconds=30).message()


class Stdio:
    """`tokamak serve --stdio`, spoken to in 2026-07-28 by hand."""

    def __init__(self, arguments, data=None):
        self.data = data or tempfile.mkdtemp(prefix="data-")
        self.arguments = arguments
        self.last = 0

    def __enter__(self):
        command = [TOKAMAK, "serve", "--stdio", "--data", self.data, *self.arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, **pipes)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def ask(self, method, params, capabilities=TASKS):
        self.last += 1
        message = declaring(method, params, self.last, capabilities)
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while (answer := json.loads(self.lines.get(timeout=30))).get("id") != self.last:
            pass
        return answer


def run_of(ask, **arguments):
    given = {"logical_session_ref": "s0", "program": REMARKS, "force": True, **arguments}
    return ask("tools/call", {"name": "plasm_run", "arguments": given})["result"]


def settled(ask, task, seconds=20):
    """The task when it has ended."""
    deadline = time.monotonic() + seconds
    while (found := ask("tasks/get", {"taskId": task})["result"])["status"] == "working":
        assert time.monotonic() < deadline, f"it still works after {seconds} s: {found}"
        time.sleep(0.2)
    return found


async def tasks(api):
    config = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    config.write_text("[limits]\ninline_ms = 300\n")
    arguments = arguments_of(api, "--config", str(config))
    with Server(arguments=arguments) as server:
        await tour(api, "http", lambda *asked, **more: ask_http(server.port, *asked, **more))
    with Stdio(arguments) as stdio:
        await tour(api, "stdio", stdio.ask)
    async with case("http: a task outlives a server that is killed, and nothing is done twice"):
        await outlives(api, arguments)


async def tour(api, where, ask):
    context = {"name": "plasm_context", "arguments": {"intent": f"tasks {where}", "seeds": SEEDS}}
    text_of(ask("tools/call", context))
    async with case(f"{where}: the Tasks extension is offered"):
        offered = ask("server/discover", {})["result"]["capabilities"]
        assert "io.modelcontextprotocol/tasks" in offered.get("extensions", {}), offered
    async with case(f"{where}: a long run is a task for a client that declares it, and its result is there in the end"):
        api.reset("slow=200")
        made = run_of(ask)
        assert made["resultType"] == "task" and made["status"] == "working", made
        assert made["ttlMs"] > 0 and made["pollIntervalMs"] > 0 and made["createdAt"].startswith("20"), made
        now = ask("tasks/get", {"taskId": made["taskId"]})["result"]
        assert now["status"] == "working" and "steps done" in now["statusMessage"], now
        ended = settled(ask, made["taskId"])
        assert ended["status"] == "completed" and not ended["result"].get("isError"), ended
        assert receipts(ended["result"]["content"][0]["text"]) == (6, 0, 0), ended
        assert ended["createdAt"] == made["createdAt"] < ended["lastUpdatedAt"], ended
        await all_done(api)
    async with case(f"{where}: a short run, and one whose model wants no waiting, is no task"):
        api.reset()
        assert run_of(ask, program=ONE)["resultType"] == "complete"
        api.reset("slow=200")
        handle = run_of(ask, wait=False)
        assert handle["resultType"] == "complete" and handle["content"][0]["text"].startswith("wait(s0_o2)"), handle
        waited = run_of(ask, program="wait(s0_o2)")
        assert waited["resultType"] == "complete", waited
        await all_done(api)
    async with case(f"{where}: a task that is cancelled stops before the next effect and says what it did"):
        api.reset("slow=300")
        task = run_of(ask)["taskId"]
        time.sleep(0.5)
        told = ask("tasks/cancel", {"taskId": task})["result"]
        assert {key for key in told if key != "_meta"} == {"resultType"}, told
        ended, happened = settled(ask, task), len(api.effects())
        assert ended["status"] == "cancelled" and 0 < happened < 6, f"{happened} effects: {ended}"
        assert receipts(ended["statusMessage"]) == (happened, 0, 0), ended
        assert ask("tasks/cancel", {"taskId": task})["result"]["resultType"] == "complete"
    async with case(f"{where}: who does not declare it gets a handle to wait for, and no tasks"):
        api.reset("slow=200")
        text = text_of(ask("tools/call", {"name": "plasm_run", "arguments": {
            "logical_session_ref": "s0", "program": REMARKS, "force": True}}, capabilities={}))
        assert text.startswith("wait(s0_o4)"), text
        refused = ask("tasks/get", {"taskId": task}, capabilities={})
        assert refused["error"]["code"] == -32021, refused
        await all_done(api)
    async with case(f"{where}: a task that is not there is said to be unknown"):
        for name in ("s0_o1", task.rsplit("_", 1)[0] + "_o99", "00000000-0000-4000-8000-000000000000_o1", "", "x" * 5000):
            for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
                if where == "http" and (not name or len(name) > 1000):
                    continue  # The name goes into a header there.
                refused = ask(method, {"taskId": name, **more})
                assert refused["error"]["code"] == -32602, f"{method} {name[:60]}: {refused}"


async def outlives(api, arguments):
    api.reset("slow=400")
    with Server(arguments=arguments) as first:
        context = {"name": "plasm_context", "arguments": {"intent": "outlives", "seeds": SEEDS}}
        text_of(ask_http(first.port, "tools/call", context))
        task = run_of(lambda *asked: ask_http(first.port, *asked), program=TICKETS)["taskId"]
        time.sleep(0.6)
        first.kill()
    with Server(data=first.data, arguments=arguments) as second:
        ask = lambda *asked: ask_http(second.port, *asked)
        assert ask("tasks/get", {"taskId": task})["result"]["status"] == "working"
        ended = await anyio.to_thread.run_sync(lambda: settled(ask, task, 45))
        assert ended["status"] == "completed", ended
        assert receipts(ended["result"]["content"][0]["text"]) == (6, 0, 0), ended
        assert len(set(api.effects())) == len(api.effects()) == 6, api.effects()


async def main():
    with Api() as api:
        await every_place(api)
        for group in (leaves, tasks):
            with suite.group(group.__name__):
                await group(api)


if __name__ == "__main__":
    anyio.run(main)
    suite.end()
