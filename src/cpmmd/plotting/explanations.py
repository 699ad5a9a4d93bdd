"""Where the samples differ: the distance of their columns, their values, the witness of their rows, and a map of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING, Preparation
from cpmmd.explain.differences import ColumnDifference, Histogram, in_header
from cpmmd.explain.rows import tested_rows_of
from cpmmd.explain.values import Explanation
from cpmmd.plotting.style import BLUE, GREY, STYLES, Subject, area, axes, density, explanation_of, labelled, outcome_of, text
from cpmmd.statistics.columns import DataColumn, columns_of, date_text, number_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 12  # columns whose distance is drawn
BANDS = 5  # columns whose distribution is drawn
REACH = 0.42  # of a band's height that a bar may take
GRID = 400  # places of a density
POINTS = 800  # rows on a map: more hide each other
ENCODED = 100  # encoded columns that a projection is made of
NAMED = 2  # columns named on an axis
# From like y to like x: dark to light, so that grey tells the sign; both ends apart from white and from black.
SHADES = ("#e8962e", "#8c8c8c", "#2458a8")


def column_differences(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the distance between the samples in each column; columns that differ significantly are filled.

    Parameters
    ----------
    subject, ax
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> plotting.column_differences(result, ax=Figure().subplots()).get_xlabel()
    'distance between the samples (% of the rows)'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    columns = explanation.columns[:BARS]
    places, differing = range(len(columns))[::-1], {column.name for column in explanation.differing}
    for place, column in zip(places, columns, strict=True):
        found, distance = column.name in differing, 100 * column.distance
        if found:
            ax.barh(place, distance, height=0.7, **area(BLUE, "///"))
        else:
            ax.barh(place, distance, height=0.7, facecolor="none", edgecolor=GREY)
        label = column.words if found else f"p = {column.pvalue:.2g}"
        ax.annotate(f" {text(label, 32)}", (distance, place), va="center", fontsize="small")
    ax.set_yticks(places, [text(column.label) for column in columns])
    farthest = max([100 * column.distance for column in columns] + [1.0])
    step = next(size for size in (1, 2, 5, 10, 20, 25) if farthest / size <= 5 or size == 25)
    ax.set_xticks(np.arange(0, farthest + step / 2, step))
    ax.set_xlim(0, 1.6 * farthest)  # leaves room for words beside the bars
    ax.set_xlabel("distance between the samples (% of the rows)")
    left = len(explanation.columns) - len(columns)
    if left:
        ax.annotate(f"and {left} more", (1, 0), xycoords="axes fraction", ha="right", va="bottom", fontsize="small")
    return ax


def column_distributions(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw how the columns that differ most are distributed in X (above the line) and Y (below).

    Each band spans its own range, which is below the column's name; categories, booleans and counts have a pair of bars for each
    value.

    Parameters
    ----------
    subject, ax
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> plotting.column_distributions(result, ax=Figure().subplots()).get_xlabel()
    'values, each column in its own range'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    leading, labels = explanation.columns[:BANDS], []
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
    return labelled(ax, "values, each column in its own range")


def _bars(ax: Axes, level: int, column: ColumnDifference, shown: Histogram) -> str:
    """Draw the shares of one column's bins, X up and Y down, and return their range in words."""
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


