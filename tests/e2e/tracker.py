"""The demo API as a tracker that nobody kills: its own process, its own count of what really happened.

Invariant: a server under test reaches it by a catalog of its own, `tracker`; only the standard library.
"""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path

from answers import seeds
from harness import TOKAMAK, request

SHIPPED = Path(__file__).resolve().parents[2] / "catalogs" / "demo.yaml"
# Every write, whatever the intent says.
SEEDS = [{**seed, "capabilities": ["*"]} for seed in seeds("Ticket", "Comment", "Project", api="tracker")]


class Api:
    """The demo API of a server that does nothing else."""

    def __enter__(self):
        command = [TOKAMAK, "serve", "--port", "0", "--data", tempfile.mkdtemp(prefix="api-")]
        log = {**os.environ, "RUST_LOG": "tokamak::wiring=debug"}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=log)
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
        """The shipped catalog under another name, at this address, and comments that the API does not recognise."""
        text = SHIPPED.read_text().replace("http://demo.localhost", f"http://127.0.0.1:{self.port}")
        text = text.replace("catalog: demo", "catalog: tracker", 1)
        text = text[: text.index("    effect: a new comment on the ticket\n")] + "    effect: a new comment on the ticket\n"
        folder = Path(tempfile.mkdtemp(prefix="catalogs-"))
        (folder / "tracker.yaml").write_text(text)
        return folder

    def ask(self, path, body=None):
        method = "GET" if body is None else "POST"
        answer = request(self.port, method, path, json.dumps(body) if body is not None else b"")
        assert answer.status < 300, f"{path}: {answer.status} {answer.body[:200]}"
        return json.loads(answer.body or b"null")

    def reset(self, *faults):
        self.ask("/control/reset", {})
        rules = [{"fault": fault, "method": "POST", "path": "/api/*"} for fault in faults]
        self.ask("/control/faults", {"rules": rules})

    def effects(self):
        """What really happened, in order: the digests of the bodies."""
        return [effect["body_sha256"] for effect in self.ask("/control/effects")]


def digest(text):
    return hashlib.sha256(json.dumps({"text": text}, separators=(",", ":")).encode()).hexdigest()
