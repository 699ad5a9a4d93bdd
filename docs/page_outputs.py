"""A Sphinx extension: every example of a page is followed by what it prints, and by the pages and pictures that it writes."""

from __future__ import annotations

import html
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import page_runs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

FOLDER = "_outputs"  # of the site


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension to Sphinx."""
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-read", show)
    app.connect("build-finished", copy_files)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}


def outdated(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:  # noqa: ARG001  (Sphinx passes it)
    """Return the pages that were read before something changed that their outputs depend on."""
    return [name for name, found in env.metadata.items() if "outputs" in found and found["outputs"] != _key(env, name)]


def show(app: Sphinx, doctree: nodes.document) -> None:
    """Add the outputs to a page that was read."""
    page = Path(app.env.doc2path(app.env.docname))
    if page.suffix != ".md" or not page_runs.pieces(page.read_text()):
        return
    app.env.metadata[app.env.docname]["outputs"] = _key(app.env, app.env.docname)
    blocks = (block for block in list(doctree.findall(nodes.literal_block)) if block.get("language") in ("python", "sh"))
    up = "../" * app.env.docname.count("/")
    place = f"{up}{FOLDER}/{page_runs.place_of(page).name}"
    for outputs in page_runs.outputs_of(page):
        source = "".join(output.code for output in outputs).rstrip("\n")
        block = next((block for block in blocks if block.astext().rstrip("\n") == source), None)
        if block is None:
            raise page_runs.PageError(f"{page}: this block is run, and is not on the page:\n{source}")
        block.replace_self([node for output in outputs for node in _shown(block, output, place)])


def _shown(block: nodes.literal_block, output: page_runs.Output, place: str) -> list[nodes.Node]:
    code, text = output.code.strip("\n"), "\n".join(_line(line) for line in output.text.strip("\n").splitlines())
    found: list[nodes.Node] = [nodes.literal_block(code, code, language=block["language"])]
    if text:
        found.append(nodes.literal_block(text, text, language="text", classes=["output"]))
    return [*found, *(nodes.raw("", _file(f"{place}/{name}"), format="html") for name in output.files)]


def _line(text: str) -> str:
    """Return a line as a terminal of the page's width shows it, broken between words."""
    if len(text) <= page_runs.COLUMNS:
        return text
    label = re.match(r" *(\S+( \S+)?  +)?", text)  # "  note         what it says": the rest stands below what it says
    return textwrap.fill(text, page_runs.COLUMNS, subsequent_indent=" " * (label.end() if label else 0))


def _file(address: str) -> str:
    """Return a page in a frame of its own, or a picture."""
    address, name = html.escape(address), html.escape(Path(address).name)
    if not address.endswith(".html"):
        return f'<p class="output"><img src="{address}" alt="{name}, as drawn by the lines above"></p>'
    frame = f'<iframe class="output" src="{address}" title="{name}" loading="lazy"></iframe>'
    return f'{frame}<p class="output-name"><a href="{address}">{name}</a>, as written by the lines above</p>'


def copy_files(app: Sphinx, error: Exception | None) -> None:
    """Copy the files that examples wrote into the site."""
    if error is None and app.builder.format == "html" and page_runs.KEPT.exists():
        ignored = shutil.ignore_patterns("outputs.json")
        shutil.copytree(page_runs.KEPT, Path(app.outdir) / FOLDER, ignore=ignored, dirs_exist_ok=True)


def _key(env: BuildEnvironment, name: str) -> str:
    page = Path(env.doc2path(name))
    return page_runs.key_of(page) if page.exists() else ""
