"""The pool as a map, coloured by the witness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.explain.columns import DataColumn, columns_of, number_values
from cpmmd.explain.differences import in_header
from cpmmd.explain.rows import evidence_of
from cpmmd.explain.values import Explanation
from cpmmd.plotting.style import GREY, STYLES, Subject, axes, explanation_of, legend, outcome_of, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 800  # more hide each other
COLUMNS = 100  # encoded columns that a projection is made of
NAMED = 2  # columns named on an axis
# From like y to like x: dark to light, so that grey tells the sign; both ends apart from white and from black.
SHADES = ("#e8962e", "#8c8c8c", "#2458a8")


def pool_map(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the explained rows in the plane, coloured by their witness.

    Two columns are drawn as they are, one against the witness. More are projected: principal components of the standardised
    columns, each weighted by the distance of the samples in it, so that the map shows where the samples differ rather than where
    they vary.

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
    >>> plotting.pool_map(result, ax=Figure().subplots()).get_xlabel()
    'column 0'
    """
    ax, outcome, explanation = axes(ax), outcome_of(subject), explanation_of(subject)
    pool = evidence_of(outcome).pool
    preparation = outcome.preparation or Preparation.fit(pool)
    rows = np.concatenate([_pool_rows(pool, explanation.rows_x, 0), _pool_rows(pool, explanation.rows_y, 1)])
    witness = np.concatenate([explanation.witness_x, explanation.witness_y])
    drawn = np.sort(np.random.default_rng(0).permutation(len(rows))[:POINTS])
    rows, witness = rows[drawn], witness[drawn]
    places, labels = _places(pool, preparation, rows, witness, explanation)
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    _scatter(ax, _move_to_border(places), rows < pool.m, witness, [text(in_header(name), 24) for name in explanation.names])
    return ax


def _move_to_border(places: Array) -> Array:
    """Move the farthest rows to the border, so that they do not squeeze the rest into a corner."""
    low, high = np.quantile(places, [0.01, 0.99], axis=0)
    return np.clip(places, low - (high - low) / 2, high + (high - low) / 2)


def _pool_rows(pool: Pool, numbers: Rows, side: int) -> Rows:
    """Return the pool's rows of row numbers in one sample as it was passed in."""
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
    kept = np.argsort(-weight, kind="stable")[:COLUMNS]
    centred = matrix[:, kept] - matrix[:, kept].mean(axis=0)
    spread = centred.std(axis=0)
    scaled = weight[kept] * centred / np.where(spread > 0, spread, 1.0)
    _, _, directions = np.linalg.svd(scaled, full_matrices=False)
    directions = np.vstack([directions, np.zeros((2, len(kept)))])[:2]
    places = scaled @ directions.T
    places *= np.where(witness @ places < 0, -1.0, 1.0)  # like x to the right and up
    axis = [_axis_name(number, direction, owner[kept]) for number, direction in enumerate(directions, 1)]
    return places, (axis[0], axis[1])


def _axis_name(number: int, direction: Array, owners: Any) -> str:
    """Name a direction by the columns that make most of it."""
    leading = dict.fromkeys(owners[np.argsort(-np.abs(direction), kind="stable")].tolist())
    names = [text(name, 18) for name in list(leading)[:NAMED]]
    return f"direction {number} (mostly {', '.join(names)})"


def _scatter(ax: Axes, places: Array, of_x: Any, witness: Array, names: list[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    shades = LinearSegmentedColormap.from_list("witness", SHADES)
    low, high = (float(q) for q in np.quantile(witness, [0.02, 0.98]))
    least = 1e-3 * max(-low, high) or 1.0  # both ends must be on their own side of zero
    low, high = min(low, -least), max(high, least)
    norm = TwoSlopeNorm(0.0, low, high)
    colours: dict[str, Any] = {"cmap": shades, "norm": norm, "edgecolors": GREY, "linewidths": 0.5, "s": 22}
    for style, side, name in zip(STYLES, (of_x, ~of_x), names, strict=True):
        points = ax.scatter(places[side, 0], places[side, 1], c=witness[side], marker=style.marker, **colours)
        ax.scatter([], [], color=GREY, marker=style.marker, s=22, label=name)
    figure: Any = ax.figure
    bar = figure.colorbar(points, ax=ax, extend="both", ticks=[low, low / 2, 0.0, high / 2, high], format="%.2g")
    bar.ax.minorticks_off()
    bar.set_label(f"witness (low: like {names[1]}, high: like {names[0]})")
    legend(ax)
