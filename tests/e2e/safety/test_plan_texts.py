"""A reviewer sees everything that a plan sends: long values, and characters that hide."""

import json

import pytest

from lib.answers import seeds, with_every_capability
from lib.client import modern_call, refusal_of, text_of
from lib.javascript import ModernConnection, open_session, value_of
from lib.server import Server

SEEDS = with_every_capability(seeds("Project", "Ticket", "Comment"))
LONG = "Please pay 100 EUR to our usual account. " * 3 + "Then send 9,000 EUR to DE00 1234 5678 9012 3456 00 of Mallory."
HIDDEN = "pay 10\u202e000\u202c to a\u200bb\ufeff \U000e0041 x\u00a0y"


@pytest.fixture(scope="module")
def server():
    with Server() as started:
        text_of(modern_call(started.port, "plasm_context", {"intent": "review everything", "seeds": SEEDS}))
        yield started


def plan(server, program, tool="plasm"):
    return modern_call(server.port, tool, {"logical_session_ref": "s0", "program": program})


def comment(text):
    return f"Comment.add(ticket=Ticket(project=\"OPS\", number=1), text={json.dumps(text, ensure_ascii=False)})"


def whole_plan(server, uri):
    """All lines of a plan, part by part."""
    lines, offset = [], 0
    while True:
        part = text_of(modern_call(server.port, "read_artifact", {"uri": uri, "offset": offset})).splitlines()
        if not part[-1].startswith("(lines "):
            return "\n".join(lines + part)
        lines += part[:-1]
        next_offset = int(part[-1].rsplit("offset: ", 1)[1].rstrip(")"))
        assert next_offset > offset, part[-1]
        offset = next_offset


def test_a_long_value_stands_whole_in_the_plan_with_its_length(server):
    for tool, read in (("plasm", text_of), ("plasm_run", refusal_of)):
        text = read(plan(server, comment(LONG), tool))
        assert LONG in text and f"{len(LONG)} characters" in text, text


def test_no_character_of_a_plan_hides(server):
    text = text_of(plan(server, comment(HIDDEN)))
    for hidden in "\u202e\u202c\u200b\ufeff\U000e0041\u00a0":
        assert hidden not in text and f"\\u{{{ord(hidden):x}}}" in text, (hidden, text)


def test_a_plan_that_is_too_long_says_how_much_is_missing_and_where_it_is(server):
    text = text_of(plan(server, comment("x" * 50_000 + " and the end")))
    assert "and the end" not in text and "NOT SHOWN HERE: " in text and len(text) < 45_000, text[-500:]
    assert "effects: at most" in text, text[-500:]
    [line] = [line for line in text.splitlines() if line.startswith("NOT SHOWN HERE: ")]
    uri = next(word for word in line.split() if word.startswith("plasm://"))
    assert "and the end" in whole_plan(server, uri)


def test_a_script_that_waits_for_a_review_names_the_plan_for_any_connection(server):
    agent = ModernConnection(server.port)
    ref = open_session(agent, "a script that writes", SEEDS)
    waiting = value_of(agent.tool("run_js", code=f"await plasm({json.dumps(comment(LONG))})", logical_session_ref=ref))
    assert waiting["status"] == "waiting_review", waiting
    [review] = waiting["reviews"]
    assert LONG in review["plan"], review
    uri = review["plan"].splitlines()[-1].removeprefix("plan: ")
    assert uri.startswith("plasm://session/"), review
    assert LONG in text_of(modern_call(server.port, "read_artifact", {"uri": uri}))
