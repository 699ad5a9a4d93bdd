"""Panels of practice: every panel runs, its version without a change has one law, and each change does what it says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.practice_panels import Null
from benchmarks.rivals import boosting, columns_holm
from experiments import data, practice
from experiments.panels import mean_shift
from experiments.practice import CHOOSING, PRACTICE, REPORTING

FILES = {"higgs": "higgs", "tep": "tep", "mnist": "mnist_7x7"}


@pytest.mark.parametrize("name", PRACTICE)
def test_a_panel_changes_rows_of_the_second_sample_only(name):
    missing = [file for word, file in FILES.items() if word in name and not data.at_hand(file)]
    if missing:
        pytest.skip(f"{missing[0]} is not at hand")
    panel = replace(PRACTICE[name], m=40, n=65)
    x, y = panel(np.random.default_rng(0))
    null_x, null_y = panel.null(np.random.default_rng(0))
    rows = panel.sample(np.random.default_rng(0), 105)  # both samples without the change: one draw of one sampler
    assert len(x) == 40
    assert len(y) == 65
    for frame, expected in ((x, rows[:40]), (null_x, rows[:40]), (null_y, rows[40:])):
        pd.testing.assert_frame_equal(pd.DataFrame(frame), pd.DataFrame(expected))
    assert not pd.DataFrame(y).equals(pd.DataFrame(null_y))
    assert list(pd.DataFrame(y).columns) == list(pd.DataFrame(x).columns)


def test_choosing_and_reporting_are_halves():
    assert not set(CHOOSING) & set(REPORTING)
    assert abs(len(CHOOSING) - len(REPORTING)) <= 5


def changed(name, rows=None):
    """Return the second sample of a panel before and after its change."""
    panel = PRACTICE[name] if rows is None else replace(PRACTICE[name], m=rows, n=rows)
    return panel.null(np.random.default_rng(1))[1], panel(np.random.default_rng(1))[1]


@pytest.mark.parametrize(
    ("name", "rows"), [("new group 3% 400", 12), ("new group 1.5% 800", 12), ("outliers in all columns 300", 12)]
)
def test_as_many_rows_move_as_the_panel_says(name, rows):
    before, after = changed(name)
    assert np.count_nonzero((before != after).any(axis=1)) == rows


def test_a_new_group_is_tight():
    before, after = changed("new group 3% 400")
    group = after[(before != after).any(axis=1)]
    assert group.std(axis=0).max() < 0.3


@pytest.mark.parametrize(
    ("name", "column", "level"), [("level mix of region 700", "region", "east"), ("share of member 700", "member", True)]
)
def test_a_level_takes_a_tenth_of_the_rows(name, column, level):
    before, after = changed(name, 5000)
    share = (before[column] == level).mean()
    assert (after[column] == level).mean() == pytest.approx(share + 0.1 * (1 - share), abs=0.01)
    assert after.drop(columns=column).equals(before.drop(columns=column))
    assert after[column].dtype == before[column].dtype


def test_values_are_missing_at_the_rates_of_the_panel():
    before, after = changed("missing 5% to 10% 500", 5000)
    assert before["income"].isna().mean() == pytest.approx(0.05, abs=0.01)
    assert after["income"].isna().mean() == pytest.approx(1 - 0.95**2, abs=0.01)


def test_a_clipped_sensor_shows_its_limit():
    before, after = changed("clipped sensor 300")
    limit = after[:, 0].max()
    assert np.mean(after[:, 0] == limit) == pytest.approx(0.1, abs=0.01)
    assert np.array_equal(np.minimum(before[:, 0], limit), after[:, 0])


def test_signs_are_flipped_in_some_rows():
    before, after = changed("sign flipped in 10% 500")
    moved = before[:, 2] != after[:, 2]
    assert moved.sum() == 50
    assert np.array_equal(after[moved, 2], -before[moved, 2])


def test_swapped_columns_keep_their_distributions():
    before, after = changed("swapped in 40% 200", 4000)
    assert np.mean(before[:, 1] != after[:, 1]) == pytest.approx(0.4, abs=0.01)
    assert stats.ks_2samp(before[:, 1], after[:, 1]).pvalue > 0.01
    assert np.corrcoef(after[:, [0, 1]].T)[0, 1] < np.corrcoef(before[:, [0, 1]].T)[0, 1] - 0.1


def test_an_interaction_leaves_every_column_as_it_was():
    before, after = changed("interaction 2500")
    for name in before:
        assert sorted(before[name]) == sorted(after[name])
    a, b, c = (practice._normal_scores(after[name].to_numpy()) for name in ("balance", "score", "duration"))
    assert np.corrcoef(a * b, c)[0, 1] == pytest.approx(0.35, abs=0.06)


@pytest.mark.parametrize("family", ["normal", "t", "clayton", "gumbel", "frank"])
def test_copulas_have_uniform_columns_and_one_tau(family):
    rows = practice.copula(np.random.default_rng(2), 3000, family)
    assert stats.kstest(rows[:, 0], "uniform").pvalue > 0.001
    assert stats.kendalltau(rows[:, 0], rows[:, 3]).statistic == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("name", ["t(5) in 5 columns 300", "t(3) in one of 8 400", "two modes in one of 40 300"])
def test_shapes_change_at_one_mean_and_deviation(name):
    before, after = changed(name, 20_000)
    column = np.flatnonzero((before != after).any(axis=0))[0]
    assert after[:, column].mean() == pytest.approx(0, abs=0.04)
    assert after[:, column].std() == pytest.approx(1, abs=0.1)
    assert stats.ks_2samp(before[:, column], after[:, column]).pvalue < 0.01


def test_winter_is_colder():
    x, y = replace(CHOOSING["winter 300"], m=5000, n=5000)(np.random.default_rng(3))
    assert y[:, 0].mean() < x[:, 0].mean() - 0.05


def test_a_decay_stays_in_the_plane():
    rows = practice.decay(np.random.default_rng(4), 5000, third=0.1)
    assert rows.min() >= 0
    assert rows.max() <= 1


def test_a_panel_without_a_null_has_the_first_samples_of_two_draws():
    x, y = Null(lambda rng: mean_shift(rng, 400, 2, 5.0))(np.random.default_rng(5))
    assert np.abs(x.mean(axis=0) - y.mean(axis=0)).max() < 0.5


def test_boosting_finds_an_interaction_that_columns_do_not_show():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 300, 2))
    y[:, 1] = np.abs(y[:, 1]) * np.sign(y[:, 0])
    assert boosting(x, y, rng) < 1e-6
    assert columns_holm(x, y, rng) > 0.05


def test_holm_takes_each_column_for_what_it_is():
    before, after = changed("level mix of region 700", 3000)
    assert columns_holm(before, after, np.random.default_rng(0)) < 1e-6
    before, after = changed("missing 5% to 10% 500", 3000)
    assert columns_holm(before, after, np.random.default_rng(0)) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["level mix of region 700", "missing 5% to 10% 500"])
def test_holm_keeps_the_level(name):
    panel = replace(PRACTICE[name], m=60, n=60)
    rejections = sum(
        columns_holm(*panel.null(np.random.default_rng([7, i])), np.random.default_rng(i)) <= 0.05 for i in range(200)
    )
    assert rejections <= stats.binom.ppf(0.999, 200, 0.05)
