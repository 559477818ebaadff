"""Stored heaps that are damaged, exchanged or missing.

Invariants: a run on a damaged heap, and one in a session that stands on it, is an error that names the key; it never begins on a
fresh heap or on another one; the head and the log stay; every other session goes on.
"""

import json
from types import SimpleNamespace

import pytest

from damage import DAMAGES, FIRST, LARGE, LIMITS, LOOK, MADE_AGAIN, SMALL, DataFolder, log_of
from lib.javascript import ModernConnection, error_of, open_session, value_of
from lib.server import Server, assert_did_not_panic

pytestmark = pytest.mark.steps(again_for="damaged")


@pytest.fixture(scope="module")
def folder():
    return DataFolder()


@pytest.fixture(scope="module", params=DAMAGES, ids=[title for title, *_ in DAMAGES])
def damaged(folder, request):
    """A server on a copy of the folder with one damage."""
    title, name, damage = request.param
    data = folder.copy()
    damage(folder, data)
    with Server(data) as server:
        yield SimpleNamespace(
            title=title,
            name=name,
            heap=folder.head(name),
            first=folder.first(name),
            ref=folder.refs[name],
            log=folder.logs[name],
            # A key that is not in storage may be fresh, with a warning, instead of an error.
            missing="went" in title and name == "small",
            base_is_missing=title.startswith("what"),
            server=server,
            agent=ModernConnection(server.port),
        )


def assert_names(answer, *keys):
    """Asserts a failed run or a refusal that names one of these keys."""
    value = error_of(answer)
    text = json.dumps(value)
    assert any(key in text for key in keys), f"no key is named: {text[:300]}"
    assert isinstance(value, str) or value["status"] == "failed", f"not at once: {text[:300]}"


def test_a_run_in_its_session_and_one_on_the_heap_are_errors_that_name_the_heap_each_time(damaged):
    for _ in range(2):
        assert_names(damaged.agent.tool("run_js", code=LOOK, logical_session_ref=damaged.ref, **LIMITS), damaged.heap, damaged.first)
        # Only a run on a missing key may start fresh, and then with a warning.
        if not damaged.missing or damaged.title.startswith("what"):
            assert_names(damaged.agent.tool("run_js", code="typeof rows", heap=damaged.heap, **LIMITS), damaged.heap, damaged.first)
        for more in ({}, {"logical_session_ref": damaged.ref}):
            arguments = {"code": "typeof rows", "heap": damaged.heap, "require_heap": True, **more, **LIMITS}
            assert_names(damaged.agent.tool("run_js", **arguments), damaged.heap, damaged.first)


def test_the_log_can_be_read_and_the_head_is_where_it_was(folder, damaged):
    assert log_of(damaged.agent, damaged.ref) == damaged.log
    if not damaged.title.startswith("what"):
        assert_names(damaged.agent.tool("diff_heaps", a=folder.head("sound"), b=damaged.heap), damaged.heap)


def test_every_other_session_goes_on(folder, damaged):
    for other in {"large", "small", "sound"} - {damaged.name}:
        run = value_of(damaged.agent.tool("run_js", code=LOOK, logical_session_ref=folder.refs[other]))
        assert run["result"] == [other, f"{other} 0", 1], run
    run = value_of(ModernConnection(damaged.server.port, "named").tool("run_js", code="++n", heap=folder.logs["named"][0], require_heap=True))
    assert run["result"] == 2, run


def test_the_session_goes_back_to_an_undamaged_heap_and_on_from_there(damaged):
    if damaged.base_is_missing:
        pytest.skip("the session has no undamaged heap")
    entry = value_of(damaged.agent.tool("rewind_session", logical_session_ref=damaged.ref, index=0))["entry"]
    assert entry["rewound_to"] == 0, entry
    assert value_of(damaged.agent.tool("run_js", code="[typeof owner, ++count]", logical_session_ref=damaged.ref))["result"] == ["undefined", 1]


def test_the_process_lives_and_did_not_panic(damaged):
    assert damaged.server.process.poll() is None
    assert_did_not_panic(damaged.server)
    assert damaged.server.stop(30) == 0


@pytest.mark.parametrize("read_before", [False, True], ids=["not-read-before", "read-before"])
@pytest.mark.parametrize("title, name, damage", [damage for damage in DAMAGES if damage[0] in MADE_AGAIN])
def test_code_that_makes_a_damaged_heap_again_leaves_one_that_can_be_read_or_is_refused(folder, title, name, damage, read_before):
    data, heap = folder.copy(), folder.head(name)
    damage(folder, data)
    with Server(data) as server:
        agent = ModernConnection(server.port)
        ref = open_session(agent, "again")
        if read_before:
            error_of(agent.tool("run_js", code="1", heap=heap, require_heap=True, **LIMITS))
        value_of(agent.tool("run_js", code=FIRST.format(name=name), logical_session_ref=ref))
        code = (LARGE if name == "large" else SMALL).format(name=name)
        run, error = agent.tool("run_js", code=code, logical_session_ref=ref, **LIMITS)
        log = log_of(agent, ref)
        assert error or log[-1]["output_heap"] == run["heap"] == heap, (run, log)
        assert server.stop(15) == 0
    with Server(data) as server:
        code, wanted = ("typeof owner", "undefined") if error else (LOOK, [name, f"{name} 0", 1])
        run, wrong = ModernConnection(server.port).tool("run_js", code=code, logical_session_ref=ref)
        assert not wrong, f"the head moved to a heap that cannot be read: {json.dumps(run)[:300]}"
        assert run["result"] == wanted, run
