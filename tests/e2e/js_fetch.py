"""`fetch` of real code against a real HTTP server on loopback, one that is honest and one that is not; and `plasm.plan()`.

Invariants: only origins of the settings are reached, and what another server counts is zero; what a body or a header was, it is on
the other side; whatever the peer does, the run ends within its time and the heap goes on; a request that changes something is sent
once, over a kill too. Only the standard library.
"""

import base64
import json
import os
import socket
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from answers import seeds
from harness import Server, Suite
from js_calls import Modern, bad, good, until

suite = Suite("js_fetch")
RESPONSE_BYTES = 200_000
REQUEST_TIMEOUT_MS = 2_000


class Peer:
    """A server that keeps what it was asked, and answers by the path."""

    def __init__(self):
        self.asked = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.origin = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def count(self, path):
        return sum(urlsplit(one["path"]).path == path for one in self.asked)

    def last(self):
        return self.asked[-1]


def handler(peer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            peer.asked.append({"method": self.command, "path": self.path, "headers": self.headers.items(), "body": body})
            target = urlsplit(self.path)
            name, _, rest = target.path[1:].partition("/")
            query = {key: value[0] for key, value in parse_qs(target.query).items()}
            try:
                getattr(self, f"do_{name.replace('-', '_')}", self.do_hello)(rest=rest, body=body, **query)
            except OSError:
                self.close_connection = True  # whoever asked has left

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = any

        def answer(self, status, body=b"", **headers):
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key.replace("_", "-"), value)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" or status in (204, 304) else body)

        def do_hello(self, **_):
            self.answer(200, "hällo".encode(), Content_Type="text/plain;charset=utf-8", X_Made="by hand", Set_Cookie="id=1")

        def do_echo(self, body, **_):
            told = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()), "body": base64.b64encode(body).decode()}
            self.answer(200, json.dumps(told).encode(), Content_Type="application/json")

        def do_bytes(self, body, **_):
            self.answer(200, body, Content_Type="application/octet-stream")

        def do_status(self, rest, **_):
            self.answer(int(rest), b'{"status": true}')

        def do_redirect(self, to, status="302", **_):
            self.answer(int(status), Location=to)

        def do_slow(self, ms="60000", **_):
            time.sleep(int(ms) / 1000)
            self.answer(200, b"slow")

        def do_drip(self, **_):
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b".")
                self.wfile.flush()
                time.sleep(0.1)

        def do_huge(self, bytes="5000000", **_):
            self.answer(200, b"x" * int(bytes))

        def do_endless(self, **_):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(10_000):
                self.wfile.write(b"2710\r\n" + b"y" * 10_000 + b"\r\n")

        def raw(self, bytes_):
            self.wfile.write(bytes_)
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def do_garbage(self, **_):
            self.raw(b"\x00\xff\x16\x03 what is this\r\n\r\n" * 20)

        def do_half(self, **_):
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nten bytes.")

        def do_nothing(self, **_):
            self.raw(b"")

        def do_headers(self, **_):
            self.raw(b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 2_000_000 + b"\r\n\r\n")

        def do_gzip(self, **_):
            self.answer(200, b"this is no gzip", Content_Encoding="gzip")

        def do_not_text(self, **_):
            self.answer(200, b"\xff\xfe\xfd{", Content_Type="application/json")

    return Handler


def settings(*origins):
    file = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    allowed = ", ".join(f'"{origin}"' for origin in origins)
    limits = f"[limits]\nresponse_bytes = {RESPONSE_BYTES}\nrequest_timeout_ms = {REQUEST_TIMEOUT_MS}\n"
    file.write_text(f"{limits}[js]\nfetch = [{allowed}]\n")
    return ("--config", str(file))


def caught(url, more=""):
    """The error of a fetch as a run's result."""
    return f"let error; try {{ const r = await fetch({json.dumps(url)}{more}); error = [`status ${{r.status}}`, (await r.text()).slice(0, 50)] }} catch (e) {{ error = [e.name, e.message] }} error"


