"""Heaps in S3: the binary against moto, a server of the S3 protocol that we did not write, with a forwarder between the two.

Invariants: only the loopback is reached; the secret is in no file and no output.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from forwarder import Forwarder
from lib.client import LegacySession
from lib.s3 import BIG, SECRET, Bucket, assert_names_are_digests, environment_of_s3, moto
from lib.server import Server, new_folder, run_binary

pytestmark = pytest.mark.steps
FINAL = ("completed", "failed", "cancelled", "timed_out")
PLACE = ("--blobs", "s3://heaps/first/place")


class Agent(LegacySession):
    def __init__(self, port):
        super().__init__(port)
        self.initialize()

    def tool(self, name, **arguments):
        """The JSON of the answer, or the text of an error."""
        message = self.call(name, arguments).message()
        text = message["result"]["content"][0]["text"]
        return json.loads(text) if text.startswith("{") else text

    def until_ended(self, execution, seconds=40):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = self.tool("get_execution", execution_id=execution)
            if run["status"] in FINAL:
                return run
            time.sleep(0.1)
        raise AssertionError(f"still {run} after {seconds} s")


def tokamak(*arguments, **more):
    return run_binary(*arguments, seconds=120, **more)


def output_of(ended):
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def s3():
    """The port of moto, a forwarder to it, and two buckets."""
    with moto() as port:
        forwarder = Forwarder(port)
        with environment_of_s3(forwarder.port):
            yield SimpleNamespace(forwarder=forwarder, heaps=Bucket(port, "heaps"), plain=Bucket(port, "plain"))


@pytest.fixture(scope="module")
def bucket(s3):
    return s3.heaps


@pytest.fixture(scope="module")
def forwarder(s3):
    return s3.forwarder


@pytest.fixture(scope="module")
def data():
    return new_folder()


# --- heaps as objects


def test_a_large_heap_is_an_object_under_the_prefix_named_by_its_sha_256(bucket, data, flow):
    with Server(data, arguments=PLACE) as server:
        agent = Agent(server.port)
        run = agent.tool("run_js", code=BIG.format(n=1))
        assert run["status"] == "completed" and run["result"] == 20000, run
        keys = assert_names_are_digests(bucket, "first/place/")
        assert len(keys) >= 2, f"the heap and its engine: {keys}"
        assert not (data / "blobs").exists(), "and nothing is in the data folder"
        flow.first = run["heap"]


def test_another_process_goes_on_from_a_heap_in_s3(data, flow):
    with Server(data, arguments=PLACE) as server:
        run = Agent(server.port).tool("run_js", code="[big.length, big[3].text]", heap=flow.first)
        assert run["status"] == "completed" and run["result"] == [20000, "row 1 3743"], run


def test_the_command_line_reads_each_file_from_s3(bucket, data):
    one, two = data / "one.js", data / "two.js"
    one.write_text(BIG.format(n=2))
    two.write_text("big[9].i")
    ended = tokamak("--json", "js", "--cold", one, two, "--data", data, *PLACE)
    assert ended.returncode == 0 and json.loads(ended.stdout)[1]["result"] == 9, output_of(ended)


def test_gc_looks_under_the_prefix_and_leaves_the_rest_of_the_bucket_alone(bucket, data):
    other = hashlib.sha256(b"another's").hexdigest()
    bucket.put(f"other/{other}", b"another's")
    before = bucket.keys()
    ended = tokamak("--json", "gc", "--data", data, *PLACE)
    assert ended.returncode == 0, output_of(ended)
    counted = json.loads(ended.stdout)
    assert counted["kept_blobs"] == len(bucket.keys("first/place/")) and counted["blobs"] == 0, counted
    assert bucket.keys() == before


# --- S3 that does not answer


@pytest.fixture(scope="module")
def settings(s3):
    path = new_folder() / "settings.toml"
    path.write_text('[blobs]\nurl = "s3://heaps/first/place"\ntimeout_ms = 3000\nretries = 1\n')
    return path


@pytest.fixture(scope="module")
def agent(data, settings):
    with Server(data, arguments=("--config", settings)) as server:
        yield Agent(server.port)


@pytest.fixture
def heap(flow):
    return flow.first


def test_while_s3_is_away_a_run_with_a_large_heap_says_so_and_is_not_lost(forwarder, heap, agent, flow):
    warm = agent.tool("run_js", code="big.length", heap=heap)
    assert warm["status"] == "completed", warm
    forwarder.cut()
    flow.ran = agent.tool("run_js", code=BIG.format(n=4), timeout_ms=120000)
    assert flow.ran["status"] == "running" and "heap" not in flow.ran, flow.ran
    assert "blobs_unreachable: s3://heaps/first/place/" in flow.ran["warning"], flow.ran


def test_while_s3_is_away_small_heaps_go_on_in_the_database(agent):
    small = agent.tool("run_js", code="globalThis.x = 1; x")
    assert small["status"] == "completed", small


def test_when_s3_is_back_the_run_goes_on_and_completes(forwarder, agent, flow):
    forwarder.open()
    ended = agent.until_ended(flow.ran["execution_id"])
    assert ended["status"] == "completed" and ended["result"] == 20000, ended
    repeated = agent.tool("run_js", code="big[1].text", heap=ended["heap"])
    assert repeated["result"].startswith("row 4 "), repeated


def test_a_run_ends_at_its_deadline_when_s3_stays_away_and_says_why(forwarder, agent, flow):
    forwarder.cut()
    flow.ran = agent.tool("run_js", code=BIG.format(n=5), timeout_ms=2000)
    ended = agent.until_ended(flow.ran["execution_id"])
    assert ended["status"] == "timed_out", ended
    assert "blobs_unreachable" in ended["error"]["message"], ended
    forwarder.open()


def test_while_s3_is_away_a_heap_that_must_be_read_is_not_taken_for_an_empty_one(forwarder, data, heap, settings):
    forwarder.cut()
    file = new_folder() / "big.js"
    file.write_text("big.length")
    ended = tokamak("js", file, "--heap", heap, "--data", data, "--config", settings)
    assert ended.returncode == 1 and "blobs_unreachable" in output_of(ended), output_of(ended)
    forwarder.open()


def test_a_server_starts_while_s3_is_away_and_uses_it_when_it_is_back(forwarder, data, heap, settings):
    forwarder.cut()
    back = threading.Timer(3, forwarder.open)
    back.start()
    try:
        with Server(data, arguments=("--config", str(settings))) as server:
            back.join()
            run = Agent(server.port).tool("run_js", code="big.length", heap=heap)
            assert run["status"] == "completed" and run["result"] == 20000, run
            assert "blobs" in server.log_text(), "and says so"
    finally:
        back.join()


# --- a cache of objects


@pytest.fixture(scope="module")
def cached(s3):
    cache = new_folder() / "copies"
    arguments = ("--blobs", "s3://heaps/cached", "--blob-cache", str(cache))
    return SimpleNamespace(data=new_folder(), cache=cache, arguments=arguments)


def test_a_cache_folder_has_a_copy_of_each_object(bucket, cached, flow):
    with Server(cached.data, arguments=cached.arguments) as server:
        flow.cached_run = Agent(server.port).tool("run_js", code=BIG.format(n=3))
        keys = assert_names_are_digests(bucket, "cached/")
        kept = {f.parent.name + f.name for f in cached.cache.glob("??/*")}
        assert kept == {key.removeprefix("cached/") for key in keys}, kept


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_missing_or_damaged_cache_changes_no_answer(bucket, cached, flow, how):
    if how == "gone":
        shutil.rmtree(cached.cache)
    else:
        for copy in cached.cache.glob("??/*"):
            copy.write_bytes(copy.read_bytes()[:-1] + b"?")
    with Server(cached.data, arguments=cached.arguments) as server:
        repeated = Agent(server.port).tool("run_js", code="big[5].text", heap=flow.cached_run["heap"])
        assert repeated["status"] == "completed" and repeated["result"].startswith("row 3 "), repeated
        for copy in cached.cache.glob("??/*"):
            name = copy.parent.name + copy.name
            if bucket.get(f"cached/{name}") and how == "gone":
                assert hashlib.sha256(copy.read_bytes()).hexdigest() == name


# --- doctor


def test_doctor_writes_reads_and_removes_a_probe(s3, data):
    ended = tokamak("doctor", "--data", data, "--port", "0", "--blobs", "s3://heaps/probe")
    assert re.search(r"^ok +blobs +blobs in s3://heaps/probe ", ended.stdout, re.M), output_of(ended)


DOCTOR_PROBLEMS = {
    "no such bucket": ("s3://nowhere-at-all/x", {}, "blobs_no_bucket"),
    "no server": ("s3://heaps/x", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "blobs_unreachable"),
    "no credentials": ("s3://heaps/x", {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "AWS_ACCESS_KEY_ID"),
}


@pytest.mark.parametrize("blobs, environment, word", DOCTOR_PROBLEMS.values(), ids=DOCTOR_PROBLEMS)
def test_doctor_names_a_problem_with_s3(s3, data, blobs, environment, word):
    ended = tokamak("doctor", "--data", data, "--port", "0", "--blobs", blobs, env={**os.environ, **environment})
    line = next(line for line in ended.stdout.splitlines() if re.match(r"FAIL +blobs", line))
    assert ended.returncode == 1 and word in line, output_of(ended)


def test_a_missing_bucket_is_named_at_the_start(s3, data):
    ended = tokamak("serve", "--data", data, "--port", "0", "--blobs", "s3://nowhere-at-all/x")
    assert ended.returncode == 1 and "blobs_no_bucket: s3://nowhere-at-all/x" in output_of(ended), output_of(ended)


# --- other names of the flags


def test_s3_bucket_cache_dir_and_session_db_path(s3):
    data, database, cache = new_folder(), new_folder() / "rows.db", new_folder()
    FLAGS = ("--s3-bucket", "plain", "--cache-dir", str(cache), "--session-db-path", str(database))
    bucket = s3.plain
    with Server(data, arguments=FLAGS) as server:
        run = Agent(server.port).tool("run_js", code=BIG.format(n=6))
        assert run["status"] == "completed", run
        keys = assert_names_are_digests(bucket, "")
        assert {f.parent.name + f.name for f in cache.glob("??/*")} == set(keys)
        assert database.is_file() and not (data / "tokamak.db").exists()
        ended = tokamak("heap", "show", run["heap"], "--data", data, *FLAGS)
        assert ended.returncode == 0 and run["heap"] in ended.stdout, output_of(ended)


def test_directory_path_and_a_folder_for_session_db_path():
    blobs = new_folder()
    with Server(new_folder(), arguments=("--directory-path", blobs, "--session-db-path", new_folder())) as server:
        run = Agent(server.port).tool("run_js", code=BIG.format(n=7))
        assert run["status"] == "completed" and len(list(blobs.glob("??/*"))) >= 2, run


def test_a_second_database_may_not_use_the_blobs_of_the_first(s3):
    ended = tokamak("doctor", "--data", new_folder(), "--port", "0", "--s3-bucket", "plain")
    assert ended.returncode == 1 and "blobs_taken: s3://plain/owner" in output_of(ended), output_of(ended)


WRONG_FLAGS = [
    (("--directory-path", "x", "--s3-bucket", "heaps"), ("--directory-path and --s3-bucket", "give one")),
    (("--blobs", "s3://heaps", "--s3-bucket", "heaps"), ("--blobs and --s3-bucket", "give one")),
    (("--cache-dir", "x"), ("--blob-cache", "--blobs s3://")),
    (("--blobs", "gs://heaps"), ("s3://BUCKET/PREFIX",)),
    (("--blobs", "s3://Not_A_Bucket"), ("bucket",)),
]


@pytest.mark.parametrize("wrong_flags, words", WRONG_FLAGS, ids=[" ".join(flags) for flags, _ in WRONG_FLAGS])
def test_wrong_flags_are_refused_with_what_to_write(s3, data, wrong_flags, words):
    ended = tokamak("gc", "--data", data, *wrong_flags)
    assert ended.returncode == 2 and all(word in output_of(ended) for word in words), output_of(ended)


def test_the_secret_is_in_no_file_of_the_data_folders_and_in_no_log():
    folders = [path for name in ("folder-*", "data-*", "server-*") for path in Path(tempfile.gettempdir()).glob(name)]
    for path in [*folders, *(file for folder in folders for file in folder.rglob("*"))]:
        try:
            content = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            # Another worker removes its own files at the same time.
            continue
        assert SECRET.encode() not in content, path
