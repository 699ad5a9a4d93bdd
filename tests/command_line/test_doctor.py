"""``cpmmd doctor``: versions, extras, threads, memory and a self-test."""

import pytest

from commands import document, run
from cpmmd.cli import doctor


def test_it_says_what_is_there():
    result = run("doctor")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("The self-test passed in ")
    for word in ("numpy 2.", "scipy ", "torch ", "core", "free of"):
        assert word in result.stdout


def test_its_document():
    found = document(run("doctor", "--json"))
    assert found["well"]
    assert found["required"]["numpy"]
    assert found["extras"]["report"]["matplotlib"]
    assert "lint" not in found["extras"]
    assert found["self_test"]["pvalues"] == found["self_test"]["expected"]


@pytest.mark.parametrize("fault", ["a wrong p-value", "a missing package"])
def test_what_is_wrong_ends_in_an_error(monkeypatch, fault):
    if fault == "a wrong p-value":
        monkeypatch.setattr(doctor, "EXPECTED", (0.5, 0.5))
    else:
        monkeypatch.setattr(doctor, "_packages", lambda: ({"numpy": None}, {"deep": {"torch": None}}))
    result = run("doctor")
    assert result.exit_code == 2
    words = "The self-test FAILED" if fault == "a wrong p-value" else "numpy NOT INSTALLED"
    assert words in result.stdout
    if fault == "a missing package":
        assert "install with" in result.stdout
