"""The wire contract on sessions and heaps, line by line: every connection sees the same, whatever transport carries it."""

import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.client import LEGACY, MODERN
from lib.javascript import (
    KEY,
    MOMENT,
    NO_SESSION_NAME,
    UNKNOWN_HEAP,
    ModernConnection,
    NamedConnection,
    StdioConnection,
    error_of,
    value_of,
)
from lib.server import TOKAMAK, Server, copy_compiled_engine

pytestmark = pytest.mark.steps
FIELDS = ["index", "input_heap", "output_heap", "code", "timestamp"]


@pytest.fixture(scope="module", params=[*LEGACY, MODERN, "stdio"])
def place(request):
    return request.param


@pytest.fixture(scope="module")
def connections(place):
    """Three connections to one storage: with the session `the page`, without a name, and with `only failures`."""
    if place == "stdio":
        data = tempfile.mkdtemp(prefix="data-")
        names = ({"name": "the page"}, {}, {"name": "only failures"})
        with StdioConnection(data, **names[0]) as named, StdioConnection(data) as unnamed, StdioConnection(data, **names[2]) as failing:
            yield SimpleNamespace(named=named, unnamed=unnamed, failing=failing, team=None, data=data)
        return
    with Server() as server:
        team = {"X-MCP-Team": "blue"}
        if place == MODERN:
            named = ModernConnection(server.port, "the page", more_headers=team)
            unnamed, failing = ModernConnection(server.port), ModernConnection(server.port, "only failures")
        else:
            named = NamedConnection(server.port, "the page", more_headers=team, version=place)
            unnamed = NamedConnection(server.port, version=place)
            failing = NamedConnection(server.port, "only failures", version=place)
            for connection in (named, unnamed, failing):
                assert connection.initialize()["protocolVersion"] == place
        yield SimpleNamespace(named=named, unnamed=unnamed, failing=failing, team="blue", data=server.data)


@pytest.fixture(scope="module")
def named(connections):
    return connections.named


@pytest.fixture(scope="module")
def unnamed(connections):
    return connections.unnamed


@pytest.fixture(scope="module")
def failing(connections):
    return connections.failing


@pytest.fixture(scope="module")
def place_team(connections):
    """The value of X-MCP-Team that the named connection sends, where there are headers."""
    return connections.team


def test_a_heap_key_is_64_lowercase_hexadecimal_characters_and_equal_runs_have_equal_keys(named, unnamed, flow):
    flow.first = value_of(named.tool("run_js", code="globalThis.x = 1;"))
    repeated = value_of(unnamed.tool("run_js", code="globalThis.x = 1;"))
    assert KEY.match(flow.first["heap"]) and flow.first["heap"] == repeated["heap"], (flow.first, repeated)
    flow.heap = flow.first["heap"]


def test_get_execution_of_a_completed_run_has_its_heap(unnamed, flow):
    results = value_of(unnamed.tool("get_execution", execution_id=flow.first["execution_id"]))
    assert results["status"] == "completed" and results["heap"] == flow.heap, results


def test_a_run_is_fresh_without_a_heap_and_with_a_missing_one_and_is_restored_with_a_key(named, flow):
    for fresh in ({}, {"heap": ""}):
        assert value_of(named.tool("run_js", code="typeof x", **fresh))["result"] == "undefined", fresh
    assert value_of(named.tool("run_js", code="x + 1", heap=flow.heap))["result"] == 2
    lost = value_of(named.tool("run_js", code="typeof x", heap=UNKNOWN_HEAP))
    assert lost["result"] == "undefined" and UNKNOWN_HEAP in lost["warning"], lost


def test_entries_have_an_index_from_0_the_heaps_the_code_and_a_moment(named, flow):
    entries = value_of(named.tool("list_session_snapshots"))["entries"]
    assert [e["index"] for e in entries] == [0, 1, 2, 3, 4], entries
    assert [e["input_heap"] for e in entries[:4]] == [None, None, None, flow.heap], entries
    assert all(list(e) == FIELDS or set(e) == set(FIELDS) for e in entries), entries
    assert all(KEY.match(e["output_heap"]) and MOMENT.match(e["timestamp"]) for e in entries), entries
    assert entries[0]["code"] == "globalThis.x = 1;" and entries[0]["output_heap"] == flow.heap, entries


