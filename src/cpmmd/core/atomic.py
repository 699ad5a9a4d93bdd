"""Files that are written whole or not at all: a reader, or a kill at any moment, finds the old file or the new one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cpmmd.errors import InputError, ParameterReference

MARKS = (b"cpmmd-", b"Written by cpmmd")  # in the formats of our files, and at the foot of our pages
LOOKED_AT = 2**16  # bytes at either end of a file
DRAFT = ".cpmmd-", ".tmp"
NO_ROOM = {
    errno.ENOSPC: "Free some space on its disk",
    errno.EDQUOT: "Free some of your disk quota",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f), or write to a disk that takes larger ones",
}


def write_whole(path: str | os.PathLike[str], content: bytes | bytearray) -> None:
    """Write beside the file, through to the disk, then put it in the file's place.

    A symbolic link stays a link, a file keeps its permissions, and a device, a pipe or a folder is refused.
    """
    target = Path(path).resolve()
    try:
        mode = _mode(target)
        _remove_drafts(target.parent)
        with _draft(target.parent) as draft, draft.open("r+b") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(target)
    except OSError as error:
        advice = NO_ROOM.get(error.errno or 0, "Check that its folder exists and is writable")
        raise InputError(f"{str(path)!r} cannot be written ({error.strerror}). {advice}.", file=str(path)) from error


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """Make an empty file, locked until it is in its place: who finds a draft without a lock knows that its writer was killed."""
    while True:
        draft = folder / secrets.token_hex(8).join(DRAFT)
        with draft.open("xb") as lock:
            with contextlib.suppress(OSError):  # file systems without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not draft.exists():  # removed between the two lines above
                continue
            try:
                yield draft
            finally:
                with contextlib.suppress(OSError):
                    draft.unlink(missing_ok=True)
            return


def _remove_drafts(folder: Path) -> None:
    """Remove the drafts of writers that were killed."""
    with contextlib.suppress(OSError):
        for draft in folder.glob("*".join(DRAFT)):
            with contextlib.suppress(OSError), draft.open("rb") as file:  # locked: another process writes it now
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()


def _mode(target: Path) -> int | None:
    """Return the permissions of a file that is there; None where there is none."""
    if not target.exists():
        return None
    found = target.stat().st_mode
    if not stat.S_ISREG(found):
        raise InputError(f"{str(target)!r} is not a file, so it cannot be replaced by one. Name a file.", file=str(target))
    return stat.S_IMODE(found)


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether a file was written by this package, judged by its beginning and its end."""
    with open(path, "rb") as file:
        ends = file.read(LOOKED_AT)
        file.seek(max(0, os.path.getsize(path) - LOOKED_AT))
        ends += file.read()
    return any(mark in ends for mark in MARKS)


def check_target(
    path: str | os.PathLike[str],
    *,
    force: bool,
    inputs: Iterable[str | os.PathLike[str]] = (),
    ours: Callable[[Path], bool] = is_ours,
) -> None:
    """Refuse to replace a file that is used in the same call, a device, and without ``force`` what is not ``ours``."""
    target = Path(path)
    for name in inputs:
        if Path(name).resolve() == target.resolve() or (
            target.exists() and os.path.exists(name) and os.path.samefile(name, target)
        ):
            raise InputError(f"{str(path)!r} is read here and would be overwritten. Name another file.", file=str(path))
    if not target.exists():
        return
    _mode(target.resolve())
    if not force and target.stat().st_size and not ours(target):
        raise InputError(
            "{file!r} exists and {why}. Name another file, or replace it with {setting}.",
            file=str(path),
            why="was not written by cpmmd" if ours is is_ours else "holds something else",
            setting=ParameterReference("force"),
        )


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file, waiting for whoever has it; the system takes it back from a process that dies.

    The lock is a file of its own beside it, since the file itself is replaced whole; it stays, empty.
    """
    from filelock import FileLock

    target = Path(path).resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(poll_interval=0.01)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be locked ({error.strerror}). Check that its folder exists and is writable.", file=str(path)
        ) from error
    try:
        yield
    finally:
        lock.release()
