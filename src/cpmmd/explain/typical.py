"""What is typical of a column in X and in Y, as text: a mean, a date, or the share of the level that changed most."""

from __future__ import annotations

from collections.abc import Callable

from cpmmd.core.text import harmless, number_format
from cpmmd.data.preparation import MISSING
from cpmmd.explain.columns import date_text
from cpmmd.explain.differences import ColumnDifference

LEVEL = 24  # characters of a level
WHOLE = 1e12  # means from 1e7 up to here are shown without decimals rather than with an exponent: identifiers, seconds, prices


def typical(column: ColumnDifference, *, nothing: str = "") -> tuple[str, str]:
    """Return what is typical of a column in X and in Y, ``nothing`` where all values are missing."""
    what = column.effect.what if column.effect is not None and column.words else ""
    if what == "missing":
        return f"missing {column.missing_x:.0%}", f"missing {column.missing_y:.0%}"
    if column.levels:
        level, shares = next(iter(column.levels.items()))  # the one that the words speak of comes first
        name = "missing" if level == MISSING else harmless(level, LEVEL)
        return f"{name} {shares[0]:.0%}", f"{name} {shares[1]:.0%}"
    means = (column.mean_x, column.mean_y)
    if column.effect is not None and column.words and column.effect.unit == "times the spread":
        spreads = [spread for spread in (column.spread_x, column.spread_y) if spread is not None]
        return f"sd {spreads[0]:.3g}", f"sd {spreads[1]:.3g}"
    show = _as(column.kind, [mean for mean in means if mean is not None])
    x, y = (nothing if mean is None else show(mean) for mean in means)
    return x, y


def _as(kind: str, means: list[float]) -> Callable[[float], str]:
    """Return how means of a kind are shown: dates with the time of day where both are within one."""
    if kind == "date":
        length = 16 if len(means) == 2 and abs(means[0] - means[1]) < 1 else 10
        return lambda mean: date_text(mean)[:length].replace("T", " ")
    if kind == "boolean":
        return lambda mean: f"true {mean:.0%}"
    form = _form(means)
    return lambda mean: format(mean, form)


def _form(means: list[float]) -> str:
    largest = max((abs(mean) for mean in means), default=0.0)
    return ".0f" if 1e7 <= largest < WHOLE else number_format(means)
