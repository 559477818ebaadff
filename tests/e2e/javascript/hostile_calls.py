"""Runs a hostile program and reads everything that it leaves: its answer, its output and its exported heap.

Where there is no `zstd` on the PATH, an exported heap is searched in its stored form, and `READABLE` is false.
"""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from lib.client import modern_call, request
from lib.server import TOKAMAK

# The longest time until a run has ended, with the time in the queue before it.
SECONDS_FOR_A_RUN = 60
TIMEOUT_MS = 400
MEMORY_MB = 32
ZSTD = shutil.which("zstd")
READABLE = ZSTD is not None
FRAME = bytes.fromhex("28b52ffd")


def api(port, method, path, value=None, headers=None, seconds=SECONDS_FOR_A_RUN):
    answer = request(port, method, path, json.dumps(value) if value is not None else b"", headers, seconds)
    return answer.status, json.loads(answer.body)


def run(port, code, **more):
    """Runs code and waits for its end, good or bad."""
    status, run_state = api(port, "POST", "/api/exec", {"code": code, **more})
    deadline = time.monotonic() + SECONDS_FOR_A_RUN
    while status == 202 and time.monotonic() < deadline:
        time.sleep(0.02)
        status, run_state = api(port, "GET", f"/api/executions/{run_state['execution_id']}")
        if run_state["status"] in ("queued", "running"):
            status = 202
    return run_state


def hostile(port, code, more):
    return run(port, code, **{"timeout_ms": TIMEOUT_MS, "memory_mb": MEMORY_MB, **more})


def short(run_state):
    return json.dumps(run_state)[:300]


def tool(port, name, **arguments):
    """A tool's text, an error or not."""
    result = modern_call(port, name, arguments, seconds=SECONDS_FOR_A_RUN)["result"]
    return result.get("structuredContent") or result["content"][0]["text"], bool(result.get("isError"))


def printed(port, run_state):
    """All output of a run."""
    text, offset = "", 0
    while "execution_id" in run_state:
        _, page = api(port, "GET", f"/api/executions/{run_state['execution_id']}/output?byte_offset={offset}&byte_limit=1000000")
        text, offset = text + page.get("data", ""), page.get("next_byte_offset", 0)
        if not page.get("has_more"):
            break
    return text


def exported(data, heap):
    """The exported bytes of a heap, unpacked where `zstd` is installed."""
    file = Path(tempfile.mkdtemp(prefix="export-")) / "heap"
    done = subprocess.run([TOKAMAK, "heap", "export", heap, "-o", file, "--data", data], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    stored = file.read_bytes()
    file.unlink()
    image = stored[stored.index(b"TOKAHEAP") :]
    offset = image.find(FRAME)
    if not READABLE or offset < 0:
        return image
    # `zstd` complains about the bytes after the frame, which are not compressed.
    return image + subprocess.run([ZSTD, "-dcq"], input=image[offset:], capture_output=True, timeout=60).stdout


def has(where, secret):
    """Whether a text or bytes contain the secret, in any form in which the engine stores a string."""
    if isinstance(where, str):
        return secret in where
    return secret.encode() in where or secret.encode("utf-16-le") in where
