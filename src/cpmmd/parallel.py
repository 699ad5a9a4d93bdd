"""Threads: the one place that says how many, and starts them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")
_threads: ContextVar[int | None] = ContextVar("cpmmd_threads", default=None)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def thread_count() -> int:
    """Give how many threads to use: what :func:`threads` set, else OMP_NUM_THREADS, else the cores of this process."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else len(os.sched_getaffinity(0))


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Use ``count`` threads inside; None changes nothing."""
    if count is None:
        yield
        return
    token = _threads.set(count)
    try:
        with _controller().limit(limits=count):
            yield
    finally:
        _threads.reset(token)


def map_threads(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Give ``work`` of every item in order, on several threads where allowed."""
    workers = min(thread_count(), len(items))
    if workers <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return [future.result() for future in [pool.submit(copy_context().run, work, item) for item in items]]
