"""What the data look like before any test: rows that tell of the next, columns that name groups, rows or times.

A note says what was seen and which argument helps. It never changes the test, draws nothing at random and looks at some
rows only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import special

from cpmmd.core.arrays import Array
from cpmmd.data.dependence import ROWS, Traits

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

LAGS = 3
ALARM = 0.001  # chance of a note on independent rows, shared over columns and lags
FEWEST_ROWS = 20  # of both samples: fewer cannot show it
FEWEST_LEVELS = 3  # of a column that names groups, in each sample


def notices(pool: Pool) -> tuple[str, ...]:
    """Return a note on each thing that looks as if rows were not exchangeable one by one."""
    if pool.m + pool.n < FEWEST_ROWS:
        return ()
    named = telling_columns(pool)
    return (*named.values(), *_dependent(pool, tuple(named)))


def telling_columns(pool: Pool) -> dict[str, str]:
    """Return the columns that look like times, numbers of rows or names of groups, with a note on each."""
    return {column: words for column in pool.columns if (words := _names_something(pool, column))}


def _dependent(pool: Pool, leave: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note where rows in the order of the file are visibly dependent."""
    traits = Traits.of(pool, leave=leave)
    found = list(traits.lag_correlations(most_lags=LAGS))
    if not found or not traits.names:
        return ()
    lags = np.array([lag for lag, _ in found])
    bound = _bound(lags, found[-1][1])
    if not (lags > bound).any():
        return ()
    lag, trait = np.unravel_index(int(lags.argmax()), lags.shape)
    name = traits.names[trait]
    seen = f"{name} {'have' if name.startswith('the missing') else 'has'} correlation {lags[lag, trait]:.2f} with "
    seen += f"{'themselves' if name.startswith('the missing') else 'itself'} {_rows_before(int(lag) + 1)}"
    return (
        f"rows depend on each other in the order of the file: {seen}, where independent rows stay below {bound:.2f}; relabeling "
        "them one by one finds differences that are none. If they are in time, keep blocks of them together with blocks='auto'; "
        "if they belong to something, name it with groups=...",
    )


def _bound(lags: Array, rows: int) -> float:
    """Return what correlations of independent rows exceed with probability ALARM: they are normal, of variance 1 / rows."""
    return float(-special.ndtri(ALARM / max(1, lags.size)) / np.sqrt(rows))


def _rows_before(lag: int) -> str:
    return "one row before" if lag == 1 else f"{lag} rows before"


def _names_something(pool: Pool, column: str) -> str:
    """Return a note where a column looks like a time stamp, a number of rows, or the name of a group; empty where it does not."""
    if column not in (*pool.dates, *pool.categories) and pool.kinds.get(column) != "integer":
        return ""
    x, y = (_values(pool, column, part) for part in (np.arange(min(pool.m, ROWS)), pool.m + np.arange(min(pool.n, ROWS))))
    if column in pool.dates:
        return _looks_like_time(column) if _rising(x) and _rising(y) else ""
    if column not in pool.categories and _counts(x) and _counts(y):
        return f"column {column!r} numbers the rows and is compared like any other: leave it out"
    return _looks_like_group(pool, column, x, y)


def _values(pool: Pool, column: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.object_] | Array:
    if column in pool.categories:
        return np.array([str(v) for v in pool.categories[column][rows]])
    return pool.numbers[rows, pool.number_names.index(column)]


def _looks_like_time(column: str) -> str:
    return (
        f"column {column!r} looks like the time of each row and is compared like any other: leave it out, and if rows depend on "
        "each other keep blocks of them together with blocks='auto'"
    )


def _looks_like_group(pool: Pool, column: str, x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> str:
    """Return a note on values that repeat inside a sample and never stand in both."""
    if not _may_be_groups(x, y):
        return ""
    everything = (_values(pool, column, np.arange(pool.m)), _values(pool, column, pool.m + np.arange(pool.n)))
    if (pool.m > ROWS or pool.n > ROWS) and not _may_be_groups(*everything):
        return ""
    m, n = (len(np.unique(part)) for part in everything)
    return (
        f"column {column!r} looks like the name of a group: its {m} and {n} values each stand in one sample only, several times; "
        f"relabel groups whole with groups={column!r}"
    )


def _may_be_groups(x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> bool:
    of_x, of_y = np.unique(x), np.unique(y)
    several = min(len(of_x), len(of_y)) >= FEWEST_LEVELS and 2 * len(of_x) <= len(x) and 2 * len(of_y) <= len(y)
    return several and not len(np.intersect1d(of_x, of_y, assume_unique=True))


def _rising(values: npt.NDArray[np.generic]) -> bool:
    """Whether values never fall, and rise more often than not."""
    steps = np.diff(values.astype(np.float64))
    return bool((steps >= 0).all() and (steps > 0).mean() > 0.5) if len(steps) else False


def _counts(values: npt.NDArray[np.generic]) -> bool:
    """Whether values are consecutive whole numbers, up or in any order."""
    numbers = np.sort(values.astype(np.float64))
    return len(numbers) > 2 and bool((np.diff(numbers) == 1).all())
