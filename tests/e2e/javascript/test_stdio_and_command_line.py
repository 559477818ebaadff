"""JavaScript over stdio with a name by argument, and from the command line on the same data folder."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.javascript import StdioConnection, value_of
from lib.server import TOKAMAK

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def data():
    return tempfile.mkdtemp(prefix="data-")


def test_stdio_takes_a_session_name_by_argument_and_offers_the_core_tools(data):
    with StdioConnection(data, 'by argument', ('--tools', 'core')) as core:
        names = [t["name"] for t in core.ask("tools/list", {})["result"]["tools"]]
        assert "run_js" in names and "list_sessions" not in names and len(names) == 7, names
        run = value_of(core.tool("run_js", code="6 * 7"))
        assert run["result"] == 42, run
        assert "error" in core.ask("tools/call", {"name": "list_sessions", "arguments": {}})


def test_the_command_line_reads_the_log_runs_files_and_moves_heaps(data):
    def tokamak(*arguments):
        return subprocess.run([TOKAMAK, "--json", *arguments, "--data", data], capture_output=True, text=True, timeout=60)

    shown = json.loads(tokamak("session", "log", "by argument").stdout)
    assert [e["code"] for e in shown["entries"]] == ["6 * 7"], shown
    folder = Path(data)
    (folder / "a.ts").write_text("let list: number[] = [1]; console.log('one')")
    (folder / "b.js").write_text("list.push(2); list")
    (folder / "bad.js").write_text("\nthrow new Error('no')")
    for cold in ((), ("--cold",)):
        done = tokamak("js", *cold, str(folder / "a.ts"), str(folder / "b.js"))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[1]["result"] == [1, 2], done.stdout
    heap = json.loads(done.stdout)[1]["heap"]
    failed = tokamak("js", str(folder / "bad.js"))
    assert failed.returncode == 1 and "no" in failed.stderr, failed
    exported = tokamak("heap", "export", heap, "-o", str(folder / "heap.bin"))
    assert exported.returncode == 0, exported.stderr
    elsewhere = tempfile.mkdtemp(prefix="data-")
    imported = subprocess.run([TOKAMAK, "--json", "heap", "import", str(folder / "heap.bin"), "--data", elsewhere], capture_output=True, text=True, timeout=60)
    assert json.loads(imported.stdout)["heap"] == heap, imported.stderr
    graph = tokamak("session", "log", "by argument", "--graph")
    assert graph.stdout.startswith("flowchart"), graph.stdout
