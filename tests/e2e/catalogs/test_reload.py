"""Catalog files that change while the server runs.

Invariant: a session means what it meant when it was opened; every wait has an end.
"""

import itertools
import json
import os
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lib.answers import seeds, symbols, tables
from lib.client import modern_call, refusal_of, request, text_of
from lib.server import REPOSITORY, Server, run_binary

pytestmark = pytest.mark.steps
# The server promises about a second; the machine may be busy.
SECONDS_UNTIL_OFFERED = 30
PROBES = itertools.count()
SHIPPED = len(list((REPOSITORY / "catalogs").glob("*.yaml")))


class VersionedApi:
    """An API whose rows say which version of its catalog was used."""

    def __enter__(self):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                _, version, entity = self.path.split("?")[0].split("/")
                body = json.dumps({"data": [{"id": f"{entity}-{version}", "extra": "more"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def catalog(self, version, name="live", entities=("A", "B")):
        """A catalog of this API. Version 2 and later have one more field."""
        fields = "{id: string, extra: string}" if version > 1 else "{id: string}"
        lines = [f"catalog: {name}", f"version: {version}", "title: Live", f"origin: {self.origin}", "entities:"]
        lines += [f"  {entity}: {{about: a thing, key: [id], fields: {fields}}}" for entity in entities]
        lines += ["capabilities:"]
        lines += [f'  list_{e}: {{query: {e}, http: "GET /v{version}/{e}", rows: data}}' for e in entities]
        return "\n".join(lines) + "\n"


def new_folder():
    return Path(tempfile.mkdtemp(prefix="catalogs-"))


def replace(path, text):
    """Writes a new file and renames it over the old one, as careful editors do."""
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    os.replace(beside, path)


def readyz(server):
    answer = request(server.port, "GET", "/readyz")
    assert answer.status == 200, f"{answer.status} {answer.body[:200]}"
    return json.loads(answer.body)


def wait_until(what, true):
    deadline = time.monotonic() + SECONDS_UNTIL_OFFERED
    while not true():
        assert time.monotonic() < deadline, f"not within {SECONDS_UNTIL_OFFERED} s: {what}"
        time.sleep(0.05)


def context(server, intent, *entities, api="live"):
    return modern_call(server.port, "plasm_context", {"intent": intent, "seeds": seeds(*entities, api=api)})


def open_session(server, intent, *entities, api="live"):
    """The slot and the table of a session."""
    message = context(server, intent, *entities, api=api)
    return message["result"]["_meta"]["plasm"]["logical_session_ref"], text_of(message)


def ids(server, slot, program):
    ran = text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": slot, "program": program}))
    return [row["id"] for row in tables(ran)["result"]]


def offers(server, version):
    """Whether a new session runs on this version."""
    slot, _ = open_session(server, f"probe {next(PROBES)}", "A")
    return ids(server, slot, "e1") == [f"A-v{version}"]


@pytest.fixture(scope="module")
def api():
    with VersionedApi() as started:
        yield started


# --- the life of one file


@pytest.fixture(scope="module")
def folder():
    return new_folder()


@pytest.fixture(scope="module")
def live(folder):
    return folder / "live.yaml"


@pytest.fixture(scope="module")
def server(folder, api):
    with Server(arguments=("--catalogs", str(folder))) as started:
        yield started


def test_an_added_file_is_offered_without_a_restart(api, server, live, flow):
    assert "live" in refusal_of(context(server, "too early", "A"))
    live.write_text(api.catalog(1))
    wait_until("live is offered", lambda: readyz(server)["catalogs"] == SHIPPED + 1)
    flow.old, table = open_session(server, "old", "A")
    assert symbols(table) == {"e1": "A"} and ids(server, flow.old, "e1") == ["A-v1"], table


def test_after_a_change_a_new_session_gets_the_new_version(api, server, live):
    replace(live, api.catalog(2))
    wait_until("version 2", lambda: offers(server, 2))
    assert "extra" in open_session(server, "new", "A")[1]


def test_after_a_change_an_old_session_keeps_its_version_in_later_waves_too(server, flow):
    assert ids(server, flow.old, "e1") == ["A-v1"]
    _, wave = open_session(server, "old", "B")
    assert symbols(wave) == {"e2": "B"} and "extra" not in wave, wave
    assert ids(server, flow.old, "e2") == ["B-v1"] and ids(server, flow.old, "e1") == ["A-v1"]


def test_a_broken_file_is_reported_with_its_place_and_the_last_good_version_stays(api, server, live):
    live.write_text(api.catalog(3).replace("capabilities:", "capabilitys:"))
    wait_until("a problem", lambda: readyz(server)["catalog_problems"]["count"] == 1)
    problem = readyz(server)["catalog_problems"]["first"][0]
    assert f"{live}:8:1: E0501" in problem and "version 2 stays offered" in problem, problem
    assert readyz(server)["catalogs"] == SHIPPED + 1 and offers(server, 2)
    log = [json.loads(line) for line in Path(server.log).read_text().splitlines()[1:]]
    warned = [line for line in log if line["level"] == "WARN" and f"{live}:8:1: E0501" in line["message"]]
    assert len(warned) == 1, log


def test_a_repaired_file_is_offered_again(api, server, live):
    live.write_text(api.catalog(4))
    wait_until("no problem", lambda: readyz(server)["catalog_problems"]["count"] == 0)
    assert offers(server, 4)


def test_a_second_file_that_claims_the_same_name_is_reported_and_the_first_stays(api, server, folder, live):
    (folder / "a-rival.yaml").write_text(api.catalog(9))
    wait_until("a problem", lambda: readyz(server)["catalog_problems"]["count"] == 1)
    assert str(live) in readyz(server)["catalog_problems"]["first"][0] and offers(server, 4)
    (folder / "a-rival.yaml").unlink()
    wait_until("no problem", lambda: readyz(server)["catalog_problems"]["count"] == 0)


def test_a_removed_catalog_stays_for_the_sessions_that_pinned_it(server, live, flow):
    live.unlink()
    wait_until("live is gone", lambda: readyz(server)["catalogs"] == SHIPPED)
    assert "live" in refusal_of(context(server, "too late", "A"))
    assert ids(server, flow.old, "e1") == ["A-v1"] and ids(server, flow.old, "e2") == ["B-v1"]


def test_sessions_of_a_removed_catalog_go_on_after_a_restart(server, folder, flow):
    server.kill()
    with Server(data=server.data, arguments=("--catalogs", str(folder))) as second:
        assert ids(second, flow.old, "e1") == ["A-v1"] and ids(second, flow.old, "e2") == ["B-v1"]


# --- a folder that has broken files when the server starts


@pytest.fixture(scope="module")
def broken_folder():
    folder = new_folder()
    (folder / "broken.yaml").write_text("catalog: [\n")
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    return folder


@pytest.fixture(scope="module")
def server_beside_broken_files(broken_folder):
    with Server(arguments=("--catalogs", str(broken_folder))) as started:
        yield started


def test_a_server_starts_beside_a_broken_file_a_pipe_and_a_folder_and_reports_them(api, broken_folder, server_beside_broken_files):
    (broken_folder / "live.yaml").write_text(api.catalog(1))
    wait_until("live is offered", lambda: readyz(server_beside_broken_files)["catalogs"] == SHIPPED + 1)
    assert readyz(server_beside_broken_files)["catalog_problems"]["count"] == 3, readyz(server_beside_broken_files)
    assert offers(server_beside_broken_files, 1)


def test_a_file_that_is_repaired_after_the_start_is_offered(api, broken_folder, server_beside_broken_files):
    replace(broken_folder / "broken.yaml", api.catalog(1, name="late"))
    wait_until("late is offered", lambda: readyz(server_beside_broken_files)["catalogs"] == SHIPPED + 2)


def test_a_server_that_stops_does_not_wait_for_the_watch(server_beside_broken_files):
    assert server_beside_broken_files.stop(5) == 0


def test_doctor_names_every_file_that_is_not_offered(broken_folder):
    checked = run_binary("doctor", "--port", "0", "--data", tempfile.mkdtemp(prefix="data-"), "--catalogs", broken_folder)
    output = checked.stdout
    assert checked.returncode == 1, output
    assert "pipe.yaml" in output and "folder.yaml" in output and "live" in output, output


# --- links and shipped catalogs


def test_a_config_map_whose_link_is_swapped_is_followed(api):
    folder = new_folder()
    for version in (1, 2):
        data = folder / f"..2024_{version}"
        data.mkdir()
        (data / "live.yaml").write_text(api.catalog(version))
    (folder / "..data").symlink_to("..2024_1")
    (folder / "live.yaml").symlink_to("..data/live.yaml")
    with Server(arguments=("--catalogs", str(folder))) as server:
        assert offers(server, 1)
        (folder / "..data_tmp").symlink_to("..2024_2")
        os.replace(folder / "..data_tmp", folder / "..data")
        wait_until("version 2", lambda: offers(server, 2))


def test_a_file_with_the_id_of_a_shipped_catalog_replaces_it_until_the_file_is_removed(api):
    folder = new_folder()
    with Server(arguments=("--catalogs", str(folder))) as server:
        slot, _ = open_session(server, "before", "Project", api="demo")
        (folder / "mine.yaml").write_text(api.catalog(1, name="demo"))
        wait_until("the file's demo", lambda: is_known(server, "mine", "A"))
        assert "which replaces the shipped catalog" in Path(server.log).read_text()
        assert readyz(server)["catalogs"] == SHIPPED
        ran = text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": slot, "program": "e1[key]"}))
        assert "OPS" in ran, ran
        (folder / "mine.yaml").unlink()
        wait_until("the shipped demo", lambda: is_known(server, "shipped", "Project"))


def is_known(server, intent, entity):
    return not context(server, intent, entity, api="demo")["result"].get("isError")
