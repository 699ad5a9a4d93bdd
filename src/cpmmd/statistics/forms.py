"""The squared MMD of every labeling of a layout, from a kernel's sums over pairs of its units: a class for each form it can have.

Where all rows are alike (:class:`Free`), the unbiased squared MMD is one quadratic form of the U-centred sums. Where units differ
in size or stand in strata, a labeling w of units weighs each row of unit u in stratum s by

    v_u = p_s (w_u / m_s - (1 - w_u) / n_s),

m_s and n_s being the rows that w calls X and Y in the stratum. Weights add up to zero in each stratum, so that what strata
differ in cancels, and T(w) = sum over u != u' of v_u v_u' S_uu' with S the kernel's sums over units after each stratum's mean
is taken off: the squared MMD between the samples, stratum by stratum, without pairs of rows of one unit. Those are dependent and
always get the same label, so they are left out. The shares p_s do not look at labels: proportional to the precision of a
stratum's difference. Where every stratum is a pair (:class:`Paired`), a labeling is a sign for each, and pairs of rows of one
pair are left out as well; where units of a stratum have equally many rows (:class:`EqualCounts`), m_s and n_s are those of every
labeling; :class:`General` is everything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import ClassVar

import numpy as np

from cpmmd.core.arrays import Array, Floating, Rows
from cpmmd.core.parallel import map_threads
from cpmmd.draws.labels import BLOCK_BYTES, CHUNK_BYTES, Relabelings
from cpmmd.draws.layout import Layout, sum_rows
from cpmmd.evidence import sum_or_largest, without_rounding
from cpmmd.kernels.scaled import cut
from cpmmd.statistics import mmd

PANELS = 4  # at most, of the triangular product
PANEL_ROWS = 48  # at least
COPIED_BYTES = 32 * 2**20  # a matrix of which panels are copied all at once
PIECE_ROWS = 256  # relabelings of one product
ROUNDING = 1e-7  # of what is taken off a statistic: where relabelings differ by no more, they do not differ
SHARED_ROWS = 500  # of a matrix, from which threads share the pieces: below, starting them takes longer


def form_of(layout: Layout) -> Form:
    """Return the form that the squared MMD has for a layout."""
    if layout.against:
        return Several(layout)
    if layout.strata is None:
        return Free(layout)
    general = General(layout)
    if general.paired:
        return Paired(layout)
    return EqualCounts(layout) if general.has_equal_counts else general


@dataclass(frozen=True, eq=False)
class Form(ABC):
    """How the rows of a layout are weighed under a labeling, and what follows from sums over its units."""

    layout: Layout

    unbiased: ClassVar[bool] = False  # whether it is the unbiased squared MMD: sums have no pair of a row with itself then
    sees_diagonal: ClassVar[bool] = True  # whether the diagonal of a kernel matrix of rows has a say
    block_bytes: ClassVar[int] = CHUNK_BYTES  # of labels that meet the sums at once

    @property
    @abstractmethod
    def scale(self) -> float:
        """What turns the size of sums over units into that of the statistic."""

    @property
    def centred_scale(self) -> float:
        """The same for centred sums."""
        return self.scale

    @property
    def whole_pool(self) -> bool:
        """Whether the principal directions of all rows are taken as they are, not through landmarks, where rows are few."""
        return True

    @property
    @abstractmethod
    def precision(self) -> float:
        """What the squared MMD is multiplied by for its noise to be that of a sample of one row: m n / (m + n) of alike rows."""

    def statistics(self, sums: Floating, rounding: float) -> tuple[Array, float]:
        """Return the statistic of every labeling from a kernel's sums over pairs of units, which are overwritten.

        Values that differ by no more than ``rounding`` of the size of the sums are equal; what that is is returned as well.
        """
        close = rounding * self.scale * float(np.linalg.norm(sums))
        return without_rounding(self.centre(sums).values(self.layout.labels), close), close

    @abstractmethod
    def centre(self, sums: Floating) -> Centred:
        """Return a kernel's sums over pairs of units, which are overwritten, without what cancels in the statistic."""

    @abstractmethod
    def of_labels(self, centred: Centred, block: Floating) -> Array:
        """Return the statistic of some labelings (rows of ones and zeros, which may be overwritten)."""

    @abstractmethod
    def centre_rows(self, values: Array) -> Array:
        """Return values of all rows, unit after unit, without what cancels; variances are then those of the differences."""

    @abstractmethod
    def centre_pairs(self, K: Array, offset: Array) -> Array:
        """Return the kernel matrix of all rows, whose means are ``offset``, without what cancels."""

    @abstractmethod
    def sum_centred(self, features: Array) -> Array:
        """Return the sums over units of features of all rows that add up to zero, without what else cancels."""

    @abstractmethod
    def centre_features(self, sums: Array, offset: Array) -> Array:
        """Return sums of features over units without what cancels; ``offset`` is the features' mean over all rows."""

    @abstractmethod
    def of_features(self, sums: Array, weights: Array) -> tuple[Array, Array]:
        """Return the statistics of weighted features under every labeling, and the size of what is taken off them.

        ``sums`` are those of centred features over units, each column of ``weights`` (features x members) is one member's.
        Pairs of rows in one unit always get the same label and are left out. Returned are members x labelings, and a column.
        """


