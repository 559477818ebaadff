"""Reads and writes on Jupyter Server. A model's part goes through the official client and the binary; the server itself says what it holds."""

import os

import anyio
import pytest

from foreign_servers import Jupyter
from lib.mcp_client import over_http
from lib.server import Server, new_folder, settings
from programs import Session

pytestmark = pytest.mark.steps


@pytest.fixture(scope="module")
def jupyter():
    with Jupyter() as started:
        yield started


@pytest.fixture(scope="module")
def catalogs(jupyter):
    folder = new_folder("catalogs-")
    jupyter.catalog(folder)
    return folder


def bound(jupyter):
    """The settings that allow the token to be sent to this server."""
    return settings(f'[secrets]\nJUPYTER_TOKEN = "{jupyter.url}"\n')


@pytest.fixture(scope="module")
def client(portal, jupyter, catalogs):
    os.environ["JUPYTER_TOKEN"] = jupyter.token
    with Server(arguments=("--catalogs", catalogs, *bound(jupyter))) as server:
        with portal.wrap_async_context_manager(over_http(server)()) as connected:
            yield connected


# --- reads


@pytest.fixture(scope="module")
def readable(portal, client):
    return portal.call(Session.open, client, "read files", "jupyter", "Folder", "File", "KernelSpec", "Status")


async def test_a_list_is_what_the_folder_holds(jupyter, readable):
    rows = await readable.rows('File{folder="papers"}[name, type, size]')
    contents = jupyter.ask("GET", "/api/contents/papers")["content"]
    listed = sorted((row["name"], row["type"], int(row["size"])) for row in rows)
    assert listed == sorted((file["name"], file["type"], file["size"]) for file in contents), rows
    assert len(listed) == 2, listed


async def test_a_get_brings_the_text_and_a_name_with_a_space_an_ampersand_and_an_accent_is_one_segment(readable):
    assert await readable.column('File("papers/raft.txt")[content]') == ["consensus"]
    assert await readable.column('File("papers/café & co.txt")[content]') == ["a name that must be encoded"]


async def test_a_filter_that_is_a_lone_slash_is_one_encoded_segment(readable):
    assert sorted(await readable.column('File{folder="/"}[name]')) == ["papers", "readme.md"]


async def test_a_relation_lists_the_entries_of_a_folder(readable):
    names = await readable.column('Folder("papers").entries[path]')
    assert sorted(names) == ["papers/café & co.txt", "papers/raft.txt"], names


async def test_members_of_an_object_are_rows_with_nested_fields(readable):
    rows = await readable.rows("KernelSpec[name, title, language]")
    assert rows == [{"name": "idle", "title": "Idle", "language": "none"}], rows


async def test_a_singleton_is_one_row(readable):
    rows = await readable.rows("Status.now()[kernels]")
    assert rows == [{"kernels": "0"}], rows


async def test_a_missing_file_is_reported_as_missing(readable):
    refused = await readable.refusal('File("papers/nothing.txt")')
    assert "404" in refused or "not found" in refused.lower(), refused


# --- writes


@pytest.fixture(scope="module")
def writable(portal, client):
    async def open_and_make_folder():
        session = await Session.open(client, "write files", "jupyter", "Folder", "File", "Checkpoint")
        await session.write('Folder.make(path="made")')
        return session

    return portal.call(open_and_make_folder)


async def test_a_plan_of_a_write_asks_for_a_review_and_calls_nothing(jupyter, writable):
    plan = await writable.plan('File.save(path="made/planned.txt", content="x")')
    assert plan.startswith("plan review"), plan
    assert jupyter.status("GET", "/api/contents/made/planned.txt") == 404


async def test_a_write_without_a_review_is_refused_and_calls_nothing(jupyter, writable):
    refused = await writable.refusal('File.save(path="made/planned.txt", content="x")')
    assert "force" in refused, refused
    assert jupyter.status("GET", "/api/contents/made/planned.txt") == 404


async def test_a_create_makes_a_file_with_exactly_the_text(jupyter, writable):
    text = 'naïve "quoted" {content} {{ x }} \\n 100%\n\n\ttab; ;; not a comment\nlast'
    await writable.write(f'File.save(path="made/a b&c.txt", content=<<END\n{text}\nEND)')
    assert (jupyter.root / "made" / "a b&c.txt").read_text() == text


async def test_the_same_create_again_replaces_the_text(jupyter, writable):
    await writable.write('File.save(path="made/a b&c.txt", content="second")')
    contents = jupyter.ask("GET", "/api/contents/made/a%20b%26c.txt")
    assert (contents["content"], contents["type"]) == ("second", "file"), contents


async def test_an_update_renames_the_file(jupyter, writable):
    await writable.write('File("made/a b&c.txt").rename(to="made/renamed.txt")')
    assert (jupyter.root / "made" / "renamed.txt").read_text() == "second"
    assert jupyter.status("GET", "/api/contents/made/a%20b%26c.txt") == 404


async def test_an_action_copies_a_file_and_its_row_can_be_read_on(jupyter, writable):
    await writable.write('copy = File("made/renamed.txt").copy(folder="made")\ncopy[path]')
    assert (jupyter.root / "made" / "renamed-Copy1.txt").read_text() == "second"


