"""Explanations follow the design: columns inside strata, effects of pairs within pairs, against loops by hand."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from cpmmd import two_sample_test
from cpmmd.data.design import DesignOptions
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.explain.column_table import difference_tables
from cpmmd.explain.effects import mean_effect, sd_effect, share_effect
from cpmmd.report.content import content
from cpmmd.statistics import strata as strata_module
from cpmmd.statistics.columns import columns_of, read_columns
from cpmmd.statistics.strata import Strata, ranks_inside

RNG = np.random.default_rng(8)
MIXES = ([0.6, 0.3, 0.1], [0.1, 0.3, 0.6])


def orders(rng, mix, shift=0.0, rows=400):
    site = rng.choice(3, rows, p=mix)
    return pd.DataFrame({"price": rng.normal(size=rows) + 4.0 * site + np.broadcast_to(shift, 3)[site], "site": site})


def designed(x, y, rng, count=199, target=None, **design):
    """Return the pool of a design and what a test relabels."""
    pool = read_pool(x, y, missing="impute", design=DesignOptions(**design))
    return pool, Layout.of_design(pool.design, rng, target=target).draw(count, rng)


def tables_of(x, y, rng, count=199, **design):
    pool, units = designed(x, y, rng, count, **design)
    return difference_tables(pool, columns_of(pool, Preparation.fit(pool)), units, 0.05, ("a", "b"))


def by_precision(x, y, sites_x, sites_y):
    """Return the means of both samples by hand: each site's, weighed by m n / (m + n)."""
    total, means = 0.0, np.zeros(2)
    for site in np.unique(np.concatenate([sites_x, sites_y])):
        a, b = x[sites_x == site], y[sites_y == site]
        if len(a) and len(b):
            weight = len(a) * len(b) / (len(a) + len(b))
            means += weight * np.array([a.mean(), b.mean()])
            total += weight
    return means / total


# --- strata -----------------------------------------------------------------------------------------------------------


def test_a_shift_inside_sites_is_named_with_its_size_though_the_mix_hides_it():
    rng = np.random.default_rng(3)
    x, y = orders(rng, MIXES[0]), orders(rng, MIXES[1], -0.8)
    result = two_sample_test(x, y, strata="site", method="median", rng=0)
    explanation = result.explain()
    (column,) = explanation.columns
    assert (column.pvalue, column.words) == (0.001, "lower")
    means = by_precision(x["price"].to_numpy(), y["price"].to_numpy(), x["site"].to_numpy(), y["site"].to_numpy())
    np.testing.assert_allclose([column.mean_x, column.mean_y], means)
    squares = np.mean(_variances(x, y))  # as many rows of either sample
    assert column.effect.value == pytest.approx((means[1] - means[0]) / np.sqrt(squares))
    np.testing.assert_allclose(np.square([column.sd_x, column.sd_y]), _variances(x, y))
    assert column.effect.low < -0.8 < column.effect.high < -0.5
    assert sum(column.histogram.x) == pytest.approx(1)
    assert explanation.where.startswith("Inside strata, 'price' is lower in the second sample")
    assert "same stratum" in explanation.auc_sentence
    assert explanation.auc.low < special.ndtr(0.8 / np.sqrt(2)) + 0.02  # what the best rule reaches inside a site
    assert "same mix of strata" in explanation.compared
    assert explanation.compared in str(content(result, explanation=explanation))


def test_levels_of_few_rows_have_no_name_in_a_report_without_rows():
    """Two rows of a level that weigh much look like more in a share; the report must go by rows."""
    rng = np.random.default_rng(12)
    sites = np.repeat([0, 1], [200, 10]), np.repeat([0, 1], [10, 200])
    x, y = ({"v": rng.normal(size=210), "n": np.where(np.arange(210) == at, 7, 1 + np.arange(210) % 2)} for at in (205, 5))
    result = two_sample_test(pd.DataFrame(x), pd.DataFrame(y), strata=sites, method="median", n_permutations=99, rng=0)
    (column,) = [c for c in result.explain().columns if c.name == "n"]
    assert column.rare == {"7"}
    assert "rare" not in column.to_dict()
    assert 210 * (column.histogram.x[2] + column.histogram.y[2]) > 5  # by its share it would have a name
    page = str(content(result, rows=False, explanation=result.explain()))
    assert "(rare values)" in page
    assert "'7'" not in page


