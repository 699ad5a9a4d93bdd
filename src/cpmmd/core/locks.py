"""One process at a time: a lock that the system takes back from a process that dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpmmd.errors import InputError


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file, waiting for whoever has it.

    The lock is a file of its own beside it, since the file itself is replaced whole; it stays, empty.
    """
    import fcntl

    target = Path(path).resolve()
    beside = target.with_name(f".{target.name}.lock")
    try:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be locked ({error.strerror}). Its folder must be there and writable.", file=str(path)
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
