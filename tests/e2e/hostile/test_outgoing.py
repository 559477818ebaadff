"""Requests that leave the server: the secrets that they carry, the answers that echo them, and the places that they may not reach.

Invariant: nothing but loopback is reached.
"""

import base64
import json
import os
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from lib.javascript import ModernConnection, value_of
from lib.server import Server, new_folder, run_binary, settings

pytestmark = pytest.mark.steps
# A header carries only ASCII.
SECRET = "s3cr3t/of+nobody~?>"
CATALOG = """
catalog: {id}
version: 1
title: GitHub
origin: {origin}/v1/orgs
auth: {{bearer: {secret}}}
entities:
  Item: {{about: a thing, key: [id], fields: {{id: integer}}}}
capabilities:
  item_list: {{query: Item, http: GET /7/items, rows: rows, paging: {{next: next}}}}
"""


class Api:
    """An HTTP server that keeps the paths and credentials of its requests."""

    def __init__(self):
        self.requests = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                api.requests.append((self.path, self.headers.get("authorization")))
                body = json.dumps(api.answer(self.path), ensure_ascii=False).encode() if self.path != "/forms" else api.forms
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                # Small pieces, so that an echo is cut somewhere.
                for start in range(0, len(body), 7):
                    self.wfile.write(body[start : start + 7])
                    self.wfile.flush()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        escaped = "".join(f"\\u{ord(c):04x}" for c in SECRET)
        html = "".join(f"&#{ord(c)};" for c in SECRET)
        forms = {
            "plain": SECRET, "url": quote(SECRET, safe=""), "each": "".join(f"%{byte:02x}" for byte in SECRET.encode()), "html": html,
            "hex": SECRET.encode().hex(), "HEX": SECRET.encode().hex().upper(), "twice": quote(quote(SECRET, safe=""), safe=""),
            **{f"b64-{n}": base64.b64encode(b"x" * n + SECRET.encode() + b"y").decode() for n in range(4)},
            **{f"url64-{n}": base64.urlsafe_b64encode(b"x" * n + SECRET.encode()).decode() for n in range(4)},
        }
        self.forms = (json.dumps(forms, ensure_ascii=False)[:-1] + f', "json": "{escaped}"}}').encode()

    def answer(self, path):
        pages = {"/v1/orgs/7/items": ([1, 2], "?page=2"), "/v1/orgs/7/items?page=2": ([3], "../7/more"), "/v1/orgs/7/more": ([4], None)}
        ids, following = pages.get(path, ([], None))
        return {"rows": [{"id": id} for id in ids], "next": following}

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def api():
    with Api() as started:
        yield started


@pytest.fixture(scope="module")
def environment():
    """Secrets of the machine that a catalog could name."""
    values = {"GITHUB_TOKEN": "a-token-for-github-only", "E2E_ITEMS_TOKEN": SECRET, "E2E_FETCH": SECRET}
    os.environ.update(values)
    yield values
    for name in values:
        del os.environ[name]


# --- a secret goes only where it is bound


@pytest.fixture(scope="module")
def catalogs(api):
    folder = new_folder("catalogs-")
    (folder / "hub.yaml").write_text(CATALOG.format(id="hub", origin=api.origin, secret="GITHUB_TOKEN"))
    (folder / "items.yaml").write_text(CATALOG.format(id="items", origin=api.origin, secret="E2E_ITEMS_TOKEN"))
    return folder


@pytest.fixture(scope="module")
def server(catalogs, environment):
    with Server(arguments=("--catalogs", catalogs)) as started:
        yield started


def read(server, catalog, program="Item[id]"):
    agent = ModernConnection(server.port)
    opened, _ = agent.tool("plasm_context", intent=f"read {catalog}", seeds=[{"api": catalog, "entity": "Item"}])
    ref = re.search(r"\bs\d+\b", str(opened)).group()
    return str(agent.tool("plasm_run", logical_session_ref=ref, program=program)[0])


def test_a_title_and_a_name_do_not_get_a_secret_of_the_environment(api, server, environment):
    for catalog, name in (("hub", "GITHUB_TOKEN"), ("items", "E2E_ITEMS_TOKEN")):
        answer = read(server, catalog)
        assert f"tokamak secret bind {name} {api.origin}" in answer and "E0601" in answer, answer
    assert api.requests == []
    log = server.log_text()
    assert f"tokamak secret bind GITHUB_TOKEN {api.origin}" in log, log
    for value in environment.values():
        assert value not in log