@dataclass(frozen=True, eq=False)
class Centred:
    """A kernel's centred sums, ready to meet labelings: the statistic of a question about two samples."""

    form: Form
    matrix: Floating  # between units; of pairs, between their differences
    within: Array  # of each unit with itself, apart from the matrix where that has zeros there
    tolerance: float = 0.0  # values closer than this are equal but for rounding

    def values(self, draws: Relabelings, nbytes: int | None = None) -> Array:
        """Return the squared MMD of every labeling; ``nbytes`` of labels are in work at once."""
        blocks = draws.blocks(self.matrix.dtype, nbytes or self.form.block_bytes)
        return np.concatenate([self.form.of_labels(self, block) for block in blocks])


@dataclass(frozen=True, eq=False)
class Free(Form):
    """All rows alike, in units of one size: the unbiased squared MMD."""

    unbiased = True
    sees_diagonal = False
    block_bytes = BLOCK_BYTES

    @property
    def scale(self) -> float:
        return mmd.quadratic_constant(self.layout.m, self.layout.n)

    @property
    def precision(self) -> float:
        return self.layout.m * self.layout.n / len(self.layout.rows)

    @property
    def whole_pool(self) -> bool:
        """Bins go through landmarks, of which all rows may be some."""
        return self.layout.size == 1

    def centre(self, sums: Floating) -> Centred:
        """Return the sums of the U-centred kernel matrix of rows."""
        empty = np.empty(0)
        if self.layout.size == 1:
            return Centred(self, mmd.u_centre(sums, overwrite=True), empty)
        size, rows = self.layout.size, sums.sum(axis=1)
        total_rows = len(sums) * size
        offset = rows / (total_rows - 2) - size * rows.sum() / (2 * (total_rows - 1) * (total_rows - 2))
        inside = np.diag(sums) - 2 * (size - 1) * offset
        sums -= size * offset[:, None]
        sums -= size * offset
        np.fill_diagonal(sums, inside)
        return Centred(self, sums, empty)

    def of_labels(self, centred: Centred, block: Floating) -> Array:
        return np.asarray(self.scale * quadratic_forms(centred.matrix, block))

    def centre_rows(self, values: Array) -> Array:
        """Return the values: what is computed from them takes off their mean."""
        return values

    def centre_pairs(self, K: Array, offset: Array) -> Array:
        return np.asarray(K - offset - (offset[:, None] - offset.mean()))

    def sum_centred(self, features: Array) -> Array:
        """Return the features: where the whole pool is looked at, rows are units."""
        return features

    def centre_features(self, sums: Array, offset: Array) -> Array:
        return np.asarray(sums - self.layout.size * offset)

    def of_features(self, sums: Array, weights: Array) -> tuple[Array, Array]:
        """Return the squared MMD without pairs in one unit: that of units, were they rows."""
        first, second = self.layout.units
        within = 1 / (first * (first - 1)), 1 / (second * (second - 1))
        weights = weights / self.layout.size**2
        squares = sums * sums
        constant = within[1] * (squares.sum(axis=0) @ weights)
        columns = []
        for block in self.layout.labels.blocks():
            terms = np.square(block @ sums)
            terms *= mmd.quadratic_constant(first, second)
            if first != second:
                terms -= (within[0] - within[1]) * (block @ squares)
            columns.append((terms @ weights - constant).T)
        return np.concatenate(columns, axis=1), constant[:, None]


