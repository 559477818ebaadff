"""How `js_hostile.py` runs a program and looks at what it left: its answer, its console, its differences and its exported heap.

Invariant: only the standard library; where there is no `zstd` on the PATH an exported heap is searched as it is stored, and
`READABLE` says so.
"""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness import TOKAMAK, modern_call, request

# What may pass until a run is told of, the queue before it included.
TOLD_SECONDS = 60
TIMEOUT_MS = 400
MEMORY_MB = 32
ZSTD = shutil.which("zstd")
READABLE = ZSTD is not None
FRAME = bytes.fromhex("28b52ffd")


def api(port, method, path, value=None, headers=None, seconds=TOLD_SECONDS):
    answer = request(port, method, path, json.dumps(value) if value is not None else b"", headers, seconds)
    return answer.status, json.loads(answer.body)


def run(port, code, **more):
    """A run to its end, whichever way it ends."""
    status, ran = api(port, "POST", "/api/exec", {"code": code, **more})
    until = time.monotonic() + TOLD_SECONDS
    while status == 202 and time.monotonic() < until:
        time.sleep(0.02)
        status, ran = api(port, "GET", f"/api/executions/{ran['execution_id']}")
        if ran["status"] in ("queued", "running"):
            status = 202
    return ran


def hostile(port, code, more):
    return run(port, code, **{"timeout_ms": TIMEOUT_MS, "memory_mb": MEMORY_MB, **more})


def short(ran):
    return json.dumps(ran)[:300]


def tool(port, name, **arguments):
    """A tool's text, an error or not."""
    result = modern_call(port, name, arguments, seconds=TOLD_SECONDS)["result"]
    return result.get("structuredContent") or result["content"][0]["text"], bool(result.get("isError"))


def printed(port, ran):
    """All that it said on the console."""
    text, at = "", 0
    while "execution_id" in ran:
        _, page = api(port, "GET", f"/api/executions/{ran['execution_id']}/output?byte_offset={at}&byte_limit=1000000")
        text, at = text + page.get("data", ""), page.get("next_byte_offset", 0)
        if not page.get("has_more"):
            break
    return text


def exported(data, heap):
    """The bytes of a heap that differ from an empty one's, as they are in memory where they can be unpacked."""
    file = Path(tempfile.mkdtemp(prefix="export-")) / "heap"
    done = subprocess.run([TOKAMAK, "heap", "export", heap, "-o", file, "--data", data], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    stored = file.read_bytes()
    file.unlink()
    object = stored[stored.index(b"TOKAHEAP") :]
    at = object.find(FRAME)
    if not READABLE or at < 0:
        return object
    # What comes after the frame is not for us, and `zstd` says so.
    return object + subprocess.run([ZSTD, "-dcq"], input=object[at:], capture_output=True, timeout=60).stdout


def has(where, secret):
    """Whether a text, or bytes, have it, in any of the forms that the engine gives a string."""
    if isinstance(where, str):
        return secret in where
    return secret.encode() in where or secret.encode("utf-16-le") in where
