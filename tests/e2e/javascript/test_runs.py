"""`run_js` and its companions over MCP: results, heaps, session logs, headers, tags and the states of a run."""

import pytest

from lib.client import modern_call
from lib.javascript import (
    KEY,
    MOMENT,
    NO_SESSION_NAME,
    UNKNOWN_HEAP,
    ModernConnection,
    NamedConnection,
    error_of,
    value_and_error,
    value_of,
    wait_for_end,
)

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def agent(server):
    """A connection with the session `my-agent-session`."""
    connection = NamedConnection(server.port, "my-agent-session", more_headers={"X-MCP-Team": "blue"})
    connection.initialize()
    return connection


@pytest.fixture(scope="module")
def unnamed(server):
    """A connection without a session name."""
    connection = NamedConnection(server.port)
    connection.initialize()
    return connection


def test_a_run_answers_its_result_its_heap_and_the_beginning_of_its_output(agent, flow):
    run = value_of(agent.tool("run_js", code="globalThis.x = 1; console.log('hello'); let y: number = 2; x + y"))
    assert run["status"] == "completed" and run["result"] == 3, run
    assert KEY.match(run["heap"]) and run["output"] == "hello\n", run
    assert MOMENT.match(run["started_at"]) and MOMENT.match(run["completed_at"]), run
    repeated = value_of(agent.tool("get_execution", execution_id=run["execution_id"]))
    assert repeated == {k: v for k, v in run.items() if k != "output"}, repeated
    flow.first = run["heap"]


def test_get_execution_waits_for_the_end_of_a_run(unnamed):
    slow = value_of(unnamed.tool("run_js", code="await new Promise(done => setTimeout(done, 400)); 'late'", wait_ms=0))
    assert slow["status"] in ("queued", "running"), slow
    assert value_of(unnamed.tool("get_execution", execution_id=slow["execution_id"], wait_ms=20))["status"] == "running"
    ended = value_of(unnamed.tool("get_execution", execution_id=slow["execution_id"], wait_ms=20000))
    assert ended["status"] == "completed" and ended["result"] == "late", ended
    refused = error_of(unnamed.tool("get_execution", execution_id=slow["execution_id"], wait_ms=-1))
    assert "wait_ms" in refused or "bad_arguments" in refused, refused


def test_a_run_starts_from_an_explicit_heap_and_a_named_session_starts_fresh_without_one(agent, flow):
    run = value_of(agent.tool("run_js", code="[x, y]", heap=flow.first))
    assert run["result"] == [1, 2], run
    run = value_of(agent.tool("run_js", code="typeof x"))
    assert run["result"] == "undefined", run


def test_the_log_of_a_named_session_is_listed_completely_and_by_fields(agent, flow):
    entries = value_of(agent.tool("list_session_snapshots"))["entries"]
    assert [e["index"] for e in entries] == [0, 1, 2], entries
    assert set(entries[0]) == {"index", "input_heap", "output_heap", "code", "timestamp"}, entries[0]
    assert entries[0]["input_heap"] is None and entries[1]["input_heap"] == flow.first, entries
    assert entries[0]["output_heap"] == flow.first and MOMENT.match(entries[0]["timestamp"]), entries
    assert ": number" not in entries[0]["code"] and "let y" in entries[0]["code"], "the code is the stripped source"
    some = value_of(agent.tool("list_session_snapshots", fields="index, output_heap"))["entries"]
    assert set(some[0]) == {"index", "output_heap"}, some
    assert error_of(agent.tool("list_session_snapshots", fields="index,nope"))["entries"][0]["error"]


def test_without_a_name_the_log_is_one_error_entry(unnamed):
    assert error_of(unnamed.tool("list_session_snapshots")) == NO_SESSION_NAME


def test_a_session_is_listed_when_it_has_an_entry(unnamed):
    assert value_of(unnamed.tool("list_sessions")) == {"sessions": ["my-agent-session"]}


def test_code_sees_the_headers_of_its_own_initialize_only(agent, unnamed):
    run = value_of(agent.tool("run_js", code="mcp.headers['x-mcp-team']"))
    assert run["result"] == "blue", run
    assert "result" not in value_of(unnamed.tool("run_js", code="mcp.headers['x-mcp-team']"))


