"""Explanations of a result: every column, pairs of columns, the witness of rows, an effect size, a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import resolve_rng
from cpmmd.core.text import harmless
from cpmmd.data.pool import Pool
from cpmmd.errors import InputError
from cpmmd.explain.column_table import Tables, difference_tables, relabelled_units
from cpmmd.explain.columns import DataColumn, category_levels, columns_of, number_values, pooled_ranks, ranks_inside, row_values
from cpmmd.explain.differences import LONGEST, NAMED, SAMPLES, ColumnDifference, PairDifference, join, quote_name
from cpmmd.explain.rows import ExplainedRows, cross_fitted, cross_fitted_effect, gather_rows
from cpmmd.explain.strata import Strata, say_compared
from cpmmd.explain.summaries import stratum_means
from cpmmd.explain.values import Effect, Explanation, RowEvidence
from cpmmd.kernels.base import ColumnWeighing
from cpmmd.procedures.outcome import TestOutcome

# Which rows are whose: from sums over a kernel matrix's rows to the leave-one-out witness and the squared MMD.


@dataclass(frozen=True, eq=False)
class Sides:
    """Which rows are whose: from sums over a kernel matrix's rows to witness and squared MMD."""

    labels: Labels

    @property
    def marks(self) -> Array:
        """N x 2 marks of X and Y."""
        return np.column_stack([self.labels, ~self.labels]).astype(np.float64)

    def witness(self, sums: Array, diagonal: Array) -> Array:
        """Return the leave-one-out witness from each row's sums over X and Y, its own value among them.

        The only row of a sample is like none of its own: it has how little it is like the other sample.
        """
        m, n = np.count_nonzero(self.labels), np.count_nonzero(~self.labels)
        to_x = (sums[:, 0] - diagonal * self.labels) / np.maximum(m - self.labels, 1)
        to_y = (sums[:, 1] - diagonal * ~self.labels) / np.maximum(n - ~self.labels, 1)
        return np.asarray(to_x - to_y)

    def weighted_witness(self, K: Array, weights: Array) -> Array:
        """Return the leave-one-out witness of each row where rows have weights, as they have to give both samples one mix."""
        others = K.copy()
        np.fill_diagonal(others, 0.0)
        to = []
        for side in (self.labels, ~self.labels):
            own = weights * side
            left = own.sum() - own  # of the others
            to.append(others @ own / np.where(left > 0, left, 1.0))
        return np.asarray(to[0] - to[1])

    def witness_of(self, K: Array) -> Array:
        """Return the leave-one-out witness of each row from its kernel matrix.

        The mean over the rows of X less the mean over the rows of Y is the unbiased squared MMD.
        """
        others = K.copy()
        np.fill_diagonal(others, 0.0)
        sums = np.column_stack([others[:, self.labels].sum(axis=1), others[:, ~self.labels].sum(axis=1)])
        return self.witness(sums, np.zeros(len(K)))

    def mmd2(self, witness: Array) -> Array:
        """Return the unbiased squared MMD of witness values (in the last axis)."""
        return np.asarray(witness[..., self.labels].mean(axis=-1) - witness[..., ~self.labels].mean(axis=-1))

    def variance(self, influence: Array) -> Array:
        """Return the first-order variance of the U-statistic whose witness this is: 4 Var_x/m + 4 Var_y/n."""
        parts = [influence[..., side] for side in (self.labels, ~self.labels)]
        return np.asarray(sum(4 * part.var(axis=-1) / part.shape[-1] for part in parts))


# What pairs say where rows cannot be told apart one by one: in how many of them the leading column is higher.


SIGNS = {"higher": 1, "lower": -1, "later": 1, "earlier": -1}  # words of a difference that a single pair has or has not


def say_in_pairs(explained: ExplainedRows, tables: Tables, columns: Sequence[DataColumn], names: tuple[str, str]) -> str:
    """Say in how many pairs the leading column differs the way its words say; nothing where no such column differs."""
    strata = Strata.of(explained.pool.design, explained.tested)
    suspicious = {one.name for one in tables.suspicious}
    leading = next((one for one in tables.columns if one.words in SIGNS and one.name not in suspicious), None)
    if strata is None or not strata.paired or leading is None:
        return ""
    column = next(one for one in columns if one.name == leading.name)
    values = number_values(explained.pool, explained.tested, column)
    there = ~np.isnan(values)
    of = [there & side for side in (strata.labels, ~strata.labels)]
    both = np.intersect1d(strata.of_row[of[0]], strata.of_row[of[1]])
    x, y = (stratum_means(values[side], strata.of_row[side])[both] for side in of)
    count = np.count_nonzero(SIGNS[leading.words] * (y - x) > 0)
    other, sample = (harmless(name, LONGEST) for name in names)
    said = f"{quote_name(column.name, column.label)} is {leading.words} in {sample} than in {other}"
    return f"{said} in {count} of {len(both)} pairs."


# How well rows are told apart by their columns one by one: what is left is how columns go together.


CLASSES = 8  # of a number's pooled ranks


def one_by_one_effect(columns: Sequence[DataColumn], explained: ExplainedRows, rng: np.random.Generator) -> Effect | None:
    """Return how often rows are told apart by the sum of what each column says alone, learnt from the other half of the rows.

    What a column says is the logarithm of how much more frequent its class is in X than in Y; missing is a class of its own.
    """
    if not explained.tells:
        return None
    labels, strata = explained.labels, explained.strata
    codes = [_codes(explained.pool, explained.rows, column, None if strata is None else strata.of_row) for column in columns]

    def scores(fitted: Labels) -> Array:
        total = np.zeros(np.count_nonzero(~fitted))
        weights = None if strata is None else strata.weights(fitted)
        for code in codes:
            total += _log_ratio(code, fitted, labels, weights)[code[~fitted]]
        return total

    return cross_fitted(scores, labels, rng, explained.units, strata)


