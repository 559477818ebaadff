"""A clock that jumps under a running server: a year ahead, a year back, and to where it was.

What a time decides (a reviewed plan is good for ten minutes) is said with its code; everything else goes on: symbols,
results, JavaScript heaps, numbers that count up, the trace. No effect happens twice.

Invariants: only the server's wall clock jumps (clock.c, preloaded), not the one that measures durations; only the standard
library and a C compiler.
"""

import json
import os
import shutil
import struct
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from answers import tables
from harness import TOKAMAK, Server, Suite, modern_call, refusal_of, request, text_of

suite = Suite("clock")
DAY = 24 * 60 * 60
SEEDS = [{"api": "demo", "entity": "Project"}, {"api": "demo", "entity": "Ticket", "capabilities": ["*"]}]
OPEN = 'Ticket.open(project="OPS", title="{}")'


class Clock:
    """The file that a preloaded process adds to its time."""

    def __init__(self, folder):
        self.file = folder / "offset"
        self.to(0)
        self.library = folder / "clock.so"
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or "cc"
        source = Path(__file__).with_name("clock.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library, source], check=True)

    def to(self, seconds):
        """In place: the process has the file mapped."""
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))

    @contextmanager
    def moved(self):
        """Processes started within have the clock."""
        os.environ.update(LD_PRELOAD=str(self.library), CLOCK_OFFSET=str(self.file))
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"], os.environ["CLOCK_OFFSET"]


def main():
    clock = Clock(Path(tempfile.mkdtemp(prefix="clock-")))
    data = Path(tempfile.mkdtemp(prefix="data-"))
    with clock.moved():
        server = Server(data=data).__enter__()
    try:
        jumps(server, clock)
    finally:
        server.kill()
    clock.to(0)
    with suite.case("after all of it a server whose clock is right finds everything"), Server(data=data) as again:
        assert "Session unchanged" in opened(again)
        assert "OPS" in text_of(artifact(again, 1))
        assert js(again, "steps.length") == 4
    suite.end()


def call(server, tool, **arguments):
    return modern_call(server.port, tool, arguments)


def opened(server):
    return text_of(call(server, "plasm_context", intent="clock", seeds=SEEDS))


def ran(server, program="Project[key, name]"):
    return text_of(call(server, "plasm_run", logical_session_ref="s0", program=program))


def artifact(server, number):
    return call(server, "read_artifact", uri=f"plasm://session/s0/r/{number}")


def planned(server, title):
    answer = call(server, "plasm", logical_session_ref="s0", program=OPEN.format(title))
    return answer["result"]["_meta"]["plasm"]["plan_commit_ref"]


def committed(server, commit):
    return call(server, "plasm_run", logical_session_ref="s0", plan_commit_ref=commit)


def js(server, code):
    ran = json.loads(text_of(call(server, "run_js", code=code, logical_session_ref="s0", wait_ms=20_000)))
    assert ran["status"] == "completed", ran
    return ran["result"]


def titled(server, title):
    """How many tickets have it, by the API's own list."""
    rows = tables(ran(server, f'Ticket{{project="OPS"}}.filter{{title="{title}"}}[number, title]'))
    return len(rows.get("result", []))


def sound(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    assert request(server.port, "GET", "/readyz").status == 200
    said = Path(server.log).read_text(errors="replace")
    assert "panicked" not in said, said[-2000:]


def jumps(server, clock):
    with suite.case("before: a session, a result, a plan to review, a heap"):
        assert "e1" in opened(server)
        assert "OPS" in ran(server)
        old = planned(server, "before the jump")
        assert js(server, "globalThis.steps = [Date.now()]; steps.length") == 1
    clock.to(400 * DAY)
    with suite.case("400 days ahead: the plan to review is too old, and says so; nothing ran"):
        said = refusal_of(committed(server, old))
        assert said.startswith("expired_commit: "), said
        assert titled(server, "before the jump") == 0
    with suite.case("400 days ahead: session, old results, runs and the heap go on"):
        assert "Session unchanged" in opened(server)
        assert "OPS" in text_of(artifact(server, 1))
        assert "OPS" in ran(server)
        assert js(server, "steps.push(Date.now())") == 2
        sound(server)
    ahead = planned(server, "planned ahead")
    clock.to(-400 * DAY)
    with suite.case("800 days back: a plan from the future runs once; asked again, it answers what it did"):
        first, again = committed(server, ahead), committed(server, ahead)
        assert not first["result"].get("isError"), text_of(first)
        assert not again["result"].get("isError"), text_of(again)
        assert titled(server, "planned ahead") == 1
    with suite.case("800 days back: session, old results, runs and the heap go on, numbers count up"):
        assert "Session unchanged" in opened(server)
        assert "OPS" in text_of(artifact(server, 1))
        assert "OPS" in ran(server)
        assert js(server, "steps.push(Date.now())") == 3
        sound(server)
    clock.to(0)
    with suite.case("back where it was: all steps are in the heap and in the log, in their order"):
        assert js(server, "steps.push(Date.now())") == 4
        assert js(server, "steps[1] - steps[0] > 399 * 864e5 && steps[2] < steps[0] && steps[3] > steps[0]") is True
        log = json.loads(text_of(call(server, "list_session_snapshots", logical_session_ref="s0")))["entries"]
        assert [entry["index"] for entry in log] == [0, 1, 2, 3, 4], log
        assert all(one["output_heap"] == two["input_heap"] for one, two in pairwise(log)), log
    with suite.case("back where it was: the trace has the calls, and a collection takes nothing"):
        said = subprocess.run(
            [TOKAMAK, "gc", "--dry-run", "--json", "--data", str(server.data)], capture_output=True, text=True, check=True
        ).stdout
        assert '"blobs":0' in said.replace(" ", ""), said
        sound(server)


if __name__ == "__main__":
    main()