def honest(agent, peer):
    def run(code, **more):
        return good(agent.tool("run_js", code=code, **more))["result"]

    with suite.case("GET: status, headers, text, and the address"):
        code = f"const r = await fetch('{peer.origin}/hello?a=1%202&b=%C3%BC#part'); [r.status, r.ok, r.headers.get('X-MADE'), r.headers.get('content-type'), await r.text(), r.url, r.redirected]"
        assert run(code) == [200, True, "by hand", "text/plain;charset=utf-8", "hällo", f"{peer.origin}/hello?a=1%202&b=%C3%BC#part", False], run(code)
        asked = peer.last()
        assert asked["method"] == "GET" and asked["body"] == b"" and parse_qs(urlsplit(asked["path"]).query) == {"a": ["1 2"], "b": ["ü"]}, asked
    with suite.case("no credentials, cookies or names of ours go with it"):
        run(f"await (await fetch('{peer.origin}/hello')).text(); await (await fetch('{peer.origin}/hello')).text()")
        for name, value in peer.last()["headers"]:
            assert name.lower() not in ("authorization", "cookie", "referer", "origin") and not name.lower().startswith("x-mcp"), (name, value)
    with suite.case("POST: JSON there and back, and the type of its body"):
        code = f"const r = await fetch('{peer.origin}/echo', {{method: 'POST', body: JSON.stringify({{n: 1, t: 'ü\\u2028'}}), headers: {{'Content-Type': 'application/json', 'X-Own': 'a, b'}}}}); await r.json()"
        told = run(code)
        assert told["method"] == "POST" and json.loads(base64.b64decode(told["body"])) == {"n": 1, "t": "ü\u2028"}, told
        sent = {name.lower(): value for name, value in told["headers"].items()}
        assert sent["content-type"] == "application/json" and sent["x-own"] == "a, b", sent
    with suite.case("every byte of a body, both ways"):
        code = f"const all = new Uint8Array(70000).map((_, i) => i * 7 + (i >> 8)); const r = await fetch('{peer.origin}/bytes', {{method: 'PUT', body: all}}); const back = new Uint8Array(await r.arrayBuffer()); [back.length, back.every((b, i) => b === all[i])]"
        assert run(code) == [70000, True]
        assert peer.last()["body"] == bytes((i * 7 + (i >> 8)) % 256 for i in range(70000))
    with suite.case("text, forms and no body say what they are; other methods arrive as such"):
        for body, type_, bytes_ in (("'ü'", "text/plain;charset=UTF-8", "ü".encode()), ("new URLSearchParams({a: '1 2'})", "application/x-www-form-urlencoded;charset=UTF-8", b"a=1+2")):
            told = run(f"await (await fetch('{peer.origin}/echo', {{method: 'PATCH', body: {body}}})).json()")
            assert told["method"] == "PATCH" and base64.b64decode(told["body"]) == bytes_, told
            assert {k.lower(): v for k, v in told["headers"].items()}["content-type"] == type_, told
        assert run(f"await (await fetch('{peer.origin}/echo', {{method: 'DELETE'}})).json()")["method"] == "DELETE"
    with suite.case("a status is an answer, not an error"):
        assert run(f"const all = []; for (const s of [204, 304, 400, 404, 500, 503]) {{ const r = await fetch('{peer.origin}/status/' + s); all.push([r.status, r.ok]) }} all") == [
            [204, True], [304, False], [400, False], [404, False], [500, False], [503, False]
        ]
    with suite.case("twenty at once, each with its own answer"):
        code = f"(await Promise.all(Array.from({{length: 20}}, async (_, i) => (await (await fetch('{peer.origin}/echo?n=' + i)).json()).path))).join()"
        assert run(code) == ",".join(f"/echo?n={i}" for i in range(20))
    with suite.case("an answer is kept in the heap and read by a later run"):
        heap = good(agent.tool("run_js", code=f"let kept = await fetch('{peer.origin}/hello'); kept.status"))["heap"]
        assert run("[kept.status, await kept.text(), kept.headers.get('x-made')]", heap=heap) == [200, "hällo", "by hand"]


