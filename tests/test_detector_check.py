"""Batches that a detector checks together: the command line's answers, from the library."""

import numpy as np
import polars as pl
import pytest

from commands import document, run
from cpmmd import DriftDetector, History, benjamini_hochberg
from cpmmd.errors import CpmmdError, InputError

DATA = np.random.default_rng(0)
REFERENCE = DATA.normal(size=(150, 2))


def detector():
    return DriftDetector("median", n_permutations=199, rng=0).fit(REFERENCE)


def batches(count, changed=()):
    rng = np.random.default_rng(1)
    return {f"day {i}": rng.normal(1.5 * (i in changed), 1, size=(40, 2)) for i in range(count)}


def test_small_pvalues_run_on_among_many_and_all_are_adjusted_together():
    """Among 40 batches 199 relabelings cannot show one: .005 times 40 is .2."""
    calls = []

    def read():
        calls.append(1)
        return batches(40, {7})["day 7"]

    checked = detector().check({**batches(40, {7}), "day 7": read}, explain=False)
    assert [batch.name for batch in checked if batch.differs] == ["day 7"]
    assert checked[7].result.n_permutations == 1599
    assert checked[8].result.n_permutations == 199
    expected = benjamini_hochberg([batch.record["pvalue"] for batch in checked])
    assert [batch.record["adjusted"] for batch in checked] == expected.tolist()
    assert calls == [1]  # its rows were kept: it differed at once


def test_a_history_keeps_answers_and_decisions_and_a_batch_that_cannot_be_tested_stops_nothing(tmp_path):
    with History(tmp_path / "history.sqlite") as history:
        first = detector().check({**batches(3, {2}), "bad": np.zeros((5, 3))}, history=history)
        again = detector().check(batches(3, {2}), history=history)
        anew = detector().check(batches(3, {2}), history=history, again=True)
        strict = detector().check(batches(3, {2}), history=history, alpha=1e-6)
        records = history.records()
    assert [batch.status for batch in first] == ["tested", "tested", "tested", "error"]
    assert isinstance(first[3].failure, InputError)
    assert first[3].error == str(first[3].failure)
    assert [batch.status for batch in again] == ["known"] * 3
    assert [batch.kept for batch in anew] == [False] * 3
    assert [batch.differs for batch in strict] == [False] * 3
    assert [record["reject"] for record in records] == [False, False, True]
    assert [batch.record["adjusted"] for batch in first[:3]] == [record["adjusted"] for record in records]


def test_a_history_may_be_a_path(tmp_path):
    for place, status in [(tmp_path / "history.sqlite", "tested"), (str(tmp_path / "history.sqlite"), "known")]:
        assert [batch.status for batch in detector().check(batches(2), history=place)] == [status] * 2
    with pytest.raises(InputError, match="must be a History, the path of one, or None"):
        detector().check(batches(2), history=3)


def test_a_batch_whose_function_fails_stops_nothing(tmp_path):
    def no_number():
        return np.array([["a", "b"]]).astype(float)

    lost, bad, good = detector().check(
        {"lost": lambda: np.load(tmp_path / "{nothing}.npy"), "bad": no_number, "good": REFERENCE[:40]}
    )
    assert [lost.status, bad.status, good.status] == ["error", "error", "tested"]
    assert "could not be read (FileNotFoundError: " in lost.error
    assert "{nothing}.npy" in lost.error
    assert "could not be read (ValueError: could not convert string" in bad.error


def test_a_batch_that_can_be_read_once_only_keeps_its_pvalue():
    """At a detector's alpha of .01 the rows are not kept; at the check's .1 they are wanted again."""
    readings = iter([batches(1)["day 0"] + 0.25])

    def once():
        try:
            return next(readings)
        except StopIteration:
            raise OSError("gone") from None

    fitted = DriftDetector("median", n_permutations=199, alpha=0.01, rng=0).fit(REFERENCE)
    first, *_ = fitted.check({"once": once, **{f"{i}": REFERENCE[i : i + 40] for i in range(20)}}, alpha=0.2)
    assert (first.status, first.result.n_permutations) == ("tested", 199)
    assert 0.01 < first.record["pvalue"] <= 0.2
    assert "gone" in first.notes[-1]


def test_names_that_are_the_same_as_text_are_refused():
    with pytest.raises(InputError, match=r"name of its own.* Got '1' more than once"):
        detector().check({1: REFERENCE, "1": REFERENCE})


def test_the_command_line_says_what_the_library_says(tmp_path):
    for name, rows in batches(4, {1}).items():
        pl.DataFrame(rows, schema=["u", "v"]).write_csv(tmp_path / f"{name}.csv")
    fitted = DriftDetector("median", n_permutations=199, rng=0).fit(pl.DataFrame(REFERENCE, schema=["u", "v"]))
    fitted.save(tmp_path / "detector")
    files = sorted(tmp_path.glob("*.csv"))
    said = run("check", tmp_path / "detector", *files, "--json")
    assert said.exit_code == 1
    ours = fitted.check({file.name: (lambda file=file: pl.read_csv(file)) for file in files})
    for theirs, batch in zip(document(said)["batches"], ours, strict=True):
        assert {**theirs, "time": "", "path": None} == {**batch.to_dict(), "time": ""}


REFUSED = {"batches": {"batches": [1]}, "alpha": {"alpha": 2}, "missing": {"missing": "no"}}


@pytest.mark.parametrize("named", REFUSED)
def test_what_is_not_asked_rightly_is_refused(named):
    with pytest.raises(CpmmdError, match=named):
        detector().check(**{"batches": {}, **REFUSED[named]})
