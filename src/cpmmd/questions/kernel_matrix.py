"""The exact test for a kernel of your own: all it needs is the kernel matrix of the pooled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.parallel import threads
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.design import AUTO, BLOCKS_NOTE, CUT, Design, DesignOptions, all_codes, make_design
from cpmmd.data.table import read_table
from cpmmd.draws.group_sizes import KEPT_NOTE, cut_design, differ_in_size
from cpmmd.draws.layout import Layout, require_relabelings
from cpmmd.engines.dense import rank_matrix
from cpmmd.engines.fixed_kernel import Engine, rank_spectral
from cpmmd.engines.memory import require_dense
from cpmmd.errors import InputError, name_keywords
from cpmmd.evidence import Ranking
from cpmmd.procedures.base import OWN_PERMUTATIONS, SQUARED_MMD, RunOptions, note_powerless
from cpmmd.procedures.outcome import TestResult
from cpmmd.procedures.split import SPECTRAL
from cpmmd.questions.options import TestOptions

METHOD = "kernel matrix"
LARGEST = 1e150  # its square, and the sums of as many rows as fit memory, are finite


@name_keywords
def kernel_matrix_test(
    K: Any,
    m: int,
    *,
    gammas: Sequence[float] = (),
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
    groups: Any = None,
    strata: Any = None,
    pairs: Any = None,
    blocks: int | None = None,
    group_sizes: str = CUT,
) -> TestResult:
    """Test whether two samples come from the same distribution, given the kernel matrix of both.

    For graphs, texts, trees or anything else that has a kernel. The kernel must not have been chosen by looking at which row
    belongs to which sample; otherwise choose it on other rows (see :class:`SplitTest`).

    Parameters
    ----------
    K : array of shape (N, N)
        Kernel matrix of the pooled rows, those of the first sample first: symmetric and finite.
    m : int
        Number of rows of the first sample.
    gammas : sequence of float
        Spectral parameters, such as ``(1e-1, 1e-2, 1e-3)``: beside the squared MMD, statistics whose principal directions of the
        kernel are divided by their variance plus this share of the largest; the largest tail score is ranked, under every
        permutation alike. This finds differences in directions of small variance, at the cost of the eigenvectors of the whole
        matrix.
    alpha, n_permutations, rng, n_jobs, memory_limit, progress
        As for :func:`two_sample_test`. All C(N, m) permutations are used where they are fewer than ``n_permutations``.
    groups, strata, pairs : pair of arrays, optional
        The group, stratum or pair of each row, one array for each sample, as for :func:`two_sample_test`. Every stratum must have
        rows of both samples.
    blocks : int, optional
        Consecutive rows that are permuted as a whole.
    group_sizes : str
        As for :func:`two_sample_test`.

    Returns
    -------
    TestResult
        With ``pvalue``, ``statistic`` (the unbiased squared MMD; with ``gammas`` the largest score), ``null_distribution``, ...;
        it has no rows to explain.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import kernel_matrix_test
    >>> words = ["ab", "abb", "aab", "ba", "abab", "xy", "xyy", "yx", "xxyx", "yyx"]
    >>> letters = np.array([[word.count(letter) for letter in "abxy"] for word in words])
    >>> kernel_matrix_test(letters @ letters.T, m=5, rng=0).pvalue
    0.007936507936507936
    """
    matrix = _check_matrix(K)
    spectral = validation.gammas(gammas)
    m = validation.whole("m", m, at_least=2, at_most=len(matrix) - 2)
    count = OWN_PERMUTATIONS if n_permutations is None else n_permutations
    design = {"groups": groups, "strata": strata, "pairs": pairs, "blocks": blocks, "group_sizes": group_sizes}
    plan = TestOptions(alpha=alpha, n_permutations=count, n_jobs=n_jobs, memory_limit=memory_limit, **design).plan()
    searched, held = ({"gammas": spectral}, 4) if spectral else ({}, 1)
    require_dense(plan.options.memory_limit, rows=len(matrix), matrices=held, method="The test of a kernel matrix")
    seed, generator = resolve_rng(rng)
    made, notes = _design(plan.design, m, len(matrix) - m), list[str]()
    call = _call(m, {**searched, "alpha": alpha, "n_permutations": count, **plan.design.call}, seed)
    if made is not None and differ_in_size(made):
        note = KEPT_NOTE
        if group_sizes == CUT:
            rows, made, note = cut_design(made, generator)
            matrix, m = matrix[np.ix_(rows, rows)], made.rows[0]
        notes.append(note)
    with threads(plan.n_jobs), reporting_to(progress):
        ranking = _rank(matrix, m, made, spectral, plan.options, generator)
    sizes = (m, len(matrix) - m)
    return TestResult(
        method=METHOD,
        summary="one fixed kernel, given by its matrix",
        statistic=ranking.statistic,
        statistic_meaning=SPECTRAL if spectral else SQUARED_MMD,
        pvalue=ranking.pvalue,
        rank=ranking.rank,
        alpha=plan.options.alpha,
        null_distribution=ranking.null_distribution,
        exhaustive=ranking.exhaustive,
        n_permutations=count,
        sizes=sizes,
        tested_sizes=sizes,
        n_columns=None,
        notes=(*notes, *note_powerless(ranking.smallest_pvalue, plan.options.alpha, sizes), *((BLOCKS_NOTE,) if blocks else ())),
        engine=Engine("dense", covariance_rows=len(matrix) if spectral else None),
        design=made,
        exact=made is None or made.exact,
        citations=("gretton2012kernel", *(("hagrass2024spectral",) if spectral else ())),
        seed=seed,
        call=call,
    )


def _call(m: int, options: dict[str, Any], seed: int | None) -> str:
    given = "".join(f"{name}={value!r}, " for name, value in options.items())
    return f"kernel_matrix_test(K, {m}, {given}rng={'rng' if seed is None else seed})"


def _design(asked: DesignOptions, m: int, n: int) -> Design | None:
    """Return the design that was asked for; rows that it would leave out have to be left out of the matrix."""
    if not asked.given:
        return None
    if asked.columns or asked.blocks == AUTO:
        raise InputError("A kernel matrix has no columns. Pass an array for each sample, and blocks as a number of rows.")
    design_values = [
        asked.split_design_columns(read_table(np.zeros(rows), name), name).design_values for name, rows in (("x", m), ("y", n))
    ]
    design, rows, notes = make_design(all_codes(*design_values), (m, n), asked.blocks, asked.described)
    if len(rows) < m + n:
        raise InputError(f"Every stratum of a kernel matrix must have rows of both samples ({notes[0]}). Leave those rows out.")
    return design


def _rank(
    matrix: Array, m: int, design: Design | None, gammas: Sequence[float], options: RunOptions, rng: np.random.Generator
) -> Ranking:
    """Rank the squared MMD, or the largest score over spectral parameters."""
    layout = Layout.of_all(m, len(matrix) - m, design)
    require_relabelings(layout, design, options.alpha)
    order_stream, label_stream = rng.spawn(2) if gammas else (rng, rng)
    if gammas:
        layout = layout.shuffled(order_stream)
    layout = layout.draw(options.n_permutations, label_stream, options.memory_limit)
    ordered = matrix[np.ix_(layout.rows, layout.rows)]
    return rank_spectral(ordered, layout, gammas) if gammas else rank_matrix(ordered, layout, overwrite=True)


def _check_matrix(K: Any) -> Array:
    try:
        matrix = np.asarray(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"A kernel matrix must hold numbers. Got {type(K).__name__}: {error}.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"A kernel matrix must be square, a row and a column for each pooled row. Got shape {matrix.shape}.")
    if len(matrix) < 4:
        raise InputError(f"A kernel matrix must have at least 4 rows, 2 of each sample. Got {len(matrix)}.")
    largest = max(float(matrix.max()), -float(matrix.min()))  # NaN and infinity come through
    if not np.isfinite(largest):
        raise InputError("A kernel matrix must be finite. Got missing or infinite values; leave those rows out.")
    if largest > LARGEST:
        raise InputError(
            f"The values of a kernel matrix must be below {LARGEST:g}, so that their sums are finite. Got {largest:.3g}."
        )
    # A random vector sees any asymmetry, and two products with it are several times cheaper than K - K.T.
    probe = np.random.default_rng(0).standard_normal(len(matrix))
    if np.abs(matrix @ probe - probe @ matrix).max() > 1e-8 * largest:
        raise InputError(
            f"A kernel matrix must be symmetric. K[i, j] and K[j, i] differ by up to {np.abs(matrix - matrix.T).max():.3g}; pass "
            "(K + K.T) / 2 if that is rounding."
        )
    return matrix
