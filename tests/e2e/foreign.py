"""Reads and writes on real servers that nobody here wrote: Jupyter Server, etcd and json-graphql-server.

Invariants: a model's part goes through the official client and the binary; what then holds is asked of the server
itself. Every group of checks has its own session and touches only what it made itself.
"""

import json
import os
import subprocess
import tempfile
from contextlib import asynccontextmanager

import anyio
from mcp import Client

from answers import seeds, tables
from foreign_servers import Blog, Etcd, Jupyter, OpenJupyter
from harness import Server, Suite

suite = Suite("foreign")


@asynccontextmanager
async def case(title):
    with suite.case(title), anyio.fail_after(30):
        yield


class Session:
    """One intent over one catalog: programs in, rows or refusals out."""

    def __init__(self, client, ref, taught):
        self.client = client
        self.ref = ref
        self.taught = taught

    @classmethod
    async def open(cls, client, intent, api, *entities):
        wish = {"capabilities": ["*"]} if await takes_wishes(client) else {}
        everything = [{**seed, **wish} for seed in seeds(*entities, api=api)]
        opened = await client.call_tool("plasm_context", {"intent": intent, "seeds": everything})
        assert not opened.is_error, opened.content[0].text
        return cls(client, opened.meta["plasm"]["logical_session_ref"], opened.content[0].text)

    async def _call(self, tool, program, **arguments):
        arguments = {"logical_session_ref": self.ref, "program": program, **arguments}
        return await self.client.call_tool(tool, arguments)

    async def rows(self, program):
        """The rows of the program's only result; every cell is text."""
        ran = await self._call("plasm_run", program)
        assert not ran.is_error, f"{program}: {ran.content[0].text}"
        found = tables(ran.content[0].text)
        assert len(found) == 1, f"{program}: {list(found)}"
        return next(iter(found.values()))

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
        ran = await self._call("plasm_run", program, force=True)
        assert not ran.is_error, f"{program}: {ran.content[0].text}"
        return ran.content[0].text

    async def refusal(self, program, **arguments):
        """What the model is told when a program that is right does not succeed."""
        ran = await self._call("plasm_run", program, **arguments)
        told = ran.content[0].text
        assert ran.is_error, f"{program} went through: {told}"
        assert not told.startswith("bad_program"), f"{program}: {told}"
        return told


