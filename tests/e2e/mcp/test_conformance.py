"""The official conformance suite: everything that each protocol revision requires of a server, less what the product does not claim.

Invariant: a scenario passes, or conformance-expected-failures.yml says why not; an entry of that file that passes fails here. With the
fixtures that the suite asks for by name (a build that is not shipped), every scenario passes.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.server import TOKAMAK, CONFORMANCE_SERVER, Server, new_folder, run_binary

pytestmark = pytest.mark.timeout(600)
EXPECTED_FAILURES = Path(__file__).with_name("conformance-expected-failures.yml")
# The scenarios that a revision requires of a server.
REQUIRED = {
    "2026-07-28": """
        server-stateless completion-complete tools-list tools-call-simple-text tools-call-image tools-call-audio
        tools-call-embedded-resource tools-call-mixed-content tools-call-error tools-call-with-progress server-sse-multiple-streams
        resources-list resources-read-text resources-read-binary resources-templates-read sep-2164-resource-not-found prompts-list
        prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection caching
        input-required-result-basic-elicitation input-required-result-basic-sampling input-required-result-basic-list-roots
        input-required-result-request-state input-required-result-multiple-input-requests input-required-result-multi-round
        input-required-result-missing-input-response input-required-result-non-tool-request input-required-result-result-type
        input-required-result-unsupported-methods input-required-result-tampered-state input-required-result-capability-check
        input-required-result-ignore-extra-params input-required-result-validate-input
    """.split(),
    "2025-11-25": """
        server-initialize logging-set-level ping completion-complete tools-list tools-call-simple-text tools-call-image tools-call-audio
        tools-call-embedded-resource tools-call-mixed-content tools-call-with-logging tools-call-error tools-call-with-progress
        tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults server-sse-multiple-streams elicitation-sep1330-enums
        resources-list resources-read-text resources-read-binary resources-templates-read resources-subscribe resources-unsubscribe
        prompts-list prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image
        dns-rebinding-protection
    """.split(),
}
# The scenarios that a revision runs but does not score.
UNSCORED = {
    "2026-07-28": """
        tasks-lifecycle tasks-capability-negotiation tasks-wire-fields tasks-request-state-removal tasks-mrtr-input tasks-request-headers
        tasks-dispatch-and-envelope tasks-status-notifications tasks-required-task-error tasks-mrtr-composition json-schema-2020-12
        http-header-validation http-custom-header-server-validation
    """.split(),
    "2025-11-25": ["server-session-lifecycle", "json-schema-2020-12"],
}
# This one wants a tool that closes its own stream, which the SDK lets no tool do.
NOT_JUDGED = {"server-sse-polling"}
# Scenarios without a score that need no fixture, so the product must pass them.
UNSCORED_WITHOUT_FIXTURES = [
    ("http-header-validation", "2026-07-28"),
    ("server-session-lifecycle", "2025-11-25"),
    ("server-session-lifecycle", "2025-03-26"),
]


def pairs(table):
    return [(revision, name) for revision, names in table.items() for name in names]


def conform(server, *arguments):
    """One run of the suite: its exit code, its output without colours, and the folder of its results."""
    folder = new_folder("results-")
    command = ["conformance", "server", "--url", server.mcp, *map(str, arguments), "-o", str(folder)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False)
    output = re.sub(r"\x1b\[[0-9;]*m", "", ended.stdout)
    return SimpleNamespace(code=ended.returncode, output=output, folder=folder)


def passed(run, name):
    return f"\n✓ {name}: " in run.output


def reasons(run, name):
    """The checks of a scenario that failed or warned, and what they say."""
    found = []
    for file in run.folder.glob(f"server-{name}-*/checks.json"):
        for check in json.loads(file.read_text()):
            if check["status"] in ("FAILURE", "WARNING") and not (check.get("details") or {}).get("untestable"):
                found.append(f"{check['id']} ({check['status']}): {check.get('errorMessage')}")
    return "; ".join(found) or run.output[-500:]


def entries(run, heading):
    """The entries under one heading of the report on expected failures: `scenario` or `scenario:check`."""
    found, inside = [], False
    for line in run.output.splitlines():
        if line.startswith(heading):
            inside = True
        elif not line:
            inside = False
        elif inside:
            found.append(line.split()[1])
    return found


def names(some_entries):
    return {entry.split(":")[0] for entry in some_entries}


# --- the product


@pytest.fixture(scope="module")
def product():
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def required(product):
    """One run of the required scenarios of each revision, with the failures that are expected."""
    runs = {}
    for revision in REQUIRED:
        run = conform(product, "--requirements", revision, "--expected-failures", EXPECTED_FAILURES)
        run.expected = entries(run, "Expected failures")
        run.stale = entries(run, "Stale baseline entries")
        run.unexpected = entries(run, "Unexpected failures (")
        runs[revision] = run
    return runs


@pytest.mark.parametrize("revision, name", pairs(REQUIRED))
def test_a_required_scenario_passes_or_its_failure_is_expected(required, revision, name):
    run = required[revision]
    assert name not in names(run.stale), f"it passes, so take it out of {EXPECTED_FAILURES.name}"
    assert name not in names(run.unexpected), reasons(run, name)
    assert name in names(run.expected) or passed(run, name), "it did not run"


@pytest.mark.parametrize("revision", REQUIRED)
def test_exactly_the_expected_failures_fail(required, revision):
    run = required[revision]
    assert run.code == 0 and run.expected, f"exit {run.code}: {run.output[-600:]}"


@pytest.mark.parametrize("name, revision", UNSCORED_WITHOUT_FIXTURES)
def test_an_unscored_scenario_that_needs_no_fixture_passes(product, name, revision):
    run = conform(product, "--scenario", name, "--spec-version", revision)
    assert run.code == 0, reasons(run, name)


def test_some_revision_runs_every_entry_of_the_expected_failures(required):
    known = {entry for run in required.values() for entry in (*run.expected, *run.stale)}
    written = re.findall(r"^  - (.*)$", EXPECTED_FAILURES.read_text(), re.MULTILINE)
    assert not set(written) - known, f"no revision runs: {set(written) - known}"


@pytest.mark.parametrize("revision", REQUIRED)
def test_the_scenarios_of_this_file_are_those_of_the_suite(revision):
    listed = subprocess.run(
        ["conformance", "list", "--server", "--requirements", revision], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    scenarios = re.search(r"^Server scenarios.*?\n(.*?)\n\n", listed, re.MULTILINE | re.DOTALL)[1]
    assert re.findall(r"^  - (\S+)", scenarios, re.MULTILINE) == REQUIRED[revision]
    unscored = re.findall(r"^    - (.*) \[server\]$", listed, re.MULTILINE)
    assert [name for name in unscored if name not in NOT_JUDGED] == UNSCORED[revision]


def test_the_product_has_no_fixtures():
    assert b"test_input_required_result" not in Path(TOKAMAK).read_bytes(), "names of fixtures are in the binary"


# --- the test server with fixtures


@pytest.fixture(scope="module")
def everything():
    """One run of all scenarios of each revision against the test server with fixtures; no failure is expected."""
    assert os.access(CONFORMANCE_SERVER, os.X_OK), f"no binary at {CONFORMANCE_SERVER}; scripts/e2e-binaries.sh builds it"
    with Server(binary=CONFORMANCE_SERVER) as server:
        return {revision: conform(server, "--requirements", revision) for revision in REQUIRED}


@pytest.mark.parametrize("revision, name", [*pairs(REQUIRED), *pairs(UNSCORED)])
def test_with_fixtures_every_scenario_passes(everything, revision, name):
    assert passed(everything[revision], name), reasons(everything[revision], name)


@pytest.mark.parametrize("revision", REQUIRED)
def test_with_fixtures_nothing_fails(everything, revision):
    assert everything[revision].code == 0, everything[revision].output[-600:]
