"""Parquet, Arrow and numpy files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.data.files.frames import polars, reading
from cpmmd.data.files.limit import FileLimit
from cpmmd.data.files.sample import FileSample
from cpmmd.data.files.source import Source
from cpmmd.data.files.trial import ARROW, PARQUET, STREAM, count_numbers, load, try_to_read
from cpmmd.errors import InputError, name_some, unknown_name

ARROW_FILE, NUMPY, ZIP = b"ARROW1", b"\x93NUMPY", b"PK"


def read_parquet(source: Source, limit: FileLimit) -> FileSample:
    """Read a Parquet file."""
    return _frame(source, limit, PARQUET, "a Parquet file")


def read_arrow(source: Source, limit: FileLimit) -> FileSample:
    """Read an Arrow (Feather, IPC) file or stream."""
    return _frame(source, limit, ARROW if source.head().startswith(ARROW_FILE) else STREAM, "an Arrow file")


def _frame(source: Source, limit: FileLimit, kind: str, what: str) -> FileSample:
    limit.check(source.size, source.label)
    try_to_read(source, kind, what, limit.most_numbers)
    with reading(source.label, what):
        limit.check_numbers(count_numbers(source, kind), source.label)
        frame = load(source, kind)
    return FileSample(frame, source.label)


def read_npy(source: Source, limit: FileLimit) -> FileSample:
    """Read a numpy array, mapped from the file rather than copied."""
    try:
        if source.path is not None:
            array = np.load(source.path, mmap_mode="r", allow_pickle=False)
        else:
            array = np.load(source.open(), allow_pickle=False)
    except Exception as error:  # damaged headers raise anything, from the tokenizer's errors to zlib's
        raise _not_numpy(source, error) from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{source.label} is an .npz archive, not a single array. Name it .npz.")
    return _array_sample(array, source.label, limit)


def read_npz(source: Source, limit: FileLimit) -> FileSample:
    """Read one array of a numpy archive."""
    try:
        with source.open() as file, np.load(file, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InputError(f"{source.label} is not an .npz archive. If it is a single array, name it .npy.")
            name = _member(_arrays(archive), source)
            limit.check(_unpacked_size(archive, name), source.label)
            array = archive[name]
    except InputError:
        raise
    except Exception as error:
        raise _not_numpy(source, error) from error
    return _array_sample(array, f"{source.label}:{name}", limit)


def _arrays(archive: Any) -> list[str]:
    """Return the names of the members that are arrays; anything else may lie beside them, texts and folders included."""
    found = []
    for name in dict.fromkeys(archive.files):
        with archive.zip.open(_stored(archive, name)) as member:
            if member.read(len(NUMPY)) == NUMPY:
                found.append(name)
    return found


def _stored(archive: Any, name: str) -> str:
    return name if name in archive.zip.namelist() else f"{name}.npy"


def _unpacked_size(archive: Any, name: str) -> int:
    return int(archive.zip.getinfo(_stored(archive, name)).file_size)


def _member(names: list[str], source: Source) -> str:
    if not names:
        raise InputError(f"{source.label} holds no arrays. Check how it was written.")
    if source.member is not None:
        if source.member not in names:
            raise unknown_name(f"array of {source.label}:", source.member, names)
        return source.member
    if len(names) > 1:
        raise InputError(
            f"{source.label} holds {len(names)} arrays: {name_some(names)}. Say which one holds the sample, as in "
            f"{source.label}:{names[0]}"
        )
    return names[0]


def _not_numpy(source: Source, error: Exception) -> InputError:
    pickled = "pickle" in str(error) or "Python objects" in str(error)
    if pickled and not source.head().startswith((NUMPY, ZIP)):  # numpy takes whatever it does not know for a pickle
        return InputError(
            f"{source.label} cannot be read as a numpy file: it does not begin as one. Check its name, or save it again."
        )
    if pickled:
        return InputError(
            f"{source.label} holds Python objects, which are never loaded from a file: that could run code. Save numbers as a "
            "plain array, or a table as Parquet."
        )
    return InputError(f"{source.label} cannot be read as a numpy file ({_first_line(error)}). Save or copy it again.")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _array_sample(array: npt.NDArray[Any], label: str, limit: FileLimit) -> FileSample:
    limit.check_numbers(array.size, label)
    if array.ndim == 0:
        raise InputError(f"A sample must be an array of rows. {label} holds a single value.")
    if array.dtype.names is not None:  # records: one column for each field
        with reading(label, "a table"):
            return FileSample(polars().DataFrame({name: np.ascontiguousarray(array[name]) for name in array.dtype.names}), label)
    return FileSample(array, label)
