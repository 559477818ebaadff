"""The load of the kill tests of scripts, and everything that its clients read.

Every step of code adds its own name to two arrays of its session, one before it waits and one after, and prints it. So the log of a
session, played again, says what its heap must hold: each acknowledged step once, each other step at most once, and nothing else.

Invariant: a fact is recorded only after its answer was read to the end; looking changes nothing that another fact says.
"""

import http.client
import json
import re
import threading
from collections import Counter

from lib.answers import seeds
from lib.client import JSON_OR_EVENTS, modern, modern_headers, request

FINAL = ("completed", "failed", "cancelled", "timed_out")
STEP = re.compile(r"/\*step (\S+)\*/")
# Refusals that a correct server may give under such a load; nothing was accepted.
REFUSED = ("busy", "under_way", "intent_taken")


class Lost(Exception):
    """The server was gone before the answer was complete."""


class Refused(Exception):
    """The server refused the request, with this reason."""


class Facts:
    """Everything that the clients read."""

    def __init__(self):
        self.lock = threading.Lock()
        # The steps that clients requested, by session (`l/…` logical, `n/…` named) and name.
        self.steps = {}
        # The longest log that a client has read, by session.
        self.logs = {}
        # Executions that ended, as their clients read it; a final state never changes.
        self.ended = {}
        # Accepted executions whose end no client has read, with their steps.
        self.accepted = {}
        # Heaps outside of sessions, and their content.
        self.heaps = {}
        # The possible tags of each heap: several where an answer was lost.
        self.tags = {}
        # The content of each heap by its key; a heap never changes.
        self.content = {}
        self.touched = set()
        self.kinds = Counter()
        self.lost = 0

    def requested(self, session, step):
        with self.lock:
            self.steps.setdefault(session, {})[step] = None
            self.touched.add(session)

    def ran(self, session, step, answer):
        with self.lock:
            self.kinds[f"{answer['status']} runs"] += 1
            if answer["status"] in FINAL:
                self.ended[answer["execution_id"]] = outcome_of(answer)
                if session:
                    self.steps[session][step] = answer
            else:
                self.accepted[answer["execution_id"]] = (session, step)


def outcome_of(answer):
    return {key: answer.get(key) for key in ("status", "result", "error", "heap")}