def _variances(x, y):
    """Return the variances of the price inside sites, by the same weights."""
    sites = [frame["site"].to_numpy() for frame in (x, y)]
    inside = [frame.groupby("site")["price"].transform("var").to_numpy() for frame in (x, y)]
    return by_precision(*inside, *sites)


def test_the_mix_alone_is_neither_named_nor_separated():
    rng = np.random.default_rng(4)
    explanation = two_sample_test(orders(rng, MIXES[0]), orders(rng, MIXES[1]), strata="site", method="median", rng=0).explain()
    assert not explanation.differing
    for auc in (explanation.auc, explanation.marginal_auc):
        assert auc.low < 0.5 < auc.high
    without = orders(rng, MIXES[0]).drop(columns="site"), orders(rng, MIXES[1]).drop(columns="site")
    assert two_sample_test(*without, method="median", rng=0).explain().auc.low > 0.6


def test_the_interval_of_the_auc_holds_one_half_where_only_the_mix_differs():
    """Of 60 draws 57 hold it at 95%; fewer than 51 have probability .001."""
    held = 0
    for seed in range(60):
        rng = np.random.default_rng([13, seed])
        frames = (orders(rng, mix, rows=120) for mix in MIXES)
        auc = two_sample_test(*frames, strata="site", method="median", n_permutations=99, rng=seed).explain().auc
        held += auc.low <= 0.5 <= auc.high
    assert held >= 51


def test_different_shifts_of_sites_are_no_shape():
    rng = np.random.default_rng(5)
    x, y = orders(rng, MIXES[0]), orders(rng, MIXES[1], [-1.0, -2.0, -3.0])
    (column,) = two_sample_test(x, y, strata="site", method="median", rng=0).explain().columns
    assert column.words == "lower"


def kinds(rng, mix, moved, rows=500):
    """Return a table whose columns all follow the site, and change inside it."""
    site = rng.choice(3, rows, p=mix)
    return pd.DataFrame(
        {
            "mean": rng.normal(5.0 * site + 0.6 * moved, 1),
            "scale": 100.0**site * rng.normal(0, 1 + 0.7 * moved, rows),
            "level": np.where(rng.random(rows) < 0.2 * site + 0.1, "b", np.where(rng.random(rows) < 0.4 - 0.3 * moved, "c", "a")),
            "paid": rng.random(rows) < 0.1 + 0.3 * site + 0.2 * moved,
            "gone": np.where(rng.random(rows) < 0.05 + 0.2 * site + 0.2 * moved, np.nan, rng.normal(size=rows)),
            "when": np.datetime64("2024-01-01", "us")
            + (60 * site + 10 * moved + rng.integers(0, 30, rows)).astype("timedelta64[D]"),
            "same": rng.normal(3.0 * site, 1),
            "same level": np.array(["u", "v", "w"])[(site + (rng.random(rows) < 0.3)) % 3],
            "site": site,
        }
    )