def refused(agent, peer, other, data):
    with suite.case("an origin that is not allowed: a TypeError that names it and the setting, and nothing arrives there"):
        for url in (
            f"{other.origin}/hello", f"http://localhost:{peer.port}/hello", f"https://127.0.0.1:{peer.port}/hello", "http://127.0.0.1/hello",
            f"http://127.0.0.1:{peer.port}.example.com/", f"http://[::1]:{peer.port}/hello", f"http://2130706433:{other.port}/hello", "http://169.254.169.254/latest/meta-data/",
        ):
            name, said = good(agent.tool("run_js", code=caught(url)))["result"]
            assert name == "TypeError" and (peer.origin in said and "[js]" in said or "URL" in said), (url, said)
        assert other.asked == [], other.asked
    with suite.case("what is no address of an origin is a TypeError"):
        for url in ("/hello", "", "file:///etc/passwd", "data:text/plain,x", "javascript:1", f"http://user:secret@127.0.0.1:{peer.port}/hello", f"ftp://127.0.0.1:{peer.port}/"):
            name, said = good(agent.tool("run_js", code=caught(url)))["result"]
            assert name == "TypeError" and said and "secret" not in said, (url, name, said)
    with suite.case("a redirect is refused, elsewhere and here, and nothing arrives there"):
        before = peer.count("/hello")
        for to in (f"{other.origin}/hello", f"{peer.origin}/hello", "/hello"):
            for status in (301, 302, 307, 308):
                name, said = good(agent.tool("run_js", code=caught(f"{peer.origin}/redirect?status={status}&to={to}")))["result"]
                assert name == "TypeError" and "redirect" in said, (to, status, name, said)
        assert other.asked == [] and peer.count("/hello") == before
    with suite.case("headers that would make another request of it are refused or left out"):
        before = len(peer.asked)
        for name, value in (("Host", "evil.example"), ("Content-Length", "3"), ("Transfer-Encoding", "chunked"), ("Connection", "X-Own")):
            code = caught(f"{peer.origin}/bytes", f", {{method: 'POST', body: 'hello', headers: {{'{name}': '{value}'}}}}")
            good(agent.tool("run_js", code=code))
        for asked in peer.asked[before:]:
            sent = [(name.lower(), value) for name, value in asked["headers"]]
            assert ("host", f"127.0.0.1:{peer.port}") in sent and [n for n, _ in sent].count("host") == 1, sent
            assert asked["body"] == b"hello" and "transfer-encoding" not in dict(sent), asked
        for wrong in ("'a b': 'c'", "'a': 'b\\r\\nc: d'", "'': 'x'"):
            name, _ = good(agent.tool("run_js", code=caught(f"{peer.origin}/echo", f", {{headers: {{{wrong}}}}}")))["result"]
            assert name == "TypeError", wrong
    with suite.case("a server that allows nothing refuses every fetch, also of a function that another one left in the heap"):
        heap = good(agent.tool("run_js", code=f"const mine = fetch; (await mine('{peer.origin}/hello')).status"))
        before = len(peer.asked)
        with Server(data) as bare:
            for code, more in ((caught(f"{peer.origin}/hello"), {}), (caught(f"{peer.origin}/hello").replace("fetch(", "mine("), {"heap": heap["heap"], "require_heap": True})):
                name, said = good(Modern(bare.port).tool("run_js", code=code, **more))["result"]
                assert name == "TypeError" and "no origin" in said and "[js]" in said, said
        assert len(peer.asked) == before


def dishonest(agent, peer):
    with suite.case("a slow server and the run's deadline: it ends in time"):
        began = time.monotonic()
        ran = bad(agent.tool("run_js", code=f"await fetch('{peer.origin}/slow')", timeout_ms=600))
        assert ran["status"] == "timed_out" and time.monotonic() - began < 4, (ran, time.monotonic() - began)
    with suite.case("a slow server and an abort of the code's own: the code goes on"):
        code = f"let e; try {{ await fetch('{peer.origin}/slow', {{signal: AbortSignal.timeout(150)}}) }} catch (x) {{ e = x.name }} [e, 6 * 7]"
        assert good(agent.tool("run_js", code=code))["result"] == ["TimeoutError", 42]
    for path, words in (
        ("slow", "no answer within"), ("drip", "no answer within"), ("garbage", "fetch failed"), ("half", "fetch failed"), ("nothing", "fetch failed"),
        ("headers", "fetch failed"), ("huge", "larger than"), ("endless", "larger than"), ("gzip", "fetch failed"),
    ):
        with suite.case(f"a server that answers with {path}: a TypeError that says so, and the session goes on"):
            began = time.monotonic()
            ran = good(agent.tool("run_js", code=f"globalThis.count = (globalThis.count ?? 0) + 1; {caught(f'{peer.origin}/{path}')}", timeout_ms=30_000, wait_ms=30_000))
            name, said = ran["result"]
            assert name == "TypeError" and words in said, ran["result"]
            assert time.monotonic() - began < 15, f"{time.monotonic() - began:.1f} s"
            assert good(agent.tool("run_js", code="count", heap=ran["heap"]))["result"] == 1
    with suite.case("an answer as large as it may be is whole; text that is none is read as it can be"):
        assert good(agent.tool("run_js", code=f"(await (await fetch('{peer.origin}/huge?bytes={RESPONSE_BYTES}')).text()).length"))["result"] == RESPONSE_BYTES
        code = f"const r = await fetch('{peer.origin}/not-text'); let e; try {{ await r.clone().json() }} catch (x) {{ e = x.name }} [e, await r.text()]"
        assert good(agent.tool("run_js", code=code))["result"] == ["SyntaxError", "\ufffd\ufffd\ufffd{"]


