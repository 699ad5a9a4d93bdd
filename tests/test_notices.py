"""What a result notices about rows that are not exchangeable one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commands import QUICK, run
from cpmmd import two_sample_test
from cpmmd.data.pool import read_pool
from helpers import autoregressive

SEEN = "rows depend on each other"


def _noticed(x, y):
    return any(SEEN in note for note in read_pool(x, y).notes)


@pytest.mark.parametrize(("rows", "columns"), [(60, 3), (300, 10)])
def test_dependent_rows_are_noticed_in_95_of_100_runs_and_independent_ones_in_at_most_5(rows, columns):
    rng = np.random.default_rng(rows)
    dependent = sum(
        _noticed(autoregressive(rng, rows, columns, 0.5), autoregressive(rng, rows, columns, 0.5)) for _ in range(100)
    )
    independent = sum(_noticed(rng.normal(size=(rows, columns)), rng.normal(1, 2, size=(rows, columns))) for _ in range(100))
    assert dependent >= 95
    assert independent <= 5


def test_heavy_tails_ties_and_few_rows_are_not_taken_for_dependence():
    rng = np.random.default_rng(0)
    draws = (rng.standard_cauchy, lambda size: rng.integers(0, 2, size), lambda size: rng.exponential(size=size) ** 4)
    for draw in draws:
        assert sum(_noticed(draw((100, 10)), draw((80, 10))) for _ in range(100)) <= 2
    assert not any(_noticed(np.arange(4.0), np.arange(5.0)) for _ in range(3))


def test_a_note_names_what_was_seen_and_what_helps_and_changes_nothing():
    rng = np.random.default_rng(1)
    x, y = autoregressive(rng, 200, 2, 0.5), autoregressive(rng, 200, 2, 0.5)
    result = two_sample_test(x, y, method="median", rng=0)
    (note,) = [note for note in result.notes if SEEN in note]
    assert "one row before" in note
    assert "blocks='auto'" in note
    shuffled = two_sample_test(x, y, method="median", rng=0, blocks="auto")
    assert not any(SEEN in note for note in shuffled.notes)


def test_the_command_line_advises_flags(tmp_path):
    rng = np.random.default_rng(1)
    for name in "ab":
        pd.DataFrame(autoregressive(rng, 80, 2, 0.7), columns=["u", "v"]).to_csv(tmp_path / f"{name}.csv", index=False)
    said = run("test", tmp_path / "a.csv", tmp_path / "b.csv", *QUICK, "--no-explain").stdout
    assert "--blocks auto" in said
    assert "blocks=" not in said


def test_a_column_that_names_groups_rows_or_times_is_noticed():
    rng = np.random.default_rng(2)
    rows = {"value": rng.normal(size=60)}
    x = pd.DataFrame({**rows, "patient": np.repeat([f"p{i}" for i in range(12)], 5), "id": np.arange(60)})
    y = pd.DataFrame({**rows, "patient": np.repeat([f"q{i}" for i in range(12)], 5), "id": np.arange(60)})
    notes = read_pool(x, y).notes
    assert any("'patient' looks like the name of a group" in note and "groups='patient'" in note for note in notes)
    assert any("'id' numbers the rows" in note for note in notes)
    times = pd.DataFrame({**rows, "at": pd.date_range("2024-01-01", periods=60, freq="h")})
    assert any("'at' looks like the time of each row" in note for note in read_pool(times, times).notes)
    plain = pd.DataFrame({**rows, "site": rng.choice(["a", "b", "c"], 60), "age": rng.integers(20, 80, 60)})
    assert not read_pool(plain, plain.sample(frac=1, random_state=0)).notes


def _repeats(x, y):
    return [note for note in read_pool(x, y).notes if "repeat another row of the same sample exactly" in note]


def test_copied_rows_are_noticed():
    rng = np.random.default_rng(2)
    for _ in range(30):
        x, y = rng.normal(size=(500, 3)), rng.normal(size=(500, 3))
        y[350:] = y[rng.integers(0, 350, 150)]  # a join that repeats 30% of the rows
        (note,) = _repeats(x, y)
        assert note.startswith("150 of 500 rows of sample y")
        assert "groups=" in note
        assert len(_repeats(y, y[::-1] + 1)) == 2  # both samples went through the join


def test_discrete_data_are_not_taken_for_copies():
    rng, found = np.random.default_rng(3), 0
    for _ in range(200):
        levels, decimals, columns = rng.integers(2, 3000), rng.integers(0, 3), rng.integers(1, 4)
        draws = (
            lambda rows, shape=(levels, columns): rng.integers(0, shape[0], size=(rows, shape[1])).astype(float),
            lambda rows, shape=(decimals, columns): np.round(rng.normal(size=(rows, shape[1])), shape[0]),
            lambda rows, shape=columns: rng.poisson(20, size=(rows, shape)).astype(float),
        )
        draw = draws[rng.integers(3)]
        x, y = draw(rng.integers(20, 600)), draw(rng.integers(20, 600))
        found += len(_repeats(x, y)) + (len(_repeats(x, y + 1)) if len(np.unique(y)) < 100 else 0)
    assert not found
    assert not _repeats(np.repeat([[1.0, 2.0]], 50, axis=0), np.repeat([[1.0, 2.5]], 50, axis=0))
    x = rng.normal(size=(100, 2))
    assert not _repeats(x, x)  # rows that stand in both samples are another matter


def test_texts_that_are_all_different_are_noticed():
    frames = [pd.DataFrame({"text": [f"{word} number {i}" for i in range(60)]}) for word in ("review", "comment")]
    notes = [note for note in read_pool(*frames).notes if "nearly every text in column 'text' is different" in note]
    assert "embeddings" in notes[0]
    few = [pd.DataFrame({"text": ["yes", "no", "perhaps"] * 20}) for _ in range(2)]
    assert not any("nearly every text" in note for note in read_pool(*few).notes)
