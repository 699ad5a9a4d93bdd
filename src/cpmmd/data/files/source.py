"""Where bytes come from: a file on disk, or what a pipe held."""

from __future__ import annotations

import glob
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cpmmd.core import validation
from cpmmd.core.text import bytes_in_words
from cpmmd.errors import InputError, Setting

# Will it fit? What a file takes in memory, asked before it is read.


# A number can live three times at once: in the column as read, in the rows as prepared, in a copy in work.
COPIES = 3
BYTES_A_NUMBER = 8
# Above this a permutation test on all pairs of rows takes days anyway: 4 GB are 1.7e8 numbers.
MOST_BY_DEFAULT = 4_000_000_000
SHARE_OF_AVAILABLE = 0.5


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
            raise InputError(
                "{label} would take about {needed} of memory, and the limit for a file is {limit}. Draw some rows at random "
                "first (a few thousand of each sample are plenty), keep fewer columns in the file, or raise the limit "
                "with {setting}.",
                file=label,
                label=label,
                needed=bytes_in_words(needed),
                limit=bytes_in_words(self.bytes),
                setting=Setting("file_limit"),
            )

    def check_numbers(self, numbers: float, label: str, *, besides: int = 0) -> None:
        """Refuse a file of so many numbers, with so many bytes besides."""
        self.check(numbers * BYTES_A_NUMBER * COPIES + besides, label)


def file_limit(text: str | None = None) -> FileLimit:
    """Return the limit from text such as ``500M`` or ``8G``; None is half of what is available, at most 4 GB."""
    if text is None:
        return FileLimit(min(MOST_BY_DEFAULT, int(SHARE_OF_AVAILABLE * available())))
    return FileLimit(validation.byte_count("file_limit", text))


def available() -> int:
    """Return the bytes that a new process may use without swapping; a lot where the system does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), flags=re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else 2 * MOST_BY_DEFAULT


def text_numbers(size: int, sample: bytes) -> float:
    """Estimate how many values a text file of ``size`` bytes holds, from its beginning."""
    marks = sum(sample.count(mark) for mark in (b",", b"\t", b";", b"\n"))
    return size * max(marks, 1) / max(len(sample), 1)


HEAD = 1 << 16  # enough to tell a format and to estimate how many values a text holds


@dataclass(frozen=True)
class Source:
    """A file that exists, or bytes in memory; ``member`` is the array asked for in an archive."""

    label: str
    path: Path | None = None
    content: bytes | None = None
    member: str | None = None

    def open(self) -> BinaryIO:
        """Return the bytes from their beginning."""
        if self.path is not None:
            return self.path.open("rb")
        return io.BytesIO(self.content or b"")

    def head(self) -> bytes:
        """Return the first bytes."""
        with self.open() as file:
            return file.read(HEAD)

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.path.stat().st_size if self.path is not None else len(self.content or b"")

    @property
    def native(self) -> str | io.BytesIO:
        """What polars takes: the path, so that it can be mapped, escaped since polars sees patterns in it; or the bytes."""
        return glob.escape(str(self.path)) if self.path is not None else io.BytesIO(self.content or b"")
