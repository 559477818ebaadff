"""Files of heaps that are not complete or not what they say; nothing of a refused file is stored."""

import json

import pytest

from damage import LOOK, DataFolder, flipped, row_of
from lib.javascript import UNKNOWN_HEAP
from lib.server import copy_compiled_engine, new_folder, run_binary


@pytest.fixture(scope="module")
def folder():
    return DataFolder()


def tokamak(*arguments):
    return run_binary("--json", *arguments, seconds=120)


def new_data_folder():
    data = new_folder("data-")
    copy_compiled_engine(data)
    return data


def export(folder, name, files):
    """The parts of an exported heap: its first line, the engine and the object."""
    out = files / f"{name}.heap"
    ended = tokamak("heap", "export", folder.head(name), "-o", out, "--data", folder.data)
    assert ended.returncode == 0, ended.stderr
    head, _, rest = out.read_bytes().partition(b"\n")
    head = json.loads(head)
    return head, rest[: head["guest_bytes"]], rest[head["guest_bytes"] :]


def file_of(head, guest, image):
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + guest + image


def stored_heaps(data):
    ended = tokamak("heap", "list", "--data", data)
    assert ended.returncode == 0, ended.stderr
    return [heap["heap"] for heap in json.loads(ended.stdout)["heaps"]]


@pytest.fixture(scope="module")
def exported(folder):
    """The file of the large heap as it was exported, and the parts of the wrong files below."""
    files = new_folder("files-")
    head, guest, image = export(folder, "large", files)
    other_head, _, other = export(folder, "sound", files)
    whole = file_of(head, guest, image)
    assert whole == (files / "large.heap").read_bytes(), "an exported file has other parts than these"
    small = row_of(folder.data, folder.head("small"))[1]
    lengths = {"guest_bytes": len(guest) + 1, "object_bytes": len(image) - 1}
    # Each wrong file: its content, and a word of the refusal.
    wrong = {
        "nothing": (b"", "first line"),
        "its first line alone": (whole[: whole.index(b"\n") + 1], "long"),
        "half of its engine": (whole[: len(guest) // 2], "long"),
        "half of it": (whole[: len(whole) // 2], "long"),
        "all but the last byte": (whole[:-1], "long"),
        "a byte more": (whole + b"\0", "long"),
        "parts at another place": (file_of({**head, **lengths}, guest, image), "heap"),
        "another heap's object": (file_of({**head, "object_bytes": len(other)}, guest, other), head["heap"]),
        "another heap's key": (file_of({**head, "heap": other_head["heap"]}, guest, image), other_head["heap"]),
        "an unknown key": (file_of({**head, "heap": UNKNOWN_HEAP}, guest, image), UNKNOWN_HEAP),
        "another engine than it says": (file_of({**head, "engine": UNKNOWN_HEAP}, guest, image), "engine"),
        "an engine that is none": (file_of({**head, "engine": UNKNOWN_HEAP, "guest_bytes": 4}, b"none", image), "engine"),
        "another size of its memory": (file_of({**head, "memory_bytes": head["memory_bytes"] + 65536}, guest, image), "heap"),
        "an unknown format": (file_of({**head, "format": "tokamak-heap/2"}, guest, image), "heap"),
        "an object that stands on another": (file_of({**head, "object_bytes": len(small)}, guest, small), "another heap"),
        "the object without the file around it": (image, "first line"),
        "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(5000), "first line"),
        "text": (b'{"heap": "text"}\n', "first line"),
        "a line without end": (b"{" * 100_000, "first line"),
    }
    for bit in FLIPPED_BITS:
        at = {"middle": len(image) // 2, "end": len(image) - 1}.get(bit, bit)
        wrong[f"a flipped bit at {bit} of its object"] = (file_of(head, guest, flipped(image, at)), "heap")
    assert set(wrong) == set(WRONG_FILES)
    return wrong, files / "large.heap"


FLIPPED_BITS = (0, 9, 10, 41, 42, 60, "middle", "end")
WRONG_FILES = [
    "nothing",
    "its first line alone",
    "half of its engine",
    "half of it",
    "all but the last byte",
    "a byte more",
    "parts at another place",
    *(f"a flipped bit at {bit} of its object" for bit in FLIPPED_BITS),
    "another heap's object",
    "another heap's key",
    "an unknown key",
    "another engine than it says",
    "an engine that is none",
    "another size of its memory",
    "an unknown format",
    "an object that stands on another",
    "the object without the file around it",
    "a picture",
    "text",
    "a line without end",
]


@pytest.mark.parametrize("title", WRONG_FILES)
def test_a_wrong_file_is_refused_with_its_mistake_and_nothing_is_stored(exported, tmp_path, title):
    content, word = exported[0][title]
    path, data = tmp_path / "wrong.heap", new_data_folder()
    path.write_bytes(content)
    ended = tokamak("heap", "import", path, "--data", data)
    assert ended.returncode in (1, 2, 3), f"it ended with {ended.returncode}: {ended.stdout}"
    assert word in ended.stderr + ended.stdout and "panicked" not in ended.stderr, ended.stderr
    assert stored_heaps(data) == [], "the heap is stored"


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "nothing.heap", tmp_path):
        ended = tokamak("heap", "import", path, "--data", new_data_folder())
        assert ended.returncode in (1, 2, 3) and str(path) in ended.stderr + ended.stdout, ended


def test_the_exported_file_is_imported_and_the_heap_is_what_it_was(folder, exported, tmp_path):
    data = new_data_folder()
    for _ in range(2):
        ended = tokamak("heap", "import", exported[1], "--data", data)
        assert ended.returncode == 0 and json.loads(ended.stdout)["heap"] == folder.head("large"), ended
    assert stored_heaps(data) == [folder.head("large")]
    assert reads_large_heap(folder, data, tmp_path)


def test_an_import_over_a_damaged_heap_repairs_it_or_is_an_error(folder, exported, tmp_path):
    data = folder.copy()
    (data / folder.blobs["large"]).write_bytes(b"")
    ended = tokamak("heap", "import", exported[1], "--data", data)
    repaired = reads_large_heap(folder, data, tmp_path)
    assert repaired or ended.returncode != 0, f"import said {ended.stdout.strip()}, and the heap cannot be read"


def reads_large_heap(folder, data, tmp_path):
    """Whether a run on the large heap sees what it holds."""
    (tmp_path / "look.js").write_text(LOOK)
    ended = tokamak("js", tmp_path / "look.js", "--heap", folder.head("large"), "--data", data)
    return ended.returncode == 0 and json.loads(ended.stdout)[-1]["result"] == ["large", "large 0", 1]
