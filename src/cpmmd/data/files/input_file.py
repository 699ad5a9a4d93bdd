"""Where bytes come from (a file on disk, or a pipe), how much memory they may take, how they are unpacked; the door to polars."""

from __future__ import annotations

import glob
import gzip
import importlib
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

from cpmmd.core import validation
from cpmmd.core.installation import missing_extra
from cpmmd.core.text import bytes_in_words
from cpmmd.errors import CpmmdError, InputError, ParameterReference, name_some, unknown_name

if TYPE_CHECKING:
    from polars import DataFrame, Series

HEAD = 1 << 16  # enough to tell a format and to estimate how many values a text holds
CHUNK = 1 << 20
PIECE = 1 << 12  # of zstandard: no four bytes make more than 128 kB, so a piece unpacks to 128 MB at most
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PACKED = (".gz", ".zst", ".zstd")
# A number can live three times at once: in the column as read, in the rows as prepared, in a copy in work.
COPIES = 3
BYTES_A_NUMBER = 8
BYTES_A_COLUMN = 4_000  # of any column, however short: its buffers, its name, what a reader keeps of it
# 4 GB are 1.7e8 numbers; above that a permutation test on all pairs of rows takes days.
MOST_BY_DEFAULT = 4_000_000_000
SHARE_OF_AVAILABLE = 0.5
TOO_LARGE = (
    "{file} would take about {needed} of memory, and the limit for a file is {limit}. Draw some rows at random first (a few "
    "thousand of each sample are plenty), keep fewer columns in the file, or raise the limit with {setting}."
)
TOO_LONG = (
    "{file} takes more memory than the limit for a file, {limit}. Draw some rows at random first, or raise the limit with "
    "{setting}."
)
UNREADABLE = "{file} cannot be read as {what} ({reason}). Write or copy it again, or check {setting}."


def package(name: str, feature: str, extra: str) -> ModuleType:
    """Return a package that comes with an extra, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise missing_extra(feature, name, extra) from error


def polars() -> ModuleType:
    """Return the polars module, imported when a file is read."""
    return package("polars", "Reading files", "cli")


def column(frame: DataFrame, name: str) -> Series:
    """Return a column to look at, without its name: in most of what polars does with a column called ^a$, that is a pattern."""
    return frame[name].alias("")


@contextmanager
def reading(label: str, what: str) -> Iterator[None]:
    """Turn any error of a reader into a sentence about the file."""
    try:
        yield
    except (CpmmdError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise InputError(f"{label} does not fit into memory. Draw some rows at random first.") from error
    except BaseException as error:  # a panic of polars is not an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise refusal(label, what, first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def reason(error: Exception) -> str:
    """Return the message of a system error, in lower case."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def refusal(label: str, what: str, why: str) -> InputError:
    """Return the error for a file that is not of its format."""
    return InputError(UNREADABLE, file=label, what=what, reason=why, setting=ParameterReference("format"))


@dataclass(frozen=True)
class FileLimit:
    """The most that one file may take, in bytes."""

    bytes: int

    @property
    def most_numbers(self) -> int:
        """How many numbers a file may hold."""
        return self.bytes // (BYTES_A_NUMBER * COPIES)

    def check(self, needed: float, label: str) -> None:
        """Refuse a file that takes more."""
        if needed > self.bytes:
            words, limit = bytes_in_words(needed), bytes_in_words(self.bytes)
            raise InputError(TOO_LARGE, file=label, needed=words, limit=limit, setting=ParameterReference("file_limit"))

    def check_numbers(self, numbers: float, label: str, *, besides: int = 0) -> None:
        """Refuse a file of so many numbers, with so many bytes besides."""
        self.check(numbers * BYTES_A_NUMBER * COPIES + besides, label)

    def exceeded(self, label: str) -> InputError:
        """Return the error for a file that takes more, where nobody knows how much more."""
        return InputError(TOO_LONG, file=label, limit=bytes_in_words(self.bytes), setting=ParameterReference("file_limit"))


