"""Heaps in S3: the real binary against moto, a server of the S3 protocol that nobody here wrote.

A forwarder stands between the two: moto keeps everything in memory, so what is taken away is the way to it.
Invariants: only the loopback is reached; moto and the forwarder end with the suite; the secret is in no file and no output.
"""

import hashlib
import http.client
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from harness import TOKAMAK, LegacySession, Server, Suite

suite = Suite("s3")
SECRET = "a-secret-that-nobody-prints"
# moto does not look at the signature, but gives nothing to who has none.
SIGNED = "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
# Large enough to be a blob of its own, and different for each n.
BIG = "globalThis.big = Array.from({{length: 20000}}, (_, i) => ({{i, text: `row {n} ${{i * 7919 % 10007}}`}})); big.length"
FINAL = ("completed", "failed", "cancelled", "timed_out")


class Forwarder:
    """A port that leads to another one, until it is cut."""

    def __init__(self, to):
        self.to = to
        self.port = 0
        self.open()

    def open(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        self.sockets = []
        self.up = True
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        """Nobody listens any more, and what was connected is not."""
        self.up = False
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener):
        while self.up:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.sockets += [near, far]
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    @staticmethod
    def _carry(near, far):
        other = {near: far, far: near}
        try:
            while True:
                for one in select.select([near, far], [], [])[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    other[one].sendall(data)
        except OSError:
            pass
        finally:
            near.close()
            far.close()


@contextmanager
def moto():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 40
        while True:
            assert process.poll() is None, "moto ended"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "moto does not listen"
                time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait(10)


class Bucket:
    def __init__(self, port, name):
        self.port, self.name = port, name
        assert self.ask("PUT", f"/{name}")[0] == 200

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {"Authorization": SIGNED})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def keys(self, prefix=""):
        status, listed = self.ask("GET", f"/{self.name}?list-type=2&prefix={prefix}")
        assert status == 200, listed
        # Without `owner`, which says whose prefix it is.
        return re.findall(r"<Key>((?:[^<]*/)?[0-9a-f]{64})</Key>", listed.decode())

    def get(self, key):
        return self.ask("GET", f"/{self.name}/{key}")[1]

    def put(self, key, body):
        assert self.ask("PUT", f"/{self.name}/{key}", body)[0] == 200


class Agent(LegacySession):
    def __init__(self, port):
        super().__init__(port)
        self.initialize()

    def tool(self, name, **arguments):
        """The JSON of the answer; an error's text, which is no JSON, as it is."""
        message = self.call(name, arguments).message()
        text = message["result"]["content"][0]["text"]
        return json.loads(text) if text.startswith("{") else text

    def until_ended(self, execution, seconds=40):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.tool("get_execution", execution_id=execution)
            if found["status"] in FINAL:
                return found
            time.sleep(0.1)
        raise AssertionError(f"still {found} after {seconds} s")


def tokamak(*arguments, environment=None):
    command = [TOKAMAK, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, env={**os.environ, **(environment or {})})


def said(process):
    return process.stdout + process.stderr


def folder():
    return Path(tempfile.mkdtemp(prefix="folder-"))


def objects_are_their_names(bucket, prefix):
    keys = bucket.keys(prefix)
    assert keys, f"nothing under {prefix}"
    for key in keys:
        name = key.removeprefix(prefix)
        assert hashlib.sha256(bucket.get(key)).hexdigest() == name, f"{key} is not what its name says"
    return keys


def heaps(bucket):
    data, place = folder(), ("--blobs", "s3://heaps/first/place")
    with Server(data, arguments=place) as server:
        agent = Agent(server.port)
        with suite.case("a large heap is an object under the prefix, named by its SHA-256"):
            ran = agent.tool("run_js", code=BIG.format(n=1))
            assert ran["status"] == "completed" and ran["result"] == 20000, ran
            keys = objects_are_their_names(bucket, "first/place/")
            assert len(keys) >= 2, f"the heap and its engine: {keys}"
            assert not (data / "blobs").exists(), "and nothing is in the data folder"
            first = ran["heap"]
    with Server(data, arguments=place) as server:
        with suite.case("another process goes on from it"):
            ran = Agent(server.port).tool("run_js", code="[big.length, big[3].text]", heap=first)
            assert ran["status"] == "completed" and ran["result"] == [20000, "row 1 3743"], ran
    with suite.case("the command line, cold: each file from S3"):
        one, two = data / "one.js", data / "two.js"
        one.write_text(BIG.format(n=2))
        two.write_text("big[9].i")
        done = tokamak("--json", "js", "--cold", one, two, "--data", data, *place)
        assert done.returncode == 0 and json.loads(done.stdout)[1]["result"] == 9, said(done)
    with suite.case("gc looks under the prefix, and leaves the rest of the bucket alone"):
        other = hashlib.sha256(b"another's").hexdigest()
        bucket.put(f"other/{other}", b"another's")
        before = bucket.keys()
        done = tokamak("--json", "gc", "--data", data, *place)
        assert done.returncode == 0, said(done)
        counted = json.loads(done.stdout)
        assert counted["kept_blobs"] == len(bucket.keys("first/place/")) and counted["blobs"] == 0, counted
        assert bucket.keys() == before
    return data, first


