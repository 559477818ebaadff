"""`fetch` of code against a server on loopback, one that is honest and one that is not.

Invariants: only origins of the settings are reached; whatever the other server does, the run ends and the heap goes on; a
request that changes something is sent once, over a kill too.
"""

import base64
import json
import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from lib.http_peer import Peer
from lib.javascript import ModernConnection, error_of, value_of, wait_for_end
from lib.server import Server, assert_did_not_panic, new_folder, settings

pytestmark = pytest.mark.steps
RESPONSE_BYTES = 200_000
REQUEST_TIMEOUT_MS = 2_000


def fetch_settings(*origins):
    allowed = ", ".join(f'"{origin}"' for origin in origins)
    limits = f"[limits]\nresponse_bytes = {RESPONSE_BYTES}\nrequest_timeout_ms = {REQUEST_TIMEOUT_MS}\n"
    return settings(f"{limits}[js]\nfetch = [{allowed}]\n")


def error_of_fetch(url, more=""):
    """Code whose result is the name and the message of the error of a fetch."""
    answered = "error = [`status ${r.status}`, (await r.text()).slice(0, 50)]"
    call = f"const r = await fetch({json.dumps(url)}{more})"
    return f"let error; try {{ {call}; {answered} }} catch (e) {{ error = [e.name, e.message] }} error"


@pytest.fixture(scope="module")
def peer():
    """The server whose origin the settings allow."""
    with Peer() as started:
        yield started


@pytest.fixture(scope="module")
def other():
    """A server that no code may reach."""
    with Peer() as started:
        yield started


@pytest.fixture(scope="module")
def server(peer):
    with Server(arguments=fetch_settings(peer.origin)) as started:
        yield started


@pytest.fixture(scope="module")
def agent(server):
    return ModernConnection(server.port)


@pytest.fixture(scope="module")
def run(agent):
    """Runs code and returns its result."""
    return lambda code, **more: value_of(agent.tool("run_js", code=code, **more))["result"]


# --- an honest server


def test_get_has_status_headers_text_and_address(peer, run):
    code = f"const r = await fetch('{peer.origin}/hello?a=1%202&b=%C3%BC#part'); [r.status, r.ok, r.headers.get('X-MADE'), r.headers.get('content-type'), await r.text(), r.url, r.redirected]"
    assert run(code) == [200, True, "by hand", "text/plain;charset=utf-8", "hällo", f"{peer.origin}/hello?a=1%202&b=%C3%BC#part", False], run(code)
    seen = peer.last()
    assert seen["method"] == "GET" and seen["body"] == b"" and parse_qs(urlsplit(seen["path"]).query) == {"a": ["1 2"], "b": ["ü"]}, seen


def test_headers_that_are_not_ascii_arrive_and_do_not_hide_the_answer(peer, run):
    for query, wanted in (("utf8", "caf\u00e9"), ("latin", "caf\u00e9"), ("wide", "\u00e6\u0097\u00a5")):
        code = f"const r = await fetch('{peer.origin}/header?as={query}', {{method: 'POST'}}); [r.status, r.headers.get('x-name')]"
        assert run(code) == [200, wanted], query


def test_no_credentials_cookies_or_headers_of_the_connection_are_sent(peer, run):
    run(f"await (await fetch('{peer.origin}/hello')).text(); await (await fetch('{peer.origin}/hello')).text()")
    for name, value in peer.last()["headers"]:
        assert name.lower() not in ("authorization", "cookie", "referer", "origin") and not name.lower().startswith("x-mcp"), (name, value)


def test_post_sends_json_and_its_content_type_and_reads_json(peer, run):
    code = f"const r = await fetch('{peer.origin}/echo', {{method: 'POST', body: JSON.stringify({{n: 1, t: 'ü\\u2028'}}), headers: {{'Content-Type': 'application/json', 'X-Own': 'a, b'}}}}); await r.json()"
    echo = run(code)
    assert echo["method"] == "POST" and json.loads(base64.b64decode(echo["body"])) == {"n": 1, "t": "ü\u2028"}, echo
    sent = {name.lower(): value for name, value in echo["headers"].items()}
    assert sent["content-type"] == "application/json" and sent["x-own"] == "a, b", sent


def test_every_byte_of_a_body_arrives_both_ways(peer, run):
    code = f"const all = new Uint8Array(70000).map((_, i) => i * 7 + (i >> 8)); const r = await fetch('{peer.origin}/bytes', {{method: 'PUT', body: all}}); const back = new Uint8Array(await r.arrayBuffer()); [back.length, back.every((b, i) => b === all[i])]"
    assert run(code) == [70000, True]
    assert peer.last()["body"] == bytes((i * 7 + (i >> 8)) % 256 for i in range(70000))