@dataclass(frozen=True, eq=False)
class _WeightedForm(Form):
    """Units of a design: rows are weighed in strata, whose means cancel."""

    @property
    def _strata(self) -> Rows:
        assert self.layout.strata is not None
        return self.layout.strata

    @cached_property
    def _order(self) -> Rows:
        return np.argsort(self._strata, kind="stable")

    @cached_property
    def _starts(self) -> Rows:
        return np.flatnonzero(np.diff(self._strata[self._order], prepend=-1))

    def _per_stratum(self, values: Floating, axis: int = 0) -> Floating:
        """Return the sums over the units of each stratum."""
        return np.asarray(np.add.reduceat(np.take(values, self._order, axis=axis), self._starts, axis=axis))

    @cached_property
    def _rows(self) -> Array:
        """Rows of each stratum."""
        return np.asarray(self._per_stratum(self.layout.counts.astype(np.float64)))

    @cached_property
    def _precisions(self) -> Array:
        """The precision of each stratum's difference, were all units of one size."""
        of_x = self._per_stratum(self.layout.of_x.astype(np.float64))
        units = self._per_stratum(np.ones(self.layout.count))
        return np.asarray(self._rows * of_x * (units - of_x) / units**2)

    @cached_property
    def _shares(self) -> Array:
        """What each stratum's difference is weighed by."""
        return np.asarray(self._precisions / self._precisions.sum())

    @property
    def precision(self) -> float:
        return float(self._precisions.sum())

    @property
    def has_equal_counts(self) -> bool:
        """Whether every labeling calls equally many rows X in each stratum."""
        counts = self.layout.counts
        largest = np.maximum.reduceat(counts[self._order], self._starts)
        return bool((largest[self._strata] == counts).all())

    @property
    def paired(self) -> bool:
        """Whether every stratum has one unit of each sample."""
        alike = 2 * len(self._starts) == self.layout.count == 2 * self.layout.first
        return alike and bool((np.diff(self._starts) == 2).all())

    def centre_rows(self, values: Array) -> Array:
        means = self._per_stratum(sum_rows(values, self.layout.starts)) / self._rows[:, None]
        return np.asarray(values - np.repeat(means[self._strata], self.layout.counts, axis=0))

    def centre_pairs(self, K: Array, offset: Array) -> Array:  # noqa: ARG002 - strata have means of their own
        return self.centre_rows(self.centre_rows(K).T)

    def sum_centred(self, features: Array) -> Array:
        return self._centre_units(np.asarray(sum_rows(features, self.layout.starts), np.float64))

    def centre_features(self, sums: Array, offset: Array) -> Array:  # noqa: ARG002 - strata have means of their own
        return self._centre_units(sums)

    def _centre_units(self, sums: Array) -> Array:
        """Take the mean of each stratum off the sums over its units."""
        means = self._per_stratum(sums) / self._rows[:, None]
        return np.asarray(sums - self.layout.counts[:, None] * means[self._strata])

    @abstractmethod
    def weights(self, labels: Floating) -> Floating:
        """Return the weights that labelings give to what ``centre`` and ``_seen`` leave."""

    def _seen(self, sums: Floating) -> Floating:
        """Return what the weights are for: sums over units."""
        return sums

    def of_features(self, sums: Array, weights: Array) -> tuple[Array, Array]:
        """Return the squared differences of weighted means, without what each unit adds by itself."""
        seen = self._seen(sums)
        within = np.square(seen) @ weights
        columns, largest = [], np.zeros((weights.shape[1], 1))
        for block in self.layout.labels.blocks():
            weighed = self.weights(block)
            terms = np.square(weighed @ seen) @ weights
            own = np.square(weighed, out=weighed) @ within
            np.maximum(largest, own.max(axis=0)[:, None], out=largest)
            columns.append((terms - own).T)
        return np.concatenate(columns, axis=1), largest


