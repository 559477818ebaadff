"""The page of the wire contract on sessions and heaps: every tool, parameter, field, error and rule, over HTTP and stdio.

Invariants: only the standard library; each group has its own data folder; what was answered is there after a kill.
"""

import json
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from answers import DEMO
from harness import LEGACY, MODERN, TOKAMAK, Server, Suite, modern, modern_call, modern_headers, request
from js_calls import KEY, MOMENT, NO_NAME, NOWHERE, Modern, Named, Stdio, bad, body, good, until
from js_given_up import dropped, given_up
from js_page import page, storage
from js_state import state

suite = Suite("js")


def opened(connection, intent):
    # With every write, whatever the intent speaks of.
    seeds = [{**seed, "capabilities": ["*"]} for seed in DEMO]
    value, error = connection.tool("plasm_context", intent=intent, seeds=seeds)
    assert not error, value
    return re.search(r"`(s\d+)`", value).group(1)


def runs(server):
    agent = Named(server.port, "my-agent-session", more={"X-MCP-Team": "blue"})
    agent.initialize()
    nobody = Named(server.port)
    nobody.initialize()
    with suite.case("a run answers its result, its heap and the head of its output"):
        ran = good(agent.tool("run_js", code="globalThis.x = 1; console.log('hello'); let y: number = 2; x + y"))
        assert ran["status"] == "completed" and ran["result"] == 3, ran
        assert KEY.match(ran["heap"]) and ran["output"] == "hello\n", ran
        assert MOMENT.match(ran["started_at"]) and MOMENT.match(ran["completed_at"]), ran
        again = good(agent.tool("get_execution", execution_id=ran["execution_id"]))
        assert again == {k: v for k, v in ran.items() if k != "output"}, again
        first = ran["heap"]
    with suite.case("who asks about a run may wait for its end"):
        slow = good(nobody.tool("run_js", code="await new Promise(done => setTimeout(done, 400)); 'late'", wait_ms=0))
        assert slow["status"] in ("queued", "running"), slow
        assert good(nobody.tool("get_execution", execution_id=slow["execution_id"], wait_ms=20))["status"] == "running"
        ended = good(nobody.tool("get_execution", execution_id=slow["execution_id"], wait_ms=20000))
        assert ended["status"] == "completed" and ended["result"] == "late", ended
        refused = bad(nobody.tool("get_execution", execution_id=slow["execution_id"], wait_ms=-1))
        assert "wait_ms" in refused or "bad_arguments" in refused, refused
    with suite.case("an explicit heap is stood on; without one a named session starts fresh"):
        ran = good(agent.tool("run_js", code="[x, y]", heap=first))
        assert ran["result"] == [1, 2], ran
        ran = good(agent.tool("run_js", code="typeof x"))
        assert ran["result"] == "undefined", ran
    with suite.case("the log of a named session, all of it and by fields"):
        entries = good(agent.tool("list_session_snapshots"))["entries"]
        assert [e["index"] for e in entries] == [0, 1, 2], entries
        assert set(entries[0]) == {"index", "input_heap", "output_heap", "code", "timestamp"}, entries[0]
        assert entries[0]["input_heap"] is None and entries[1]["input_heap"] == first, entries
        assert entries[0]["output_heap"] == first and MOMENT.match(entries[0]["timestamp"]), entries
        assert ": number" not in entries[0]["code"] and "let y" in entries[0]["code"], "the code is the stripped source"
        some = good(agent.tool("list_session_snapshots", fields="index, output_heap"))["entries"]
        assert set(some[0]) == {"index", "output_heap"}, some
        assert bad(agent.tool("list_session_snapshots", fields="index,nope"))["entries"][0]["error"]
    with suite.case("without a name the log is one error entry"):
        assert bad(nobody.tool("list_session_snapshots")) == NO_NAME
    with suite.case("sessions are listed once they have an entry"):
        assert good(nobody.tool("list_sessions")) == {"sessions": ["my-agent-session"]}
    with suite.case("headers of initialize are seen by code, and another connection's are not"):
        ran = good(agent.tool("run_js", code="mcp.headers['x-mcp-team']"))
        assert ran["result"] == "blue", ran
        assert "result" not in good(nobody.tool("run_js", code="mcp.headers['x-mcp-team']"))
    with suite.case("a key that is not there: a warning, an error on request; a malformed one: an error"):
        ran = good(nobody.tool("run_js", code="1", heap=NOWHERE))
        assert NOWHERE in ran["warning"] and ran["status"] == "completed", ran
        assert bad(nobody.tool("run_js", code="1", heap=NOWHERE, require_heap=True)).startswith("no_heap")
        for key in ("x", NOWHERE[1:], "G" * 64, "../../etc/passwd"):
            assert bad(nobody.tool("run_js", code="1", heap=key)).startswith("bad_heap"), key
    with suite.case("an uncaught error: name, message, a stack in the caller's lines; no heap; not logged"):
        ran = bad(agent.tool("run_js", code="1;\n2;\nnull.f()"))
        assert ran["status"] == "failed" and ran["error"]["name"] == "TypeError", ran
        assert ":3" in ran["error"]["stack"] and "heap" not in ran, ran
        assert len(good(agent.tool("list_session_snapshots"))["entries"]) == 4
    with suite.case("unknown arguments are refused"):
        assert bad(nobody.tool("run_js", code="1", stateless=True)).startswith("bad_arguments")
        assert bad(nobody.tool("get_heap_tags", heap=first, x=1)).startswith("bad_arguments")
    tags(nobody, first)
    states(nobody)
    dropped(suite, nobody)


