"""README.md against the binary: every block of the two minutes is what the binary answers.

Invariant: a line of the page is the whole line, or its beginning where it ends with `…`; only the `#` lines of the table
may be left out.
"""

import json
import re
from pathlib import Path

from harness import Server, Suite, modern_call

suite = Suite("readme")
PAGE = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def main():
    steps = dict(re.findall(r"^\*\*(\d)\. (.*?)(?=^\*\*\d\. |^## )", PAGE, re.MULTILINE | re.DOTALL))
    with Server() as server:
        with suite.case("1: the table"):
            (arguments,), (table,) = blocks(steps["1"], "json"), blocks(steps["1"], "text")
            answer = said(server, "plasm_context", json.loads(arguments))
            lines = [line for line in answer.split("\n") if not line.startswith(("#", "```"))]
            same(table, "\n".join(lines))
        with suite.case("2: the plan"):
            program, plan = blocks(steps["2"], "text")
            same(plan, said(server, "plasm", {"logical_session_ref": "s0", "program": program}))
        with suite.case("3: the run"):
            (result,) = blocks(steps["3"], "text")
            same(result, said(server, "plasm_run", {"logical_session_ref": "s0", "program": program}))
        with suite.case("4: the change, and that it is replayed"):
            program, plan = blocks(steps["4"], "text")
            same(plan, said(server, "plasm", {"logical_session_ref": "s0", "program": program}))
            commit = {"logical_session_ref": "s0", "plan_commit_ref": "pc0"}
            assert "replayed" not in said(server, "plasm_run", commit)
            assert "replayed" in said(server, "plasm_run", commit)
        with suite.case("5: the mistake"):
            program = re.search(r"`(Ticket\{statuz[^`]*)`", steps["5"])[1]
            (mistake,) = blocks(steps["5"], "text")
            same(mistake, said(server, "plasm", {"logical_session_ref": "s0", "program": program}))
        with suite.case("6: what was computed is there in the next call, also after a restart"):
            first, second = blocks(steps["6"], "js")
            answers = re.search(r"The first answers `(.*?)`, the second, also after a restart, `(.*?)`", steps["6"]).groups()
            assert computed(server, first) == json.loads(answers[0]), answers
            server.kill()
            with Server(data=server.data) as again:
                assert computed(again, second) == json.loads(answers[1]), answers
    suite.end()


def computed(server, code):
    answer = json.loads(said(server, "run_js", {"logical_session_ref": "s0", "code": code}))
    assert answer["status"] == "completed", answer
    return answer["result"]


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)\n```", text, re.MULTILINE | re.DOTALL)


def said(server, tool, arguments):
    return modern_call(server.port, tool, arguments)["result"]["content"][0]["text"]


def same(page, answer):
    page, answer = ([line for line in text.strip().split("\n") if line] for text in (page, answer))
    for shown, real in zip(page, answer, strict=False):
        matches = real.startswith(shown[:-1]) if shown.endswith("…") else real == shown
        assert matches, f"README has `{shown}`, the binary says `{real}`"
    assert len(page) == len(answer), f"README has {len(page)} lines, the binary says {len(answer)}: {answer[len(page):]}"


if __name__ == "__main__":
    main()
