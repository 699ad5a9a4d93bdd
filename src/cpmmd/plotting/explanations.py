"""Where the samples differ: the witness of their rows, the distance of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpmmd.data.preparation import MISSING
from cpmmd.explain.columns import date_text
from cpmmd.explain.differences import ColumnDifference, Histogram, in_header
from cpmmd.plotting.style import GREY, STYLES, Subject, area, axes, explanation_of, legend, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
import numpy as np

from cpmmd.plotting.style import BLUE, density, span

# The leading columns' distributions: the first sample above each line, the second below it.


COLUMNS = 5
REACH = 0.42  # of a band's height that a bar may take


def column_distributions(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw how the columns that differ most are distributed in X (above the line) and Y (below).

    Each band spans its own range, which is under the column's name; categories, booleans and counts are bars, a pair for each
    value.

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
    >>> plotting.column_distributions(result, ax=Figure().subplots()).get_xlabel()
    'values, each column in its own range'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    leading, labels = explanation.columns[:COLUMNS], []
    for band, column in enumerate(leading):
        level = len(leading) - 1 - band
        drawn = "all missing" if column.histogram is None else _bars(ax, level, column, column.histogram)
        labels.append(f"{text(column.label, 24)}\n{drawn}")
        ax.plot([0, 1], [level, level], color=GREY, linewidth=0.8)
    for style, name, side in zip(STYLES, explanation.names, ("above", "below"), strict=True):
        ax.fill_between([], [], label=f"{text(in_header(name))} ({side} the line)", **area(style.colour, style.hatch))
    ax.set_yticks(range(len(leading))[::-1], labels, fontsize="small")
    ax.set_xticks([])
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.55, len(leading) - 0.45)
    ax.set_xlabel("values, each column in its own range")
    legend(ax)
    return ax


def _bars(ax: Axes, level: int, column: ColumnDifference, shown: Histogram) -> str:
    """Draw the shares of one column's classes, X up and Y down, and say what they span."""
    width = 1 / len(shown.x)
    tallest = max(*shown.x, *shown.y) or 1.0
    centres = [(position + 0.5) * width for position in range(len(shown.x))]
    for shares, style, sign in zip((shown.x, shown.y), STYLES, (1, -1), strict=True):
        heights = [sign * REACH * share / tallest for share in shares]
        filled = (0.7 if shown.labels else 1.0) * width
        ax.bar(centres, heights, filled, bottom=level, linestyle=style.line, **area(style.colour, style.hatch))
    for centre, name in zip(centres, shown.labels, strict=False):
        label = "missing" if name == MISSING else text(name, 14)
        ax.annotate(label, (centre, level), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize="x-small")
    if shown.labels:
        return "shares"
    return " to ".join(
        date_text(end)[:10] if column.kind == "date" else f"{end:.3g}" for end in (shown.edges[0], shown.edges[-1])
    )


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
    'witness of a row (second sample left, first sample right)'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    samples = (explanation.witness_x, explanation.witness_y)
    low, high = span(np.concatenate(samples), 0.15)
    grid = np.linspace(low, high, GRID)
    names = [text(in_header(name)) for name in explanation.names]
    for values, style, name in zip(samples, STYLES, names, strict=True):
        heights = density(values, grid)
        ax.fill_between(grid, heights, linewidth=0, **area(style.colour, style.hatch))
        ax.plot(grid, heights, color=style.colour, linestyle=style.line, label=f"{name} ({len(values)} rows)")
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_xlabel(f"witness of a row ({names[1]} left, {names[0]} right)")
    ax.set_ylabel("density")
    ax.set_yticks([])
    ax.set_ylim(bottom=0)
    legend(ax, title="" if explanation.effect is None else f"told apart {explanation.effect}")
    return ax


def column_differences(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw how far the samples are apart in each column, the columns that differ beyond chance filled.

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
    >>> plotting.column_differences(result, ax=Figure().subplots()).get_xlabel()
    'distance of the samples (% of the rows)'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    columns = explanation.columns[:BARS]
    for place, column in zip(range(len(columns))[::-1], columns, strict=True):
        look = area(BLUE, "///") if column.significant else {"facecolor": "none", "edgecolor": GREY}
        ax.barh(place, 100 * column.distance, height=0.7, **look)
        ax.annotate(
            f" {text(column.words if column.significant else f'p = {column.pvalue:.2g}', 32)}",
            (100 * column.distance, place),
            va="center",
            fontsize="small",
        )
    ax.set_yticks(range(len(columns))[::-1], [text(column.label) for column in columns])
    farthest = max([100 * column.distance for column in columns] + [1.0])
    step = next(size for size in (1, 2, 5, 10, 20, 25) if farthest / size <= 5 or size == 25)
    ax.set_xticks(np.arange(0, farthest + step / 2, step))
    ax.set_xlim(0, 1.6 * farthest)  # words stand beside the bars
    ax.set_xlabel("distance of the samples (% of the rows)")
    left = len(explanation.columns) - len(columns)
    if left:
        ax.annotate(f"and {left} more", (1, 0), xycoords="axes fraction", ha="right", va="bottom", fontsize="small")
    return ax
