"""Rights only shrink by accident: a deleted table, a deleted settings file and a lost database open no door."""

import json
import time
from pathlib import Path

import pytest

from lib.client import request
from lib.server import Server, new_folder, run_binary, settings

TWO_TENANTS = "[tenants.acme]\nread_only = true\n[tenants.other]\n"
WITHOUT_ACME = "[tenants.other]\n"


def make_key(data, config, tenant="acme"):
    made = run_binary("token", "new", "--tenant", tenant, "--data", data, *config)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def status(server, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return request(server.port, "GET", "/v1/registry", headers=headers).status


@pytest.fixture
def installation():
    data, config = new_folder("data-"), settings(TWO_TENANTS)
    return data, config, make_key(data, config)


def test_a_key_whose_table_was_deleted_is_refused_and_everyone_says_so(installation):
    data, config, key = installation
    with Server(data=data, arguments=config) as server:
        assert status(server, key) == 200
    without = settings(WITHOUT_ACME)
    with Server(data=data, arguments=without) as server:
        assert status(server, key) == 401
        assert status(server) == 401
        assert "do not name the tenant `acme`" in server.log_text()
    listed = run_binary("token", "list", "--data", data, *without)
    assert "acme" in listed.stdout and "REFUSED" in listed.stdout, listed.stdout
    [entry] = json.loads(run_binary("token", "list", "--json", "--data", data, *without).stdout)["keys"]
    assert "[tenants.acme]" in entry["refused"], entry
    doctor = run_binary("doctor", "--port", "0", "--data", data, *without)
    assert any(line.startswith("WARN") and "tenants.acme" in line for line in doctor.stdout.splitlines()), doctor.stdout
    revoked = run_binary("token", "revoke", entry["id"], "--data", data, *without)
    assert revoked.returncode == 0, revoked.stderr


def test_a_server_without_its_settings_does_not_open_its_doors(installation):
    data, _, key = installation
    with Server(data=data) as server:
        assert status(server) == 401
        assert status(server, key) == 401, "its tenant has no table any more"


def test_deleting_the_keys_is_the_decision_that_opens_the_doors(installation):
    data, _, _ = installation
    refused = run_binary("token", "delete-all", "--data", data)
    assert refused.returncode == 2 and "--yes" in refused.stderr, refused
    deleted = run_binary("token", "delete-all", "--yes", "--data", data)
    assert deleted.returncode == 0 and "1 API keys were deleted" in deleted.stdout, deleted
    with Server(data=data) as server:
        assert status(server) == 200


def test_settings_with_tenants_require_keys_even_if_the_database_with_the_keys_is_lost():
    with Server(arguments=settings(TWO_TENANTS)) as server:
        assert status(server) == 401


def test_the_first_key_closes_a_server_that_is_running():
    with Server() as server:
        assert status(server) == 200
        key = make_key(server.data, (), "local")
        deadline = time.monotonic() + 30
        while status(server) == 200 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert status(server) == 401
        assert status(server, key) == 200


def test_a_person_alone_uses_keys_of_local_without_settings():
    data = new_folder("data-")
    key = make_key(data, (), "local")
    with Server(data=data) as server:
        assert status(server) == 401
        assert status(server, key) == 200
        assert "do not name the tenant" not in server.log_text()
    listed = run_binary("token", "list", "--data", data)
    assert "local" in listed.stdout and "REFUSED" not in listed.stdout, listed.stdout
    doctor = run_binary("doctor", "--port", "0", "--data", data)
    assert "tenants.local" not in doctor.stdout, doctor.stdout
    refused = run_binary("token", "new", "--tenant", "acme", "--data", data)
    assert refused.returncode == 3 and "[tenants.NAME]" in refused.stderr, refused


def test_keys_of_local_need_a_table_as_soon_as_another_tenant_has_one():
    data = new_folder("data-")
    key = make_key(data, (), "local")
    others, both = settings(WITHOUT_ACME), settings(WITHOUT_ACME + "[tenants.local]\n")
    with Server(data=data, arguments=others) as server:
        assert status(server, key) == 401
        assert "do not name the tenant `local`" in server.log_text()
    listed = run_binary("token", "list", "--data", data, *others)
    assert "REFUSED" in listed.stdout, listed.stdout
    refused = run_binary("token", "new", "--tenant", "local", "--data", data, *others)
    assert refused.returncode == 3 and "[tenants.NAME]" in refused.stderr, refused
    with Server(data=data, arguments=both) as server:
        assert status(server, key) == 200


def test_the_local_process_is_the_operator_whatever_keys_exist(installation):
    data, config, _ = installation
    assert run_binary("session", "list", "--data", data, *config).returncode == 0
    assert Path(data).stat().st_mode & 0o077 == 0, "only the operator can read the folder"
