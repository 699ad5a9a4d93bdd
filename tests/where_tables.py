"""Random tables of mixed columns, three of twenty changed in one way; what cpmmd names in them, and what Holm's rule does."""

from itertools import combinations

import numpy as np
import polars as pl
from scipy import special, stats

from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.explain.column_table import difference_tables
from cpmmd.statistics.columns import columns_of

KINDS = ("mean", "scale", "shape", "level", "missing")
COLUMNS, CHANGED, ROWS, ALPHA = 20, 3, 300, 0.05
# Ten kinds of column, twice: normal in two units, lognormal, t (3), gamma, counts, days, booleans, 4 and 8 levels.
NUMBERS, DISCRETE = range(7), (7, 8, 9)
MAY_CHANGE = {
    "mean": NUMBERS,
    "scale": (0, 1, 3, 4),
    "shape": (0, 1, 2, 3, 4, 6),
    "level": DISCRETE,
    "missing": range(10),
}


def _column(kind, rows, rng):
    normal = rng.normal(size=rows)
    return {
        0: lambda: 1e-3 * normal,
        1: lambda: 40_000 + 9_000 * normal,
        2: lambda: np.exp(normal),
        3: lambda: rng.standard_t(3, size=rows),
        4: lambda: rng.gamma(2, size=rows),
        5: lambda: rng.poisson(4, size=rows).astype(float),
        6: lambda: np.floor(rng.uniform(0, 365, size=rows)),
        7: lambda: (rng.random(rows) < 0.3).astype(float),
        8: lambda: rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=rows).astype(float),
        9: lambda: rng.integers(0, 8, rows).astype(float),
    }[kind]()


def _change(how, kind, before, after, rng):
    """Return a column's second half, changed."""
    rows = len(after)
    if how == "mean":
        if kind == 5:
            return rng.poisson(4.56, size=rows).astype(float)
        return after + 0.28 * (1.3 if kind == 3 else before.std())
    if how == "scale":
        return np.median(before) + 1.33 * (after - np.median(before))
    if how == "level":
        if kind == 7:
            return (rng.random(rows) < 0.43).astype(float)
        return np.where(rng.random(rows) < 0.16, rng.integers(4), after)
    shapes = (
        lambda: special.ndtri(np.clip(_two_modes(rows, rng), 1e-3, 1 - 1e-3)),
        lambda: (rng.gamma(2.5, size=rows) - 2.5) / np.sqrt(2.5),
        lambda: 0.9 * rng.standard_t(2, size=rows),
    )
    return np.quantile(before, np.clip(special.ndtr(shapes[rng.integers(3)]()), 1e-3, 1 - 1e-3))


def _two_modes(rows, rng):
    modes = 0.25 + 0.5 * (rng.random(rows) < 0.5) + 0.1 * rng.normal(size=rows)
    return np.where(rng.random(rows) < 0.6, modes, rng.random(rows))


def table(how, rng):
    """Return both samples as one matrix, NaN where missing, and the changed columns; ``how`` None changes nothing."""
    rows = 2 * ROWS
    values = np.column_stack([_column(j % 10, rows, rng) for j in range(COLUMNS)])
    gaps = rng.random((rows, COLUMNS)) < np.where(np.arange(COLUMNS) % 3 == 0, 0.05, 0.0)
    candidates = [j for j in range(COLUMNS) if how is not None and j % 10 in MAY_CHANGE[how]]
    changed = rng.choice(candidates, CHANGED, replace=False).tolist() if candidates else []
    for j in changed:
        if how == "missing":
            gaps[ROWS:, j] |= rng.random(ROWS) < 0.06
        else:
            values[ROWS:, j] = _change(how, j % 10, values[:ROWS, j], values[ROWS:, j], rng)
    values[gaps] = np.nan
    return values, changed


def frames(values):
    """Return the two samples as data frames: text for levels, booleans, numbers, None where missing."""

    def column(j):
        numbers = [None if np.isnan(v) else v for v in values[:, j].tolist()]
        if j % 10 == 7:
            return pl.Series([None if v is None else v == 1 for v in numbers], dtype=pl.Boolean)
        if j % 10 in DISCRETE:
            return pl.Series([None if v is None else f"level {v:.0f}" for v in numbers], dtype=pl.String)
        return pl.Series(numbers, dtype=pl.Float64)

    whole = pl.DataFrame({f"c{j}": column(j) for j in range(COLUMNS)})
    return whole[:ROWS], whole[ROWS:]


def difference_of(x, y, rng, count=999, missing="error"):
    """Return the tables of columns and pairs of two samples, under relabelings of their rows."""
    pool = read_pool(x, y, missing=missing)
    units = Layout.of_rows(pool.m, pool.n).draw(count, rng)
    return difference_tables(pool, columns_of(pool, Preparation.fit(pool)), units, ALPHA, ("a", "b"))


def named_by_us(values, rng, count=999):
    """Return the columns that cpmmd names."""
    return {int(c.name[1:]) for c in difference_of(*frames(values), rng, count, missing="impute").columns if c.words}


def named_by_holm(values):
    """Return the columns that Kolmogorov-Smirnov and chi-square tests name with Holm's rule; missing marks have their own."""
    pvalues, owner = [], []
    for j in range(COLUMNS):
        x, y = values[:ROWS, j], values[ROWS:, j]
        gaps = np.isnan(values[:, j])
        if j % 10 in DISCRETE:
            pvalues.append(_chi_square(np.where(gaps, -1, values[:, j])))
        else:
            pvalues.append(stats.ks_2samp(x[~np.isnan(x)], y[~np.isnan(y)], method="asymp").pvalue)
            if gaps.any():
                pvalues.append(_chi_square(gaps))
                owner.append(j)
        owner.append(j)
    order = np.argsort(pvalues)
    steps = np.maximum.accumulate(np.array(pvalues)[order] * (len(pvalues) - np.arange(len(pvalues))))
    return {owner[i] for i, p in zip(order, steps, strict=True) if p <= ALPHA}


def _chi_square(levels):
    _, codes = np.unique(levels, return_inverse=True)
    counts = [np.bincount(codes[half], minlength=codes.max() + 1) for half in (slice(ROWS), slice(ROWS, None))]
    return stats.chi2_contingency(counts, correction=False).pvalue if codes.max() else 1.0


def study(how, tables, seed):
    """Return, for us and for Holm, the share of changed columns that are named and the share of tables that name another one."""
    found, wrong = np.zeros(2), np.zeros(2)
    for repetition in range(tables):
        rng = np.random.default_rng([seed, KINDS.index(how) if how else 99, repetition])
        values, changed = table(how, rng)
        for who, named in enumerate((named_by_us(values, rng), named_by_holm(values))):
            found[who] += len(named & set(changed)) / max(len(changed), 1)
            wrong[who] += bool(named - set(changed))
    return found / tables, wrong / tables


def correlated_pair(rng, rows=300, columns=10, correlation=0.6):
    """Return two samples of independent normal columns, the first two of which are correlated in the second sample."""
    x, y = rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns))
    y[:, 1] = correlation * y[:, 0] + np.sqrt(1 - correlation**2) * y[:, 1]
    return x, y


def every_pair(columns):
    """Return all pairs of column names."""
    return list(combinations([str(i) for i in range(columns)], 2))
