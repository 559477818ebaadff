"""What `kills.py` loads a server with, and what it was told.

Invariant: a fact is recorded only after its answer was read to the end; looking at a fact changes nothing that another
fact says.
"""

import http.client
import json
import re
import threading
from collections import Counter

from answers import seeds, symbols, tables
from harness import BOTH, modern, modern_headers

PAGE = 25
ENTITIES = ("Ticket", "Comment", "Project", "Person")
WRITES = [{**seed, "capabilities": ["*"]} for seed in seeds("Ticket", "Comment", api="tracker")]
TICKET = 'Ticket(project="OPS", number=42)'


class Lost(Exception):
    """The server was gone before the answer was whole."""


class Told:
    """Everything the clients were told, in order."""

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
    def __init__(self, kind, ref, name, look, program=None):
        self.kind, self.ref, self.name, self.program = kind, ref, name, program
        self.look = look


class Client:
    """One agent: a session of its own and one that all share."""

    def __init__(self, port, age, number, told, chance):
        self.port, self.name, self.told, self.chance = port, f"{age}-{number}", told, chance
        # A session lives over many kills, and there are always young ones that are still being taught.
        self.intents = [f"client {number}, {age // 40}", f"client {number}, {age // 3}", f"all of us, {age // 20}"]
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
            with self.told.lock:
                self.told.lost += 1
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

        def look(port):
            replay = {"intent": intent, "seeds": seeds("Ticket", api="tracker"), "replay": True}
            now = call(port, "plasm_context", replay)
            assert now["_meta"]["plasm"]["logical_session_id"] == ref, "another session has this intent"
            whole = symbols(now["content"][0]["text"])
            assert taught.items() <= whole.items(), f"told {taught}, now {whole}"
            assert set(whole) == {f"e{n + 1}" for n in range(len(whole))}, f"gaps: {whole}"

        self.told.add(Fact("symbols", ref, f"{taught}", look))

    def result(self, ref):
        project, rows = self.chance.choice(["OPS", "API", "WEB"]), self.chance.randint(1, 9)
        program = f'Ticket{{project="{project}"}}.limit({rows})[number, title]'
        answer = call(self.port, "plasm_run", {"logical_session_ref": ref, "program": program})
        uri = answer["_meta"]["plasm"]["steps"][0]["artifact_uri"]
        table = tables(answer["content"][0]["text"])["result"]
        assert len(table) == rows, answer["content"][0]["text"]
        self.told.add(Fact("result", ref, uri, lambda port: same_rows(port, uri, table)))

    def pages(self, ref):
        answer = call(self.port, "plasm_run", {"logical_session_ref": ref, "program": "Ticket[project, number]"})
        handle = answer["_meta"]["plasm"]["paging"][0]["next_page_handle"]

        def look(port):
            rows = tables(said(port, "plasm_run", ref, program=f"page({handle})"))["result"]
            first = (rows[0]["project"], rows[0]["number"])
            assert len(rows) == PAGE and first == ("API", str(PAGE + 1)), f"{len(rows)} rows from {first}"

        self.told.add(Fact("page", ref, handle, look))

    def commit(self, ref):
        text = self.text("commit")
        program = f'Comment.add(ticket={TICKET}, text="{text}")'
        planned = call(self.port, "plasm", {"logical_session_ref": ref, "program": program})
        commit = planned["_meta"]["plasm"]["plan_commit_ref"]
        again = {"plan_commit_ref": commit}
        self.write("commit", ref, text, again, again)

    def request(self, ref):
        text = self.text("request")
        program = f'Comment.add(ticket={TICKET}, text="{text}")'
        asked = {"program": program, "force": True, "request_id": text}
        self.write("request", ref, text, asked, asked)

    def write(self, kind, ref, text, asked, again):
        """From here on it may have happened; what is told of it later must be what was told first."""

        def look(port):
            now = answered(port, "plasm_run", ref, **again)
            finished = fact.first is not None and fact.first.startswith("## ")
            assert not finished or "replayed: nothing ran again" in now, now
            assert ended(now), now
            if "done: comment_add" in now:
                done_once(self.told, text)
            fact.first = fact.first or now

        fact = Fact(kind, ref, text, look)
        fact.first = None
        try:
            fact.first = said(self.port, "plasm_run", ref, **asked)
            assert "done: comment_add" in fact.first, fact.first
            done_once(self.told, text)
        finally:
            self.told.add(fact)

    def operation(self, ref):
        text = self.text("operation")
        program = f'Comment.add(ticket={TICKET}, text="{text}")'
        answer = said(self.port, "plasm_run", ref, program=program, force=True, wait=False)
        handle = re.match(r"wait\((s\d+_o\d+)\)", answer)
        assert handle, answer
        wait = f"wait({handle[1]})"

        def look(port):
            now = answered(port, "plasm_run", ref, program=wait)
            assert now.startswith("wait(") or ended(now), now
            if "done: comment_add" in now:
                done_once(self.told, text)

        self.told.add(Fact("operation", ref, wait, look, program=wait))


def done_once(told, text):
    with told.lock:
        if text not in told.done:
            told.done.append(text)


def ended(text):
    """A result, or what is known of a run whose process died."""
    return text.startswith(("## ", "interrupted: ", "replayed", "wait(")) or "unknown" in text or "done: " in text


def same_rows(port, uri, table):
    answer = call(port, "read_artifact", {"uri": uri})
    now = tables(answer["content"][0]["text"])["result"]
    assert now == table, f"{uri}: told {table}, now {now}"


# --- one call


def answered(port, tool, ref, **arguments):
    return call(port, tool, {"logical_session_ref": ref, **arguments}, refusals=True)["content"][0]["text"]


def said(port, tool, ref, **arguments):
    return call(port, tool, {"logical_session_ref": ref, **arguments})["content"][0]["text"]


def call(port, tool, arguments, refusals=False):
    result = post(port, tool, json.dumps(modern("tools/call", {"name": tool, "arguments": arguments})))
    refused = result.get("isError") and not refusals
    assert not refused, f"{tool} {json.dumps(arguments)[:200]}: {result['content'][0]['text'][:400]}"
    return result


def post(port, tool, body):
    headers = {"Content-Type": "application/json", "Accept": BOTH, **modern_headers("tools/call", tool)}
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
        # The head came, the answer did not: the process died in between.
        if not text or isinstance(half, ValueError):
            raise Lost from half
        raise