async def takes_wishes(client):
    """Whether a seed can say which capabilities it wants; a server without that teaches all of them."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    return '"capabilities"' in json.dumps(tools["plasm_context"].input_schema)


# --- Jupyter Server


async def jupyter_reads(client, jupyter):
    files = await Session.open(client, "read files", "jupyter", "Folder", "File", "KernelSpec", "Status")
    async with case("jupyter: a list is what the folder holds"):
        rows = await files.rows('File{folder="papers"}[name, type, size]')
        held = jupyter.ask("GET", "/api/contents/papers")["content"]
        told = sorted((row["name"], row["type"], int(row["size"])) for row in rows)
        assert told == sorted((file["name"], file["type"], file["size"]) for file in held), rows
        assert len(told) == 2, told
    async with case("jupyter: a get brings the text; a name with a space, an ampersand and an accent is one segment"):
        assert await files.column('File("papers/raft.txt")[content]') == ["consensus"]
        assert await files.column('File("papers/café & co.txt")[content]') == ["a name that must be encoded"]
    async with case("jupyter: a filter that is a lone slash is one encoded segment"):
        assert sorted(await files.column('File{folder="/"}[name]')) == ["papers", "readme.md"]
    async with case("jupyter: a relation lists what belongs to a folder"):
        names = await files.column('Folder("papers").entries[path]')
        assert sorted(names) == ["papers/café & co.txt", "papers/raft.txt"], names
    async with case("jupyter: the members of an object are rows, with nested fields"):
        rows = await files.rows("KernelSpec[name, title, language]")
        assert rows == [{"name": "idle", "title": "Idle", "language": "none"}], rows
    async with case("jupyter: a singleton is one row"):
        rows = await files.rows("Status.now()[kernels]")
        assert rows == [{"kernels": "0"}], rows
    async with case("jupyter: what is not there is said to be not there"):
        refused = await files.refusal('File("papers/nothing.txt")')
        assert "404" in refused or "not found" in refused.lower(), refused


async def jupyter_writes(client, jupyter):
    files = await Session.open(client, "write files", "jupyter", "Folder", "File", "Checkpoint")
    root = jupyter.root
    await files.write('Folder.make(path="made")')
    async with case("jupyter: a plan of a write asks for a review and calls nothing"):
        plan = await files.plan('File.save(path="made/planned.txt", content="x")')
        assert plan.startswith("plan review"), plan
        assert jupyter.status("GET", "/api/contents/made/planned.txt") == 404
    async with case("jupyter: a write without a review is refused and calls nothing"):
        refused = await files.refusal('File.save(path="made/planned.txt", content="x")')
        assert "force" in refused, refused
        assert jupyter.status("GET", "/api/contents/made/planned.txt") == 404
    async with case("jupyter: a create makes a file with exactly the text, quotes, braces and line ends too"):
        text = 'naïve "quoted" {content} {{ x }} \\n 100%\n\n\ttab; ;; not a comment\nlast'
        await files.write(f'File.save(path="made/a b&c.txt", content=<<END\n{text}\nEND)')
        assert (root / "made" / "a b&c.txt").read_text() == text
    async with case("jupyter: the same create again replaces the text"):
        await files.write('File.save(path="made/a b&c.txt", content="second")')
        held = jupyter.ask("GET", "/api/contents/made/a%20b%26c.txt")
        assert (held["content"], held["type"]) == ("second", "file"), held
    async with case("jupyter: an update renames the file"):
        await files.write('File("made/a b&c.txt").rename(to="made/renamed.txt")')
        assert (root / "made" / "renamed.txt").read_text() == "second"
        assert jupyter.status("GET", "/api/contents/made/a%20b%26c.txt") == 404
    async with case("jupyter: an action copies it, and the row it answers can be read on"):
        await files.write('copy = File("made/renamed.txt").copy(folder="made")\ncopy[path]')
        assert (root / "made" / "renamed-Copy1.txt").read_text() == "second"
    async with case("jupyter: a checkpoint is made, listed and restored"):
        await files.write('Checkpoint.make(file=File("made/renamed.txt"))')
        kept = await files.rows('File("made/renamed.txt").checkpoints[file, id]')
        assert kept == [{"file": "made/renamed.txt", "id": "checkpoint"}], kept
        await files.write('File.save(path="made/renamed.txt", content="spoiled")')
        assert (root / "made" / "renamed.txt").read_text() == "spoiled"
        await files.write('Checkpoint(file=File("made/renamed.txt"), id="checkpoint").restore()')
        assert (root / "made" / "renamed.txt").read_text() == "second"
        await files.write('Checkpoint(file=File("made/renamed.txt"), id="checkpoint").delete()')
        assert jupyter.ask("GET", "/api/contents/made/renamed.txt/checkpoints") == []
    async with case("jupyter: an effect for each row of a list"):
        await files.write('Folder.make(path="copies")')
        await files.write('File{folder="papers"} => File(_.path).copy(folder="copies")')
        copies = sorted(path.name for path in (root / "copies").iterdir() if path.is_file())
        assert copies == ["café & co.txt", "raft.txt"], copies
    async with case("jupyter: a failed effect is told with its status, and the effects after it do not run"):
        (root / "made" / "stays.txt").write_text("stays")
        program = 'File("made/renamed.txt").rename(to="made/stays.txt"), File("made/stays.txt").delete()'
        refused = await files.refusal(program, force=True)
        assert "409" in refused, refused
        assert (root / "made" / "stays.txt").read_text() == "stays"
        assert (root / "made" / "renamed.txt").read_text() == "second"
    async with case("jupyter: a delete takes it away"):
        await files.write('File("made/renamed.txt").delete()')
        assert jupyter.status("GET", "/api/contents/made/renamed.txt") == 404
        assert not (root / "made" / "renamed.txt").exists()


async def jupyter_sessions(client, jupyter):
    work = await Session.open(client, "run kernels", "jupyter", "Session", "Kernel", "KernelSpec")
    held = []
    async with case("jupyter: a nested body starts a session, and its nested answer is one row"):
        await work.write('Session.start(path="made.ipynb", name="first", spec="idle")')
        held = jupyter.ask("GET", "/api/sessions")
        assert [(one["name"], one["path"], one["kernel"]["name"]) for one in held] == [("first", "made.ipynb", "idle")]
        rows = await work.rows("Session[name, path, kernel]")
        assert rows == [{"name": "first", "path": "made.ipynb", "kernel": held[0]["kernel"]["id"]}], rows
    assert held, "no session was started"
    session, kernel = held[0]["id"], held[0]["kernel"]["id"]
    async with case("jupyter: a reference in a nested field is followed, twice"):
        assert await work.column(f'Session("{session}").kernel[id]') == [kernel]
        assert await work.column(f'Session("{session}").kernel.spec[title]') == ["Idle"]
    async with case("jupyter: an update by the id of an earlier result"):
        await work.write('open = Session.limit(1)\nopen => Session(_.id).rename(name="second")')
        assert [one["name"] for one in jupyter.ask("GET", "/api/sessions")] == ["second"]
    async with case("jupyter: an action without arguments and without an answer"):
        assert await appears(jupyter.kernel_started) and not jupyter.kernel_interrupted.exists()
        await work.write(f'Kernel("{kernel}").interrupt()')
        assert await appears(jupyter.kernel_interrupted), "the kernel was not interrupted"
    async with case("jupyter: a delete ends the session and its kernel"):
        await work.write(f'Session("{session}").end()')
        assert jupyter.ask("GET", "/api/sessions") == []
        assert jupyter.ask("GET", "/api/kernels") == []


async def appears(path):
    with anyio.move_on_after(10):
        while not path.exists():
            await anyio.sleep(0.05)
    return path.exists()


async def jupyter_token(catalogs, jupyter):
    """With a token that is not the server's."""
    os.environ["JUPYTER_TOKEN"] = wrong = "a-token-that-is-wrong"
    with Server(arguments=("--catalogs", catalogs)) as server:
        async with Client(server.mcp, mode="auto", read_timeout_seconds=20) as client:
            files = await Session.open(client, "no entry", "jupyter", "File")
            async with case("jupyter: a wrong token is told as a refusal of the server, without the token"):
                refused = await files.refusal('File{folder="papers"}')
                assert "403" in refused and wrong not in refused, refused
            async with case("jupyter: a write with a wrong token changes nothing"):
                refused = await files.refusal('File.save(path="papers/no.txt", content="x")', force=True)
                assert "403" in refused and wrong not in refused, refused
                assert jupyter.status("GET", "/api/contents/papers/no.txt") == 404