class Client:
    """One agent: sessions of its own, one that all share, forks of both, and heaps outside of any."""

    def __init__(self, port, round_number, number, facts, chance):
        self.port, self.name, self.facts, self.chance = port, f"{round_number}.{number}", facts, chance
        # Sessions live over many kills, and new ones are opened all the time.
        self.intents = [f"js client {number}, {round_number // 12}", f"js client {number}, {round_number // 3}", f"js of all, {round_number // 8}"]
        self.named = f"connection {number}, {round_number // 6}"
        self.refs, self.mine = {}, []
        self.stopped = threading.Event()
        self.wrong = None
        self.count = 0

    def stop(self):
        self.stopped.set()

    def work(self):
        kinds = [self.step] * 6 + [self.waiting_step] * 4 + [self.step_without_waiting] * 3 + [self.named_step] * 3 + [self.on_heap] * 2
        kinds += [self.tag, self.fork, self.rewind, self.read_log, self.fail, self.cancel, self.large_step]
        try:
            while not self.stopped.is_set():
                try:
                    self.chance.choice(kinds)()
                except Refused as refusal:
                    if not str(refusal).startswith(REFUSED):
                        raise
        except Lost:
            with self.facts.lock:
                self.facts.lost += 1
        except Exception as problem:
            self.wrong = f"{type(problem).__name__}: {problem}"

    def next(self):
        self.count += 1
        return f"{self.name}.{self.count}"

    def session(self):
        intent = self.chance.choice(self.intents)
        if intent not in self.refs:
            opened = tool(self.port, "plasm_context", {"intent": intent, "seeds": seeds("Repository", api="github")}, whole=True)
            self.refs[intent] = opened["_meta"]["plasm"]["logical_session_id"]
        return self.refs[intent]

    # --- runs

    def step(self, **more):
        ref, step = self.session(), self.next()
        return self.run(f"l/{ref}", step, code(step), logical_session_ref=ref, **more)

    def waiting_step(self):
        ref, step = self.session(), self.next()
        waits = " ".join(f"await sleep({self.chance.randint(0, 12)});" for _ in range(self.chance.randint(1, 4)))
        self.run(f"l/{ref}", step, code(step, waits), logical_session_ref=ref)

    def step_without_waiting(self):
        ref, step = self.session(), self.next()
        waits = f"await sleep({self.chance.randint(0, 30)});" if self.chance.random() < 0.5 else ""
        self.run(f"l/{ref}", step, code(step, waits), logical_session_ref=ref, wait_ms=0)

    def large_step(self):
        """A heap whose objects do not fit into a row."""
        ref, step = self.session(), self.next()
        big = f"globalThis.big = Array.from({{length: 9000}}, (_, i) => `{step} ${{i * 7919 % 10007}}`);"
        self.run(f"l/{ref}", step, code(step, big), logical_session_ref=ref)

    def named_step(self):
        """A named session starts fresh without an explicit heap."""
        session, step = f"n/{self.named}", self.next()
        log = self.facts.logs.get(session) or []
        heap = {"heap": log[-1]["output_heap"], "require_heap": True} if log and self.chance.random() < 0.7 else {}
        answer = self.run(session, step, code(step), session=self.named, **heap)
        if answer["status"] == "completed":
            self.read_named()

    def on_heap(self):
        """Runs code outside of any session, on a heap that a client knows."""
        with self.facts.lock:
            known = list(self.facts.heaps)[-50:]
        heap = self.chance.choice(known) if known else None
        step = self.next()
        arguments = {"heap": heap, "require_heap": True} if heap else {}
        answer = self.run(None, step, code(step) + "; [seen, half]", **arguments)
        if answer["status"] == "completed":
            seen, half = answer["result"]
            before = self.facts.heaps.get(heap, ([], []))
            assert seen == before[0] + [step] and half == before[1] + [step], f"on {heap}: {before} became {seen}"
            self.mine.append(answer["heap"])
            with self.facts.lock:
                self.facts.heaps[answer["heap"]] = (seen, half)

    def fail(self):
        ref, step = self.session(), self.next()
        answer = self.run(f"l/{ref}", step, code(step) + "; throw new RangeError('on purpose')", logical_session_ref=ref)
        assert answer["status"] == "failed" and answer["error"]["name"] == "RangeError", answer

    def cancel(self):
        ref, step = self.session(), self.next()
        answer = self.run(f"l/{ref}", step, code(step, "await sleep(1500);"), logical_session_ref=ref, wait_ms=0)
        execution = answer["execution_id"]
        try:
            tool(self.port, "cancel_execution", {"execution_id": execution})
        except Refused:
            return  # The run had ended before; it stays among the accepted ones.
        with self.facts.lock:
            self.facts.accepted.pop(execution, None)
            self.facts.ended[execution] = {"status": "cancelled", "result": None, "error": None, "heap": None}
            self.facts.steps[f"l/{ref}"][step] = {"status": "cancelled"}

    def run(self, of, step, text, **arguments):
        if of:
            self.facts.requested(of, step)
        tags = {"step": step} if self.chance.random() < 0.2 else None
        arguments = {"code": text, **({"tags": tags} if tags else {}), **arguments}
        answer = self.by_http(arguments) if "session" in arguments or self.chance.random() < 0.4 else self.by_mcp(arguments)
        self.facts.ran(of, step, answer)
        if tags and answer["status"] == "completed":
            with self.facts.lock:
                self.facts.tags[answer["heap"]] = [tags]
                self.facts.kinds["tagged"] += 1
        return answer

    def by_mcp(self, arguments):
        return tool(self.port, "run_js", arguments, failures=True)

    def by_http(self, arguments):
        return api(self.port, "POST", "/api/exec", arguments)

    # --- logs, tags, forks and rewinds

    def read_log(self):
        ref = self.session()
        entries = tool(self.port, "list_session_snapshots", {"logical_session_ref": ref})["entries"]
        self.keep_log(f"l/{ref}", entries)

    def read_named(self):
        entries = api(self.port, "GET", f"/api/sessions/{self.named.replace(' ', '%20')}/snapshots")["entries"]
        self.keep_log(f"n/{self.named}", entries)

    def keep_log(self, session, entries):
        with self.facts.lock:
            known = self.facts.logs.get(session, [])
            shorter, longer = sorted((known, entries), key=len)
            assert longer[: len(shorter)] == shorter, f"the log of {session} changed: {shorter[-1:]}"
            self.facts.logs[session] = longer
            self.facts.kinds["logs"] += 1

    def tag(self):
        """Tags a heap that no other client tags."""
        if not self.mine:
            return
        heap, tags = self.chance.choice(self.mine), {"by": self.name, "n": self.next()}
        with self.facts.lock:
            self.facts.tags[heap] = [*self.facts.tags.get(heap, [{}]), tags]
        tool(self.port, "set_heap_tags", {"heap": heap, "tags": tags})
        with self.facts.lock:
            self.facts.tags[heap] = [tags]
            self.facts.kinds["tagged"] += 1

    def fork(self):
        parent, intent = self.session(), f"fork {self.next()}"
        forked = tool(self.port, "fork_session", {"logical_session_ref": parent, "intent": intent})
        self.refs[intent] = forked["logical_session_id"]
        # The fork replaces another session of this client, so that their number stays the same.
        self.intents[self.chance.randrange(2)] = intent
        with self.facts.lock:
            self.facts.steps.setdefault(f"l/{forked['logical_session_id']}", {})
            self.facts.touched.add(f"l/{forked['logical_session_id']}")
            self.facts.kinds["forks"] += 1

    def rewind(self):
        ref = self.session()
        known = self.facts.logs.get(f"l/{ref}")
        if not known:
            return self.read_log()
        at = self.chance.randrange(len(known))
        entry = tool(self.port, "rewind_session", {"logical_session_ref": ref, "index": at})["entry"]
        assert entry["rewound_to"] == at and entry["output_heap"] == known[at]["output_heap"], entry
        with self.facts.lock:
            self.facts.touched.add(f"l/{ref}")
            self.facts.kinds["rewinds"] += 1


