"""Real servers that we did not write: Jupyter Server, etcd and json-graphql-server, each with a free port and a folder.

Invariants: a server never outlives the block that started it, nor does any process that it started; every wait has an end; what a
server holds is asked of the server itself, past the binary under test.
"""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from lib.server import TOOLS

CATALOGS = Path(__file__).parent

def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Foreign:
    """A server in a process group of its own. A subclass says how it starts, when it is ready and which headers its requests have."""

    name = None
    headers = {}

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def __enter__(self):
        log = self.folder / "server.log"
        # Settings of the caller's own servers must not reach these.
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env={**variables, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            self._wait(log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for signal_, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.process.pid, signal_)
                self.process.wait(seconds)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue

    def _wait(self, log):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            exit_code = self.process.poll()
            assert exit_code is None, f"{self.name} ended with {exit_code}: {log.read_text(errors='replace')[-400:]}"
            try:
                self.hello()
                return
            except (OSError, ValueError):  # The server does not listen or answer yet.
                time.sleep(0.05)
        raise AssertionError(f"{self.name} was not ready within 30 s: {log.read_text(errors='replace')[-400:]}")

    def ask(self, method, path, body=None):
        """The server's own answer as JSON; `None` when it has no body."""
        headers = {"Content-Type": "application/json", **self.headers}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        # The environment may name a proxy, which must not be used.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            answer = answer.read()
        return json.loads(answer) if answer else None

    def status(self, method, path):
        try:
            self.ask(method, path)
        except urllib.error.HTTPError as refused:
            return refused.code
        return 200

    def catalog(self, folder):
        """The catalog of this server with the port it has now, as a file in `folder`."""
        text = (CATALOGS / f"{self.name}.yaml").read_text()
        assert text.count("http://127.0.0.1:PORT") == 1, f"{self.name}.yaml has no origin to fill"
        (Path(folder) / f"{self.name}.yaml").write_text(text.replace("http://127.0.0.1:PORT", self.url))

    def hello(self):
        """A first request, which fails until the server is ready."""
        raise NotImplementedError

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}


class Jupyter(Foreign):
    """Files below `root`, and one kernel, because sessions need one: a program that only notes its interruption."""

    name = "jupyter"
    token = "not-a-secret-of-anybody"
    headers = {"Authorization": f"token {token}"}
    # This program ends with the server, however the server ends.
    IDLE = """
import os, pathlib, signal, sys, time
started, interrupted = map(pathlib.Path, sys.argv[1:])
server = os.getppid()
signal.signal(signal.SIGINT, lambda *_: interrupted.touch())
started.touch()
while os.getppid() == server:
    time.sleep(0.2)
"""

    def __init__(self):
        super().__init__()
        self.root = self.folder / "root"
        (self.root / "papers").mkdir(parents=True)
        (self.root / "readme.md").write_text("# Read me\n")
        (self.root / "papers" / "raft.txt").write_text("consensus")
        (self.root / "papers" / "café & co.txt").write_text("a name that must be encoded")
        kernel = self.folder / "share" / "kernels" / "idle"
        kernel.mkdir(parents=True)
        self.kernel_started = self.folder / "kernel-started"
        self.kernel_interrupted = self.folder / "kernel-interrupted"
        program = [sys.executable, "-c", self.IDLE, str(self.kernel_started), str(self.kernel_interrupted)]
        spec = {"argv": program, "display_name": "Idle", "language": "none"}
        (kernel / "kernel.json").write_text(json.dumps(spec))

    def hello(self):
        self.ask("GET", "/api/status")

    def command(self):
        settings = {
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.port": self.port,
            "ServerApp.port_retries": 0,
            "ServerApp.open_browser": False,
            "ServerApp.root_dir": self.root,
            "KernelManager.shutdown_wait_time": 0.1,
        }
        program = TOOLS / "e2e-python" / "bin" / "jupyter-server"
        return [program, "--allow-root", *(f"--{name}={value}" for name, value in settings.items())]

    def environment(self):
        return {
            "JUPYTER_TOKEN": self.token,
            "JUPYTER_PATH": str(self.folder / "share"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
        }


class OpenJupyter(Jupyter):
    """A Jupyter Server without a token, because its own specification has no authentication."""

    name = "open-jupyter"
    headers = {}

    def command(self):
        return [*super().command(), "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]

    def environment(self):
        return {name: value for name, value in super().environment().items() if name != "JUPYTER_TOKEN"}


class Etcd(Foreign):
    """Keys and values; on the wire both are base64 and integers are text."""

    name = "etcd"

    def hello(self):
        self.ask("GET", "/health")

    def command(self):
        peers = f"http://127.0.0.1:{free_port()}"
        settings = {
            "data-dir": self.folder / "data",
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"default={peers}",
        }
        program = TOOLS / "e2e-python" / "bin" / "etcd"
        return [program, *(f"--{name}={value}" for name, value in settings.items())]

    def put(self, key, value):
        self.ask("POST", "/v3/kv/put", {"key": base64_of(key), "value": base64_of(value)})

    def value(self, key):
        """The value of a key; `None` when the key does not exist."""
        pairs = self.ask("POST", "/v3/kv/range", {"key": base64_of(key)}).get("kvs", [])
        return base64.b64decode(pairs[0].get("value", "")).decode() if pairs else None


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


class Blog(Foreign):
    """A GraphQL API over posts, users and comments, with filters and mutations, made by json-graphql-server."""

    name = "blog"
    DATA = {
        "users": [{"id": 123, "name": "Ada"}, {"id": 456, "name": "Grace"}],
        "posts": [
            {"id": n, "title": f"Post {n} on {'raft' if n % 3 == 0 else 'cats'}", "views": n * 10, "user_id": who}
            for n, who in zip(range(1, 13), [123, 456] * 6, strict=True)
        ],
        "comments": [
            {"id": 900 + n, "post_id": n % 4 + 1, "body": f"remark {n}", "date": f"2026-02-{n + 1:02}T00:00:00.000Z"}
            for n in range(6)
        ],
    }

    def hello(self):
        self.graphql("{ __typename }")

    def command(self):
        (self.folder / "data.json").write_text(json.dumps(self.DATA))
        node = TOOLS / "e2e-node" / "node_modules"
        program = node / ".bin" / "json-graphql-server"
        return [node / "node" / "bin" / "node", program, "data.json", "-p", str(self.port), "-h", "127.0.0.1"]

    def graphql(self, query, **variables):
        answer = self.ask("POST", "/", {"query": query, "variables": variables})
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def post(self, id):
        """The post; `None` when there is none."""
        return self.graphql("query($id: ID!) { Post(id: $id) { id title views user_id } }", id=id)["Post"]
