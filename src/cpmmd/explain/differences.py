"""How Y differs from X in one column, in numbers and in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.core.text import harmless
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING
from cpmmd.explain.columns import DataColumn, number_values
from cpmmd.explain.words import LONGEST

LEVELS = 5  # of a category, those with the largest difference
CLEAR = 3.0  # standard errors from which a word such as "higher" is used: there may be many columns
COMPARED = {"date": ("later", "earlier"), "boolean": ("more often true", "less often true")}
Candidate = tuple[float, str]  # difference in standard errors, and its words


def describe(pool: Pool, column: DataColumn, rows: Rows) -> PlainDict:
    """Return means, spreads, levels and missing shares of a column in X and Y, and the ``difference`` in words."""
    of_x, of_y = rows[rows < pool.m], rows[rows >= pool.m]
    if column.kind == "category":
        values = pool.categories[column.name]
        return _describe_levels(_count(values[of_x]), _count(values[of_y]))
    x, y = number_values(pool, of_x, column), number_values(pool, of_y, column)
    a, b = _Moments.of(x[~np.isnan(x)]), _Moments.of(y[~np.isnan(y)])
    missing = 1 - a.size / len(x), 1 - b.size / len(y)
    candidates = [_share_candidate("missing", *missing, len(x), len(y)), *_number_candidates(a, b, column.kind)]
    return {
        "mean_x": a.mean,
        "mean_y": b.mean,
        "spread_x": a.spread,
        "spread_y": b.spread,
        "missing_x": missing[0],
        "missing_y": missing[1],
        "difference": _clearest(candidates),
    }


@dataclass(frozen=True)
class _Moments:
    """Size, mean, standard deviation and kurtosis of the values that are there."""

    size: int
    mean: float | None = None
    spread: float | None = None
    kurtosis: float = 3.0

    @classmethod
    def of(cls, values: Array) -> _Moments:
        if not len(values):
            return cls(0)
        mean, spread = float(values.mean()), float(values.std())
        fourth = float(np.mean(((values - mean) / spread) ** 4)) if spread > 0 else 3.0
        return cls(len(values), mean, spread, fourth)


def _number_candidates(a: _Moments, b: _Moments, kind: str) -> list[Candidate]:
    if a.mean is None or b.mean is None or a.spread is None or b.spread is None:
        return []
    more, less = COMPARED.get(kind, ("higher", "lower"))
    apart = _score(b.mean - a.mean, math.hypot(a.spread / math.sqrt(a.size), b.spread / math.sqrt(b.size)))
    answer = [(abs(apart), more if apart > 0 else less)]
    if kind != "boolean" and max(a.spread, b.spread) > 0:
        # log s has variance (kurtosis - 1) / 4n, to first order
        error = math.sqrt(sum(max(c.kurtosis - 1, 0.0) / (4 * c.size) for c in (a, b)))
        wider = _score(_log(b.spread) - _log(a.spread), error)
        answer.append((abs(wider), "more spread out" if wider > 0 else "less spread out"))
    return answer


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _score(difference: float, error: float) -> float:
    if difference == 0:
        return 0.0
    return difference / error if error > 0 else math.copysign(math.inf, difference)


def _describe_levels(x: Counter[str], y: Counter[str]) -> PlainDict:
    m, n = x.total(), y.total()
    shares = {level: (x[level] / m, y[level] / n) for level in sorted(x | y)}
    leading = sorted(shares, key=lambda level: -abs(shares[level][1] - shares[level][0]))[:LEVELS]
    names = ["missing" if level == MISSING else f"'{harmless(level, LONGEST)}'" for level in leading]
    candidates = [_share_candidate(name, *shares[level], m, n) for name, level in zip(names, leading, strict=True)]
    return {
        "levels": {level: shares[level] for level in leading},
        "missing_x": x[MISSING] / m,
        "missing_y": y[MISSING] / n,
        "difference": _clearest(candidates),
    }


def _count(values: Any) -> Counter[str]:
    return Counter(MISSING if value is None else value for value in values)


def _share_candidate(what: str, x: float, y: float, m: int, n: int) -> Candidate:
    pooled = (m * x + n * y) / (m + n)
    score = _score(y - x, math.sqrt(pooled * (1 - pooled) * (1 / m + 1 / n)))
    return abs(score), f"{'more' if score > 0 else 'less'} often {what}"


def _clearest(candidates: list[Candidate]) -> str:
    score, words = max(candidates, key=lambda candidate: candidate[0])
    return words if score > CLEAR else ""
