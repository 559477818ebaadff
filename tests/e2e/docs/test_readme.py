"""README.md against the binary: every block of the two minutes is what the binary answers.

Invariant: a line of the page is the whole line, or its beginning where it ends with `…`; only the `#` lines of the table may be
left out.
"""

import json
import re

import pytest

from lib.client import modern_call
from lib.server import REPOSITORY, Server

pytestmark = pytest.mark.steps
PAGE = (REPOSITORY / "README.md").read_text()


@pytest.fixture(scope="module")
def steps():
    """The numbered steps of the page."""
    return dict(re.findall(r"^\*\*(\d)\. (.*?)(?=^\*\*\d\. |^## )", PAGE, re.MULTILINE | re.DOTALL))


def test_step_1_shows_the_table(server, steps):
    (arguments,), (table,) = blocks(steps["1"], "json"), blocks(steps["1"], "text")
    answer = text_of_call(server, "plasm_context", json.loads(arguments))
    lines = [line for line in answer.split("\n") if not line.startswith(("#", "```"))]
    assert_same(table, "\n".join(lines))


def test_step_2_shows_the_plan(server, steps, flow):
    flow.program, plan = blocks(steps["2"], "text")
    assert_same(plan, text_of_call(server, "plasm", {"logical_session_ref": "s0", "program": flow.program}))


def test_step_3_shows_the_run(server, steps, flow):
    (result,) = blocks(steps["3"], "text")
    assert_same(result, text_of_call(server, "plasm_run", {"logical_session_ref": "s0", "program": flow.program}))


def test_step_4_shows_the_change_and_its_replay(server, steps, flow):
    flow.program, plan = blocks(steps["4"], "text")
    assert_same(plan, text_of_call(server, "plasm", {"logical_session_ref": "s0", "program": flow.program}))
    commit = {"logical_session_ref": "s0", "plan_commit_ref": "pc0"}
    assert "replayed" not in text_of_call(server, "plasm_run", commit)
    assert "replayed" in text_of_call(server, "plasm_run", commit)


def test_step_5_shows_the_mistake(server, steps, flow):
    flow.program = re.search(r"`(Ticket\{statuz[^`]*)`", steps["5"])[1]
    (mistake,) = blocks(steps["5"], "text")
    assert_same(mistake, text_of_call(server, "plasm", {"logical_session_ref": "s0", "program": flow.program}))


def test_step_6_shows_state_that_the_next_call_has_also_after_a_restart(server, steps):
    first, second = blocks(steps["6"], "js")
    answers = re.search(r"The first answers `(.*?)`, the second, also after a restart, `(.*?)`", steps["6"]).groups()
    assert result_of_script(server, first) == json.loads(answers[0]), answers
    server.kill()
    with Server(data=server.data) as again:
        assert result_of_script(again, second) == json.loads(answers[1]), answers


def result_of_script(server, code):
    answer = json.loads(text_of_call(server, "run_js", {"logical_session_ref": "s0", "code": code}))
    assert answer["status"] == "completed", answer
    return answer["result"]


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)\n```", text, re.MULTILINE | re.DOTALL)


def text_of_call(server, tool, arguments):
    return modern_call(server.port, tool, arguments)["result"]["content"][0]["text"]


def assert_same(page, answer):
    page, answer = ([line for line in text.strip().split("\n") if line] for text in (page, answer))
    for shown, real in zip(page, answer, strict=False):
        matches = real.startswith(shown[:-1]) if shown.endswith("…") else real == shown
        assert matches, f"README has `{shown}`, the binary says `{real}`"
    assert len(page) == len(answer), f"README has {len(page)} lines, the binary says {len(answer)}: {answer[len(page):]}"