def test_doctor_prints_the_same_command_and_fails(api, server, catalogs):
    doctor = run_binary("doctor", "--port", "0", "--data", server.data, "--catalogs", catalogs)
    assert doctor.returncode != 0 and f"tokamak secret bind GITHUB_TOKEN {api.origin}" in doctor.stdout, doctor.stdout


def test_a_bound_secret_is_sent_at_once_and_pages_are_followed_relative_to_their_page(api, server, environment):
    bound = run_binary("secret", "bind", "E2E_ITEMS_TOKEN", api.origin, "--data", server.data)
    assert bound.returncode == 0, bound.stderr
    answer = read(server, "items")
    assert [path for path, _ in api.requests] == ["/v1/orgs/7/items", "/v1/orgs/7/items?page=2", "/v1/orgs/7/more"], answer
    assert {credential for _, credential in api.requests} == {f"Bearer {environment['E2E_ITEMS_TOKEN']}"}
    assert "GITHUB_TOKEN" in read(server, "hub"), "another name is still not bound"


# --- answers that echo a credential


@pytest.fixture(scope="module")
def signing(api, environment):
    text = f'[secrets]\nE2E_FETCH = "{api.origin}"\n[js]\nfetch = [{{ origin = "{api.origin}", auth = {{ bearer = "E2E_FETCH" }} }}]\n'
    with Server(arguments=settings(text)) as started:
        yield ModernConnection(started.port)


def test_an_echo_is_removed_in_every_form(api, signing):
    forms = value_of(signing.tool("run_js", code=f"await (await fetch('{api.origin}/forms')).json()"))["result"]
    assert api.requests[-1] == ("/forms", f"Bearer {SECRET}")
    for name, form in forms.items():
        assert "[secret]" in form and len(form) <= len("[secret]") + 10, (name, form)


def test_a_credential_cannot_be_read_in_pieces(api, signing):
    before = len(api.requests)
    for header in ("Range", "If-Range", "If-Match", "if-none-match", "If-Modified-Since", "If-Unmodified-Since"):
        code = f"try {{ await fetch('{api.origin}/forms', {{headers: {{'{header}': 'bytes=0-3'}}}}); 'sent' }} catch (e) {{ e.message }}"
        message = value_of(signing.tool("run_js", code=code))["result"]
        assert "E0604" in message and header.lower() in message.lower(), message
    assert len(api.requests) == before


# --- this server itself


def test_no_server_of_the_data_folder_is_reached_whatever_the_settings_allow(api):
    data = new_folder("data-")
    with Server(data) as replica:
        hosts = ("127.0.0.1", "localhost", "[::1]", "[::ffff:7f00:1]", "0.0.0.0", "127.0.0.2")
        allowed = [f"http://{host}:{replica.port}" for host in hosts]
        # The port of the second server is not known before it starts, so the settings allow a port that is chosen here.
        own_port = free_port()
        allowed += [f"http://{host}:{own_port}" for host in hosts] + ["https://tokamak.example.com", "https://tokamak.example.net", api.origin]
        text = f'hosts = ["tokamak.example.net"]\npublic_url = "https://tokamak.example.com"\n[js]\nfetch = {json.dumps(allowed)}\n'
        with Server(data, port=own_port, arguments=settings(text)) as server:
            agent = ModernConnection(server.port)
            for origin in allowed[:-1]:
                code = f"try {{ (await fetch('{origin}/healthz')).status }} catch (e) {{ e.message }}"
                message = value_of(agent.tool("run_js", code=code))["result"]
                assert "E0603" in str(message), (origin, message)
            # Another server on this machine is reached, and so is the demo API.
            assert value_of(agent.tool("run_js", code=f"(await fetch('{api.origin}/forms')).status"))["result"] == 200
            opened, _ = agent.tool("plasm_context", intent="demo", seeds=[{"api": "demo", "entity": "Project"}])
            assert "s0" in str(opened)
            rows, error = agent.tool("plasm_run", logical_session_ref="s0", program="Project[key]")
            assert not error and "OPS" in str(rows), rows


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
