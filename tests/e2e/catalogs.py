"""Catalogs that change while the server runs: the part of `clients.py` that writes into a catalogs folder.

Invariant: a session means what it meant when it was opened; every wait has an end.
"""

import itertools
import json
import os
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from answers import seeds, symbols, tables
from harness import TOKAMAK, Server, modern_call, refusal_of, request, text_of

# About a second is promised; the machine may be busy.
PATIENCE = 8
PROBES = itertools.count()
SHIPPED = len(list((Path(__file__).parents[2] / "catalogs").glob("*.yaml")))


class Api:
    """An API that says in each row which version of it was asked."""

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
        """Version 2 and later have a field more."""
        fields = "{id: string, extra: string}" if version > 1 else "{id: string}"
        lines = [f"catalog: {name}", f"version: {version}", "title: Live", f"origin: {self.origin}", "entities:"]
        lines += [f"  {entity}: {{about: a thing, key: [id], fields: {fields}}}" for entity in entities]
        lines += ["capabilities:"]
        lines += [f'  list_{e}: {{query: {e}, http: "GET /v{version}/{e}", rows: data}}' for e in entities]
        return "\n".join(lines) + "\n"


def new_folder():
    return Path(tempfile.mkdtemp(prefix="catalogs-"))


def replace(path, text):
    """As careful editors do: beside it, then over it."""
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    os.replace(beside, path)


def readyz(server):
    answer = request(server.port, "GET", "/readyz")
    assert answer.status == 200, f"{answer.status} {answer.body[:200]}"
    return json.loads(answer.body)


def until(what, true):
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.05)


def context(server, intent, *entities, api="live"):
    return modern_call(server.port, "plasm_context", {"intent": intent, "seeds": seeds(*entities, api=api)})


def opened(server, intent, *entities, api="live"):
    """The slot and the table of a session."""
    message = context(server, intent, *entities, api=api)
    return message["result"]["_meta"]["plasm"]["logical_session_ref"], text_of(message)


def ids(server, slot, program):
    ran = text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": slot, "program": program}))
    return [row["id"] for row in tables(ran)["result"]]


def offers(server, version):
    """Whether a new session runs on this version."""
    slot, _ = opened(server, f"probe {next(PROBES)}", "A")
    return ids(server, slot, "e1") == [f"A-v{version}"]


async def a_life(case, _over_http, _over_stdio):
    folder = new_folder()
    live = folder / "live.yaml"
    with Api() as api, Server(arguments=("--catalogs", str(folder))) as server:
        async with case("catalogs: a file that is added is offered without a restart"):
            assert "live" in refusal_of(context(server, "too early", "A"))
            live.write_text(api.catalog(1))
            until("live is offered", lambda: readyz(server)["catalogs"] == SHIPPED + 1)
            old, table = opened(server, "old", "A")
            assert symbols(table) == {"e1": "A"} and ids(server, old, "e1") == ["A-v1"], table
        async with case("catalogs: after a change a new session gets the new version, within about a second"):
            started = time.monotonic()
            replace(live, api.catalog(2))
            until("version 2", lambda: offers(server, 2))
            assert time.monotonic() - started < 3, f"it took {time.monotonic() - started:.1f} s"
            assert "extra" in opened(server, "new", "A")[1]
        async with case("catalogs: after a change an old session keeps its version, also in a later wave"):
            assert ids(server, old, "e1") == ["A-v1"]
            _, wave = opened(server, "old", "B")
            assert symbols(wave) == {"e2": "B"} and "extra" not in wave, wave
            assert ids(server, old, "e2") == ["B-v1"] and ids(server, old, "e1") == ["A-v1"]
        async with case("catalogs: a broken file is reported with its place, and the last good version stays"):
            live.write_text(api.catalog(3).replace("capabilities:", "capabilitys:"))
            until("a problem", lambda: readyz(server)["catalog_problems"]["count"] == 1)
            told = readyz(server)["catalog_problems"]["first"][0]
            assert f"{live}:8:1: E0501" in told and "version 2 stays offered" in told, told
            assert readyz(server)["catalogs"] == SHIPPED + 1 and offers(server, 2)
            log = [json.loads(line) for line in Path(server.log).read_text().splitlines()[1:]]
            warned = [line for line in log if line["level"] == "WARN" and f"{live}:8:1: E0501" in line["message"]]
            assert len(warned) == 1, log
        async with case("catalogs: a file that is repaired is offered again"):
            live.write_text(api.catalog(4))
            until("no problem", lambda: readyz(server)["catalog_problems"]["count"] == 0)
            assert offers(server, 4)
        async with case("catalogs: a newcomer that claims a name is reported, and the one before stays"):
            (folder / "a-rival.yaml").write_text(api.catalog(9))
            until("a problem", lambda: readyz(server)["catalog_problems"]["count"] == 1)
            assert str(live) in readyz(server)["catalog_problems"]["first"][0] and offers(server, 4)
            (folder / "a-rival.yaml").unlink()
            until("no problem", lambda: readyz(server)["catalog_problems"]["count"] == 0)
        async with case("catalogs: after a file is removed its catalog is for the sessions that pinned it only"):
            live.unlink()
            until("live is gone", lambda: readyz(server)["catalogs"] == SHIPPED)
            assert "live" in refusal_of(context(server, "too late", "A"))
            assert ids(server, old, "e1") == ["A-v1"] and ids(server, old, "e2") == ["B-v1"]
        server.kill()
        with Server(data=server.data, arguments=("--catalogs", str(folder))) as second:
            async with case("catalogs: also after a restart they go on"):
                assert ids(second, old, "e1") == ["A-v1"] and ids(second, old, "e2") == ["B-v1"]


