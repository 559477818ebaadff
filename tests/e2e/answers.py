"""What the texts of the tools say, as data.

Invariant: reads only what a model reads too.
"""

import re

DEMO = [{"api": "demo", "entity": entity} for entity in ("Project", "Ticket", "Comment", "Person")]


def seeds(*entities, api="demo"):
    return [{"api": api, "entity": entity} for entity in entities]


def symbols(table):
    """The entities a table teaches: `e1\tProject · …` or `e1\tProject → …` to `{"e1": "Project"}`; each only once."""
    found = re.findall(r"^(e\d+)[^\t\n]*\t(\w+) [·→] ", table, re.MULTILINE)
    taught = dict(found)
    assert len(taught) == len(found), f"an entity symbol is taught twice: {found}"
    assert len(set(taught.values())) == len(found), f"an entity is taught twice: {found}"
    return taught


def tables(text):
    """The returns of a run: label to rows, each a dict of cells."""
    returns = {}
    for block in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
        heading, *lines = block.strip("\n").split("\n")
        lines = lines[: lines.index("")] if "" in lines else lines  # what follows an empty line is no row
        lines = [line for line in lines if not line.startswith(("(", "all of it: "))]
        columns = lines[0].split("\t")
        rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]
        returns[heading.split(" ")[0]] = rows
    return returns
