"""The conda recipe asks for what the package asks for."""

import re
import tomllib
from pathlib import Path

import cpmmd

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "conda" / "recipe.yaml").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def needed(requirements):
    """Return what pip's requirements ask for, as conda writes it."""
    found = {re.match(r"([\w-]+)(.*)", requirement).groups() for requirement in requirements}
    return {f"{'matplotlib-base' if name == 'matplotlib' else name} {bounds}" for name, bounds in found}


def section(name):
    block = re.search(rf"^  {name}:\n((?:    .*\n)+)", RECIPE, flags=re.M)[1]
    return {line.removeprefix("    - ") for line in block.splitlines() if line.startswith("    - ")}


def test_it_needs_what_the_package_with_command_line_and_reports_needs():
    extras = PROJECT["optional-dependencies"]
    wanted = needed([*PROJECT["dependencies"], *extras["cli"], *extras["report"]])
    assert section("run") == wanted | {f"python {PROJECT['requires-python']}"}


def test_it_is_of_this_version_and_license():
    assert f'version: "{cpmmd.__version__}"' in RECIPE
    assert f"license: {PROJECT['license']}\n" in RECIPE
    assert all(f"{name} = {target}" in RECIPE for name, target in PROJECT["scripts"].items())
