"""The prompt for a secret at a terminal; crates/cli/tests/it/secrets.rs tests everything that needs no terminal."""

import os
import pty
import subprocess
import tempfile
import termios
import time

import pytest

from lib.server import TOKAMAK

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def data():
    return tempfile.mkdtemp(prefix="data-")


@pytest.fixture(scope="module")
def environment():
    return {**os.environ, "TOKAMAK_SECRETS_KEY": "right"}


def test_a_typed_secret_is_asked_for_and_not_shown(data, environment):
    command = [TOKAMAK, "secret", "set", "TYPED", "--data", data]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(TOKAMAK, command, environment)
    output = read_until(terminal, b"Value of TYPED: ")
    # The prompt is printed before the terminal stops to echo; a person types later than that.
    wait_until_echo_is_off(terminal)
    os.write(terminal, b"hunter2\n")
    output += read_until(terminal, b"TYPED is set")
    assert os.waitpid(child, 0)[1] == 0 and b"hunter2" not in output, output


def test_a_typed_secret_is_kept(data, environment):
    listed = subprocess.run([TOKAMAK, "secret", "list", "--data", data], env=environment, capture_output=True)
    assert listed.stdout == b"TYPED  bound to no origin\n", listed


def wait_until_echo_is_off(terminal):
    deadline = time.monotonic() + 10
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        assert time.monotonic() < deadline, "the terminal still shows what is typed"
        time.sleep(0.01)


def read_until(terminal, words):
    output = b""
    while words not in output:
        output += os.read(terminal, 1024)
    return output
