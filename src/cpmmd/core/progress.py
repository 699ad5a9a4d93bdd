"""Progress: a callback that long steps report to; silent unless one is set."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from typing import Any, TextIO

Progress = Callable[[str, int, int], None]
_callback: ContextVar[Progress | None] = ContextVar("cpmmd_progress", default=None)


@contextmanager
def reporting_to(callback: Progress | None) -> Iterator[None]:
    """Send progress inside to ``callback(stage, done, total)``; without one, a notebook shows a bar."""
    bar = NotebookBar() if callback is None and _callback.get() is None and in_notebook() else None
    token = _callback.set(callback or bar)
    try:
        yield
    finally:
        _callback.reset(token)
        if bar is not None:
            bar.clear()


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


def in_notebook() -> bool:
    """Whether this process serves a notebook, which shows HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class NotebookBar:
    """A bar below the cell that runs: it appears when a stage is slow, and is gone with the answer."""

    def __init__(self, *, delay: float = 1.0, interval: float = 0.2, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._interval = clock, interval
        self._next = clock() + delay
        self._handle: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is, unless it was shown just now."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._interval
        self._show(f"<progress value='{done}' max='{total}'></progress> {escape(stage)} {done} of {total}")

    def clear(self) -> None:
        """Take the bar away."""
        if self._handle is not None:
            self._show("")

    def _show(self, html: str) -> None:
        display: Any = import_module("IPython.display")
        if self._handle is None:
            self._handle = display.display(display.HTML(html), display_id=True)
        else:
            self._handle.update(display.HTML(html))