def test_every_kind_of_difference_has_its_words_inside_strata():
    rng = np.random.default_rng(6)
    x, y = kinds(rng, MIXES[0], 0), kinds(rng, MIXES[1], 1)
    found = {c.name: c for c in tables_of(x, y, rng, 999, strata="site").columns}
    assert found["level"].words in ("less often 'c'", "more often 'a'")  # what one loses the other has
    assert {name: column.words for name, column in found.items() if name != "level"} == {
        "mean": "higher",
        "scale": "more variable",
        "paid": "more often true",
        "gone": "more often missing",
        "when": "later",
        "same": "",
        "same level": "",
    }
    sites = x["site"].to_numpy(), y["site"].to_numpy()
    paid = by_precision(*(frame["paid"].to_numpy() * 1.0 for frame in (x, y)), *sites)
    np.testing.assert_allclose([found["paid"].mean_x, found["paid"].mean_y], paid)
    assert found["paid"].effect.value == pytest.approx(paid[1] - paid[0])
    gone = by_precision(*(frame["gone"].isna().to_numpy() * 1.0 for frame in (x, y)), *sites)
    np.testing.assert_allclose([found["gone"].missing_x, found["gone"].missing_y], gone)
    assert found["gone"].effect.value == pytest.approx(gone[1] - gone[0])
    level = by_precision(*((frame["level"] == "c").to_numpy() * 1.0 for frame in (x, y)), *sites)
    np.testing.assert_allclose(found["level"].levels["c"], level)
    assert found["scale"].effect.value == pytest.approx(1.7, rel=0.25)
    when, days = found["when"].effect, np.sqrt((30**2 - 1) / 12)  # a deviation of uniform days
    counts = [np.bincount(one) for one in sites]
    error = days / np.sqrt(np.sum(counts[0] * counts[1] / (counts[0] + counts[1])))
    assert when.low < 10 < when.high
    assert (when.high - when.low) / 2 == pytest.approx(1.96 * error, rel=0.1)


def test_ranks_inside_strata_are_those_of_each_alone():
    values, stratum = RNG.integers(0, 6, 60).astype(float), RNG.choice([0, 2, 3], 60)
    expected = np.empty(60)
    for one in (0, 2, 3):
        rows = stratum == one
        expected[rows] = (stats.rankdata(values[rows]) - 0.5) / rows.sum()
    np.testing.assert_allclose(ranks_inside(values, stratum), expected)


