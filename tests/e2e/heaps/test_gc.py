"""Collection beside running work: sessions take steps in two servers while `tokamak gc` runs in a loop and hours pass.

Retention is as small as it may be: two entries of a log keep their heap, and unreferenced data is deleted after an hour. A movable
clock (lib/clock.py) makes the hours, and moves only while no step is running.

Invariants: a head, a tagged heap and the heap of a waiting run are never collected, whenever a pass runs; each is restored after a
restart with what it held. An entry of the log says when its heap is gone. A dry run changes nothing and says what the next pass does.
"""

import os
import random
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gc_load import SEEDS, Collector, Session, assert_holds, collect, stored_rows_and_blobs
from lib.clock import Clock
from lib.javascript import ModernConnection, error_of, open_session, value_of, wait_for_end
from lib.server import Server, new_folder, run_binary, settings

pytestmark = pytest.mark.steps
SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
MINUTE = 60
# Jumps of the clock, with steps and passes between them; together more than five times the retention period.
JUMPS = 14
SECONDS_BETWEEN = 0.7
DAYS = 10 * 24 * 60 * MINUTE * 1000
SETTINGS = f"""
[retention]
heaps = 1
log_entries = 2
executions = 1
grace_hours = 1
[js]
most_timeout_ms = {DAYS}
"""
LARGE = "globalThis.big = Array.from({{length: 20000}}, (_, i) => `row {n} ${{i * {factor} % 10007}}`); seen.push({n}); seen.length"
WAIT = "await new Promise((done) => setTimeout(done, 3 * 3600 * 1000));"


@pytest.mark.parametrize("name", ["grace_hours", "heaps", "log_entries"])
def test_a_retention_of_nothing_is_refused_at_the_start(name):
    ended = run_binary("gc", *settings(f"[retention]\n{name} = 0\n"), "--data", tempfile.mkdtemp())
    assert ended.returncode == 2 and f"retention.{name}" in ended.stderr, ended


# --- passes beside work


@pytest.fixture(scope="module")
def world():
    """The data folder, its movable clock, and everything that the sessions did."""
    data = Path(tempfile.mkdtemp(prefix="data-"))
    config = settings(SETTINGS)
    clock = Clock(new_folder("clock-"))
    with clock.in_new_processes():
        world = SimpleNamespace(data=data, config=config, arguments=("--data", str(data), *config), clock=clock, offset=0)
        with Server(data, arguments=config) as one, Server(data, arguments=config) as two:
            work_beside_collection(world, (one, two), random.Random(SEED))
            assert one.stop(30) == 0 and two.stop(30) == 0
        yield world


def work_beside_collection(world, servers, chance):
    """Lets sessions and a collector run while the clock jumps, and starts runs that wait over all of it."""
    ports = [server.port for server in servers]
    agent = ModernConnection(ports[0])
    large = Session(ports, "large", chance, True)
    for n in range(6):
        large.step(("globalThis.seen ??= []; " if n == 0 else "") + LARGE.format(n=n, factor=7919 + 2 * n))
    sessions = [Session(ports, f"session {n}", random.Random(chance.random()), n % 3 < 2) for n in range(6)]
    sleeper = Session(ports, "sleeper", chance, True)
    for _ in range(5):
        sleeper.step()
    start_waiting_runs(world, agent, sleeper)
    collector = Collector(world.arguments)
    threads = (*sessions, collector)
    for thread in threads:
        thread.start()
    for _ in range(JUMPS):
        time.sleep(SECONDS_BETWEEN)
        # No pass may see an hour that a file has not: blobs are made before the clock moves.
        for session in sessions:
            session.busy.acquire()
        world.offset += chance.randint(12, 38) * MINUTE
        world.clock.move_to(world.offset)
        for session in sessions:
            session.busy.release()
    for thread in threads:
        thread.over.set()
    for thread in threads:
        thread.join(60)
    world.threads, world.collector, world.working = threads, collector, sessions
    world.sleeper, world.sessions = sleeper, [large, sleeper, *sessions]


def start_waiting_runs(world, agent, sleeper):
    long = {"timeout_ms": DAYS, "wait_ms": 300}
    code = f"let before = seen.length; {WAIT} [before, seen.length]"
    in_session = value_of(agent.tool("run_js", code=code, logical_session_ref=sleeper.ref, **long))
    on_heap = value_of(agent.tool("run_js", code=code, heap=sleeper.heaps[1], **long))
    # Each waiting run, with the result that it must have in the end.
    world.waiting = {"in its session": (in_session, [5, 5]), "on an old heap": (on_heap, [2, 2])}
    reviewed = open_session(agent, "reviewed", SEEDS)
    code = """let text = 'kept'; await plasm('Ticket.open(project="OPS", title="never")'); text"""
    world.review = value_of(agent.tool("run_js", code=code, logical_session_ref=reviewed, **long))
    assert world.review["status"] == "waiting_review", world.review
    assert all(run["status"] == "running" for run, _ in world.waiting.values()), world.waiting


def test_beside_passes_over_hours_every_step_of_every_session_is_right(world):
    collector = world.collector
    wrong = [thread.wrong for thread in world.threads if thread.wrong]
    assert not wrong, f"seed {SEED}: {wrong}"
    assert not [thread for thread in world.threads if thread.is_alive()], f"seed {SEED}: a thread hangs"
    steps = sum(len(session.heaps) for session in world.working)
    tagged = sum(len(session.tagged) for session in world.working)
    counts = f"seed {SEED}: {steps} steps, {tagged} tagged heaps, {collector.passes} passes"
    assert steps > 100 and tagged > 5 and collector.passes > JUMPS // 2, counts
    assert collector.gone > 20 and collector.blobs >= 3, f"only {collector.gone} heaps and {collector.blobs} blobs were removed; {counts}"