def test_fields_choose_one_or_several_and_an_unknown_field_is_an_error(named):
    for field in FIELDS:
        chosen = value_of(named.tool("list_session_snapshots", fields=field))["entries"]
        assert all(set(e) == {field} for e in chosen), chosen
    chosen = value_of(named.tool("list_session_snapshots", fields="index,code"))["entries"]
    assert set(chosen[0]) == {"index", "code"}, chosen
    for fields, wrong in (("nothing", "nothing"), ("index,nope", "nope"), ("Index", "Index"), ("code;index", "code;index")):
        refused = error_of(named.tool("list_session_snapshots", fields=fields))
        assert list(refused) == ["entries"] and len(refused["entries"]) == 1, refused
        assert wrong in refused["entries"][0]["error"] and "input_heap" in refused["entries"][0]["error"], refused


def test_without_a_session_the_log_is_one_error_entry_word_by_word(unnamed):
    assert error_of(unnamed.tool("list_session_snapshots")) == NO_SESSION_NAME
    assert error_of(unnamed.tool("list_session_snapshots", fields="index")) == NO_SESSION_NAME


def test_a_session_is_listed_when_it_has_an_entry(unnamed):
    assert "the page" in value_of(unnamed.tool("list_sessions"))["sessions"]
    assert set(value_of(unnamed.tool("list_sessions"))) == {"sessions"}


def test_a_session_whose_runs_all_failed_has_no_entries_and_is_not_listed(unnamed, failing):
    assert value_of(failing.tool("list_session_snapshots")) == {"entries": []}
    for code, status in (("throw new Error('on purpose')", "failed"), ("let broken = ;", "failed"), ("for (;;) {}", "timed_out")):
        assert error_of(failing.tool("run_js", code=code, timeout_ms=200))["status"] == status, code
    assert value_of(failing.tool("list_session_snapshots")) == {"entries": []}
    assert value_of(unnamed.tool("list_sessions")) == {"sessions": ["the page"]}


def test_headers_that_begin_with_x_mcp_are_in_mcp_headers_and_only_there(named, unnamed, place_team):
    headers = value_of(named.tool("run_js", code="mcp.headers"))["result"]
    assert headers.get("x-mcp-team") == place_team and all(name.startswith("x-mcp-") for name in headers), headers
    assert "x-mcp-team" not in value_of(unnamed.tool("run_js", code="mcp.headers"))["result"]


def test_tags_are_set_replaced_cleared_by_an_empty_object_and_deleted_by_name_or_all(named, flow):
    assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {}}
    assert value_of(named.tool("set_heap_tags", heap=flow.heap, tags={"env": "production", "model": "v2"})) == {"ok": True}
    assert value_of(named.tool("set_heap_tags", heap=flow.heap, tags={"env": "test"})) == {"ok": True}
    assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {"env": "test"}}
    assert value_of(named.tool("set_heap_tags", heap=flow.heap, tags={})) == {"ok": True}
    assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {}}
    assert value_of(named.tool("set_heap_tags", heap=flow.heap, tags={"a": "1", "b": "2", "c": "3"})) == {"ok": True}
    assert value_of(named.tool("delete_heap_tags", heap=flow.heap, keys="a,c")) == {"ok": True}
    assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {"b": "2"}}
    assert value_of(named.tool("delete_heap_tags", heap=flow.heap)) == {"ok": True}
    assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {}}


