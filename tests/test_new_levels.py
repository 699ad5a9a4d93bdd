"""Categories of many levels: what is rare or new counts for the test, the monitor and the explanation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cpmmd import DriftDetector, DriftMonitor, two_sample_test
from cpmmd.data.preparation import MAX_FEATURES
from cpmmd.statistics.columns import category_levels, level_features
from cpmmd.statistics.strata import UnitSums
from helpers import most_rejections

CODES = np.array([f"p{i}" for i in range(120)], dtype=object)


def rows(rng, count, new=0.0, codes=CODES):
    """Return rows with a code each, a share of them of twenty new codes, and two numbers."""
    code = rng.choice(codes, count).astype(object)
    moved = rng.random(count) < new
    code[moved] = [f"new{i}" for i in rng.integers(0, 20, int(moved.sum()))]
    return pd.DataFrame({"code": code, "a": rng.normal(size=count), "b": rng.normal(size=count)})


def observed(values, labels):
    """Return every statistic of a category on one labeling of its rows."""
    count = len(values)
    (features,) = level_features(category_levels(values), UnitSums(np.arange(count), count))
    m, n = labels.sum(), (~labels).sum()
    functions = np.hstack([features.sums, features.counts])
    apart = functions[labels].mean(axis=0) - functions[~labels].mean(axis=0)
    return {name: statistic((apart * np.sqrt(m * n / count))[None])[0] for name, statistic in features.statistics.items()}


def chi_square(codes, labels):
    _, codes = np.unique(codes, return_inverse=True)
    return stats.chi2_contingency([np.bincount(codes[side], minlength=codes.max() + 1) for side in (labels, ~labels)])[0]


def test_all_levels_that_repeat_are_in_a_chi_square():
    rng = np.random.default_rng(0)
    values, labels = rng.choice(CODES, 300).astype(object), rng.permutation(300) < 120
    values[:9] = [f"single{i}" for i in range(9)]
    values[9:14] = None
    counts = pd.Series([str(v) for v in values]).value_counts()
    classes = np.array(["single" if counts[str(v)] == 1 else str(v) for v in values])
    found = observed(values, labels)
    assert found["all levels"] == pytest.approx(chi_square(classes, labels))
    rarity = np.array([1 / counts[str(v)] for v in values])
    assert found["rarity"] == pytest.approx(120 * 180 / 300 * (rarity[labels].mean() - rarity[~labels].mean()) ** 2)


def test_too_many_levels_share_classes_with_their_neighbours_in_frequency():
    values = np.repeat([f"v{i:04}" for i in range(1500)], 2).astype(object)
    values[:400] = "often"
    levels = category_levels(values)
    assert levels.rare.count == MAX_FEATURES - 1  # no level has a single row
    of_class = pd.Series(values).groupby(levels.rare.classes).nunique()
    assert of_class.iloc[0] == 1
    assert of_class.max() <= 9  # the 917 levels beyond the first 384 have 127 classes


def test_classes_do_not_look_at_the_order_of_rows():
    rng = np.random.default_rng(1)
    values, order = rng.choice([f"v{i}" for i in range(2000)], 3000).astype(object), rng.permutation(3000)
    np.testing.assert_array_equal(category_levels(values).rare.classes[order], category_levels(values[order]).rare.classes)


def test_frequent_levels_alone_have_the_statistics_that_they_had():
    values = np.array(["a", "b", "c"] * 20, dtype=object)
    assert category_levels(values).rare is None
    assert set(observed(values, np.arange(60) < 25)) == {"levels", "level"}


def test_level_with_many_rare_levels():
    codes, rejections = np.array([f"p{i}" for i in range(300)], dtype=object), 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        x, y = rows(rng, 70, codes=codes), rows(rng, 50, codes=codes)
        rejections += two_sample_test(x[["code"]], y[["code"]], n_permutations=39, rng=seed).reject
    assert rejections <= most_rejections(120, 0.05)


@pytest.mark.parametrize("columns", [["code"], ["code", "a"], ["code", "a", "b"]])
def test_a_test_finds_new_codes_and_names_their_column(columns):
    rng = np.random.default_rng(2)
    result = two_sample_test(rows(rng, 400)[columns], rows(rng, 400, new=0.1)[columns], n_permutations=199, rng=0)
    assert result.reject
    assert result.explain().columns[0].name == "code"
    assert result.explain().columns[0].pvalue <= 0.05


def test_a_monitor_hears_new_codes_within_two_batches():
    rng = np.random.default_rng(3)
    monitor = DriftMonitor(rng=0).fit(rows(rng, 1000))
    assert not any(monitor.update(rows(rng, 200)).alarm for _ in range(2))
    assert any(monitor.update(rows(rng, 200, new=0.2)).alarm for _ in range(2))


def test_a_detector_hears_new_codes():
    rng = np.random.default_rng(4)
    detector = DriftDetector(n_permutations=199, rng=0).fit(rows(rng, 1000))
    assert not detector.test(rows(rng, 200)).reject
    assert detector.test(rows(rng, 200, new=0.05)).reject
