"""Which columns of two tables go together: a square for each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from cpmmd.plotting.style import BLUE, axes, text
from cpmmd.statistics.column_pairs import ColumnPair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

MOST = 16  # columns of each table that are drawn


class Explained(Protocol):
    """What has pairs of columns: an independence result's explanation."""

    @property
    def pairs(self) -> tuple[ColumnPair, ...]:
        """Every pair, the clearest first."""
        ...

    @property
    def alpha(self) -> float:
        """Level of the adjusted p-values."""
        ...


class Explainable(Protocol):
    """What explains itself by pairs of columns: an independence result."""

    def explain(self) -> Explained:
        """Return the explanation."""
        ...


def column_pairs(result: Explainable, *, ax: Axes | None = None) -> Axes:
    """Draw how clearly each column of x goes with each column of y, the clearest columns first; pairs up to the level have a dot.

    Parameters
    ----------
    result : IndependenceResult
        What :func:`cpmmd.independence_test` returned.
    ax : matplotlib Axes, optional
        Where to draw; None makes a figure.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import independence_test, plotting
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> plotting.column_pairs(independence_test(x, x[:, :2] ** 2, rng=0), ax=Figure().subplots()).get_xlabel()
    'columns of y'
    """
    ax, explanation = axes(ax), result.explain()
    pairs = explanation.pairs
    rows, columns = (list(dict.fromkeys(names))[:MOST] for names in ([p.x for p in pairs], [p.y for p in pairs]))
    shade = np.zeros((len(rows), len(columns)))
    for pair in pairs:
        if pair.x in rows and pair.y in columns:
            at = rows.index(pair.x), columns.index(pair.y)
            shade[at] = -np.log10(pair.pvalue)
            if pair.pvalue <= explanation.alpha:
                ax.plot(at[1], at[0], "o", color="white", markeredgecolor="black", markersize=5)
    strongest = max(float(shade.max(initial=0.0)), 1e-9)
    for (i, j), clear in np.ndenumerate(shade):
        ax.add_patch(_square(j, i, 0.85 * clear / strongest))
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), xlabel="columns of y", ylabel="columns of x")
    ax.set_xticks(range(len(columns)), [text(name, 14) for name in columns], rotation=30, ha="right")
    ax.set_yticks(range(len(rows)), [text(name, 20) for name in rows])
    return ax


def _square(x: float, y: float, opacity: float) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=(BLUE, 0.04 + opacity), edgecolor="none")