def over_kills(peer):
    data, arguments = Path(tempfile.mkdtemp(prefix="data-")), settings(peer.origin)
    with Server(data, arguments=arguments) as server:
        agent = Modern(server.port)
        slow = f"{peer.origin}/slow?ms=1500&of="
        reads = good(agent.tool("run_js", code=f"(await (await fetch('{slow}get')).text())", wait_ms=300))
        writes = good(agent.tool("run_js", code=f"let e = 'none'; try {{ await fetch('{slow}post', {{method: 'POST', body: 'once'}}) }} catch (x) {{ e = x.name }} e", wait_ms=300))
        assert reads["status"] == writes["status"] == "running", (reads, writes)
        deadline = time.monotonic() + 5
        while peer.count("/slow") < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        before = [one["method"] for one in peer.asked if "of=" in one["path"]]
        server.kill()
    with suite.case("killed while it waits: a GET is asked again, a POST is not, and its outcome is said to be unknown"), Server(data, arguments=arguments) as server:
        agent = Modern(server.port)
        assert sorted(before) == ["GET", "POST"], before
        assert until(agent, reads["execution_id"])["result"] == "slow"
        assert until(agent, writes["execution_id"])["result"] == "UnknownOutcome"
        after = [one["method"] for one in peer.asked if "of=" in one["path"]]
        assert after.count("POST") == 1 and after.count("GET") == 2, after


SECRET = "t0ken-that-no-code-may-see"
RULES = """
[js]
fetch = [
  {{ origin = "{origin}", auth = {{ bearer = "E2E_FETCH_TOKEN" }}, when = {{ "X-MCP-Team" = "blue" }} }},
  {{ origin = "{origin}", methods = ["POST"], auth = {{ header = {{ name = "X-Key", secret = "E2E_FETCH_TOKEN" }} }} }},
  {{ origin = "{other}", auth = {{ bearer = "E2E_FETCH_NOT_SET" }} }},
]
"""


def credentials(peer, other):
    """What the server itself adds to a fetch, by its settings; code neither sees nor chooses it."""
    config = Path(tempfile.mkstemp(suffix=".toml")[1])
    config.write_text(RULES.format(origin=peer.origin, other=other.origin))
    os.environ["E2E_FETCH_TOKEN"] = SECRET
    with Server(arguments=["--config", str(config)]) as server:
        blue, red = Modern(server.port, more={"X-MCP-Team": "blue"}), Modern(server.port)

        def told(agent, code):
            ran, error = agent.tool("run_js", code=code)
            return ran["error"] if error else ran["result"]

        def sent():
            return {name.lower(): value for name, value in peer.last()["headers"]}

        with suite.case("a credential of the rule is added, and what echoes it has it taken out"):
            echoed = told(blue, f"await (await fetch('{peer.origin}/echo')).json()")
            assert sent()["authorization"] == f"Bearer {SECRET}", sent()
            assert SECRET not in json.dumps(echoed) and "secret" in echoed["headers"]["authorization"], echoed
        with suite.case("which rule it is, the connection's headers and the method say"):
            before = len(peer.asked)
            for agent, method in ((red, "GET"), (red, "DELETE")):
                refused = told(agent, f"await fetch('{peer.origin}/echo', {{method: '{method}'}})")
                assert refused["name"] == "TypeError" and "not " + method in refused["message"], refused
            assert len(peer.asked) == before
            told(red, f"await fetch('{peer.origin}/echo', {{method: 'POST', body: 'x'}}); 1")
            assert sent()["x-key"] == SECRET and "authorization" not in sent(), sent()
        with suite.case("code that signs for itself where the server does is told"):
            refused = told(blue, f"await fetch('{peer.origin}/echo', {{headers: {{Authorization: 'mine'}}}})")
            assert "signs requests" in refused["message"], refused
        with suite.case("a secret that is not set is told by its name, and nothing is sent"):
            before = len(other.asked)
            refused = told(red, f"await fetch('{other.origin}/hello')")
            assert "E2E_FETCH_NOT_SET" in refused["message"] and len(other.asked) == before, refused
        with suite.case("the secret is in no answer, no log and no file of the server"):
            told(blue, f"globalThis.kept = await (await fetch('{peer.origin}/echo')).text(); 1")
            assert server.stop(20) == 0
            assert SECRET not in Path(server.log).read_text(errors="replace")
            files = [file for file in server.data.rglob("*") if file.is_file()]
            assert files and not [file for file in files if SECRET.encode() in file.read_bytes()]
    with suite.case("a rule that would send a credential in the clear is refused at the start"):
        config.write_text('[js]\nfetch = [{ origin = "http://192.0.2.1", auth = { bearer = "X" } }]\n')
        try:
            with Server(arguments=["--config", str(config)]):
                raise SystemExit("it started")
        except AssertionError as ended:
            assert "plain http" in str(ended), ended


