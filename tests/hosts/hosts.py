"""Claude Code and Codex with a model that follows a script: discover, context, plan, run, page, a write with its commit.

Invariants: nothing leaves this machine; the checks read what a host hands back to its model and what the test API counted; every wait
has an end.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from model import Model  # noqa: E402

from lib.test_api import TrackerApi, digest  # noqa: E402
from lib.server import TOKAMAK, Server, settings  # noqa: E402

HOSTS = Path(os.environ["HOSTS"]) / "node_modules" / ".bin"
SECONDS = 180
INTENT = "tracker: comment on tickets of the OPS project"
READ = 'Ticket{project="OPS"}[number, title]'
WORDS = "seen by a host"
WRITE = f'Comment.add(ticket=Ticket(project="OPS", number=42), text="{WORDS}")'
STEPS = ["discover_capabilities", "plasm_context", "plasm", "plasm_run", "plasm_run", "plasm", "plasm_run"]


class Suite:
    """Prints one line for each check, and counts the failures."""

    def __init__(self):
        self.failed = 0

    @contextmanager
    def case(self, title):
        try:
            yield
        except Exception as problem:
            self.failed += 1
            print(f"FAIL hosts: {title}: {' '.join(str(problem).split())[:600]}", flush=True)
        else:
            print(f"ok hosts: {title}", flush=True)

    # Checks that share a server fail together when it does not start.
    group = case


suite = Suite()


def script(step, seen):
    """The call of a model that has read the instructions; each step needs the answer of the step before."""
    if step == 0:
        return "discover_capabilities", {"intent": INTENT, "apis": ["tracker"]}
    if step == 1:
        rows = [line.split("\t") for line in seen[0].split("\n") if line.startswith("tracker\t")]
        seeds = [{"api": api, "entity": entity, "capabilities": ["*"]} for api, entity, *_ in rows]
        return "plasm_context", {"intent": INTENT, "seeds": seeds}
    ref = re.match(r"`(s\d+)`", seen[1])[1]
    if step in (2, 3):
        return ("plasm", "plasm_run")[step - 2], {"logical_session_ref": ref, "program": READ}
    if step == 4:
        return "plasm_run", {"logical_session_ref": ref, "program": re.search(r"page\(s\d+_pg\d+\)", seen[3])[0]}
    if step == 5:
        return "plasm", {"logical_session_ref": ref, "program": WRITE}
    if step == 6:
        return "plasm_run", {"logical_session_ref": ref, "plan_commit_ref": re.search(r"\bpc\d+\b", seen[5])[0]}
    return "All done."


def judge(api, model, at):
    """Checks what the host handed back at each step, and the effects that happened."""
    wanted = [
        ("discover: the rows reach the model", r"tracker\tTicket\t"),
        ("context: the table reaches the model, with its ref", r"\A`s\d+`\n(.|\n)*\be\d+\b.*Ticket · "),
        ("plan: reaches the model", r"\Aplan ok · "),
        ("run: the rows reach the model, and the handle of the rest", r"## result \(\d+ rows(.|\n)*page\(s\d+_pg\d+\)"),
        ("page: the next rows reach the model", r"## \w+ \(\d+ rows"),
        ("plan of a write: its commit reaches the model", r"\Aplan .*review(.|\n)*\bpc\d+\b"),
        ("write: its receipt reaches the model", r"done: comment_add"),
    ]
    with suite.case(f"{at}: the server's instructions reach the model"):
        assert any("Call plasm_context first" in json.dumps(body) for _, body in model.requests), "in no request"
    for step, (title, pattern) in enumerate(wanted):
        with suite.case(f"{at}: {title}"):
            assert step < len(model.seen), f"the host stopped before it; {model.trouble}"
            assert re.search(pattern, model.seen[step]), f"no {pattern} in {model.seen[step][:300]!r}"
    with suite.case(f"{at}: two pages have different rows"):
        pages = [set(re.findall(r"^\d+\t", text, re.MULTILINE)) for text in model.seen[3:5]]
        assert all(pages) and not pages[0] & pages[1], pages
    with suite.case(f"{at}: exactly one effect happened, the one that was committed"):
        assert api.effects() == [digest(WORDS)], api.effects()
    with suite.case(f"{at}: the script went to its end"):
        assert not model.trouble and len(model.seen) == len(STEPS), f"{len(model.seen)} results; {model.trouble}"


def surroundings(home, **more):
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", **more}


def claude(model, home, server):
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"tokamak": server}}))
    environment = surroundings(
        home,
        ANTHROPIC_BASE_URL=f"http://127.0.0.1:{model.port}",
        ANTHROPIC_API_KEY="none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
    )
    command = [HOSTS / "claude", "-p", "Comment on a ticket.", "--mcp-config", config, "--strict-mcp-config"]
    command += ["--allowedTools", "mcp__tokamak", "--output-format", "json", "--model", "claude-sonnet-4-5"]
    return command, environment


def codex(model, home, server):
    folder = home / "codex"
    folder.mkdir()
    if "url" in server:
        lines = [f'url = "{server["url"]}"']
    else:
        lines = [f"command = {json.dumps(server['command'])}", f"args = {json.dumps(server['args'])}"]
    (folder / "config.toml").write_text("\n".join([
        'model = "scripted"',
        'model_provider = "scripted"',
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        "[model_providers.scripted]",
        'name = "Scripted"',
        f'base_url = "http://127.0.0.1:{model.port}/v1"',
        'wire_api = "responses"',
        "[mcp_servers.tokamak]",
        *lines,
        'default_tools_approval_mode = "approve"',
        "startup_timeout_sec = 60",
        "tool_timeout_sec = 60",
    ]) + "\n")
    return [HOSTS / "codex", "exec", "--skip-git-repo-check", "Comment on a ticket."], surroundings(home, CODEX_HOME=str(folder))


def drive(api, host, at, server):
    api.reset()
    home = Path(tempfile.mkdtemp(prefix="home-"))
    with Model(script) as model:
        command, environment = host(model, home, server)
        work = home / "work"
        work.mkdir()
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        try:
            ended = subprocess.run(command, cwd=work, env=environment, timeout=SECONDS, check=False, **pipes)
            code, said = ended.returncode, ended.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            code, said = "late", (late.stdout or b"").decode(errors="replace")
        if log := os.environ.get("HOSTS_LOG"):
            Path(log, at.replace(" ", "-") + ".json").write_text(
                json.dumps({"said": said, "requests": model.requests, "trouble": model.trouble}, indent=1)
            )
        with suite.case(f"{at}: ends well"):
            assert code == 0, f"exit {code}: {said[-400:]}"
        judge(api, model, at)


def main():
    chosen = sys.argv[1:] or ["claude", "codex"]
    with TrackerApi() as api:
        arguments = api.server_arguments(*settings("[limits]\nrows = 20\n"))
        for name, host in (("claude", claude), ("codex", codex)):
            if name not in chosen:
                continue
            with suite.group(f"{name} http"), Server(arguments=arguments) as server:
                drive(api, host, f"{name} http", {"type": "http", "url": server.mcp})
            with suite.group(f"{name} stdio"):
                data = tempfile.mkdtemp(prefix="data-")
                started = ["serve", "--stdio", "--data", data, *arguments]
                drive(api, host, f"{name} stdio", {"type": "stdio", "command": TOKAMAK, "args": started})


if __name__ == "__main__":
    main()
    sys.exit(1 if suite.failed else 0)
