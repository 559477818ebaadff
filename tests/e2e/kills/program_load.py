"""The load of the kill test of programs, and everything that its clients read.

Invariant: a fact is recorded only after its answer was read to the end; looking at a fact changes nothing that another fact says.
"""

import http.client
import json
import re
import threading
from collections import Counter

from lib.answers import seeds, symbols, tables, with_every_capability
from lib.client import JSON_OR_EVENTS, modern, modern_headers

PAGE = 25
ENTITIES = ("Ticket", "Comment", "Project", "Person")
WRITES = with_every_capability(seeds("Ticket", "Comment", api="tracker"))
TICKET = 'Ticket(project="OPS", number=42)'


class Lost(Exception):
    """The server was gone before the answer was complete."""


class Facts:
    """Everything that the clients read, in order."""

    def __init__(self):
        self.lock = threading.Lock()
        self.facts = []
        self.operations = []
        self.done = []
        self.kinds = Counter()
        self.lost = 0
        self.begun = 0

    def add(self, fact):
        with self.lock:
            self.facts.append(fact)
            self.kinds[fact.kind] += 1
            if fact.kind == "operation":
                self.operations.append(fact)

    def next_round(self):
        self.begun = len(self.facts)

    def of_round(self):
        return self.facts[self.begun :]

    def some(self, chance, number):
        older = self.facts[: self.begun]
        return chance.sample(older, min(number, len(older)))


class Fact:
    def __init__(self, kind, ref, name, check, program=None):
        self.kind, self.ref, self.name, self.program = kind, ref, name, program
        self.look = check


class Client:
    """One agent: a session of its own and one that all share."""

    def __init__(self, port, round_number, number, facts, chance):
        self.port, self.name, self.facts, self.chance = port, f"{round_number}-{number}", facts, chance
        # Sessions live over many kills, and there are always new ones that are still being taught.
        self.intents = [f"client {number}, {round_number // 40}", f"client {number}, {round_number // 3}", f"all of us, {round_number // 20}"]
        self.refs = {}
        self.stopped = threading.Event()
        self.wrong = None
        self.writes = 0

    def stop(self):
        self.stopped.set()

    def work(self):
        kinds = [self.symbols, self.result, self.pages, self.commit, self.operation, self.request]
        try:
            while not self.stopped.is_set():
                self.chance.choice(kinds)(self.opened())
        except Lost:
            with self.facts.lock:
                self.facts.lost += 1
        except Exception as problem:
            self.wrong = f"{type(problem).__name__}: {problem}"

    def opened(self):
        self.intent = self.chance.choice(self.intents)
        if self.intent in self.refs:
            return self.refs[self.intent]
        answer = call(self.port, "plasm_context", {"intent": self.intent, "seeds": WRITES})
        self.refs[self.intent] = answer["_meta"]["plasm"]["logical_session_id"]
        return self.refs[self.intent]

    def text(self, kind):
        self.writes += 1
        return f"{kind} {self.name}-{self.writes}"

    # --- each of these ends with a fact

    def symbols(self, ref):
        wanted = self.chance.sample(ENTITIES, self.chance.randint(1, 3))
        answer = call(self.port, "plasm_context", {"intent": self.intent, "seeds": seeds(*wanted, api="tracker")})
        taught, intent = symbols(answer["content"][0]["text"]), self.intent
        if not taught:
            return

        def check(port):
            replay = {"intent": intent, "seeds": seeds("Ticket", api="tracker"), "replay": True}
            current = call(port, "plasm_context", replay)
            assert current["_meta"]["plasm"]["logical_session_id"] == ref, "another session has this intent"
            whole = symbols(current["content"][0]["text"])
            assert taught.items() <= whole.items(), f"taught {taught}, now {whole}"
            assert set(whole) == {f"e{n + 1}" for n in range(len(whole))}, f"gaps: {whole}"

        self.facts.add(Fact("symbols", ref, f"{taught}", check))

    def result(self, ref):
        project, rows = self.chance.choice(["OPS", "API", "WEB"]), self.chance.randint(1, 9)
        program = f'Ticket{{project="{project}"}}.limit({rows})[number, title]'
        answer = call(self.port, "plasm_run", {"logical_session_ref": ref, "program": program})
        uri = answer["_meta"]["plasm"]["steps"][0]["artifact_uri"]
        table = tables(answer["content"][0]["text"])["result"]
        assert len(table) == rows, answer["content"][0]["text"]
        self.facts.add(Fact("result", ref, uri, lambda port: same_rows(port, uri, table)))

    def pages(self, ref):
        answer = call(self.port, "plasm_run", {"logical_session_ref": ref, "program": "Ticket[project, number]"})
        handle = answer["_meta"]["plasm"]["paging"][0]["next_page_handle"]

        def check(port):
            rows = tables(text_of_call(port, "plasm_run", ref, program=f"page({handle})"))["result"]
            first = (rows[0]["project"], rows[0]["number"])
            assert len(rows) == PAGE and first == ("API", str(PAGE + 1)), f"{len(rows)} rows from {first}"

        self.facts.add(Fact("page", ref, handle, check))

    def commit(self, ref):
        text = self.text("commit")
        program = f'Comment.add(ticket={TICKET}, text="{text}")'
        planned = call(self.port, "plasm", {"logical_session_ref": ref, "program": program})
        commit = planned["_meta"]["plasm"]["plan_commit_ref"]
        repetition = {"plan_commit_ref": commit}
        self.write("commit", ref, text, repetition, repetition)

    def request(self, ref):
        text = self.text("request")
        program = f'Comment.add(ticket={TICKET}, text="{text}")'
        request_arguments = {"program": program, "force": True, "request_id": text}
        self.write("request", ref, text, request_arguments, request_arguments)

    def write(self, kind, ref, text, request_arguments, repetition):
        """Runs a write that may happen from here on; every later report must agree with the first one."""

        def check(port):
            current = text_even_of_a_refusal(port, "plasm_run", ref, **repetition)
            finished = fact.first is not None and fact.first.startswith("## ")
            assert not finished or "replayed: nothing ran again" in current, current
            assert is_an_end(current), current
            if "done: comment_add" in current:
                record_done(self.facts, text)
            fact.first = fact.first or current

        fact = Fact(kind, ref, text, check)
        fact.first = None
        try:
            fact.first = text_of_call(self.port, "plasm_run", ref, **request_arguments)
            assert "done: comment_add" in fact.first, fact.first
            record_done(self.facts, text)
        finally:
            self.facts.add(fact)

    def operation(self, ref):
        text = self.text("operation")
        program = f'Comment.add(ticket={TICKET}, text="{text}")'
        answer = text_of_call(self.port, "plasm_run", ref, program=program, force=True, wait=False)
        handle = re.match(r"wait\((s\d+_o\d+)\)", answer)
        assert handle, answer
        wait = f"wait({handle[1]})"

        def check(port):
            current = text_even_of_a_refusal(port, "plasm_run", ref, program=wait)
            assert current.startswith("wait(") or is_an_end(current), current
            if "done: comment_add" in current:
                record_done(self.facts, text)

        self.facts.add(Fact("operation", ref, wait, check, program=wait))


