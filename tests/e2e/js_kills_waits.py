"""Programs that wait, killed at random awaits until they are done: what they come to, and what happened outside.

Continuations: several programs at once, each a loop over `Promise.all` of twenty slow reads and one write that needs no
review; the process is killed until enough programs were interrupted. Reviews: a write that code asks for waits for a commit
from outside, over kills before and after it.

Invariants: the API is a process of its own that nobody kills, and its count, read when everything is over, is what happened;
a program is interrupted when it was accepted before the kill and ended after it, by its own record; a kill counts when it
interrupted one. What was told as done happened once, nothing happened twice, and nothing happened that nobody asked for.
"""

import os
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

from harness import Server
from js_kills_load import FINAL, Lost, Refused, api, tool
from tracker import SEEDS, Api, digest

# Interrupted programs, in all.
WAITS = int(os.environ.get("JS_WAITS", "200"))
# The long form is not done before so many kills fell between the acceptance and the end of a program.
HITS = 200 if WAITS >= 1000 else 0
AT_ONCE = 5
ROUNDS = 4
CALLS = 20
SLOW_MS = 25
REVIEWS = 16


class Program:
    """One program under way, in a session of its own."""

    def __init__(self, port, number):
        self.number, self.interrupted = number, 0
        opened = tool(port, "plasm_context", {"intent": f"waits {number}", "seeds": SEEDS}, whole=True)
        self.ref = opened["_meta"]["plasm"]["logical_session_id"]
        asked = {"code": self.code(), "logical_session_ref": self.ref, "wait_ms": 0, "timeout_ms": 300_000}
        self.id = tool(port, "run_js", asked)["execution_id"]

    def text(self, turn):
        return f"written by program {self.number} in turn {turn}"

    def code(self):
        return f"""
            const got = [], wrote = [];
            for (let turn = 0; turn < {ROUNDS}; turn++) {{
                const reads = Array.from({{length: {CALLS}}}, (_, n) =>
                    plasm(`Ticket{{project="OPS"}}.limit(${{n + 1}})[number]`).then(found => found.rows.length));
                const text = `written by program {self.number} in turn ${{turn}}`;
                const write = plasm(`Comment.add(ticket=Ticket(project="OPS", number=42), text="${{text}}")`)
                    .then(() => "done", problem => problem.message);
                got.push((await Promise.all(reads)).join());
                wrote.push(await write);
                console.log(`turn ${{turn}}`);
            }}
            ({{got, wrote}})"""


def continuations(suite, chance, seed):
    began, kills, hits, interrupted, over, number = time.monotonic(), 0, 0, 0, [], 0
    active = []

    def enough():
        return interrupted >= WAITS and hits >= HITS

    with Api() as tracker, suite.case(f"{WAITS} programs killed at an await: each ends right, nothing outside happened twice"):
        data, arguments = tempfile.mkdtemp(prefix="data-"), settings(tracker, "writes_without_review = true\n")
        killed = None
        while active or not enough():
            with Server(data=data, arguments=arguments) as server:
                before = interrupted
                slow(tracker, chance)
                for program in list(active):
                    found = api(server.port, "GET", f"/api/executions/{program.id}")
                    ended = found["status"] in FINAL
                    if not ended or datetime.fromisoformat(found["completed_at"]) > killed:
                        interrupted += 1
                        program.interrupted += 1
                    if ended:
                        active.remove(program)
                        over.append((program, found))
                hits += interrupted > before
                while not enough() and len(active) < AT_ONCE:
                    active.append(Program(server.port, number))
                    number += 1
                if enough():
                    over += [(program, ended_of(server.port, program.id)) for program in active]
                    active.clear()
                    printed = [api(server.port, "GET", f"/api/executions/{program.id}/output")["data"] for program, _ in over]
                    assert server.stop(20) == 0
                    break
                time.sleep(chance.uniform(0.05, 0.7))
                server.kill()
                killed = datetime.now(timezone.utc)
                kills += 1
        done, unknown, lost = check(tracker, over, printed, seed)
        most = max(program.interrupted for program, _ in over)
        print(
            f"# js_kills: {kills} kills, {hits} of them between the acceptance and the end of a program: {interrupted} interruptions "
            f"in {time.monotonic() - began:.0f} s; {len(over)} programs, one interrupted {most} times; "
            f"{done} writes told as done, {unknown} as unknown, of which {lost} did not happen",
            flush=True,
        )
        assert hits >= HITS, f"seed {seed}: only {hits} kills fell into a program"


def check(tracker, over, printed, seed):
    happened = tracker.effects()
    rows = ",".join(str(n + 1) for n in range(CALLS))
    for (program, found), output in zip(over, printed, strict=True):
        where = f"seed {seed}, program {program.number} (interrupted {program.interrupted} times)"
        assert found["status"] == "completed", f"{where}: {found}"
        assert found["result"]["got"] == [rows] * ROUNDS, f"{where}: {found['result']}"
        assert output == "".join(f"turn {turn}\n" for turn in range(ROUNDS)), f"{where}: printed {output!r}"
        for turn, said in enumerate(found["result"]["wrote"]):
            times = happened.count(digest(program.text(turn)))
            least = 1 if said == "done" else 0
            assert least <= times <= 1, f"{where}: turn {turn} was told {said!r}, and happened {times} times"
    done = sum(said == "done" for _, found in over for said in found["result"]["wrote"])
    assert len(happened) == len(set(happened)), f"seed {seed}: an effect happened twice"
    asked = {digest(program.text(turn)) for program, _ in over for turn in range(ROUNDS)}
    assert set(happened) <= asked, f"seed {seed}: something happened that nobody asked for"
    others = [said for _, found in over for said in found["result"]["wrote"] if said != "done"]
    assert done + len(others) == ROUNDS * len(over), f"seed {seed}: {done} and {len(others)} writes of {len(over)} programs"
    assert done > len(others), f"seed {seed}: only {done} writes were told as done: {others[:2]}"
    silent = [said for said in others if "nobody knows" not in said]
    assert not silent, f"seed {seed}: an effect that may have happened is not said to be unknown: {silent[0]}"
    return done, len(others), ROUNDS * len(over) - len(happened)