async def at_the_start(case, _over_http, _over_stdio):
    folder = new_folder()
    (folder / "broken.yaml").write_text("catalog: [\n")
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    arguments = ("--catalogs", str(folder))
    with Api() as api, Server(arguments=arguments) as server:
        async with case("catalogs: a server starts beside a broken file, a pipe and a folder, and reports them"):
            (folder / "live.yaml").write_text(api.catalog(1))
            until("live is offered", lambda: readyz(server)["catalogs"] == SHIPPED + 1)
            assert readyz(server)["catalog_problems"]["count"] == 3, readyz(server)
            assert offers(server, 1)
        async with case("catalogs: what is repaired after the start is offered"):
            replace(folder / "broken.yaml", api.catalog(1, name="late"))
            until("late is offered", lambda: readyz(server)["catalogs"] == SHIPPED + 2)
        async with case("catalogs: a server that is told to stop does not wait for the watch"):
            assert server.stop(5) == 0
    async with case("catalogs: doctor names every file that is not offered"):
        checked = doctor(*arguments)
        told = checked.stdout.decode()
        assert checked.returncode == 1 and "pipe.yaml" in told and "folder.yaml" in told and "live" in told, told


def doctor(*arguments):
    data = tempfile.mkdtemp(prefix="data-")
    command = [TOKAMAK, "doctor", "--port", "0", "--data", data, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)


async def config_map(case, _over_http, _over_stdio):
    folder = new_folder()
    with Api() as api:
        for version in (1, 2):
            data = folder / f"..2024_{version}"
            data.mkdir()
            (data / "live.yaml").write_text(api.catalog(version))
        (folder / "..data").symlink_to("..2024_1")
        (folder / "live.yaml").symlink_to("..data/live.yaml")
        with Server(arguments=("--catalogs", str(folder))) as server:
            async with case("catalogs: a config map that is swapped is followed"):
                assert offers(server, 1)
                (folder / "..data_tmp").symlink_to("..2024_2")
                os.replace(folder / "..data_tmp", folder / "..data")
                until("version 2", lambda: offers(server, 2))


async def shipped(case, _over_http, _over_stdio):
    folder = new_folder()
    with Api() as api, Server(arguments=("--catalogs", str(folder))) as server:
        async with case("catalogs: a file with the id of a shipped catalog is offered in its place, and given back"):
            slot, _ = opened(server, "before", "Project", api="demo")
            (folder / "mine.yaml").write_text(api.catalog(1, name="demo"))
            until("the file's demo", lambda: known(server, "mine", "A"))
            assert "not from the shipped" in Path(server.log).read_text()
            assert readyz(server)["catalogs"] == SHIPPED
            ran = text_of(modern_call(server.port, "plasm_run", {"logical_session_ref": slot, "program": "e1[key]"}))
            assert "OPS" in ran, ran
            (folder / "mine.yaml").unlink()
            until("the shipped demo", lambda: known(server, "shipped", "Project"))


def known(server, intent, entity):
    return not context(server, intent, entity, api="demo")["result"].get("isError")


GROUPS = [a_life, at_the_start, config_map, shipped]
