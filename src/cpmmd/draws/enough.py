"""Whether a design has relabelings enough to reject at all."""

from __future__ import annotations

import math
from itertools import count

import numpy as np

from cpmmd.core.text import counted
from cpmmd.data.design import AUTO, PAIR, Design
from cpmmd.draws.labels import number_of_labels
from cpmmd.draws.layout import Layout
from cpmmd.errors import Said, Setting, TooFewUnitsError, Words

MANY = 10**100  # relabelings, more than enough for any level; their number itself may be beyond what a float holds


def require_relabelings(layout: Layout, design: Design | None, alpha: float, *, train: float = 0.0, price: float = 1.0) -> None:
    """Refuse units of a design so few that no labeling of them has a p-value of alpha, with how many there must be.

    ``train`` is the share of units that is not tested, ``price`` what p-values are multiplied by where several are combined.
    """
    if design is None or layout.strata is None:
        return
    total = number_of_labels(layout.count, layout.first, layout.strata[np.argsort(~layout.of_x, kind="stable")])
    of_x, of_y = (np.bincount(layout.strata[side]) for side in (layout.of_x, ~layout.of_x))
    swapped = bool((of_x == of_y).all())  # the samples may exchange all labels, which gives the same statistic
    least = min(1.0, price * (1 + swapped) / min(total, MANY))
    if least <= alpha + 1e-12:
        return
    x, y = layout.units
    tested = (x, y) != design.units
    needed = units_needed(design, alpha / price, train=train)
    raise TooFewUnitsError(
        "{what}{part} {have} {total} relabelings, so that no p-value below {least} is possible, above {level}: the test could "
        "never reject. At least {needed} are needed{where}{advice}.",
        what=counted(x, "pair") if design.kind == PAIR else f"{x} v {y} {design.kind}s",
        part=f" (the tested part of {design})" if tested else "",
        have="has" if (x, design.kind) == (1, PAIR) else "have",
        total=total,
        least=f"{least:.3g}",
        level=Setting("alpha", alpha),
        needed=f"{needed} pairs" if design.kind == PAIR else f"{needed} v {needed} {design.kind}s",
        where=", in one stratum, or more in several" if design.n_strata > 1 else "",
        advice=_advice(design, needed, tested),
    )


def units_needed(design: Design, alpha: float, *, train: float = 0.0) -> int:
    """Return how many units of each sample have relabelings enough, once a share of them chose the kernel."""
    tested = next(n for n in count(2) if 2 / (2**n if design.kind == PAIR else math.comb(2 * n, n)) <= alpha + 1e-12)
    return next(n for n in count(tested) if n - round(n * train) >= tested)


def _advice(design: Design, needed: int, tested: bool) -> str | Said:
    """Say how to come to enough units: all of them tested, longer samples, or separate runs named."""
    if tested:
        return "; a method that does not split tests all of them"
    if design.given.get("blocks") != AUTO or design.block_rows in (None, 1):
        return ""
    return Said(_longer_samples, design.block_rows, needed, max(1, min(design.rows) // needed))


def _longer_samples(words: Words, length: int, needed: int, shorter: int) -> str:
    groups, blocks = words.setting(Setting("groups")), words.setting(Setting("blocks", shorter))
    return (
        f"; rows depend on each other so far that blocks must be {length} rows long: take at least {needed * length} rows of "
        f"each sample, or name separate runs with {groups} (shorter blocks, {blocks}, can find differences that are none)"
    )
