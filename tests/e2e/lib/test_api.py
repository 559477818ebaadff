"""The test API in a process of its own, which no test kills. It counts the effects that happened and breaks answers on request.

Invariant: a server under test reaches this API through a catalog of its own, `tracker`; only the standard library is used.
"""

import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

from lib.answers import seeds, with_every_capability
from lib.client import request
from lib.server import REPOSITORY, TEST_API

SHIPPED_CATALOG = REPOSITORY / "catalogs" / "demo.yaml"
SEEDS = with_every_capability(seeds("Ticket", "Comment", "Project", api="tracker"))


class TrackerApi:
    """A running `test-api`, whose tracker the tests call."""

    def __enter__(self):
        assert os.access(TEST_API, os.X_OK), f"no binary at {TEST_API}; scripts/e2e-binaries.sh builds it"
        self.process = subprocess.Popen([TEST_API], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            # It prints its address in one line, such as 127.0.0.1:40123.
            self.port = int(self.process.stdout.readline().rpartition(b":")[2])
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()

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
