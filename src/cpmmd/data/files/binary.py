"""Parquet, Arrow and numpy files.

A Parquet or Arrow file is read by another process first: readers trust the sizes that a file states, and where these are damaged
or beyond memory they abort the process instead of raising. The other process has little more memory than the limit for files. It
is started once, imports while this one does, and serves all files that follow.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.data.files import options
from cpmmd.data.files.input_file import BYTES_A_COLUMN, FileLimit, InputFile, column, first_line, polars, reading, refusal
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample, RawFrame, suspect
from cpmmd.data.numbers import Values
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from polars import DataFrame, Series

PARQUET, ARROW, STREAM = "parquet", "arrow", "stream"
ARROW_FILE, NUMPY, ZIP = b"ARROW1", b"\x93NUMPY", b"PK"
READY = b"ready\n"
SUFFIXES = (*options.SUFFIXES["parquet"], *options.SUFFIXES["arrow"])
LARGE = 100_000_000  # bytes of a file after which the process ends, so that it keeps none of them
SLACK = 100_000_000  # bytes beside the limit that reading may take: threads and their pools
TOO_MUCH = "too much"  # the answer for a file that takes more than the limit
MOST_ASKED = 2**48  # bytes: a file that asks for more is damaged
NO_ROOM = re.compile(rb"memory allocation of (\d+)")  # what Rust says before it ends a process for want of memory
NESTED = (
    "Columns must hold numbers, booleans, dates or text. Column {short} of {file} has type {dtype}; leave it out with {drop}, or "
    "write its parts as columns of their own."
)
SERVE = f"from {__name__} import serve; serve()"


def expect(names: Iterable[str]) -> None:
    """Start the process now where it will be needed: it imports while the caller imports other things."""
    if any(name.lower().endswith(SUFFIXES) for name in names):
        with _LOCK:
            _reader()


def _try_to_read(file: InputFile, kind: str, what: str, limit: FileLimit) -> None:
    """Refuse a file that cannot be read within the limit."""
    with _LOCK:
        reader = _reader()
        if reader is None:
            return
        polars()  # imported here while it is imported there
        fit = False
        try:
            fault = reader.ask(file, kind, limit)
            fit = reader.alive and file.size <= LARGE
        finally:  # also when interrupted: a late answer must not be taken for that of the next file
            if not fit:
                _close()
    if fault == TOO_MUCH:
        raise limit.exceeded(file.label)
    if fault is not None:
        raise refusal(file.label, what, fault)


class _Reader:
    """The process that reads files first."""

    def __init__(self) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE],  # -P: nothing is imported from the folder that data lie in
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": paths, "RUST_BACKTRACE": "0"},
        )
        self._ready = False
        self.owner = os.getpid()

    def ask(self, file: InputFile, kind: str, limit: FileLimit) -> str | None:
        """Return what is wrong with a file; None where nothing is, or where there is no process."""
        if not self._ready:
            self._ready = self._line() == READY
        if not self._ready:
            return None
        content = file.content or b""
        path = None if file.path is None else str(file.path.absolute())
        about = json.dumps({"kind": kind, "path": path, "size": len(content), "limit": limit.bytes}).encode()
        assert self._process.stdin is not None
        with suppress(OSError):  # ended: its answer will be missing, too
            self._process.stdin.write(about + b"\n" + content)
            self._process.stdin.flush()
        answer = self._line()
        if answer:
            fault: str | None = json.loads(answer)
            return fault
        code = self._process.wait()
        self._errors.seek(0)
        if (found := NO_ROOM.search(self._errors.read())) and int(found[1]) < MOST_ASKED:
            return TOO_MUCH
        return f"its sizes or contents are damaged: the process that read it ended with code {code}"

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
        self._errors.close()


_LOCK = threading.Lock()
_KEPT: list[_Reader] = []


def _reader() -> _Reader | None:
    """Return the process, started if necessary; None where processes cannot be started."""
    if _KEPT and _KEPT[0].owner != os.getpid():  # a fork: the process is its parent's
        _KEPT.clear()
    if _KEPT and not _KEPT[0].alive:  # ended between two files
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
    """Read the files that standard input names, and answer with what is wrong with each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks is interrupted, too, and ends this one
    polars().DataFrame({"a": [1.0, 2.0]}).lazy().select("a").collect()  # starts its threads, whose stacks count as memory
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # only answers go to the other side
    used = _memory_used()
    answers.write(READY)
    while line := sys.stdin.buffer.readline():
        about = json.loads(line)
        path = about["path"]
        file = InputFile("", Path(path)) if path is not None else InputFile("", content=sys.stdin.buffer.read(about["size"]))
        try:
            _limit_memory(used + about["limit"] + SLACK)
            fault = _read(file, about["kind"], FileLimit(about["limit"]))
        except BaseException as error:  # a panic of polars is not an Exception
            fault = first_line(error)
        answers.write(json.dumps(fault).encode() + b"\n")


def _memory_used() -> int:
    """Return the bytes that this process has reserved; 0 where the system does not report them."""
    try:
        found = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), flags=re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else 0


