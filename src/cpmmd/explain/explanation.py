"""Explanations of a result: every column, pairs of columns, the witness of rows, an effect size, a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import resolve_rng
from cpmmd.errors import InputError
from cpmmd.explain.column_table import difference_tables, relabelled_units
from cpmmd.explain.columns import DataColumn, columns_of, row_values
from cpmmd.explain.explained_rows import ExplainedRows, gather_rows
from cpmmd.explain.in_pairs import say_in_pairs
from cpmmd.explain.one_by_one import one_by_one_effect
from cpmmd.explain.rows import cross_fitted_effect
from cpmmd.explain.sentences import say_told, say_where
from cpmmd.explain.sides import Sides
from cpmmd.explain.strata import say_compared
from cpmmd.explain.values import Effect, Explanation, RowEvidence
from cpmmd.explain.words import SAMPLES
from cpmmd.kernels.base import ColumnWeighing
from cpmmd.procedures.outcome import TestOutcome

VALUES_SHOWN = 50  # columns of a row that is shown
WEIGHTS_SHOWN = 3  # columns that a trained map looks at most
# Times the odds of its even share (half of the weight among three columns, two thirds of it among two). A map starts even, and on
# samples that agree training took the leading one of 2 or 3 columns less far in 14 of 16 runs (of 12 columns farther, in most).
# So it is a rule of when the words are worth saying; which columns differ is for their p-values. Odds, since a category of many
# levels starts with most of the weight and cannot have twice that.
STANDS_OUT = 2.0


@threads(None)
def explain(
    outcome: TestOutcome, *, max_rows: int = 2000, top: int = 5, rng: Any = 0, names: Sequence[str] = SAMPLES
) -> Explanation:
    """Return where the samples behind a result differ; the same as ``result.explain()``.

    Parameters
    ----------
    outcome : TestResult
        What :func:`cpmmd.two_sample_test` returned.
    max_rows : int
        The witness and the effect look at this many rows at most, drawn at random; columns and pairs at all that were tested.
    top : int
        Rows to name on either side.
    rng : int, Generator, RandomState or None
        For the draws.
    names : sequence of str
        What the two samples are called in words.

    Returns
    -------
    Explanation
        With ``sentence``, ``columns``, ``pairs``, ``suspicious``, ``top_x``, ``top_y``, ``effect``, ...; print it for a summary.

    Notes
    -----
    Columns take one pass over the rows and a product of the test's relabelings with sums over its units; their p-values are
    adjusted over all columns by Westfall and Young's step-down maximum. The witness and the effect take one kernel matrix,
    ``max_rows`` squared. Images are looked at in patches, at most 8 x 8.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(80, 3)), data.normal(size=(90, 3)) + [0, 1, 0]
    >>> explanation = two_sample_test(x, y, rng=0).explain()
    >>> explanation.columns[0].name, explanation.columns[0].words
    ('1', 'higher')
    """
    validation.whole("max_rows", max_rows, at_least=8)
    validation.whole("top", top, at_least=0)
    called = validation.two_names("names", names)
    row_stream, fold_stream, label_stream, column_stream = _streams(rng)
    material = gather_rows(outcome, max_rows, row_stream)
    every = columns_of(material.pool, material.preparation)
    units, remarks = relabelled_units(outcome, label_stream)
    tables = difference_tables(material.pool, every, units, outcome.alpha, called)
    effect, sides = _witness(material, fold_stream, top, [column.name for column in tables.columns], every)
    alone = one_by_one_effect(every, material, column_stream)
    inside = material.strata is not None and not material.strata.paired
    return Explanation(
        where=say_where(outcome, tables, called, inside=inside),
        told=say_told(effect, alone, called, inside=inside) or say_in_pairs(material, tables, every, called),
        columns=tables.columns,
        pairs=tables.pairs,
        suspicious=tables.suspicious,
        pvalue_without=tables.pvalue_without,
        effect=effect,
        effect_one_by_one=alone,
        names=called,
        **sides,
        held_out=outcome.evidence is not None and outcome.evidence.held_out,
        notes=(*material.notes, *remarks, *tables.notes, *_notes(every), *_map_notes(outcome, every)),
        compared=say_compared(material.strata),
        outcome=outcome,
    )


def _witness(
    material: ExplainedRows, rng: np.random.Generator, top: int, order: list[str], columns: tuple[DataColumn, ...]
) -> tuple[Effect | None, dict[str, Any]]:
    """Return how well rows are told apart, and each side's rows and witness values, by the names of their fields."""
    K = material.kernel.gram(material.matrix)
    sides, weights = Sides(material.labels), material.weights
    witness = sides.witness_of(K) if weights is None else sides.weighted_witness(K, weights)
    effect = _told(material, K, rng)
    known = {column.name: column for column in columns}
    shown = tuple(known[name] for name in order[:VALUES_SHOWN])
    (rows_x, witness_x), (rows_y, witness_y) = (_side(material, witness, s) for s in (material.labels, ~material.labels))
    return effect, {
        "witness_x": witness_x,
        "witness_y": witness_y,
        "rows_x": material.row_numbers(rows_x),
        "rows_y": material.row_numbers(rows_y),
        "top_x": _leading(material, "x", rows_x, -witness_x, top, shown),
        "top_y": _leading(material, "y", rows_y, witness_y, top, shown),
    }


