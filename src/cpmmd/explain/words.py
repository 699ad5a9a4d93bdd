"""Plain words for what was found; never more than was found."""

from __future__ import annotations

from collections.abc import Sequence

from cpmmd.core.text import harmless

LONGEST = 40  # characters of a name in a sentence
NAMED = 3  # columns in a sentence
SAMPLES = ("the first sample", "the second sample")


def quote_name(name: str, label: str) -> str:
    """Return a name for a sentence: quoted where it is the data's own."""
    short = harmless(label, LONGEST)
    return f"'{short}'" if name == label else short


def join(parts: Sequence[str], last: str = " and ") -> str:
    """Return parts of a sentence with commas between them."""
    return last.join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def in_header(sample: str) -> str:
    """Return a sample's name as it stands above a column.

    Examples
    --------
    >>> in_header("the first sample"), in_header("after.csv")
    ('first sample', 'after.csv')
    """
    return harmless(sample.removeprefix("the "), LONGEST)
