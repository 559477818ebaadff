"""Limits that the system sets for the process: the server goes on, says which limit it is, and does not fill its log."""

import json
import os
import resource
import shutil
import socket
import subprocess
import threading
import time

import pytest

from lib.client import modern_call, request, text_of
from lib.hostile import SEEDS
from lib.server import TOKAMAK, copy_compiled_engine, new_folder

# A user of our own: the limit on threads counts those of one user, and the superuser has none.
USER = 54_321
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can start a process of another user")


class Limited:
    """`tokamak serve` as a user whose processes have a limit."""

    def __init__(self, limit, value):
        self.limit, self.value = limit, value

    def __enter__(self):
        folder = new_folder("limited-")
        os.chmod(folder, 0o755)
        binary = folder / "tokamak"
        shutil.copy(TOKAMAK, binary)
        data = folder / "data"
        data.mkdir(mode=0o700)
        copy_compiled_engine(data)
        subprocess.run(["chown", "-R", str(USER), folder], check=True)
        # The folders above are those of this run, which the other user must be able to enter.
        for parent in folder.parents:
            mode = os.stat(parent).st_mode
            if not mode & 0o001:
                os.chmod(parent, mode | 0o011)
        self.log = folder / "log"
        command = [binary, "serve", "--port", "0", "--data", data]
        with open(self.log, "wb") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=stderr, user=USER, group=USER, extra_groups=[],
                preexec_fn=lambda: resource.setrlimit(self.limit, (self.value, self.value)),
            )
        deadline = time.monotonic() + 60
        while not self.log.read_text().startswith("ready "):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        self.port = int(self.log.read_text().split()[1].rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def warnings(self):
        return [line for line in self.log.read_text().splitlines() if '"level":"WARN"' in line]


def test_with_few_threads_scripts_run_and_the_warning_names_the_limit():
    with Limited(resource.RLIMIT_NPROC, 14) as server:
        code = "let n = 0; for (let i = 0; i < 3e5; i++) n += i; n"
        answers = []

        def send():
            for _ in range(5):
                answer = request(server.port, path="/api/exec", body=json.dumps({"code": code, "wait_ms": 60_000}), seconds=120)
                answers.append(json.loads(answer.body)["status"])

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == ["completed"] * 40, answers
        warnings = server.warnings()
        assert len(warnings) < 20, f"{len(warnings)} warnings, such as {warnings[-1]}"
        assert all("ulimit -u" in line for line in warnings if "thread" in line), warnings


def test_without_descriptors_the_warning_names_the_limit_and_the_server_goes_on():
    with Limited(resource.RLIMIT_NOFILE, 64) as server:
        held = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(100)]
        deadline = time.monotonic() + 20
        while not server.warnings():
            assert time.monotonic() < deadline, "no warning"
            time.sleep(0.1)
        time.sleep(1)
        warnings = server.warnings()
        assert "ulimit -n" in warnings[0] and len(warnings) < 10, warnings
        for one in held:
            one.close()
        assert text_of(modern_call(server.port, "plasm_context", {"intent": "served", "seeds": SEEDS}, seconds=60))
