"""Where the samples differ: the witness of their rows, the contributions of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpmmd.plotting.style import BLUE, GREY, STYLES, area, axes, density, legend, span, text
from cpmmd.plotting.subject import Subject, explanation_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 12
GRID = 400


def witness_densities(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the witness over the rows of each sample: the less they overlap, the better it tells them apart.

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
    >>> plotting.witness_densities(result.explain(), ax=Figure().subplots()).get_xlabel()
    'witness of a row (left: like y, right: like x)'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    samples = (explanation.witness_x, explanation.witness_y)
    low, high = span(np.concatenate(samples), 0.15)
    grid = np.linspace(low, high, GRID)
    for values, style in zip(samples, STYLES, strict=True):
        heights = density(values, grid)
        ax.fill_between(grid, heights, linewidth=0, **area(style.colour, style.hatch))
        ax.plot(grid, heights, color=style.colour, linestyle=style.line, label=f"rows of {style.name} ({len(values)})")
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_xlabel("witness of a row (left: like y, right: like x)")
    ax.set_ylabel("density")
    ax.set_yticks([])
    ax.set_ylim(bottom=0)
    legend(ax, title=f"told apart {explanation.effect}")
    return ax


def column_contributions(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the largest contributions of columns as bars, with two standard errors either way.

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
    >>> plotting.column_contributions(result, ax=Figure().subplots()).get_xlabel()
    'squared MMD lost when permuted (%)'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    columns = explanation.columns[:BARS]
    positions = np.arange(len(columns))[::-1]
    shares = np.array([100 * f.contribution for f in columns])
    errors = np.array([200 * f.standard_error for f in columns])
    ax.barh(positions, shares, height=0.7, **area(BLUE, "///"))
    ax.errorbar(shares, positions, xerr=errors, fmt="o", color=BLUE, markersize=4, capsize=3)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(positions, [text(f.label) for f in columns])
    ax.set_xlabel("squared MMD lost when permuted (%)")
    left = len(explanation.columns) - len(columns)
    if left:
        ax.annotate(f"and {left} more", (1, 0), xycoords="axes fraction", ha="right", va="bottom", fontsize="small")
    return ax
