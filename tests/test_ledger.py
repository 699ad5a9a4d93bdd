"""The ledger: stored answers of the public interface, given again to the last bit (see ``ledger.py``)."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import ledger

APART = ("commands", "detectors", "test 1000 rows", *ledger.LONG)
SHORT = [*APART[:3], ",".join(section for section in ledger.SECTIONS if section not in APART)]
pytestmark = [
    pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="the one arithmetic is one of x86-64"),
    pytest.mark.skipif(ledger.stored()["versions"] != ledger.VERSIONS, reason="stored with other versions of its packages"),
]


def differing(section, *more):
    """Compare a section in a process that loads its libraries under the fixed variables; return what it says."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    ran = subprocess.run(
        [sys.executable, ledger.__file__, "--only", section, *more],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr * (ran.returncode != 0)


@pytest.mark.parametrize("section", SHORT)
def test_answers_are_the_stored_ones(section):
    assert differing(section) == ""


@pytest.mark.statistical
@pytest.mark.parametrize("section", ledger.LONG)
def test_long_answers_are_the_stored_ones(section):
    pytest.importorskip("torch")
    assert differing(section) == ""


@pytest.mark.statistical
@pytest.mark.parametrize("section", ledger.SECTIONS)
def test_two_threads_give_the_stored_answers(section):
    assert differing(section, "--threads", "2") == ""


def test_every_section_is_stored_and_the_files_are_small():
    known = {key.split(": ")[0] for key in ledger.stored() if key != "versions"}
    assert known == set(ledger.SECTIONS)
    assert ledger.LEDGER.stat().st_size < 400_000
    assert all(Path(file).stat().st_size < 100_000 for file in ledger.V02.iterdir())
