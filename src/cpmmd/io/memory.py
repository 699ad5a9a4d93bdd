"""Will it fit? What a file takes in memory, asked before it is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cpmmd import validation
from cpmmd.errors import InputError

# A number can live three times at once: in the column as read, in the rows as prepared, in a copy in work.
COPIES = 3
BYTES_A_NUMBER = 8
# Above this a permutation test on all pairs of rows takes days anyway: 4 GB are 1.7e8 numbers.
MOST_BY_DEFAULT = 4_000_000_000
SHARE_OF_AVAILABLE = 0.5


@dataclass(frozen=True)
class MemoryLimit:
    """The most that one file may take, in bytes."""

    bytes: int

    def check(self, needed: float, label: str) -> None:
        """Refuse a file that takes more."""
        if needed > self.bytes:
            raise InputError(
                f"{label} would take about {in_words(needed)} of memory, and the limit is {in_words(self.bytes)}. Draw some "
                "rows at random first (a few thousand of each sample are plenty), keep fewer columns in the file, or raise the "
                "limit with --memory-limit."
            )

    def check_numbers(self, numbers: float, label: str, *, besides: int = 0) -> None:
        """Refuse a file of so many numbers, with so many bytes besides."""
        self.check(numbers * BYTES_A_NUMBER * COPIES + besides, label)


def memory_limit(text: str | None = None) -> MemoryLimit:
    """Give the limit from text such as ``500M`` or ``8G``; None is half of what is available, at most 4 GB.

    Examples
    --------
    >>> memory_limit("1.5G").bytes
    1500000000
    """
    if text is None:
        return MemoryLimit(min(MOST_BY_DEFAULT, int(SHARE_OF_AVAILABLE * available())))
    return MemoryLimit(validation.byte_count("memory_limit", text))


def available() -> int:
    """Give the bytes that a new process may use without swapping; a lot where the system does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), flags=re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else 2 * MOST_BY_DEFAULT


def text_numbers(size: int, sample: bytes) -> float:
    """Estimate how many values a text file of ``size`` bytes holds, from its beginning."""
    marks = sum(sample.count(mark) for mark in (b",", b"\t", b";", b"\n"))
    return size * max(marks, 1) / max(len(sample), 1)


def in_words(count: float) -> str:
    """Give a number of bytes as people say it."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"