def test_tags_of_a_run_replace_those_of_its_heap_and_a_query_needs_every_pair(named, flow):
    one = value_of(named.tool("run_js", code="globalThis.tagged = 1", tags={"env": "p", "model": "v2"}))["heap"]
    two = value_of(named.tool("run_js", code="globalThis.tagged = 2", tags={"env": "p", "model": "v3"}))["heap"]
    assert value_of(named.tool("run_js", code="globalThis.tagged = 1", tags={"env": "p", "kept": "no"}))["heap"] == one
    assert value_of(named.tool("get_heap_tags", heap=one)) == {"tags": {"env": "p", "kept": "no"}}
    results = value_of(named.tool("query_heaps_by_tags", tags={"env": "p"}))["results"]
    assert sorted(r["heap"] for r in results) == sorted([one, two]) and set(results[0]) == {"heap", "tags"}, results
    assert value_of(named.tool("query_heaps_by_tags", tags={"env": "p", "model": "v3"}))["results"] == [
        {"heap": two, "tags": {"env": "p", "model": "v3"}}
    ]
    assert value_of(named.tool("query_heaps_by_tags", tags={"env": "none"})) == {"results": []}
    every = value_of(named.tool("query_heaps_by_tags", tags={}))["results"]
    assert flow.heap not in [r["heap"] for r in every], "an untagged heap is never found"
    assert {one, two} <= {r["heap"] for r in every}, every


def test_mistakes_with_tags_are_refused(named, flow):
    for tool, more in (("set_heap_tags", {"tags": {"a": "b"}}), ("delete_heap_tags", {})):
        refused = error_of(named.tool(tool, heap=UNKNOWN_HEAP, **more))
        assert refused["ok"] is False and isinstance(refused["error"], str), refused
        assert error_of(named.tool(tool, heap="not a key", **more))["ok"] is False
    assert error_of(named.tool("set_heap_tags", heap=flow.heap, tags={"a": 1})), "a tag is text"
    assert error_of(named.tool("query_heaps_by_tags")), "a filter is needed"


def test_an_unknown_key_has_no_tags_and_a_malformed_key_is_refused(named):
    assert value_of(named.tool("get_heap_tags", heap=UNKNOWN_HEAP)) == {"tags": {}}
    for wrong in ("not a key", UNKNOWN_HEAP[1:], UNKNOWN_HEAP + "0", "A" * 64, ""):
        assert error_of(named.tool("get_heap_tags", heap=wrong)).startswith("bad_heap"), wrong
    assert error_of(named.tool("get_heap_tags")), "a heap is needed"


def test_deleting_missing_tags_changes_nothing(named, flow):
    assert value_of(named.tool("set_heap_tags", heap=flow.heap, tags={"a": "1"})) == {"ok": True}
    for keys in ("b", "b,c", "A", " ,", ""):
        assert value_of(named.tool("delete_heap_tags", heap=flow.heap, keys=keys)) == {"ok": True}, keys
        assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {"a": "1"}}, keys
    assert value_of(named.tool("delete_heap_tags", heap=flow.heap, keys="b,a")) == {"ok": True}
    assert value_of(named.tool("get_heap_tags", heap=flow.heap)) == {"tags": {}}


def test_an_exported_heap_has_its_magic_and_key_and_no_byte_may_change(place, connections):
    if place in LEGACY:
        pytest.skip("the file of a heap does not depend on the revision")
    unnamed, data, folder = connections.unnamed, connections.data, Path(tempfile.mkdtemp(prefix="heap-"))
    # The file of a heap: ten bytes of magic, the SHA-256 of the payload, the payload.
    run = value_of(unnamed.tool("run_js", code="globalThis.stored = 'bytes'"))
    info = value_of(unnamed.tool("read_artifact", uri=f"heap://{run['heap']}"))
    assert run["heap"] in info, info
    exported = folder / "heap.bin"
    done = subprocess.run([TOKAMAK, "heap", "export", run["heap"], "-o", str(exported), "--data", str(data)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    bytes_ = exported.read_bytes()
    # An export is a line about the heap, the engine and the object.
    start = bytes_.index(b"TOKAHEAP")
    assert bytes_[start + 10 : start + 42].hex() == run["heap"], bytes_[start : start + 42]
    for at in (start, start + 9, start + 10, start + 41, start + 42, (start + len(bytes_)) // 2, len(bytes_) - 1):
        wrong = bytearray(bytes_)
        wrong[at] ^= 1
        (folder / "wrong.bin").write_bytes(wrong)
        other_data = tempfile.mkdtemp(prefix="data-")
        copy_compiled_engine(other_data)
        refused = subprocess.run([TOKAMAK, "heap", "import", str(folder / "wrong.bin"), "--data", other_data], capture_output=True, text=True, timeout=60)
        assert refused.returncode != 0, f"byte {at} was changed without an error"
