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


@pytest.mark.parametrize("page", ["README.md", "docs/howto/feed.md"])
def test_python_blocks_run(page):
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]))
def test_internal_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), target
