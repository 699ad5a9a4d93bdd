"""A fixed slice of the fuzz in every run; all of it in the long one (make test-statistical)."""

import pandas as pd
import pytest

from cpmmd.data import numbers, table
from fuzz import run

SLICE = {"frames": 100, "files": 150, "lines": 50}
ALL = {"frames": (10_000, 250), "files": (10_000, 1000), "lines": (2_000, 100)}  # cases, and how many to one test
CHUNKS = [(kind, first, min(first + size, cases)) for kind, (cases, size) in ALL.items() for first in range(0, cases, size)]


def assert_none(faults):
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("kind", run.KINDS)
def test_random_cases_end_in_an_answer_or_a_sentence(kind):
    assert_none(run.faults(kind, 0, SLICE[kind]))


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "first", "end"), CHUNKS, ids=[f"{kind}-{first}" for kind, first, _ in CHUNKS])
def test_many_random_cases_end_in_an_answer_or_a_sentence(kind, first, end):
    assert_none(run.faults(kind, first, end))


def without_pandas_na(monkeypatch):
    """Take pandas.NA for a value, as the package once did."""

    def blind(value):
        return value is not pd.NA and (value is None or value != value)

    monkeypatch.setattr(table, "is_missing", blind)
    monkeypatch.setattr(numbers, "is_missing", blind)


def with_mixed_columns(monkeypatch):
    """Take numbers beside text for categories, as the package once did."""
    monkeypatch.setattr(table, "_check_unmixed", lambda *_: None)


@pytest.mark.parametrize("reverted", [without_pandas_na, with_mixed_columns])
def test_the_slice_finds_a_fault_that_was_mended(monkeypatch, reverted):
    reverted(monkeypatch)
    faults = (fault for case in range(SLICE["frames"]) for fault in run.faults("frames", case, case + 1))
    assert any("were answered" in fault.what for fault in faults)
