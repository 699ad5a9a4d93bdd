"""What the pages say of other packages was run, and all that was run is shown."""

import json
from pathlib import Path

import pytest

from benchmarks.elsewhere import FIELD, REQUIREMENTS
from benchmarks.elsewhere_cells import CELLS

ROOT = Path(__file__).parents[1]
FOUND = json.loads((ROOT / "benchmarks" / "results" / "elsewhere.json").read_text())
FAULTS = {fault for cells in CELLS.values() for fault in cells}


@pytest.mark.parametrize("package", CELLS)
def test_every_cell_has_an_answer_or_a_reason(package):
    one = FOUND["packages"][package]
    assert "skipped" in one or one["cells"].keys() == CELLS[package].keys()
    assert not [cell for cell in one.get("cells", {}).values() if "failed" in cell]


@pytest.mark.parametrize("package", REQUIREMENTS)
def test_the_version_that_ran_is_the_newest_that_was_found(package):
    version = FOUND["packages"][package].get("version")
    assert version in (None, FOUND["facts"][package]["version"])
    assert any(requirement.endswith(f"=={version}") for requirement in REQUIREMENTS[package] if version)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_every_fault_is_shown_beside_our_own_answer(fault):
    assert f"generated/elsewhere_{fault}.md" in (ROOT / "docs" / "elsewhere.md").read_text()
    assert fault in CELLS["cpmmd"]


def test_every_package_of_the_field_has_its_facts():
    assert FOUND["facts"].keys() == set(FIELD)
