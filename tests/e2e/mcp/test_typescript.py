"""The official TypeScript client, which most hosts contain: the whole path in both eras, over HTTP and over stdio (typescript.mjs)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from lib.client import TOOL_NAMES
from lib.server import TOKAMAK, TOOLS

PLACES = ["http modern", "stdio modern", "http legacy", "stdio legacy"]
CHECKS = [
    "connects",
    "lists the tools",
    "context, plan and run",
    "reads the artifact as a resource",
    "a mistake is an isError result",
    "closes without a warning",
]
TITLES = [f"{place}: {check}" for place in PLACES for check in CHECKS]
TITLES += [f"http {era}: a connected client goes on with its refs after kill -9" for era in ("modern", "legacy")]


@pytest.fixture(scope="module")
def outcomes():
    """The outcome of each check by its title: `ok`, or what failed."""
    node = TOOLS / "e2e-node" / "node_modules" / "node" / "bin" / "node"
    environment = {**os.environ, "TOKAMAK": TOKAMAK, "TOOLS": str(TOOLS), "TOOL_NAMES": " ".join(TOOL_NAMES)}
    command = [node, Path(__file__).with_name("typescript.mjs")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)
    assert ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr[-1000:]}"
    return dict(json.loads(line) for line in ended.stdout.splitlines())


@pytest.mark.parametrize("title", TITLES)
def test_the_typescript_client_works(outcomes, title):
    assert outcomes.get(title) == "ok", outcomes.get(title, "the check did not run")


def test_no_check_of_the_script_is_missing_here(outcomes):
    assert set(outcomes) == set(TITLES)