CASES = {
    "strata": {"strata": (np.repeat([0, 1, 2], [9, 4, 7]), np.repeat([0, 1, 2], [5, 9, 6]))},
    "groups in strata": {
        "groups": (np.repeat(np.arange(6), [2, 5, 3, 4, 1, 5]), np.repeat(np.arange(6, 12), [4, 2, 3, 5, 4, 2])),
        "strata": (np.repeat([0, 1], [10, 10]), np.repeat([0, 1], [9, 11])),
    },
    "pairs": {"pairs": (np.arange(20), np.arange(20)[::-1])},
    "pairs with several rows": {"pairs": (np.repeat(np.arange(10), [1, 3] * 5), np.repeat(np.arange(10), [2, 2] * 5))},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("few", [1, 100])
@pytest.mark.parametrize("target", [None, 8])
def test_statistics_are_those_of_loops_over_strata_under_every_relabeling(case, few, target, monkeypatch):
    """Values are missing in some rows, units are of unequal sizes, bins hold several of them."""
    monkeypatch.setattr(strata_module, "FEW", few)
    values = RNG.normal(size=(40, 1))
    values[RNG.permutation(40)[:6]] = np.nan
    pool, units = designed(values[:20], values[20:], np.random.default_rng(1), 30, target, **CASES[case])
    strata = Strata.of(pool, units.rows)
    (read,) = read_columns(pool, columns_of(pool, Preparation.fit(pool)), units, strata)
    labels, numbers = units.labels.array(), values[units.rows, 0]
    for features, of in zip(read.features, (~np.isnan(numbers), np.ones(len(numbers), dtype=bool)), strict=True):
        functions = np.column_stack([features.base, features.sums])
        D = features.differences(labels @ functions, functions.sum(axis=0), units.labels)
        name, statistic = next(iter(features.statistics.items()))
        found, z = statistic(D), np.isnan(numbers).astype(float)
        if name == "location":
            alone = few == 100 or "pairs" in case
            for stratum in [None] if alone else np.unique(strata.of_row):
                rows = of if alone else of & (strata.of_row == stratum)
                z[rows] = special.ndtri((stats.rankdata(numbers[rows]) - 0.5) / rows.sum())
        expected = [_by_hand(z, of, np.repeat(one, units.counts) > 0.5, strata.of_row) for one in labels]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def _by_hand(z, of, of_x, stratum):
    total = precision = 0.0
    for one in np.unique(stratum):
        a, b = (z[of & (stratum == one) & side] for side in (of_x, ~of_x))
        if len(a) and len(b):
            total += len(a) * len(b) / (len(a) + len(b)) * (a.mean() - b.mean())
            precision += len(a) * len(b) / (len(a) + len(b))
    return total**2 / precision


@pytest.mark.parametrize("few", [1, 8])
def test_some_column_is_named_no_more_often_than_alpha_over_all_labelings_inside_strata(few, monkeypatch):
    """Exactness by enumeration: each of the 6 x 10 labelings is the observed one once."""
    monkeypatch.setattr(strata_module, "FEW", few)
    stratum = np.repeat([0, 1], [4, 5])
    table = _tiny(9, stratum)
    ways = product(combinations(range(4), 2), combinations(range(4, 9), 2))
    _assert_exact([[*a, *b] for a, b in ways], table, stratum, "strata")


def test_some_column_is_named_no_more_often_than_alpha_over_all_swaps_of_pairs():
    pair = np.repeat(np.arange(6), 2)
    ways = [[2 * i + s for i, s in enumerate(signs)] for signs in product((0, 1), repeat=6)]
    _assert_exact(ways, _tiny(12, pair), pair, "pairs")


def _tiny(rows, stratum):
    gaps = np.where(np.arange(rows) % 4 == 1, np.nan, RNG.normal(size=rows))
    marks = RNG.integers(0, 2, rows) + 0.0
    return pd.DataFrame({"a": RNG.normal(size=rows) + 3 * stratum, "b": gaps, "c": marks, "d": RNG.choice(["u", "v", "w"], rows)})


def _assert_exact(ways, table, stratum, design):
    smallest = {"columns": [], "pairs": []}
    for first in ways:
        rest = [i for i in range(len(table)) if i not in first]
        x, y = table.iloc[first], table.iloc[rest]
        tables = tables_of(x, y, np.random.default_rng(0), 99, **{design: (stratum[first], stratum[rest])})
        for what, found in smallest.items():
            found.append(min(one.pvalue for one in getattr(tables, what)))
    for found in smallest.values():
        for level in np.arange(1, len(ways) + 1) / len(ways):
            assert np.mean(np.array(found) <= level + 1e-12) <= level + 1e-12


@pytest.mark.parametrize("tables", [150, pytest.param(2000, marks=pytest.mark.statistical)])
def test_columns_that_follow_the_mix_alone_are_named_in_at_most_five_percent_of_tables(tables):
    """The bound is three binomial standard errors above 5%: 10.3% of 150 tables, 6.5% of 2000."""
    named = 0
    for seed in range(tables):
        rng = np.random.default_rng([9, seed])
        named += any(
            c.words for c in tables_of(kinds(rng, MIXES[0], 0, 80), kinds(rng, MIXES[1], 0, 60), rng, strata="site").columns
        )
    assert named / tables <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tables)


# --- pairs ------------------------------------------------------------------------------------------------------------


def visits(rng, rows=60, shift=0.2):
    subject = rng.normal(size=(rows, 2))
    before, after = (subject + 0.15 * rng.normal(size=(rows, 2)) + [moved, 0] for moved in (0, shift))
    return [pd.DataFrame(v, columns=["a", "b"]).assign(subject=np.arange(rows)) for v in (before, after)]