def code(step, between=""):
    before = f"/*step {step}*/ globalThis.sleep ??= ms => new Promise(done => setTimeout(done, ms)); "
    before += f"(globalThis.half ??= []).push('{step}'); console.log('{step}'); "
    return f"{before}{between} (globalThis.seen ??= []).push('{step}')"


# --- checks after a start


def check(port, facts, sessions):
    """Checks all facts about these sessions, and the facts about runs, heaps and tags that are new since the last check."""
    for session in sessions:
        check_session(port, facts, session)
    check_runs(port, facts)


def check_session(port, facts, session):
    kind, name = session.split("/", 1)
    if kind == "l":
        log = tool(port, "list_session_snapshots", {"logical_session_ref": name})["entries"]
    else:
        log = api(port, "GET", f"/api/sessions/{name.replace(' ', '%20')}/snapshots")["entries"]
    known = facts.logs.get(session, [])
    assert log[: len(known)] == known, f"{session}: entries that were read have changed"
    assert [entry["index"] for entry in log] == list(range(len(log))), f"{session}: the index has gaps"
    facts.logs[session] = log
    replay(port, facts, session, log)
    times = Counter(step for entry in log if (step := step_of(entry)))
    heaps = {step_of(entry): entry["output_heap"] for entry in log}
    for step, answer in facts.steps.get(session, {}).items():
        status = answer["status"] if answer else None
        least, most = {None: (0, 1), "completed": (1, 1)}.get(status, (0, 0))
        assert least <= times[step] <= most, f"{session}: step {step} ({status}) is logged {times[step]} times"
        if status == "completed":
            assert heaps[step] == answer["heap"], f"{session}: step {step} left {answer['heap']}, the log says {heaps[step]}"
    unasked = set(times) - set(facts.steps.get(session, {}))
    assert not unasked, f"{session}: no client asked for {unasked}"
    if log:
        head = log[-1]["output_heap"]
        found = read_heap(port, head)
        assert found == facts.content[head], f"{session}: the head holds {found}, the log says {facts.content[head]}"


