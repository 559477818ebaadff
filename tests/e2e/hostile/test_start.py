"""Starts that are refused: the exit code and the words that say what to do.

Invariant: every refusal is also one JSON object with `--json`.
"""

import json
import re
import socket
from types import SimpleNamespace

import pytest

from lib.server import new_folder, run_binary

CATALOGS = {
    "broken YAML": "catalog: x\nversion: 1\nentities: [\n",
    "an unknown field": "catalog: x\nversion: 1\ntitle: X\norigin: http://x.localhost\nentitees: {}\n",
    "a relation to nothing": (
        "catalog: x\nversion: 1\ntitle: X\norigin: http://x.localhost\nentities:\n"
        "  A:\n    about: a\n    key: [id]\n    fields: {id: string, b: {ref: Nothing}}\n"
        "capabilities:\n  a_list: {query: A, http: GET /a, rows: data}\n"
    ),
    "bytes that are not UTF-8": b"catalog: x\ntitle: caf\xe9\n",
}
CATALOG_ERRORS = {
    "broken YAML": r"broken\.yaml:\d+:\d+: ",
    "an unknown field": r"broken\.yaml:5:1: .*`entitees`.*entities",
    "a relation to nothing": r"broken\.yaml:9:\d+: .*Nothing",
    "bytes that are not UTF-8": r"broken\.yaml.*UTF-8",
}
# Each refusal: the arguments, in which {names} stand for files of the fixture below; the exit code; words of the message.
REFUSALS = {
    "a busy port": ("--port {port} --data {place}/data", 1, r"--port"),
    "a data folder below a file": ("--port 0 --data {place}/file/data", 1, r"file/data.*folder"),
    "a data folder that is a file": ("--port 0 --data {place}/file", 1, r"data folder"),
    "damaged settings": ("--config {place}/damaged.toml {free}", 2, r"damaged\.toml.*line 2, column 20"),
    "an unknown setting": ("--config {place}/unknown.toml {free}", 2, r"line 1, column 1.*`prot`.*`port`"),
    "a setting of the wrong type": ("--config {place}/wrong.toml {free}", 2, r"line 2, column 17"),
    "settings that are not UTF-8": ("--config {place}/latin.toml {free}", 2, r"latin\.toml.*UTF-8"),
    "missing settings": ("--config {place}/none.toml {free}", 3, r"none\.toml does not exist"),
    "a damaged database": ("--port 0 --data {place}/damaged", 1, r"tokamak\.db.*damaged.*backup"),
    "a database that is a word": ("--port 0 --data {place}/short", 1, r"tokamak\.db.*damaged"),
    "a damaged database on stdio": ("--stdio --data {place}/damaged", 1, r"tokamak\.db.*damaged"),
    "an address that others can reach": ("--listen 0.0.0.0 {free}", 2, r"0\.0\.0\.0 is not a loopback"),
    "an address that others can reach over IPv6": ("--listen :: {free}", 2, r"not a loopback"),
    "a port out of range": ("--port 99999", 2, r"--port"),
    "a missing catalogs folder": ("--catalogs {place}/nowhere {free}", 3, r"nowhere does not exist"),
}
for number, name in enumerate(CATALOGS):
    arguments = f"--strict-catalogs --catalogs {{place}}/catalogs-{number} {{free}}"
    REFUSALS[f"a strict catalog with {name}"] = (arguments, 2, CATALOG_ERRORS[name])


@pytest.fixture(scope="module")
def place():
    """A folder with a damaged file of each kind, and a port that is in use."""
    folder = new_folder("start-")
    (folder / "file").write_text("in the way")
    (folder / "damaged.toml").write_text('port = 3000\nlisten = "127.0.0.1\n')
    (folder / "unknown.toml").write_text("prot = 3000\n")
    (folder / "wrong.toml").write_text('port = 3000\ndrain_seconds = "ten"\n')
    (folder / "latin.toml").write_bytes(b'data = "caf\xe9"\n')
    for name, content in (("damaged", b"\x00\xffnot a database\n" * 1_000), ("short", b"hello")):
        (folder / name).mkdir()
        (folder / name / "tokamak.db").write_bytes(content)
    for number, text in enumerate(CATALOGS.values()):
        catalogs = folder / f"catalogs-{number}"
        catalogs.mkdir()
        (catalogs / "broken.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        yield SimpleNamespace(folder=folder, port=busy.getsockname()[1])


def arguments_in(place, arguments):
    return arguments.format(place=place.folder, port=place.port, free=f"--port 0 --data {place.folder}/data").split()


@pytest.mark.parametrize("arguments, code, words", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_start_ends_with_its_code_and_says_why(place, arguments, code, words):
    ended = run_binary("serve", *arguments_in(place, arguments))
    assert ended.returncode == code, f"exit {ended.returncode}: {ended.stderr}"
    assert re.search(words, ended.stderr, re.DOTALL), f"no /{words}/ in: {ended.stderr}"
    assert "panicked" not in ended.stderr and ended.stdout == "", f"{ended.stderr} {ended.stdout}"
    assert_no_data(place)


@pytest.mark.parametrize("arguments", [arguments for arguments, _, _ in REFUSALS.values()], ids=REFUSALS)
def test_a_refused_start_is_one_json_object_with_json(place, arguments):
    error = json.loads(run_binary("--json", "serve", *arguments_in(place, arguments)).stderr)["error"]
    assert re.fullmatch("[a-z_]+", error["code"]) and error["message"], error


def test_a_start_that_is_refused_for_its_arguments_leaves_no_data_folder(place):
    for arguments, _, _ in REFUSALS.values():
        if "{free}" in arguments:
            run_binary("serve", *arguments_in(place, arguments))
    assert_no_data(place)


def assert_no_data(place):
    data = place.folder / "data"
    assert not data.exists(), list(data.iterdir())