def witness_densities(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the witness over the rows of each sample: the less they overlap, the higher the AUC.

    Parameters
    ----------
    subject, ax
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> plotting.witness_densities(result.explain(), ax=Figure().subplots()).get_xlabel()
    'witness of a row (second sample left, first sample right)'
    """
    ax, explanation = axes(ax), explanation_of(subject)
    samples = (explanation.witness_x, explanation.witness_y)
    everything = np.concatenate(samples)
    low, high = float(everything.min()), float(everything.max())
    pad = 0.15 * (high - low) or 0.15 * max(abs(low), 1.0)
    grid = np.linspace(low - pad, high + pad, GRID)
    names = [text(in_header(name)) for name in explanation.names]
    for values, style, name in zip(samples, STYLES, names, strict=True):
        heights = density(values, grid)
        ax.fill_between(grid, heights, linewidth=0, **area(style.colour, style.hatch))
        ax.plot(grid, heights, color=style.colour, linestyle=style.line, label=f"{name} ({len(values)} rows)")
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks([])
    ax.set_ylim(bottom=0)
    title = "" if explanation.auc is None else f"AUC {explanation.auc}"
    return labelled(ax, f"witness of a row ({names[1]} left, {names[0]} right)", "density", title=title)


def pool_map(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the explained rows in the plane, coloured by their witness.

    Two columns are drawn as they are, one column against the witness. More are projected: on principal components of the
    standardised columns, each weighted by the distance between the samples in it, so that the map shows where the samples differ
    rather than where they vary.

    Parameters
    ----------
    subject, ax
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> plotting.pool_map(result, ax=Figure().subplots()).get_xlabel()
    'column 0'
    """
    ax, outcome, explanation = axes(ax), outcome_of(subject), explanation_of(subject)
    pool = tested_rows_of(outcome).pool
    preparation = outcome.preparation or Preparation.fit(pool)
    rows = np.concatenate([_pool_rows(pool, explanation.rows_x, 0), _pool_rows(pool, explanation.rows_y, 1)])
    witness = np.concatenate([explanation.witness_x, explanation.witness_y])
    drawn = np.sort(np.random.default_rng(0).permutation(len(rows))[:POINTS])
    rows, witness = rows[drawn], witness[drawn]
    places, labels = _places(pool, preparation, rows, witness, explanation)
    low, high = np.quantile(places, [0.01, 0.99], axis=0)  # outlying rows go to the border
    places = np.clip(places, low - (high - low) / 2, high + (high - low) / 2)
    _scatter(ax, places, rows < pool.m, witness, [text(in_header(name), 24) for name in explanation.names])
    return labelled(ax, *labels)


def _pool_rows(pool: Pool, numbers: Rows, side: int) -> Rows:
    """Return rows of the pool, given row numbers in one sample as it was passed."""
    start, stop = ((0, pool.m), (pool.m, pool.m + pool.n))[side]
    kept = np.arange(stop - start) if pool.kept is None else pool.kept[start:stop]
    return start + np.searchsorted(kept, numbers)


def _places(
    pool: Pool, preparation: Preparation, rows: Rows, witness: Array, explanation: Explanation
) -> tuple[Array, tuple[str, str]]:
    columns = columns_of(pool, preparation)
    if len(columns) <= 2 and all(column.kind in ("number", "date") for column in columns):
        values = [number_values(pool, rows, column) for column in columns]
        names = [text(column.label) for column in columns]
        if len(columns) == 1:
            values, names = [*values, witness], [*names, "witness"]
        return np.column_stack(values), (names[0], names[1])
    return _project(preparation.transform(pool, rows), columns, witness, explanation)


def _project(
    matrix: Array, columns: tuple[DataColumn, ...], witness: Array, explanation: Explanation
) -> tuple[Array, tuple[str, str]]:
    weight, owner = np.zeros(matrix.shape[1]), np.empty(matrix.shape[1], dtype=object)
    distances = {column.name: column.distance for column in explanation.columns}
    for column in columns:
        weight[list(column.encoded)] = distances.get(column.name, 0.0) / np.sqrt(max(len(column.encoded), 1))
        owner[list(column.encoded)] = column.label
    if not weight.any():
        weight[:] = 1.0
    kept = np.argsort(-weight, kind="stable")[:ENCODED]
    centred = matrix[:, kept] - matrix[:, kept].mean(axis=0)
    sd = centred.std(axis=0)
    scaled = weight[kept] * centred / np.where(sd > 0, sd, 1.0)
    _, _, directions = np.linalg.svd(scaled, full_matrices=False)
    directions = np.vstack([directions, np.zeros((2, len(kept)))])[:2]
    places = scaled @ directions.T
    places *= np.where(witness @ places < 0, -1.0, 1.0)  # like x to the right and up
    labels = []
    for direction in directions:  # named by the columns that make most of it
        leading = dict.fromkeys(owner[kept][np.argsort(-np.abs(direction), kind="stable")].tolist())
        labels.append(", ".join(text(name, 18) for name in list(leading)[:NAMED]))
    return places, (f"direction 1 (mostly {labels[0]})", f"direction 2 (mostly {labels[1]})")


def _scatter(ax: Axes, places: Array, of_x: Labels, witness: Array, names: list[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    shades = LinearSegmentedColormap.from_list("witness", SHADES)
    low, high = (float(q) for q in np.quantile(witness, [0.02, 0.98]))
    least = 1e-3 * max(-low, high) or 1.0  # both ends must be on their own side of zero
    low, high = min(low, -least), max(high, least)
    norm = TwoSlopeNorm(0.0, low, high)
    for style, side, name in zip(STYLES, (of_x, ~of_x), names, strict=True):
        x, y = places[side].T
        points = ax.scatter(x, y, 22, witness[side], marker=style.marker, cmap=shades, norm=norm, edgecolors=GREY, linewidths=0.5)
        ax.scatter([], [], color=GREY, marker=style.marker, s=22, label=name)
    bar = ax.figure.colorbar(points, ax=ax, extend="both", ticks=[low, low / 2, 0.0, high / 2, high], format="%.2g")
    bar.ax.minorticks_off()
    bar.set_label(f"witness (low: like {names[1]}, high: like {names[0]})")
