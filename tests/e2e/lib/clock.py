"""A wall clock that a test can move while processes run: a small library (clock.c) that is loaded before the C library.

Invariant: only the wall clock moves, not the clock that measures durations.
"""

import os
import shutil
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path

DAY = 24 * 60 * 60


class Clock:
    """The file with the offset that each process adds to its time."""

    def __init__(self, folder):
        self.file = folder / "offset"
        self.move_to(0)
        self.library = folder / "clock.so"
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or "cc"
        source = Path(__file__).with_name("clock.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library, source], check=True)

    def move_to(self, seconds):
        """Sets the offset. The file is written in place, because the processes have it mapped."""
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))

    @contextmanager
    def in_new_processes(self):
        """Processes that start inside this block have the movable clock."""
        os.environ.update(LD_PRELOAD=str(self.library), CLOCK_OFFSET=str(self.file))
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"], os.environ["CLOCK_OFFSET"]
