"""Storage that lies, fails or is slow under `run_js`: a proxy between the real binary and moto that does so on request.

Invariants: a head never moves to a heap that cannot be read; a heap that cannot be read is an error that names it or its object,
never an empty or another heap; when the storage is well again the same session goes on; a caller is answered within its `wait_ms`
whatever the storage does. Only the loopback is reached.
"""

import http.client
import json
import os
import sqlite3
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from answers import seeds
from harness import Server, Suite
from js_calls import FINAL, Modern, good, until
from s3 import BIG, SECRET, Bucket, moto

suite = Suite("s3_lies")
SLOW_SECONDS = 2.5
# Of one request with what is sent again; more than a slow one takes.
TIMEOUT_MS = 8000
# A caller that waits for 100 ms is told by then, on a machine that has other things to do.
ANSWERED_SECONDS = 1.5
READ = "[rows, big.length, big[3].text]"


class Liar:
    """Passes requests for objects on to `to`, unless `put` or `get` says what to do with them instead; for one object, or for all."""

    def __init__(self, to):
        self.to, self.put, self.get, self.of, self.lies = to, None, None, "", 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def well(self):
        self.put, self.get, self.of = None, None, ""


def handler(liar):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            # Objects that are named by their digest; not the bucket, its list or its owner.
            name = self.path.split("?")[0].rsplit("/", 1)[-1]
            of_object = len(name) == 64 and name.startswith(liar.of)
            lie = {"PUT": liar.put, "GET": liar.get}.get(self.command) if of_object else None
            liar.lies += lie is not None
            try:
                self.tell(lie, body)
            except OSError:
                self.close_connection = True

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = any

        def tell(self, lie, body):
            if lie == "refused":
                return self.answer(500, [], b"<Error><Code>InternalError</Code></Error>")
            if lie == "swallowed":
                return self.answer(200, [("ETag", '"0"')], b"")
            if lie == "slow":
                time.sleep(SLOW_SECONDS)
            if lie == "cut off before":
                return self.cut()
            if lie == "kept half":
                body = body[: len(body) // 2]
            status, headers, answer = self.forward(body)
            if lie == "answer lost":
                return self.cut()
            if lie == "flipped":
                answer = answer[:-9] + bytes([answer[-9] ^ 1]) + answer[-8:]
            if lie == "another's":
                answer = answer[::-1]
            if lie == "shorter":
                answer = answer[:-100]
            self.answer(status, headers, answer, half=lie == "truncated")

        def forward(self, body):
            far = http.client.HTTPConnection("127.0.0.1", liar.to, timeout=20)
            try:
                far.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("connection", "content-length", "x-amz-checksum-sha256", "content-md5"):
                        far.putheader(name, value)
                far.putheader("Content-Length", str(len(body)))
                far.endheaders(body)
                answer = far.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                far.close()

        def answer(self, status, headers, body, half=False):
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            length = len(body)
            if self.command == "HEAD":
                length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: length // 2] if half else body)
            if half:
                self.cut()

        def cut(self):
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)

    return Handler


class Place:
    """A data folder whose blobs are under one prefix, and the one session in it."""

    def __init__(self, prefix):
        self.prefix, self.data = prefix, Path(tempfile.mkdtemp(prefix="data-"))
        settings = self.data.parent / f"{self.data.name}.toml"
        settings.write_text(f'[blobs]\nurl = "s3://lies/{prefix}"\ntimeout_ms = {TIMEOUT_MS}\nretries = 1\n')
        self.arguments = ("--config", str(settings))
        self.steps = 0

    def server(self):
        return Server(self.data, arguments=self.arguments)

    def open(self, agent, intent="lies"):
        text, error = agent.tool("plasm_context", intent=intent, seeds=seeds("Project"))
        assert not error, text
        self.ref = "s" + text.split("`s", 1)[1].split("`", 1)[0]

    def large(self, agent, **more):
        """A step that leaves another large heap."""
        self.steps += 1
        code = f"globalThis.rows = {self.steps}; {BIG.format(n=self.steps)}"
        return agent.tool("run_js", code=code, logical_session_ref=self.ref, **more)

    def log(self, agent):
        return good(agent.tool("list_session_snapshots", logical_session_ref=self.ref, fields="index,output_heap"))["entries"]

    def reads(self, agent, steps):
        ran = good(agent.tool("run_js", code=READ, logical_session_ref=self.ref, wait_ms=20_000))
        assert ran["result"] == [steps, 20000, f"row {steps} 3743"], ran

    def blob(self, heap):
        """The name of the object of a heap."""
        with sqlite3.connect(self.data / "tokamak.db") as database:
            (value,) = database.execute("SELECT value FROM row WHERE tbl = 'heap' AND id = ?", (heap,)).fetchone()
        return json.loads(value.split(b"\n", 1)[0])["blob"]


