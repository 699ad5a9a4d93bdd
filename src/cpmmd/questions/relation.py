"""Does the target given the inputs differ? By residuals, or within equal inputs where these are discrete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool, pool_tables
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import Table
from cpmmd.data.targets import Parts
from cpmmd.questions.kinds_of_change import ErrorChange, Overlap, TargetDifference
from cpmmd.questions.two_sample import two_sample_test
from cpmmd.statistics.cross_fitting import MOST_COLUMNS, Ridge, draw_folds, fitted_means, fitted_probabilities, principal
from cpmmd.statistics.given_inputs import (
    RelationTest,
    Residuals,
    between_samples,
    given_inputs,
    interval,
    relation_test,
    softened,
)

LEAST_ROWS = 20  # of each sample where both overlap: fewer say nothing about y given x
FEW_ROWS = 100  # of each sample: below it the level was not measured
MOST_ROWS = 10_000  # of each sample
OVERLAP = 19.0  # a row is in the overlap where neither sample is so many times as dense as the other: 0.05 to 0.95
MOST_STRATA = 1000  # different rows of discrete inputs
ROWS_A_STRATUM = 10  # on average, for inputs to count as discrete
ASYMPTOTIC = (
    "the level of the target given the inputs is approximate: it needs independent rows, and two regressions on the inputs, of "
    "the target and of the sample, whose errors multiplied are below 1 / sqrt(rows)"
)
NO_OVERLAP = (
    "no overlap: {reference} rows of the reference and {new} of the new sample have inputs that occur in both; {least} of each "
    "are needed"
)
COMPONENTS = "the target is tested given {most} principal components of {columns} encoded inputs"
SOME_ROWS = "the target given the inputs is tested on {most} rows of each sample, drawn at random; inputs and target on all rows"


@dataclass(frozen=True, eq=False)
class Relation:
    """What was found of the target given the inputs."""

    pvalue: float = 1.0
    exact: bool = False
    method: str = ""
    why: str = ""  # why it could not be tested
    notes: tuple[str, ...] = ()
    overlap: Overlap | None = None
    ways: Mapping[str, float] | None = None
    differences: tuple[TargetDifference, ...] = ()
    error_change: ErrorChange | None = None


def find_relation(data: Parts, tested: Mapping[str, Any], regressor: Any, classifier: Any, rng: np.random.Generator) -> Relation:
    """Test the target given the inputs: within equal inputs where these are discrete, else by residuals."""
    row_stream, fold_stream, ridge_stream, test_stream = rng.spawn(4)
    strata = discrete_strata(data.inputs)
    labels = np.repeat(np.arange(2), data.sizes)
    if strata is not None:
        return _within_strata(data, strata, labels, tested, test_stream)
    rows, notes = _some_rows(data.sizes, row_stream)
    labels = labels[rows]
    pools = [pool_tables(*tables) for tables in (data.inputs, data.target)]
    inputs = _encode(pools[0], rows)[0]
    if inputs.shape[1] > MOST_COLUMNS:
        notes.append(COMPONENTS.format(most=MOST_COLUMNS, columns=inputs.shape[1]))
        inputs = principal(inputs, MOST_COLUMNS)
    folds = draw_folds(labels, fold_stream)
    losses = None if data.losses is None else data.losses[rows]
    if min(np.bincount(labels)) < LEAST_ROWS:
        why = f"too few rows: {LEAST_ROWS} of each sample are needed"
        return Relation(why=why, error_change=_error_change(losses, labels, data.loss))
    ridge = Ridge.of(inputs, folds, ridge_stream)
    found = ridge.probabilities(labels) if classifier is None else fitted_probabilities(classifier, inputs, labels, folds)
    overlap = measured_overlap(found.values, labels)
    if min(overlap.rows) < LEAST_ROWS:
        why = NO_OVERLAP.format(reference=overlap.rows[0], new=overlap.rows[1], least=LEAST_ROWS)
        return Relation(why=why, overlap=overlap, error_change=_error_change(losses, labels, data.loss), notes=tuple(notes))
    outcomes, features, numbers = _encode(pools[1], rows)
    soft = softened(outcomes, numbers)

    def means_of(columns: Array) -> Array:
        return ridge.means(columns) if regressor is None else fitted_means(regressor, inputs, columns, folds)

    label = labels - found.values
    residuals = Residuals(label, found, soft - means_of(soft), numbers, ridge)
    test = relation_test(residuals, inputs, tested["n_permutations"], test_stream)
    few = min(np.bincount(labels)) < FEW_ROWS
    notes += [ASYMPTOTIC, *([f"the level was measured with {FEW_ROWS} rows or more of each sample"] if few else [])]
    mean_loss = None if losses is None else means_of(losses[:, None])[:, 0]
    return Relation(
        pvalue=test.ranking.pvalue,
        method="doubly-robust",
        notes=tuple(notes),
        overlap=overlap,
        ways=_ways(test),
        differences=_differences(pools[1], features, outcomes, means_of(outcomes), label),
        error_change=_error_change(losses, labels, data.loss, label, mean_loss),
    )


def _ways(found: RelationTest) -> dict[str, float]:
    """Return the p-value of each class alone, the leading one first."""
    return {found.leading: found.pvalues[found.leading], **found.pvalues}


def discrete_strata(inputs: tuple[Table, Table]) -> Rows | None:
    """Return a number for each different row of discrete inputs; None where too many rows differ."""
    first, second = inputs
    columns = {name: [table.categories[name] for table in inputs] for name in first.categories}
    places = [[table.number_names.index(name) for table in inputs] for name in first.number_names]
    most = min(MOST_STRATA, (first.rows + second.rows) // ROWS_A_STRATUM)
    strata = np.zeros(first.rows + second.rows, dtype=np.intp)
    numbers = [np.concatenate([table.numbers[:, j] for table, j in zip(inputs, of, strict=True)]) for of in places]
    texts = [np.concatenate([["" if v is None else f"={v}" for v in part] for part in parts]) for parts in columns.values()]
    for values in (*numbers, *texts):
        own = np.unique(values, return_inverse=True)[1].ravel()
        strata = np.unique(strata * (int(own.max()) + 1) + own, return_inverse=True)[1].ravel()
        if strata.max() >= most:
            return None
    return strata


def _within_strata(data: Parts, strata: Rows, labels: Rows, tested: Mapping[str, Any], rng: np.random.Generator) -> Relation:
    """Permute the target within equal inputs: exact."""
    counts = np.stack([np.bincount(strata[labels == label], minlength=strata.max() + 1) for label in (0, 1)])
    shared = (counts > 0).all(axis=0)
    share = counts[1] / counts.sum(axis=0)
    overlap = _describe_overlap(share[strata], labels, tuple(counts[:, shared].sum(axis=1).tolist()))
    if min(overlap.rows) < LEAST_ROWS:
        why = NO_OVERLAP.format(reference=overlap.rows[0], new=overlap.rows[1], least=LEAST_ROWS)
        return Relation(why=why, overlap=overlap, error_change=_error_change(data.losses, labels, data.loss))
    m = data.sizes[0]
    found = two_sample_test(*data.target, **tested, strata=(strata[:m], strata[m:]), rng=rng)
    pool = pool_tables(*data.target)
    outcomes, features, _ = _encode(pool, np.arange(len(labels)))
    label = labels - share[strata]
    total = counts.sum(axis=0)

    def mean_in_stratum(values: Array) -> Array:
        return np.asarray((np.bincount(strata, values) / total)[strata])

    means = np.stack([mean_in_stratum(column) for column in outcomes.T], axis=1)
    mean_loss = None if data.losses is None else mean_in_stratum(data.losses)
    return Relation(
        pvalue=found.pvalue,
        exact=found.exact,
        method=f"{found.method}, within equal inputs",
        notes=found.notes,
        overlap=overlap,
        differences=_differences(pool, features, outcomes, means, label),
        error_change=_error_change(data.losses, labels, data.loss, label, mean_loss),
    )


def _some_rows(sizes: tuple[int, int], rng: np.random.Generator) -> tuple[Rows, list[str]]:
    """Return the rows of the pool that are tested: all, or a random choice of a large sample's."""
    parts, start = [], 0
    for size in sizes:
        chosen = np.arange(size) if size <= MOST_ROWS else np.sort(rng.choice(size, MOST_ROWS, replace=False))
        parts.append(start + chosen)
        start += size
    many = max(sizes) > MOST_ROWS
    return np.concatenate(parts), [SOME_ROWS.format(most=MOST_ROWS)] if many else []


