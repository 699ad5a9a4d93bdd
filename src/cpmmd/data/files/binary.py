"""Parquet, Arrow and numpy files.

A Parquet or Arrow file is read by another process first: readers trust the sizes that a file states. A damaged one may state
2 EB, and a reader that cannot have them does not raise: it aborts the process. The other process is started once, imports while
this one does, and serves every file that follows.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.data.files import options
from cpmmd.data.files.sample import FileSample
from cpmmd.data.files.source import FileLimit, Source, column, first_line, polars, reading, refusal
from cpmmd.data.numbers import Values
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from polars import DataFrame

PARQUET, ARROW, STREAM = "parquet", "arrow", "stream"
ARROW_FILE, NUMPY, ZIP = b"ARROW1", b"\x93NUMPY", b"PK"
READY = b"ready\n"
SUFFIXES = (*options.SUFFIXES["parquet"], *options.SUFFIXES["arrow"])
LARGE = 100_000_000  # bytes of a file after which the process ends, so that it keeps none of them
SERVE = f"from {__name__} import serve; serve()"


def expect(names: Iterable[str]) -> None:
    """Start the process now where it will be needed: it imports while the caller imports other things."""
    if any(name.lower().endswith(SUFFIXES) for name in names):
        with _LOCK:
            _reader()


def _try_to_read(source: Source, kind: str, what: str, most: int) -> None:
    """Refuse a file that cannot be read; one of more than ``most`` numbers is left to the caller, unread."""
    with _LOCK:
        reader = _reader()
        if reader is None:
            return
        polars()  # imported here while it is imported there
        fit = False
        try:
            fault = reader.ask(source, kind, most)
            fit = reader.alive and source.size <= LARGE
        finally:  # also when interrupted: a late answer must not be taken for that of the next file
            if not fit:
                _close()
    if fault is not None:
        raise refusal(source.label, what, fault)


class _Reader:
    """The process that reads first."""

    def __init__(self) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE],  # -P: nothing is imported from the folder that data lie in
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths, "RUST_BACKTRACE": "0"},
        )
        self._ready = False
        self.owner = os.getpid()

    def ask(self, source: Source, kind: str, most: int) -> str | None:
        """Return what is wrong with a file, None where nothing is, or where there is nobody to ask."""
        if not self._ready:
            self._ready = self._line() == READY
        if not self._ready:
            return None
        content = source.content or b""
        path = None if source.path is None else str(source.path.absolute())
        about = json.dumps({"kind": kind, "path": path, "size": len(content), "most": most}).encode()
        assert self._process.stdin is not None
        with suppress(OSError):  # gone: its answer will be missing, too
            self._process.stdin.write(about + b"\n" + content)
            self._process.stdin.flush()
        answer = self._line()
        if answer:
            fault: str | None = json.loads(answer)
            return fault
        return f"its sizes or contents are damaged so that they end a reader, with code {self._process.wait()}"

    @property
    def alive(self) -> bool:
        """Whether it can be asked again."""
        return self._process.poll() is None

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


_LOCK = threading.Lock()
_KEPT: list[_Reader] = []


def _reader() -> _Reader | None:
    """Return the process, started where there is none; None where processes cannot be started."""
    if _KEPT and _KEPT[0].owner != os.getpid():  # a fork: the process is its parent's
        _KEPT.clear()
    if _KEPT and not _KEPT[0].alive:  # ended between two files, by whatever it was
        _close()
    if not _KEPT and sys.executable:
        with suppress(OSError):
            _KEPT.append(_Reader())
    return _KEPT[0] if _KEPT else None


@atexit.register
def _close() -> None:
    while _KEPT and _KEPT[0].owner == os.getpid():
        _KEPT.pop().close()


def serve() -> None:
    """Read what standard input names, file after file, and answer with what is wrong with each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is interrupted, too, and ends this process
    polars()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # only answers go to the other side
    answers.write(READY)
    while line := sys.stdin.buffer.readline():
        about = json.loads(line)
        path = about["path"]
        source = Source("", Path(path)) if path is not None else Source("", content=sys.stdin.buffer.read(about["size"]))
        try:
            _read(source, about["kind"], about["most"])
            fault = None
        except BaseException as error:  # a panic of polars is not an Exception
            fault = first_line(error)
        answers.write(json.dumps(fault).encode() + b"\n")


