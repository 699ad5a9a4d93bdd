"""How far a long step is: one line on standard error, when that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 0.5  # seconds before the first line, and
INTERVAL = 0.1  # between two: short enough to look alive, long enough to cost nothing
CLEAR = "\r\x1b[2K"


@contextmanager
def progress() -> Iterator[Progress | None]:
    """Give a callback for ``progress=`` and wipe its line at the end; None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    line = Progress()
    try:
        yield line
    finally:
        line.wipe()


class Progress:
    """Writes ``stage 3 of 10`` over and over."""

    def __init__(self) -> None:
        self._next = time.monotonic() + PATIENCE
        self._written = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say how far a stage is."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL
        sys.stderr.write(f"{CLEAR}{stage} {done} of {total}")
        sys.stderr.flush()
        self._written = True

    def wipe(self) -> None:
        """Leave no line behind."""
        if self._written:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
