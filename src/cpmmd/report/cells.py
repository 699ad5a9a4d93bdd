"""Values as a reader sees them: a column of numbers has one format, so that its digits line up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cpmmd.core.text import harmless, number_format

NOTHING = "–"
NUMERIC = ("number", "count", "share", "pvalue")  # sorted as numbers
RIGHT = (*NUMERIC, "measure")  # set flush right
FOREIGN = ("text",)  # quoted from the data
SPREAD = 100  # positive numbers more different than this have a format each: the small ones would lose their digits


def column_texts(values: Sequence[Any], kind: str) -> list[str]:
    """Return the texts of one table column.

    Examples
    --------
    >>> column_texts([12.5, -3.25, None], "number")
    ['12.50', '-3.25', '–']
    """
    if kind == "number":
        there = [float(v) for v in values if v]
        together = min(there, default=1.0) < 0 or max(there, default=1.0) < SPREAD * min(there, default=1.0)
        form = number_format([v for v in values if v is not None])
        return [NOTHING if v is None else format(float(v), form if together else number_format([v])) for v in values]
    if kind == "pvalue":
        smallest = min((v for v in values if v), default=1.0)
        decimals = max(3, math.ceil(1 - math.log10(smallest)))
        form = f".{decimals}f" if decimals <= 7 else ".1e"
        return [NOTHING if v is None else format(v, form) for v in values]
    return [cell_text(v, kind) for v in values]


def cell_text(value: Any, kind: str) -> str:
    """Return the text of one value of a kind that needs no look at its neighbours."""
    if value is None:
        return NOTHING
    if kind == "count":
        return count(value)
    if kind == "share":
        return f"{100 * value:.1f}%"
    if kind == "flag" and not isinstance(value, str):
        return "yes" if value else "no"
    if kind == "time":
        return harmless(value).replace("T", " ")[:16]  # to the minute
    return harmless(value)


def number(value: float) -> str:
    """Return a number within a sentence: its significant digits, no zeros behind them."""
    text = format(float(value), number_format([value]))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def count(value: int) -> str:
    """Whole number, grouped where it is long."""
    return f"{value:,}" if abs(value) >= 10_000 else str(value)