async def test_a_checkpoint_is_made_listed_and_restored(jupyter, writable):
    await writable.write('Checkpoint.make(file=File("made/renamed.txt"))')
    kept = await writable.rows('File("made/renamed.txt").checkpoints[file, id]')
    assert kept == [{"file": "made/renamed.txt", "id": "checkpoint"}], kept
    await writable.write('File.save(path="made/renamed.txt", content="spoiled")')
    assert (jupyter.root / "made" / "renamed.txt").read_text() == "spoiled"
    await writable.write('Checkpoint(file=File("made/renamed.txt"), id="checkpoint").restore()')
    assert (jupyter.root / "made" / "renamed.txt").read_text() == "second"
    await writable.write('Checkpoint(file=File("made/renamed.txt"), id="checkpoint").delete()')
    assert jupyter.ask("GET", "/api/contents/made/renamed.txt/checkpoints") == []


async def test_an_effect_runs_for_each_row_of_a_list(jupyter, writable):
    await writable.write('Folder.make(path="copies")')
    await writable.write('File{folder="papers"} => File(_.path).copy(folder="copies")')
    copies = sorted(path.name for path in (jupyter.root / "copies").iterdir() if path.is_file())
    assert copies == ["café & co.txt", "raft.txt"], copies


async def test_a_failed_effect_is_reported_with_its_status_and_the_effects_after_it_do_not_run(jupyter, writable):
    (jupyter.root / "made" / "stays.txt").write_text("stays")
    program = 'File("made/renamed.txt").rename(to="made/stays.txt"), File("made/stays.txt").delete()'
    refused = await writable.refusal(program, force=True)
    assert "409" in refused, refused
    assert (jupyter.root / "made" / "stays.txt").read_text() == "stays"
    assert (jupyter.root / "made" / "renamed.txt").read_text() == "second"


async def test_a_delete_removes_the_file(jupyter, writable):
    await writable.write('File("made/renamed.txt").delete()')
    assert jupyter.status("GET", "/api/contents/made/renamed.txt") == 404
    assert not (jupyter.root / "made" / "renamed.txt").exists()


# --- sessions and kernels


@pytest.fixture(scope="module")
def sessions(portal, client):
    return portal.call(Session.open, client, "run kernels", "jupyter", "Session", "Kernel", "KernelSpec")


@pytest.fixture
def session(running):
    return running["id"]


@pytest.fixture
def kernel(running):
    return running["kernel"]["id"]


@pytest.fixture
def running(jupyter):
    """The only session that runs, as the server itself lists it."""
    (only,) = jupyter.ask("GET", "/api/sessions")
    return only


async def test_a_nested_body_starts_a_session_and_its_nested_answer_is_one_row(jupyter, sessions):
    await sessions.write('Session.start(path="made.ipynb", name="first", spec="idle")')
    running = jupyter.ask("GET", "/api/sessions")
    assert [(one["name"], one["path"], one["kernel"]["name"]) for one in running] == [("first", "made.ipynb", "idle")]
    rows = await sessions.rows("Session[name, path, kernel]")
    assert rows == [{"name": "first", "path": "made.ipynb", "kernel": running[0]["kernel"]["id"]}], rows


async def test_a_reference_in_a_nested_field_is_followed_twice(sessions, session, kernel):
    assert await sessions.column(f'Session("{session}").kernel[id]') == [kernel]
    assert await sessions.column(f'Session("{session}").kernel.spec[title]') == ["Idle"]


async def test_an_update_by_the_id_of_an_earlier_result(jupyter, sessions):
    await sessions.write('open = Session.limit(1)\nopen => Session(_.id).rename(name="second")')
    assert [one["name"] for one in jupyter.ask("GET", "/api/sessions")] == ["second"]


async def test_an_action_without_arguments_and_without_an_answer(jupyter, sessions, kernel):
    assert await appears(jupyter.kernel_started) and not jupyter.kernel_interrupted.exists()
    await sessions.write(f'Kernel("{kernel}").interrupt()')
    assert await appears(jupyter.kernel_interrupted), "the kernel was not interrupted"


async def test_a_delete_ends_the_session_and_its_kernel(jupyter, sessions, session):
    await sessions.write(f'Session("{session}").end()')
    assert jupyter.ask("GET", "/api/sessions") == []
    assert jupyter.ask("GET", "/api/kernels") == []


async def appears(path):
    with anyio.move_on_after(10):
        while not path.exists():
            await anyio.sleep(0.05)
    return path.exists()


# --- a wrong token


WRONG_TOKEN = "a-token-that-is-wrong"


@pytest.fixture(scope="module")
def without_access(portal, jupyter, catalogs):
    os.environ["JUPYTER_TOKEN"] = WRONG_TOKEN
    with Server(arguments=("--catalogs", catalogs, *bound(jupyter))) as server:
        with portal.wrap_async_context_manager(over_http(server)()) as connected:
            yield portal.call(Session.open, connected, "no entry", "jupyter", "File")


async def test_a_wrong_token_is_reported_as_a_refusal_of_the_server_without_the_token(without_access):
    refused = await without_access.refusal('File{folder="papers"}')
    assert "403" in refused and WRONG_TOKEN not in refused, refused


async def test_a_write_with_a_wrong_token_changes_nothing(jupyter, without_access):
    refused = await without_access.refusal('File.save(path="papers/no.txt", content="x")', force=True)
    assert "403" in refused and WRONG_TOKEN not in refused, refused
    assert jupyter.status("GET", "/api/contents/papers/no.txt") == 404
