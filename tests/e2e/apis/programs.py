"""Programs over one catalog through the official client."""

import json

from lib.answers import seeds, tables


class Session:
    """A session over one catalog, which runs programs and returns rows or refusals."""

    def __init__(self, client, ref, taught):
        self.client = client
        self.ref = ref
        self.taught = taught

    @classmethod
    async def open(cls, client, intent, api, *entities):
        every_capability = {"capabilities": ["*"]} if await seeds_take_capabilities(client) else {}
        wanted_seeds = [{**seed, **every_capability} for seed in seeds(*entities, api=api)]
        opened = await client.call_tool("plasm_context", {"intent": intent, "seeds": wanted_seeds})
        assert not opened.is_error, opened.content[0].text
        return cls(client, opened.meta["plasm"]["logical_session_ref"], opened.content[0].text)

    async def _call(self, tool, program, **arguments):
        arguments = {"logical_session_ref": self.ref, "program": program, **arguments}
        return await self.client.call_tool(tool, arguments)

    async def rows(self, program):
        """The rows of the program's only result; every cell is text."""
        run = await self._call("plasm_run", program)
        assert not run.is_error, f"{program}: {run.content[0].text}"
        results = tables(run.content[0].text)
        assert len(results) == 1, f"{program}: {list(results)}"
        return next(iter(results.values()))

    async def column(self, program):
        """The cells of the only column of the program's only result."""
        rows = await self.rows(program)
        assert all(len(row) == 1 for row in rows), rows
        return [next(iter(row.values())) for row in rows]

    async def plan(self, program):
        planned = await self._call("plasm", program)
        assert not planned.is_error, f"{program}: {planned.content[0].text}"
        return planned.content[0].text

    async def write(self, program):
        run = await self._call("plasm_run", program, force=True)
        assert not run.is_error, f"{program}: {run.content[0].text}"
        return run.content[0].text

    async def refusal(self, program, **arguments):
        """The text of a refusal, for a valid program that does not succeed."""
        run = await self._call("plasm_run", program, **arguments)
        refusal = run.content[0].text
        assert run.is_error, f"{program} went through: {refusal}"
        assert not refusal.startswith("bad_program"), f"{program}: {refusal}"
        return refusal


async def seeds_take_capabilities(client):
    """Whether a seed can say which capabilities it wants; a server without that teaches all of them."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    return '"capabilities"' in json.dumps(tools["plasm_context"].input_schema)