def tags(connection, heap):
    with suite.case("tags: set replaces, get, delete some, delete all"):
        assert good(connection.tool("get_heap_tags", heap=heap)) == {"tags": {}}
        tagged = {"env": "production", "model": "v2"}
        assert good(connection.tool("set_heap_tags", heap=heap, tags=tagged)) == {"ok": True}
        assert good(connection.tool("get_heap_tags", heap=heap)) == {"tags": tagged}
        assert good(connection.tool("delete_heap_tags", heap=heap, keys="model, other")) == {"ok": True}
        assert good(connection.tool("get_heap_tags", heap=heap)) == {"tags": {"env": "production"}}
        assert good(connection.tool("delete_heap_tags", heap=heap)) == {"ok": True}
        assert good(connection.tool("get_heap_tags", heap=heap)) == {"tags": {}}
        assert good(connection.tool("query_heaps_by_tags", tags={})) == {"results": []}
    with suite.case("tags of a heap that is not there"):
        refused = bad(connection.tool("set_heap_tags", heap=NOWHERE, tags={"a": "b"}))
        assert refused["ok"] is False and NOWHERE in refused["error"], refused
        assert bad(connection.tool("delete_heap_tags", heap="zz"))["ok"] is False
    with suite.case("tags given with a run replace those of its heap; a query needs all of its pairs"):
        one = good(connection.tool("run_js", code="globalThis.a = 1", tags={"env": "a", "n": "1"}))["heap"]
        two = good(connection.tool("run_js", code="globalThis.a = 2", tags={"env": "a", "n": "2"}))["heap"]
        found = good(connection.tool("query_heaps_by_tags", tags={"env": "a"}))["results"]
        assert {r["heap"] for r in found} == {one, two}, found
        assert good(connection.tool("query_heaps_by_tags", tags={"n": "2"}))["results"] == [
            {"heap": two, "tags": {"env": "a", "n": "2"}}
        ]
        assert good(connection.tool("query_heaps_by_tags", tags={"env": "a", "n": "3"})) == {"results": []}


