"""What pyproject.toml promises about other packages is what is tested."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOLS = {"lint", "docs", "dev"}  # what they say depends on their version
MODULES = {"sklearn": "scikit-learn"}  # imported under another name


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def split(requirement):
    name, floor = re.fullmatch(r"([\w.-]+)>=([\d.]+)(?:,<[\d.]+)?", requirement).groups()
    return plain(name), floor


def floors(extras):
    own = [r for extra in extras for r in PROJECT["optional-dependencies"][extra] if not r.startswith("cpmmd[")]
    return sorted({split(requirement) for requirement in own})


def pins(file):
    lines = [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")]
    return {plain(name): version for name, version in (line.split("==") for line in lines)}


def number(version):
    return tuple(int(part) for part in version.split("."))


RUNTIME = sorted({split(requirement) for requirement in PROJECT["dependencies"]})
TESTED = sorted({*RUNTIME, *floors(PROJECT["optional-dependencies"].keys() - TOOLS - {"all", "deep"})})


def test_floors_are_pinned_where_they_are_tested():
    found = pins("constraints-floor.txt")
    assert found.keys() == {name for name, _ in TESTED}
    for name, floor in TESTED:
        assert number(found[name])[: len(number(floor))] == number(floor), f"{name} {floor} is tested as {found[name]}"
        assert not any(number(found[name])[len(number(floor)) :]), f"{name} {found[name]} is not the lowest of {floor}"


def test_no_two_extras_disagree_about_a_floor():
    names = [name for name, _ in TESTED]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "floor"), [*TESTED, *floors(["deep", *sorted(TOOLS)])])
def test_what_is_pinned_is_allowed(name, floor):
    assert number(pins("constraints.txt")[name]) >= number(floor)


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def test_every_import_of_the_package_is_declared():
    declared = {name for name, _ in [*TESTED, *floors(["deep"])]}
    used = {module: path.name for path in sorted((ROOT / "src").rglob("*.py")) for module in imports(path)}
    foreign = used.keys() - sys.stdlib_module_names - {"cpmmd", "_typeshed"}  # the last one is of type checkers only
    assert {module: used[module] for module in foreign if MODULES.get(module, plain(module)) not in declared} == {}