# --- etcd


async def etcd_reads(client, etcd):
    etcd.put("read/color", "blue")
    etcd.put("read/größe", '80 % "wide"\tand\nhigh')
    keys = await Session.open(client, "read keys", "etcd", "Key", "Member", "Status")
    async with case("etcd: a range is decoded from base64, with integers from text"):
        rows = await keys.rows('Key{from="read/", until="read0"}[key, value, version]')
        assert rows[0] == {"key": "read/color", "value": "blue", "version": "1"}, rows
        assert rows[1]["key"] == "read/größe" and rows[1]["value"] == '80 % "wide"\\tand\\nhigh', rows
        assert len(rows) == 2, rows
    async with case("etcd: a get by a key that is base64 on the wire"):
        assert await keys.column('Key("read/größe")[key]') == ["read/größe"]
        assert await keys.column('Key("read/color")[value]') == ["blue"]
    async with case("etcd: a key that is not there is told, though the server answers 200"):
        await keys.refusal('Key("read/nothing")')
    async with case("etcd: an empty range is no rows, not an error"):
        assert await keys.rows('Key{from="nothing/", until="nothing0"}[key]') == []
    async with case("etcd: members and a singleton, both read with POST"):
        assert await keys.column("Member[name]") == ["default"]
        version = etcd.ask("POST", "/v3/maintenance/status", {})["version"]
        assert await keys.column("Status.now()[version]") == [version]


