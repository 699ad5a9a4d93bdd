"""Progress: a callback that long steps report to; silent unless one is set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
    """Tell whoever listens how far a stage is."""
    callback = _callback.get()
    if callback is not None:
        callback(stage, done, total)
