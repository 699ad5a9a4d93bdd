"""The matrix of several samples: which pairs differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from cpmmd.plotting.style import BLUE, GREY, ORANGE, area, axes, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = 16  # characters of a sample's name


class ComparedPair(Protocol):
    """What is drawn of a pair."""

    @property
    def names(self) -> tuple[str, str]:
        """What the samples are called."""

    @property
    def adjusted(self) -> float:
        """The adjusted p-value."""

    @property
    def differs(self) -> bool:
        """Whether the pair differs."""


def sample_pairs(names: Sequence[str], pairs: Iterable[ComparedPair], *, ax: Axes | None = None) -> Axes:
    """Draw the matrix of samples: the adjusted p-value of each pair, filled and hatched where the pair differs.

    Parameters
    ----------
    names : sequence of str
        The samples, ``result.names``.
    pairs : sequence of pairs
        ``result.pairs`` of :func:`cpmmd.k_sample_test`.
    ax : Axes, optional
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import k_sample_test, plotting
    >>> result = k_sample_test([range(40), range(20, 60), range(40)], rng=0)
    >>> plotting.sample_pairs(result.names, result.pairs, ax=Figure().subplots()).get_xlabel()
    'adjusted p-value of each pair'
    """
    from matplotlib.patches import Rectangle

    ax = axes(ax)
    place = {name: number for number, name in enumerate(names)}
    for pair in pairs:
        row, column = sorted((place[pair.names[0]], place[pair.names[1]]), reverse=True)
        look = area(ORANGE, "///") if pair.differs else area(BLUE, "", 0.08)
        ax.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, **look))
        size = "small" if len(names) <= 8 else "x-small"
        ax.text(column, row, f"{pair.adjusted:.2g}", ha="center", va="center", fontsize=size)
    last = len(names) - 1
    ax.set_xticks(range(last), [text(name, NAME) for name in names[:-1]], rotation=30 if len(names) > 4 else 0)
    ax.set_yticks(range(1, last + 1), [text(name, NAME) for name in names[1:]])
    ax.set_xlim(-0.5, last - 0.5)
    ax.set_ylim(last + 0.5, 0.5)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_color(GREY)
    ax.set_xlabel("adjusted p-value of each pair")
    ax.fill_between([], [], label="differs", **area(ORANGE, "///"))
    ax.fill_between([], [], label="no difference found", **area(BLUE, "", 0.08))
    ax.legend(ncols=2, loc="lower center", frameon=False, fontsize="small", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    return ax