def replay(port, facts, session, log):
    """Computes the content of each heap of a log by playing the log again."""
    for at, entry in enumerate(log):
        before, after = entry["input_heap"], entry["output_heap"]
        if after in facts.content:
            continue
        if before is not None and before not in facts.content:
            # The first heap of a fork, whose parent session was not checked.
            facts.content[before] = read_heap(port, before)
        seen, half = facts.content[before] if before is not None else ([], [])
        if (step := step_of(entry)) is None:
            assert "rewound_to" in entry, f"{session}: entry {at} is no step of ours: {entry}"
            facts.content[after] = facts.content[log[entry["rewound_to"]]["output_heap"]]
        else:
            facts.content[after] = (seen + [step], half + [step])
        if at > 0 and session.startswith("l/"):
            assert before == log[at - 1]["output_heap"], f"{session}: entry {at} does not stand on the head"


def read_heap(port, heap):
    arguments = {"code": "[globalThis.seen ?? [], globalThis.half ?? []]", "heap": heap, "require_heap": True}
    found = api(port, "POST", "/api/exec", arguments)
    assert found["status"] == "completed", f"heap {heap}: {found}"
    return tuple(found["result"])


def step_of(entry):
    found = STEP.search(entry["code"])
    return found[1] if found else None


def check_runs(port, facts):
    """Checks that every accepted run has ended, and that ended runs are what their clients read."""
    for execution, (session, step) in list(facts.accepted.items()):
        found = api(port, "GET", f"/api/executions/{execution}")
        assert found["status"] in FINAL, f"{execution} is {found['status']}"
        facts.ended[execution] = outcome_of(found)
        if session:
            facts.steps[session][step] = found
        if found["status"] == "completed":
            printed = api(port, "GET", f"/api/executions/{execution}/output")["data"]
            assert printed == f"{step}\n", f"step {step} printed {printed!r}"
        del facts.accepted[execution]
    for execution, outcome in list(facts.ended.items())[-40:]:
        found = outcome_of(api(port, "GET", f"/api/executions/{execution}"))
        assert found == outcome, f"{execution}: was {outcome}, now {found}"
    for heap, content in list(facts.heaps.items())[-10:]:
        found = read_heap(port, heap)
        assert found == tuple(content), f"{heap}: was {content}, now {found}"
    for heap, possible in list(facts.tags.items())[-20:]:
        found = tool(port, "get_heap_tags", {"heap": heap})["tags"]
        assert found in possible, f"tags of {heap}: {found}, none of {possible}"
        facts.tags[heap] = [found]


# --- one call


def tool(port, name, arguments, whole=False, failures=False):
    """The answer of a tool. A refusal is raised; with `failures` a failed run is an answer."""
    headers = {"Content-Type": "application/json", "Accept": JSON_OR_EVENTS, **modern_headers("tools/call", name)}
    body = json.dumps(modern("tools/call", {"name": name, "arguments": arguments}))
    status, kind, text = exchange(port, "POST", "/mcp", body, headers)
    assert status == 200, f"{name}: {status} {text[:300]}"
    if "text/event-stream" in kind:
        data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        text = next((line for line in reversed(data) if line), "")
    result = json_of(text)["result"]
    value = result.get("structuredContent")
    if result.get("isError") and not (failures and value and "status" in value):
        raise Refused(result["content"][0]["text"][:500])
    return result if whole else value


def api(port, method, path, value=None):
    headers = {"Content-Type": "application/json", "Accept": JSON_OR_EVENTS}
    status, _, text = exchange(port, method, path, json.dumps(value) if value is not None else None, headers)
    answer = json_of(text)
    if status >= 300:
        raise Refused(f"{answer.get('code')}: {text[:400]}")
    return answer


def exchange(port, method, path, body, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("content-type", ""), answer.read().decode()
    except (OSError, http.client.HTTPException) as gone:
        raise Lost from gone
    finally:
        connection.close()


def json_of(text):
    try:
        return json.loads(text)
    except ValueError as half:
        # The process died between the head and the end of the answer.
        raise Lost from half


def is_idle(port):
    """Whether no run is running."""
    listed = json.loads(request(port, "GET", "/api/executions?limit=300").body)["executions"]
    return all(execution["status"] in FINAL for execution in listed)
