"""Threads: the one place that says how many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Use ``count`` threads for linear algebra inside; None changes nothing."""
    if count is None:
        yield
        return
    with _controller().limit(limits=count):
        yield