def effect_size(outcome: TestOutcome, *, max_rows: int = 2000, rng: Any = 0) -> Effect:
    """Return the effect size alone: that of :func:`explain` with the same rows and draws, for the price of one kernel matrix."""
    row_stream, fold_stream, *_ = _streams(rng)
    material = gather_rows(outcome, max_rows, row_stream)
    if not material.tells:
        raise InputError("How well rows are told apart takes rows that are not compared in pairs, nor in strata of few rows.")
    effect = _told(material, material.kernel.gram(material.matrix), fold_stream)
    if effect is None:
        raise InputError("How well rows are told apart takes two rows, groups or blocks of each sample. Got one of a sample.")
    return effect


def _told(material: ExplainedRows, K: Array, rng: np.random.Generator) -> Effect | None:
    return cross_fitted_effect(K, material.labels, rng, material.units, material.strata) if material.tells else None


def _streams(rng: Any) -> list[np.random.Generator]:
    return resolve_rng(rng)[1].spawn(4)


def _side(material: ExplainedRows, witness: Array, side: Labels) -> tuple[Rows, Array]:
    """Return one sample's rows of the pool in their own order, and their witness values."""
    order = np.argsort(material.rows[side])
    return material.rows[side][order], witness[side][order]


def _leading(
    material: ExplainedRows, sample: str, rows: Rows, score: Array, top: int, columns: tuple[DataColumn, ...]
) -> tuple[RowEvidence, ...]:
    """Name the rows with the lowest scores."""
    sign = -1.0 if sample == "x" else 1.0
    best = np.argsort(score, kind="stable")[:top]
    numbers = material.row_numbers(rows[best])
    return tuple(
        RowEvidence(sample, int(number), sign * float(score[i]), row_values(material.pool, int(rows[i]), columns))
        for i, number in zip(best, numbers, strict=True)
    )


def _notes(columns: tuple[DataColumn, ...]) -> list[str]:
    notes = []
    if len(columns) > VALUES_SHOWN:
        notes.append(f"rows are shown with the {VALUES_SHOWN} columns that differ most")
    if columns[0].kind == "patch":
        notes.append("columns are patches [rows, columns] of the image; values are means over the patch")
    return notes


def _map_notes(outcome: TestOutcome, columns: tuple[DataColumn, ...]) -> list[str]:
    """Say which columns a trained map looks at most, where what it looked at was found to differ and one stands out."""
    if not (outcome.reject and isinstance(outcome.kernel, ColumnWeighing)):
        return []
    weights = outcome.kernel.column_weights
    seen = np.count_nonzero(weights)
    parts = [(one.label, weights[list(one.encoded)]) for one in columns]
    shares = [(label, float(part.sum()), np.count_nonzero(part) / seen) for label, part in parts if part.any()]
    if len(shares) < 2:
        return []
    leading = sorted(shares, key=lambda one: -_odds(one[1]) / _odds(one[2]))[:WEIGHTS_SHOWN]
    if _odds(leading[0][1]) < STANDS_OUT * _odds(leading[0][2]):
        return []
    said = ", ".join(f"{share:.0%}{' of its weight' * (i == 0)} is on {label}" for i, (label, share, _) in enumerate(leading))
    evenly = [f"{even:.0%}" for *_, even in leading]
    spread = f"{evenly[0]} each" if len(set(evenly)) == 1 else f"{', '.join(evenly[:-1])} and {evenly[-1]}"
    return [f"the trained map looks at some columns more than at others: {said} (evenly spread, {spread})"]


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else np.inf