def _limit_memory(most: int) -> None:
    """End this process, rather than the machine, where a file makes a reader take more memory."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if most > SLACK and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _check_size(file: InputFile, kind: str, limit: FileLimit) -> None:
    """Refuse a file by the number of values that it states, where it states any."""
    pl = polars()
    scans = {PARQUET: pl.scan_parquet, ARROW: pl.scan_ipc}
    if kind in scans and file.path is not None:
        lazy = scans[kind](file.native)
        width = len(lazy.collect_schema())
        limit.check_numbers(int(lazy.select(pl.len()).collect().item()) * width, file.label, besides=width * BYTES_A_COLUMN)


def _load(file: InputFile, kind: str) -> tuple[DataFrame, dict[str, str]]:
    """Return a frame, and the types of columns that hold lists or bytes: these are not read, and missing in the frame."""
    pl = polars()
    with file.open() as stream:
        if kind == STREAM:
            lazy = pl.read_ipc_stream(stream).lazy()
        else:
            lazy = (pl.scan_parquet if kind == PARQUET else pl.scan_ipc)(file.native)
        schema = dict(lazy.collect_schema())
        nested = {name: str(dtype.base_type()) for name, dtype in schema.items() if dtype.is_nested() or dtype == pl.Binary}
        if len(nested) == len(schema):
            raise ValueError("it holds no column of numbers, booleans, dates or text")
        if nested:
            lazy = lazy.select(pl.nth([i for i, name in enumerate(schema) if name not in nested]))
        frame: DataFrame = lazy.collect()
    for i, name in enumerate(schema):
        if name in nested:
            frame.insert_column(i, pl.Series(name, [None]).new_from_index(0, len(frame)))
    return frame, nested


def _text_bytes(series: Series) -> int:
    """Return the bytes of a text column's values, each counted as often as it occurs."""
    pl = polars()
    if series.dtype == pl.String:
        return int(series.str.len_bytes().cast(pl.UInt64).sum())
    counts = series.drop_nulls().value_counts(name="count")  # of the different texts: each is in the file once
    lengths = counts.to_series(0).cast(pl.String).str.len_bytes().cast(pl.UInt64)
    return int((lengths * counts["count"]).sum())


def _read(file: InputFile, kind: str, limit: FileLimit) -> str | None:
    """Read a file as the caller will, look at every value once, and return what is wrong with it."""
    pl = polars()
    try:
        _check_size(file, kind, limit)
    except InputError:  # the caller refuses it in the same way
        return None
    frame, _ = _load(file, kind)
    texts = 0
    for series in (column(frame, name) for name in frame.columns):
        if int(series.is_null().sum()) != series.null_count():
            raise ValueError("its count of missing values is wrong")
        if series.dtype in (pl.String, pl.Categorical, pl.Enum):
            texts += _text_bytes(series)
        else:
            series.hash()
        if texts > limit.bytes:
            return TOO_MUCH
    return None


def read_frame(file: InputFile, options: ReadOptions, kind: str) -> RawFrame:
    """Read a Parquet file, or an Arrow (Feather, IPC) file or stream."""
    what = "a Parquet file" if kind == PARQUET else "an Arrow file"
    if kind == ARROW and not file.head().startswith(ARROW_FILE):
        kind = STREAM
    limit = options.limit
    limit.check(file.size, file.label)
    _try_to_read(file, kind, what, limit)
    with reading(file.label, what):
        _check_size(file, kind, limit)
        frame, nested = _load(file, kind)
        wrong = [suspect(NESTED, name, file.label, dtype=dtype) for name, dtype in nested.items()]
        return RawFrame(frame, file.label, typed=True, suspects=tuple(wrong))


def read_npy(file: InputFile, limit: FileLimit) -> FileSample:
    """Read a numpy array, mapped from the file rather than copied."""
    with _numpy(file):
        if file.path is not None:
            array = np.load(file.path, mmap_mode="r", allow_pickle=False)
        else:
            array = np.load(file.open(), allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise InputError(f"{file.label} is an .npz archive, not a single array. Name it .npz.")
    return _array_sample(array, file.label, limit)


def read_npz(file: InputFile, limit: FileLimit) -> FileSample:
    """Read one array of a numpy archive."""
    with _numpy(file), file.open() as stream, np.load(stream, allow_pickle=False) as archive:
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{file.label} is not an .npz archive. If it is a single array, name it .npy.")
        arrays = _arrays(archive)
        name = file.choose(list(arrays), "array", "arrays")
        limit.check(arrays[name], file.label)
        array = archive[name]
    return _array_sample(array, f"{file.label}:{name}", limit)


@contextmanager
def _numpy(file: InputFile) -> Iterator[None]:
    """Turn any error of numpy into a sentence: damaged headers raise anything, from the tokenizer's errors to zlib's."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        pickled = "pickle" in str(error) or "Python objects" in str(error)
        if pickled and not file.head().startswith((NUMPY, ZIP)):  # numpy takes unknown files for pickles
            wrong = "cannot be read as a numpy file: its first bytes are not those of one. Check its name, or save it again."
        elif pickled:
            wrong = (
                "holds Python objects, which are never loaded, because that could run code. Save numbers as a plain array, "
                "or a table as Parquet."
            )
        else:
            wrong = f"cannot be read as a numpy file ({first_line(error)}). Save or copy it again."
        raise InputError(f"{file.label} {wrong}") from error


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