def writing(liar):
    place = Place("writing")
    with place.server() as server:
        agent = Modern(server.port)
        place.open(agent)
        assert good(place.large(agent))["status"] == "completed"
        kept, heaps = 1, {}
        for lie in ("refused", "swallowed", "kept half", "answer lost"):
            with suite.case(f"what is written is {lie}: the head stays until it is kept, and then the run goes on"):
                before, lies = place.log(agent), liar.lies
                liar.put = lie
                ran, _ = place.large(agent, wait_ms=100, timeout_ms=60_000)
                deadline = time.monotonic() + 20
                while "s3://lies/writing/" not in ran.get("warning", "") and ran["status"] not in FINAL:
                    assert time.monotonic() < deadline, f"nobody says what is wrong: {ran}"
                    ran = good(agent.tool("get_execution", execution_id=ran["execution_id"], wait_ms=100))
                # Where the object is kept though nobody heard of it, there is nothing wrong.
                assert ran["status"] in FINAL and lie == "answer lost" or place.log(agent) == before, "the head moved to what is not kept"
                assert liar.lies > lies, "nothing was lied about"
                liar.well()
                ended = until(agent, ran["execution_id"], seconds=30)
                assert ended["status"] == "completed" and len(place.log(agent)) == len(before) + 1, ended
                kept = place.steps
                heaps[kept] = ended["heap"]
        with suite.case("what is written is refused until the deadline: the run ends, says where, and the session stands where it stood"):
            before, liar.put = place.log(agent), "refused"
            ran, _ = place.large(agent, wait_ms=200, timeout_ms=1500)
            ended = until(agent, ran["execution_id"], seconds=30)
            assert ended["status"] == "timed_out" and "s3://lies/writing/" in ended["error"]["message"], ended
            assert place.log(agent) == before
            liar.well()
            place.reads(agent, kept)
            assert server.stop(20) == 0
    with suite.case("a process that has nothing in memory reads everything that a head moved to"), place.server() as server:
        for steps, heap in heaps.items():
            ran = good(Modern(server.port).tool("run_js", code=READ, heap=heap, require_heap=True))
            assert ran["result"] == [steps, 20000, f"row {steps} 3743"], ran


READ_AS = ("flipped", "another's", "shorter", "truncated", "refused", "cut off before")


def reading(liar):
    place, sessions = Place("reading"), {}
    with place.server() as server:
        agent = Modern(server.port)
        for lie in READ_AS:
            place.open(agent, lie)
            sessions[lie] = (place.ref, good(place.large(agent))["heap"], place.steps)
        assert server.stop(20) == 0
    for lie, (place.ref, heap, steps) in sessions.items():
        names = (heap, place.blob(heap))
        with suite.case(f"what is read is {lie}: in time an error that names it, no other heap; then the session goes on"), place.server() as server:
            agent = Modern(server.port)
            before, liar.of, liar.get, lies = place.log(agent), names[1], lie, liar.lies
            for where in ({"heap": heap, "require_heap": True}, {"logical_session_ref": place.ref}):
                ran, _ = agent.tool("run_js", code="typeof big", wait_ms=3000, timeout_ms=1000, **where)
                if not isinstance(ran, str):
                    ran = until(agent, ran["execution_id"], seconds=8)
                    assert ran["status"] in ("failed", "timed_out") and "result" not in ran, ran
                assert any(name in json.dumps(ran) for name in names), f"nothing is named: {ran}"
            assert liar.lies > lies and place.log(agent) == before
            liar.well()
            place.reads(agent, steps)
            assert server.process.poll() is None and "panicked" not in Path(server.log).read_text(errors="replace")
        liar.well()
    with suite.case("what is read comes late: the run waits for it"), place.server() as server:
        place.ref, _, steps = sessions["flipped"]
        liar.get = "slow"
        place.reads(Modern(server.port), steps)
        liar.well()


def slow(liar):
    place = Place("slow")
    with place.server() as server:
        agent = Modern(server.port)
        place.open(agent)
        liar.put = "slow"
        under_way = []
        # The first one also brings the engine's own object.
        for wait_ms in (100, 100, 300, 1000):
            with suite.case(f"what is written takes {SLOW_SECONDS} s: run {len(under_way)}, with wait_ms={wait_ms}, is answered in time"):
                began = time.monotonic()
                ran, _ = place.large(agent, wait_ms=wait_ms, timeout_ms=60_000)
                answered = time.monotonic() - began
                under_way.append(ran["execution_id"])
                assert answered < wait_ms / 1000 + ANSWERED_SECONDS, f"it took {answered:.1f} s"
                assert ran["status"] in ("running", "queued") and "heap" not in ran, ran
        with suite.case(f"what is written takes {SLOW_SECONDS} s: other sessions, whose heaps are small, do not wait for it"):
            began = time.monotonic()
            assert good(agent.tool("run_js", code="6 * 7"))["result"] == 42
            assert time.monotonic() - began < ANSWERED_SECONDS, f"it took {time.monotonic() - began:.1f} s"
        with suite.case(f"what is written takes {SLOW_SECONDS} s: the runs complete, in order, and what they left can be read"):
            assert all(until(agent, execution, seconds=40)["status"] == "completed" for execution in under_way)
            liar.well()
            place.reads(agent, 4)
        liar.put = "slow"
        ran, _ = place.large(agent, wait_ms=0, timeout_ms=60_000)
        time.sleep(0.5)
        server.kill()
    liar.well()
    with suite.case("killed while its heap is written: the run is done once, and the head can be read"), place.server() as server:
        agent = Modern(server.port)
        assert until(agent, ran["execution_id"], seconds=30)["status"] == "completed"
        place.reads(agent, 5)
        assert [entry["index"] for entry in place.log(agent)] == [0, 1, 2, 3, 4, 5, 6]


def main():
    with moto() as port, Liar(port) as liar:
        os.environ.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY=SECRET, AWS_ENDPOINT_URL=f"http://127.0.0.1:{liar.port}")
        Bucket(port, "lies")
        for title, part in (("writing", writing), ("reading", reading), ("slow", slow)):
            began = time.monotonic()
            with suite.group(title):
                part(liar)
            liar.well()
            print(f"# s3_lies: {title} took {time.monotonic() - began:.0f} s", flush=True)
    suite.end()


main()
