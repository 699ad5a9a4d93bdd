"""A matplotlib figure as SVG that can stand inside a page: own ids, no scripts, colours that follow the page's theme."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any
from xml.etree import ElementTree

from cpmmd.core.text import LINE, harmless
from cpmmd.data.preparation import MISSING
from cpmmd.explain.columns import date_text

# Small pictures of a column in both samples, as SVG of our own: bars for values, steps for a line, the ends of the axis.


WIDTH, HEIGHT, AXIS = 200, 64, 14  # of the picture, and of the axis below it
MOST_NAMED = 4  # bars that have room for a name each
LETTER = 5.2  # width of one in the axis


def histogram_svg(histogram: Mapping[str, Any], kind: str, names: Sequence[str]) -> str:
    """Return a column's picture: the first sample in the first colour, the second in the other."""
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

    Style attributes would need a content security policy that lets anybody's style in; a sheet has a hash.
    """

    palette: Mapping[str, str]
    classes: dict[str, str] = field(default_factory=dict)

    def class_of(self, style: str) -> str:
        """Return the class that stands for a style attribute; empty when nothing of it is kept."""
        kept = "; ".join(self._declarations(style))
        return self.classes.setdefault(kept, f"s{len(self.classes)}") if kept else ""

    @property
    def css(self) -> str:
        """The rules."""
        return "\n".join(f".{name} {{ {declarations} }}" for declarations, name in self.classes.items())

    def _declarations(self, style: str) -> list[str]:
        kept = []
        for declaration in style.split(";"):
            name, _, value = (part.strip() for part in declaration.partition(":"))
            if name == "font":  # the family is the page's
                found = FONT.search(value)
                name, value = "font-size", found.group("size") if found else "10px"
            if name and name != "font-family":
                kept.append(f"{name}: {self.palette.get(value.lower(), value)}")
        return kept


def inline_svg(figure: Any, *, name: str, title: str, description: str, sheet: Stylesheet) -> str:
    """Return the figure's SVG element, named and described for a screen reader."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(NOT_XML.sub("", buffer.getvalue()))
    _keep_drawing(root)
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


def _keep_drawing(element: ElementTree.Element) -> None:
    """Remove whatever does not draw (metadata, style sheets, and scripts should there ever be any)."""
    for child in list(element):
        if not isinstance(child.tag, str) or child.tag.removeprefix(NAMESPACE) not in DRAWN:
            element.remove(child)
        else:
            _keep_drawing(child)


def _localise(element: ElementTree.Element, name: str, sheet: Stylesheet) -> None:
    """Make ids this figure's own, turn the style attribute into a class, and let no link leave the file."""
    element.tag = element.tag.removeprefix(NAMESPACE)
    if element.text and element.text.strip():
        element.text = harmless(element.text, LINE)
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