def plans(server):
    agent = Modern(server.port)
    text, error = agent.tool("plasm_context", intent="plan in JavaScript", seeds=[{**seed, "capabilities": ["*"]} for seed in seeds("Project", "Ticket")])
    assert not error, text
    ref = "s" + text.split("`s", 1)[1].split("`", 1)[0]

    def run(code, **more):
        return agent.tool("run_js", code=code, logical_session_ref=ref, **more)

    def opened(title):
        found = good(run(f"""(await plasm('Ticket{{project="OPS"}}.filter{{title="{title}"}}[number]')).rows.length"""))
        return found["result"]

    write = """Ticket.open(project="OPS", title="planned by code")"""
    with suite.case("plasm.plan() of a read: a plan, a verdict, and nothing was read"):
        told = good(run("await plasm.plan('Project[key, name]')"))["result"]
        assert set(told) >= {"plan", "verdict"} and told["plan"], told
    with suite.case("plasm.plan() of a write: a commit for someone outside, and nothing happened"):
        ran = good(run(f"globalThis.planned = await plasm.plan('{write}'); planned"))
        told = ran["result"]
        assert ran["status"] == "completed" and told["plan_commit_ref"].startswith("pc") and told["verdict"], told
        assert opened("planned by code") == 0
    with suite.case("the commit of such a plan runs once, from outside"):
        for _ in range(2):
            text, error = agent.tool("plasm_run", logical_session_ref=ref, plan_commit_ref=told["plan_commit_ref"])
            assert not error, text
        assert opened("planned by code") == 1
        assert good(run("planned.plan_commit_ref"))["result"] == told["plan_commit_ref"], "the plan is in the heap"
    with suite.case("a plan of nonsense is an error of the code's own, and says what is wrong"):
        for program in ("Nothing[here]", "Ticket.open(", "", "Ticket.open(nope=1)"):
            ran = good(run(f"let wrong; try {{ wrong = await plasm.plan({json.dumps(program)}) }} catch (e) {{ wrong = [e.name, e.message] }} wrong"))
            assert isinstance(ran["result"], list) and all(ran["result"]), (program, ran)
    with suite.case("plasm and plasm.plan are for logical sessions"):
        assert good(agent.tool("run_js", code="typeof plasm"))["result"] == "undefined"


def main():
    with Peer() as peer, Peer() as other, suite.group("fetch"):
        with Server(arguments=settings(peer.origin)) as server:
            agent = Modern(server.port)
            honest(agent, peer)
            refused(agent, peer, other, server.data)
            dishonest(agent, peer)
            with suite.case("the server lives, and said nothing of a fault"):
                assert "panicked" not in Path(server.log).read_text(errors="replace")
                assert server.stop(20) == 0
        credentials(peer, other)
        over_kills(peer)
    with suite.group("plans"), Server() as server:
        plans(server)
    suite.end()


main()
