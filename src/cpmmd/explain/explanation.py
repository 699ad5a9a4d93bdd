"""Explanations of a result: every column, pairs of columns, the witness of rows, the AUC, a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import SAMPLES, pluralize, sanitize
from cpmmd.errors import InputError
from cpmmd.explain.column_table import Tables, difference_tables, permuted_units
from cpmmd.explain.differences import LONGEST, NAMED, ColumnDifference, PairDifference, join, quote_name
from cpmmd.explain.rows import (
    NOT_HELD_OUT,
    ExplainedRows,
    estimate_kernel_auc,
    estimate_marginal_auc,
    gather_rows,
    tested_rows_of,
)
from cpmmd.explain.values import AUC, Explanation, NotableRow
from cpmmd.kernels.base import ColumnWeights
from cpmmd.procedures.outcome import TestResult
from cpmmd.statistics.columns import Change, DataColumn, columns_of, number_values, row_value
from cpmmd.statistics.samples import stratum_means
from cpmmd.statistics.strata import Strata

VALUES_SHOWN = 50  # columns of a row that is shown
WEIGHTS_SHOWN = 3  # columns with the largest weights in a trained map
SHARED = (
    0.75  # of the pairs that changed have the column that is named; of all pairs of k columns, each has 2 / k, so .67 at most
)
# Times the odds of its even share (half of the weight among three columns, two thirds of it among two). A map starts even, and on
# samples that agree training took the leading one of 2 or 3 columns less far in 14 of 16 runs (of 12 columns farther, in most).
# So it only decides whether weights are mentioned; which columns differ is for their p-values. Odds, since a category of many
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
        The most rows for the witness and the AUC, drawn at random. Columns and pairs use all rows that were tested.
    top : int
        Number of rows of either sample to name.
    rng : int, Generator, RandomState or None
        Seed or generator of the random draws.
    names : sequence of str
        Names of the two samples in sentences.

    Returns
    -------
    Explanation
        With ``sentence``, ``columns``, ``pairs``, ``suspicious``, ``top_x``, ``top_y``, ``auc``, ...; print it for a summary.

    Notes
    -----
    Columns take one pass over the rows and a product of the test's permutations with sums over units. Their p-values control the
    family-wise error by Westfall and Young's step-down maximum. The witness and the AUC take one kernel matrix of ``max_rows``
    rows. Images are compared in patches, at most 8 x 8.

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
    columns = columns_of(material.pool, material.preparation)
    data = tested_rows_of(outcome)
    units, remarks = permuted_units(data, label_stream)
    tables = difference_tables(material.pool, columns, units, outcome.alpha, called)
    K = material.kernel.gram(material.matrix)
    witness, strata = material.strata.witness(K), material.strata
    auc, marginal = estimate_kernel_auc(material, K, fold_stream), estimate_marginal_auc(columns, material, column_stream)
    sentence = auc_sentence_of(auc, marginal, called, inside=strata.stratified) or say_in_pairs(material, tables, columns, called)
    known = {column.name: column for column in columns}
    shown = [known[column.name] for column in tables.columns[:VALUES_SHOWN]]
    (rows_x, witness_x, top_x), (rows_y, witness_y, top_y) = (
        _side(material, witness, side, sample, top, shown) for side, sample in ((strata.labels, "x"), (~strata.labels, "y"))
    )
    optimistic = [NOT_HELD_OUT] if auc is not None and not tested_rows_of(outcome).held_out else []
    notes = [*optimistic, *material.notes, *remarks, *tables.notes]
    if len(columns) > VALUES_SHOWN:
        notes.append(f"rows are shown with the {VALUES_SHOWN} columns that differ most")
    if columns[0].kind == "patch":
        notes.append("columns are patches [rows, columns] of the image; values are means over the patch")
    return Explanation(
        where=say_where(outcome, tables, called, inside=strata.stratified),
        auc_sentence=sentence,
        columns=tables.columns,
        pairs=tables.pairs,
        suspicious=tables.suspicious,
        pvalue_without=tables.pvalue_without,
        auc=auc,
        marginal_auc=marginal,
        names=called,
        witness_x=witness_x,
        witness_y=witness_y,
        rows_x=rows_x,
        rows_y=rows_y,
        top_x=top_x,
        top_y=top_y,
        held_out=data.held_out,
        notes=(*notes, *_map_notes(outcome, columns)),
        compared=strata.compared,
        outcome=outcome,
    )


def _side(
    material: ExplainedRows, witness: Array, side: Labels, sample: str, top: int, columns: Sequence[DataColumn]
) -> tuple[Rows, Array, tuple[NotableRow, ...]]:
    """Return the numbers of a sample's rows in their own order, their witness, and the rows most unlike the other sample."""
    order = np.argsort(material.rows[side])
    rows, own = material.rows[side][order], witness[side][order]
    numbers = material.row_numbers(rows)
    best = np.argsort(-own if sample == "x" else own, kind="stable")[:top].tolist()
    values = [{column.name: row_value(material.pool, int(rows[i]), column) for column in columns} for i in best]
    return numbers, own, tuple(NotableRow(sample, int(numbers[i]), float(own[i]), v) for i, v in zip(best, values, strict=True))


