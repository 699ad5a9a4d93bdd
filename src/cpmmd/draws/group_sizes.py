"""Groups whose sizes differ: cut to one size, which is exact whatever their sizes, and the exact test of the sizes themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cpmmd.core.arrays import Array, Objects, Rows
from cpmmd.core.seeds import keyed_rng
from cpmmd.core.text import pluralize
from cpmmd.data.design import CUT, GROUP, PAIR, CutGroups, Design, DesignOptions
from cpmmd.data.pool import Pool, take_rows
from cpmmd.draws.labels import LabelCodes, Relabelings, units_by_stratum
from cpmmd.errors import Note, ParameterReference

LEFT_OUT = (
    1 / 3
)  # share of the smaller sample's groups that may be left out, so that small groups do not cut all others to their size
# Assumed between the rows of a group, to weigh groups against their rows: the variance of a mean of s rows is r + (1 - r) / s. A
# wrong guess costs power only.
INTRACLASS_CORRELATION = 0.1
PERMUTATIONS = 999  # of the test of sizes
THRESHOLDS = 32  # sizes at which distributions are compared, at most
KEPT_NOTE = (
    "groups differ in size and all their rows are tested: the p-value is exact only if groups were assigned to the samples at "
    "random, or sizes have the same distribution in both"
)
CUT_NOTE = (
    "{kind} have {of_x} in the first sample and {of_y} in the second. Only groups of one size are exchangeable, so each was cut "
    "to {size}, drawn at random{smaller}: {kept_x} of {rows_x} and {kept_y} of {rows_y} are compared. An exact test of the sizes "
    "themselves has p = {pvalue}. If groups were assigned to the samples at random, {keep} compares all rows"
)

SEVERAL_CUT_NOTE = (
    "{kind} have {sizes}. Only groups of one size are exchangeable, so each was cut to {size}, drawn at random: {kept} of "
    "{rows} are compared. An exact test of the sizes themselves has p = {pvalue}. If groups were assigned to the samples at "
    "random, {keep} compares all rows"
)


def cut_groups(pool: Pool, asked: DesignOptions, rng: np.random.Generator, *, names: Objects | None = None) -> Pool:
    """Return the pool with groups of one size in each stratum; the same pool where they are so already, or are to be kept."""
    if pool.design is None or not differ_in_size(pool.design):
        return pool
    if asked.group_sizes != CUT:
        return replace(pool, notes=(*pool.notes, KEPT_NOTE))
    rows, design, note = cut_design(pool.design, rng, names=names)
    return replace(take_rows(pool, rows), design=design, notes=(*pool.notes, note))


def differ_in_size(design: Design) -> bool:
    """Whether groups, or the two sides of pairs, differ in their numbers of rows inside a stratum."""
    counts = np.bincount(design.unit, minlength=design.size)
    largest = np.zeros(int(design.strata.max()) + 1, dtype=np.intp)
    np.maximum.at(largest, design.strata, counts)
    return design.kind in (GROUP, PAIR) and bool((counts < largest[design.strata]).any())


def cut_design(design: Design, rng: np.random.Generator, *, names: Objects | None = None) -> tuple[Rows, Design, Note]:
    """Return rows of groups, or of the two sides of pairs, such that all are of one size in each stratum, and their design.

    Rows are drawn from a stream that ``rng`` spawns. With ``names``, the group of each row, the rows of a group are taken in an
    order that depends on the generator and its name alone: a monitor tests a group several times, with the same rows first.
    """
    counts = np.bincount(design.unit, minlength=design.size)
    size = common_sizes(design, counts)[design.strata]
    row_stream, size_stream = rng.spawn(2)
    keys = row_stream.random(len(design.unit)) if names is None else _keys_by_name(names, int(row_stream.integers(2**63)))
    rows = _draw_rows(design.unit, keys, np.where(counts < size, 0, size))
    ends = np.searchsorted(rows, np.cumsum(design.rows)[:-1])
    made = design.take(rows, *np.diff([0, *ends]).tolist())
    left = np.bincount(made.unit)
    pvalue = pvalue_of_sizes(design, counts, size_stream)
    cut = CutGroups((int(left.min()), int(left.max())), design.rows, design.units, pvalue)
    return rows, replace(made, cut=cut), _note(design, counts, made, cut)


def common_sizes(design: Design, counts: Rows) -> Rows:
    """Return the size that units of each stratum are cut to; smaller ones are left out, a third of the smallest sample's at most.

    Of the sizes that this allows, it is the one at which the means of the groups left have the most precision. It depends on all
    sizes of the stratum and on how many units each sample has, never on which sample a unit is of.
    """
    order = np.lexsort((counts, design.strata))
    strata = design.strata[order]
    starts = np.flatnonzero(np.diff(strata, prepend=-1))
    parts = np.split(design.strata, np.cumsum(design.units)[:-1])
    units = np.array([np.bincount(part, minlength=len(starts)) for part in parts])
    most = (LEFT_OUT * units.min(axis=0)).astype(np.intp)
    ascending = counts[order]
    sizes = ascending[starts].copy()
    for stratum in np.flatnonzero(most):
        own = ascending[starts[stratum] : starts[stratum] + units[:, stratum].sum()]
        left = len(own) - np.searchsorted(own, own[: most[stratum] + 1])
        variance = INTRACLASS_CORRELATION + (1 - INTRACLASS_CORRELATION) / own[: most[stratum] + 1]
        sizes[stratum] = own[np.argmax(left / variance)]
    return sizes


def _draw_rows(unit: Rows, keys: Array, take: Rows) -> Rows:
    """Return the rows with the smallest keys, so many of each unit, in the order they came in."""
    order = np.lexsort((keys, unit))
    counts = np.bincount(unit, minlength=len(take))
    place = np.arange(len(unit)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[place < np.repeat(take, counts)])


def _keys_by_name(names: Objects, seed: int) -> Array:
    """Return a random number for each row that depends on the seed, the name of its group and its place in that alone."""
    groups, number = np.unique(names.astype(str), return_inverse=True)
    keys = np.empty(len(names))
    for rows in units_by_stratum(np.asarray(number).ravel()):
        keys[rows] = keyed_rng(seed, str(groups[number[rows[0]]])).random(len(rows))
    return keys


def pvalue_of_sizes(design: Design, counts: Rows, rng: np.random.Generator) -> float:
    """Return the exact p-value of whether sizes of units differ between the samples: a Cramér-von Mises test inside strata."""
    at = np.unique(np.quantile(counts, np.linspace(0, 1, THRESHOLDS), method="lower"))[:-1]
    below = (counts[:, None] <= at).astype(np.float64)
    units = np.bincount(design.strata).astype(np.float64)
    means = np.column_stack([np.bincount(design.strata, column) for column in below.T]) / units[:, None]
    below -= means[design.strata]
    if len(design.units) > 2:
        codes = LabelCodes.draw(np.repeat(np.arange(len(design.units)), design.units), PERMUTATIONS, rng, strata=design.strata)
        labelled = [(codes.of(sample), count) for sample, count in enumerate(design.units)]
    else:
        labelled = [(Relabelings.draw(design.size, design.first, PERMUTATIONS, rng, strata=design.strata), 1)]
    apart = [
        np.concatenate([np.square(block @ below).sum(axis=1) for block in labels.blocks()]) / count for labels, count in labelled
    ]
    values = np.sum(apart, axis=0)
    return float(np.count_nonzero(values >= values[0] * (1 - 1e-9) - 1e-9) / len(values))


def _note(design: Design, counts: Rows, made: Design, cut: CutGroups) -> Note:
    kind = "the halves of pairs" if design.kind == PAIR else "groups"
    if len(design.units) > 2:
        return Note(
            SEVERAL_CUT_NOTE,
            kind="the parts of subjects" if design.kind == PAIR else kind,
            sizes=_range(counts),
            size=cut.size,
            kept=sum(made.rows),
            rows=pluralize(sum(design.rows), "row"),
            pvalue=f"{cut.sizes_pvalue:.3g}",
            keep=ParameterReference("group_sizes", "keep"),
        )
    lost = [before - after for before, after in zip(design.units, made.units, strict=True)]
    smaller = f", and {lost[0]} and {lost[1]} smaller groups were left out" if sum(lost) else ""
    return Note(
        CUT_NOTE,
        kind=kind,
        of_x=_range(counts[: design.first]),
        of_y=_range(counts[design.first :]),
        size=cut.size,
        smaller=smaller,
        kept_x=made.rows[0],
        rows_x=pluralize(design.rows[0], "row"),
        kept_y=made.rows[1],
        rows_y=design.rows[1],
        pvalue=f"{cut.sizes_pvalue:.3g}",
        keep=ParameterReference("group_sizes", "keep"),
    )


def _range(counts: Rows) -> str:
    low, high = int(counts.min()), int(counts.max())
    return pluralize(low, "row") if low == high else f"{low} to {high} rows"
