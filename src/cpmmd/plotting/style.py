"""What all pictures share: axes, colours for light and dark pages, and text that is never read as a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.installation import missing_extra
from cpmmd.core.text import sanitize
from cpmmd.errors import InputError
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestResult

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Contrast of at least 3:1 on white and on #121212 (WCAG 2.1, graphical objects).
BLUE, ORANGE, GREY, PURPLE, GREEN = "#3b7dd8", "#d1620a", "#808080", "#a05cc4", "#2f8f5b"
FILL = 0.3  # opacity of filled areas
SMOOTHED = 4000  # values in a density


@dataclass(frozen=True)
class SampleStyle:
    """How one sample looks in every picture."""

    colour: str
    line: str
    hatch: str
    marker: str


STYLES = (SampleStyle(BLUE, "-", "///", "o"), SampleStyle(ORANGE, "--", "...", "^"))
# Curves beside each other: colour, line, marker.
CURVES = (
    *((BLUE, "-", "o"), (ORANGE, "--", "s"), (PURPLE, "-.", "^"), (GREEN, ":", "D"), (GREY, (0, (5, 1, 1, 1)), "v")),
    *((BLUE, "--", "P"), (ORANGE, "-", "X"), (PURPLE, ":", "h"), (GREEN, "-", "<"), (GREY, "--", ">"), (BLUE, "-.", "p")),
)


def axes(ax: Axes | None) -> Axes:
    """Return the axes to draw on; new ones are transparent."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise missing_extra("Plotting", "matplotlib", "plot") from error
    figure, new = pyplot.subplots(layout="constrained")
    figure.patch.set_alpha(0.0)
    new.patch.set_alpha(0.0)
    return new


class Area(TypedDict):
    """The look of a filled area."""

    facecolor: tuple[str, float]
    edgecolor: tuple[str, float]
    hatch: str


def area(colour: str, hatch: str, opacity: float = FILL) -> Area:
    """Return the look of a filled area: pale, its hatching a little less so."""
    return {"facecolor": (colour, opacity), "edgecolor": (colour, 1.6 * opacity), "hatch": hatch}


def text(name: str, longest: int = 28) -> str:
    """Return a name from the data as text for a picture: one line, cut to length, dollar signs escaped."""
    return sanitize(name, longest).replace("$", r"\$")


def labelled(
    ax: Axes, x: str = "", y: str = "", *, columns: int = 2, title: str = "", handles: Sequence[Artist] | None = None
) -> Axes:
    """Label the axes, add a legend above them, and return them."""
    ax.set(**({"xlabel": x} if x else {}), **({"ylabel": y} if y else {}))
    shown = ax.get_legend_handles_labels()[0] if handles is None else handles
    look = {"frameon": False, "fontsize": "small", "title_fontsize": "small", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=shown, title=title, ncols=columns, loc="lower center", **look)
    return ax


def density(values: Array, grid: Array) -> Array:
    """Return a smooth density of values (of a subset, when there are very many); a single value gives a peak."""
    from scipy.stats import gaussian_kde

    values, step = values[:: max(1, len(values) // SMOOTHED)], float(grid[1] - grid[0])
    sd = max(float(values.std(ddof=1)) if len(values) > 1 else 0.0, step)
    # Silverman's rule by hand: gaussian_kde refuses equal values
    width = sd * (4 / (3 * len(values))) ** 0.2
    if values.std() > step:
        return np.asarray(gaussian_kde(values, bw_method=width / values.std(ddof=1))(grid))
    apart = (grid - values.mean()) / width
    return np.asarray(np.exp(-(apart**2) / 2) / (width * np.sqrt(2 * np.pi)))


def known_fields(kind: Any, record: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of a record that are fields of a dataclass and not None."""
    return {field.name: record[field.name] for field in fields(kind) if record.get(field.name) is not None}


# Every plot takes a result or its explanation.


Subject = TestResult | Explanation


def outcome_of(subject: Subject) -> TestResult:
    """Return the result that was passed, or that was explained."""
    outcome = subject.outcome if isinstance(subject, Explanation) else subject
    if outcome is None:
        raise InputError("The picture needs a result. Got an explanation that was loaded without one; pass the result.")
    if not isinstance(outcome, TestResult):
        raise InputError(f"A picture needs a result or its explanation. Got {type(subject).__name__}; pass a TestResult.")
    return outcome


def explanation_of(subject: Subject) -> Explanation:
    """Return the explanation that was passed, or explain the result."""
    return subject if isinstance(subject, Explanation) else outcome_of(subject).explain()