def estimate_auc(outcome: TestResult, *, max_rows: int = 2000, rng: RNG = 0) -> AUC:
    """Return the AUC of :func:`explain` with the same rows and draws, at the cost of one kernel matrix."""
    row_stream, fold_stream, *_ = resolve_rng(rng)[1].spawn(4)
    material = gather_rows(outcome, max_rows, row_stream)
    if not material.strata.inside:
        raise InputError(
            "The AUC is not defined for pairs or for strata with few rows. Use the effect sizes of columns instead, or test "
            "without pairs and strata."
        )
    auc = estimate_kernel_auc(material, material.kernel.gram(material.matrix), fold_stream)
    if auc is None:
        raise InputError("The AUC needs at least two rows, groups or blocks of each sample. One sample has fewer.")
    return auc


def _map_notes(outcome: TestResult, columns: Sequence[DataColumn]) -> list[str]:
    """Return a note on the largest weights of columns in a trained map, where the samples differ and a column stands out."""
    if not (outcome.reject and isinstance(outcome.kernel, ColumnWeights)):
        return []
    weights = outcome.kernel.column_weights
    seen = np.count_nonzero(weights)
    parts = [(column.label, weights[list(column.encoded)]) for column in columns]
    shares = [(label, float(part.sum()), np.count_nonzero(part) / seen) for label, part in parts if part.any()]
    if len(shares) < 2:
        return []
    leading = sorted(shares, key=lambda shown: -_odds(shown[1]) / _odds(shown[2]))[:WEIGHTS_SHOWN]
    if _odds(leading[0][1]) < STANDS_OUT * _odds(leading[0][2]):
        return []
    found = ", ".join(f"{share:.0%}{' of its weight' * (i == 0)} is on {label}" for i, (label, share, _) in enumerate(leading))
    even = [f"{share:.0%}" for *_, share in leading]
    uniform = f"{even[0]} each" if len(set(even)) == 1 else join(even)
    return [f"the trained map weights some columns more than others: {found} (uniform weights: {uniform})"]


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else np.inf


# The finding in a sentence or two: which columns, or which pair of them, and the AUC.


def say_where(outcome: TestResult, tables: Tables, names: tuple[str, str], *, inside: bool = False) -> str:
    """State where the samples differ (``inside`` strata), or that no difference was found."""
    x, y = (sanitize(name, LONGEST) for name in names)
    suspicious = {column.name for column in tables.suspicious}
    where = _name_columns([column for column in tables.columns if column.significant and column.name not in suspicious], y)
    where = f"inside strata, {where}" if where and inside else where
    if not outcome.reject:
        found = f"(p = {outcome.pvalue:.3g} at significance level {outcome.alpha:g})"
        if where:  # a test of each column: level alpha too, and the reader should know of both
            return (
                f"No difference was found in all columns together {found}. Tested one by one (adjusted for all columns), {where}."
            )
        return f"No difference was found {found}. {_suspects(tables)}".strip()
    warning = _suspects(tables)
    where = where or _name_pairs(tables.pairs, suspicious, (x, y))
    if warning:  # comes first, with the answer without these columns
        them, p = "it" if len(suspicious) == 1 else "them", tables.pvalue_without
        verdict = "the samples still differ" if p is not None and p <= outcome.alpha else "no difference is found"
        rest = f"Without {them} {verdict} (p = {p:.3g})." if p is not None else f"No other column is left without {them}."
        warning = f"{warning} {rest}"
    elif not where:
        where = "the samples differ, but no single column and no pair of columns stands out"
    return f"{warning} {where[:1].upper()}{where[1:]}{'.' * bool(where)}".strip()