def reviews(suite, chance, seed):
    with Api() as tracker, suite.case(f"{REVIEWS} writes that code asked for wait for a commit from outside, over kills"):
        data, arguments = tempfile.mkdtemp(prefix="data-"), settings(tracker)
        waiting = []
        with Server(data=data, arguments=arguments) as server:
            for number in range(REVIEWS):
                waiting.append(asked_for(server.port, number))
            server.kill()
        for program in waiting:
            with Server(data=data, arguments=arguments) as server:
                found = api(server.port, "GET", f"/api/executions/{program['id']}")
                assert found["status"] == "waiting_review", f"seed {seed}: {found}"
                assert found["reviews"] == program["reviews"], f"seed {seed}: {found['reviews']}"
                assert digest(program["text"]) not in tracker.effects(), f"seed {seed}: nobody has committed it"
                slow(tracker, chance)
                approve(chance, server, program)
                server.kill()
        with Server(data=data, arguments=arguments) as server:
            ended = []
            for program in waiting:
                approve_again(server.port, program)
                ended.append(ended_of(server.port, program["id"]))
            # Once more, when every one of them is over: a commit that ran does not run again.
            for program in waiting:
                approve_again(server.port, program)
            assert server.stop(20) == 0
        counts = reviewed(tracker.effects(), waiting, ended, seed)
        print(f"# js_kills: {len(waiting)} reviews over {len(waiting) + 1} kills: {counts}", flush=True)


def reviewed(happened, waiting, ended, seed):
    """What the API counted when everything was over, held against what was told."""
    completed, unknown, lost = 0, 0, 0
    for program, found in zip(waiting, ended, strict=True):
        times = happened.count(digest(program["text"]))
        where = f"seed {seed}: {program['text']}, committed: {program['told']}, happened {times} times: {found}"
        assert times <= 1, where
        if found["status"] == "completed":
            assert times == 1 and found["result"] == [program["text"], 1], where
            completed += 1
        else:
            # Its process died between the request and the answer: that may be said of a write that nobody was told of.
            assert found["status"] == "failed" and not program["told"], where
            assert "nobody knows" in found["error"]["message"], where
            unknown, lost = unknown + 1, lost + (times == 0)
    assert len(happened) == len(set(happened)) and len(happened) == completed + unknown - lost, f"seed {seed}: {happened}"
    assert any(program["told"] for program in waiting), "no commit was told as done before its kill"
    assert unknown <= sum(program["cut"] for program in waiting), f"seed {seed}: {unknown} unknown, and fewer were cut off"
    cut = sum(program["cut"] for program in waiting)
    return f"{cut} commits were cut off; {completed} completed, {unknown} unknown, of which {lost} did not happen"


def asked_for(port, number):
    opened = tool(port, "plasm_context", {"intent": f"reviews {number}", "seeds": SEEDS}, whole=True)
    ref = opened["_meta"]["plasm"]["logical_session_id"]
    text = f"reviewed {number}"
    code = f"""let before = 1; const added = await plasm('Comment.add(ticket=Ticket(project="OPS", number=42), text="{text}")');
        [added.rows[0]?.text ?? "{text}", before]"""
    ran = tool(port, "run_js", {"code": code, "logical_session_ref": ref, "timeout_ms": 300_000})
    assert ran["status"] == "waiting_review", ran
    return {"id": ran["execution_id"], "ref": ref, "text": text, "reviews": ran["reviews"], "told": False, "cut": False}


def approve(chance, server, program):
    """Commits it from outside, and dies at some moment around it."""
    commit = {"logical_session_ref": program["ref"], "plan_commit_ref": program["reviews"][0]["plan_commit_ref"]}
    if chance.random() < 0.2:
        return
    killer = None
    if chance.random() < 0.7:
        killer = threading.Timer(chance.uniform(0.0, 0.08), server.process.kill)
        killer.start()
    try:
        tool(server.port, "plasm_run", commit, whole=True)
        program["told"] = True
    except Lost:
        program["cut"] = True
    finally:
        if killer:
            killer.join()


def approve_again(port, program):
    """Whoever was not told asks again: it runs, or it is told what became of it."""
    commit = {"logical_session_ref": program["ref"], "plan_commit_ref": program["reviews"][0]["plan_commit_ref"]}
    try:
        tool(port, "plasm_run", commit, whole=True)
    except Refused:
        pass


def settings(tracker, js=""):
    config = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    config.write_text(f"[js]\n{js}")
    return ["--no-demo", "--catalogs", str(tracker.catalogs()), "--config", str(config)]


def slow(tracker, chance):
    """The API takes its time: before a write happens, or after it, so that a kill falls on either side."""
    rules = [("GET", f"slow={SLOW_MS}"), ("POST", f"slow={SLOW_MS};when={chance.choice(('before', 'after'))}")]
    tracker.ask("/control/faults", {"rules": [{"fault": fault, "method": method, "path": "/api/*"} for method, fault in rules]})


def ended_of(port, execution, seconds=60):
    until = time.monotonic() + seconds
    while (found := api(port, "GET", f"/api/executions/{execution}"))["status"] not in FINAL:
        assert time.monotonic() < until, f"still {found['status']} after {seconds} s"
        time.sleep(0.05)
    return found
