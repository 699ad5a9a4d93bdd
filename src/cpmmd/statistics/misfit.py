"""How far each column is from what a model expects of it: shift, scale, skewness and tails, adjusted over all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainValue

TAIL = 0.05  # the model's probability of each tail that rows are counted in
# What a moment says where it is negative, and where it is positive.
WORDS = (
    ("lies lower", "lies higher"),
    ("is narrower", "is wider"),
    ("is skewed to the left", "is skewed to the right"),
    ("has lighter tails", "has heavier tails"),
)
MOMENTS = len(WORDS)
LEADING = 0.5  # of the largest deviation: the first moment that reaches it names the misfit, for a shift moves all later ones


@dataclass(frozen=True)
class ColumnMisfit(PlainValue):
    """A column beside what the model expects of it."""

    document: ClassVar[tuple[str, ...]] = (*("name", "words", "pvalue", "shift", "scale", "skewness", "tails", "below", "above"),)

    name: str  #: of the column
    words: str  #: how it differs from the model most
    pvalue: float  #: adjusted over all columns and their four moments
    #: means of the Hermite polynomials of the column's normal scores, 0 under the model: shift is in standard deviations
    shift: float
    scale: float  #: above 0 where the column is wider than the model
    skewness: float  #: above 0 where it is skewed to the right
    tails: float  #: above 0 where its tails are heavier
    below: float | None  #: share of rows below the model's 5% quantile; None where the model cannot be sampled
    above: float | None  #: share of rows above the model's 95% quantile


def stein_moments(z: Array, scores: Array) -> Array:
    """Return for every row and column -(s g_k(z) + g_k'(z)), k = 0..3 (rows x 4 x columns), g_k = He_k(z) exp(-z^2 / 8).

    Each has mean zero where rows come from a density of these scores. Where that is N(0, I) and nothing damps them, they are the
    Hermite polynomials of degree 1 to 4: they see a shift, a scale, skewness and tails. The damping keeps far rows from deciding,
    where random signs would need many more rows to be right.
    """
    damping, squares = np.exp(-z * z / 8), z * z
    values = (np.ones_like(z), z, squares - 1, z * (squares - 3))
    slopes = (np.zeros_like(z), np.ones_like(z), 2 * z, 3 * (squares - 1))
    return -np.stack([damping * (scores * g + h - z * g / 4) for g, h in zip(values, slopes, strict=True)], axis=1)


def normal_scores(rows: Array, model_rows: Array) -> Array:
    """Return where each value stands among rows of the model, as a quantile of N(0, 1), column by column."""
    found = np.empty_like(rows)
    for j, column in enumerate(np.sort(model_rows, axis=0).T):
        below, above = np.searchsorted(column, rows[:, j]), np.searchsorted(column, rows[:, j], side="right")
        found[:, j] = special.ndtri(((below + above) / 2 + 0.5) / (len(column) + 1))
    return found


def tail_shares(z: Array) -> Array:
    """Return the shares of rows beyond the lower and the upper tail of N(0, 1), for every column."""
    end = float(special.ndtri(1 - TAIL))
    return np.array([(z < -end).mean(axis=0), (z > end).mean(axis=0)])


def column_misfits(
    names: Sequence[str], moments: Array, effects: Array, shares: Array | None, *, first: int = 0
) -> tuple[ColumnMisfit, ...]:
    """Return every column, the worst first.

    ``moments`` (actions x 4 x columns) are standardised over actions, the observed one first; ``effects`` are what the observed
    ones say in standard deviations. The first ``first`` moments say nothing, because the model was fitted to them.
    """
    deviations = moments - moments.mean(axis=0)
    sizes = np.sqrt(np.square(deviations).mean(axis=0))
    z = np.abs(deviations) / np.where(sizes > 0, sizes, 1.0)
    z[:, :first] = 0.0
    worst = z.max(axis=1)  # actions x columns
    ordered = np.sort(worst.max(axis=1))
    found = []
    for j, name in enumerate(names):
        count = len(ordered) - int(np.searchsorted(ordered, worst[0, j] * (1 - 1e-9)))
        k = int(np.flatnonzero(z[0, :, j] >= LEADING * worst[0, j])[0])
        words = WORDS[k][int(effects[k, j] > 0)]
        tails = (None, None) if shares is None else (float(shares[0, j]), float(shares[1, j]))
        found.append(ColumnMisfit(name, words, count / len(ordered), *map(float, effects[:, j]), *tails))
    order = np.argsort(-worst[0], kind="stable")
    return tuple(found[j] for j in order)