def _count_numbers(source: Source, kind: str) -> int:
    """Return how many values a file says it holds; 0 where that takes reading it."""
    pl = polars()
    scans = {PARQUET: pl.scan_parquet, ARROW: pl.scan_ipc}
    if kind not in scans or source.path is None:
        return 0
    lazy = scans[kind](source.native)
    return int(lazy.select(pl.len()).collect().item()) * len(lazy.collect_schema())


def _load(source: Source, kind: str) -> DataFrame:
    pl = polars()
    if kind == STREAM:
        with source.open() as stream:
            frame: DataFrame = pl.read_ipc_stream(stream)
    else:
        frame = (pl.read_parquet if kind == PARQUET else pl.read_ipc)(source.native)
    return frame


def _read(source: Source, kind: str, most: int) -> None:
    """Read a file as the caller will, and look at every value once."""
    pl = polars()
    if _count_numbers(source, kind) > most:
        return
    frame = _load(source, kind)
    for series in (column(frame, name) for name in frame.columns):
        if int(series.is_null().sum()) != series.null_count():
            raise ValueError("it miscounts its missing values")
        if series.dtype in (pl.String, pl.Categorical, pl.Enum):
            series.cast(pl.String).str.len_bytes().sum()
        elif not series.dtype.is_nested():  # lists and the like are refused later, by name
            series.hash()


def read_frame(source: Source, limit: FileLimit, kind: str) -> FileSample:
    """Read a Parquet file, or an Arrow (Feather, IPC) file or stream."""
    what = "a Parquet file" if kind == PARQUET else "an Arrow file"
    if kind == ARROW and not source.head().startswith(ARROW_FILE):
        kind = STREAM
    limit.check(source.size, source.label)
    _try_to_read(source, kind, what, limit.most_numbers)
    with reading(source.label, what):
        limit.check_numbers(_count_numbers(source, kind), source.label)
        return FileSample(_load(source, kind), source.label)


def read_npy(source: Source, limit: FileLimit) -> FileSample:
    """Read a numpy array, mapped from the file rather than copied."""
    with _numpy(source):
        if source.path is not None:
            array = np.load(source.path, mmap_mode="r", allow_pickle=False)
        else:
            array = np.load(source.open(), allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise InputError(f"{source.label} is an .npz archive, not a single array. Name it .npz.")
    return _array_sample(array, source.label, limit)


def read_npz(source: Source, limit: FileLimit) -> FileSample:
    """Read one array of a numpy archive."""
    with _numpy(source), source.open() as file, np.load(file, allow_pickle=False) as archive:
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{source.label} is not an .npz archive. If it is a single array, name it .npy.")
        arrays = _arrays(archive)
        name = source.choose(list(arrays), "array", "arrays")
        limit.check(arrays[name], source.label)
        array = archive[name]
    return _array_sample(array, f"{source.label}:{name}", limit)


@contextmanager
def _numpy(source: Source) -> Iterator[None]:
    """Turn whatever numpy raises into a sentence: damaged headers raise anything, from the tokenizer's errors to zlib's."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        pickled = "pickle" in str(error) or "Python objects" in str(error)
        if pickled and not source.head().startswith((NUMPY, ZIP)):  # numpy takes whatever it does not know for a pickle
            wrong = "cannot be read as a numpy file: it does not begin as one. Check its name, or save it again."
        elif pickled:
            wrong = (
                "holds Python objects, which are never loaded from a file: that could run code. Save numbers as a plain array, "
                "or a table as Parquet."
            )
        else:
            wrong = f"cannot be read as a numpy file ({first_line(error)}). Save or copy it again."
        raise InputError(f"{source.label} {wrong}") from error


def _arrays(archive: np.lib.npyio.NpzFile) -> dict[str, int]:
    """Return the members that are arrays, with their bytes; anything else may lie beside them, texts and folders included."""
    found, stored = {}, archive.zip
    assert stored is not None
    for name in dict.fromkeys(archive.files):
        inside = name if name in stored.namelist() else f"{name}.npy"
        with stored.open(inside) as member:
            if member.read(len(NUMPY)) == NUMPY:
                found[name] = stored.getinfo(inside).file_size
    return found


def _array_sample(array: Values, label: str, limit: FileLimit) -> FileSample:
    limit.check_numbers(array.size, label)
    if array.ndim == 0:
        raise InputError(f"A sample must be an array of rows. {label} holds a single value.")
    if array.dtype.names is not None:  # records: one column for each field
        with reading(label, "a table"):
            return FileSample(polars().DataFrame({name: np.ascontiguousarray(array[name]) for name in array.dtype.names}), label)
    return FileSample(array, label)
