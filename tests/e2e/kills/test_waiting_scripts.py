"""Scripts that wait, killed at random awaits until they are done: their results, and the effects outside.

Continuations: several scripts at once, each a loop over `Promise.all` of twenty slow reads and one write that needs no review; the
process is killed until enough scripts were interrupted. Reviews: a write of code waits for a commit from outside, over kills before
and after the commit.

Invariants: the test API runs in a process of its own that no test kills, and its count, read at the end, says what happened. A script is
interrupted when it was accepted before a kill and ended after it, by its own record. An effect that was reported as done happened
once, no effect happened twice, and none happened that no client asked for.
"""

import os
import random
import tempfile
import threading
import time
from datetime import datetime, timezone

import pytest

from lib.test_api import SEEDS, TrackerApi, digest
from lib.server import Server, settings
from script_load import FINAL, Lost, Refused, api, tool

SEED = int(os.environ.get("KILLS_SEED", str(random.SystemRandom().randrange(1 << 32))))
# The number of interrupted scripts, in all.
WAITS = int(os.environ.get("JS_WAITS", "200"))
# The long form ends only after so many kills between the acceptance and the end of a script.
HITS = 200 if WAITS >= 1000 else 0
AT_ONCE = 5
ROUNDS = 4
CALLS = 20
SLOW_MS = 25
REVIEWS = 16

pytestmark = [pytest.mark.serial, pytest.mark.long, pytest.mark.timeout(600 + WAITS * 3)]


class Script:
    """One running script in a session of its own."""

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


def test_killed_at_any_await_every_script_ends_with_its_result_and_no_effect_happens_twice():
    chance, seed = random.Random(SEED), SEED
    began, kills, kills_within_a_script, interrupted, finished, number = time.monotonic(), 0, 0, 0, [], 0
    active = []

    def enough():
        return interrupted >= WAITS and kills_within_a_script >= HITS

    with TrackerApi() as tracker_api:
        data, arguments = tempfile.mkdtemp(prefix="data-"), server_arguments(tracker_api, "writes_without_review = true\n")
        killed = None
        while active or not enough():
            with Server(data=data, arguments=arguments) as server:
                before = interrupted
                slow_down_api(tracker_api, chance)
                for script in list(active):
                    record = api(server.port, "GET", f"/api/executions/{script.id}")
                    ended = record["status"] in FINAL
                    if not ended or datetime.fromisoformat(record["completed_at"]) > killed:
                        interrupted += 1
                        script.interrupted += 1
                    if ended:
                        active.remove(script)
                        finished.append((script, record))
                kills_within_a_script += interrupted > before
                while not enough() and len(active) < AT_ONCE:
                    active.append(Script(server.port, number))
                    number += 1
                if enough():
                    finished += [(script, wait_until_ended(server.port, script.id)) for script in active]
                    active.clear()
                    printed = [api(server.port, "GET", f"/api/executions/{script.id}/output")["data"] for script, _ in finished]
                    assert server.stop(20) == 0
                    break
                time.sleep(chance.uniform(0.05, 0.7))
                server.kill()
                killed = datetime.now(timezone.utc)
                kills += 1
        done, unknown, lost = check_continuations(tracker_api, finished, printed, seed)
        most = max(script.interrupted for script, _ in finished)
        print(
            f"{kills} kills, {kills_within_a_script} of them between the acceptance and the end of a script: {interrupted} interruptions "
            f"in {time.monotonic() - began:.0f} s; {len(finished)} scripts, one interrupted {most} times; "
            f"{done} writes reported as done, {unknown} as unknown, of which {lost} did not happen"
        )
        assert kills_within_a_script >= HITS, f"seed {seed}: only {kills_within_a_script} kills fell into a script"


def check_continuations(tracker_api, finished, printed, seed):
    happened = tracker_api.effects()
    rows = ",".join(str(n + 1) for n in range(CALLS))
    for (script, record), output in zip(finished, printed, strict=True):
        where = f"seed {seed}, script {script.number} (interrupted {script.interrupted} times)"
        assert record["status"] == "completed", f"{where}: {record}"
        assert record["result"]["got"] == [rows] * ROUNDS, f"{where}: {record['result']}"
        assert output == "".join(f"turn {turn}\n" for turn in range(ROUNDS)), f"{where}: printed {output!r}"
        for turn, outcome in enumerate(record["result"]["wrote"]):
            times = happened.count(digest(script.text(turn)))
            least = 1 if outcome == "done" else 0
            assert least <= times <= 1, f"{where}: turn {turn} was reported as {outcome!r} and happened {times} times"
    done = sum(outcome == "done" for _, record in finished for outcome in record["result"]["wrote"])
    assert len(happened) == len(set(happened)), f"seed {seed}: an effect happened twice"
    requested = {digest(script.text(turn)) for script, _ in finished for turn in range(ROUNDS)}
    assert set(happened) <= requested, f"seed {seed}: something happened that no script asked for"
    others = [outcome for _, record in finished for outcome in record["result"]["wrote"] if outcome != "done"]
    assert done + len(others) == ROUNDS * len(finished), f"seed {seed}: {done} and {len(others)} writes of {len(finished)} scripts"
    # How many writes come to their end between two kills depends on the machine.
    assert done > 0, f"seed {seed}: no write was reported as done: {others[:2]}"
    silent = [outcome for outcome in others if "nobody knows" not in outcome]
    assert not silent, f"seed {seed}: an effect that may have happened is not said to be unknown: {silent[0]}"
    return done, len(others), ROUNDS * len(finished) - len(happened)