@dataclass(frozen=True, eq=False)
class Paired(_WeightedForm):
    """Every stratum has one unit of each sample: labelings are signs of the pairs' differences."""

    sees_diagonal = False  # a row with itself is in no pair of pairs

    @property
    def _unit_weights(self) -> Array:
        """What the sums over the first and the second unit of each pair are multiplied by."""
        return np.asarray(self._shares / self.layout.counts[self._order].reshape(-1, 2).T)

    def _seen(self, sums: Floating) -> Floating:
        """Return the difference of each pair's means from sums over units, in its share of the whole."""
        scale = self._unit_weights[:, :, None]
        return np.asarray(scale[0] * sums[self._order[::2]] - scale[1] * sums[self._order[1::2]])

    @property
    def scale(self) -> float:
        return float(np.square(self._unit_weights).max())

    @property
    def centred_scale(self) -> float:
        """1: differences have their weights already."""
        return 1.0

    def weights(self, labels: Floating) -> Floating:
        """Return 1 for each pair whose first unit, as they stand, is called X, and -1 for the others."""
        return np.asarray(2 * labels[:, self._order[::2]] - 1)

    def centre(self, sums: Floating) -> Centred:
        between = self._seen(self._seen(sums).T.astype(sums.dtype)).astype(sums.dtype)
        np.fill_diagonal(between, 0.0)
        return Centred(self, between, np.zeros(len(between)))

    def of_labels(self, centred: Centred, block: Floating) -> Array:
        """Return e' A e for the signs e."""
        return quadratic_forms(centred.matrix, self.weights(block))


@dataclass(frozen=True, eq=False)
class _ByUnit(_WeightedForm):
    """Labelings weigh the rows of each unit by v = a w - b."""

    @abstractmethod
    def _counted_labels(self, labels: Floating) -> Floating:
        """Return the labelings that a and b are computed from."""

    def _terms(self, labels: Floating) -> tuple[Floating, Floating]:
        """Return a and b for each unit (columns), under each of those labelings."""
        of_x = self._per_stratum(self._counted_labels(labels) * self.layout.counts.astype(labels.dtype), axis=1)
        below = (self._shares / (self._rows - of_x)).astype(labels.dtype)
        above = np.divide(self._shares, of_x, out=np.zeros_like(of_x, np.float64), where=of_x > 0).astype(labels.dtype) + below
        return above[:, self._strata], below[:, self._strata]

    def weights(self, labels: Floating) -> Floating:
        """Return the weights of the rows of each unit (columns) under each labeling (rows of ones and zeros)."""
        above, below = self._terms(labels)
        return np.asarray(labels * above - below)

    @property
    def scale(self) -> float:
        """The largest product of two weights under the observed labeling."""
        return float(np.square(self.weights(self.layout.of_x.astype(np.float64)[None])).max())

    def centre(self, sums: Floating) -> Centred:
        """Take off each stratum's mean.

        With M_sv the sums of unit v with stratum s over its rows, and G those of M: S_uv - c_u M_su,v - c_v M_sv,u + c_u c_v
        G_su,sv.
        """
        counts = self.layout.counts.astype(sums.dtype)
        rows = self._rows.astype(sums.dtype)
        means = self._per_stratum(sums) / rows[:, None]
        grand = self._per_stratum(means, axis=1) / rows
        means -= (grand / 2)[:, self._strata] * counts
        for part in cut(len(sums), mmd.CENTRED_ROWS):
            sums[part] -= means[self._strata[part]] * counts[part, None]
            sums[:, part] -= (means[self._strata[part]] * counts[part, None]).T
        within = sums.diagonal().astype(np.float64)
        np.fill_diagonal(sums, 0.0)
        return Centred(self, sums, within)


@dataclass(frozen=True, eq=False)
class General(_ByUnit):
    """Units of any sizes in any strata."""

    def _counted_labels(self, labels: Floating) -> Floating:
        return labels

    def of_labels(self, centred: Centred, block: Floating) -> Array:
        return quadratic_forms(centred.matrix, self.weights(block))


@dataclass(frozen=True, eq=False)
class EqualCounts(_ByUnit):
    """Units of a stratum have equally many rows: a and b are those of every labeling."""

    def _counted_labels(self, labels: Floating) -> Floating:
        return labels[:1]

    def of_labels(self, centred: Centred, block: Floating) -> Array:
        """Return v' S v.

        S b is zero but for the diagonal that was taken off, and what is left of b is a sum over units: labels meet the matrix as
        they are.
        """
        above, below = (part[0].astype(np.float64) for part in self._terms(block))
        linear = block @ (2 * above * below * centred.within).astype(block.dtype) - np.sum(below**2 * centred.within)
        block *= above.astype(block.dtype)
        return np.asarray(quadratic_forms(centred.matrix, block) + linear)


