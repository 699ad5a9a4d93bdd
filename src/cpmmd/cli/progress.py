"""How far a long step is, on standard error: one line that changes on a terminal, a line now and then in a log."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cpmmd.core.progress import Meter

PATIENCE = 0.5  # seconds before the first line: short commands say nothing
INTERVAL = 0.1  # between two: short enough to look alive, long enough to cost nothing
QUIET = 10.0  # the same two for a log, which keeps what is written to it
CLEAR = "\r\x1b[2K"


@contextmanager
def progress(step: str = "at work") -> Iterator[Meter]:
    """Return a callback for ``progress=``; a terminal's line is wiped at the end, a log hears of steps that take long."""
    shown = _Line() if sys.stderr.isatty() else _Log(step)
    try:
        yield Meter(shown, every=INTERVAL)
    finally:
        shown.wipe()


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


class _Log(io.StringIO):
    """Says every QUIET seconds what was last written to it, also while a step has nothing to report."""

    def __init__(self, step: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._latest, self._clock, self._started, self._over = step, clock, clock(), threading.Event()
        self._thread = threading.Thread(target=self.speak, args=(self._over.wait,), daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Keep a line until it is time for one."""
        self._latest = text.rstrip("\n")
        return len(text)

    def speak(self, pause: Callable[[float], bool]) -> None:
        """Write a line after each pause, until one says that the step is over."""
        while not pause(QUIET):
            with suppress(OSError, ValueError):  # nobody reads any more
                sys.stderr.write(f"Progress: {self._latest}, {self._clock() - self._started:.0f} s so far\n")
                sys.stderr.flush()

    def wipe(self) -> None:
        """Say no more."""
        self._over.set()
        self._thread.join(1.0)
