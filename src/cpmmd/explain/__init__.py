"""Explanations of a result: the witness of each row, the contribution of each feature, an effect size, a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cpmmd import validation
from cpmmd.explain.contributions import affordable_rows, permutation_drops
from cpmmd.explain.differences import describe
from cpmmd.explain.features import Feature, features_of, row_values
from cpmmd.explain.material import Material, gather
from cpmmd.explain.rows import cross_fitted_effect, leave_one_out_witness
from cpmmd.explain.values import Effect, Explanation, FeatureContribution, RowEvidence
from cpmmd.explain.words import sentence
from cpmmd.results import TestResult
from cpmmd.samples import Array, Labels, Rows

__all__ = ["Effect", "Explanation", "FeatureContribution", "RowEvidence", "explain"]

FEWEST_ROWS = 200  # with fewer, a contribution is mostly noise
MOST_FEATURES = 2000  # with FEWEST_ROWS and 5 permutations, the budget
VALUES_SHOWN = 50  # columns of a row that is shown


def explain(
    result: TestResult, *, max_rows: int = 2000, n_feature_permutations: int = 5, top: int = 5, rng: Any = 0
) -> Explanation:
    """Say where the samples behind a result differ; the same as ``result.explain()``.

    Parameters
    ----------
    result
        What :func:`cpmmd.two_sample_test` gave.
    max_rows
        At most so many rows are explained, drawn at random from those that the test saw.
    n_feature_permutations
        Permutations of each feature.
    top
        Rows to name on either side.
    rng
        Seed or Generator for the draws.

    Returns
    -------
    Explanation
        With ``sentence``, ``features``, ``top_x``, ``top_y``, ``effect``, ...; print it for a summary.

    Notes
    -----
    The witness and the effect take one kernel matrix, rows^2. Contributions take features x permutations x rows^2 kernel values;
    their rows are cut (to no fewer than 200) so that this stays within 4e8, a quarter of it for kernels that mix the columns
    (lifts, networks): some seconds. Of more than 2000 features the 2000 that differ most in mean or variance are looked at.
    Images are looked at in patches, at most 8 x 8.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(80, 3)), data.normal(size=(90, 3)) + [0, 1, 0]
    >>> explanation = two_sample_test(x, y, rng=0).explain()
    >>> explanation.features[0].name, explanation.features[0].difference
    ('1', 'higher')
    """
    validation.whole("max_rows", max_rows, at_least=8)
    validation.whole("n_feature_permutations", n_feature_permutations, at_least=2)
    validation.whole("top", top, at_least=0)
    _, generator = validation.generator(rng)
    row_stream, fold_stream, feature_stream = generator.spawn(3)
    material = gather(result, max_rows, row_stream)
    K = material.kernel.gram(material.matrix)
    witness = leave_one_out_witness(K, material.labels)
    effect = cross_fitted_effect(K, material.labels, fold_stream)
    del K
    features, contributions, notes = _contributions(material, n_feature_permutations, feature_stream)
    if not result.reject:  # a mean that happens to be higher is no finding then
        contributions = tuple(replace(contribution, difference="") for contribution in contributions)
    (rows_x, witness_x), (rows_y, witness_y) = (_side(material, witness, s) for s in (material.labels, ~material.labels))
    return Explanation(
        sentence=sentence(contributions, effect, reject=result.reject, pvalue=result.pvalue, alpha=result.alpha),
        witness_x=witness_x,
        witness_y=witness_y,
        rows_x=material.row_numbers(rows_x),
        rows_y=material.row_numbers(rows_y),
        top_x=_leading(material, "x", rows_x, -witness_x, top, features),
        top_y=_leading(material, "y", rows_y, witness_y, top, features),
        features=contributions,
        effect=effect,
        held_out=result.evidence is not None and result.evidence.held_out,
        notes=(*material.notes, *notes),
    )


def _side(material: Material, witness: Array, side: Labels) -> tuple[Rows, Array]:
    """Give one sample's rows of the pool in their own order, and their witness values."""
    order = np.argsort(material.rows[side])
    return material.rows[side][order], witness[side][order]


def _leading(
    material: Material, sample: str, rows: Rows, score: Array, top: int, features: tuple[Feature, ...]
) -> tuple[RowEvidence, ...]:
    """Name the rows with the lowest scores."""
    sign = -1.0 if sample == "x" else 1.0
    best = np.argsort(score, kind="stable")[:top]
    numbers = material.row_numbers(rows[best])
    return tuple(
        RowEvidence(
            sample, int(number), sign * float(score[i]), row_values(material.samples, int(rows[i]), features[:VALUES_SHOWN])
        )
        for i, number in zip(best, numbers, strict=True)
    )


def _contributions(
    material: Material, permutations: int, rng: np.random.Generator
) -> tuple[tuple[Feature, ...], tuple[FeatureContribution, ...], list[str]]:
    """Give the features, largest contribution first, what is known of each, and what was left out."""
    every = features_of(material.samples, material.preparation)
    looked_at = _screened(material, [feature for feature in every if feature.encoded])
    row_stream, permutation_stream = rng.spawn(2)
    affordable = affordable_rows(material.kernel, len(looked_at), permutations, material.matrix.shape[1])
    some = material.some(max(FEWEST_ROWS, affordable), row_stream)
    orders = [permutation_stream.permutation(len(some.rows)) for _ in range(permutations)]
    drops = permutation_drops(some.matrix, some.labels, some.kernel, [f.encoded for f in looked_at], orders)
    ranked = np.argsort(-drops.shares, kind="stable")
    contributions = tuple(
        FeatureContribution(
            looked_at[i].name,
            looked_at[i].label,
            looked_at[i].kind,
            float(drops.shares[i]),
            float(drops.standard_errors[i]),
            **describe(material.samples, looked_at[i], material.tested),
        )
        for i in ranked
    )
    return tuple(looked_at[i] for i in ranked), contributions, _notes(material, some, every, looked_at)


def _screened(material: Material, features: list[Feature]) -> list[Feature]:
    """Keep the features whose encoded columns differ most in mean or in mean square, when there are very many."""
    if len(features) <= MOST_FEATURES:
        return features
    z = material.matrix - material.matrix.mean(axis=0)
    z /= np.maximum(z.std(axis=0), np.finfo(float).tiny)
    apart = [np.abs(v[material.labels].mean(axis=0) - v[~material.labels].mean(axis=0)) for v in (z, z**2)]
    score = np.maximum(*apart)
    strength = np.array([score[list(feature.encoded)].max() for feature in features])
    return [features[i] for i in np.sort(np.argsort(-strength, kind="stable")[:MOST_FEATURES])]


def _notes(material: Material, some: Material, every: tuple[Feature, ...], looked_at: list[Feature]) -> list[str]:
    notes = []
    if len(some.rows) < len(material.rows):
        notes.append(f"contributions are computed on {len(some.rows)} of the {len(material.rows)} rows explained")
    if len(looked_at) < len(every):
        notes.append(
            f"of {len(every)} columns, contributions are given for the {len(looked_at)} that differ most in mean or variance"
        )
    if len(looked_at) > VALUES_SHOWN:
        notes.append(f"rows are shown with the {VALUES_SHOWN} features of the largest contributions")
    if looked_at[0].kind == "patch":
        notes.append("features are patches [rows, columns] of the image, permuted whole; values are means over the patch")
    return notes