async def etcd_writes(client, etcd):
    keys = await Session.open(client, "write keys", "etcd", "Key", "Lease")
    async with case("etcd: a create puts the key with exactly the value"):
        value = 'naïve "quoted" {value}\n\\n = 100%'
        await keys.write(f'Key.put(key="write/ä b", value=<<END\n{value}\nEND)')
        assert etcd.value("write/ä b") == value
    async with case("etcd: an update replaces the value"):
        await keys.write('Key("write/ä b").set(value="second")')
        assert etcd.value("write/ä b") == "second"
    async with case("etcd: an action with a nested body in a list compares and swaps"):
        etcd.put("write/state", "open")
        await keys.write('Key("write/state").swap(expected="open", value="done")')
        assert etcd.value("write/state") == "done"
        await keys.write('Key("write/state").swap(expected="open", value="lost")')
        assert etcd.value("write/state") == "done"
    async with case("etcd: a value of one result goes into the next call"):
        await keys.write('state = Key("write/state")\nKey.put(key="write/copy", value=state.value)')
        assert etcd.value("write/copy") == "done"
    async with case("etcd: a lease is granted, a key hangs on it, and both go when it is revoked"):
        await keys.write('lease = Lease.grant(ttl=600)\nKey.put(key="write/leased", value="x", lease=lease)')
        held = etcd.ask("POST", "/v3/lease/leases", {}).get("leases", [])
        assert len(held) == 1 and etcd.value("write/leased") == "x", held
        rows = await keys.rows(f'Lease("{held[0]["ID"]}")[granted]')
        assert rows == [{"granted": "600"}], rows
        assert await keys.column('Key("write/leased").lease[id]') == [held[0]["ID"]]
        await keys.write(f'Lease("{held[0]["ID"]}").revoke()')
        assert etcd.value("write/leased") is None
        assert etcd.ask("POST", "/v3/lease/leases", {}).get("leases", []) == []
    async with case("etcd: revoking a lease that is not there is told with the server's status"):
        refused = await keys.refusal('Lease("4242").revoke()', force=True)
        assert "404" in refused or "not found" in refused.lower(), refused
    async with case("etcd: a delete takes the key away"):
        await keys.write('Key("write/ä b").delete()')
        assert etcd.value("write/ä b") is None
        assert etcd.value("write/state") == "done"
    async with case("etcd: a delete for each row of a range"):
        await keys.write('Key{from="write/", until="write0"} => Key(_.key).delete()')
        assert etcd.value("write/state") is None and etcd.value("write/copy") is None


async def etcd_people(client, etcd):
    people = await Session.open(client, "who may what", "etcd", "User", "Role")
    async with case("etcd: roles and users are made, and bare names in a list are rows"):
        for role in ("reader", "writer"):
            await people.write(f'Role.add(name="{role}")')
        await people.write('User.add(name="ada", password="not a secret")')
        assert etcd.ask("POST", "/v3/auth/role/list", {})["roles"] == ["reader", "writer"]
        assert await people.column("Role[name]") == ["reader", "writer"]
        assert await people.column("User[name]") == ["ada"]
    async with case("etcd: an effect for each row grants every role, on someone who is known by name only"):
        await people.write('Role => User("ada").grant(role=_.name)')
        assert etcd.ask("POST", "/v3/auth/user/get", {"name": "ada"})["roles"] == ["reader", "writer"]
        assert await people.column('Role{user="ada"}[name]') == ["reader", "writer"]
    async with case("etcd: one role is taken back, and users and roles go again"):
        await people.write('User("ada").withdraw(role="writer")')
        assert etcd.ask("POST", "/v3/auth/user/get", {"name": "ada"})["roles"] == ["reader"]
        await people.write('User("ada").delete(), Role("reader").delete(), Role("writer").delete()')
        assert "users" not in etcd.ask("POST", "/v3/auth/user/list", {})
        assert "roles" not in etcd.ask("POST", "/v3/auth/role/list", {})


# --- json-graphql-server


