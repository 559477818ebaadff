"""A small file system of our own, and a way to fill it. Mounting needs root."""

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

MEGABYTE = 1024 * 1024


@contextmanager
def small_disk(size="24m"):
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)


def fill(disk):
    """Fills the disk until not one more byte fits."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (MEGABYTE, 4096, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                pass
    return filler
