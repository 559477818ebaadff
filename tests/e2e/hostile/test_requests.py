"""Wrong, large and strange requests over HTTP, and the server's answers to them; only the standard library.

Invariant: after every attack the health check answers and a normal call works.
"""

import json
import socket

import pytest

from lib.client import LegacySession, modern, modern_call, modern_headers, refusal_of, request, text_of
from lib.hostile import CALL, CALL_HEADERS, SEEDS, assert_alive, call_with, exchange, http_head, open_session


@pytest.fixture(scope="module", autouse=True)
def session(server):
    open_session(server)


def has_code_and_words(answer):
    """A refusal has a code and words that a program can read: problem+json, or a JSON-RPC error."""
    try:
        body = json.loads(answer.body)
    except ValueError:
        return False
    return bool(body.get("code") and body.get("detail")) or bool(body.get("error", {}).get("message"))


# --- bodies and headers


MALFORMED = {
    "an empty body": b"",
    "half a JSON text": b'{"jsonrpc":"2.0","id":1,"met',
    "not JSON": b"hello",
    "a NUL byte": b"\0",
    "a number": b"42",
    "a message without a method": b'{"jsonrpc":"2.0","id":1}',
    "a message of another protocol version": b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
    "an empty batch": b"[]",
    "a method that is not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "a program that is not UTF-8": call_with(b'"\xff\xfe\xc3("'),
    "a raw NUL in a program": call_with(b'"e1\0"'),
    "half a surrogate pair": call_with(b'"\\ud800"'),
    "arguments nested 5,000 deep": call_with(b"[" * 5_000 + b"]" * 5_000),
    "arguments nested 100,000 deep": call_with(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_a_client_error(server, body):
    answer = request(server.port, body=body, headers=CALL_HEADERS)
    assert 400 <= answer.status < 500, f"{answer.status} {answer.body[:200]}"
    assert_alive(server)


def test_every_body_that_is_not_a_json_rpc_message_is_400(server):
    statuses = {title: request(server.port, body=body, headers=CALL_HEADERS).status for title, body in MALFORMED.items()}
    others = {title: status for title, status in statuses.items() if status != 400}
    assert not others, f"{len(others)} of {len(statuses)}: {others}"


def test_every_refusal_of_a_malformed_body_is_json_with_a_code(server):
    answers = {title: request(server.port, body=body, headers=CALL_HEADERS) for title, body in MALFORMED.items()}
    silent = [title for title, answer in answers.items() if not has_code_and_words(answer)]
    assert not silent, f"{len(silent)} of {len(answers)}: {silent}"


TOOLS_LIST = json.dumps(modern("tools/list", {}))
STREAM = {"Accept": "text/event-stream"}
# Each wrong request: the arguments of `request` and the statuses that are right.
WRONG_REQUESTS = {
    "a body that says it is text": ({"body": TOOLS_LIST, "headers": {"Content-Type": "text/plain"}}, {415}),
    "a body without a type": ({"body": TOOLS_LIST, "headers": {"Content-Type": None}}, {415}),
    "a client that accepts only HTML": ({"body": TOOLS_LIST, "headers": {"Accept": "text/html"}}, {406}),
    "a GET without a session": ({"method": "GET", "headers": STREAM}, {400, 405}),
    "a DELETE without a session": ({"method": "DELETE"}, {400, 405}),
    "a GET with an unknown session": ({"method": "GET", "headers": {**STREAM, "Mcp-Session-Id": "x"}}, {404}),
    "a session id of 9,999 letters": ({"method": "GET", "headers": {**STREAM, "Mcp-Session-Id": "x" * 9_999}}, {404}),
    "a session id that is a path": ({"method": "GET", "headers": {**STREAM, "Mcp-Session-Id": "../../etc"}}, {404}),
    "an unknown method of HTTP": ({"method": "BREW"}, {405}),
    "an unknown revision": ({"body": TOOLS_LIST, "headers": {"MCP-Protocol-Version": "2999-01-01"}}, {400}),
    "an unknown path": ({"method": "GET", "path": "/nowhere"}, {404}),
    "a path that climbs": ({"method": "GET", "path": "/mcp/../../etc/passwd"}, {404}),
    "a path with a NUL": ({"method": "GET", "path": "/%00"}, {404}),
    "a POST to the health check": ({"path": "/healthz"}, {405}),
}


@pytest.mark.parametrize("wrong, statuses", WRONG_REQUESTS.values(), ids=WRONG_REQUESTS)
def test_a_wrong_request_is_refused(server, wrong, statuses):
    answer = request(server.port, **wrong)
    assert answer.status in statuses, f"{answer.status} {answer.body[:200]}"
    assert_alive(server)


def test_every_refusal_of_a_wrong_request_is_json_with_a_code(server):
    answers = {title: request(server.port, **wrong) for title, (wrong, _) in WRONG_REQUESTS.items()}
    silent = [title for title, answer in answers.items() if not has_code_and_words(answer)]
    assert not silent, f"{len(silent)} of {len(answers)}: {silent}"


# --- forms of an answer in 2026-07-28


@pytest.fixture
def message():
    return modern("tools/call", {"name": "list_registry", "arguments": {}})


LIST_REGISTRY_HEADERS = modern_headers("tools/call", "list_registry")


def test_an_answer_is_one_json_body_with_its_length(server):
    message = modern("tools/call", {"name": "list_registry", "arguments": {}})
    answer = request(server.port, body=json.dumps(message), headers=LIST_REGISTRY_HEADERS)
    assert answer.status == 200 and answer.headers["content-type"] == "application/json", answer.headers
    assert int(answer.headers["content-length"]) == len(answer.body), answer.headers
    assert json.loads(answer.body)["id"] == 1


def test_an_answer_with_progress_before_it_is_a_stream_of_events(server, message):
    message["params"]["_meta"]["progressToken"] = 7
    answer = request(server.port, body=json.dumps(message), headers=LIST_REGISTRY_HEADERS)
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.headers
    assert b"notifications/progress" in answer.body and answer.message()["id"] == 1, answer.body[:300]


def test_an_unknown_method_is_405_with_the_allowed_ones(server):
    answer = request(server.port, "PATCH", body=b"{}")
    assert answer.status == 405 and "POST" in answer.headers.get("allow", ""), (answer.status, answer.headers)


# --- large requests


def test_a_program_of_10_mb_is_413(server):
    body = call_with(b'"' + b"x" * 10_000_000 + b'"')
    answer = exchange(server.port, http_head("POST", body=body) + body)
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
    assert_alive(server)


def test_a_chunked_body_that_never_ends_is_413(server):
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = exchange(server.port, http_head("POST", {"Transfer-Encoding": "chunked"}) + chunk * 64)
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
    assert_alive(server)


def test_a_program_of_64_kib_and_one_byte_is_refused_with_e0111(server):
    refusal = refusal_of(modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": "x" * 65_537}))
    assert "E0111" in refusal and "65536" in refusal, refusal
    assert_alive(server)


def test_a_program_of_exactly_64_kib_is_read(server):
    program = "Project[key]" + " " * (65_536 - 12)
    text_of(modern_call(server.port, "plasm", {"logical_session_ref": "s0", "program": program}))


def test_an_intent_of_100_000_letters_is_refused(server):
    refusal = refusal_of(modern_call(server.port, "plasm_context", {"intent": "x" * 100_000, "seeds": SEEDS}))
    assert refusal.startswith("bad_intent: "), refusal[:200]
    assert_alive(server)


def test_ten_thousand_seeds_are_refused(server):
    refusal = refusal_of(modern_call(server.port, "plasm_context", {"intent": "x", "seeds": SEEDS * 10_000}))
    assert refusal.startswith("bad_seeds: "), refusal[:200]
    assert_alive(server)


def test_a_header_of_1_mb_is_431(server):
    answer = exchange(server.port, http_head("GET", {"X-Large": "a" * 1_000_000}))
    assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")), answer[:200]
    assert_alive(server)


def test_a_thousand_headers_are_431(server):
    answer = exchange(server.port, http_head("GET", {f"X-{n}": "a" for n in range(1_000)}))
    assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")), answer[:200]
    assert_alive(server)


# --- strange programs


PROGRAMS = {
    "60,000 (": "(" * 60_000,
    "60,000 [": "[" * 60_000,
    "60,000 {": "{" * 60_000,
    "60,000 quotes": '"' * 60_000,
    "60,000 backslashes": "\\" * 60_000,
    "60,000 minus signs": "-" * 60_000,
    "60,000 newlines": "\n" * 60_000,
    "60,000 NULs": "\0" * 60_000,
    "16,000 gets in each other": "e1(" * 16_000 + '"x"' + ")" * 16_000,
    "9,000 filters in each other": "e1{p1=" * 9_000 + "1" + "}" * 9_000,
    "30,000 lists in each other": "e1([" + "[" * 30_000 + "]" * 30_000 + "])",
    "7,000 steps in a row": "e1" + ".limit(1)" * 7_000,
    "6,000 names": "\n".join(f"a{n}=e1" for n in range(6_000)) + "\na0",
    "15,000 returns": ", ".join(["e1"] * 15_000),
    "a name of 60,000 letters": "e" * 60_000,
    "a number of 60,000 digits": "e1.limit(" + "9" * 60_000 + ")",
    "30,000 combining characters": "e1" + "\u0301" * 30_000,
    "21,000 letters of three bytes": "\u3164" * 21_000,
    "text that runs right to left": '"\u202e' + "\u05d0" * 20_000 + '"',
}


@pytest.mark.parametrize("tool", ["plasm", "plasm_run"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_strange_program_is_answered_in_time_and_in_40_000_characters(server, tool, program):
    assert len(program.encode()) <= 65_536, "the case is wrong: the program is too long"
    message = modern_call(server.port, tool, {"logical_session_ref": "s0", "program": program}, seconds=10)
    refusal = message["result"]["content"][0]["text"]
    if message["result"].get("isError"):
        assert refusal.startswith(("bad_program: ", "review_needed: ")), refusal[:200]
    assert_alive(server)
    assert len(refusal) <= 40_000, f"an answer of {len(refusal):,} characters"


# --- other origins


@pytest.mark.parametrize("path, method", [("/mcp", "POST"), ("/healthz", "GET"), ("/nowhere", "GET")])
def test_another_name_in_host_is_403(server, path, method):
    answer = request(server.port, method, path, headers={"Host": "evil.example"})
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "host_refused"), answer


@pytest.mark.parametrize("path, method", [("/mcp", "POST"), ("/healthz", "GET"), ("/nowhere", "GET")])
def test_the_page_of_another_site_is_403(server, path, method):
    page = {"Origin": "https://evil.example"}
    answer = request(server.port, method, path, headers=page)
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "origin_refused"), answer


WRONG_HOSTS = {"no name": b"", "our name inside another": b"127.0.0.1.evil.example", "a user": b"127.0.0.1@evil.example"}


@pytest.mark.parametrize("name", WRONG_HOSTS.values(), ids=WRONG_HOSTS)
def test_a_wrong_name_in_host_is_403_or_400(server, name):
    answer = exchange(server.port, b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: " + name + b"\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400")), answer[:200]


def test_a_page_whose_origin_is_null_is_403(server):
    assert request(server.port, "GET", "/healthz", headers={"Origin": "null"}).status == 403


def test_a_page_of_this_server_on_another_port_is_403(server):
    other = {"Origin": f"http://127.0.0.1:{server.port + 1}"}
    assert request(server.port, "GET", "/healthz", headers=other).status == 403


def test_a_page_of_this_server_is_served(server):
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert request(server.port, "GET", "/healthz", headers=own).status == 200


def test_localhost_is_a_name_of_this_server(server):
    assert request(server.port, "GET", "/healthz", headers={"Host": f"localhost:{server.port}"}).status == 200
    assert_alive(server)


# --- connections


BROKEN_REQUESTS = {
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
    "a negative length": http_head("POST", {"Content-Length": "-1"}),
    "a length that is no number": http_head("POST", {"Content-Length": "many"}),
    "two lengths": http_head("POST", {"Content-Length": "5", "content-length": "7"}) + b"{}{}{}{}",
    "a chunk size that is no number": http_head("POST", {"Transfer-Encoding": "chunked"}) + b"xyz\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("sent", BROKEN_REQUESTS.values(), ids=BROKEN_REQUESTS)
def test_a_broken_request_is_refused(server, sent):
    answer = exchange(server.port, sent)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer[:200]
    assert_alive(server)


def test_200_connections_that_open_and_close_do_no_harm(server):
    for _ in range(200):
        socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
    assert_alive(server)


def test_200_connections_with_half_a_request_do_not_keep_others_out(server):
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(200)]
    for peer in connections:
        peer.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
    assert_alive(server)
    for peer in connections:
        peer.close()
    assert_alive(server)


def test_50_clients_that_leave_before_the_answer_do_no_harm(server):
    body = json.dumps(CALL).replace("HERE", "Project[key]").encode()
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as peer:
            peer.sendall(http_head("POST", body=body) + body)
    assert_alive(server)


def test_100_legacy_clients_that_leave_after_initialize_do_no_harm(server):
    for _ in range(100):
        LegacySession(server.port).initialize()
    assert_alive(server)
