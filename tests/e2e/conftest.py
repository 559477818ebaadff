"""Fixtures of all folders, and support for tests that are coroutines and for modules whose tests are steps of one sequence.

The tests of a module with `pytestmark = pytest.mark.steps` are such steps: each builds on those above it and passes values on in
`flow`. Selecting a step with `-k` also runs the steps before it. Every other test is independent. If a fixture of such a module
has parameters, the sequence runs again for each of them: for each `place`, or for each `steps(again_for=...)`.
"""

import inspect
import signal
import sys

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from lib.server import Server

# A coroutine that waits longer for a server hangs.
SECONDS_FOR_A_COROUTINE = 120

# At SIGTERM pytest leaves its fixtures, which ends the servers that they have started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Flow:
    """The values that one step of a module passes on to the steps after it."""

    def __getattr__(self, name):
        raise AssertionError(f"no earlier step of this module has set `{name}`; the first failure above says why")


@pytest.fixture(scope="module")
def flow():
    return Flow()


@pytest.fixture(scope="module")
def server():
    """A server with an empty data folder, for all tests of one module."""
    with Server() as started:
        yield started


@pytest.fixture(scope="session")
def portal():
    """One event loop in a thread of its own, so that a connection can be open over several tests."""
    with start_blocking_portal() as opened:
        yield opened


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs a test that is a coroutine in the event loop that its fixtures use."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def within_time():
        with anyio.fail_after(SECONDS_FOR_A_COROUTINE):
            await pyfuncitem.obj(**arguments)

    pyfuncitem.funcargs["portal"].call(within_time)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """Adds the event loop to coroutines, and to each selected step the steps before it."""
    for item in items:
        if inspect.iscoroutinefunction(item.obj) and "portal" not in item.fixturenames:
            item.fixturenames.insert(0, "portal")
    collected = list(items)
    yield
    selected = set(items)
    in_order, finished_modules = [], set()
    for item in items:
        if not is_step(item):
            in_order.append(item)
        elif item.path not in finished_modules:
            finished_modules.add(item.path)
            in_order += steps_of(item.path, collected, selected)
    items[:] = in_order


def steps_of(path, collected, selected):
    """The selected steps of a module and the steps before them, one sequence after the other."""
    sequences = {}
    for item in collected:
        if item.path == path:
            sequences.setdefault(sequence_of(item), []).append(item)
    needed = []
    for steps in sequences.values():
        last = max((number for number, step in enumerate(steps) if step in selected), default=-1)
        needed += steps[: last + 1]
    return needed


def is_step(item):
    return item.get_closest_marker("steps") is not None


def sequence_of(item):
    """The parameter for which the sequence of a module runs again, such as the place `stdio legacy`; None if there is none."""
    name = item.get_closest_marker("steps").kwargs.get("again_for", "place")
    callspec = getattr(item, "callspec", None)
    value = callspec.params.get(name) if callspec else None
    return value if value is None or isinstance(value, str) else id(value)