def copies(bucket):
    data, cache = folder(), folder() / "copies"
    place = ("--blobs", "s3://heaps/cached", "--blob-cache", cache)
    with Server(data, arguments=tuple(map(str, place))) as server:
        with suite.case("with a cache, a copy of each object is in its folder"):
            ran = Agent(server.port).tool("run_js", code=BIG.format(n=3))
            keys = objects_are_their_names(bucket, "cached/")
            kept = {f.parent.name + f.name for f in cache.glob("??/*")}
            assert kept == {key.removeprefix("cached/") for key in keys}, kept
    for how in ("gone", "damaged"):
        if how == "gone":
            shutil.rmtree(cache)
        else:
            for copy in cache.glob("??/*"):
                copy.write_bytes(copy.read_bytes()[:-1] + b"?")
        with Server(data, arguments=tuple(map(str, place))) as server:
            with suite.case(f"a cache that is {how} costs time and nothing else"):
                again = Agent(server.port).tool("run_js", code="big[5].text", heap=ran["heap"])
                assert again["status"] == "completed" and again["result"].startswith("row 3 "), again
                for copy in cache.glob("??/*"):
                    name = copy.parent.name + copy.name
                    if bucket.get(f"cached/{name}") and how == "gone":
                        assert hashlib.sha256(copy.read_bytes()).hexdigest() == name


def away(forwarder, data, heap):
    settings = folder() / "settings.toml"
    settings.write_text('[blobs]\nurl = "s3://heaps/first/place"\ntimeout_ms = 3000\nretries = 1\n')
    with Server(data, arguments=("--config", str(settings))) as server:
        agent = Agent(server.port)
        with suite.case("S3 is away: a run that leaves a large heap says so, and is not lost"):
            warm = agent.tool("run_js", code="big.length", heap=heap)
            assert warm["status"] == "completed", warm
            forwarder.cut()
            ran = agent.tool("run_js", code=BIG.format(n=4), timeout_ms=120000)
            assert ran["status"] == "running" and "heap" not in ran, ran
            assert "blobs_unreachable: s3://heaps/first/place/" in ran["warning"], ran
        with suite.case("S3 is away: small heaps go on, in the database"):
            small = agent.tool("run_js", code="globalThis.x = 1; x")
            assert small["status"] == "completed", small
        with suite.case("S3 is back: the run goes on and completes"):
            forwarder.open()
            ended = agent.until_ended(ran["execution_id"])
            assert ended["status"] == "completed" and ended["result"] == 20000, ended
            again = agent.tool("run_js", code="big[1].text", heap=ended["heap"])
            assert again["result"].startswith("row 4 "), again
        with suite.case("S3 is away until the deadline: the run ends, and says why"):
            forwarder.cut()
            ran = agent.tool("run_js", code=BIG.format(n=5), timeout_ms=2000)
            ended = agent.until_ended(ran["execution_id"])
            assert ended["status"] == "timed_out", ended
            assert "blobs_unreachable" in ended["error"]["message"], ended
            forwarder.open()
        with suite.case("S3 is away: a heap that must be read is not taken for an empty one"):
            forwarder.cut()
            file = folder() / "big.js"
            file.write_text("big.length")
            done = tokamak("js", file, "--heap", heap, "--data", data, "--config", settings)
            assert done.returncode == 1 and "blobs_unreachable" in said(done), said(done)
            forwarder.open()
    forwarder.cut()
    with suite.case("S3 is away at the start: the server starts, and uses it when it is back"):
        back = threading.Timer(3, forwarder.open)
        back.start()
        try:
            with Server(data, arguments=("--config", str(settings))) as server:
                back.join()
                ran = Agent(server.port).tool("run_js", code="big.length", heap=heap)
                assert ran["status"] == "completed" and ran["result"] == 20000, ran
                assert "blobs" in Path(server.log).read_text(), "and says so"
        finally:
            back.join()