def test_a_missing_heap_is_a_warning_or_an_error_on_request_and_a_malformed_key_is_an_error(unnamed):
    run = value_of(unnamed.tool("run_js", code="1", heap=UNKNOWN_HEAP))
    assert UNKNOWN_HEAP in run["warning"] and run["status"] == "completed", run
    assert error_of(unnamed.tool("run_js", code="1", heap=UNKNOWN_HEAP, require_heap=True)).startswith("no_heap")
    for key in ("x", UNKNOWN_HEAP[1:], "G" * 64, "../../etc/passwd"):
        assert error_of(unnamed.tool("run_js", code="1", heap=key)).startswith("bad_heap"), key


def test_an_uncaught_error_has_a_stack_in_the_callers_lines_and_leaves_no_heap_and_no_entry(agent):
    run = error_of(agent.tool("run_js", code="1;\n2;\nnull.f()"))
    assert run["status"] == "failed" and run["error"]["name"] == "TypeError", run
    assert ":3" in run["error"]["stack"] and "heap" not in run, run
    assert len(value_of(agent.tool("list_session_snapshots"))["entries"]) == 4


def test_unknown_arguments_are_refused(unnamed, flow):
    assert error_of(unnamed.tool("run_js", code="1", stateless=True)).startswith("bad_arguments")
    assert error_of(unnamed.tool("get_heap_tags", heap=flow.first, x=1)).startswith("bad_arguments")


# --- tags


def test_tags_are_set_replaced_read_and_deleted(unnamed, flow):
    assert value_of(unnamed.tool("get_heap_tags", heap=flow.first)) == {"tags": {}}
    tagged = {"env": "production", "model": "v2"}
    assert value_of(unnamed.tool("set_heap_tags", heap=flow.first, tags=tagged)) == {"ok": True}
    assert value_of(unnamed.tool("get_heap_tags", heap=flow.first)) == {"tags": tagged}
    assert value_of(unnamed.tool("delete_heap_tags", heap=flow.first, keys="model, other")) == {"ok": True}
    assert value_of(unnamed.tool("get_heap_tags", heap=flow.first)) == {"tags": {"env": "production"}}
    assert value_of(unnamed.tool("delete_heap_tags", heap=flow.first)) == {"ok": True}
    assert value_of(unnamed.tool("get_heap_tags", heap=flow.first)) == {"tags": {}}
    assert value_of(unnamed.tool("query_heaps_by_tags", tags={})) == {"results": []}


def test_tags_of_a_missing_heap_are_refused(unnamed):
    refused = error_of(unnamed.tool("set_heap_tags", heap=UNKNOWN_HEAP, tags={"a": "b"}))
    assert refused["ok"] is False and UNKNOWN_HEAP in refused["error"], refused
    assert error_of(unnamed.tool("delete_heap_tags", heap="zz"))["ok"] is False


def test_tags_of_a_run_replace_those_of_its_heap_and_a_query_needs_every_pair(unnamed):
    one = value_of(unnamed.tool("run_js", code="globalThis.a = 1", tags={"env": "a", "n": "1"}))["heap"]
    two = value_of(unnamed.tool("run_js", code="globalThis.a = 2", tags={"env": "a", "n": "2"}))["heap"]
    results = value_of(unnamed.tool("query_heaps_by_tags", tags={"env": "a"}))["results"]
    assert {r["heap"] for r in results} == {one, two}, results
    assert value_of(unnamed.tool("query_heaps_by_tags", tags={"n": "2"}))["results"] == [
        {"heap": two, "tags": {"env": "a", "n": "2"}}
    ]
    assert value_of(unnamed.tool("query_heaps_by_tags", tags={"env": "a", "n": "3"})) == {"results": []}


# --- the states of a run