async def blog_reads(client, blog):
    posts = await Session.open(client, "read posts", "blog", "Post", "User", "Comment")
    async with case("graphql: a list is read over its pages"):
        ids = await posts.column("Post[id]")
        assert ids == [str(post["id"]) for post in blog.DATA["posts"]], ids
        seven = await posts.column("Post.limit(7)[id]")
        assert seven == ids[:7], seven
    async with case("graphql: filters go into the variables"):
        assert await posts.column("Post{min_views=100}[id]") == ["10", "11", "12"]
        assert await posts.column('Post{author=User("123"), min_views=90}[id]') == ["9", "11"]
    async with case("graphql: a search"):
        titles = await posts.column('Post~"raft"[title]')
        assert titles == [f"Post {n} on raft" for n in (3, 6, 9, 12)], titles
    async with case("graphql: a get, and a get of what is not there, which the server answers with null"):
        assert await posts.rows('Post("2")[title, views]') == [{"title": "Post 2 on cats", "views": "20"}]
        await posts.refusal('Post("77")')
    async with case("graphql: a relation to one and relations to many"):
        assert await posts.column('Post("2").author[name]') == ["Grace"]
        assert await posts.column('Post("1").comments[body]') == ["remark 0", "remark 4"]
        assert await posts.column('User("456").posts.limit(3)[id]') == ["2", "4", "6"]


async def blog_writes(client, blog):
    posts = await Session.open(client, "write posts", "blog", "Post", "User", "Comment")
    async with case("graphql: a create"):
        title = 'naïve "quoted" { id } $title \\ 100%'
        escaped = title.replace("\\", "\\\\").replace('"', '\\"')
        await posts.write(f'Post.publish(title="{escaped}", views=0, author=User("123"))')
        assert blog.post("13") == {"id": "13", "title": title, "views": 0, "user_id": "123"}, blog.post("13")
    async with case("graphql: an update changes what it names and nothing else"):
        await posts.write('Post("13").edit(views=5)')
        assert blog.post("13") == {"id": "13", "title": title, "views": 5, "user_id": "123"}, blog.post("13")
    async with case("graphql: a create with the id of what was just created"):
        program = 'post = Post.publish(title="With a remark", views=1, author=User("456"))\n'
        await posts.write(program + 'Comment.write(post=post, body="first", date="2026-03-01T00:00:00Z")')
        query = 'query { allComments(filter: { body: "first" }) { post_id } }'
        told = blog.graphql(query)["allComments"]
        made = blog.graphql('query { allPosts(filter: { title: "With a remark" }) { id } }')["allPosts"]
        assert len(made) == 1 and told == [{"post_id": made[0]["id"]}], (made, told)
    async with case("graphql: an update for each row of a filtered list, with text made from the row"):
        await posts.write('Post{min_views=110} => Post(_.id).edit(title="{{ _.title }}!")')
        assert blog.post("11")["title"] == "Post 11 on cats!" and blog.post("12")["title"] == "Post 12 on raft!"
        assert blog.post("10")["title"] == "Post 10 on cats"
    async with case("graphql: an error that comes with status 200 is a failure"):
        refused = await posts.refusal('Post("10").edit(views=99999999999)', force=True)
        assert "32-bit" in refused, refused
        assert blog.post("10")["views"] == 100, blog.post("10")
    async with case("graphql: a delete"):
        await posts.write('Post("13").remove()')
        assert blog.post("13") is None
    async with case("graphql: a delete and an update of what is not there are told, though the server answers 200"):
        await posts.refusal('Post("13").remove()', force=True)
        await posts.refusal('Post("13").edit(views=1)', force=True)
        assert blog.post("13") is None


# --- catalogs that nobody wrote: imported from what the servers say of themselves, and used as they came


async def imported_jupyter(client, jupyter):
    found = await client.call_tool("discover_capabilities", {"intent": "list the kernels of a jupyter server"})
    async with case("imported: what a specification offers is discovered"):
        assert not found.is_error and "jupyter-server" in found.content[0].text, found.content[0].text
    api = await Session.open(client, "files and sessions", "jupyter-server", "Content", "Session", "Kernel", "Status")
    async with case("imported: a get of a file, its path as one segment"):
        rows = await api.rows('Content("papers/raft.txt")[name, type, content]')
        assert rows == [{"name": "raft.txt", "type": "file", "content": "consensus"}], rows
    async with case("imported: a singleton"):
        assert await api.column("Status.read()[kernels]") == ["0"]
    async with case("imported: a plan of a write asks for a review and calls nothing"):
        plan = await api.plan('Content("new.txt").replace(type="file", format="text", content="x")')
        assert plan.startswith("plan review"), plan
        assert jupyter.status("GET", "/api/contents/new.txt") == 404
    async with case("imported: a write makes the file with its text"):
        await api.write('Content("new.txt").replace(type="file", format="text", content="made by an import")')
        assert (jupyter.root / "new.txt").read_text() == "made by an import"
    async with case("imported: a delete"):
        await api.write('Content("new.txt").delete()')
        assert jupyter.status("GET", "/api/contents/new.txt") == 404
    async with case("imported: what is not there is said to be not there"):
        refused = await api.refusal('Content("papers/nothing.txt")')
        assert "404" in refused or "not found" in refused.lower(), refused


