"""Effects through the official Python client: commits, replays, operations, pages, and a server that is killed in between.

Invariants: what the server says it did is held against the demo API's own count of what happened; the API runs in a
process of its own, which nobody kills; every wait has an end.
"""

import json
import random
import re
import tempfile
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client

from answers import tables
from harness import Server, Suite
from tracker import SEEDS, Api, digest

suite = Suite("effects")
# How long the kills go on, and how long a dead process is believed to live.
SECONDS_OF_KILLS = 35
DEAD_AFTER = 20
TEXTS = [f"remark {n}" for n in range(6)]
LIST = json.dumps(TEXTS)
REMARKS = f'{LIST} => Comment.add(ticket=Ticket(project="OPS", number=42), text="{{{{ _ }}}}")'
TICKETS = f'{LIST} => Ticket.open(project="OPS", title="{{{{ _ }}}}")'


@asynccontextmanager
async def case(title):
    with suite.case(title), anyio.fail_after(60):
        yield


def started(api, data=None):
    return Server(data=data, arguments=["--no-demo", "--catalogs", str(api.catalogs())])


def connect(server):
    return Client(server.mcp, mode="auto", read_timeout_seconds=30)


async def opened(client, intent):
    answer = await client.call_tool("plasm_context", {"intent": intent, "seeds": SEEDS})
    assert not answer.is_error, answer.content[0].text
    return answer.meta["plasm"]["logical_session_id"]


async def call(client, tool, ref, **arguments):
    return await client.call_tool(tool, {"logical_session_ref": ref, **arguments})


async def planned(client, ref, program):
    answer = await call(client, "plasm", ref, program=program)
    text = answer.content[0].text
    commit = answer.meta["plasm"]["plan_commit_ref"]
    assert text.split("\n")[0].endswith(commit), f"the first line does not name {commit}: {text}"
    return commit


def said(answer, error=False):
    text = answer.content[0].text
    assert bool(answer.is_error) == error, f"isError is {answer.is_error}: {text}"
    return text


def receipts(text):
    """How many are done, unknown and failed, by the text that a model reads."""
    done = sum(int(times or 1) for times in re.findall(r"^done: [^,\n]*?(?:, (\d+) times)?$", text, re.MULTILINE))
    return done, len(re.findall(r"^unknown\b", text, re.MULTILINE)), len(re.findall(r"^failed\b", text, re.MULTILINE))


# --- one server, nothing goes wrong


async def commits(api):
    with started(api) as server:
        async with connect(server) as client:
            ref = await opened(client, "commits")
            async with case("a program that changes something is refused without a commit, and nothing happens"):
                api.reset()
                text = said(await call(client, "plasm_run", ref, program=REMARKS), error=True)
                assert text.startswith("review_needed: nothing ran") and "plan_commit_ref: pc0" in text, text
                assert api.effects() == [], api.effects()
            async with case("plan, commit, run, replay"):
                await replays(api, client, ref)
            async with case("another program under the same commit is refused"):
                commit = await planned(client, ref, REMARKS)
                answer = await call(client, "plasm_run", ref, program=TICKETS, plan_commit_ref=commit)
                assert said(answer, error=True).startswith("other_plan: "), answer.content[0].text
            async with case("the same request_id runs once"):
                api.reset()
                forced = {"program": REMARKS, "force": True, "request_id": "job-7"}
                first = said(await call(client, "plasm_run", ref, **forced))
                again = said(await call(client, "plasm_run", ref, **forced))
                assert "replayed" not in first and "replayed: nothing ran again" in again, again
                assert api.effects() == [digest(text) for text in TEXTS], api.effects()


async def replays(api, client, ref):
    commit = await planned(client, ref, REMARKS)
    first = said(await call(client, "plasm_run", ref, plan_commit_ref=commit))
    assert receipts(first) == (6, 0, 0), first
    answers = []

    async def ask():
        answers.append(said(await call(client, "plasm_run", ref, plan_commit_ref=commit)))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ask)
    assert all("replayed: nothing ran again" in text and receipts(text) == (6, 0, 0) for text in answers), answers
    assert api.effects() == [digest(text) for text in TEXTS], "not one effect for each text, in order"


async def operations(api):
    with started(api) as server:
        async with connect(server) as client:
            ref = await opened(client, "operations")
            async with case("wait: false answers a handle, wait(..) the result"):
                api.reset("slow=100")
                text = said(await call(client, "plasm_run", ref, program=REMARKS, force=True, wait=False))
                assert text.startswith("wait(s0_o1)\n"), text
                while (text := said(await call(client, "plasm_run", ref, program="wait(s0_o1)"))).startswith("wait("):
                    pass
                assert receipts(text) == (6, 0, 0), text
                assert len(api.effects()) == 6, api.effects()
            async with case("cancel(..) stops before the next effect"):
                await cancelled(api, client, ref)


async def cancelled(api, client, ref):
    api.reset("slow=200")
    said(await call(client, "plasm_run", ref, program=REMARKS, force=True, wait=False))
    await anyio.sleep(0.5)
    answer = await call(client, "plasm_run", ref, program="cancel(s0_o2)")
    while answer.content[0].text.startswith("wait("):
        answer = await call(client, "plasm_run", ref, program="wait(s0_o2)")
    text, happened = said(answer, error=True), len(api.effects())
    assert "cancelled: " in text and 0 < happened < 6, f"{happened} effects: {text}"
    assert receipts(text) == (happened, 0, 0), f"{happened} effects: {text}"


