"""How far a long step is: one line on standard error, when that is a terminal."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cpmmd.core.progress import Meter

PATIENCE = 0.5  # seconds before the first line: short commands say nothing
INTERVAL = 0.1  # between two: short enough to look alive, long enough to cost nothing
CLEAR = "\r\x1b[2K"


@contextmanager
def progress() -> Iterator[Meter | None]:
    """Return a callback for ``progress=`` and wipe its line at the end; None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line()
    try:
        yield Meter(line, every=INTERVAL)
    finally:
        line.wipe()


class _Line(io.StringIO):
    """Shows the last line written to it."""

    def __init__(self) -> None:
        super().__init__()
        self._from, self._shown = time.monotonic() + PATIENCE, False

    def write(self, text: str) -> int:
        """Show a line in place of the one before."""
        if time.monotonic() >= self._from:
            sys.stderr.write(CLEAR + text.rstrip("\n"))
            sys.stderr.flush()
            self._shown = True
        return len(text)

    def wipe(self) -> None:
        """Leave no line behind."""
        if self._shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