def test_text_forms_and_empty_bodies_have_their_content_type_and_other_methods_arrive(peer, run):
    for body, media_type, wanted in (("'ü'", "text/plain;charset=UTF-8", "ü".encode()), ("new URLSearchParams({a: '1 2'})", "application/x-www-form-urlencoded;charset=UTF-8", b"a=1+2")):
        echo = run(f"await (await fetch('{peer.origin}/echo', {{method: 'PATCH', body: {body}}})).json()")
        assert echo["method"] == "PATCH" and base64.b64decode(echo["body"]) == wanted, echo
        assert {k.lower(): v for k, v in echo["headers"].items()}["content-type"] == media_type, echo
    assert run(f"await (await fetch('{peer.origin}/echo', {{method: 'DELETE'}})).json()")["method"] == "DELETE"


def test_a_status_is_an_answer_and_not_an_error(peer, run):
    assert run(f"const all = []; for (const s of [204, 304, 400, 404, 500, 503]) {{ const r = await fetch('{peer.origin}/status/' + s); all.push([r.status, r.ok]) }} all") == [
        [204, True], [304, False], [400, False], [404, False], [500, False], [503, False]
    ]


def test_twenty_requests_at_once_each_get_their_own_answer(peer, run):
    code = f"(await Promise.all(Array.from({{length: 20}}, async (_, i) => (await (await fetch('{peer.origin}/echo?n=' + i)).json()).path))).join()"
    assert run(code) == ",".join(f"/echo?n={i}" for i in range(20))


def test_an_answer_is_kept_in_the_heap_and_read_by_a_later_run(agent, peer, run):
    heap = value_of(agent.tool("run_js", code=f"let kept = await fetch('{peer.origin}/hello'); kept.status"))["heap"]
    assert run("[kept.status, await kept.text(), kept.headers.get('x-made')]", heap=heap) == [200, "hällo", "by hand"]


# --- refused requests


def test_a_forbidden_origin_is_a_type_error_that_names_it_and_the_setting_and_nothing_arrives_there(agent, peer, other):
    for url in (
        f"{other.origin}/hello", f"http://localhost:{peer.port}/hello", f"https://127.0.0.1:{peer.port}/hello", "http://127.0.0.1/hello",
        f"http://127.0.0.1:{peer.port}.example.com/", f"http://[::1]:{peer.port}/hello", f"http://2130706433:{other.port}/hello", "http://169.254.169.254/latest/meta-data/",
    ):
        name, message = value_of(agent.tool("run_js", code=error_of_fetch(url)))["result"]
        assert name == "TypeError" and (peer.origin in message and "[js]" in message or "URL" in message), (url, message)
    assert other.requests == [], other.requests


def test_an_address_without_an_origin_is_a_type_error(agent, peer):
    for url in ("/hello", "", "file:///etc/passwd", "data:text/plain,x", "javascript:1", f"http://user:secret@127.0.0.1:{peer.port}/hello", f"ftp://127.0.0.1:{peer.port}/"):
        name, message = value_of(agent.tool("run_js", code=error_of_fetch(url)))["result"]
        assert name == "TypeError" and message and "secret" not in message, (url, name, message)


def test_a_redirect_is_refused_and_nothing_arrives_at_its_target(agent, peer, other):
    before = peer.count("/hello")
    for to in (f"{other.origin}/hello", f"{peer.origin}/hello", "/hello"):
        for status in (301, 302, 307, 308):
            name, message = value_of(agent.tool("run_js", code=error_of_fetch(f"{peer.origin}/redirect?status={status}&to={to}")))["result"]
            assert name == "TypeError" and "redirect" in message, (to, status, name, message)
    assert other.requests == [] and peer.count("/hello") == before


def test_headers_that_would_make_another_request_are_refused_or_left_out(agent, peer):
    before = len(peer.requests)
    for name, value in (("Host", "evil.example"), ("Content-Length", "3"), ("Transfer-Encoding", "chunked"), ("Connection", "X-Own")):
        code = error_of_fetch(f"{peer.origin}/bytes", f", {{method: 'POST', body: 'hello', headers: {{'{name}': '{value}'}}}}")
        value_of(agent.tool("run_js", code=code))
    for seen in peer.requests[before:]:
        sent = [(name.lower(), value) for name, value in seen["headers"]]
        assert ("host", f"127.0.0.1:{peer.port}") in sent and [n for n, _ in sent].count("host") == 1, sent
        assert seen["body"] == b"hello" and "transfer-encoding" not in dict(sent), seen
    for wrong in ("'a b': 'c'", "'a': 'b\\r\\nc: d'", "'': 'x'"):
        name, _ = value_of(agent.tool("run_js", code=error_of_fetch(f"{peer.origin}/echo", f", {{headers: {{{wrong}}}}}")))["result"]
        assert name == "TypeError", wrong