def _suspects(tables: Tables) -> str:
    named = "; ".join(f"{quote_name(column.name, column.label)}: {column.why}" for column in tables.suspicious[:NAMED])
    return f"Suspicious {named}." if named else ""


def _name_columns(found: Sequence[ColumnDifference], y: str) -> str:
    """State how the leading columns differ, those that differ in the same way together; empty where none does."""
    ways: dict[str, list[str]] = {}
    for column in found[:NAMED]:
        ways.setdefault(column.words, []).append(quote_name(column.name, column.label))
    several = any(len(named) > 1 for named in ways.values())
    parts = [f"{join(named)} {'are' if len(named) > 1 else 'is'} {way}" for way, named in ways.items()]
    more = len(found) - NAMED
    rest = f"; {more} more column{'s differ' if more > 1 else ' differs'}" if more > 0 else ""
    return f"{join(parts, ', and ' if several else ' and ')} in {y}{rest}" if parts else ""


def _name_pairs(pairs: Sequence[PairDifference], suspicious: set[str], samples: tuple[str, str]) -> str:
    """State which pair of columns changed its correlation most, and the column that most pairs share; empty where none did."""
    found = [pair for pair in pairs if pair.significant and not suspicious & set(pair.names)]
    if not found:
        return ""
    shared, count = Counter(name for pair in found for name in pair.names).most_common(1)[0]
    together = count > 1 and count >= SHARED * len(found)
    first = next(pair for pair in found if shared in pair.names) if together else found[0]
    (a, b), (in_x, in_y) = map(quote_name, first.names, first.labels), first.correlations
    numbers = f"{in_x} in {samples[0]}, {in_y} in {samples[1]}"
    if together:
        a, b = (b, a) if first.names[1] == shared else (a, b)
        changed = f"{a} with {count} other columns changed, most that with {b} ({numbers})"
    else:
        count, changed = 1, f"{a} and {b} changed ({numbers})"
    more = f"; {pluralize(len(found) - count, 'more pair')} changed" if len(found) > count else ""
    return f"no single column differs, but the correlation of {changed}{more}"


def auc_sentence_of(auc: AUC | None, marginal: AUC | None, names: tuple[str, str], *, inside: bool = False) -> str:
    """State how well single rows are separated; nothing where that cannot be known."""
    if auc is None or marginal is None:
        return ""
    x, y = (sanitize(name, LONGEST) for name in names)
    between = f"a random row of {y} and a random row of {x}{' and the same stratum' * inside}"
    return f"The kernel separates {between} with AUC {auc}; the columns, one by one, with {marginal.value:.2f} (0.5 is chance)."


def say_in_pairs(material: ExplainedRows, tables: Tables, columns: Sequence[DataColumn], names: tuple[str, str]) -> str:
    """State in how many pairs the leading column is higher or lower as in all; nothing where no such column differs."""
    strata = Strata.of(material.pool, material.tested)
    suspicious = {column.name for column in tables.suspicious}
    shifted = (column for column in tables.columns if column.found is Change.LOCATION and column.name not in suspicious)
    leading = next(shifted, None)
    if not strata.paired or leading is None or leading.effect is None:
        return ""
    values = number_values(material.pool, material.tested, next(column for column in columns if column.name == leading.name))
    sides = [~np.isnan(values) & side for side in (strata.labels, ~strata.labels)]
    both = np.intersect1d(strata.of_row[sides[0]], strata.of_row[sides[1]])
    x, y = (stratum_means(values[side], strata.of_row[side])[both] for side in sides)
    count = np.count_nonzero(leading.effect.value * (y - x) > 0)
    other, sample = (sanitize(name, LONGEST) for name in names)
    column = quote_name(leading.name, leading.label)
    return f"{column[0].upper()}{column[1:]} is {leading.words} in {sample} than in {other} in {count} of {len(both)} pairs."