def _encode(pool: Pool, rows: Rows) -> tuple[Array, tuple[str, ...], Rows]:
    """Return rows as a matrix of standardised numbers and marks of levels, with features' names and the numbers' places."""
    preparation = Preparation.fit(pool, rows, scale="standard")
    matrix = preparation.transform(pool, rows)
    return matrix, preparation.features, np.arange(len(preparation.number_names))


def measured_overlap(propensity: Array, labels: Rows) -> Overlap:
    """Return how far the samples' inputs overlap, by the probability of being new."""
    odds = propensity / (1 - propensity) * np.mean(labels == 0) / np.mean(labels == 1)
    inside = (odds < OVERLAP) & (odds > 1 / OVERLAP)
    return _describe_overlap(propensity, labels, tuple(np.bincount(labels[inside], minlength=2).tolist()))


def _describe_overlap(propensity: Array, labels: Rows, rows: tuple[int, ...]) -> Overlap:
    quantiles = [tuple(np.quantile(propensity[labels == label], (0.05, 0.5, 0.95)).tolist()) for label in (0, 1)]
    share = float(np.mean(propensity * (1 - propensity)) / (np.mean(labels) * (1 - np.mean(labels))))
    return Overlap(share=min(share, 1.0), rows=(rows[0], rows[1]), reference=quantiles[0], new=quantiles[1])


def _differences(
    pool: Pool, features: Sequence[str], outcomes: Array, means: Array, label: Array
) -> tuple[TargetDifference, ...]:
    """Return by how much the target differs at equal inputs, in its own units; for a level, its share."""
    numbers = np.asarray(pool.numbers)
    units = np.concatenate([np.nanstd(numbers, axis=0), np.full(outcomes.shape[1] - numbers.shape[1], np.sqrt(2.0))])
    found = []
    for j, name in enumerate(features):
        estimate, influence = given_inputs(outcomes[:, j], means[:, j], label)
        found.append(TargetDifference(name, *(units[j] * end for end in interval(estimate, influence).ends)))
    return tuple(found)


def _error_change(
    losses: Array | None, labels: Rows, kind: str, label: Array | None = None, mean: Array | None = None
) -> ErrorChange | None:
    """Divide the change of a model's mean loss: at equal inputs, and the rest, which the inputs explain."""
    if losses is None:
        return None
    total, influence = between_samples(losses, labels)
    means = tuple(float(losses[labels == of].mean()) for of in (0, 1))
    if label is None or mean is None:
        return ErrorChange(kind, means[0], means[1], interval(total, influence), None, None)
    at_equal, own = given_inputs(losses, mean, label)
    return ErrorChange(
        kind, means[0], means[1], interval(total, influence), interval(total - at_equal, influence - own), interval(at_equal, own)
    )
