"""The wire contract's page on sessions and heaps, line by line: what every connection must see, whatever carries it."""

import subprocess
import tempfile
from pathlib import Path

from harness import TOKAMAK
from js_calls import KEY, MOMENT, NO_NAME, NOWHERE, bad, good

FIELDS = ["index", "input_heap", "output_heap", "code", "timestamp"]


def page(suite, over, named, nobody, failing, team=None):
    """`named` has the session `the page`, `failing` has `only failures`, `nobody` has none; all see the same storage. `team` is
    what `named` says in `X-MCP-Team`, where it is carried by something that has headers."""
    with suite.case(f"{over}: a heap key is 64 lowercase hexadecimal characters, and equal runs have equal keys"):
        first = good(named.tool("run_js", code="globalThis.x = 1;"))
        again = good(nobody.tool("run_js", code="globalThis.x = 1;"))
        assert KEY.match(first["heap"]) and first["heap"] == again["heap"], (first, again)
        heap = first["heap"]
    with suite.case(f"{over}: get_execution of a completed run has its heap"):
        found = good(nobody.tool("get_execution", execution_id=first["execution_id"]))
        assert found["status"] == "completed" and found["heap"] == heap, found
    with suite.case(f"{over}: heap omitted or empty is fresh; a key restores; one that is not in storage is fresh, with a warning"):
        for fresh in ({}, {"heap": ""}):
            assert good(named.tool("run_js", code="typeof x", **fresh))["result"] == "undefined", fresh
        assert good(named.tool("run_js", code="x + 1", heap=heap))["result"] == 2
        lost = good(named.tool("run_js", code="typeof x", heap=NOWHERE))
        assert lost["result"] == "undefined" and NOWHERE in lost["warning"], lost
    with suite.case(f"{over}: entries have an index from 0, the heaps, the code and a moment; a lost or absent heap is null"):
        entries = good(named.tool("list_session_snapshots"))["entries"]
        assert [e["index"] for e in entries] == [0, 1, 2, 3, 4], entries
        assert [e["input_heap"] for e in entries[:4]] == [None, None, None, heap], entries
        assert all(list(e) == FIELDS or set(e) == set(FIELDS) for e in entries), entries
        assert all(KEY.match(e["output_heap"]) and MOMENT.match(e["timestamp"]) for e in entries), entries
        assert entries[0]["code"] == "globalThis.x = 1;" and entries[0]["output_heap"] == heap, entries
    with suite.case(f"{over}: fields choose, one or several; an unknown one is an error"):
        for field in FIELDS:
            chosen = good(named.tool("list_session_snapshots", fields=field))["entries"]
            assert all(set(e) == {field} for e in chosen), chosen
        chosen = good(named.tool("list_session_snapshots", fields="index,code"))["entries"]
        assert set(chosen[0]) == {"index", "code"}, chosen
        for fields, wrong in (("nothing", "nothing"), ("index,nope", "nope"), ("Index", "Index"), ("code;index", "code;index")):
            refused = bad(named.tool("list_session_snapshots", fields=fields))
            assert list(refused) == ["entries"] and len(refused["entries"]) == 1, refused
            assert wrong in refused["entries"][0]["error"] and "input_heap" in refused["entries"][0]["error"], refused
    with suite.case(f"{over}: without a session the log is one error entry, word by word"):
        assert bad(nobody.tool("list_session_snapshots")) == NO_NAME
        assert bad(nobody.tool("list_session_snapshots", fields="index")) == NO_NAME
    with suite.case(f"{over}: a session is listed when it has an entry"):
        assert "the page" in good(nobody.tool("list_sessions"))["sessions"]
        assert set(good(nobody.tool("list_sessions"))) == {"sessions"}
    with suite.case(f"{over}: a session whose runs all failed has no entries and is not listed"):
        assert good(failing.tool("list_session_snapshots")) == {"entries": []}
        for code, status in (("throw new Error('on purpose')", "failed"), ("let broken = ;", "failed"), ("for (;;) {}", "timed_out")):
            assert bad(failing.tool("run_js", code=code, timeout_ms=200))["status"] == status, code
        assert good(failing.tool("list_session_snapshots")) == {"entries": []}
        assert good(nobody.tool("list_sessions")) == {"sessions": ["the page"]}
    with suite.case(f"{over}: what was sent as X-MCP-* is mcp.headers, and only there"):
        said = good(named.tool("run_js", code="mcp.headers"))["result"]
        assert said.get("x-mcp-team") == team and all(name.startswith("x-mcp-") for name in said), said
        assert "x-mcp-team" not in good(nobody.tool("run_js", code="mcp.headers"))["result"]
    tags(suite, over, named, heap)


