"""Reads the texts of the tools as data.

Invariant: reads only what a model reads too.
"""

import re

DEMO = [{"api": "demo", "entity": entity} for entity in ("Project", "Ticket", "Comment", "Person")]


def seeds(*entities, api="demo"):
    return [{"api": api, "entity": entity} for entity in entities]


def with_every_capability(some_seeds):
    """The same seeds with all their capabilities, so that a write is taught whatever the intent mentions."""
    return [{**seed, "capabilities": ["*"]} for seed in some_seeds]


def symbols(table):
    """The entities that a table teaches: `e1\tProject · …` or `e1\tProject → …` becomes `{"e1": "Project"}`."""
    pairs = re.findall(r"^(e\d+)[^\t\n]*\t(\w+) [·→] ", table, re.MULTILINE)
    taught = dict(pairs)
    assert len(taught) == len(pairs), f"an entity symbol is taught twice: {pairs}"
    assert len(set(taught.values())) == len(pairs), f"an entity is taught twice: {pairs}"
    return taught


def tables(text):
    """The returns of a run: label to rows, each row a dict of cells."""
    returns = {}
    for block in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
        heading, *lines = block.strip("\n").split("\n")
        # An empty line ends the rows.
        lines = lines[: lines.index("")] if "" in lines else lines
        lines = [line for line in lines if not line.startswith(("(", "all of it: "))]
        columns = lines[0].split("\t")
        rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]
        returns[heading.split(" ")[0]] = rows
    return returns


def fenced(answer, columns=None):
    """The rows of a fenced table, each a dict of cells."""
    fence, head, *rows, end = answer.split("\n")
    assert (fence, end) == ("```tsv", "```"), answer
    assert columns is None or head.split("\t") == columns, head
    return [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]
