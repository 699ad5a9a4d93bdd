"""Explanations of a result: the witness of each row, the contribution of each column, an effect size, a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.seeds import resolve_rng
from cpmmd.explain.columns import DataColumn, columns_of, row_values
from cpmmd.explain.contributions import affordable_rows, permutation_drops
from cpmmd.explain.differences import describe
from cpmmd.explain.explained_rows import ExplainedRows, gather_rows
from cpmmd.explain.rows import cross_fitted_effect
from cpmmd.explain.sides import Sides
from cpmmd.explain.values import ColumnContribution, Effect, Explanation, RowEvidence
from cpmmd.explain.words import sentence
from cpmmd.procedures.outcome import TestOutcome

FEWEST_ROWS = 200  # with fewer, a contribution is mostly noise
MOST_COLUMNS = 2000  # with FEWEST_ROWS and 5 permutations, the budget
VALUES_SHOWN = 50  # columns of a row that is shown


def explain(
    outcome: TestOutcome, *, max_rows: int = 2000, n_column_permutations: int = 5, top: int = 5, rng: Any = 0
) -> Explanation:
    """Return where the samples behind a result differ; the same as ``result.explain()``.

    Parameters
    ----------
    outcome : TestResult
        What :func:`cpmmd.two_sample_test` returned.
    max_rows : int
        At most so many rows are explained, drawn at random from those that the test saw.
    n_column_permutations : int
        Permutations of each column.
    top : int
        Rows to name on either side.
    rng : int, Generator, RandomState or None
        For the draws.

    Returns
    -------
    Explanation
        With ``sentence``, ``columns``, ``top_x``, ``top_y``, ``effect``, ...; print it for a summary.

    Notes
    -----
    The witness and the effect take one kernel matrix, rows^2. Contributions take columns x permutations x rows^2 kernel values;
    their rows are cut (to no fewer than 200) so that this stays within 4e8, a quarter of it for kernels that mix the columns
    (lifts, networks): some seconds. Of more than 2000 columns the 2000 that differ most in mean or variance are looked at.
    Images are looked at in patches, at most 8 x 8.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(80, 3)), data.normal(size=(90, 3)) + [0, 1, 0]
    >>> explanation = two_sample_test(x, y, rng=0).explain()
    >>> explanation.columns[0].name, explanation.columns[0].difference
    ('1', 'higher')
    """
    validation.whole("max_rows", max_rows, at_least=8)
    validation.whole("n_column_permutations", n_column_permutations, at_least=2)
    validation.whole("top", top, at_least=0)
    row_stream, fold_stream, feature_stream = _streams(rng)
    material = gather_rows(outcome, max_rows, row_stream)
    K = material.kernel.gram(material.matrix)
    witness = Sides(material.labels).witness_of(K)
    effect = cross_fitted_effect(K, material.labels, fold_stream)
    del K
    columns, contributions, notes = _contributions(material, n_column_permutations, feature_stream)
    if not outcome.reject:  # a mean that happens to be higher is no finding then
        contributions = tuple(replace(contribution, difference="") for contribution in contributions)
    (rows_x, witness_x), (rows_y, witness_y) = (_side(material, witness, s) for s in (material.labels, ~material.labels))
    return Explanation(
        sentence=sentence(contributions, effect, reject=outcome.reject, pvalue=outcome.pvalue, alpha=outcome.alpha),
        witness_x=witness_x,
        witness_y=witness_y,
        rows_x=material.row_numbers(rows_x),
        rows_y=material.row_numbers(rows_y),
        top_x=_leading(material, "x", rows_x, -witness_x, top, columns),
        top_y=_leading(material, "y", rows_y, witness_y, top, columns),
        columns=contributions,
        effect=effect,
        held_out=outcome.evidence is not None and outcome.evidence.held_out,
        notes=(*material.notes, *notes),
        outcome=outcome,
    )


def effect_size(outcome: TestOutcome, *, max_rows: int = 2000, rng: Any = 0) -> Effect:
    """Return the effect size alone: that of :func:`explain` with the same rows and draws, for the price of one kernel matrix."""
    row_stream, fold_stream, _ = _streams(rng)
    material = gather_rows(outcome, max_rows, row_stream)
    return cross_fitted_effect(material.kernel.gram(material.matrix), material.labels, fold_stream)


def _streams(rng: Any) -> list[np.random.Generator]:
    return resolve_rng(rng)[1].spawn(3)


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
        RowEvidence(sample, int(number), sign * float(score[i]), row_values(material.pool, int(rows[i]), columns[:VALUES_SHOWN]))
        for i, number in zip(best, numbers, strict=True)
    )


def _contributions(
    material: ExplainedRows, permutations: int, rng: np.random.Generator
) -> tuple[tuple[DataColumn, ...], tuple[ColumnContribution, ...], list[str]]:
    """Return the columns, largest contribution first, what is known of each, and what was left out."""
    every = columns_of(material.pool, material.preparation)
    looked_at = _screen(material, [column for column in every if column.encoded])
    row_stream, permutation_stream = rng.spawn(2)
    affordable = affordable_rows(material.kernel, len(looked_at), permutations, material.matrix.shape[1])
    some = material.some(max(FEWEST_ROWS, affordable), row_stream)
    orders = [permutation_stream.permutation(len(some.rows)) for _ in range(permutations)]
    drops = permutation_drops(some.matrix, some.labels, some.kernel, [f.encoded for f in looked_at], orders)
    ranked = np.argsort(-drops.shares, kind="stable")
    contributions = tuple(
        ColumnContribution(
            looked_at[i].name,
            looked_at[i].label,
            looked_at[i].kind,
            float(drops.shares[i]),
            float(drops.standard_errors[i]),
            **describe(material.pool, looked_at[i], material.tested),
        )
        for i in ranked
    )
    return tuple(looked_at[i] for i in ranked), contributions, _notes(material, some, every, looked_at)


def _screen(material: ExplainedRows, columns: list[DataColumn]) -> list[DataColumn]:
    """Keep the columns whose encoded columns differ most in mean or in mean square, when there are very many."""
    if len(columns) <= MOST_COLUMNS:
        return columns
    z = material.matrix - material.matrix.mean(axis=0)
    z /= np.maximum(z.std(axis=0), np.finfo(float).tiny)
    apart = [np.abs(v[material.labels].mean(axis=0) - v[~material.labels].mean(axis=0)) for v in (z, z**2)]
    score = np.maximum(*apart)
    strength = np.array([score[list(column.encoded)].max() for column in columns])
    return [columns[i] for i in np.sort(np.argsort(-strength, kind="stable")[:MOST_COLUMNS])]


def _notes(material: ExplainedRows, some: ExplainedRows, every: tuple[DataColumn, ...], looked_at: list[DataColumn]) -> list[str]:
    notes = []
    if len(some.rows) < len(material.rows):
        notes.append(f"contributions are computed on {len(some.rows)} of the {len(material.rows)} rows explained")
    if len(looked_at) < len(every):
        notes.append(
            f"of {len(every)} columns, contributions are given for the {len(looked_at)} that differ most in mean or variance"
        )
    if len(looked_at) > VALUES_SHOWN:
        notes.append(f"rows are shown with the {VALUES_SHOWN} columns of the largest contributions")
    if looked_at[0].kind == "patch":
        notes.append("columns are patches [rows, columns] of the image, permuted whole; values are means over the patch")
    return notes
