"""Are two samples the same for a purpose? One call: ``equivalence_test``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.pool import Pool, read_pool
from cpmmd.equivalence.bounds import MOST_ROWS, Coordinates, column_differences, joint_difference
from cpmmd.equivalence.result import EquivalenceResult
from cpmmd.errors import name_keywords, name_some

MEASURED = 50  # rows from which on the level at the margin was measured (benchmarks/equivalence.py)
WILD = 5.0  # standard deviation over what the quartiles of a normal sample would say: a few rows set the unit
LOOKED_AT = 10_000  # rows whose quartiles are taken
NORMAL_QUARTILES = 1.349  # distance of the quartiles of N(0, 1)


@threads(None)
@name_keywords
def equivalence_test(
    x: Any,
    y: Any,
    *,
    margin: float,
    alpha: float = 0.05,
    rng: RNG = None,
    missing: str = "error",
) -> EquivalenceResult:
    """Test whether all differences between two samples are below a margin.

    "No difference found" may mean that there is no difference, or that there are too few rows. This test asks the other way
    round: it rejects, and so shows equivalence, where the data exclude every difference of the margin or more.

    Parameters
    ----------
    x, y : array or data frame
        The samples, as for :func:`two_sample_test`.
    margin : float
        The smallest difference that matters, in standard deviations within the samples. It applies to the mean of every column
        (for text, to the share of each level), and to all columns together, where it is the shift between two normal samples with
        the same MMD.
    alpha : float
        Significance level: the probability, at most, that samples which differ by the margin or more are called equivalent.
    rng : int, Generator, RandomState or None
        Seed or generator of the noise, and of the rows drawn from samples of more than 10,000.
    missing : str
        As for :func:`two_sample_test`.

    Returns
    -------
    EquivalenceResult
        With ``reject`` (equivalence is shown), ``pvalue``, ``columns``, ``joint``, ...; print it for a summary.

    Notes
    -----
    Columns: two one-sided t tests of the standardised difference of means, which take the error of the standard deviation into
    account. Together: the MMD of the Gaussian kernel whose bandwidth is the square root of the number of columns, against the
    distribution of the noise around a difference in the direction that is hardest to see. Each part must show equivalence at
    level alpha, so no adjustment is needed. Both distributions are asymptotic (``exact`` is False); the level at the margin was
    measured in simulations with 50 rows or more.

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
        notes.append(f"the level is asymptotic, and was confirmed in simulations with {MEASURED} rows or more of each sample")
    if max(pool.m, pool.n) > MOST_ROWS:
        notes.append(
            f"all columns together are compared on {MOST_ROWS} rows of each sample, drawn at random; single columns on all rows"
        )
    numbers = coordinates.matrix[:: 1 + len(coordinates.matrix) // LOOKED_AT, : len(pool.number_names)]
    low, high = np.quantile(numbers, (0.25, 0.75), axis=0)  # in standard deviations of the pool
    wild = (high > low) & (WILD * (high - low) < NORMAL_QUARTILES)
    if names := [name for name, is_wild in zip(pool.number_names, wild, strict=True) if is_wild]:
        notes.append(f"a few extreme rows dominate the standard deviation of {name_some(names)}, so differences in it look small")
    return notes