def states(connection):
    with suite.case("a run that goes on is asked for later, and its output in pages"):
        code = "for (let i = 0; i < 300; i++) console.log(`line ${i} é😀`); await new Promise(r => setTimeout(r, 400)); 'over'"
        ran = good(connection.tool("run_js", code=code, wait_ms=0))
        assert ran["status"] == "running" and "heap" not in ran, ran
        ended = until(connection, ran["execution_id"])
        assert ended["status"] == "completed" and ended["result"] == "over", ended
        lines, at = "", 0
        while True:
            page = good(connection.tool("get_execution_output", execution_id=ran["execution_id"], line_offset=at, line_limit=77))
            lines, at = lines + page["data"], page["next_line_offset"]
            if not page["has_more"]:
                break
        assert lines.count("\n") == 300 and page["total_lines"] == 300, page
        text, at = "", 0
        while True:
            page = good(connection.tool("get_execution_output", execution_id=ran["execution_id"], byte_offset=at, byte_limit=333))
            text, at = text + page["data"], page["next_byte_offset"]
            if not page["has_more"]:
                break
        assert text == lines and page["total_bytes"] == len(text.encode()), "bytes and lines differ"
    with suite.case("a deadline ends loops and idle awaits alike"):
        for code in ("for (;;) {}", "await new Promise(r => setTimeout(r, 60000))"):
            ran = bad(connection.tool("run_js", code=code, timeout_ms=300))
            assert ran["status"] == "timed_out", ran
        ran = bad(connection.tool("run_js", code="await new Promise(() => {})"))
        assert ran["status"] == "failed" and "nothing will settle" in ran["error"]["message"], ran
    with suite.case("memory is bounded"):
        ran = bad(connection.tool("run_js", code="const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))", memory_mb=32))
        assert ran["status"] == "failed", ran
        assert bad(connection.tool("run_js", code="1", memory_mb=100000)).startswith("bad_arguments")
    with suite.case("a run is cancelled, once"):
        ran = good(connection.tool("run_js", code="for (;;) {}", wait_ms=0))
        assert good(connection.tool("cancel_execution", execution_id=ran["execution_id"])) == {"ok": True}
        assert until(connection, ran["execution_id"])["status"] == "cancelled"
        refused = bad(connection.tool("cancel_execution", execution_id=ran["execution_id"]))
        assert refused["ok"] is False and "cancelled" in refused["error"], refused
    with suite.case("executions are listed, the newest first"):
        listed = good(connection.tool("list_executions"))["executions"]
        assert listed[0]["status"] == "cancelled" and len(listed) > 5, listed[:2]
        assert bad(connection.tool("get_execution", execution_id="nope")).startswith("no_execution")


def logical(server):
    agent = Named(server.port)
    agent.initialize()
    ref = opened(agent, "count in JavaScript")
    with suite.case("a logical session goes on from its head, with let, class and closures"):
        good(agent.tool("run_js", code="let n = 0; class A { #p = 7; get p() { return this.#p } } const add = () => ++n", logical_session_ref=ref))
        for n in (1, 2):
            ran = good(agent.tool("run_js", code="add()", logical_session_ref=ref))
            assert ran["result"] == n, ran
        assert good(agent.tool("run_js", code="new A().p", logical_session_ref=ref))["result"] == 7
        entries = good(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]
        assert [e["index"] for e in entries] == [0, 1, 2, 3], entries
    with suite.case("a program inside code reads an API"):
        ran = good(agent.tool("run_js", code="(await plasm('Project[name]')).rows.length", logical_session_ref=ref))
        assert ran["result"] > 0, ran
    with suite.case("a write inside code waits for a commit from outside"):
        write = """(await plasm('Ticket.open(project="OPS", title="asked for by code")')).rows[0].title"""
        ran = good(agent.tool("run_js", code=write, logical_session_ref=ref))
        assert ran["status"] == "waiting_review", ran
        commit = ran["reviews"][0]["plan_commit_ref"]
        text, error = agent.tool("plasm_run", logical_session_ref=ref, plan_commit_ref=commit)
        assert not error, text
        ended = until(agent, ran["execution_id"])
        assert ended["status"] == "completed" and ended["result"] == "asked for by code", ended
    with suite.case("a fork goes its own way and does not write; a rewind goes back"):
        fork = good(agent.tool("fork_session", logical_session_ref=ref, intent="another count", at=1))
        there = fork["logical_session_ref"]
        assert fork["fenced"] is True and there != ref, fork
        assert good(agent.tool("run_js", code="add()", logical_session_ref=there))["result"] == 2
        text = bad(agent.tool("plasm_run", logical_session_ref=there, program='Ticket.open(project="OPS", title="x")', force=True))
        assert text.startswith("fenced"), text
        assert good(agent.tool("promote_session", logical_session_ref=there)) == {"ok": True}
        entry = good(agent.tool("rewind_session", logical_session_ref=ref, index=1))["entry"]
        assert entry["rewound_to"] == 1, entry
        assert good(agent.tool("run_js", code="add()", logical_session_ref=ref))["result"] == 2
    with suite.case("two heaps are compared, and a heap is read as a resource"):
        entries = good(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]
        a, b = entries[0]["output_heap"], entries[1]["output_heap"]
        diff = good(agent.tool("diff_heaps", a=a, b=b))
        assert [c["name"] for c in diff["changed"]] == ["n"] and diff["added"] == [], diff
        info = json.loads(good(agent.tool("read_artifact", uri=f"heap://{b}")))
        assert info["heap"] == b and a in info["parents"] and info["memory_bytes"] > 0, info