async def imported_blog(client, blog):
    found = await client.call_tool("discover_capabilities", {"intent": "list the posts of a user"})
    async with case("imported: what a schema offers is discovered"):
        assert not found.is_error and "Post" in found.content[0].text, found.content[0].text
    posts = await Session.open(client, "posts", "posts", "Post", "User")
    async with case("imported: a list over GraphQL is what the server holds"):
        rows = await posts.rows("Post.limit(50)[id, title]")
        held = blog.graphql("{ allPosts { id title } }")["allPosts"]
        assert sorted((row["id"], row["title"]) for row in rows) == sorted((p["id"], p["title"]) for p in held), rows
    async with case("imported: a get over GraphQL"):
        title = blog.post("3")["title"]
        assert await posts.column('Post("3")[title]') == [title]
    async with case("imported: a plan of a mutation asks for a review and calls nothing"):
        plan = await posts.plan('Post.create(title="only planned", views=1, user_id="123")')
        assert plan.startswith("plan review"), plan
        assert blog.graphql('{ allPosts(filter: {title: "only planned"}) { id } }')["allPosts"] == []
    async with case("imported: a mutation makes a row"):
        await posts.write('Post.create(title="by an import", views=1, user_id="123")')
        made = blog.graphql('{ allPosts(filter: {title: "by an import"}) { id views } }')["allPosts"]
        assert [post["views"] for post in made] == [1], made
    async with case("imported: a mutation on a row changes it"):
        await posts.write('Post("2").update(views=77)')
        assert blog.post("2")["views"] == 77


async def imported(blog):
    with OpenJupyter() as jupyter:
        folder = tempfile.mkdtemp(prefix="catalogs-")
        draft = ["catalog", "import", "graphql", blog.url, "--name", "posts", "-o", f"{folder}/posts.yaml", "--json"]
        done = subprocess.run([os.environ["TOKAMAK"], *draft], capture_output=True, text=True, timeout=30)
        async with case("imported: a GraphQL server tells its schema, and all of its draft is taught"):
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
            assert report["untaught"] == [] and report["mapped"] > 10, report
        arguments = ("--catalogs", folder, "--openapi", f"{jupyter.url}/api/spec.yaml")
        with Server(arguments=arguments) as server:
            for check, one in ((imported_jupyter, jupyter), (imported_blog, blog)):
                with suite.group(check.__name__):
                    async with Client(server.mcp, mode="auto", read_timeout_seconds=20) as client:
                        await check(client, one)


# --- all of it


async def main():
    with Jupyter() as jupyter, Etcd() as etcd, Blog() as blog:
        catalogs = tempfile.mkdtemp(prefix="catalogs-")
        for one in (jupyter, etcd, blog):
            one.catalog(catalogs)
        os.environ["JUPYTER_TOKEN"] = jupyter.token
        groups = [
            (jupyter, [jupyter_reads, jupyter_writes, jupyter_sessions]),
            (etcd, [etcd_reads, etcd_writes, etcd_people]),
            (blog, [blog_reads, blog_writes]),
        ]
        with Server(arguments=("--catalogs", catalogs)) as server:
            for one, checks in groups:
                for check in checks:
                    with suite.group(check.__name__):
                        async with Client(server.mcp, mode="auto", read_timeout_seconds=20) as client:
                            await check(client, one)
        with suite.group("jupyter_token"):
            await jupyter_token(catalogs, jupyter)
        with suite.group("imported"):
            await imported(blog)


if __name__ == "__main__":
    with suite.group("servers"):
        anyio.run(main)
    suite.end()