# --- two passes with the retention period between them


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_dry_run_removes_nothing_and_says_what_the_pass_does(world, which):
    world.offset += 61 * MINUTE
    world.clock.move_to(world.offset)
    for command in (("gc",), ("heap", "gc")):
        before = stored_rows_and_blobs(world.data)
        dry = collect(world.arguments, command, "--dry-run")
        assert dry["dry_run"] is True and stored_rows_and_blobs(world.data) == before, "a dry run changed something"
    real = collect(world.arguments)
    rows, blobs = stored_rows_and_blobs(world.data)
    assert len(before[0]) - len(rows) == sum(real["rows"].values()), (dry, real)
    assert len(before[1]) - len(blobs) == real["blobs"], (dry, real)
    assert (dry["rows"].get("heap"), dry["condemned"]) == (real["rows"].get("heap"), real["condemned"]), (dry, real)


# --- after a restart


@pytest.fixture(scope="module")
def server(world):
    with Server(world.data, arguments=world.config) as started:
        yield started


@pytest.fixture(scope="module")
def agent(server):
    return ModernConnection(server.port)


def test_every_head_tagged_heap_and_heap_outside_of_sessions_is_restored_with_what_it_held(world, agent):
    for session in world.sessions:
        assert_holds(agent, session.heaps[-1], len(session.heaps), f"the head of {session.name}")
        for heap, count in session.tagged.items():
            assert_holds(agent, heap, count, f"a tagged heap of {session.name}")
        for heap, count in session.outside.items():
            assert_holds(agent, heap, count, f"a heap outside of {session.name}")


def test_an_entry_says_that_its_heap_is_gone_or_its_heap_is_restored_and_the_newest_two_are_never_gone(world, server, agent, flow):
    sessions = world.sessions
    flow.gone, flow.kept = 0, 0
    for session in sessions:
        connection = agent if session.ref else ModernConnection(server.port, session.name)
        arguments = {"logical_session_ref": session.ref} if session.ref else {}
        entries = value_of(connection.tool("list_session_snapshots", **arguments))["entries"]
        # A waiting run has ended since then and added the newest entry.
        entries = entries[: len(session.heaps)]
        assert [e["output_heap"] for e in entries] == session.heaps, f"{session.name}: the log differs from the answers"
        assert not any(e.get("heap_gone") for e in entries[-2:]), entries[-2:]
        for at, entry in enumerate(entries):
            if not entry.get("heap_gone"):
                assert_holds(agent, entry["output_heap"], at + 1, f"entry {at} of {session.name}")
                flow.kept += 1
                continue
            flow.gone += 1
            assert entry["output_heap"] not in session.tagged, f"a tagged heap is gone: {entry}"
            if flow.gone % 10 == 0:
                assert error_of(agent.tool("run_js", code="1", heap=entry["output_heap"], require_heap=True)).startswith("no_heap")
                assert entry["output_heap"] in value_of(agent.tool("run_js", code="1", heap=entry["output_heap"]))["warning"]
            if flow.gone % 10 == 1 and session.ref:
                assert error_of(agent.tool("rewind_session", logical_session_ref=session.ref, index=at))
                assert error_of(agent.tool("fork_session", logical_session_ref=session.ref, intent=f"to {at} of {session.name}", at=at))


def test_many_old_heaps_are_gone(flow):
    # A tagged heap and a heap of a run outside of sessions keep the heaps that they stand on.
    assert flow.gone * 5 > flow.kept, f"{flow.gone} entries lost their heap and {flow.kept} kept it"


@pytest.mark.parametrize("title", ["in its session", "on an old heap"])
def test_a_run_that_waited_over_all_passes_and_a_restart_goes_on_with_what_it_had(world, agent, title):
    run, wanted = world.waiting[title]
    assert wait_for_end(agent, run["execution_id"])["result"] == wanted


def test_a_write_that_waits_for_its_review_still_waits_with_the_same_plan(world, agent):
    review = world.review
    run = value_of(agent.tool("get_execution", execution_id=review["execution_id"]))
    assert run["status"] == "waiting_review" and run["reviews"] == review["reviews"], run
    assert value_of(agent.tool("cancel_execution", execution_id=review["execution_id"])) == {"ok": True}


def test_days_later_heads_and_tags_exist_and_heaps_outside_of_sessions_and_ended_runs_do_not(world, server):
    assert server.stop(30) == 0
    # The head of the sleeper has moved, because its waiting run has ended.
    sessions = [session for session in world.sessions if session.name != "sleeper"]
    for _ in range(2):
        world.offset += 2 * 24 * 60 * MINUTE
        world.clock.move_to(world.offset)
        collect(world.arguments)
    with Server(world.data, arguments=world.config) as later:
        agent = ModernConnection(later.port)
        for session in sessions:
            assert_holds(agent, session.heaps[-1], len(session.heaps), f"the head of {session.name}")
            for heap, count in session.tagged.items():
                assert_holds(agent, heap, count, f"a tagged heap of {session.name}")
            for heap in set(session.outside) - set(session.tagged):
                assert error_of(agent.tool("run_js", code="1", heap=heap, require_heap=True)).startswith("no_heap"), heap
        for session in sessions[:3]:
            session.agents = [agent]
            session.step()