def restarts():
    data = tempfile.mkdtemp(prefix="data-")
    with Server(data) as server:
        agent = Named(server.port, "survivor", more={"X-MCP-Team": "red"})
        agent.initialize()
        ref = opened(agent, "survive")
        good(agent.tool("run_js", code="let kept = new Map([['a', [1n]]])", logical_session_ref=ref))
        good(agent.tool("run_js", code="1"))
        waits = "let out = []; for (let i = 0; i < 20; i++) out.push(...await Promise.all([1, 2].map(n => new Promise(r => setTimeout(() => r(n), 50))))); out.length"
        ran = good(agent.tool("run_js", code=waits, logical_session_ref=ref, wait_ms=300))
        assert ran["status"] == "running", ran
        queued = good(agent.tool("run_js", code="out.length + kept.size", logical_session_ref=ref, wait_ms=0))
        server.kill()
    with Server(data) as server:
        agent = Named(server.port, session=agent.session)
        with suite.case("runs of a killed server go on in the next one, in their order"):
            assert until(agent, ran["execution_id"])["result"] == 40
            assert until(agent, queued["execution_id"])["result"] == 41
        with suite.case("a connection keeps its name and its headers over a restart"):
            assert len(good(agent.tool("list_session_snapshots"))["entries"]) == 1
            assert good(agent.tool("run_js", code="mcp.headers['x-mcp-team']"))["result"] == "red"
        with suite.case("the log is contiguous"):
            entries = good(agent.tool("list_session_snapshots", logical_session_ref=ref))["entries"]
            assert [e["index"] for e in entries] == [0, 1, 2], entries


def modern_era(server):
    with suite.case("in 2026-07-28 the name and the headers are those of each request"):
        one = Modern(server.port, "modern one", more={"X-MCP-Team": "green"})
        assert good(one.tool("run_js", code="mcp.headers['x-mcp-team']"))["result"] == "green"
        assert len(good(one.tool("list_session_snapshots"))["entries"]) == 1
        assert bad(Modern(server.port).tool("list_session_snapshots")) == NO_NAME
        assert bad(body(modern_call(server.port, "list_session_snapshots", {}))) == NO_NAME
        one.headers = {"X-MCP-Session-Id": "modern two", "X-MCP-Team": "red"}
        assert good(one.tool("run_js", code="mcp.headers['x-mcp-team']"))["result"] == "red"
        assert {"modern one", "modern two"} <= set(good(one.tool("list_sessions"))["sessions"])
        assert len(good(one.tool("list_session_snapshots"))["entries"]) == 1


