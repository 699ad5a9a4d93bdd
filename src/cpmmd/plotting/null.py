"""The null distribution, and where the statistic fell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpmmd.plotting.style import BLUE, GREY, ORANGE, area, axes, legend
from cpmmd.plotting.subject import Subject, outcome_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 40


def null_distribution(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the statistic among its values under relabelings.

    Parameters
    ----------
    subject : TestResult or Explanation
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw it.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(1, 1, size=(50, 2)), rng=0)
    >>> plotting.null_distribution(result, ax=Figure().subplots()).get_xlabel()
    'statistic'
    """
    ax, result = axes(ax), outcome_of(subject)
    null = np.asarray(result.null_distribution, dtype=float)
    null = null[np.isfinite(null)]
    bins = min(BINS, max(len(null) // 5, 1))
    ax.hist(null, bins=bins, label="under relabelings", **area(BLUE, "//"))
    # p <= alpha when fewer than alpha (B + 1) relabelings reach the statistic; decimals of alpha round either way
    rank = int(np.floor(result.alpha * (len(null) + 1) + 1e-9))
    if rank >= 1:
        limit = float(np.sort(null)[-rank])
        ax.axvline(limit, color=GREY, linestyle="--", label=f"limit at level {result.alpha:g}")
    ax.axvline(result.statistic, color=ORANGE, linewidth=2.5, label=f"these samples, p = {result.pvalue:.3g}")
    ax.set_xlabel("statistic")
    ax.set_ylabel("number of relabelings")
    legend(ax)
    return ax
