"""Storage that answers wrongly, fails or is slow under `run_js`: a proxy between the binary and moto does so on request.

Invariants: a head never moves to a heap that cannot be read; a heap that cannot be read is an error that names it or its object,
never an empty or another heap; when the storage works again the same session goes on; a caller is answered within its `wait_ms`
whatever the storage does.
"""

import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.answers import seeds
from lib.javascript import FINAL, ModernConnection, value_of, wait_for_end
from lib.s3 import BIG, Bucket, environment_of_s3, moto
from lib.server import Server, assert_did_not_panic
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.steps
# The limit of one storage request with its retries; longer than a slow one takes.
TIMEOUT_MS = 8000
READ = "[rows, big.length, big[3].text]"


@pytest.fixture(scope="module")
def proxy():
    with moto() as port, FaultyProxy(port) as started, environment_of_s3(started.port):
        Bucket(port, "faults")
        yield started


@pytest.fixture(autouse=True)
def without_fault(proxy):
    yield
    proxy.clear_faults()


class Installation:
    """A data folder whose blobs are under one prefix, and the one session in it."""

    def __init__(self, prefix):
        self.prefix, self.data = prefix, Path(tempfile.mkdtemp(prefix="data-"))
        settings = self.data.parent / f"{self.data.name}.toml"
        settings.write_text(f'[blobs]\nurl = "s3://faults/{prefix}"\ntimeout_ms = {TIMEOUT_MS}\nretries = 1\n')
        self.arguments = ("--config", str(settings))
        self.steps = 0

    def server(self):
        return Server(self.data, arguments=self.arguments)

    def open(self, agent, intent="faults"):
        text, error = agent.tool("plasm_context", intent=intent, seeds=seeds("Project"))
        assert not error, text
        self.ref = "s" + text.split("`s", 1)[1].split("`", 1)[0]

    def large(self, agent, **more):
        """Runs a step that leaves another large heap."""
        self.steps += 1
        code = f"globalThis.rows = {self.steps}; {BIG.format(n=self.steps)}"
        return agent.tool("run_js", code=code, logical_session_ref=self.ref, **more)

    def log(self, agent):
        return value_of(agent.tool("list_session_snapshots", logical_session_ref=self.ref, fields="index,output_heap"))["entries"]

    def reads(self, agent, steps):
        run = value_of(agent.tool("run_js", code=READ, logical_session_ref=self.ref, wait_ms=20_000))
        assert run["result"] == [steps, 20000, f"row {steps} 3743"], run

    def blob(self, heap):
        """The name of the object of a heap."""
        with closing(sqlite3.connect(self.data / "tokamak.db")) as database, database:
            (value,) = database.execute("SELECT value FROM row WHERE tbl = 'heap' AND id = ?", (heap,)).fetchone()
        return json.loads(value.split(b"\n", 1)[0])["blob"]


# --- writes that go wrong


@pytest.fixture(scope="module")
def written(proxy):
    """A server with one large heap, and the heaps that later steps add."""
    installation = Installation("writing")
    with installation.server() as server:
        agent = ModernConnection(server.port)
        installation.open(agent)
        assert value_of(installation.large(agent))["status"] == "completed"
        yield SimpleNamespace(installation=installation, server=server, agent=agent, kept=1, heaps={})


@pytest.mark.parametrize("fault", ["refused", "swallowed", "kept half", "answer lost"])
def test_the_head_stays_until_a_heap_is_stored_and_then_the_run_goes_on(proxy, written, fault):
    before, faults = written.installation.log(written.agent), proxy.faults
    proxy.put = fault
    run, _ = written.installation.large(written.agent, wait_ms=100, timeout_ms=60_000)
    deadline = time.monotonic() + 60
    while "s3://faults/writing/" not in run.get("warning", "") and run["status"] not in FINAL:
        assert time.monotonic() < deadline, f"no warning names the storage: {run}"
        run = value_of(written.agent.tool("get_execution", execution_id=run["execution_id"], wait_ms=100))
    # After a lost answer the object is stored, so the run may complete.
    assert run["status"] in FINAL and fault == "answer lost" or written.installation.log(written.agent) == before, "the head moved to a heap that is not stored"
    assert proxy.faults > faults, "the proxy made no fault"
    proxy.clear_faults()
    ended = wait_for_end(written.agent, run["execution_id"], seconds=30)
    assert ended["status"] == "completed" and len(written.installation.log(written.agent)) == len(before) + 1, ended
    written.kept = written.installation.steps
    written.heaps[written.kept] = ended["heap"]


def test_a_run_whose_heap_is_refused_until_the_deadline_ends_and_the_session_stays_as_it_was(proxy, written):
    before, proxy.put = written.installation.log(written.agent), "refused"
    run, _ = written.installation.large(written.agent, wait_ms=200, timeout_ms=1500)
    ended = wait_for_end(written.agent, run["execution_id"], seconds=30)
    assert ended["status"] == "timed_out" and "s3://faults/writing/" in ended["error"]["message"], ended
    assert written.installation.log(written.agent) == before
    proxy.clear_faults()
    written.installation.reads(written.agent, written.kept)
    assert written.server.stop(20) == 0


