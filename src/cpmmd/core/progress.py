"""Progress: a callback that long steps report to; silent unless one is set."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

Progress = Callable[[str, int, int], None]
_callback: ContextVar[Progress | None] = ContextVar("cpmmd_progress", default=None)


@contextmanager
def reporting_to(callback: Progress | None) -> Iterator[None]:
    """Send progress inside to ``callback(stage, done, total)``."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def report(stage: str, done: int, total: int) -> None:
    """Report how far a stage is."""
    callback = _callback.get()
    if callback is not None:
        callback(stage, done, total)


class Meter:
    """Writes lines of progress: how much is done, how fast, and the time left. Pass one as ``progress=``.

    Parameters
    ----------
    stream : text stream, optional
        Where the lines go; None is the standard error.
    interval : float
        Fewest seconds between two lines; the last line of a stage is always written.
    clock : callable
        Returns the time in seconds.

    Examples
    --------
    >>> import io
    >>> from cpmmd import Meter
    >>> out = io.StringIO()
    >>> meter = Meter(out, clock=iter([0.0, 2.0]).__next__)
    >>> meter("tiles", 100, 400)
    >>> meter("tiles", 200, 400)
    >>> out.getvalue().splitlines()[-1]
    'tiles 200 of 400, 50 a second, 4 s left'
    """

    def __init__(
        self, stream: TextIO | None = None, *, interval: float = 0.5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._interval, self._clock = stream or sys.stderr, interval, clock
        self._stage, self._first, self._started, self._written = "", 0, 0.0, -math.inf

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Write a line, unless the last one is fresh."""
        now = self._clock()
        if stage != self._stage:
            self._stage, self._first, self._started, self._written = stage, done, now, -math.inf
        if now - self._written < self._interval and done < total:
            return
        self._written = now
        self._stream.write(self._line(done, total, now - self._started) + "\n")

    def _line(self, done: int, total: int, elapsed: float) -> str:
        rate = (done - self._first) / elapsed if elapsed > 0 else 0.0
        left = f", {rate:.3g} a second, {(total - done) / rate:.0f} s left" if rate > 0 else ""
        return f"{self._stage} {done} of {total}{left}"