def test_writes_of_code_wait_for_their_commit_over_kills():
    chance, seed = random.Random(SEED + 1), SEED
    with TrackerApi() as tracker_api:
        data, arguments = tempfile.mkdtemp(prefix="data-"), server_arguments(tracker_api)
        waiting = []
        with Server(data=data, arguments=arguments) as server:
            for number in range(REVIEWS):
                waiting.append(start_reviewed_script(server.port, number))
            server.kill()
        for script in waiting:
            with Server(data=data, arguments=arguments) as server:
                record = api(server.port, "GET", f"/api/executions/{script['id']}")
                assert record["status"] == "waiting_review", f"seed {seed}: {record}"
                assert record["reviews"] == script["reviews"], f"seed {seed}: {record['reviews']}"
                assert digest(script["text"]) not in tracker_api.effects(), f"seed {seed}: the effect happened before its commit"
                slow_down_api(tracker_api, chance)
                commit_from_outside(chance, server, script)
                server.kill()
        with Server(data=data, arguments=arguments) as server:
            ended = []
            for script in waiting:
                commit_again(server.port, script)
                ended.append(wait_until_ended(server.port, script["id"]))
            # Every script has ended, so no commit runs a second time.
            for script in waiting:
                commit_again(server.port, script)
            assert server.stop(20) == 0
        counts = check_reviews(tracker_api.effects(), waiting, ended, seed)
        print(f"{len(waiting)} reviews over {len(waiting) + 1} kills: {counts}")


def check_reviews(happened, waiting, ended, seed):
    """Compares the effects that the API counted at the end with the reports."""
    completed, unknown, lost = 0, 0, 0
    for script, record in zip(waiting, ended, strict=True):
        times = happened.count(digest(script["text"]))
        where = f"seed {seed}: {script['text']}, committed: {script['reported']}, happened {times} times: {record}"
        assert times <= 1, where
        if record["status"] == "completed":
            assert times == 1 and record["result"] == [script["text"], 1], where
            completed += 1
        else:
            # The process died between the request and the answer. Only a write without a report may be unknown.
            assert record["status"] == "failed" and not script["reported"], where
            assert "nobody knows" in record["error"]["message"], where
            unknown, lost = unknown + 1, lost + (times == 0)
    assert len(happened) == len(set(happened)) and len(happened) == completed + unknown - lost, f"seed {seed}: {happened}"
    assert any(script["reported"] for script in waiting), "no commit was reported as done before its kill"
    assert unknown <= sum(script["cut"] for script in waiting), f"seed {seed}: {unknown} unknown, and fewer were cut off"
    cut = sum(script["cut"] for script in waiting)
    return f"{cut} commits were cut off; {completed} completed, {unknown} unknown, of which {lost} did not happen"


def start_reviewed_script(port, number):
    opened = tool(port, "plasm_context", {"intent": f"reviews {number}", "seeds": SEEDS}, whole=True)
    ref = opened["_meta"]["plasm"]["logical_session_id"]
    text = f"reviewed {number}"
    code = f"""let before = 1; const added = await plasm('Comment.add(ticket=Ticket(project="OPS", number=42), text="{text}")');
        [added.rows[0]?.text ?? "{text}", before]"""
    ran = tool(port, "run_js", {"code": code, "logical_session_ref": ref, "timeout_ms": 300_000})
    assert ran["status"] == "waiting_review", ran
    return {"id": ran["execution_id"], "ref": ref, "text": text, "reviews": ran["reviews"], "reported": False, "cut": False}


def commit_from_outside(chance, server, script):
    """Commits the write from outside; the server is killed at a random moment near the commit."""
    commit = {"logical_session_ref": script["ref"], "plan_commit_ref": script["reviews"][0]["plan_commit_ref"]}
    if chance.random() < 0.2:
        return
    killer = None
    if chance.random() < 0.7:
        killer = threading.Timer(chance.uniform(0.0, 0.08), server.process.kill)
        killer.start()
    try:
        tool(server.port, "plasm_run", commit, whole=True)
        script["reported"] = True
    except Lost:
        script["cut"] = True
    finally:
        if killer:
            killer.join()


def commit_again(port, script):
    """Commits again: the write runs, or its outcome is reported."""
    commit = {"logical_session_ref": script["ref"], "plan_commit_ref": script["reviews"][0]["plan_commit_ref"]}
    try:
        tool(port, "plasm_run", commit, whole=True)
    except Refused:
        pass


def server_arguments(tracker_api, js=""):
    return tracker_api.server_arguments(*settings(f"[js]\n{js}"))


def slow_down_api(tracker_api, chance):
    """Delays the API before or after a write happens, so that kills fall on both sides."""
    rules = [("GET", f"slow={SLOW_MS}"), ("POST", f"slow={SLOW_MS};when={chance.choice(('before', 'after'))}")]
    tracker_api.ask("/control/faults", {"rules": [{"fault": fault, "method": method, "path": "/api/*"} for method, fault in rules]})


def wait_until_ended(port, execution, seconds=60):
    deadline = time.monotonic() + seconds
    while (record := api(port, "GET", f"/api/executions/{execution}"))["status"] not in FINAL:
        assert time.monotonic() < deadline, f"still {record['status']} after {seconds} s"
        time.sleep(0.05)
    return record
