"""Exact permutation p-values from a kernel matrix in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from cpmmd.core.arrays import Array, Floating
from cpmmd.core.parallel import map_threads
from cpmmd.permutation import mmd
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.ranking import Ranking

PANELS = 4  # at most, of the triangular product
PANEL_ROWS = 48  # at least
COPIED_BYTES = 32 * 2**20  # a matrix of which panels are copied all at once
PIECE_ROWS = 256  # relabelings of one product
SHARED_ROWS = 500  # of a matrix, from which threads share the pieces: below, starting them takes longer


def permutation_test(K: Array, m: int, labels: Relabelings, *, overwrite: bool = False) -> Ranking:
    """Return the permutation p-value of the unbiased squared MMD for one kernel matrix.

    Parameters
    ----------
    K : array
        Kernel matrix of the pool, X first.
    m : int
        Number of rows of X, under every labeling.
    labels : Relabelings
        Of the rows.
    overwrite : bool
        Whether ``K`` may be used as working memory.
    """
    seen = K if overwrite else K.copy()
    np.fill_diagonal(seen, 0.0)  # before the mean: beside ones on the diagonal, those of a sharp kernel would count as rounding
    mean = float(seen.mean())
    centred = mmd.u_centre(seen, overwrite=True)
    return rank_relabelings(centred, labels, constant=mmd.quadratic_constant(m, len(K) - m), mean=mean)


def rank_relabelings(centred: Floating, labels: Relabelings, *, constant: float, mean: float) -> Ranking:
    """Rank the statistic ``constant * w' A w`` of the observed labeling among the others.

    ``mean`` is that of the matrix before it was centred, without pairs that the statistic leaves out, for the tie tolerance.
    """
    values = constant * np.concatenate([quadratic_forms(centred, block) for block in labels.blocks()])
    return Ranking.of(values, tolerance=constant * tie_tolerance(centred, mean), exhaustive=labels.exhaustive)


def tie_tolerance(centred: Floating, mean: float) -> float:
    """Return the difference of two quadratic forms that rounding alone can make.

    Notes
    -----
    Two parts: of the sums (eps times what was summed before centring), and of the kernel values themselves, 1e-9 of the
    form's spread over relabelings, which is of the order of |K~|_F. A tie that is none then happens once in 1e9.
    """
    flat = centred.ravel()
    spread = math.sqrt(float(flat @ flat))
    return 1e-9 * spread + 8 * float(np.finfo(np.float64).eps) * abs(mean) * centred.size


def quadratic_forms(centred: Floating, W: Floating) -> Array:
    """Return w' A w for each row w of ``W``, using only the lower triangle of the symmetric matrix.

    Each panel of columns from the diagonal down is one product, what lies below the diagonal block counted twice; ``W`` is taken
    some rows at a time, so that what was multiplied is summed while it is still in the cache, and threads can share them.
    """
    size, pieces = len(centred), range(0, len(W), PIECE_ROWS)
    edges = np.linspace(0, size, min(PANELS, max(1, size // PANEL_ROWS)) + 1).astype(int)
    panels = ((start, _panel(centred, start, stop)) for start, stop in pairwise(edges))
    batches = ([one] for one in panels) if centred.nbytes > COPIED_BYTES else [list(panels)]
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
