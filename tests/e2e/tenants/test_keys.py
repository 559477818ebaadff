"""Keys: requests without one, revoked keys, limits, and servers that listen for others."""

import json
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

import pytest

from lib.client import request
from lib.server import TOKAMAK
from tenants import ROUTES, SETTINGS, Installation, Tenant, run_cli


@pytest.fixture(scope="module")
def installation():
    return Installation()


@pytest.fixture(scope="module")
def alpha(installation):
    return Tenant(installation, "alpha")


@pytest.fixture(scope="module")
def server(installation, alpha):
    with installation.server() as started:
        alpha.port = started.port
        yield started


EVERY_ROUTE = [route.split(" ", 1) for route in ROUTES]
EVERY_ROUTE += [["POST", "/mcp"], ["GET", "/mcp"], ["DELETE", "/mcp"], ["GET", "/nowhere"]]
HEADERS_WITHOUT_A_KEY = {
    "no key": {},
    "a wrong key": {"Authorization": "Bearer tk_alpha_" + "0" * 64},
    "another scheme": {"Authorization": "Basic YTpi"},
}


@pytest.mark.parametrize("headers", HEADERS_WITHOUT_A_KEY.values(), ids=HEADERS_WITHOUT_A_KEY)
def test_without_a_valid_key_every_route_but_health_is_401_and_says_how_to_authenticate(server, headers):
    for method, path in EVERY_ROUTE:
        answer = request(server.port, method, urllib.parse.quote(path), b"{}" if method == "POST" else b"", headers)
        if path in ("/healthz", "/readyz"):
            assert answer.status == 200, f"{path}: {answer.status}"
            continue
        assert answer.status == 401, f"{method} {path}: {answer.status} {answer.body[:100]}"
        assert answer.headers["www-authenticate"].startswith("Bearer "), answer.headers
        assert json.loads(answer.body)["code"] == "unauthorized", answer.body


def test_a_caller_without_a_key_is_not_told_which_files_are_broken(server):
    ready = json.loads(request(server.port, "GET", "/readyz").body)
    assert ready["catalog_problems"]["first"] == [], ready


def test_a_revoked_key_is_refused_from_the_next_request_on(server, installation, alpha):
    revoked = Tenant(installation, "alpha")
    revoked.port = server.port
    assert revoked.http("GET", "/v1/registry").status == 200
    listed = json.loads(run_cli(installation, "token", "list", "--tenant", "alpha", "--json"))["keys"]
    run_cli(installation, "token", "revoke", listed[-1]["id"])
    assert revoked.http("GET", "/v1/registry").status == 401
    assert alpha.http("GET", "/v1/registry").status == 200


def test_calls_over_the_limit_of_a_tenant_are_429_with_the_time_to_wait(server, installation):
    slow = Tenant(installation, "slow")
    slow.port = server.port
    answers = [slow.http("GET", "/v1/registry") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429], answers
    assert int(answers[2].headers["retry-after"]) > 0 and json.loads(answers[2].body)["code"] == "rate_limited"


def test_no_key_is_in_the_data_folder_the_log_or_a_list(server, installation, alpha):
    texts = [path.read_bytes() for path in Path(installation.data).rglob("*") if path.is_file()]
    texts += [Path(server.log).read_bytes(), run_cli(installation, "token", "list").encode()]
    assert not any(alpha.key.encode() in text for text in texts)


def test_listening_on_another_address_without_a_key_is_refused():
    data = tempfile.mkdtemp(prefix="data-")
    command = [TOKAMAK, "serve", "--listen", "0.0.0.0", "--port", "0", "--data", data]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert refused.returncode == 2 and "token new" in refused.stderr, refused


def test_a_server_whose_last_key_was_revoked_still_asks_for_one():
    other = Installation()
    Tenant(other, "alpha")
    listed = json.loads(run_cli(other, "token", "list", "--json"))["keys"]
    run_cli(other, "token", "revoke", listed[0]["id"])
    with other.server() as server:
        assert request(server.port, "GET", "/v1/registry").status == 401


def test_a_key_in_the_settings_is_accepted_without_any_key_in_the_store():
    other = Installation()
    made = json.loads(run_cli(other, "token", "new", "--tenant", "alpha", "--principal", "ci", "--print", "--json"))
    text = SETTINGS.replace("[tenants.alpha]\n", f"[tenants.alpha]\nkeys = [{made['setting']}]\n")
    Path(other.config).write_text(text)
    with other.server() as server:
        headers = {"Authorization": f"Bearer {made['key']}"}
        assert request(server.port, "GET", "/v1/registry", headers=headers).status == 200
        assert request(server.port, "GET", "/v1/registry").status == 401