def over_stdio():
    data = tempfile.mkdtemp(prefix="data-")
    with suite.case("stdio: a name by argument, and the core tools only"), Stdio(data, "by argument", ("--tools", "core")) as core:
        names = [t["name"] for t in core.ask("tools/list", {})["result"]["tools"]]
        assert "run_js" in names and "list_sessions" not in names and len(names) == 7, names
        ran = good(core.tool("run_js", code="6 * 7"))
        assert ran["result"] == 42, ran
        assert "error" in core.ask("tools/call", {"name": "list_sessions", "arguments": {}})
    with suite.case("command line: the log, files on one heap, cold, exit codes"):
        def tokamak(*arguments):
            return subprocess.run([TOKAMAK, "--json", *arguments, "--data", data], capture_output=True, text=True, timeout=60)

        shown = json.loads(tokamak("session", "log", "by argument").stdout)
        assert [e["code"] for e in shown["entries"]] == ["6 * 7"], shown
        folder = Path(data)
        (folder / "a.ts").write_text("let list: number[] = [1]; console.log('one')")
        (folder / "b.js").write_text("list.push(2); list")
        (folder / "bad.js").write_text("\nthrow new Error('no')")
        for cold in ((), ("--cold",)):
            done = tokamak("js", *cold, str(folder / "a.ts"), str(folder / "b.js"))
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)[1]["result"] == [1, 2], done.stdout
        heap = json.loads(done.stdout)[1]["heap"]
        failed = tokamak("js", str(folder / "bad.js"))
        assert failed.returncode == 1 and "no" in failed.stderr, failed
        exported = tokamak("heap", "export", heap, "-o", str(folder / "heap.bin"))
        assert exported.returncode == 0, exported.stderr
        elsewhere = tempfile.mkdtemp(prefix="data-")
        there = subprocess.run([TOKAMAK, "--json", "heap", "import", str(folder / "heap.bin"), "--data", elsewhere], capture_output=True, text=True, timeout=60)
        assert json.loads(there.stdout)["heap"] == heap, there.stderr
        graph = tokamak("session", "log", "by argument", "--graph")
        assert graph.stdout.startswith("flowchart"), graph.stdout


def over_http(server):
    def api(method, path, value=None, headers=None):
        answer = request(server.port, method, path, json.dumps(value) if value is not None else b"", headers)
        return answer.status, json.loads(answer.body)

    with suite.case("HTTP: run, look, output, cancel, sessions, heaps, problems"):
        status, ran = api("POST", "/api/exec", {"code": "console.log('x'); globalThis.q = 1"}, {"X-MCP-Session-Id": "by http"})
        assert status == 200 and ran["status"] == "completed", ran
        id, heap = ran["execution_id"], ran["heap"]
        assert api("GET", f"/api/executions/{id}")[1]["heap"] == heap
        assert api("GET", f"/api/executions/{id}?wait_ms=5000")[1]["heap"] == heap
        assert api("GET", f"/api/executions/{id}?wait_ms=soon")[0] == 400
        assert api("GET", f"/api/executions/{id}/output?line_offset=0")[1]["data"] == "x\n"
        assert api("GET", "/api/executions?limit=1")[1]["executions"][0]["execution_id"] == id
        assert "by http" in api("GET", "/api/sessions")[1]["sessions"]
        assert len(api("GET", "/api/sessions/by%20http/snapshots?fields=index")[1]["entries"]) == 1
        assert api("POST", f"/api/heaps/{heap}/tags", {"tags": {"a": "b"}})[1] == {"ok": True}
        assert api("GET", f"/api/heaps/{heap}")[1]["tags"] == {"a": "b"}
        status, ran = api("POST", "/api/exec", {"code": "for (;;) {}", "wait_ms": 0})
        assert status == 202, ran
        assert api("POST", f"/api/executions/{ran['execution_id']}/cancel")[1] == {"ok": True}
        status, problem = api("POST", f"/api/executions/{ran['execution_id']}/cancel")
        assert status == 409 and problem["code"] == "ended", problem
        for path, status, code in [("/api/executions/x", 404, "no_execution"), (f"/api/heaps/{NOWHERE}", 404, "no_heap"), ("/api/heaps/zz", 400, "bad_heap")]:
            found = api("GET", path)
            assert found[0] == status and found[1]["code"] == code, found


def left(server):
    """Callers that leave at the moment their run is accepted: what was stored is carried on by the one who stored it."""
    with suite.case("a run whose caller leaves while it is accepted goes on"):
        for at in range(40):
            content = json.dumps({"code": f"{at}", "wait_ms": 50}).encode()
            name = "X-MCP-Session-Id: who leaves\r\n" if at % 2 else ""
            head = f"POST /api/exec HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{name}Content-Length: {len(content)}\r\n\r\n"
            with socket.create_connection(("127.0.0.1", server.port)) as caller:
                caller.sendall(head.encode() + content)
                time.sleep(at / 10_000)

        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            listed = json.loads(request(server.port, "GET", "/api/executions?limit=100", b"").body)["executions"]
            if listed and all(run["status"] == "completed" for run in listed):
                break
            time.sleep(0.05)
        assert listed and all(run["status"] == "completed" for run in listed), listed
        # Else it was found by the look for runs that nobody drives, seconds later.
        assert "took over" not in Path(server.log).read_text()


