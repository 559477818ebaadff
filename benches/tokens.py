"""Counts the o200k tokens that a model reads for the same operations: our table, FastMCP's tools, the OpenAPI slice.

benches/tokens.sh calls this script with FastMCP's own Python. Every side gets the same document: operations that are deprecated or
that the import cannot map are removed before anything is counted, so that no operation is counted on one side only.
"""

import asyncio
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

METHODS = {"get", "put", "post", "delete", "patch", "options", "head", "trace"}
SETS = [
    ("A", "GitHub: issues, pull requests, repositories", {"issues", "pulls", "repos"}),
    ("B", "GitHub: users, codespaces (for 25 entities, 90 capabilities)", {"users", "codespaces"}),
    ("C", "GitHub: all of it", None),
]
# Targets of the design. The first three are upper limits, the last is a lower limit.
CONTRACT, TABLE_EACH, ALL_EACH, TIMES = 400, 35, 60, 8
FASTMCP_SECONDS, FASTMCP_BYTES = 180, 4 << 30
# The published count of FastMCP 4.1.2's whole tools/list of GitHub's 1,223 operations. It replaces set C if that cannot be measured.
FASTMCP_PUBLISHED = 2_821_656
# Counts from the project's design notes of November 2026 (o200k, 2-core machine), which this script does not measure.
PUBLISHED = [
    ("GitHub, 1,223 operations: one JSON-schema tool per operation", "372,229 (304 each)"),
    ("GitHub, 1,223 operations: FastMCP 4.1.2, whole tools/list", "2,821,656"),
    ("GitHub: FastMCP CodeMode", "508 fixed, then 5,600-7,800 a search"),
    ("GitHub: Cloudflare openApiMcpServer", "1,280 fixed, then searches"),
    ("GitHub: mcp2cli 3.8.0", "22,675"),
    ("Stripe, 452 operations: one JSON-schema tool per operation", "267,117"),
    ("Stripe, 452 operations: FastMCP 4.1.2, whole tools/list", "42,984,559"),
    ("the seed of this design, 0.1.66: its contract", "1,291-1,475"),
    ("the seed of this design, 0.1.66: GitHub with 25 entities, 91 capabilities", "9,409 (87 each, contract apart)"),
    ("the seed of this design, 0.1.66: Linear with 41 capabilities", "2,975"),
    ("one task with GitHub's MCP server (mcp-v8's own study)", "122,056"),
    ("the same task with mcp-v8 (its own study)", "117,826"),
]


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def count(text):
    done = subprocess.run(shlex.split(os.environ["COUNT"]), input=text, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def tokamak(*arguments):
    done = subprocess.run([os.environ["TOKAMAK"], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: tokamak {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


# --- the slice


def operations(document):
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            yield f"{method.upper()} {path}", item[method]


def references(value):
    stack = [value]
    while stack:
        at = stack.pop()
        if isinstance(at, dict):
            if isinstance(at.get("$ref"), str):
                yield at["$ref"]
            stack.extend(at.values())
        elif isinstance(at, list):
            stack.extend(at)


def reachable(document, paths):
    """Returns the components that `paths` refer to, in the order of the document."""
    seen, todo = set(), list(references(paths))
    while todo:
        reference = todo.pop()
        if reference in seen:
            continue
        seen.add(reference)
        _, _, kind, name = reference.split("/", 3)
        todo.extend(references(document["components"][kind][name.replace("~1", "/").replace("~0", "~")]))
    kept = {}
    for kind, entries in document["components"].items():
        named = {n: v for n, v in entries.items() if f"#/components/{kind}/{n}" in seen or kind == "securitySchemes"}
        if named:
            kept[kind] = named
    return kept


def slice_of(document, tags, without):
    """Returns the operations with one of `tags` (None: all), without deprecated ones and those named in `without`."""
    wanted = {
        name
        for name, operation in operations(document)
        if (tags is None or tags & set(operation.get("tags", []))) and not operation.get("deprecated") and name not in without
    }
    paths = {}
    for path, item in document["paths"].items():
        kept = {k: v for k, v in item.items() if k not in METHODS or f"{k.upper()} {path}" in wanted}
        if METHODS & kept.keys():
            paths[path] = kept
    top = {k: document[k] for k in ("openapi", "info", "servers", "security") if k in document}
    return {**top, "paths": paths, "components": reachable(document, paths)}, len(wanted)


def mapped_slice(document, tags, folder):
    """Returns the slice of which the import maps every operation, and the report of the import."""
    without = {}
    while True:
        piece, amount = slice_of(document, tags, without)
        file, catalog = folder / "slice.json", folder / "catalog.yaml"
        file.write_text(compact(piece))
        catalog.unlink(missing_ok=True)
        report = json.loads(tokamak("catalog", "import", "openapi", file, "-o", catalog, "--json"))
        if not report["unmapped"]:
            break
        without.update({one["operation"]: one["why"] for one in report["unmapped"]})
    if not amount == report["operations"] == report["mapped"] or report["untaught"]:
        sys.exit(f"error: the import maps {report['mapped']} of {amount} operations and does not say which are missing")
    return piece, report, file, catalog, without


# --- the three sides


def table_tokens(catalog, slots):
    """Counts the tokens of the contract and of the table separately."""
    shown = tokamak("catalog", "show", catalog, "--slots", slots)
    fenced = shown.split("\n```\n", 2)[1].splitlines(keepends=True)
    contract = "".join(line for line in fenced if line.startswith("# "))
    return count(contract), count("".join(line for line in fenced if not line.startswith("# ")))


async def fastmcp_tools(document):
    import httpx2
    from fastmcp import Client, FastMCP

    base = document["servers"][0]["url"]
    server = FastMCP.from_openapi(openapi_spec=document, client=httpx2.AsyncClient(base_url=base), name="api")
    async with Client(server) as client:
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in await client.list_tools()]


def fastmcp_child(file):
    """Writes the tools next to `file`. Runs in a process of its own, so that its memory can be limited."""
    resource.setrlimit(resource.RLIMIT_AS, (FASTMCP_BYTES, FASTMCP_BYTES))
    tools = asyncio.run(fastmcp_tools(json.loads(file.read_text())))
    short = [{k: tool[k] for k in ("name", "description", "inputSchema") if k in tool} for tool in tools]
    file.with_suffix(".tools").write_text(compact(short))
    file.with_suffix(".list").write_text(compact({"tools": tools}))


def fastmcp(file, amount):
    """Returns (tool schemas, whole tools/list, seconds), or the reason why there are none."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--fastmcp", str(file)], capture_output=True, text=True, timeout=FASTMCP_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {FASTMCP_SECONDS} s with {FASTMCP_BYTES >> 30} GB"
    seconds = time.monotonic() - started
    if done.returncode:
        return f"failed within {FASTMCP_BYTES >> 30} GB: {(done.stderr.strip().splitlines() or ['killed'])[-1][:200]}"
    short, whole = file.with_suffix(".tools").read_text(), file.with_suffix(".list").read_text()
    if len(json.loads(short)) != amount:
        return f"{len(json.loads(short))} tools for {amount} operations"
    return count(short), count(whole), seconds


def without_examples(value, named=False):
    """Removes examples. With `named`, the keys are chosen names (properties, schemas), so a key `example` stays."""
    if isinstance(value, list):
        return [without_examples(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        k: without_examples(v, not named and k in ("properties", "schemas", "parameters", "paths", "headers"))
        for k, v in value.items()
        if named or k not in ("example", "examples")
    }


# --- the output


def verified_counts():
    """Reads the counts that `cargo xtask tokens` verifies, instead of counting again."""
    lines = (Path(__file__).parent.parent / "tests/tokens.txt").read_text().splitlines()
    pairs = [line.split("#")[0].rsplit(maxsplit=1) for line in lines]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def print_line(what, tokens, each, base):
    print(f"  {what:<58} {tokens:>11,} {tokens / each:>9,.1f} {tokens / base:>9,.1f}x")


def print_target(met, what, value, bound):
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    print(f"  {'met   ' if met else 'MISSED'} {what}: {shown} ({bound})")


def at_most(what, value, most):
    print_target(value <= most, what, value, f"at most {most}")


def at_least(what, value, least):
    print_target(value >= least, what, value, f"at least {least}")


def compare_with_targets(styles, core, capabilities, other):
    for slots, (contract, table) in styles.items():
        lesson = contract + table
        at_most(f"{slots}: contract", contract, CONTRACT)
        at_most(f"{slots}: table, a capability", table / capabilities, TABLE_EACH)
        at_most(f"{slots}: contract, table and our tools, a capability", (core + lesson) / capabilities, ALL_EACH)
        if not isinstance(other, str):
            short, whole, _ = other
            at_least(f"{slots}: times smaller than name, description, inputSchema", short / lesson, TIMES)
            at_least(f"{slots}: the same, our tools counted too", short / (core + lesson), TIMES)
            at_least(f"{slots}: times smaller than tools/list, our tools counted too", whole / (core + lesson), TIMES)


def compare(letter, title, document, tags, core):
    with tempfile.TemporaryDirectory() as folder:
        piece, report, file, catalog, without = mapped_slice(document, tags, Path(folder))
        amount, capabilities = report["operations"], report["capabilities"]
        styles = {slots: table_tokens(catalog, slots) for slots in ("names", "symbols")}
        other = fastmcp(file, amount)
    base = sum(styles["names"])
    print(f"\n{letter}  {title}: {amount} operations, {report['entities']} entities, {capabilities} capabilities")
    print(f"   ({len(without)} operations that the import does not map are left out on every side)")
    print(f"  {'':<58} {'tokens':>11} {'each':>9} {'ratio':>10}")
    for slots, (contract, table) in styles.items():
        print_line(f"ours, {slots}: contract ({contract}) and table", contract + table, capabilities, base)
        print_line(f"ours, {slots}: the table alone", table, capabilities, base)
        print_line(f"ours, {slots}: with our own MCP tools ({core})", core + contract + table, capabilities, base)
    if isinstance(other, str):
        print(f"  FastMCP: {other}")
        if tags is None:
            print_line("FastMCP, whole tools/list (published)", FASTMCP_PUBLISHED, 1223, base)
    else:
        print_line("FastMCP: name, description, inputSchema", other[0], amount, base)
        print_line(f"FastMCP: whole tools/list ({other[2]:.0f} s)", other[1], amount, base)
    print_line("OpenAPI slice without its examples, compact JSON", count(compact(without_examples(piece))), amount, base)
    print_line("OpenAPI slice, compact JSON", count(compact(piece)), amount, base)
    compare_with_targets(styles, core, capabilities, other)


def main(package):
    from importlib.metadata import version

    document = json.loads((package / "generated/api.github.com.json").read_text())
    octokit = json.loads((package / "package.json").read_text())["version"]
    counted = verified_counts()
    print(f"tokens (o200k) for the same operations; fastmcp {version('fastmcp')}, @octokit/openapi {octokit}")
    print("each: per capability for ours, per operation for the others; ratio to our contract and table by name")
    for letter, title, tags in SETS:
        compare(letter, title, document, tags, counted["tools core"])
    print("\nfind and call: discover, context, plan and run, up to the rows (tests/tokens.txt, kept by `cargo xtask tokens`)")
    at_most("names", counted["answers the same, by name"], 800)
    at_most("symbols", counted["answers one read on one entity of GitHub"], 800)
    print("\npublished or measured elsewhere, not by this run (tokens)")
    for what, tokens in PUBLISHED:
        print(f"  {what:<76} {tokens}")


if __name__ == "__main__":
    if sys.argv[1] == "--fastmcp":
        fastmcp_child(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
