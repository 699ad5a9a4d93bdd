"""Explanations of a result: every column, pairs of columns, the witness of rows, an effect size, a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import SAMPLES, sanitize
from cpmmd.errors import InputError
from cpmmd.explain.column_table import Tables, difference_tables, relabelled_units
from cpmmd.explain.differences import LONGEST, NAMED, ColumnDifference, PairDifference, join, quote_name
from cpmmd.explain.rows import ExplainedRows, evidence_of, gather_rows, kernel_effect, one_by_one_effect
from cpmmd.explain.values import Effect, Explanation, RowEvidence
from cpmmd.kernels.base import ColumnWeights
from cpmmd.procedures.outcome import TestResult
from cpmmd.statistics.columns import Change, DataColumn, columns_of, number_values, row_value
from cpmmd.statistics.samples import stratum_means
from cpmmd.statistics.strata import Strata

VALUES_SHOWN = 50  # columns of a row that is shown
WEIGHTS_SHOWN = 3  # columns that a trained map looks at most
# Times the odds of its even share (half of the weight among three columns, two thirds of it among two). A map starts even, and on
# samples that agree training took the leading one of 2 or 3 columns less far in 14 of 16 runs (of 12 columns farther, in most).
# So it is a rule of when the words are worth saying; which columns differ is for their p-values. Odds, since a category of many
# levels starts with most of the weight and cannot have twice that.
STANDS_OUT = 2.0


@threads(None)
def explain(
    outcome: TestResult, *, max_rows: int = 2000, top: int = 5, rng: RNG = 0, names: Sequence[str] = SAMPLES
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
    row_stream, fold_stream, label_stream, column_stream = resolve_rng(rng)[1].spawn(4)
    material = gather_rows(outcome, max_rows, row_stream)
    every = columns_of(material.pool, material.preparation)
    evidence = evidence_of(outcome)
    units, remarks = relabelled_units(evidence, label_stream)
    tables = difference_tables(material.pool, every, units, outcome.alpha, called)
    K = material.kernel.gram(material.matrix)
    witness, strata = material.strata.witness(K), material.strata
    effect, alone = kernel_effect(material, K, fold_stream), one_by_one_effect(every, material, column_stream)
    told = effect_sentence(effect, alone, called, inside=strata.stratified) or say_in_pairs(material, tables, every, called)
    known = {column.name: column for column in every}
    shown = [known[column.name] for column in tables.columns[:VALUES_SHOWN]]
    (rows_x, witness_x, top_x), (rows_y, witness_y, top_y) = (
        _side(material, witness, side, sample, top, shown) for side, sample in ((strata.labels, "x"), (~strata.labels, "y"))
    )
    notes = [*material.notes, *remarks, *tables.notes]
    if len(every) > VALUES_SHOWN:
        notes.append(f"rows are shown with the {VALUES_SHOWN} columns that differ most")
    if every[0].kind == "patch":
        notes.append("columns are patches [rows, columns] of the image; values are means over the patch")
    return Explanation(
        where=say_where(outcome, tables, called, inside=strata.stratified),
        told=told,
        columns=tables.columns,
        pairs=tables.pairs,
        suspicious=tables.suspicious,
        pvalue_without=tables.pvalue_without,
        effect=effect,
        effect_one_by_one=alone,
        names=called,
        witness_x=witness_x,
        witness_y=witness_y,
        rows_x=rows_x,
        rows_y=rows_y,
        top_x=top_x,
        top_y=top_y,
        held_out=evidence.held_out,
        notes=(*notes, *_map_notes(outcome, every)),
        compared=strata.compared,
        outcome=outcome,
    )


def _side(
    material: ExplainedRows, witness: Array, side: Labels, sample: str, top: int, columns: Sequence[DataColumn]
) -> tuple[Rows, Array, tuple[RowEvidence, ...]]:
    """Return the numbers of one sample's rows in their own order, their witness values, and those that are most its own."""
    order = np.argsort(material.rows[side])
    rows, own = material.rows[side][order], witness[side][order]
    numbers = material.row_numbers(rows)
    best = np.argsort(-own if sample == "x" else own, kind="stable")[:top].tolist()
    values = [{column.name: row_value(material.pool, int(rows[i]), column) for column in columns} for i in best]
    return numbers, own, tuple(RowEvidence(sample, int(numbers[i]), float(own[i]), v) for i, v in zip(best, values, strict=True))


def effect_size(outcome: TestResult, *, max_rows: int = 2000, rng: RNG = 0) -> Effect:
    """Return the effect size alone: that of :func:`explain` with the same rows and draws, for the price of one kernel matrix."""
    row_stream, fold_stream, *_ = resolve_rng(rng)[1].spawn(4)
    material = gather_rows(outcome, max_rows, row_stream)
    if not material.strata.inside:
        raise InputError("How well rows are told apart takes rows that are not compared in pairs, nor in strata of few rows.")
    effect = kernel_effect(material, material.kernel.gram(material.matrix), fold_stream)
    if effect is None:
        raise InputError("How well rows are told apart takes two rows, groups or blocks of each sample. Got one of a sample.")
    return effect


