"""The leading columns' distributions: X above each line, Y below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING, Preparation
from cpmmd.explain.columns import DataColumn, columns_of, date_text, number_values
from cpmmd.explain.explained_rows import tested_rows
from cpmmd.explain.rows import draw_rows
from cpmmd.explain.values import ColumnContribution
from cpmmd.plotting.style import GREY, STYLES, area, axes, density, legend, span, text
from cpmmd.plotting.subject import Subject, explanation_of, outcome_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 5
MOST_ROWS = 5000
GRID = 200
REACH = 0.42  # of a band's height that a density or bar may take


def column_distributions(subject: Subject, *, ax: Axes | None = None, max_rows: int = MOST_ROWS) -> Axes:
    """Draw how the columns with the largest contributions are distributed in X (above the line) and Y (below).

    Each band spans its own range, which is under the column's name; categories are bars, a pair for each level.

    Parameters
    ----------
    subject : TestResult or Explanation
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw it.
    max_rows : int
        Rows behind a density at most, drawn at random: one of thousands looks like that of millions.

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
    >>> plotting.column_distributions(result, ax=Figure().subplots()).get_xlabel()
    'values, each column in its own range'
    """
    ax, outcome, explanation = axes(ax), outcome_of(subject), explanation_of(subject)
    pool, tested = tested_rows(outcome)
    rows = tested[draw_rows(tested < pool.m, max_rows, np.random.default_rng(0))]
    known = {c.name: c for c in columns_of(pool, outcome.preparation or Preparation.fit(pool))}
    leading, labels = explanation.columns[:COLUMNS], []
    for band, contribution in enumerate(leading):
        column = known[contribution.name]
        level = len(leading) - 1 - band
        drawn = _bars(ax, level, contribution) if column.kind == "category" else _ridge(ax, level, pool, rows, column)
        labels.append(f"{text(contribution.label, 24)}\n{drawn}")
        ax.plot([0, 1], [level, level], color=GREY, linewidth=0.8)
    for style in STYLES:
        side = "above" if style.name == "x" else "below"
        ax.fill_between([], [], label=f"{style.name} ({side} the line)", **area(style.colour, style.hatch))
    ax.set_yticks(range(len(leading))[::-1], labels, fontsize="small")
    ax.set_xticks([])
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.55, len(leading) - 0.45)
    ax.set_xlabel("values, each column in its own range")
    legend(ax)
    return ax


def _ridge(ax: Axes, level: int, pool: Pool, rows: Rows, column: DataColumn) -> str:
    """Draw one column's two densities, and say what range they span."""
    values = number_values(pool, rows, column)
    there = ~np.isnan(values)
    if not there.any():
        return "all missing"
    low, high = _range(values[there])
    grid = np.linspace(0, 1, GRID)
    scaled, of_x = (values - low) / (high - low), rows < pool.m
    parts = [scaled[there & side] for side in (of_x, ~of_x)]
    heights = [density(part, grid) if len(part) else np.zeros(GRID) for part in parts]
    tallest = max(float(height.max()) for height in heights) or 1.0
    for height, style, sign in zip(heights, STYLES, (1, -1), strict=True):
        edge = level + sign * REACH * height / tallest
        ax.fill_between(grid, level, edge, linewidth=0, **area(style.colour, style.hatch))
        ax.plot(grid, edge, color=style.colour, linestyle=style.line)
    ends = (date_text(value)[:10] if column.kind == "date" else f"{value:.3g}" for value in (low, high))
    return " to ".join(ends)


def _range(values: Array) -> tuple[float, float]:
    """Return the ends of a band: the middle 99% of the pool and a little more, so that one outlier does not flatten it."""
    low, high = (float(q) for q in np.quantile(values, [0.005, 0.995]))
    pad, ends = 0.05 * (high - low), (float(values.min()), float(values.max()))
    low, high = max(low - pad, ends[0]), min(high + pad, ends[1])
    if high > low:
        return low, high
    return span(np.array(ends), 0.5)


def _bars(ax: Axes, level: int, contribution: ColumnContribution) -> str:
    """Draw the shares of one category's levels as bars, and say what they are."""
    levels = dict(contribution.levels or {})
    width = 1 / max(len(levels), 1)
    tallest = max((max(pair) for pair in levels.values()), default=1.0) or 1.0
    for position, (name, shares) in enumerate(levels.items()):
        centre = (position + 0.5) * width
        for share, style, sign in zip(shares, STYLES, (1, -1), strict=True):
            height = sign * REACH * share / tallest
            look = area(style.colour, style.hatch)
            ax.bar(centre, height, 0.35 * width, bottom=level, linestyle=style.line, **look)
        label = "missing" if name == MISSING else text(name, 14)
        ax.annotate(
            label, (centre + 0.19 * width, level), (0, 2), textcoords="offset points", ha="left", va="bottom", fontsize="x-small"
        )
    return "shares"