async def pages(api):
    config = Path(tempfile.mkdtemp(prefix="config-")) / "tokamak.toml"
    config.write_text("[limits]\nrows = 50\n")
    arguments = ["--no-demo", "--catalogs", str(api.catalogs()), "--config", str(config)]
    async with case("a list goes on by its handles to its end, also after a restart"):
        api.reset()
        numbers, program, data = [], "Ticket[project, number]", None
        while program:
            # Each piece from a server of its own.
            with Server(data=data, arguments=arguments) as server:
                data = server.data
                async with connect(server) as client:
                    ref = await opened(client, "pages")
                    answer = await call(client, "plasm_run", ref, program=program)
                    text = said(answer)
            more = re.search(r"^more of result: (page\(s0_pg\d+\))$", text, re.MULTILINE)
            rows = tables(text)["result"]
            numbers += [(row["project"], row["number"]) for row in rows]
            program = more and more[1]
        assert len(numbers) == len(set(numbers)) == 321, f"{len(numbers)} rows, {len(set(numbers))} different ones"


# --- the server dies


async def kills(api):
    rounds, unknown, data = 0, 0, None
    until = time.monotonic() + SECONDS_OF_KILLS
    async with case("killed at any moment, every effect happened at most once and is told"):
        while time.monotonic() < until and rounds < 60:
            data, doubts = await killed(api, data, rounds)
            rounds, unknown = rounds + 1, unknown + doubts
        assert rounds >= 12, f"only {rounds} rounds in {SECONDS_OF_KILLS} s"
        assert unknown > 0, f"none of {rounds} kills fell into an effect"
    print(f"# effects: {rounds} kills, {unknown} of them within an effect", flush=True)


async def killed(api, data, number):
    """One run, one kill, and what is told of it afterwards; the data folder and how many effects are unknown."""
    # Before the effect or after it: the same to whoever waits for the answer.
    api.reset(random.choice(["slow=30", "slow=30;when=after"]))
    with started(api, data) as server:
        async with connect(server) as client:
            ref = await opened(client, f"kill {number}")
            commit = await planned(client, ref, REMARKS)
        calls = threading.Thread(target=lambda: anyio.run(run_and_lose, server, ref, commit), daemon=True)
        calls.start()
        await anyio.sleep(random.uniform(0.02, 0.4))
        server.kill()
        calls.join(10)
    await anyio.sleep(0.1)
    happened = api.effects()
    with started(api, server.data) as again:
        async with connect(again) as client:
            answers = [await call(client, "plasm_run", ref, plan_commit_ref=commit) for _ in range(2)]
    texts = [answer.content[0].text for answer in answers]
    assert happened == api.effects() or texts[0].startswith("## "), "asking again did something"
    happened = api.effects()
    assert happened == [digest(text) for text in TEXTS[: len(happened)]], "not each once, in order"
    done, doubts, failed = receipts(texts[0])
    where = f"round {number}: {len(happened)} effects happened, told: {texts[0]}"
    assert failed == 0 and doubts <= 1 and done <= len(happened) <= done + doubts, where
    assert receipts(texts[1])[:2] == (done, doubts), f"{where}; then: {texts[1]}"
    ended = texts[0].startswith(("## ", "interrupted: "))
    assert ended, where
    return server.data, doubts


async def run_and_lose(server, ref, commit):
    try:
        async with connect(server) as client:
            await call(client, "plasm_run", ref, plan_commit_ref=commit)
    except BaseException:  # the server is gone: whatever the client makes of it
        pass


async def taken_over(api):
    async with case("an operation whose process was killed goes on in the next one, and keyed effects happen once"):
        api.reset("slow=150;when=after")
        with started(api) as server:
            async with connect(server) as client:
                ref = await opened(client, "taken over")
                commit = await planned(client, ref, TICKETS)
                text = said(await call(client, "plasm_run", ref, plan_commit_ref=commit, wait=False))
                assert text.startswith("wait(s0_o1)"), text
                await anyio.sleep(0.5)
            server.kill()
        before = len(api.effects())
        with started(api, server.data) as again:
            async with connect(again) as client:
                until = time.monotonic() + DEAD_AFTER + 15
                while (text := said(await call(client, "plasm_run", ref, program="wait(s0_o1)"))).startswith("wait("):
                    assert time.monotonic() < until, f"nobody took it over: {text}"
                    await anyio.sleep(1)
                replayed = said(await call(client, "plasm_run", ref, plan_commit_ref=commit))
        happened = api.effects()
        assert 0 < before < 6, f"{before} effects before the kill"
        assert len(happened) == len(set(happened)) == 6, f"{len(happened)} effects"
        assert receipts(text) == (6, 0, 0), text
        assert "replayed: " in replayed and receipts(replayed) == (6, 0, 0), replayed


async def main():
    with Api() as api, Api() as other:
        for group in (commits, operations, pages):
            with suite.group(group.__name__):
                await group(api)
        # Most of a take-over is waiting, which the kills can share.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kills, api)
            tasks.start_soon(taken_over, other)


if __name__ == "__main__":
    anyio.run(main)
    suite.end()