def _codes(pool: Pool, rows: Rows, column: DataColumn, stratum: Rows | None) -> Rows:
    if column.kind == "category":
        return category_levels(pool.categories[column.name][rows]).codes
    values = number_values(pool, rows, column)
    codes = np.full(len(values), CLASSES)
    there = ~np.isnan(values)
    if there.any():
        ranks = pooled_ranks(values[there]) if stratum is None else ranks_inside(values[there], stratum[there])
        codes[there] = np.minimum((ranks * CLASSES).astype(int), CLASSES - 1)
    return codes


def _log_ratio(codes: Rows, fitted: Labels, labels: Labels, weights: Array | None) -> Array:
    """Return the log of the ratio of frequencies, class by class, one row added to each; weights give both one mix of strata."""
    count, of = int(codes.max()) + 1, []
    for side in (fitted & labels, fitted & ~labels):
        own = None if weights is None else weights[side] * np.count_nonzero(side)
        of.append(np.bincount(codes[side], own, minlength=count) + 1.0)
    return np.asarray(np.log(of[0] / of[0].sum()) - np.log(of[1] / of[1].sum()))


# The finding in a sentence or two: which columns, or which pair of them, and how well rows are told apart.


def say_where(outcome: TestOutcome, tables: Tables, names: tuple[str, str], *, inside: bool = False) -> str:
    """Say where the samples differ (``inside`` strata), or that no difference was found."""
    x, y = (harmless(name, LONGEST) for name in names)
    suspicious = {one.name for one in tables.suspicious}
    differ = name_columns([one for one in tables.columns if one.name not in suspicious], y)
    if differ and inside:
        differ = f"Inside strata, {_small(differ)}"
    if not outcome.reject:
        found = f"No difference was found (p = {outcome.pvalue:.3g} at level {outcome.alpha:g})"
        if differ:  # a test of each column: level alpha too, and the reader should know of both
            return f"{found} in all columns together, but one by one (adjusted for all columns) {_small(differ)}."
        return f"{found}. {_suspects(tables)}".strip()
    warning, where = _warn(tables, outcome.alpha), differ or _name_pair(tables.pairs, suspicious, (x, y))
    if not where and not warning:
        where = "The samples differ, but no single column and no pair of columns stands out"
    return f"{warning} {where}{'.' * bool(where)}".strip()


def _small(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}"


def say_told(effect: Effect | None, alone: Effect | None, names: tuple[str, str], *, inside: bool = False) -> str:
    """Say how well single rows are told apart; nothing where that cannot be known."""
    if effect is None or alone is None:
        return ""
    x, y = (harmless(name, LONGEST) for name in names)
    other = f"a random row of {x}{' and the same stratum' * inside}"
    told = f"By the test's kernel a random row of {y} looks more like {y} than {other} does {effect}"
    return f"{told}, by its columns one by one {alone.probability:.0%}; 50% would be chance."


def _warn(tables: Tables, alpha: float) -> str:
    """Name the suspicious columns first, and say what is left without them."""
    if not tables.suspicious:
        return ""
    them = "it" if len(tables.suspicious) == 1 else "them"
    if tables.pvalue_without is None:
        return f"{_suspects(tables)} No other column is left without {them}."
    verdict = "the samples still differ" if tables.pvalue_without <= alpha else "no difference is found"
    return f"{_suspects(tables)} Without {them} {verdict} (p = {tables.pvalue_without:.3g})."


def _suspects(tables: Tables) -> str:
    named = "; ".join(f"{quote_name(one.name, one.label)}: {one.why}" for one in tables.suspicious[:NAMED])
    return f"Suspicious {named}." if named else ""


def name_columns(columns: Sequence[ColumnDifference], y: str) -> str:
    """Say how the leading columns differ, those that differ in the same way together; empty where none does."""
    found = [column for column in columns if column.words]
    ways: dict[str, list[str]] = {}
    for column in found[:NAMED]:
        ways.setdefault(column.words, []).append(quote_name(column.name, column.label))
    several = any(len(named) > 1 for named in ways.values())
    said = join([f"{way} in {join(named)}" for way, named in ways.items()], ", and " if several else " and ")
    more = len(found) - NAMED
    rest = f", and {more} more column{'s differ' if more > 1 else ' differs'}" if more > 0 else ""
    return f"Rows of {y} are {said}{rest}" if said else ""


def _name_pair(pairs: Sequence[PairDifference], suspicious: set[str], samples: tuple[str, str]) -> str:
    """Say which pair of columns changed its dependence most; empty where none did."""
    found = [pair for pair in pairs if pair.words and not suspicious & set(pair.names)]
    if not found:
        return ""
    first = found[0]
    names = [quote_name(name, label) for name, label in zip(first.names, first.labels, strict=True)]
    more = f", and {len(found) - 1} more pair{'s' * (len(found) > 2)}" if len(found) > 1 else ""
    numbers = f"correlation {first.correlation_x:.2f} in {samples[0]}, {first.correlation_y:.2f} in {samples[1]}"
    return f"The columns look alike one by one; what changed is how {join(names)} go together ({numbers}){more}"


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
