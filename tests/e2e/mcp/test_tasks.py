"""The Tasks extension over HTTP and stdio: long runs as tasks, and a task that outlives a killed server.

Invariant: the test API counts the effects in a process of its own, which no test kills.
"""

import json
import queue
import subprocess
import tempfile
import threading
import time

import anyio
import pytest

from lib.client import modern, modern_headers, request, text_of
from lib.test_api import SEEDS, TrackerApi, digest
from lib.effects import REMARKS, TEXTS, TICKETS, receipts
from lib.server import TOKAMAK, Server, settings

pytestmark = pytest.mark.steps
ONE = 'Comment.add(ticket=Ticket(project="OPS", number=42), text="one")'
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture(scope="module")
def api():
    with TrackerApi() as started:
        yield started


@pytest.fixture(scope="module")
def arguments(api):
    """A run that takes longer than 300 ms becomes a task."""
    return api.server_arguments(*settings("[limits]\ninline_ms = 300\n"))


@pytest.fixture(scope="module", params=["http", "stdio"])
def place(request):
    return request.param


@pytest.fixture(scope="module")
def ask(place, arguments):
    """Sends a request to one server and returns the message that answers it."""
    if place == "http":
        with Server(arguments=arguments) as server:
            yield lambda *request, **more: ask_http(server.port, *request, **more)
    else:
        with Stdio(arguments) as stdio:
            yield stdio.ask


def declaring(method, params, id=1, capabilities=TASKS):
    message = modern(method, params, id)
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities
    return message


def ask_http(port, method, params, capabilities=TASKS):
    name = params.get("name") or params.get("taskId")
    message = declaring(method, params, capabilities=capabilities)
    return request(port, body=json.dumps(message), headers=modern_headers(method, name), seconds=30).message()


class Stdio:
    """`tokamak serve --stdio`, with messages of 2026-07-28 that no library makes."""

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


def run(ask, **arguments):
    run_arguments = {"logical_session_ref": "s0", "program": REMARKS, "force": True, **arguments}
    return ask("tools/call", {"name": "plasm_run", "arguments": run_arguments})["result"]


def ended_task(ask, task, seconds=20):
    """Waits for the end of a task and returns it."""
    deadline = time.monotonic() + seconds
    while (task_now := ask("tasks/get", {"taskId": task})["result"])["status"] == "working":
        assert time.monotonic() < deadline, f"it still works after {seconds} s: {task_now}"
        time.sleep(0.2)
    return task_now


async def wait_for_all_effects(api):
    with anyio.fail_after(60):
        while len(api.effects()) < 6:
            await anyio.sleep(0.1)
    assert api.effects() == [digest(text) for text in TEXTS], api.effects()


def test_a_session_opens(ask, place):
    context = {"name": "plasm_context", "arguments": {"intent": f"tasks {place}", "seeds": SEEDS}}
    text_of(ask("tools/call", context))


def test_the_tasks_extension_is_offered(ask):
    offered = ask("server/discover", {})["result"]["capabilities"]
    assert "io.modelcontextprotocol/tasks" in offered.get("extensions", {}), offered


async def test_a_long_run_is_a_task_for_a_client_that_declares_the_extension(api, ask):
    api.reset("slow=200")
    started = run(ask)
    assert started["resultType"] == "task" and started["status"] == "working", started
    assert started["ttlMs"] > 0 and started["pollIntervalMs"] > 0 and started["createdAt"].startswith("20"), started
    task_now = ask("tasks/get", {"taskId": started["taskId"]})["result"]
    assert task_now["status"] == "working" and "steps done" in task_now["statusMessage"], task_now
    ended = ended_task(ask, started["taskId"])
    assert ended["status"] == "completed" and not ended["result"].get("isError"), ended
    assert receipts(ended["result"]["content"][0]["text"]) == (6, 0, 0), ended
    assert ended["createdAt"] == started["createdAt"] < ended["lastUpdatedAt"], ended
    await wait_for_all_effects(api)


async def test_a_short_run_and_a_run_with_wait_false_are_no_tasks(api, ask):
    api.reset()
    assert run(ask, program=ONE)["resultType"] == "complete"
    api.reset("slow=200")
    handle = run(ask, wait=False)
    assert handle["resultType"] == "complete" and handle["content"][0]["text"].startswith("wait(s0_o2)"), handle
    waited = run(ask, program="wait(s0_o2)")
    assert waited["resultType"] == "complete", waited
    await wait_for_all_effects(api)


def test_a_cancelled_task_stops_before_the_next_effect_and_reports_its_effects(api, ask, flow):
    api.reset("slow=300")
    flow.task = run(ask)["taskId"]
    time.sleep(0.5)
    answer = ask("tasks/cancel", {"taskId": flow.task})["result"]
    assert {key for key in answer if key != "_meta"} == {"resultType"}, answer
    ended, happened = ended_task(ask, flow.task), len(api.effects())
    assert ended["status"] == "cancelled" and 0 < happened < 6, f"{happened} effects: {ended}"
    assert receipts(ended["statusMessage"]) == (happened, 0, 0), ended
    assert ask("tasks/cancel", {"taskId": flow.task})["result"]["resultType"] == "complete"


async def test_a_client_that_does_not_declare_the_extension_gets_a_handle_and_no_tasks(api, ask, flow):
    api.reset("slow=200")
    text = text_of(ask("tools/call", {"name": "plasm_run", "arguments": {
        "logical_session_ref": "s0", "program": REMARKS, "force": True}}, capabilities={}))
    assert text.startswith("wait(s0_o4)"), text
    refused = ask("tasks/get", {"taskId": flow.task}, capabilities={})
    assert refused["error"]["code"] == -32021, refused
    await wait_for_all_effects(api)


def test_an_unknown_task_is_refused(ask, place, flow):
    for name in ("s0_o1", flow.task.rsplit("_", 1)[0] + "_o99", "00000000-0000-4000-8000-000000000000_o1", "", "x" * 5000):
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
            if place == "http" and (not name or len(name) > 1000):
                continue  # Over HTTP the task id is also a header, which cannot be empty or that long.
            refused = ask(method, {"taskId": name, **more})
            assert refused["error"]["code"] == -32602, f"{method} {name[:60]}: {refused}"


async def test_a_task_outlives_a_killed_server_and_nothing_happens_twice(api, arguments):
    api.reset("slow=400")
    with Server(arguments=arguments) as first:
        context = {"name": "plasm_context", "arguments": {"intent": "outlives", "seeds": SEEDS}}
        text_of(ask_http(first.port, "tools/call", context))
        task = run(lambda *asked: ask_http(first.port, *asked), program=TICKETS)["taskId"]
        time.sleep(0.6)
        first.kill()
    with Server(data=first.data, arguments=arguments) as second:
        ask = lambda *asked: ask_http(second.port, *asked)
        assert ask("tasks/get", {"taskId": task})["result"]["status"] == "working"
        ended = await anyio.to_thread.run_sync(lambda: ended_task(ask, task, 45))
        assert ended["status"] == "completed", ended
        assert receipts(ended["result"]["content"][0]["text"]) == (6, 0, 0), ended
        assert len(set(api.effects())) == len(api.effects()) == 6, api.effects()
