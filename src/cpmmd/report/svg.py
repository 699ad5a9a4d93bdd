"""A matplotlib figure as SVG that can stand inside a page: own ids, no scripts, colours that follow the page's theme."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from cpmmd.core.text import LINE, harmless

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