def test_a_process_with_nothing_in_memory_reads_every_heap_that_a_head_moved_to(written):
    assert written.server.process.poll() is not None, "the writing server still runs"
    with written.installation.server() as server:
        for steps, heap in written.heaps.items():
            run = value_of(ModernConnection(server.port).tool("run_js", code=READ, heap=heap, require_heap=True))
            assert run["result"] == [steps, 20000, f"row {steps} 3743"], run


# --- reads that go wrong


READ_AS = ("flipped", "another's", "shorter", "truncated", "refused", "cut off before")


@pytest.fixture(scope="module")
def read(proxy):
    """A session for each fault, so that no heap of it is in memory when it is read."""
    installation, sessions = Installation("reading"), {}
    with installation.server() as server:
        agent = ModernConnection(server.port)
        for fault in READ_AS:
            installation.open(agent, fault)
            sessions[fault] = (installation.ref, value_of(installation.large(agent))["heap"], installation.steps)
        assert server.stop(30) == 0
    return installation, sessions


@pytest.mark.parametrize("fault", READ_AS)
def test_a_heap_that_is_read_wrongly_is_an_error_that_names_it_and_then_the_session_goes_on(proxy, read, fault):
    installation, sessions = read
    installation.ref, heap, steps = sessions[fault]
    names = (heap, installation.blob(heap))
    with installation.server() as server:
        agent = ModernConnection(server.port)
        before, proxy.of, proxy.get, faults = installation.log(agent), names[1], fault, proxy.faults
        for where in ({"heap": heap, "require_heap": True}, {"logical_session_ref": installation.ref}):
            run, _ = agent.tool("run_js", code="typeof big", wait_ms=3000, timeout_ms=1000, **where)
            if not isinstance(run, str):
                run = wait_for_end(agent, run["execution_id"], seconds=8)
                assert run["status"] in ("failed", "timed_out") and "result" not in run, run
            assert any(name in json.dumps(run) for name in names), f"nothing is named: {run}"
        assert proxy.faults > faults and installation.log(agent) == before
        proxy.clear_faults()
        installation.reads(agent, steps)
        assert server.process.poll() is None
        assert_did_not_panic(server)


def test_a_run_waits_for_a_heap_that_is_read_late(proxy, read):
    installation, sessions = read
    with installation.server() as server:
        installation.ref, _, steps = sessions["flipped"]
        proxy.get = "slow"
        installation.reads(ModernConnection(server.port), steps)


# --- slow writes


@pytest.fixture(scope="module")
def slow(proxy):
    """A server whose storage takes seconds for each write, and the runs that it has accepted."""
    installation = Installation("slow")
    with installation.server() as server:
        agent = ModernConnection(server.port)
        installation.open(agent)
        yield SimpleNamespace(installation=installation, server=server, agent=agent, running=[])


@pytest.mark.parametrize("wait_ms", [100, 101, 300, 1000])
def test_a_caller_is_answered_before_a_slow_write_ends(proxy, slow, wait_ms):
    # The first one also stores the engine's own object. An answer that waited for the storage would be `completed`.
    proxy.put = "slow"
    run, _ = slow.installation.large(slow.agent, wait_ms=wait_ms, timeout_ms=120_000)
    slow.running.append(run["execution_id"])
    assert run["status"] in ("running", "queued") and "heap" not in run, run


def test_sessions_with_small_heaps_do_not_wait_for_a_slow_write(proxy, slow):
    proxy.put = "slow"
    assert value_of(slow.agent.tool("run_js", code="6 * 7"))["result"] == 42
    states = [value_of(slow.agent.tool("get_execution", execution_id=execution))["status"] for execution in slow.running]
    assert set(states) - set(FINAL), f"the small run had to wait for the slow ones: {states}"


def test_runs_with_slow_writes_complete_in_order_and_their_heaps_can_be_read(proxy, slow):
    proxy.put = "slow"
    assert all(wait_for_end(slow.agent, execution, seconds=120)["status"] == "completed" for execution in slow.running)
    proxy.clear_faults()
    slow.installation.reads(slow.agent, 4)


def test_a_run_that_is_killed_while_its_heap_is_written_runs_once_and_the_head_can_be_read(proxy, slow):
    proxy.put = "slow"
    run, _ = slow.installation.large(slow.agent, wait_ms=0, timeout_ms=120_000)
    time.sleep(0.5)
    slow.server.kill()
    proxy.clear_faults()
    with slow.installation.server() as server:
        agent = ModernConnection(server.port)
        assert wait_for_end(agent, run["execution_id"])["status"] == "completed"
        slow.installation.reads(agent, 5)
        assert [entry["index"] for entry in slow.installation.log(agent)] == [0, 1, 2, 3, 4, 5, 6]
