"""The demo API in a process of its own, which no test kills, with its own count of the effects that really happened.

Invariant: a server under test reaches this API through a catalog of its own, `tracker`; only the standard library is used.
"""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path

from lib.answers import seeds, with_every_capability
from lib.client import request
from lib.server import REPOSITORY, TOKAMAK

SHIPPED_CATALOG = REPOSITORY / "catalogs" / "demo.yaml"
SEEDS = with_every_capability(seeds("Ticket", "Comment", "Project", api="tracker"))


class DemoApi:
    """The demo API of a server that does nothing else."""

    def __enter__(self):
        command = [TOKAMAK, "serve", "--port", "0", "--data", tempfile.mkdtemp(prefix="api-")]
        environment = {**os.environ, "RUST_LOG": "tokamak::wiring=debug"}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
        try:
            for line in self.process.stderr:
                if found := re.search(rb"the demo API is up.*127\.0\.0\.1:(\d+)", line):
                    self.port = int(found[1])
                    break
        except BaseException:
            self.process.kill()
            raise
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def catalogs(self):
        """A folder with the shipped catalog under another name and at this address, whose comments the API does not deduplicate."""
        text = SHIPPED_CATALOG.read_text().replace("http://demo.localhost", f"http://127.0.0.1:{self.port}")
        text = text.replace("catalog: demo", "catalog: tracker", 1)
        text = text[: text.index("    effect: a new comment on the ticket\n")] + "    effect: a new comment on the ticket\n"
        folder = Path(tempfile.mkdtemp(prefix="catalogs-"))
        (folder / "tracker.yaml").write_text(text)
        return folder

    def server_arguments(self, *more):
        """The arguments of a server that offers this API alone."""
        return ["--no-demo", "--catalogs", str(self.catalogs()), *more]

    def ask(self, path, body=None):
        method = "GET" if body is None else "POST"
        answer = request(self.port, method, path, json.dumps(body) if body is not None else b"")
        assert answer.status < 300, f"{path}: {answer.status} {answer.body[:200]}"
        return json.loads(answer.body or b"null")

    def reset(self, *faults):
        """Forgets all effects and puts these faults on every write."""
        self.ask("/control/reset", {})
        self.set_faults(*(("POST", fault) for fault in faults))

    def set_faults(self, *rules):
        """Puts a fault on every request of a method: pairs of method and fault."""
        self.ask("/control/faults", {"rules": [{"fault": fault, "method": method, "path": "/api/*"} for method, fault in rules]})

    def effects(self):
        """The effects that really happened, in order, as the digests of their bodies."""
        return [effect["body_sha256"] for effect in self.ask("/control/effects")]


def digest(text):
    return hashlib.sha256(json.dumps({"text": text}, separators=(",", ":")).encode()).hexdigest()
