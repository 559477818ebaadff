"""Reads and writes on etcd, whose keys and values are base64 on the wire and whose integers are text."""

import pytest

from foreign_servers import Etcd
from lib.mcp_client import over_http
from lib.server import Server, new_folder
from programs import Session

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def etcd():
    with Etcd() as started:
        yield started


@pytest.fixture(scope="module")
def client(portal, etcd):
    folder = new_folder("catalogs-")
    etcd.catalog(folder)
    with Server(arguments=("--catalogs", folder)) as server:
        with portal.wrap_async_context_manager(over_http(server)()) as connected:
            yield connected


# --- reads


@pytest.fixture(scope="module")
def readable(portal, client, etcd):
    etcd.put("read/color", "blue")
    etcd.put("read/größe", '80 % "wide"\tand\nhigh')
    return portal.call(Session.open, client, "read keys", "etcd", "Key", "Member", "Status")


async def test_a_range_is_decoded_from_base64_with_integers_from_text(readable):
    rows = await readable.rows('Key{from="read/", until="read0"}[key, value, version]')
    assert rows[0] == {"key": "read/color", "value": "blue", "version": "1"}, rows
    assert rows[1]["key"] == "read/größe" and rows[1]["value"] == '80 % "wide"\\tand\\nhigh', rows
    assert len(rows) == 2, rows


async def test_a_get_by_a_key_that_is_base64_on_the_wire(readable):
    assert await readable.column('Key("read/größe")[key]') == ["read/größe"]
    assert await readable.column('Key("read/color")[value]') == ["blue"]


async def test_a_missing_key_is_reported_though_the_server_answers_200(readable):
    await readable.refusal('Key("read/nothing")')


async def test_an_empty_range_is_no_rows_and_no_error(readable):
    assert await readable.rows('Key{from="nothing/", until="nothing0"}[key]') == []


async def test_members_and_a_singleton_are_read_with_post(etcd, readable):
    assert await readable.column("Member[name]") == ["default"]
    version = etcd.ask("POST", "/v3/maintenance/status", {})["version"]
    assert await readable.column("Status.now()[version]") == [version]


# --- writes


@pytest.fixture(scope="module")
def writable(portal, client):
    return portal.call(Session.open, client, "write keys", "etcd", "Key", "Lease")


async def test_a_create_puts_the_key_with_exactly_the_value(etcd, writable):
    value = 'naïve "quoted" {value}\n\\n = 100%'
    await writable.write(f'Key.put(key="write/ä b", value=<<END\n{value}\nEND)')
    assert etcd.value("write/ä b") == value


async def test_an_update_replaces_the_value(etcd, writable):
    await writable.write('Key("write/ä b").set(value="second")')
    assert etcd.value("write/ä b") == "second"


async def test_an_action_with_a_nested_body_in_a_list_compares_and_swaps(etcd, writable):
    etcd.put("write/state", "open")
    await writable.write('Key("write/state").swap(expected="open", value="done")')
    assert etcd.value("write/state") == "done"
    await writable.write('Key("write/state").swap(expected="open", value="lost")')
    assert etcd.value("write/state") == "done"


async def test_a_value_of_one_result_goes_into_the_next_call(etcd, writable):
    await writable.write('state = Key("write/state")\nKey.put(key="write/copy", value=state.value)')
    assert etcd.value("write/copy") == "done"


async def test_a_lease_is_granted_holds_a_key_and_both_go_when_it_is_revoked(etcd, writable):
    await writable.write('lease = Lease.grant(ttl=600)\nKey.put(key="write/leased", value="x", lease=lease)')
    leases = etcd.ask("POST", "/v3/lease/leases", {}).get("leases", [])
    assert len(leases) == 1 and etcd.value("write/leased") == "x", leases
    rows = await writable.rows(f'Lease("{leases[0]["ID"]}")[granted]')
    assert rows == [{"granted": "600"}], rows
    assert await writable.column('Key("write/leased").lease[id]') == [leases[0]["ID"]]
    await writable.write(f'Lease("{leases[0]["ID"]}").revoke()')
    assert etcd.value("write/leased") is None
    assert etcd.ask("POST", "/v3/lease/leases", {}).get("leases", []) == []


async def test_revoking_a_missing_lease_is_reported_with_the_status_of_the_server(writable):
    refused = await writable.refusal('Lease("4242").revoke()', force=True)
    assert "404" in refused or "not found" in refused.lower(), refused


async def test_a_delete_removes_the_key(etcd, writable):
    await writable.write('Key("write/ä b").delete()')
    assert etcd.value("write/ä b") is None
    assert etcd.value("write/state") == "done"


async def test_a_delete_runs_for_each_row_of_a_range(etcd, writable):
    await writable.write('Key{from="write/", until="write0"} => Key(_.key).delete()')
    assert etcd.value("write/state") is None and etcd.value("write/copy") is None


# --- users and roles


@pytest.fixture(scope="module")
def people(portal, client):
    return portal.call(Session.open, client, "manage users and roles", "etcd", "User", "Role")


async def test_roles_and_users_are_made_and_bare_names_in_a_list_are_rows(etcd, people):
    for role in ("reader", "writer"):
        await people.write(f'Role.add(name="{role}")')
    await people.write('User.add(name="ada", password="not a secret")')
    assert etcd.ask("POST", "/v3/auth/role/list", {})["roles"] == ["reader", "writer"]
    assert await people.column("Role[name]") == ["reader", "writer"]
    assert await people.column("User[name]") == ["ada"]


async def test_an_effect_for_each_row_grants_every_role_to_a_user_known_by_name_only(etcd, people):
    await people.write('Role => User("ada").grant(role=_.name)')
    assert etcd.ask("POST", "/v3/auth/user/get", {"name": "ada"})["roles"] == ["reader", "writer"]
    assert await people.column('Role{user="ada"}[name]') == ["reader", "writer"]


async def test_one_role_is_withdrawn_and_users_and_roles_are_deleted(etcd, people):
    await people.write('User("ada").withdraw(role="writer")')
    assert etcd.ask("POST", "/v3/auth/user/get", {"name": "ada"})["roles"] == ["reader"]
    await people.write('User("ada").delete(), Role("reader").delete(), Role("writer").delete()')
    assert "users" not in etcd.ask("POST", "/v3/auth/user/list", {})
    assert "roles" not in etcd.ask("POST", "/v3/auth/role/list", {})