def test_a_server_that_allows_nothing_refuses_every_fetch_also_by_a_function_in_the_heap(agent, peer, server):
    heap = value_of(agent.tool("run_js", code=f"const mine = fetch; (await mine('{peer.origin}/hello')).status"))
    before = len(peer.requests)
    with Server(server.data) as bare:
        for code, more in ((error_of_fetch(f"{peer.origin}/hello"), {}), (error_of_fetch(f"{peer.origin}/hello").replace("fetch(", "mine("), {"heap": heap["heap"], "require_heap": True})):
            name, message = value_of(ModernConnection(bare.port).tool("run_js", code=code, **more))["result"]
            assert name == "TypeError" and "no origin" in message and "[js]" in message, message
    assert len(peer.requests) == before


# --- a dishonest server


def test_a_slow_server_does_not_keep_a_run_beyond_its_deadline(agent, peer):
    run = error_of(agent.tool("run_js", code=f"await fetch('{peer.origin}/slow')", timeout_ms=600))
    assert run["status"] == "timed_out", run


def test_code_goes_on_after_its_own_abort_of_a_slow_request(agent, peer):
    code = f"let e; try {{ await fetch('{peer.origin}/slow', {{signal: AbortSignal.timeout(150)}}) }} catch (x) {{ e = x.name }} [e, 6 * 7]"
    assert value_of(agent.tool("run_js", code=code))["result"] == ["TimeoutError", 42]


BAD_ANSWERS = {
    "slow": "no answer within",
    "drip": "no answer within",
    "garbage": "fetch failed",
    "half": "fetch failed",
    "nothing": "fetch failed",
    "headers": "fetch failed",
    "huge": "larger than",
    "endless": "larger than",
    "gzip": "fetch failed",
}


@pytest.mark.parametrize("path, words", BAD_ANSWERS.items(), ids=BAD_ANSWERS)
def test_a_bad_answer_is_a_type_error_that_says_so_and_the_session_goes_on(agent, peer, path, words):
    code = f"globalThis.count = (globalThis.count ?? 0) + 1; {error_of_fetch(f'{peer.origin}/{path}')}"
    run = value_of(agent.tool("run_js", code=code, timeout_ms=60_000, wait_ms=60_000))
    name, message = run["result"]
    assert name == "TypeError" and words in message, run["result"]
    assert value_of(agent.tool("run_js", code="count", heap=run["heap"]))["result"] == 1


def test_the_largest_allowed_answer_is_complete_and_wrong_utf_8_is_read_with_replacements(agent, peer):
    assert value_of(agent.tool("run_js", code=f"(await (await fetch('{peer.origin}/huge?bytes={RESPONSE_BYTES}')).text()).length"))["result"] == RESPONSE_BYTES
    code = f"const r = await fetch('{peer.origin}/not-text'); let e; try {{ await r.clone().json() }} catch (x) {{ e = x.name }} [e, await r.text()]"
    assert value_of(agent.tool("run_js", code=code))["result"] == ["SyntaxError", "\ufffd\ufffd\ufffd{"]


# --- credentials that the server adds


SECRET = "t0ken-that-no-code-may-see"
RULES = """
[secrets]
E2E_FETCH_TOKEN = "{origin}"
[js]
fetch = [
  {{ origin = "{origin}", auth = {{ bearer = "E2E_FETCH_TOKEN" }}, when = {{ "X-MCP-Team" = "blue" }} }},
  {{ origin = "{origin}", methods = ["POST"], auth = {{ header = {{ name = "X-Key", secret = "E2E_FETCH_TOKEN" }} }} }},
  {{ origin = "{other}", auth = {{ bearer = "E2E_FETCH_NOT_SET" }} }},
]
"""


@pytest.fixture(scope="module")
def signing(peer, other):
    """A server that adds a credential to a fetch by its rules; code neither sees nor chooses it."""
    config = new_folder("config-") / "tokamak.toml"
    config.write_text(RULES.format(origin=peer.origin, other=other.origin))
    os.environ["E2E_FETCH_TOKEN"] = SECRET
    with Server(arguments=["--config", config]) as started:
        blue = ModernConnection(started.port, more_headers={"X-MCP-Team": "blue"})
        yield SimpleNamespace(server=started, blue=blue, red=ModernConnection(started.port))
    del os.environ["E2E_FETCH_TOKEN"]