def once(server, version):
    with suite.case(f"{version}: the name is read once, on initialize; a header of a later request names nothing"):
        agent = Named(server.port, "named once", version=version)
        agent.initialize()
        good(agent.tool("run_js", code="1"))
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "run_js", "arguments": {"code": "2"}}}
        headers = {"MCP-Protocol-Version": agent.version, "Mcp-Session-Id": agent.session, "X-MCP-Session-Id": "another name"}
        good(body(request(server.port, body=json.dumps(message), headers=headers, seconds=20).message()))
        assert [e["code"] for e in good(agent.tool("list_session_snapshots"))["entries"]] == ["1", "2"]
        assert "another name" not in good(agent.tool("list_sessions"))["sessions"]


def unusable(server):
    """A header whose name cannot be one: refused where it is read, so that nothing runs unlogged without being told."""
    names = {"not ASCII": "caf\u00e9", "empty": "", "too long": "n" * 257}
    with suite.case("a name that cannot be used is refused with the header named"):
        for title, name in names.items():
            header = {"X-MCP-Session-Id": name.encode("latin-1")}
            status, problem = over(server, "/api/exec", {"code": "1"}, header)
            assert (status, problem["code"]) == (400, "bad_session_name") and "X-MCP-Session-Id" in problem["detail"], (title, problem)
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
            status, told = over(server, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}, header)
            assert status == 400 and "X-MCP-Session-Id" in told["error"]["message"], (title, told)
            message = modern("tools/call", {"name": "run_js", "arguments": {"code": "1"}})
            status, told = over(server, "/mcp", message, {**modern_headers("tools/call", "run_js"), **header})
            assert status == 400 and "X-MCP-Session-Id" in told["error"]["message"], (title, told)
    with suite.case("a name is read however many headers there are"):
        many = {f"X-MCP-More-{n}": "x" for n in range(60)}
        status, ran = over(server, "/api/exec", {"code": "Object.keys(mcp.headers).length"}, {**many, "X-MCP-Session-Id": "among many"})
        assert status == 200 and ran["result"] == 32, ran
        assert "among many" in json.loads(request(server.port, "GET", "/api/sessions", b"").body)["sessions"]


def over(server, path, value, headers):
    answer = request(server.port, "POST", path, json.dumps(value), headers)
    return answer.status, json.loads(answer.body)


def main():
    with suite.group("runs"), Server() as server:
        runs(server)
        modern_era(server)
        over_http(server)
        unusable(server)
    with suite.group("callers that leave"), Server() as server:
        left(server)
        given_up(suite, server)
    with suite.group("logical sessions"), Server() as server:
        logical(server)
    with suite.group("restarts"):
        restarts()
    with suite.group("stdio and the command line"):
        over_stdio()
    for version in LEGACY:
        with suite.group(f"the page in {version}"), Server() as server:
            named = Named(server.port, "the page", more={"X-MCP-Team": "blue"}, version=version)
            nobody, failing = Named(server.port, version=version), Named(server.port, "only failures", version=version)
            for connection in (named, nobody, failing):
                assert connection.initialize()["protocolVersion"] == version
            page(suite, version, named, nobody, failing, "blue")
            once(server, version)
    with suite.group(f"the page in {MODERN}"), Server() as server:
        named = Modern(server.port, "the page", more={"X-MCP-Team": "blue"})
        page(suite, MODERN, named, Modern(server.port), Modern(server.port, "only failures"), "blue")
        storage(suite, "HTTP", Modern(server.port), server.data)
    with suite.group("the page, over stdio"):
        folder = tempfile.mkdtemp(prefix="data-")
        with Stdio(folder, "the page") as named, Stdio(folder) as nobody, Stdio(folder, "only failures") as failing:
            page(suite, "stdio", named, nobody, failing)
            storage(suite, "stdio", nobody, folder)
    with suite.group("state over processes"):
        state(suite)
    suite.end()


main()
