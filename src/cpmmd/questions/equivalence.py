"""Are two samples the same for a purpose? One call: ``equivalence_test``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.near_names import hint_keywords
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.pool import Pool, read_pool
from cpmmd.equivalence.bounds import MOST_ROWS, Coordinates, column_differences, joint_difference
from cpmmd.equivalence.result import EquivalenceResult
from cpmmd.errors import name_some

MEASURED = 50  # rows from which on the level at the margin was measured (benchmarks/equivalence.py)
WILD = 5.0  # standard deviation over what the quartiles of a normal sample would say: a few rows set the unit
LOOKED_AT = 10_000  # rows whose quartiles are taken
NORMAL_QUARTILES = 1.349  # distance of the quartiles of N(0, 1)


@threads(None)
@hint_keywords
def equivalence_test(
    x: Any,
    y: Any,
    *,
    margin: float,
    alpha: float = 0.05,
    rng: RNG = None,
    missing: str = "error",
) -> EquivalenceResult:
    """Test whether two samples are the same but for differences below a margin.

    "No difference found" may mean that there is none, or that there are too few rows. This test asks the other way round: it
    rejects, and so shows equivalence, where the data exclude every difference of the margin or more.

    Parameters
    ----------
    x, y : array or data frame
        The samples, as for :func:`two_sample_test`.
    margin : float
        The smallest difference that matters, in standard deviations within the samples. It is held against every column's means
        (for text, shares of levels) and against all columns together: there it is the shift of a normal sample that has the
        same MMD.
    alpha : float
        Level: how often, at most, samples that differ by the margin or more are called equivalent.
    rng : int, Generator, RandomState or None
        Where randomness comes from: the draws of the noise, and the rows where there are more than 10,000 of a sample.
    missing : str
        As for :func:`two_sample_test`.

    Returns
    -------
    EquivalenceResult
        With ``reject`` (equivalence is shown), ``pvalue``, ``columns``, ``joint``, ...; print it for a summary.

    Notes
    -----
    Columns: two one-sided t tests of the standardised difference of means, its unit's own error counted. Together: the MMD of
    the Gaussian kernel whose bandwidth is the root of the number of columns, against the law of the noise around a
    difference in the direction that hides best. Each part must show equivalence at level alpha, so that nothing is to be
    adjusted. Both laws are those of many rows (``exact`` is False); levels at the margin were measured from 50 rows on.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import equivalence_test
    >>> data = np.random.default_rng(0)
    >>> result = equivalence_test(data.normal(size=(800, 2)), data.normal(size=(900, 2)), margin=0.3, rng=0)
    >>> result.reject
    True
    """
    margin, alpha = validation.positive("margin", margin), validation.open_unit("alpha", alpha)
    seed, generator = resolve_rng(rng)
    pool = read_pool(x, y, missing=missing)
    coordinates = Coordinates.of(pool)
    columns = column_differences(coordinates, margin, alpha)
    joint, statistic, draws = joint_difference(coordinates, margin, alpha, generator)
    given = "" if missing == "error" else f", missing={missing!r}"
    return EquivalenceResult(
        margin=margin,
        pvalue=max(joint.pvalue, *(column.pvalue for column in columns)),
        statistic=statistic,
        null_distribution=draws,
        alpha=alpha,
        columns=columns,
        joint=joint,
        sizes=(pool.m, pool.n),
        seed=seed,
        notes=(*pool.notes, *_notes(pool, coordinates)),
        call=f"equivalence_test(x, y, margin={margin:g}, alpha={alpha:g}{given}, rng={'rng' if seed is None else seed})",
    )


def _notes(pool: Pool, coordinates: Coordinates) -> list[str]:
    notes = []
    if min(pool.m, pool.n) < MEASURED:
        notes.append(f"the level holds for many rows, and was measured from {MEASURED} rows of each sample on")
    if max(pool.m, pool.n) > MOST_ROWS:
        notes.append(f"all columns together are compared on {MOST_ROWS} rows of a sample, drawn at random; columns on all rows")
    numbers = coordinates.matrix[:: 1 + len(coordinates.matrix) // LOOKED_AT, : len(pool.number_names)]
    low, high = np.quantile(numbers, (0.25, 0.75), axis=0)  # in standard deviations of the pool
    wild = (high > low) & (WILD * (high - low) < NORMAL_QUARTILES)
    if names := [name for name, is_wild in zip(pool.number_names, wild, strict=True) if is_wild]:
        notes.append(f"a few extreme rows set the standard deviation of {name_some(names)}: differences in it look small")
    return notes