def file_limit(text: str | None = None) -> FileLimit:
    """Return the limit from text such as ``500M`` or ``8G``; None is half of what is available, at most 4 GB."""
    if text is not None:
        return FileLimit(validation.byte_count("file_limit", text))
    try:  # what a new process may use without swapping
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), flags=re.MULTILINE)
    except OSError:
        found = None
    return FileLimit(min(MOST_BY_DEFAULT, int(SHARE_OF_AVAILABLE * int(found[1]) * 1024) if found else MOST_BY_DEFAULT))


@dataclass(frozen=True)
class InputFile:
    """A file that exists, or bytes in memory; ``member`` is the array or sheet asked for in it."""

    label: str
    path: Path | None = None
    content: bytes | None = None
    member: str | None = None

    def open(self) -> BinaryIO:
        """Return the bytes from their beginning."""
        return self.path.open("rb") if self.path is not None else io.BytesIO(self.content or b"")

    def read(self, size: int = -1) -> bytes:
        """Return all bytes, or the first ones."""
        with self.open() as stream:
            return stream.read(size)

    def head(self) -> bytes:
        """Return the first bytes, enough to recognise a format."""
        return self.read(HEAD)

    def choose(self, names: list[str], what: str, nothing: str) -> str:
        """Return the member that was asked for, or the only one."""
        if not names:
            raise InputError(f"{self.label} holds no {nothing}. Check how it was written.")
        if self.member is not None and self.member not in names:
            raise unknown_name(f"{what} of {self.label}:", self.member, names)
        if self.member is None and len(names) > 1:
            which = f"Name the one that holds the sample, as in {self.label}:{names[0]}"
            raise InputError(f"{self.label} holds {len(names)} {what}s: {name_some(names)}. {which}")
        return self.member or names[0]

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.path.stat().st_size if self.path is not None else len(self.content or b"")

    @property
    def native(self) -> str | io.BytesIO:
        """What polars takes: the path, so that it can be mapped, escaped since polars sees patterns in it; or the bytes."""
        return glob.escape(str(self.path)) if self.path is not None else io.BytesIO(self.content or b"")


def is_packed(head: bytes) -> bool:
    """Whether bytes begin as compressed ones do."""
    return head.startswith((GZIP, ZSTANDARD))


def unpack(file: InputFile, limit: FileLimit) -> bytes:
    """Return what a file holds that gzip or zstandard compressed."""
    try:
        with file.open() as stream:
            return drain(_unpacked(stream, file.head()), f"{file.label}, unpacked,", limit)
    except (EOFError, zlib.error, OSError) as error:
        what = "gzip" if file.head().startswith(GZIP) else "zstandard"
        raise InputError(f"{file.label} is not a complete {what} file ({reason(error)}). Copy or download it again.") from error


def unpacked_head(file: InputFile) -> bytes:
    """Return the beginning of what a compressed file holds; empty where it is damaged."""
    try:
        with file.open() as stream:
            return next(_unpacked(stream, file.head()), b"")[:HEAD]
    except (EOFError, zlib.error, OSError):
        return b""


def drain(pieces: Iterator[bytes], label: str, limit: FileLimit) -> bytes:
    """Return all pieces joined, refused as soon as they exceed the limit."""
    kept, size = list[bytes](), 0
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        if size > limit.bytes:
            raise limit.exceeded(label)
    return b"".join(kept)


def in_chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield all bytes, a chunk at a time."""
    while chunk := read(CHUNK):
        yield chunk


def _unpacked(stream: BinaryIO, head: bytes) -> Iterator[bytes]:
    """Yield the contents. A file that ends within a zstandard frame is damaged, which a plain stream would not report."""
    if head.startswith(GZIP):
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield from in_chunks(unpacked.read)
        return
    zstandard = package("zstandard", "Reading .zst files", "files")
    frame, held = None, b""
    try:
        while held := held or stream.read(PIECE):
            if frame is None:
                frame = zstandard.ZstdDecompressor().decompressobj()
            if piece := frame.decompress(held):
                yield piece
            held = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if frame is not None:
        raise EOFError("it ends within a frame")