def doctor(forwarder):
    data = folder()
    with suite.case("doctor writes, reads and removes a probe"):
        done = tokamak("doctor", "--data", data, "--port", "0", "--blobs", "s3://heaps/probe")
        assert re.search(r"^ok +blobs +s3://heaps/probe ", done.stdout, re.M), said(done)
    for name, place, environment, word in (
        ("no such bucket", "s3://nowhere-at-all/x", {}, "blobs_no_bucket"),
        ("nobody listens", "s3://heaps/x", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "blobs_unreachable"),
        ("no credentials", "s3://heaps/x", {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "AWS_ACCESS_KEY_ID"),
    ):
        with suite.case(f"doctor: {name}"):
            done = tokamak("doctor", "--data", data, "--port", "0", "--blobs", place, environment=environment)
            line = next(line for line in done.stdout.splitlines() if re.match(r"FAIL +blobs", line))
            assert done.returncode == 1 and word in line, said(done)
    with suite.case("a bucket that is not there is told at the start"):
        done = tokamak("serve", "--data", data, "--port", "0", "--blobs", "s3://nowhere-at-all/x")
        assert done.returncode == 1 and "blobs_no_bucket: s3://nowhere-at-all/x" in said(done), said(done)


def other_names(bucket):
    data, database, cache = folder(), folder() / "rows.db", folder()
    flags = ("--s3-bucket", "plain", "--cache-dir", str(cache), "--session-db-path", str(database))
    with Server(data, arguments=flags) as server:
        with suite.case("--s3-bucket, --cache-dir and --session-db-path"):
            ran = Agent(server.port).tool("run_js", code=BIG.format(n=6))
            assert ran["status"] == "completed", ran
            keys = objects_are_their_names(bucket, "")
            assert {f.parent.name + f.name for f in cache.glob("??/*")} == set(keys)
            assert database.is_file() and not (data / "tokamak.db").exists()
            done = tokamak("heap", "show", ran["heap"], "--data", data, *flags)
            assert done.returncode == 0 and ran["heap"] in done.stdout, said(done)
    blobs = folder()
    with Server(data, arguments=("--directory-path", str(blobs), "--session-db-path", str(folder()))) as server:
        with suite.case("--directory-path, and a folder for --session-db-path"):
            ran = Agent(server.port).tool("run_js", code=BIG.format(n=7))
            assert ran["status"] == "completed" and len(list(blobs.glob("??/*"))) >= 2, ran
    with suite.case("another database is not let at the blobs of the first"):
        done = tokamak("doctor", "--data", folder(), "--port", "0", "--s3-bucket", "plain")
        assert done.returncode == 1 and "blobs_taken: s3://plain/owner" in said(done), said(done)
    for flags, words in (
        (("--directory-path", "x", "--s3-bucket", "heaps"), ("--directory-path and --s3-bucket", "give one")),
        (("--blobs", "s3://heaps", "--s3-bucket", "heaps"), ("--blobs and --s3-bucket", "give one")),
        (("--cache-dir", "x"), ("--blob-cache", "--blobs s3://")),
        (("--blobs", "gs://heaps"), ("s3://BUCKET/PREFIX",)),
        (("--blobs", "s3://Not_A_Bucket"), ("bucket",)),
    ):
        with suite.case(f"refused, with what to write: {' '.join(flags)}"):
            done = tokamak("gc", "--data", data, *flags)
            assert done.returncode == 2 and all(word in said(done) for word in words), said(done)


def main():
    with moto() as port:
        forwarder = Forwarder(port)
        os.environ.update(
            AWS_ACCESS_KEY_ID="AKIDEXAMPLE",
            AWS_SECRET_ACCESS_KEY=SECRET,
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{forwarder.port}",
        )
        bucket, plain = Bucket(port, "heaps"), Bucket(port, "plain")
        with suite.group("heaps in S3"):
            data, heap = heaps(bucket)
            away(forwarder, data, heap)
        with suite.group("a cache"):
            copies(bucket)
        with suite.group("doctor"):
            doctor(forwarder)
        with suite.group("other names of the flags"):
            other_names(plain)
        with suite.case("the secret is in no file of the data folders and in no log"):
            for path in Path(tempfile.gettempdir()).rglob("*"):
                assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


if __name__ == "__main__":
    main()
    suite.end()
