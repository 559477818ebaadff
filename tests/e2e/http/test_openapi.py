"""The published OpenAPI description, judged by a validator and a fuzzer from outside."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from lib.http_api import HttpApi
from lib.server import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "wire" / "openapi.json"
FUZZ_SECONDS = int(os.environ.get("FUZZ_SECONDS", "25"))


@pytest.fixture(scope="module")
def api(server):
    return HttpApi(server.port)


@pytest.fixture(scope="module")
def description(api):
    return json.loads(api("GET", "/openapi.json").body)


def test_the_description_is_valid_and_is_the_committed_one(description):
    validate(description)
    assert description == json.loads(GOLDEN.read_text()), "tests/wire/openapi.json is another one"


@pytest.mark.timeout(300 + 2 * FUZZ_SECONDS)
def test_random_and_wrong_requests_to_every_route_are_answered_as_described(server):
    # The routes of JavaScript have limits that no schema can say (settings, keys of heaps), so only the second run has them.
    fuzz(server, ("--exclude-path-regex", "^/api/"))


@pytest.mark.timeout(300 + 2 * FUZZ_SECONDS)
def test_random_requests_with_the_address_of_a_real_session_are_answered_as_described(server, api):
    path, _ = api.open("Project", "Ticket", "Comment")
    _, _, prompt_hash, session = path.split("/")
    # A random program is valid JSON, but not a valid program.
    fuzz(server, ("--exclude-checks", "positive_data_acceptance"), {"prompt_hash": prompt_hash, "session": session})


def fuzz(server, arguments, parameters=None):
    folder = tempfile.mkdtemp(prefix="fuzz-")
    config = "".join(f'{name} = "{value}"\n' for name, value in (parameters or {}).items())
    Path(folder, "schemathesis.toml").write_text(f"[parameters]\n{config}")
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/openapi.json", "--no-color"]
    command += ["--max-time", str(FUZZ_SECONDS), "--generation-deterministic", "--request-timeout", "10", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FUZZ_SECONDS + 60)
    found = ran.stdout[ran.stdout.find("FAILURES") :] if "FAILURES" in ran.stdout else ran.stdout[-1500:]
    assert ran.returncode == 0, f"{found[:1500]} {ran.stderr[-300:]}"
    assert "Operations:" in ran.stdout and "0 selected" not in ran.stdout, ran.stdout[:500]