def result_or_error(agent, code):
    run, error = agent.tool("run_js", code=code)
    return run["error"] if error else run["result"]


def last_headers(peer):
    return {name.lower(): value for name, value in peer.last()["headers"]}


def test_the_credential_of_the_rule_is_added_and_removed_from_an_echo(signing, peer):
    echoed = result_or_error(signing.blue, f"await (await fetch('{peer.origin}/echo')).json()")
    assert last_headers(peer)["authorization"] == f"Bearer {SECRET}", last_headers(peer)
    assert SECRET not in json.dumps(echoed) and "secret" in echoed["headers"]["authorization"], echoed


def test_the_connections_headers_and_the_method_choose_the_rule(signing, peer):
    before = len(peer.requests)
    for method in ("GET", "DELETE"):
        refused = result_or_error(signing.red, f"await fetch('{peer.origin}/echo', {{method: '{method}'}})")
        assert refused["name"] == "TypeError" and "not " + method in refused["message"], refused
    assert len(peer.requests) == before
    result_or_error(signing.red, f"await fetch('{peer.origin}/echo', {{method: 'POST', body: 'x'}}); 1")
    assert last_headers(peer)["x-key"] == SECRET and "authorization" not in last_headers(peer), last_headers(peer)


def test_code_may_not_set_a_credential_where_the_server_adds_one(signing, peer):
    refused = result_or_error(signing.blue, f"await fetch('{peer.origin}/echo', {{headers: {{Authorization: 'mine'}}}})")
    assert "signs requests" in refused["message"], refused


def test_a_missing_secret_is_named_and_nothing_is_sent(signing, other):
    before = len(other.requests)
    refused = result_or_error(signing.red, f"await fetch('{other.origin}/hello')")
    assert "E2E_FETCH_NOT_SET" in refused["message"] and len(other.requests) == before, refused


def test_the_secret_is_in_no_answer_no_log_and_no_file_of_the_server(signing, peer):
    result_or_error(signing.blue, f"globalThis.kept = await (await fetch('{peer.origin}/echo')).text(); 1")
    assert signing.server.stop(30) == 0
    assert SECRET not in signing.server.log_text()
    files = [file for file in signing.server.data.rglob("*") if file.is_file()]
    assert files and not [file for file in files if SECRET.encode() in file.read_bytes()]


def test_a_rule_that_would_send_a_credential_in_the_clear_is_refused_at_the_start():
    rule = '[js]\nfetch = [{ origin = "http://192.0.2.1", auth = { bearer = "X" } }]\n'
    with pytest.raises(AssertionError, match="plain http"):
        Server(arguments=settings(rule)).__enter__()


# --- over a kill


def test_after_a_kill_a_get_is_sent_again_and_a_post_is_not_and_its_outcome_is_unknown(peer):
    data, arguments = Path(tempfile.mkdtemp(prefix="data-")), fetch_settings(peer.origin)
    with Server(data, arguments=arguments) as server:
        agent = ModernConnection(server.port)
        slow = f"{peer.origin}/slow?ms=1500&of="
        reads = value_of(agent.tool("run_js", code=f"(await (await fetch('{slow}get')).text())", wait_ms=300))
        post = f"await fetch('{slow}post', {{method: 'POST', body: 'once'}})"
        code = f"let e = 'none'; try {{ {post} }} catch (x) {{ e = x.name }} e"
        writes = value_of(agent.tool("run_js", code=code, wait_ms=300))
        assert reads["status"] == writes["status"] == "running", (reads, writes)
        deadline = time.monotonic() + 10
        while len(slow_methods(peer)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        before = slow_methods(peer)
        server.kill()
    with Server(data, arguments=arguments) as server:
        agent = ModernConnection(server.port)
        assert sorted(before) == ["GET", "POST"], before
        assert wait_for_end(agent, reads["execution_id"])["result"] == "slow"
        assert wait_for_end(agent, writes["execution_id"])["result"] == "UnknownOutcome"
        after = slow_methods(peer)
        assert after.count("POST") == 1 and after.count("GET") == 2, after


def slow_methods(peer):
    return [request["method"] for request in peer.requests if "of=" in request["path"]]


# --- the end


def test_the_server_lives_and_did_not_panic(server):
    assert_did_not_panic(server)
    assert server.stop(30) == 0
