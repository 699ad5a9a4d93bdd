"""The pictures of a page: those of :mod:`cpmmd.plotting` as SVG in the page's colours, and small ones of each column."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from cpmmd import plotting
from cpmmd.core.installation import missing_extra
from cpmmd.core.text import LINE, sanitize
from cpmmd.data.preparation import MISSING
from cpmmd.explain.differences import Histogram
from cpmmd.explain.values import Explanation
from cpmmd.plotting import style
from cpmmd.procedures.outcome import TestResult
from cpmmd.report.page import Figure, Page, walk
from cpmmd.statistics.columns import date_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Drawing = Callable[["Axes"], "Axes"]
Drawings = Mapping[str, Drawing]
# Inches at 72 points: shown about 1.3 times as large on a desktop, 1.05 times on a phone, so 10 points are 13 and 10.5 pixels.
NARROW, WIDE, SMALL = (4.8, 3.5), (9.6, 3.9), (4.8, 2.4)
ACROSS, UPWARDS = 48, 30  # characters of an axis label on one line
INK, PAPER = "#0a0b0c", "#f0f1f2"  # stand for the page's own colours
PALETTE = {
    INK: "currentColor",
    PAPER: "var(--page)",
    style.BLUE: "var(--x)",
    style.ORANGE: "var(--y)",
    style.GREY: "var(--grey)",
    style.PURPLE: "var(--purple)",
    style.GREEN: "var(--green)",
}
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
HALFWAY = "#808080"  # between a light page and a dark one
STYLE: dict[Any, object] = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched, and wears the page's font
    "svg.hashsalt": "cpmmd",  # equal pictures, equal files
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-3, 5),
    **dict.fromkeys(INKED, INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), PAPER),
}


def draw_figures(page: Page, drawings: Drawings) -> tuple[dict[str, str], Stylesheet]:
    """Return the SVG of every figure of a page, and the style they share."""
    sheet, pictures = Stylesheet(PALETTE), {}
    for figure in (part for section in page.sections for part in walk(section.parts) if isinstance(part, Figure)):
        with _canvas(drawings[figure.id], STYLE, WIDE if figure.wide else NARROW) as canvas:
            described = {"title": figure.title, "description": figure.description}
            pictures[figure.id] = _inline_svg(canvas, name=figure.id, **described, sheet=sheet)
    return pictures, sheet


def png_picture(drawing: Drawing) -> bytes:
    """Return one small picture that can be read on a light page and on a dark one."""
    buffer = io.BytesIO()
    with _canvas(drawing, {**STYLE, **dict.fromkeys(INKED, HALFWAY)}, SMALL) as canvas:
        canvas.savefig(buffer, format="png", dpi=100, transparent=True)
    return buffer.getvalue()


@contextmanager
def _canvas(drawing: Drawing, look: dict[Any, object], size: tuple[float, float]) -> Iterator[Canvas]:
    """Yield a figure with a drawing on it, while its style is in force."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise missing_extra("A picture", "matplotlib", "report") from error
    with matplotlib.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's browser has more fonts
        canvas = Canvas(figsize=size, layout="constrained")
        _tidy(drawing(canvas.subplots()))
        yield canvas