def tags(suite, over, named, heap):
    with suite.case(f"{over}: tags are set, replaced, cleared by an empty object, deleted by name or all"):
        assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {}}
        assert good(named.tool("set_heap_tags", heap=heap, tags={"env": "production", "model": "v2"})) == {"ok": True}
        assert good(named.tool("set_heap_tags", heap=heap, tags={"env": "test"})) == {"ok": True}
        assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {"env": "test"}}
        assert good(named.tool("set_heap_tags", heap=heap, tags={})) == {"ok": True}
        assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {}}
        assert good(named.tool("set_heap_tags", heap=heap, tags={"a": "1", "b": "2", "c": "3"})) == {"ok": True}
        assert good(named.tool("delete_heap_tags", heap=heap, keys="a,c")) == {"ok": True}
        assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {"b": "2"}}
        assert good(named.tool("delete_heap_tags", heap=heap)) == {"ok": True}
        assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {}}
    with suite.case(f"{over}: tags with a run replace what its heap had; a query needs every pair, and takes heaps with more"):
        one = good(named.tool("run_js", code="globalThis.tagged = 1", tags={"env": "p", "model": "v2"}))["heap"]
        two = good(named.tool("run_js", code="globalThis.tagged = 2", tags={"env": "p", "model": "v3"}))["heap"]
        assert good(named.tool("run_js", code="globalThis.tagged = 1", tags={"env": "p", "kept": "no"}))["heap"] == one
        assert good(named.tool("get_heap_tags", heap=one)) == {"tags": {"env": "p", "kept": "no"}}
        found = good(named.tool("query_heaps_by_tags", tags={"env": "p"}))["results"]
        assert sorted(r["heap"] for r in found) == sorted([one, two]) and set(found[0]) == {"heap", "tags"}, found
        assert good(named.tool("query_heaps_by_tags", tags={"env": "p", "model": "v3"}))["results"] == [
            {"heap": two, "tags": {"env": "p", "model": "v3"}}
        ]
        assert good(named.tool("query_heaps_by_tags", tags={"env": "none"})) == {"results": []}
        every = good(named.tool("query_heaps_by_tags", tags={}))["results"]
        assert heap not in [r["heap"] for r in every], "an untagged heap is never found"
        assert {one, two} <= {r["heap"] for r in every}, every
    with suite.case(f"{over}: mistakes with tags are told"):
        for tool, more in (("set_heap_tags", {"tags": {"a": "b"}}), ("delete_heap_tags", {})):
            refused = bad(named.tool(tool, heap=NOWHERE, **more))
            assert refused["ok"] is False and isinstance(refused["error"], str), refused
            assert bad(named.tool(tool, heap="not a key", **more))["ok"] is False
        assert bad(named.tool("set_heap_tags", heap=heap, tags={"a": 1})), "a tag is text"
        assert bad(named.tool("query_heaps_by_tags")), "a filter is needed"
    with suite.case(f"{over}: a key that nothing has has no tags, and one that is no key is refused"):
        assert good(named.tool("get_heap_tags", heap=NOWHERE)) == {"tags": {}}
        for wrong in ("not a key", NOWHERE[1:], NOWHERE + "0", "A" * 64, ""):
            assert bad(named.tool("get_heap_tags", heap=wrong)).startswith("bad_heap"), wrong
        assert bad(named.tool("get_heap_tags")), "a heap is needed"
    with suite.case(f"{over}: deleting tags that are not there changes nothing"):
        assert good(named.tool("set_heap_tags", heap=heap, tags={"a": "1"})) == {"ok": True}
        for keys in ("b", "b,c", "A", " ,", ""):
            assert good(named.tool("delete_heap_tags", heap=heap, keys=keys)) == {"ok": True}, keys
            assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {"a": "1"}}, keys
        assert good(named.tool("delete_heap_tags", heap=heap, keys="b,a")) == {"ok": True}
        assert good(named.tool("get_heap_tags", heap=heap)) == {"tags": {}}


def storage(suite, over, nobody, data):
    """The file of a heap: ten bytes of magic, the SHA-256 of the payload, the payload; refused when a byte of it is wrong."""
    ran = good(nobody.tool("run_js", code="globalThis.stored = 'bytes'"))
    folder = Path(tempfile.mkdtemp(prefix="heap-"))
    with suite.case(f"{over}: a heap as a file: its magic, its key in the header, and no byte that may change"):
        info = good(nobody.tool("read_artifact", uri=f"heap://{ran['heap']}"))
        assert ran["heap"] in info, info
        out = folder / "heap.bin"
        done = subprocess.run([TOKAMAK, "heap", "export", ran["heap"], "-o", str(out), "--data", str(data)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        bytes_ = out.read_bytes()
        # An export is a line about the heap and the object itself.
        start = bytes_.index(b"TOKAHEAP")
        assert bytes_[start + 10 : start + 42].hex() == ran["heap"], bytes_[start : start + 42]
        for at in (start, start + 9, start + 10, start + 41, start + 42, (start + len(bytes_)) // 2, len(bytes_) - 1):
            wrong = bytearray(bytes_)
            wrong[at] ^= 1
            (folder / "wrong.bin").write_bytes(wrong)
            elsewhere = tempfile.mkdtemp(prefix="data-")
            refused = subprocess.run([TOKAMAK, "heap", "import", str(folder / "wrong.bin"), "--data", elsewhere], capture_output=True, text=True, timeout=60)
            assert refused.returncode != 0, f"byte {at} was changed and nobody noticed"
