"""Reads and writes on a GraphQL API: posts, users and comments of json-graphql-server."""

import pytest

from foreign_servers import Blog
from lib.mcp_client import over_http
from lib.server import Server, new_folder
from programs import Session

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def blog():
    with Blog() as started:
        yield started


@pytest.fixture(scope="module")
def client(portal, blog):
    folder = new_folder("catalogs-")
    blog.catalog(folder)
    with Server(arguments=("--catalogs", folder)) as server:
        with portal.wrap_async_context_manager(over_http(server)()) as connected:
            yield connected


# --- reads


@pytest.fixture(scope="module")
def readable(portal, client):
    return portal.call(Session.open, client, "read posts", "blog", "Post", "User", "Comment")


async def test_a_list_is_read_over_its_pages(blog, readable):
    ids = await readable.column("Post[id]")
    assert ids == [str(post["id"]) for post in blog.DATA["posts"]], ids
    seven = await readable.column("Post.limit(7)[id]")
    assert seven == ids[:7], seven


async def test_filters_go_into_the_variables(readable):
    assert await readable.column("Post{min_views=100}[id]") == ["10", "11", "12"]
    assert await readable.column('Post{author=User("123"), min_views=90}[id]') == ["9", "11"]


async def test_a_search_is_sent_to_the_server(readable):
    titles = await readable.column('Post~"raft"[title]')
    assert titles == [f"Post {n} on raft" for n in (3, 6, 9, 12)], titles


async def test_a_get_answers_a_row_and_a_missing_post_is_reported_though_the_server_answers_null(readable):
    assert await readable.rows('Post("2")[title, views]') == [{"title": "Post 2 on cats", "views": "20"}]
    await readable.refusal('Post("77")')


async def test_a_relation_to_one_and_relations_to_many_are_followed(readable):
    assert await readable.column('Post("2").author[name]') == ["Grace"]
    assert await readable.column('Post("1").comments[body]') == ["remark 0", "remark 4"]
    assert await readable.column('User("456").posts.limit(3)[id]') == ["2", "4", "6"]


# --- writes


@pytest.fixture(scope="module")
def writable(portal, client):
    return portal.call(Session.open, client, "write posts", "blog", "Post", "User", "Comment")


async def test_a_create_makes_a_post_with_exactly_the_title(blog, writable, flow):
    flow.title = 'naïve "quoted" { id } $title \\ 100%'
    escaped = flow.title.replace("\\", "\\\\").replace('"', '\\"')
    await writable.write(f'Post.publish(title="{escaped}", views=0, author=User("123"))')
    assert blog.post("13") == {"id": "13", "title": flow.title, "views": 0, "user_id": "123"}, blog.post("13")


async def test_an_update_changes_the_named_field_and_no_other(blog, writable, flow):
    await writable.write('Post("13").edit(views=5)')
    assert blog.post("13") == {"id": "13", "title": flow.title, "views": 5, "user_id": "123"}, blog.post("13")


async def test_a_create_uses_the_id_of_the_row_that_was_created_before(blog, writable):
    program = 'post = Post.publish(title="With a remark", views=1, author=User("456"))\n'
    await writable.write(program + 'Comment.write(post=post, body="first", date="2026-03-01T00:00:00Z")')
    query = 'query { allComments(filter: { body: "first" }) { post_id } }'
    comments = blog.graphql(query)["allComments"]
    created = blog.graphql('query { allPosts(filter: { title: "With a remark" }) { id } }')["allPosts"]
    assert len(created) == 1 and comments == [{"post_id": created[0]["id"]}], (created, comments)


async def test_an_update_for_each_row_of_a_filtered_list_uses_text_of_the_row(blog, writable):
    await writable.write('Post{min_views=110} => Post(_.id).edit(title="{{ _.title }}!")')
    assert blog.post("11")["title"] == "Post 11 on cats!" and blog.post("12")["title"] == "Post 12 on raft!"
    assert blog.post("10")["title"] == "Post 10 on cats"


async def test_an_error_with_status_200_is_a_failure(blog, writable):
    refused = await writable.refusal('Post("10").edit(views=99999999999)', force=True)
    assert "32-bit" in refused, refused
    assert blog.post("10")["views"] == 100, blog.post("10")


async def test_a_delete_removes_the_post(blog, writable):
    await writable.write('Post("13").remove()')
    assert blog.post("13") is None


async def test_a_delete_and_an_update_of_a_missing_post_are_reported_though_the_server_answers_200(blog, writable):
    await writable.refusal('Post("13").remove()', force=True)
    await writable.refusal('Post("13").edit(views=1)', force=True)
    assert blog.post("13") is None
