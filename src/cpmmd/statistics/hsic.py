"""HSIC (Gretton et al. 2005): how far the kernel matrices of two tables, row by row, go together.

With centred matrices K and L of n rows, HSIC(p) = sum_ij K_ij L_p(i)p(j) / n^2 for a re-pairing p: the biased estimate, zero in
the limit only where the tables are independent. An action moves the rows of L, and the products with K are all that changes.

In features (K = F F', L = G G') HSIC is the sum of squares of the cross-covariances of F and G. Taken in principal directions,
with variances l_k of F and m_j of G, each square has a weight of its own: l_k m_j for HSIC, and
l_k / (l_k + g l_1) m_j / (m_j + g m_1) with a spectral parameter g, under which directions of small variance are heard as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from cpmmd.core.arrays import Array, Rows
from cpmmd.draws.labels import units_by_stratum
from cpmmd.draws.pairings import Pairings, Round, Shifts
from cpmmd.evidence import without_rounding

# Of |K|_F |L|_F, the largest that the sum of products can be: its n^2 terms round by far less, and closer values are equal.
TIE = 1e-12
ROUNDING = 1e-10  # of the sum of squares of all features: statistics that differ by less do not differ
CHUNK_ROWS = 16_384  # rows whose features are held at once
BLOCK_BYTES = 32 * 2**20  # of products of features that are held at once


@dataclass(frozen=True, eq=False)
class HSIC:
    """Centred kernel matrices, ready to meet re-pairings."""

    first: Array
    second: Array

    @classmethod
    def of(cls, K: Array, L: Array, strata: Rows | None = None) -> HSIC:
        """Return the statistic of two kernel matrices whose rows belong together; rows are centred inside strata."""
        return cls(_centre(K, strata), _centre(L, strata))

    @property
    def tolerance(self) -> float:
        """Values closer than this are equal but for rounding."""
        return TIE * float(np.linalg.norm(self.first) * np.linalg.norm(self.second)) / len(self.first) ** 2

    def values(self, draws: Pairings | Shifts) -> Array:
        """Return HSIC under every re-pairing."""
        if isinstance(draws, Shifts) and all(len(some.cycles) == 1 for some in draws.rounds):
            found = np.concatenate([self._turned(some) for some in draws.rounds])
        else:
            found = np.array([np.vdot(self.first, self.second[np.ix_(p, p)]) for block in draws.blocks() for p in block])
        return np.asarray(found) / len(self.first) ** 2

    def _turned(self, some: Round) -> Array:
        """Return the sums of products under the turns of one cycle: cross-correlations of places that are equally far apart."""
        total = 0.0
        places, width = some.cycles[0].shape
        along = np.arange(places)
        for start in range(0, places, step := max(1, BLOCK_BYTES // (64 * places * width**2))):
            apart = (along[:, None] + np.arange(start, min(start + step, places))) % places
            f, g = (
                fft.rfft(matrix[rows[:, None, :, None], rows[apart][:, :, None, :]].reshape(places, -1), axis=0)
                for matrix, rows in ((self.first, some.cycles[0]), (self.second, some.partners[0]))
            )
            total = total + (f.conj() * g).sum(axis=1)
        return np.asarray(fft.irfft(total, n=places)[some.turns[:, 0]])


def _centre(K: Array, strata: Rows | None = None) -> Array:
    """Return the kernel matrix with the means of rows and columns taken off, inside strata where there are some."""
    if strata is None:
        means = K.mean(axis=0)
        return np.asarray(K - means - (means[:, None] - means.mean()))
    centred = np.array(K)
    for axis in (0, 1):
        for inside in units_by_stratum(strata):
            at = (inside, slice(None)) if axis == 0 else (slice(None), inside)
            centred[at] -= centred[at].mean(axis=axis, keepdims=True)
    return centred


@dataclass(frozen=True, eq=False)
class Side:
    """Features of one table in principal directions."""

    variances: Array  # of each direction, in units of the largest
    features: Callable[[Rows], Array]  # of some rows: centred, each of variance 1

    def weights(self, gammas: Sequence[float]) -> Array:
        """Return what the squares of each direction (a row) count at each spectral parameter; infinity is HSIC itself."""
        l = self.variances[:, None]  # noqa: E741 - as in the formula
        g = np.array(gammas)
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(g), l, l / (l + np.where(np.isinf(g), 1.0, g)))


def spectral_hsic(first: Side, second: Side, gammas: Sequence[float], draws: Pairings | Shifts) -> Array:
    """Return HSIC at every spectral parameter (rows) under every re-pairing (columns), less the part of rows with themselves.

    That part, the sum of K_ii L_p(i)p(i), moves with the re-pairing and says nothing about dependence of different rows.
    """
    a, b = first.weights(gammas), second.weights(gammas)
    values = np.zeros((len(gammas), len(draws)))
    if not len(a) or not len(b):
        return values
    rows = 0
    for where, products, own, rows in cross_sums(draws, _with_own(first, a), _with_own(second, b)):
        squares = np.square(products / rows)
        seen = np.matmul(squares.reshape(-1, len(b)), b).reshape(len(squares), len(a), len(gammas))
        values[:, where] = (np.einsum("ukg,kg->ug", seen, a) - own / rows**2).T
    rounding = ROUNDING * (a.sum(axis=0) * b.sum(axis=0) / rows)[:, None]
    return without_rounding(values, rounding)


Load = Callable[[Rows], tuple[Array, Array]]  # features of some rows, and values that are multiplied column by column


def _with_own(side: Side, weights: Array) -> Load:
    """Return what loads the features of rows, and beside them the kernel of each row with itself."""

    def load(rows: Rows) -> tuple[Array, Array]:
        features = side.features(rows)
        return features, np.square(features) @ weights

    return load


def cross_sums(draws: Pairings | Shifts, first: Load, second: Load) -> Iterator[tuple[slice, Array, Array, int]]:
    """Yield sums over rows, of products of all features of both tables and of matched values, for some re-pairings at a time.

    The slice says which, the last number how many rows there are.
    """
    if isinstance(draws, Shifts):
        start = 0
        for some in draws.rounds:
            where = slice(start, start + len(some.turns))
            yield where, *_turned_sums(some, first, second), sum(cycle.size for cycle in some.cycles)
            start = where.stop
        return
    rows = draws.partners.shape[1]
    (f, own), (g, others) = first(np.arange(rows)), second(np.arange(rows))
    step = max(1, BLOCK_BYTES // (8 * max(f.shape[1], rows) * max(1, g.shape[1])))
    for start in range(0, len(draws), step):
        partners = draws.partners[start : start + step]
        matched = np.einsum("ng,ung->ug", own, others[partners])
        yield slice(start, start + len(partners)), np.matmul(f.T, g[partners]), matched, rows


def _turned_sums(some: Round, first: Load, second: Load) -> tuple[Array, Array]:
    """Return the sums of all turns of a round: cross-correlations around each cycle."""
    products = matched = np.zeros(0)
    for cycle, partner, turn in zip(some.cycles, some.partners, some.turns.T, strict=True):
        places, width = cycle.shape
        spectrum: Array | None = None
        for part in range(0, width, step := max(1, CHUNK_ROWS // places)):
            (f, own), (g, others) = (
                [fft.rfft(values.reshape(*rows.shape, -1), axis=0) for values in load(rows.ravel())]
                for load, rows in ((first, cycle[:, part : part + step]), (second, partner[:, part : part + step]))
            )
            of_products = np.matmul(f.conj().transpose(0, 2, 1), g)
            of_matched = (own.conj() * others).sum(axis=1)
            if spectrum is None:
                spectrum, matching = of_products, of_matched
            else:
                spectrum += of_products
                matching += of_matched
        around = fft.irfft(spectrum, n=places, axis=0)[turn]
        along = fft.irfft(matching, n=places, axis=0)[turn]
        products, matched = (around, along) if not products.size else (products + around, matched + along)
    return products, matched