def _tidy(ax: Axes) -> None:
    """Fit labels to a small picture: few numbers on an axis, plain ones on a logarithmic axis, long names on two lines."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log":
            decades = abs(np.log10(ends[1] / ends[0]))
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
        elif isinstance(axis.get_major_locator(), MaxNLocator):
            ax.locator_params(axis="x" if axis is ax.xaxis else "y", nbins=6)
    ax.set_xlabel(textwrap.fill(ax.get_xlabel(), ACROSS))
    ax.set_ylabel(textwrap.fill(ax.get_ylabel(), UPWARDS))


def result_drawings(result: TestResult, explanation: Explanation | None) -> Drawings:
    """Return what draws each picture of one test."""
    subject = result if explanation is None else explanation
    return {
        "null-distribution": lambda ax: plotting.null_distribution(result, ax=ax),
        "criterion-path": lambda ax: plotting.criterion_path(result, ax=ax),
        "training-history": lambda ax: plotting.training_history(result, ax=ax),
        "column-differences": lambda ax: plotting.column_differences(subject, ax=ax),
        "witness-densities": lambda ax: plotting.witness_densities(subject, ax=ax),
        "pool-map": lambda ax: plotting.pool_map(subject, ax=ax),
    }


# A figure of matplotlib as SVG inside a page: own ids, no scripts, colours that follow the page's theme.


NAMESPACE = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
DRAWN = {"svg", "g", "path", "use", "defs", "clipPath", "pattern", "rect", "text", "tspan", "image"}
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # a name may hold them, an XML file may not
COORDINATES = {"d", "x", "y", "points"}
DECIMALS = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")  # a hundredth of a point is less than a screen shows
OPACITY = re.compile(r"opacity: [\d.]+")
REFERENCE = re.compile(r"url\(#([^)]*)\)")
FONT = re.compile(r"(?:(?P<variant>(?:italic|bold|\d00)\s+)*)(?P<size>[\d.]+px)")


@dataclass
class Stylesheet:
    """The declarations of all figures of one page, each under one class.

    Style attributes would need a content security policy that allows any inline style; a sheet has a hash.
    """

    palette: Mapping[str, str]
    classes: dict[str, str] = field(default_factory=dict)

    def class_of(self, style: str) -> str:
        """Return the class for a style attribute; empty when nothing of it is kept."""
        kept = []
        for declaration in style.split(";"):
            name, _, value = (part.strip() for part in declaration.partition(":"))
            if name == "font":  # the family is the page's
                found = FONT.search(value)
                name, value = "font-size", found.group("size") if found else "10px"
            if name and name != "font-family":
                kept.append(f"{name}: {self.palette.get(value.lower(), value)}")
        return self.classes.setdefault("; ".join(kept), f"s{len(self.classes)}") if kept else ""

    @property
    def css(self) -> str:
        """The rules."""
        return "\n".join(f".{name} {{ {declarations} }}" for declarations, name in self.classes.items())


def _inline_svg(figure: Canvas, *, name: str, title: str, description: str, sheet: Stylesheet) -> str:
    """Return the figure's SVG element, named and described for a screen reader."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(NOT_XML.sub("", buffer.getvalue()))
    for element in list(root.iter()):  # removes metadata, style sheets, and any scripts
        for child in list(element):
            if not isinstance(child.tag, str) or child.tag.removeprefix(NAMESPACE) not in DRAWN:
                element.remove(child)
    for ground in root.iterfind(f".//{NAMESPACE}pattern/{NAMESPACE}rect"):
        ground.set("style", "fill-opacity: 0.35")  # matplotlib paints ground and hatching alike, and so hides the hatching
    for element in root.iter():
        _localise(element, name, sheet)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-description", "focusable": "false"}
    for position, (tag, words) in enumerate((("title", title), ("desc", description))):
        spoken = ElementTree.Element(tag, {"id": f"{name}-{'title' if tag == 'title' else 'description'}"})
        spoken.text = words
        root.insert(position, spoken)
    return ElementTree.tostring(root, encoding="unicode")


def _localise(element: ElementTree.Element, name: str, sheet: Stylesheet) -> None:
    """Make ids this figure's own, turn the style attribute into a class, and let no link leave the file."""
    element.tag = element.tag.removeprefix(NAMESPACE)
    if element.text and element.text.strip():
        element.text = sanitize(element.text, LINE)
    link = element.attrib.pop(HREF, element.attrib.pop("href", ""))
    if link.startswith("#"):
        element.set("href", f"#{name}-{link[1:]}")
    elif link.startswith("data:image/png;base64,"):
        element.set("href", link)
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.attrib['id']}")
    for attribute in COORDINATES & set(element.attrib):
        rounded = DECIMALS.sub(lambda found: f"{float(found.group()):.2f}", element.attrib[attribute])
        element.set(attribute, " ".join(rounded.split()))
    for attribute, value in element.attrib.items():
        element.set(attribute, REFERENCE.sub(lambda found: f"url(#{name}-{found.group(1)})", value))
    style = element.attrib.pop("style", "")
    if "fill: url(" in style:
        style = OPACITY.sub("opacity: 0.7", style)
    paint = [f"{name}: {element.attrib.pop(name)}" for name in ("fill", "stroke") if name in element.attrib]
    chosen = sheet.class_of("; ".join([*paint, style]))
    if chosen:
        element.set("class", chosen)
    for attribute in [a for a in element.attrib if a.lower().startswith("on")]:
        del element.attrib[attribute]


# Small pictures of a column in both samples: the template draws them; these are their axes.


WIDTH = 200  # of the picture
MOST_NAMED = 4  # bars that have room for a name each
LETTER = 5.2  # width of one in the axis


def axis_names(histogram: Histogram, kind: str) -> list[tuple[float, str, str]]:
    """Return place, anchor and text of the labels below a small picture: of the bars, or of both ends and the middle."""
    if not histogram.labels:
        low, high = histogram.edges[0], histogram.edges[-1]
        if kind == "date":
            return [(0, "start", date_text(low)[:10]), (WIDTH, "end", date_text(high)[:10])]
        first, middle, last = (
            f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}" for value in (low, (low + high) / 2, high)
        )
        return [(0, "start", first), (WIDTH / 2, "middle", middle), (WIDTH, "end", last)]
    texts = ["missing" if label == MISSING else sanitize(label) for label in histogram.labels]
    room = int(WIDTH / len(texts) / LETTER)
    if len(texts) <= MOST_NAMED or max(map(len, texts)) <= room:
        return [((i + 0.5) * WIDTH / len(texts), "middle", _cut(text, room)) for i, text in enumerate(texts)]
    half = int(WIDTH / 2 / LETTER) - 2
    return [(0, "start", _cut(texts[0], half)), (WIDTH, "end", _cut(texts[-1], half))]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 1)]}…"
