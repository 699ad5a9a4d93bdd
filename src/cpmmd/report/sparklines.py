"""Small pictures of a column in both samples, as SVG of our own: bars for values, steps for a line, the ends of the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cpmmd.core.text import harmless
from cpmmd.data.preparation import MISSING
from cpmmd.explain.columns import date_text

WIDTH, HEIGHT, AXIS = 200, 64, 14  # of the picture, and of the axis below it
MOST_NAMED = 4  # bars that have room for a name each
LETTER = 5.2  # width of one in the axis


def histogram_svg(histogram: Mapping[str, Any], kind: str, names: Sequence[str]) -> str:
    """Return a column's picture: the first sample in the first colour, the second in the other.

    Parameters
    ----------
    histogram
        ``edges`` or ``labels``, and the shares ``x`` and ``y``.
    kind
        Of the column: dates have dates on the axis.
    names
        Of the samples, for those who do not see it.
    """
    labels = list(histogram["labels"])
    drawn = _bars(histogram) if labels else _steps(histogram)
    axis = _bar_names(labels) if labels else _ends(histogram["edges"], kind)
    said = f"Shares of the values in {harmless(names[0], 40)} and in {harmless(names[1], 40)}"
    return (
        f'<svg class="mini" viewBox="0 0 {WIDTH} {HEIGHT + AXIS}" role="img" aria-label="{escape(said)}" focusable="false">'
        f'<path class="axis" d="M0 {HEIGHT}H{WIDTH}"/>{drawn}{axis}</svg>'
    )


def _scale(histogram: Mapping[str, Any]) -> float:
    return (HEIGHT - 2) / (max([*histogram["x"], *histogram["y"]], default=0.0) or 1.0)


def _bars(histogram: Mapping[str, Any]) -> str:
    """Draw a pair of bars for each value, side by side."""
    width, scale = WIDTH / len(histogram["x"]), _scale(histogram)
    parts = []
    for sample, offset in (("x", 0.12), ("y", 0.52)):
        for position, share in enumerate(histogram[sample]):
            height = scale * share
            place = f'x="{(position + offset) * width:.1f}" y="{HEIGHT - height:.1f}" width="{0.36 * width:.1f}"'
            parts.append(f'<rect class="{sample}" {place} height="{height:.1f}"/>')
    return "".join(parts)


def _steps(histogram: Mapping[str, Any]) -> str:
    """Draw both distributions as steps over one line."""
    width, scale = WIDTH / len(histogram["x"]), _scale(histogram)
    parts = []
    for sample in "xy":
        steps = "".join(f"V{HEIGHT - scale * share:.1f}H{(i + 1) * width:.1f}" for i, share in enumerate(histogram[sample]))
        parts.append(f'<path class="{sample} area" d="M0 {HEIGHT}{steps}V{HEIGHT}Z"/>')
    return "".join(parts)


def _bar_names(labels: Sequence[str]) -> str:
    """Name the bars, or the first and the last where there is no room."""
    count = len(labels)
    room = int(WIDTH / count / LETTER)
    texts = ["missing" if label == MISSING else harmless(label, 80) for label in labels]
    if count <= MOST_NAMED or max(map(len, texts)) <= room:
        return "".join(_text((i + 0.5) * WIDTH / count, "middle", _cut(text, room)) for i, text in enumerate(texts))
    half = int(WIDTH / 2 / LETTER) - 2
    return _text(0, "start", _cut(texts[0], half)) + _text(WIDTH, "end", _cut(texts[-1], half))


def _ends(edges: Sequence[float], kind: str) -> str:
    low, middle, high = (_value(edge, kind) for edge in (edges[0], (edges[0] + edges[-1]) / 2, edges[-1]))
    between = "" if kind == "date" else _text(WIDTH / 2, "middle", middle)
    return _text(0, "start", low) + between + _text(WIDTH, "end", high)


def _value(value: float, kind: str) -> str:
    if kind == "date":
        return date_text(value)[:10]
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def _text(x: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT + AXIS - 3}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 1)]}…"
