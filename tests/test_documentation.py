"""What the README and the docstrings show is what happens."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import cpmmd

ROOT = Path(__file__).parents[1]
MODULES = [m.name for m in pkgutil.walk_packages(cpmmd.__path__, "cpmmd.")]


PAGES = sorted(
    p.relative_to(ROOT).as_posix()
    for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if not {"_build", "gallery", "generated"} & set(p.parts)
)


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in python_blocks(page):
        exec(compile(block, page, "exec"), namespace)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_internal_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert ((ROOT / page).parent / target).exists(), target
