"""What all pictures share: axes, colours that stand on white and on black, and text that cannot turn into formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.installation import missing_extra
from cpmmd.core.plain import PlainDict
from cpmmd.core.text import harmless

if TYPE_CHECKING:
    from matplotlib.axes import Axes
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from cpmmd.errors import InputError
from cpmmd.explain.explanation import explain
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome

# Contrast of at least 3:1 on white and on #121212 (WCAG 2.1, graphical objects).
BLUE, ORANGE, GREY, PURPLE, GREEN = "#3b7dd8", "#d1620a", "#808080", "#a05cc4", "#2f8f5b"
FILL = 0.3  # opacity of filled areas
SMOOTHED = 4000  # values in a density


@dataclass(frozen=True)
class SampleStyle:
    """How one sample looks in every picture."""

    name: str
    colour: str
    line: str
    hatch: str
    marker: str


STYLES = (SampleStyle("x", BLUE, "-", "///", "o"), SampleStyle("y", ORANGE, "--", "...", "^"))
# Curves beside each other: colour, line, marker.
CURVES = (
    *((BLUE, "-", "o"), (ORANGE, "--", "s"), (PURPLE, "-.", "^"), (GREEN, ":", "D"), (GREY, (0, (5, 1, 1, 1)), "v")),
    *((BLUE, "--", "P"), (ORANGE, "-", "X"), (PURPLE, ":", "h")),
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


def area(colour: str, hatch: str, opacity: float = FILL) -> PlainDict:
    """Return the look of a filled area: pale, its hatching a little less so."""
    return {"facecolor": (colour, opacity), "edgecolor": (colour, 1.6 * opacity), "hatch": hatch}


def text(name: str, longest: int = 28) -> str:
    """Return a name from the data as text for a picture: one line, cut to length, its dollars no start of a formula."""
    return harmless(name, longest).replace("$", r"\$")


def legend(ax: Axes, columns: int = 2, **options: Any) -> None:
    """Add a legend above the axes, where it hides nothing."""
    place = {"bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2, "ncols": columns, "frameon": False}
    ax.legend(loc="lower center", fontsize="small", title_fontsize="small", **place, **options)


def density(values: Array, grid: Array) -> Array:
    """Return a smooth density of values (of some, when there are very many), of a single value a peak."""
    from scipy.stats import gaussian_kde

    values, step = values[:: max(1, len(values) // SMOOTHED)], float(grid[1] - grid[0])
    spread = max(float(values.std(ddof=1)) if len(values) > 1 else 0.0, step)
    # Silverman's rule by hand: gaussian_kde refuses equal values
    width = spread * (4 / (3 * len(values))) ** 0.2
    if values.std() > step:
        return np.asarray(gaussian_kde(values, bw_method=width / values.std(ddof=1))(grid))
    apart = (grid - values.mean()) / width
    return np.asarray(np.exp(-(apart**2) / 2) / (width * np.sqrt(2 * np.pi)))


def span(values: Array, margin: float = 0.05) -> tuple[float, float]:
    """Return the ends of an axis that holds the values."""
    low, high = float(values.min()), float(values.max())
    pad = margin * (high - low) or max(abs(low), 1.0) * margin
    return low - pad, high + pad


# What a picture is of: every plot takes a result or its explanation, whichever is at hand.


Subject = TestOutcome | Explanation


def outcome_of(subject: Subject) -> TestOutcome:
    """Return the result that was passed, or that was explained."""
    if isinstance(subject, Explanation):
        if subject.outcome is None:
            raise InputError("The picture needs a result. Got an explanation without one; pass the result itself.")
        return subject.outcome
    if not isinstance(subject, TestOutcome):
        raise InputError(f"A picture is of a result or of its explanation. Got {type(subject).__name__} instead.")
    return subject


def explanation_of(subject: Subject) -> Explanation:
    """Return the explanation that was passed, or explain the result."""
    if isinstance(subject, Explanation):
        return subject
    outcome = outcome_of(subject)
    answer: Explanation = outcome.explain() if hasattr(outcome, "explain") else explain(outcome)  # a result keeps its explanation
    return answer


# When batches are from: the date in their names, or the day they were tested on.


# 2024-03-05, 2024_03_05, 20240305, with a time after a T: 20240305T0630.
DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?:T(\d\d)[:.-]?(\d\d)(?!\d)|(?!\d))")


def own_date(name: str) -> datetime | None:
    """Return the first date in a batch's name; None where there is none."""
    for found in DATE.finditer(name):
        year, _, month, day, hour, minute = found.groups()
        try:
            return datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0))
        except ValueError:
            continue
    return None


def own_dates(records: Sequence[Mapping[str, Any]]) -> list[datetime] | None:
    """Return the dates in the names of all batches, None unless each has one.

    A batch that could not be tested and has none stands with the one before it: a wrong name takes no other's date away.
    """
    dates: list[datetime] = []
    for record in records:
        date = own_date(str(record["batch"]))
        if date is None and record.get("error") is not None and dates:
            date = dates[-1]
        if date is None:
            return None
        dates.append(date)
    return dates or None


def in_order(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return batches by the dates in their names where each has one, else as they came."""
    dates = own_dates(records)
    if dates is None:
        return list(records)
    return [records[i] for i in sorted(range(len(records)), key=lambda i: dates[i])]


def axis_dates(records: Sequence[Mapping[str, Any]]) -> tuple[list[datetime], str] | None:
    """Return where batches stand on an axis of time, and what it shows; None where their order says more.

    Their own dates; without any, the days they were tested on where no two share one (a call tests many within a minute).
    """
    dates = own_dates(records)
    if dates is not None:
        return (dates, "date in the batch's name") if len(set(dates)) > 1 else None
    if any(own_date(str(record["batch"])) for record in records):
        return None
    days = [_day(record.get("time")) for record in records]
    there = sorted({day for day in days if day is not None})
    return (there, "day of the test") if 1 < len(there) == len(days) and days == there else None


def _day(time: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(time)[:10])
    except ValueError:
        return None