def test_effects_of_pairs_are_those_of_their_differences():
    before, after = visits(np.random.default_rng(7))
    after = after.iloc[np.random.default_rng(0).permutation(60)]
    result = two_sample_test(before, after, pairs="subject", rng=0)
    explanation = result.explain(names=("before", "after"))
    column = explanation.columns[0]
    x, y = (frame.sort_values("subject")["a"].to_numpy() for frame in (before, after))

    def effect(rows):
        return (y[rows] - x[rows]).mean() / np.sqrt((x[rows].var() + y[rows].var()) / 2)

    assert (column.name, column.words, column.pvalue) == ("a", "higher", 0.001)
    assert column.effect.value == pytest.approx(effect(np.arange(60)))
    rng = np.random.default_rng(1)
    low, high = np.quantile([effect(rng.integers(0, 60, 60)) for _ in range(4000)], [0.025, 0.975])
    assert column.effect.low == pytest.approx(low, abs=0.02)
    assert column.effect.high == pytest.approx(high, abs=0.02)
    assert low > 0.1
    assert explanation.auc is explanation.marginal_auc is explanation.unexplained is None
    assert explanation.auc_sentence == f"'a' is higher in after than in before in {np.count_nonzero(y > x)} of 60 pairs."
    assert "of the time" not in str(explanation)
    said = str(content(result, explanation=explanation))
    assert "50% is chance" not in said
    assert "'label': 'AUC'" not in said


def test_a_pair_with_a_missing_value_counts_for_what_is_missing_only():
    before, after = visits(np.random.default_rng(8))
    after.loc[:9, "a"] = np.nan
    (column,) = [c for c in tables_of(before, after, RNG, pairs="subject").columns if c.name == "a"]
    assert column.mean_x == pytest.approx(before["a"][10:].mean())
    assert column.mean_y == pytest.approx(after["a"][10:].mean())
    assert column.missing_y == pytest.approx(1 / 6)


def test_pairs_and_strata_are_explained_where_bins_hold_several():
    before, after = visits(np.random.default_rng(9), 900, 0.03)
    found = two_sample_test(before, after, pairs="subject", method="median", rng=0).explain()
    assert [c.name for c in found.differing] == ["a"]
    assert 0 < found.columns[0].effect.low < 0.03 < found.columns[0].effect.high < 0.06


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", ["strata", "pairs"])
def test_intervals_cover_the_truth(design):
    """Of 300 intervals 285 +- 3.8 hold the truth where they are exact; four standard errors less are allowed."""
    covered = dict.fromkeys(("mean", "scale", "share"), 0)
    for seed in range(300):
        rng = np.random.default_rng([11, seed])
        if design == "strata":
            stratum = np.repeat([0, 1, 0, 1], [100, 30, 40, 120])
            labels, level, own = np.arange(290) < 130, 3.0 * stratum, 1.0
        else:
            stratum = np.tile(np.arange(140), 2)
            labels, level, own = np.arange(280) < 140, rng.normal(size=140)[stratum], 0.5
        strata = Strata(stratum, np.arange(len(stratum)), labels, design == "pairs")
        noise = own * rng.normal(size=len(stratum))
        scale = np.sqrt(1 + own**2) if design == "pairs" else 1.0
        high = (noise + (design == "pairs") * level + 0.4 * ~labels > 0.5) * 1.0
        truth = stats.norm.sf(0.1 / scale) - stats.norm.sf(0.5 / scale)
        wide = 1.5 * own * rng.normal(size=len(stratum)) * ~labels + noise * labels + level
        ratio = np.sqrt(1 + 2.25 * own**2) / scale if design == "pairs" else 1.5
        for name, effect, value in (
            ("mean", mean_effect(*_sides(strata, level + noise + 0.4 * ~labels)), 0.4 / scale),
            ("scale", sd_effect(*_sides(strata, wide)), ratio),
            ("share", share_effect(*_sides(strata, high), "high"), truth),
        ):
            covered[name] += effect.low <= value <= effect.high
    assert all(count >= 300 * 0.95 - 4 * np.sqrt(300 * 0.95 * 0.05) for count in covered.values()), covered
    assert covered["share"] < 300


def test_a_share_of_all_rows_has_an_effective_size_though_weights_round():
    """Weights of nine pairs add up to a little more than 1, and the share of all rows with them."""
    for pairs in range(6, 60):
        strata = Strata(np.tile(np.arange(pairs), 2), np.arange(2 * pairs), np.arange(2 * pairs) < pairs, paired=True)
        for sample in _sides(strata, np.ones(2 * pairs)):
            assert sample.effective_size(sample.values) == pytest.approx(pairs)


def _sides(strata, values):
    return strata.samples(values, np.ones(len(values), dtype=bool))
