"""From groups, strata, pairs and blocks to one design of the pool: what belongs together, and what may change sides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cpmmd.core.arrays import Labels, Rows
from cpmmd.core.text import counted
from cpmmd.data.designs import BLOCK, GROUP, PAIR, ROW, Design
from cpmmd.data.table import Objects
from cpmmd.errors import InputError, Setting, name_some

MOST_STRATA = 1000  # more are no strata but groups, pairs or names of rows

Coded = Mapping[str, tuple[Rows, Objects]]


def make_design(
    coded: Coded, sizes: tuple[int, int], block_rows: int | None, given: dict[str, str]
) -> tuple[Design, Rows, list[str]]:
    """Return the design, the rows of the pool that it is of, and notes on what was left out.

    Parameters
    ----------
    coded
        A number for each row of the pool, x first, and what the numbers stand for, under ``groups``, ``strata`` and ``pairs``.
    sizes
        Rows of X and of Y.
    block_rows
        Rows of a block, None where there are none.
    given
        The arguments, for the design's own words.
    """
    in_y = np.arange(sum(sizes)) >= sizes[0]
    kept: Labels = np.ones(len(in_y), dtype=bool)
    notes: list[str] = []
    if "pairs" in coded:
        unit = stratum = _pairs(coded, in_y)
        kind = PAIR
    else:
        stratum, unit, kind = _strata(coded, in_y), np.arange(len(in_y)), ROW
        if "groups" in coded:
            unit, kind = coded["groups"][0], GROUP
            stratum, notes = _groups_in_strata(coded, stratum, in_y)
        kept, left_out = _in_both(coded, stratum, in_y)
        notes = left_out + notes
    rows = np.flatnonzero(kept)
    m = int(np.count_nonzero(rows < sizes[0]))
    if block_rows is not None:
        unit, kind = _blocks(stratum[rows], in_y[rows], block_rows), BLOCK
    else:
        unit = unit[rows]
    design = Design.of(unit, stratum[rows], (m, len(rows) - m), kind=kind, block_rows=block_rows, given=given)
    return design, rows, notes


def _pairs(coded: Coded, in_y: Labels) -> Rows:
    """Return the pair of each row; where groups are given, too, all pairs of a group are one."""
    pair, names = coded["pairs"]
    lonely = _in_one(pair, in_y)
    if lonely.any():
        raise InputError(
            "Every pair must have rows in both samples. {count} in one only: {pairs}. Leave them out, or add their partners.",
            parameter="pairs",
            count=counted(int(lonely.sum()), "stands", "stand"),
            pairs=name_some(names[lonely]),
        )
    if "groups" not in coded:
        return pair
    group = coded["groups"][0]
    _require_inside(pair, group, names, what="pair", of="group", parameter="pairs")
    return group


def _strata(coded: Coded, in_y: Labels) -> Rows:
    """Return the stratum of each row; some stratum has rows of both samples."""
    if "strata" not in coded:
        return np.zeros(len(in_y), dtype=np.intp)
    stratum, names = coded["strata"]
    if len(names) > MOST_STRATA:
        raise InputError(
            "Strata must be few enough to have many rows each, at most {most}. Got {count}; if they name units that rows belong "
            "to, pass them as {groups}, if one row of each sample as {pairs}, or make fewer of them.",
            parameter="strata",
            most=MOST_STRATA,
            count=len(names),
            groups=Setting("groups"),
            pairs=Setting("pairs"),
        )
    if _in_one(stratum, in_y).all():
        raise InputError(
            "A stratum must have rows of both samples. None of the {count} has, such as {names}; labels cannot move.",
            parameter="strata",
            count=len(names),
            names=name_some(names[:3]),
        )
    return stratum


def _in_both(coded: Coded, stratum: Rows, in_y: Labels) -> tuple[Labels, list[str]]:
    """Return which rows have a stratum of both samples, and a note on the others; groups in both have made theirs by now."""
    kept = ~_in_one(stratum, in_y)[stratum]
    if kept.all():
        return kept, []
    alone = np.unique(stratum[~kept])
    left = int(np.count_nonzero(~kept & ~in_y)), int(np.count_nonzero(~kept & in_y))
    apart = "" if np.array_equal(stratum, coded["strata"][0]) else ", but for groups in both,"
    names = name_some(coded["strata"][1][alone])
    note = f"{counted(len(alone), 'stratum', 'strata')} of one sample only{apart} left out: {names}"
    return kept, [f"{note} ({counted(left[0], 'row')} of the first sample, {left[1]} of the second)"]


def _groups_in_strata(coded: Coded, stratum: Rows, in_y: Labels) -> tuple[Rows, list[str]]:
    """Return the strata of groups: a group that stands in both samples is a stratum of its own, where strata allow that."""
    group, names = coded["groups"]
    if "strata" in coded:
        _require_inside(group, stratum, names, what="group", of="stratum", parameter="groups")
    both = ~_in_one(group, in_y)
    if not both.any():
        return stratum, []
    if "strata" not in coded:
        raise InputError(
            "A group must stand in one sample, for it changes sides whole. {count} in both: {groups}. If the same groups "
            "were seen twice, pass {pairs} instead; if labels should move inside them, {strata}.",
            parameter="groups",
            count=counted(int(both.sum()), "stands", "stand"),
            groups=name_some(names[both]),
            pairs=Setting("pairs"),
            strata=Setting("strata"),
        )
    own = stratum.max() + 1 + group
    note = f"{counted(int(both.sum()), 'group stands', 'groups stand')} in both samples: their two parts change places"
    return np.where(both[group], own, stratum), [note]


def _blocks(stratum: Rows, in_y: Labels, length: int) -> Rows:
    """Return the block of each row: consecutive rows of one sample and stratum, cut as evenly as ``length`` allows."""
    block, last = np.empty(len(stratum), dtype=np.intp), 0
    of = stratum * 2 + in_y
    order = np.argsort(of, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
        count = max(1, len(rows) // length)
        block[rows] = last + np.arange(len(rows)) * count // len(rows)
        last += count
    return block


def _in_one(code: Rows, in_y: Labels) -> Labels:
    """Return for each number whether it stands in one sample only."""
    count = int(code.max(initial=-1)) + 1
    return np.asarray((np.bincount(code[~in_y], minlength=count) == 0) | (np.bincount(code[in_y], minlength=count) == 0))


def _require_inside(inner: Rows, outer: Rows, names: Objects, *, what: str, of: str, parameter: str) -> None:
    """Refuse an inner unit that stands in several outer ones."""
    both = np.unique(np.column_stack([inner, outer]), axis=0)[:, 0]
    torn = np.flatnonzero(np.bincount(both, minlength=len(names)) > 1)
    if len(torn):
        raise InputError(
            "A {what} must stand in one {of}. {count} in several: {names}.",
            parameter=parameter,
            what=what,
            of=of,
            count=counted(len(torn), "stands", "stand"),
            names=name_some(names[torn]),
        )