@dataclass(frozen=True, eq=False)
class Several(Form):
    """Several samples, by the squared MMD of each against all others.

    For rows that are all alike, the sum of (1 - n_a / N) n_a (N - n_a) / N MMD2 of sample a against the others is, but for terms
    of order 1 / n, the sum over all pairs of samples of n_a n_b / N MMD2 of one against the other: the analysis of variance in
    feature space. It is best where all samples differ, the largest of its terms where one does, so that the larger of both scores
    is the statistic. Two samples have one term twice.
    """

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The form of each sample against all others."""
        return tuple(map(form_of, self.layout.against))

    @property
    def _first(self) -> Form:
        return self.forms[0]

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        return self._first.unbiased

    @property
    def sees_diagonal(self) -> bool:  # type: ignore[override]
        return self._first.sees_diagonal

    @property
    def scale(self) -> float:
        return max(form.scale for form in self.forms)

    @property
    def precision(self) -> float:
        return sum(form.precision for form in self.forms)

    @property
    def whole_pool(self) -> bool:
        return self._first.whole_pool

    def joined(self, apart: Sequence[Array]) -> Array:
        """Return one statistic from those of each sample against all others."""
        shares = [1 - units[0] / sum(units) for units in (layout.units for layout in self.layout.against)]
        weights = [form.precision * share for form, share in zip(self.forms, shares, strict=True)]
        return sum_or_largest(apart, weights)

    def apart(self, sums: Floating, rounding: float) -> list[Array]:
        """Return the squared MMD of each sample against all others, from a kernel's sums over units, which are overwritten."""
        size, centred = float(np.linalg.norm(sums)), self._first.centre(sums)  # which takes no notice of labels
        return [
            without_rounding(replace(centred, form=form).values(form.layout.labels), rounding * form.scale * size)
            for form in self.forms
        ]

    def statistics(self, sums: Floating, rounding: float) -> tuple[Array, float]:
        return self.joined([values[None] for values in self.apart(sums, rounding)])[0], 0.0

    def centre(self, sums: Floating) -> Centred:
        return replace(self._first.centre(sums), form=self)

    def of_labels(self, centred: Centred, block: Floating) -> Array:
        """Return what labelings of the first sample against all others give."""
        return self._first.of_labels(centred, block)

    def centre_rows(self, values: Array) -> Array:
        return self._first.centre_rows(values)

    def centre_pairs(self, K: Array, offset: Array) -> Array:
        return self._first.centre_pairs(K, offset)

    def sum_centred(self, features: Array) -> Array:
        return self._first.sum_centred(features)

    def centre_features(self, sums: Array, offset: Array) -> Array:
        return self._first.centre_features(sums, offset)

    def features_apart(self, sums: Array, weights: Array) -> list[Array]:
        """Return the squared MMD of weighted features of each sample against all others."""
        found = (form.of_features(sums, weights) for form in self.forms)
        return [without_rounding(values, ROUNDING * taken_off) for values, taken_off in found]

    def of_features(self, sums: Array, weights: Array) -> tuple[Array, Array]:
        joined = self.joined(self.features_apart(sums, weights))
        return joined, np.zeros((len(joined), 1))


def quadratic_forms(centred: Floating, W: Floating) -> Array:
    """Return w' A w for each row w of ``W``, using only the lower triangle of the symmetric matrix.

    Each panel of columns from the diagonal down is one product, what lies below the diagonal block counted twice; ``W`` is taken
    some rows at a time, so that what was multiplied is summed while it is still in the cache, and threads can share them.
    """
    size, pieces = len(centred), range(0, len(W), PIECE_ROWS)
    edges = np.linspace(0, size, min(PANELS, max(1, size // PANEL_ROWS)) + 1).astype(int)
    panels = ((start, _panel(centred, start, stop)) for start, stop in pairwise(edges))
    batches = ([panel] for panel in panels) if centred.nbytes > COPIED_BYTES else [list(panels)]
    total = np.zeros(len(W))
    for batch in batches:
        work = partial(_panel_forms, batch, W)
        total += np.concatenate(map_threads(work, pieces) if size >= SHARED_ROWS else [work(first) for first in pieces])
    return total


def _panel(centred: Floating, start: int, stop: int) -> Floating:
    panel = centred[start:, start:stop].copy()
    panel[stop - start :] *= 2
    return panel


def _panel_forms(panels: Sequence[tuple[int, Floating]], W: Floating, first: int) -> Array:
    """Return w' A w over some panels, each with the row it starts at, for one piece of ``W``."""
    rows = W[first : first + PIECE_ROWS]
    total = np.zeros(len(rows))
    for start, panel in panels:
        total += np.einsum("bi,bi->b", rows[:, start : start + panel.shape[1]], rows[:, start:] @ panel)
    return total
