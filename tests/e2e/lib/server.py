"""Starts the binary under test: as a server, or as a command that ends by itself.

Invariants: a server never outlives the block that started it; every wait has an end; only the standard library is used.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
TOKAMAK = os.environ.get("TOKAMAK", str(REPOSITORY / "target" / "debug" / "tokamak"))
# The test server of the conformance suite: the product's handler behind the fixtures that the suite asks for by name.
CONFORMANCE_SERVER = os.environ.get("CONFORMANCE_SERVER", str(Path(TOKAMAK).parent / "examples" / "conformance-server"))
# The API that counts effects and breaks answers on request (crates/testkit/api).
TEST_API = os.environ.get("TEST_API", str(Path(TOKAMAK).parent / "test-api"))
# Where setup.sh installs the tools.
TOOLS = Path(os.environ.get("TOOLS", REPOSITORY / ".tools"))
# A loaded machine needs some of it to compile the JavaScript engine for the first data folder.
SECONDS_TO_START = 60


class Server:
    """`tokamak serve` over HTTP on a free port, with its own data folder unless one is given."""

    def __init__(self, data=None, port=0, arguments=(), binary=TOKAMAK):
        self.data = Path(data or tempfile.mkdtemp(prefix="data-"))
        self.port = port
        self.arguments = arguments
        self.binary = binary
        self.process = None

    def __enter__(self):
        self.log = log = tempfile.mkstemp(prefix="server-", suffix=".log")[1]
        copy_compiled_engine(self.data)
        command = [self.binary, "serve", "--port", str(self.port), "--data", str(self.data), *map(str, self.arguments)]
        with open(log, "wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr)
        try:
            ready = self._ready_line(log)
            assert ready.startswith("ready http://127.0.0.1:"), f"the first line is not the ready line: {ready}"
            self.url = ready.split()[1]
            self.port = int(self.url.rsplit(":", 1)[1])
            self.mcp = f"{self.url}/mcp"
            keep_compiled_engine(self.data)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        self.kill()

    def _ready_line(self, log):
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            exit_code = self.process.poll()
            output = Path(log).read_text(errors="replace")
            assert exit_code is None, f"the server ended with {exit_code}: {output}"
            if output.startswith("ready ") and "\n" in output:
                return output.split("\n", 1)[0]
            if "\n" in output:
                # Any other first line is the reason of a refused start, which is complete only when the process has ended.
                exit_code = self.process.wait(10)
                raise AssertionError(f"the server ended with {exit_code}: {Path(log).read_text(errors='replace')}")
            time.sleep(0.02)
        raise AssertionError(f"the server was not ready within {SECONDS_TO_START} s")

    def kill(self):
        """Ends the process as a crash does: without a chance to clean up."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, seconds):
        """Ends the process as a supervisor does, with SIGTERM, and returns its exit code."""
        self.process.terminate()
        return self.process.wait(seconds)

    def log_text(self):
        return Path(self.log).read_text(errors="replace")


def copy_compiled_engine(data):
    """Gives a new data folder the compiled JavaScript engine of an earlier one, because compiling takes seconds."""
    shared, folder = Path(tempfile.gettempdir()) / "engines", Path(data) / "engines"
    if shared.exists() and not folder.exists():
        # A folder that other users can read would be repaired with a warning.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copytree(shared, folder)


def keep_compiled_engine(data):
    """Keeps the compiled JavaScript engine of a data folder for the servers that start later."""
    shared, folder = Path(tempfile.gettempdir()) / "engines", Path(data) / "engines"
    if folder.exists() and not shared.exists():
        copy = Path(tempfile.mkdtemp(prefix="engines-")) / "engines"
        shutil.copytree(folder, copy)
        try:
            copy.rename(shared)
        except OSError:
            pass  # Another worker was faster.


def new_folder(prefix="folder-"):
    return Path(tempfile.mkdtemp(prefix=prefix))


def settings(text):
    """The arguments that make a server read these settings."""
    path = new_folder("config-") / "tokamak.toml"
    path.write_text(text)
    return ("--config", str(path))


def run_binary(*arguments, seconds=60, **more):
    """Runs the binary to its end, with its output as text unless `text=False` is given."""
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **more}
    if "input" in options:
        del options["stdin"]
    return subprocess.run([TOKAMAK, *map(str, arguments)], timeout=seconds, check=False, **options)


def assert_did_not_panic(server):
    log = server.log_text()
    assert "panicked" not in log, log[max(0, log.index("panicked") - 200) :][:2000]
