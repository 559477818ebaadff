"""Catalogs that are imported from a server's own description and used without an edit: OpenAPI of Jupyter Server, a GraphQL schema."""

import json

import pytest

from foreign_servers import Blog, OpenJupyter
from lib.mcp_client import over_http
from lib.server import Server, new_folder, run_binary
from programs import Session

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def jupyter():
    with OpenJupyter() as started:
        yield started


@pytest.fixture(scope="module")
def blog():
    with Blog() as started:
        yield started


@pytest.fixture(scope="module")
def folder():
    return new_folder("catalogs-")


@pytest.fixture(scope="module")
def imported(blog, folder):
    """The import of the GraphQL schema."""
    return run_binary("catalog", "import", "graphql", blog.url, "--name", "posts", "-o", folder / "posts.yaml", "--json")


@pytest.fixture(scope="module")
def client(portal, jupyter, folder, imported):
    arguments = ("--catalogs", folder, "--openapi", f"{jupyter.url}/api/spec.yaml")
    with Server(arguments=arguments) as server:
        with portal.wrap_async_context_manager(over_http(server)()) as connected:
            yield connected


async def test_all_of_the_draft_of_a_graphql_schema_is_taught(imported):
    assert imported.returncode == 0, imported.stderr
    report = json.loads(imported.stdout)
    assert report["untaught"] == [] and report["mapped"] > 10, report


# --- from a specification


@pytest.fixture(scope="module")
def jupyter_session(portal, client):
    return portal.call(Session.open, client, "files and sessions", "jupyter-server", "Content", "Session", "Kernel", "Status")


async def test_the_entities_of_a_specification_are_discovered(client):
    discovered = await client.call_tool("discover_capabilities", {"intent": "list the kernels of a jupyter server"})
    assert not discovered.is_error and "jupyter-server" in discovered.content[0].text, discovered.content[0].text


async def test_a_get_reads_a_file_whose_path_is_one_segment(jupyter_session):
    rows = await jupyter_session.rows('Content("papers/raft.txt")[name, type, content]')
    assert rows == [{"name": "raft.txt", "type": "file", "content": "consensus"}], rows


async def test_a_singleton_is_one_row(jupyter_session):
    assert await jupyter_session.column("Status.read()[kernels]") == ["0"]


async def test_a_plan_of_a_write_asks_for_a_review_and_calls_nothing(jupyter, jupyter_session):
    plan = await jupyter_session.plan('Content("new.txt").replace(type="file", format="text", content="x")')
    assert plan.startswith("plan review"), plan
    assert jupyter.status("GET", "/api/contents/new.txt") == 404


async def test_a_write_makes_the_file_with_its_text(jupyter, jupyter_session):
    await jupyter_session.write('Content("new.txt").replace(type="file", format="text", content="made by an import")')
    assert (jupyter.root / "new.txt").read_text() == "made by an import"


async def test_a_delete_removes_the_file(jupyter, jupyter_session):
    await jupyter_session.write('Content("new.txt").delete()')
    assert jupyter.status("GET", "/api/contents/new.txt") == 404


async def test_a_missing_file_is_reported_as_missing(jupyter_session):
    refused = await jupyter_session.refusal('Content("papers/nothing.txt")')
    assert "404" in refused or "not found" in refused.lower(), refused


# --- from a schema


@pytest.fixture(scope="module")
def blog_session(portal, client):
    return portal.call(Session.open, client, "posts", "posts", "Post", "User")


async def test_the_entities_of_a_schema_are_discovered(client):
    discovered = await client.call_tool("discover_capabilities", {"intent": "list the posts of a user"})
    assert not discovered.is_error and "Post" in discovered.content[0].text, discovered.content[0].text


async def test_a_list_over_graphql_is_what_the_server_holds(blog, blog_session):
    rows = await blog_session.rows("Post.limit(50)[id, title]")
    stored = blog.graphql("{ allPosts { id title } }")["allPosts"]
    assert sorted((row["id"], row["title"]) for row in rows) == sorted((p["id"], p["title"]) for p in stored), rows


async def test_a_get_over_graphql_answers_a_row(blog, blog_session):
    title = blog.post("3")["title"]
    assert await blog_session.column('Post("3")[title]') == [title]


async def test_a_plan_of_a_mutation_asks_for_a_review_and_calls_nothing(blog, blog_session):
    plan = await blog_session.plan('Post.create(title="only planned", views=1, user_id="123")')
    assert plan.startswith("plan review"), plan
    assert blog.graphql('{ allPosts(filter: {title: "only planned"}) { id } }')["allPosts"] == []


async def test_a_mutation_makes_a_row(blog, blog_session):
    await blog_session.write('Post.create(title="by an import", views=1, user_id="123")')
    created = blog.graphql('{ allPosts(filter: {title: "by an import"}) { id views } }')["allPosts"]
    assert [post["views"] for post in created] == [1], created


async def test_a_mutation_on_a_row_changes_it(blog, blog_session):
    await blog_session.write('Post("2").update(views=77)')
    assert blog.post("2")["views"] == 77