def test_the_output_of_a_finished_background_run_is_read_in_portions(unnamed):
    code = "for (let i = 0; i < 300; i++) console.log(`line ${i} é😀`); await new Promise(r => setTimeout(r, 400)); 'over'"
    run = value_of(unnamed.tool("run_js", code=code, wait_ms=0))
    assert run["status"] == "running" and "heap" not in run, run
    ended = wait_for_end(unnamed, run["execution_id"])
    assert ended["status"] == "completed" and ended["result"] == "over", ended
    lines, at = "", 0
    while True:
        portion = value_of(unnamed.tool("get_execution_output", execution_id=run["execution_id"], line_offset=at, line_limit=77))
        lines, at = lines + portion["data"], portion["next_line_offset"]
        if not portion["has_more"]:
            break
    assert lines.count("\n") == 300 and portion["total_lines"] == 300, portion
    text, at = "", 0
    while True:
        portion = value_of(unnamed.tool("get_execution_output", execution_id=run["execution_id"], byte_offset=at, byte_limit=333))
        text, at = text + portion["data"], portion["next_byte_offset"]
        if not portion["has_more"]:
            break
    assert text == lines and portion["total_bytes"] == len(text.encode()), "bytes and lines differ"


def test_a_deadline_ends_loops_and_idle_awaits_alike(unnamed):
    for code in ("for (;;) {}", "await new Promise(r => setTimeout(r, 60000))"):
        run = error_of(unnamed.tool("run_js", code=code, timeout_ms=300))
        assert run["status"] == "timed_out", run
    run = error_of(unnamed.tool("run_js", code="await new Promise(() => {})"))
    assert run["status"] == "failed" and "nothing will settle" in run["error"]["message"], run


def test_memory_is_bounded(unnamed):
    run = error_of(unnamed.tool("run_js", code="const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))", memory_mb=32))
    assert run["status"] == "failed", run
    assert error_of(unnamed.tool("run_js", code="1", memory_mb=100000)).startswith("bad_arguments")


def test_a_run_is_cancelled_once(unnamed):
    run = value_of(unnamed.tool("run_js", code="for (;;) {}", wait_ms=0))
    assert value_of(unnamed.tool("cancel_execution", execution_id=run["execution_id"])) == {"ok": True}
    assert wait_for_end(unnamed, run["execution_id"])["status"] == "cancelled"
    refused = error_of(unnamed.tool("cancel_execution", execution_id=run["execution_id"]))
    assert refused["ok"] is False and "cancelled" in refused["error"], refused


def test_executions_are_listed_newest_first(unnamed):
    listed = value_of(unnamed.tool("list_executions"))["executions"]
    assert listed[0]["status"] == "cancelled" and len(listed) > 5, listed[:2]
    assert error_of(unnamed.tool("get_execution", execution_id="nope")).startswith("no_execution")


def test_an_answer_says_that_its_output_is_cut_and_that_some_was_dropped(unnamed):
    short = value_of(unnamed.tool("run_js", code="console.log('x')"))
    assert not {"output_has_more", "output_next_byte_offset", "dropped_bytes"} & set(short), short
    long = value_of(unnamed.tool("run_js", code="for (let i = 0; i < 500; i++) console.log('0123456789')"))
    assert long["output_has_more"] is True and "dropped_bytes" not in long, long
    dropped = value_of(unnamed.tool("run_js", code="for (let i = 0; i < 2100; i++) console.log('x'.repeat(999))"))
    assert dropped["output_has_more"] is True and dropped["dropped_bytes"] > 1_000_000, dropped
    portion = value_of(unnamed.tool("get_execution_output", execution_id=dropped["execution_id"]))
    assert portion["dropped_bytes"] == dropped["dropped_bytes"], portion


# --- 2026-07-28


def test_in_2026_07_28_the_name_and_the_headers_belong_to_each_request(server):
    one = ModernConnection(server.port, "modern one", more_headers={"X-MCP-Team": "green"})
    assert value_of(one.tool("run_js", code="mcp.headers['x-mcp-team']"))["result"] == "green"
    assert len(value_of(one.tool("list_session_snapshots"))["entries"]) == 1
    assert error_of(ModernConnection(server.port).tool("list_session_snapshots")) == NO_SESSION_NAME
    assert error_of(value_and_error(modern_call(server.port, "list_session_snapshots", {}))) == NO_SESSION_NAME
    one.headers = {"X-MCP-Session-Id": "modern two", "X-MCP-Team": "red"}
    assert value_of(one.tool("run_js", code="mcp.headers['x-mcp-team']"))["result"] == "red"
    assert {"modern one", "modern two"} <= set(value_of(one.tool("list_sessions"))["sessions"])
    assert len(value_of(one.tool("list_session_snapshots"))["entries"]) == 1
