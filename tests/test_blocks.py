"""Blocks of rows in time whose length is taken from the data: long enough for what is seen, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from commands import run
from cpmmd import kernel_matrix_test, two_sample_test
from cpmmd.data.notices import block_length
from cpmmd.data.pool import read_pool
from cpmmd.errors import InputError
from helpers import autoregressive, most_rejections, shared_data


def _trait_by_hand(values, *, squared):
    ranks = rankdata(values) - (len(values) + 1) / 2
    trait = ranks**2 if squared else ranks
    return (trait - trait.mean()) / trait.std()


def _needed_by_hand(trait, sure):
    """The rows that one trait needs, lag by lag."""
    missed, variance, squares, last, pluralize = 0.0, 1.0, 0.0, 0, True
    for k in range(1, max(map(len, trait))):
        parts = [part for part in trait if len(part) > k]
        rows = sum(map(len, parts))
        r = sum(float(part[k:] @ part[:-k]) for part in parts) / rows
        bartlett = np.sqrt((1 + 2 * squares) / rows)
        bound = sure * bartlett
        pluralize = r > bound or (pluralize and r > max(2 / np.sqrt(rows), 1.2 * bartlett))
        if pluralize:
            missed, variance, squares, last = missed + 2 * k * r, variance + 2 * r, squares + r**2, k
        if r < -bound or k - last >= 50:
            break
    return missed / (0.1 * variance)


def _length_by_hand(x, y):
    sure, longest = norm.isf(0.001 / (50 * 2 * x.shape[1])), 1.0
    for j in range(x.shape[1]):
        ranks, squares = ([_trait_by_hand(part[:, j], squared=squared) for part in (x, y)] for squared in (False, True))
        spread = min(_needed_by_hand(trait, sure) for trait in (squares, squares[:1], squares[1:]))
        longest = max(longest, _needed_by_hand(ranks, sure), spread)
    return int(np.ceil(longest))


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9])
def test_the_length_misses_a_tenth_of_the_long_run_variance(coefficient):
    rng = np.random.default_rng(3)
    x, y = autoregressive(rng, 400, 3, coefficient), autoregressive(rng, 300, 3, coefficient)
    assert block_length(read_pool(x, y)).rows == _length_by_hand(x, y)


def test_the_length_does_not_see_a_difference_between_the_samples():
    rng = np.random.default_rng(4)
    x, y = autoregressive(rng, 400, 3, 0.8), autoregressive(rng, 300, 3, 0.8)
    assert block_length(read_pool(x, 5 - 3 * y)) == block_length(read_pool(x, y))
    assert block_length(read_pool(x, y)).rows > 20


def _spread_in_runs(rng):
    return np.repeat(np.exp(rng.normal(size=20)), 50)[:, None] * rng.normal(size=(1000, 1))


def _sensors_in_turn(rng):
    return autoregressive(rng, 100, 10, 0.9).reshape(-1, 1)


def _levels_in_runs(rng):
    inside = np.repeat(rng.integers(0, 2, 50), 20) == 1
    return pd.DataFrame({"level": np.where(inside, "b", rng.choice(["a", "c"], 1000))})


def _gaps_in_runs(rng):
    return np.where(np.repeat(rng.integers(0, 2, 50), 20) == 1, np.nan, rng.normal(size=1000))[:, None]


def _late(rng):
    rows = rng.normal(size=(30_000, 1))
    rows[20_000:] = autoregressive(rng, 10_000, 1, 0.9)
    return rows


def _one_column_of_many(rng):
    return np.hstack([rng.normal(size=(400, 150)), autoregressive(rng, 400, 3, 0.95)])


@pytest.mark.parametrize("make", [_spread_in_runs, _sensors_in_turn, _levels_in_runs, _gaps_in_runs, _late, _one_column_of_many])
def test_dependence_that_no_first_correlation_of_values_shows_is_seen(make):
    rng = np.random.default_rng(6)
    found = block_length(read_pool(make(rng), make(rng), missing="impute"))
    assert found.rows > 15
    assert found.trait


def test_a_spread_that_comes_and_goes_is_noticed():
    rng = np.random.default_rng(7)
    (note,) = read_pool(_spread_in_runs(rng), _spread_in_runs(rng)).notes
    assert "the scale of column" in note


def test_independent_rows_and_a_cycle_need_no_long_blocks():
    rng = np.random.default_rng(8)
    lengths = [block_length(read_pool(rng.normal(size=(300, 40)), rng.normal(size=(300, 40)))).rows for _ in range(20)]
    assert max(lengths) <= 10
    day = np.sin(np.arange(720) * 2 * np.pi / 24)[:, None]
    assert block_length(read_pool(day + rng.normal(size=(720, 1)), day + rng.normal(size=(720, 1)))).rows <= 48


def test_rows_sorted_by_stratum_and_columns_of_time_are_not_taken_for_dependence():
    rng = np.random.default_rng(9)
    site = np.repeat(np.arange(4), 100)
    x, y = (pd.DataFrame({"v": 5.0 * site + rng.normal(size=400), "site": site}) for _ in range(2))
    assert two_sample_test(x, y, method="median", strata="site", blocks="auto", rng=0).design.block_rows <= 5
    times = [pd.DataFrame({"v": rng.normal(size=300), "at": pd.date_range("2024-01-01", periods=300, freq="h")}) for _ in "xy"]
    result = two_sample_test(*times, method="median", blocks="auto", rng=0)
    assert result.design.block_rows <= 5
    assert any("looks like the time of each row" in note for note in result.notes)


def test_a_batch_shorter_than_the_dependence_is_refused():
    rng = np.random.default_rng(10)
    with pytest.raises(InputError, match=r"over about \d+ rows \(.*column.*\), and the smaller sample has 30"):
        two_sample_test(autoregressive(rng, 30, 1, 0.99), autoregressive(rng, 1000, 1, 0.99), blocks="auto", rng=0)
    with pytest.raises(InputError, match=r"3 v 3 blocks have 20 permutations.*needed[.]$"):
        two_sample_test(rng.normal(size=(3, 1)), rng.normal(size=(3, 1)), method="median", blocks="auto", rng=0)


def test_blocks_of_a_kernel_matrix_are_not_called_exact():
    K = np.eye(100) + 0.1
    result = kernel_matrix_test(K, 50, blocks=5, rng=0)
    assert not result.exact
    assert any("the level is approximate" in note for note in result.notes)
    with pytest.raises(InputError, match="blocks"):
        two_sample_test(np.zeros((9, 1)), np.zeros((9, 1)), blocks=np.array([3, 4]))


def test_samples_too_short_for_their_dependence_are_refused_with_what_helps(tmp_path):
    rng = np.random.default_rng(5)
    x, y = autoregressive(rng, 160, 3, 0.95), autoregressive(rng, 160, 3, 0.95)
    with pytest.raises(
        InputError, match=r"blocks must be \d+ rows long. Take at least \d+ rows of each sample.*groups=.*blocks=40"
    ):
        two_sample_test(x, y, method="median", blocks="auto", rng=0)
    for name, rows in (("a", x), ("b", y)):
        pd.DataFrame(rows, columns=list("uvw")).to_csv(tmp_path / f"{name}.csv", index=False)
    done = run("test", tmp_path / "a.csv", tmp_path / "b.csv", "--method", "median", "--blocks", "auto")
    assert done.exit_code == 2
    assert "name separate runs with --group-by (with shorter blocks, --blocks 40," in done.stderr.replace("\n", " ")
    assert two_sample_test(x, y, method="median", blocks=40, rng=0).design.units == (4, 4)  # asked for by name


def test_processes_of_normal_and_faulty_operation():
    """Two long normal runs are not told apart, and a fault is; rows one by one would tell all runs apart."""
    arrays = np.load(shared_data("tep.npz"))
    train, has_equal_counts, fault = (arrays[name].astype(float) for name in ("normal_train", "normal_test", "fault04_test"))
    normal = two_sample_test(train, has_equal_counts, blocks="auto", rng=0)
    assert not normal.reject
    assert normal.design.block_rows > 100
    assert two_sample_test(train, has_equal_counts, method="median", scale="standard", rng=0).reject
    assert two_sample_test(has_equal_counts, fault[160:], blocks="auto", rng=0).reject


@pytest.mark.statistical
@pytest.mark.parametrize(("rows", "coefficient"), [(500, 0.5), (1500, 0.9)])
def test_level_where_it_answers(rows, coefficient):
    """1000 repetitions at .05. Approximate by nature: a tenth of the variance is missed, so .075 plus three standard errors."""
    rng, answers = np.random.default_rng(rows), []
    for _ in range(1000):
        x, y = autoregressive(rng, rows, 3, coefficient), autoregressive(rng, rows, 3, coefficient)
        try:
            answers.append(two_sample_test(x, y, method="median", blocks="auto", n_permutations=99, rng=rng).reject)
        except InputError:
            continue
    assert len(answers) >= 500
    assert sum(answers) <= most_rejections(len(answers), 0.075)