def _map_notes(outcome: TestResult, columns: Sequence[DataColumn]) -> list[str]:
    """Say which columns a trained map looks at most, where what it looked at was found to differ and one stands out."""
    if not (outcome.reject and isinstance(outcome.kernel, ColumnWeights)):
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
    spread = f"{evenly[0]} each" if len(set(evenly)) == 1 else join(evenly)
    return [f"the trained map looks at some columns more than at others: {said} (evenly spread, {spread})"]


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else np.inf


# The finding in a sentence or two: which columns, or which pair of them, and how well rows are told apart.


def say_where(outcome: TestResult, tables: Tables, names: tuple[str, str], *, inside: bool = False) -> str:
    """Say where the samples differ (``inside`` strata), or that no difference was found."""
    x, y = (sanitize(name, LONGEST) for name in names)
    suspicious = {one.name for one in tables.suspicious}
    differ = _name_columns([one for one in tables.columns if one.significant and one.name not in suspicious], y)
    if differ and inside:
        differ = f"Inside strata, {_small(differ)}"
    if not outcome.reject:
        found = f"No difference was found (p = {outcome.pvalue:.3g} at level {outcome.alpha:g})"
        if differ:  # a test of each column: level alpha too, and the reader should know of both
            return f"{found} in all columns together, but one by one (adjusted for all columns) {_small(differ)}."
        return f"{found}. {_suspects(tables)}".strip()
    warning, where = _suspects(tables), differ or _name_pair(tables.pairs, suspicious, (x, y))
    if warning:  # comes first, with what is left without these columns
        them, p = "it" if len(suspicious) == 1 else "them", tables.pvalue_without
        verdict = "the samples still differ" if p is not None and p <= outcome.alpha else "no difference is found"
        rest = f"Without {them} {verdict} (p = {p:.3g})." if p is not None else f"No other column is left without {them}."
        warning = f"{warning} {rest}"
    elif not where:
        where = "The samples differ, but no single column and no pair of columns stands out"
    return f"{warning} {where}{'.' * bool(where)}".strip()


def _small(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}"


def _suspects(tables: Tables) -> str:
    named = "; ".join(f"{quote_name(one.name, one.label)}: {one.why}" for one in tables.suspicious[:NAMED])
    return f"Suspicious {named}." if named else ""


def _name_columns(found: Sequence[ColumnDifference], y: str) -> str:
    """Say how the leading columns differ, those that differ in the same way together; empty where none does."""
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
    found = [pair for pair in pairs if pair.significant and not suspicious & set(pair.names)]
    if not found:
        return ""
    first = found[0]
    names = [quote_name(name, label) for name, label in zip(first.names, first.labels, strict=True)]
    more = f", and {len(found) - 1} more pair{'s' * (len(found) > 2)}" if len(found) > 1 else ""
    numbers = f"correlation {first.correlation_x:.2f} in {samples[0]}, {first.correlation_y:.2f} in {samples[1]}"
    return f"The columns look alike one by one; what changed is how {join(names)} go together ({numbers}){more}"


def effect_sentence(effect: Effect | None, alone: Effect | None, names: tuple[str, str], *, inside: bool = False) -> str:
    """Say how well single rows are told apart; nothing where that cannot be known."""
    if effect is None or alone is None:
        return ""
    x, y = (sanitize(name, LONGEST) for name in names)
    other = f"a random row of {x}{' and the same stratum' * inside}"
    told = f"By the test's kernel a random row of {y} looks more like {y} than {other} does {effect}"
    return f"{told}, by its columns one by one {alone.probability:.0%}; 50% would be chance."


def say_in_pairs(material: ExplainedRows, tables: Tables, columns: Sequence[DataColumn], names: tuple[str, str]) -> str:
    """Say in how many pairs the leading column is higher or lower as in all; nothing where no such column differs."""
    strata = Strata.of(material.pool, material.tested)
    suspicious = {one.name for one in tables.suspicious}
    moved = (one for one in tables.columns if one.found is Change.LOCATION and one.name not in suspicious)
    leading = next(moved, None)
    if not strata.paired or leading is None or leading.effect is None:
        return ""
    values = number_values(material.pool, material.tested, next(one for one in columns if one.name == leading.name))
    of = [~np.isnan(values) & side for side in (strata.labels, ~strata.labels)]
    both = np.intersect1d(strata.of_row[of[0]], strata.of_row[of[1]])
    x, y = (stratum_means(values[side], strata.of_row[side])[both] for side in of)
    count = np.count_nonzero(leading.effect.value * (y - x) > 0)
    other, sample = (sanitize(name, LONGEST) for name in names)
    said = f"{quote_name(leading.name, leading.label)} is {leading.words} in {sample} than in {other}"
    return f"{said} in {count} of {len(both)} pairs."
