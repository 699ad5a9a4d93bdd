"""Where work runs: threads here, processes here, or whatever back end ``joblib.parallel_config`` names (Dask, Ray, ...).

Three ways in, one seam. :func:`map_threads` is for steps that share memory. :func:`spread` is for pieces of one test: threads
here, unless a joblib back end is chosen. :func:`map_tasks` is for whole tests: processes. What a piece computes never depends on
where it runs, and a piece that runs elsewhere starts nothing of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Lock, Thread
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")
_threads: ContextVar[int | None] = ContextVar("cpmmd_threads", default=None)
_alone: ContextVar[bool] = ContextVar("cpmmd_alone", default=False)  # inside a piece that runs elsewhere


@cache
def _controller(kind: str) -> ThreadpoolController:
    """Return what limits libraries of one kind, and puts back theirs alone: ``blas`` or ``openmp``."""
    return ThreadpoolController().select(user_api=kind)


class _OneBlasThread:
    """One BLAS thread for the whole process, from the first who enters to the last who leaves, on whatever threads they are.

    Set and put back on threads that end at once: threadpoolctl lets no other thread change what a living one has set.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                _briefly(self._set)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _briefly(self._limit.restore_original_limits)

    def _set(self) -> None:
        self._limit = _controller("blas").limit(limits=1)


def _briefly(work: Callable[[], None]) -> None:
    thread = Thread(target=work)
    thread.start()
    thread.join()


_one_blas_thread = _OneBlasThread()


def thread_count() -> int:
    """Return how many threads to use: what :func:`threads` set, else OMP_NUM_THREADS, else the cores of this process."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else available_cores()


def available_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Use ``count`` threads inside, None as many as there were.

    BLAS has one of them, whatever the count: what a product rounds to depends on how many share it. Pieces of the work are what
    runs side by side. Decorates a function as well.
    """
    token = _threads.set(_threads.get() if count is None else count)
    of_openmp = nullcontext() if count is None else _controller("openmp").limit(limits=count)
    try:
        with _one_blas_thread, _controller("blas").limit(limits=1), of_openmp:  # the second for libraries that limit a thread
            yield
    finally:
        _threads.reset(token)


def map_threads(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return ``work`` of every item in order, on several threads where allowed."""
    return list(_on_threads(work, items))


def map_apart(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return ``work`` of every item in order, each with one BLAS thread, however many threads there are: what a factorisation
    rounds to depends on how many share it.
    """
    with _one_blas_thread:
        return list(_on_threads(work, items))


def spread(work: Callable[..., R], items: Iterable[T], *shared: object, most: int | None = None) -> Iterator[R]:
    """Yield ``work(item, *shared)`` in the order of the items, as results come.

    On threads here each piece has one BLAS thread: the pieces themselves keep the cores busy.
    """
    if not elsewhere():
        with _one_blas_thread:
            yield from _on_threads(lambda item: work(item, *shared), list(items), most)
        return
    import joblib

    run = joblib.Parallel(return_as="generator")
    yield from run(joblib.delayed(_run_alone)(work, item, *shared) for item in items)


def map_tasks(work: Callable[[T], R], items: Sequence[T], *, n_jobs: int | None = None) -> Iterator[R]:
    """Yield ``work(item)`` as results come, in any order, each in a process of its own with one thread.

    ``n_jobs`` processes here; None follows ``joblib.parallel_config``, and without one runs the tasks here, one after the other.
    """
    if (n_jobs in (None, 1) and not elsewhere()) or _alone.get():
        yield from map(threads(None)(work), items)
        return
    import joblib

    run = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs")
    yield from run(joblib.delayed(_run_alone)(work, item) for item in items)


def elsewhere() -> bool:
    """Whether a joblib back end was chosen that pieces of work should go to."""
    # Importing joblib takes a tenth of a second, and who has not imported it has chosen nothing.
    if _alone.get() or "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend()
    return type(backend).__name__ != "LokyBackend" or n_jobs not in (None, 1)  # that pair is joblib's own default


def _run_alone(work: Callable[..., R], *arguments: object) -> R:
    token = _alone.set(True)
    try:
        with threads(1):
            return work(*arguments)
    finally:
        _alone.reset(token)


def _on_threads(work: Callable[[T], R], items: Sequence[T], most: int | None = None) -> Iterator[R]:
    workers = min(thread_count(), len(items), most or len(items))
    if workers <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