def record_done(facts, text):
    with facts.lock:
        if text not in facts.done:
            facts.done.append(text)


def is_an_end(text):
    """Whether a text is a result, or the report on a run whose process died."""
    return text.startswith(("## ", "interrupted: ", "replayed", "wait(")) or "unknown" in text or "done: " in text


def same_rows(port, uri, table):
    answer = call(port, "read_artifact", {"uri": uri})
    current = tables(answer["content"][0]["text"])["result"]
    assert current == table, f"{uri}: was {table}, now {current}"


# --- one call


def text_even_of_a_refusal(port, tool, ref, **arguments):
    return call(port, tool, {"logical_session_ref": ref, **arguments}, refusals=True)["content"][0]["text"]


def text_of_call(port, tool, ref, **arguments):
    return call(port, tool, {"logical_session_ref": ref, **arguments})["content"][0]["text"]


def call(port, tool, arguments, refusals=False):
    result = post(port, tool, json.dumps(modern("tools/call", {"name": tool, "arguments": arguments})))
    refused = result.get("isError") and not refusals
    assert not refused, f"{tool} {json.dumps(arguments)[:200]}: {result['content'][0]['text'][:400]}"
    return result


def post(port, tool, body):
    headers = {"Content-Type": "application/json", "Accept": JSON_OR_EVENTS, **modern_headers("tools/call", tool)}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as gone:
        raise Lost from gone
    finally:
        connection.close()
    assert answer.status == 200, f"{tool}: {answer.status} {text[:300]}"
    if "text/event-stream" in answer.headers.get("content-type", ""):
        data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        text = next((line for line in reversed(data) if line), "")
    try:
        return json.loads(text)["result"]
    except (ValueError, KeyError) as half:
        # The process died between the head and the end of the answer.
        if not text or isinstance(half, ValueError):
            raise Lost from half
        raise
