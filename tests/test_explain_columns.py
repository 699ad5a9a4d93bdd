"""The table of columns: true to its definition, exact over all labelings, and right where shares of an MMD were wrong."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import special, stats

from cpmmd import two_sample_test
from cpmmd.cli.comparison import _say_where
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.labels import Relabelings
from cpmmd.draws.layout import Layout
from cpmmd.explain.column_table import difference_tables
from cpmmd.explain.differences import PairDifference
from cpmmd.explain.effects import distribution_effect, mean_effect, sd_effect, share_effect
from cpmmd.statistics.columns import (
    adjusted_pvalues,
    category_levels,
    columns_of,
    level_features,
    number_features,
    read_columns,
    score_columns,
)
from cpmmd.statistics.samples import Sample
from cpmmd.statistics.strata import Strata, UnitSums, ranks_inside
from where_tables import ALPHA, KINDS, correlated_pair, difference_of, named_by_us, study, table

RNG = np.random.default_rng(5)


# --- the statistics, from their definitions ---------------------------------------------------------------------------


def statistics_of(features, labels):
    """Return every statistic of one labeling of the rows, each a unit of its own."""
    found = {}
    for sums in features:
        m, n = sums.base[labels].sum(), sums.base[~labels].sum()
        functions = np.hstack([sums.sums, sums.counts])
        apart = functions[labels].sum(axis=0) / m - functions[~labels].sum(axis=0) / n
        found |= {name: statistic((apart * np.sqrt(m * n / (m + n)))[None])[0] for name, statistic in sums.statistics.items()}
    return found


def pooled_ranks(values):
    """Return the ranks of values, all of one stratum, NaN where missing."""
    there, ranks = ~np.isnan(values), np.full(len(values), np.nan)
    ranks[there] = ranks_inside(values[there], np.zeros(np.count_nonzero(there), dtype=int))
    return ranks


def features_of(values):
    """Return the features of numbers, each row a unit of its own."""
    return number_features(pooled_ranks(values), UnitSums(np.arange(len(values)), len(values)))


def test_location_and_scale_are_differences_of_normal_scores():
    values, labels = RNG.gamma(1.0, size=40), RNG.permutation(40) < 15
    z = special.ndtri((stats.rankdata(values) - 0.5) / 40)
    found = statistics_of(features_of(values), labels)
    factor = 15 * 25 / 40
    assert found["location"] == pytest.approx(factor * (z[labels].mean() - z[~labels].mean()) ** 2)
    assert found["scale"] == pytest.approx(factor * ((z**2)[labels].mean() - (z**2)[~labels].mean()) ** 2)


def test_distribution_is_anderson_and_darlings_statistic_on_classes():
    values, labels = RNG.normal(size=400), RNG.permutation(400) < 150
    found = statistics_of(features_of(values), labels)["distribution"]
    edges = np.sort(values)[np.ceil(np.arange(1, 32) * 400 / 32 + 0.5).astype(int) - 2]  # ranks (i - 1/2) / 400 below k / 32
    total, before = 0.0, 0.0
    for edge in edges:
        below = np.mean(values <= edge)
        gap = np.mean(values[labels] <= edge) - np.mean(values[~labels] <= edge)
        total += (below - before) * gap**2 / (below * (1 - below))
        before = below
    assert found == pytest.approx(total * 150 * 250 / 400, rel=1e-9)


def test_levels_are_pearsons_chi_square():
    values = np.array(["a", "b", "b", "c", None] * 12, dtype=object)
    labels = RNG.permutation(60) < 25
    found = statistics_of(level_features(category_levels(values), UnitSums(np.arange(60), 60)), labels)
    texts = np.array([str(v) for v in values])
    counts = [[np.sum(texts[side] == level) for level in ("a", "b", "c", "None")] for side in (labels, ~labels)]
    assert found["levels"] == pytest.approx(stats.chi2_contingency(counts, correction=False).statistic)
    marks = [[np.sum(texts[side] == "None"), np.sum(texts[side] != "None")] for side in (labels, ~labels)]
    p = 12 / 60
    assert found["missing"] / (p * (1 - p)) == pytest.approx(stats.chi2_contingency(marks, correction=False).statistic)


def test_missing_values_have_no_rank_and_a_statistic_of_their_own():
    values, labels = RNG.normal(size=50), RNG.permutation(50) < 20
    values[RNG.permutation(50)[:12]] = np.nan
    there = ~np.isnan(values)
    found = statistics_of(features_of(values), labels)
    alone = statistics_of(features_of(values[there]), labels[there])
    assert found["location"] == pytest.approx(alone["location"])
    assert found["missing"] == pytest.approx(20 * 30 / 50 * (np.mean(~there[labels]) - np.mean(~there[~labels])) ** 2)


def test_ranks_of_equal_values_are_their_mean():
    values = RNG.integers(0, 5, 30).astype(float)
    np.testing.assert_allclose(pooled_ranks(values), (stats.rankdata(values) - 0.5) / 30)


def test_units_of_unequal_sizes_change_sides_as_wholes():
    """Against a loop over rows, with labelings that give X different numbers of rows."""
    sizes = np.array([3, 1, 4, 2, 5, 2, 3])
    rows, starts = RNG.permutation(20), np.concatenate([[0], np.cumsum(sizes)[:-1]])
    chosen = np.array([[i in c for i in range(7)] for c in combinations(range(7), 3)])
    units = Layout(rows, starts, (3, 4), labels=Relabelings(np.packbits(chosen, axis=1), 7))
    values = RNG.normal(size=(20, 2))
    pool = read_pool(values[:10], values[10:])
    read = list(read_columns(pool, columns_of(pool, Preparation.fit(pool)), units, Strata.of(pool, units.rows)))
    scores = score_columns([one.features for one in read], units)
    expected = []
    for labels in chosen:
        of_rows = np.repeat(labels, sizes)
        expected.append(statistics_of(features_of(values[rows, 0]), of_rows)["location"])
    by_hand = np.argsort(np.argsort(np.round(expected, 9), kind="stable"))
    alone = [{"location": read[0].features[0].statistics["location"]}]
    features = [replace(one, statistics=alone[0]) for one in read[0].features]
    (found,) = score_columns([features], units)
    assert np.argsort(np.argsort(np.round(found.scores, 7), kind="stable")).tolist() == by_hand.tolist()
    assert len(scores) == 2


# --- adjusted p-values ------------------------------------------------------------------------------------------------


def test_step_down_is_westfall_and_youngs_from_its_definition():
    scores = np.round(RNG.normal(size=(6, 50)), 1)  # with ties
    order = sorted(range(6), key=lambda c: -scores[c, 0])
    expected, largest = {}, 0.0
    for step, c in enumerate(order):
        beyond = sum(max(scores[k, b] for k in order[step:]) >= scores[c, 0] for b in range(50)) / 50
        largest = max(largest, beyond)
        expected[c] = largest
    np.testing.assert_allclose(adjusted_pvalues(scores), [expected[c] for c in range(6)])


def test_some_column_is_named_no_more_often_than_alpha_over_all_labelings():
    """Exactness by enumeration: every labeling of eight rows is the observed one once, for p of columns and of pairs."""
    values = np.column_stack([RNG.normal(size=8), RNG.integers(0, 3, 8), RNG.normal(size=8)])
    smallest = {"columns": [], "pairs": []}
    for first in combinations(range(8), 4):
        order = [*first, *(i for i in range(8) if i not in first)]
        tables = difference_of(values[order[:4]], values[order[4:]], np.random.default_rng(0))
        for what, found in smallest.items():
            found.append(min(one.pvalue for one in getattr(tables, what)))
    for found in smallest.values():
        for level in np.arange(1, 71) / 70:
            assert np.mean(np.array(found) <= level + 1e-12) <= level + 1e-12


def test_no_p_is_below_one_over_the_relabelings():
    x, y = RNG.normal(size=(30, 2)), RNG.normal(9, 1, size=(30, 2))
    assert {c.pvalue for c in difference_of(x, y, RNG, count=99).columns} == {0.01}


@pytest.mark.parametrize(("tables", "kinds"), [(20, 1), pytest.param(200, 5, marks=pytest.mark.statistical)])
def test_columns_that_did_not_change_are_named_in_at_most_five_percent_of_tables(tables, kinds):
    """Nothing changed, and changes elsewhere; the bound is three binomial standard errors above 5%."""
    bound = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / tables)
    count = 999 if kinds == 5 else 199
    streams = map(np.random.default_rng, range(tables))
    assert np.mean([bool(named_by_us(table(None, rng)[0], rng, count)) for rng in streams]) <= bound
    ours, theirs = [], []
    for how in KINDS if kinds == 5 else ():
        found, wrong = study(how, tables, seed=2024)
        assert wrong[0] <= bound, how
        ours.append(found[0])
        theirs.append(found[1])
        assert found[0] >= found[1] - 0.02, how  # two points: less than a standard error of their difference
    assert not ours or sum(ours) > sum(theirs) + 0.5


# --- effects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit_rows", [1, 5])
def test_intervals_cover_the_truth(unit_rows):
    """Of 300 intervals 285 +- 3.8 hold the truth where they are exact; rows of a unit share a third of their variance."""
    covered = dict.fromkeys(("mean", "scale", "share", "distribution"), 0)
    for seed in range(300):
        rng = np.random.default_rng([3, seed])

        def draw(mean, scale, rng=rng):
            units = np.repeat(np.arange(200 // unit_rows), unit_rows)
            shared = rng.normal(size=200 // unit_rows)[units] * np.sqrt(1 / 3) if unit_rows > 1 else 0.0
            return Sample(mean + scale * (shared + rng.normal(size=200) * np.sqrt(2 / 3 if unit_rows > 1 else 1)), units)

        x, y, wide = draw(0, 1), draw(0.4, 1), draw(0, 1.5)
        marks = [Sample((one.values > 0.5).astype(float), one.unit) for one in (x, y)]
        truth = stats.norm.sf(0.1) - stats.norm.sf(0.5)
        gap = stats.norm.cdf(0.2) - stats.norm.cdf(-0.2)
        for name, effect, value in (
            ("mean", mean_effect(x, y), 0.4),
            ("scale", sd_effect(x, wide), 1.5),
            ("share", share_effect(*marks, "high"), truth),
            ("distribution", distribution_effect(x, y), gap),
        ):
            covered[name] += effect.low <= value <= effect.high
    bound = 300 * 0.95 - 4 * np.sqrt(300 * 0.95 * 0.05)
    assert all(count >= bound for count in covered.values()), covered


def test_a_share_of_none_or_all_has_an_interval_all_the_same():
    none, every = Sample(np.zeros(30), np.arange(30)), Sample(np.ones(40), np.arange(40))
    effect = share_effect(none, every, "true")
    assert (effect.value, effect.high) == (1, 1)
    assert 0.8 < effect.low < 1


# --- what people saw --------------------------------------------------------------------------------------------------


def california(rows, rng):
    """Return a table like the housing data: units far apart, columns that hang together, all skewed."""
    latitude, income = rng.normal(35.6, 2.1, rows), np.exp(rng.normal(1.2, 0.47, rows))
    rooms = np.exp(rng.normal(1.6, 0.25, rows) + 0.1 * np.log(income))
    return pl.DataFrame(
        {
            "MedInc": income,
            "HouseAge": rng.integers(1, 53, rows).astype(float),
            "AveRooms": rooms,
            "AveBedrms": rooms / 5 * np.exp(rng.normal(0, 0.1, rows)),
            "Population": np.exp(rng.normal(7, 0.75, rows)),
            "AveOccup": np.exp(rng.normal(1.05, 0.25, rows)),
            "Latitude": latitude,
            "Longitude": -119.6 - 0.85 * (latitude - 35.6) + rng.normal(0, 0.8, rows),
            "MedValue": 0.4 * income + np.exp(rng.normal(-0.6, 0.8, rows)),
        }
    )


def test_a_small_move_of_column_among_fifty_thousand_rows_is_named_alone():
    rng = np.random.default_rng(0)
    x, y = california(50_000, rng), california(50_000, rng).with_columns(pl.col("MedValue") + 0.05)
    # Whole units of 100 rows change sides, as in the default test at this size, which takes ten seconds itself.
    pool = read_pool(x, y)
    units = Layout.of_bins(rng.permutation(50_000), 50_000 + rng.permutation(50_000), 100, 500, 500).draw(999, rng)
    tables = difference_tables(pool, columns_of(pool, Preparation.fit(pool)), units, 0.05, ("before", "after"))
    assert [(c.name, c.words) for c in tables.columns if c.words] == [("MedValue", "higher")]
    assert tables.columns[0].pvalue == 0.001
    assert not tables.suspicious


def test_every_column_of_the_wines_that_differs_is_named():
    datasets = pytest.importorskip("sklearn.datasets")
    wine = datasets.load_wine()
    explanation = two_sample_test(
        *(pl.DataFrame(wine.data[wine.target == k], schema=list(wine.feature_names)) for k in (0, 1)), rng=0
    ).explain()
    beyond_doubt = [  # Kolmogorov-Smirnov with Bonferroni
        name
        for name, x, y in zip(wine.feature_names, wine.data[wine.target == 0].T, wine.data[wine.target == 1].T, strict=True)
        if stats.ks_2samp(x, y).pvalue < 0.05 / 13
    ]
    assert len(beyond_doubt) >= 12
    assert set(beyond_doubt) <= {c.name for c in explanation.differing}
    assert "proline" in explanation.sentence


def test_the_area_of_a_malignant_cell_is_higher():
    datasets = pytest.importorskip("sklearn.datasets")
    cells = datasets.load_breast_cancer()
    x, y = (pl.DataFrame(cells.data[cells.target == k], schema=list(cells.feature_names)) for k in (1, 0))
    area = next(c for c in two_sample_test(x, y, rng=0).explain().columns if c.name == "mean area")
    assert area.words == "higher"
    assert 2 * area.mean_x < area.mean_y
    assert area.effect.low > 1


def test_the_one_of_three_columns_that_drifts_is_the_one_named():
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=(300, 3)) * [1, 100, 0.01] for _ in range(2))
    y[:, 2] += 0.005
    assert [(c.name, c.words) for c in two_sample_test(x, y, rng=0).explain().differing] == [("2", "higher")]


def test_every_kind_of_difference_has_its_words():
    rng = np.random.default_rng(6)

    def sample(moved):
        rows = 400
        income = [None if rng.random() < 0.05 + 0.2 * moved else float(v) for v in rng.normal(size=rows)]
        return pl.DataFrame(
            {
                "mean": rng.normal(moved * 0.5, 1, rows),
                "scale": rng.normal(0, 1 + 0.6 * moved, rows),
                "shape": rng.choice([-1.0, 1.0], rows) + rng.normal(0, 0.3, rows) if moved else rng.normal(0, 1.04, rows),
                "level": rng.choice(["DE", "ES", "FR"], rows, p=[0.5, 0.2 + 0.2 * moved, 0.3 - 0.2 * moved]),
                "paid": rng.random(rows) < 0.3 + 0.2 * moved,
                "income": income,
                "when": (np.datetime64("2024-01-01") + rng.integers(0, 60, rows) + 20 * moved).astype("datetime64[us]"),
                "same": rng.normal(size=rows),
            }
        )

    found = {c.name: c for c in two_sample_test(sample(0), sample(1), missing="impute", rng=0).explain().columns}
    assert {name: column.words for name, column in found.items()} == {
        "mean": "higher",
        "scale": "more variable",
        "shape": "different in shape",
        "level": "more often 'ES'" if found["level"].effect.value > 0 else "less often 'FR'",
        "paid": "more often true",
        "income": "more often missing",
        "when": "later",
        "same": "",
    }
    assert found["when"].effect.unit == "days"
    assert found["income"].effect.low > 0.1
    assert found["shape"].histogram.edges[0] < -1 < 1 < found["shape"].histogram.edges[-1]
    assert found["paid"].histogram.labels == ("false", "true")


# --- pairs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("repetitions", [8, pytest.param(100, marks=pytest.mark.statistical)])
def test_a_pair_that_becomes_correlated_is_named_and_no_other(repetitions):
    """The requirement: 90 of 100, and a false pair in 5; three binomial standard errors above 5%."""
    named = wrong = 0
    for seed in range(repetitions):
        rng = np.random.default_rng([4, seed])
        pairs = {p.names for p in difference_of(*correlated_pair(rng), rng, count=499).pairs if p.words}
        named += ("0", "1") in pairs
        wrong += bool(pairs - {("0", "1")})
    assert named >= 0.9 * repetitions
    assert wrong <= 0.05 * repetitions + 3 * np.sqrt(repetitions * 0.05 * 0.95)


def test_a_changed_pair_has_a_sentence_that_says_the_columns_look_alike():
    rng = np.random.default_rng(1)
    x, y = (pl.DataFrame(v, schema=["a", "b", "c"]) for v in correlated_pair(rng, columns=3, correlation=0.8))
    explanation = two_sample_test(x, y, rng=0).explain(names=("march", "april"))
    assert explanation.where.startswith("No single column differs, but the correlation of 'a' and 'b' changed (")
    assert explanation.differing_pairs[0].words == "more strongly correlated"
    assert not explanation.differing


def test_correlations_within_the_samples_are_those_of_normal_scores():
    rng = np.random.default_rng(3)
    x, y = correlated_pair(rng, rows=80, columns=2)
    (pair,) = difference_of(x, y, rng, count=99).pairs
    z = special.ndtri((stats.rankdata(np.vstack([x, y]), axis=0) - 0.5) / 160)
    assert pair.correlation_x == pytest.approx(np.corrcoef(z[:80].T)[0, 1])
    assert pair.correlation_y == pytest.approx(np.corrcoef(z[80:].T)[0, 1])


def test_many_pairs_are_screened_without_a_look_at_labels_and_it_says_so():
    rng = np.random.default_rng(8)
    x, y = correlated_pair(rng, rows=100, columns=70, correlation=0.9)
    tables = difference_of(x, y, rng, count=99)
    assert len(tables.pairs) == 2000
    assert tables.pairs[0].names == ("0", "1")
    assert any("of 2415 pairs" in note for note in tables.notes)


# --- suspicious columns -----------------------------------------------------------------------------------------------


def rows_of(**columns):
    rng = np.random.default_rng(11)
    return [pl.DataFrame({"v": rng.normal(size=60), **{name: values[k] for name, values in columns.items()}}) for k in (0, 1)]


SUSPICIOUS = {
    "counter": ({"n": (np.arange(60), np.arange(60, 120))}, "numbers the rows"),
    "index": ({"Unnamed: 0": (np.arange(60), np.arange(60))}, "numbers the rows"),
    "id": ({"user_id": (RNG.permutation(60) * 7, 1000 + RNG.permutation(60) * 3)}, "like an identifier"),
    "text id": ({"k": ([f"a{i}" for i in range(60)], [f"b{i}" for i in range(60)])}, "like an identifier"),
    "key": ({"source": (["old"] * 30 + ["older"] * 30, ["new"] * 60)}, "no value in common"),
    "constant": ({"version": (np.full(60, 2.0), RNG.integers(2, 6, 60).astype(float))}, "always 2 in a"),
    "clock": (
        {"at": tuple(np.datetime64(d) + RNG.integers(0, 28, 60).astype("timedelta64[D]") for d in ("2024-01-01", "2024-03-01"))},
        "after the last date",
    ),
    "apart": ({"level": (RNG.normal(size=60), 100 + RNG.normal(size=60))}, "above the largest value"),
}


@pytest.mark.parametrize("case", SUSPICIOUS)
def test_a_column_that_gives_the_samples_away_is_named_first_with_the_reason(case):
    columns, why = SUSPICIOUS[case]
    x, y = rows_of(**columns)
    explanation = two_sample_test(x, y, rng=0).explain(names=("a", "b"))
    (one,) = explanation.suspicious
    assert one.name in columns
    assert why in one.why
    assert explanation.pvalue_without > 0.05
    assert f"Suspicious '{one.name}'" in explanation.where
    if case not in ("index", "text id"):  # texts that are all different are only known to be so
        assert explanation.where.startswith("Suspicious")
        assert "no difference is found" in explanation.where


def test_ordinary_columns_are_not_suspicious_and_the_others_are_not_masked():
    rng = np.random.default_rng(12)
    x, y = (
        pl.DataFrame({"n": np.arange(k, k + 200), "v": rng.normal(k / 200, 1, 200), "w": rng.permutation(200)}) for k in (0, 200)
    )
    explanation = two_sample_test(x, y, rng=0).explain()
    assert [one.name for one in explanation.suspicious] == ["n"]
    assert {c.name for c in explanation.differing} == {"n", "v"}
    assert "still differ" in explanation.where
    assert "'v' is higher in" in explanation.where


def test_the_auc_counts_groups():
    """40 groups of 10 rows that hang together: the interval is that of groups, and holds 1/2 where nothing differs (40 draws)."""
    widths, held = [], 0
    for seed in range(40):
        rng = np.random.default_rng([77, seed])
        x, y = (rng.normal(size=(20, 1, 2)) + 0.3 * rng.normal(size=(20, 10, 2)) for _ in range(2))
        groups = np.repeat(np.arange(20), 10), np.repeat(np.arange(20, 40), 10)
        rows = x.reshape(-1, 2), y.reshape(-1, 2)
        designed, plain = (
            two_sample_test(*rows, method="median", n_permutations=99, rng=seed, **given).explain().auc
            for given in ({"groups": groups}, {})
        )
        widths.append((designed.high - designed.low) / (plain.high - plain.low))
        held += designed.low <= 0.5 <= designed.high
    assert held >= 33  # 38 expected at 95%; fewer than 33 has probability .004
    assert np.median(widths) > 1.5


# --- traps ------------------------------------------------------------------------------------------------------------


def pair_of(x, y, **known):
    return PairDifference(("a", "b"), ("a", "b"), 0.002, "more strongly correlated", x, y, significant=True, **known)


@pytest.mark.parametrize(
    ("close", "far", "first"),
    [
        ((0.9975, 0.9985), (0.0, 0.6), ("2", "3")),  # Cohen's q .26 and .69
        ((0.9, 0.985), (0.0, 0.3), ("0", "1")),  # .97 and .31
    ],
)
def test_significant_pairs_are_ordered_by_how_much_their_correlation_changed(close, far, first):
    rng = np.random.default_rng(14)

    def sample(close, far):
        a, c = rng.normal(size=(2, 1500))
        b = close * a + np.sqrt(1 - close**2) * rng.normal(size=1500)
        return np.column_stack([a, b, c, far * c + np.sqrt(1 - far**2) * rng.normal(size=1500)])

    pairs = difference_of(sample(close[0], far[0]), sample(close[1], far[1]), rng, count=499).pairs
    assert {pair.names for pair in pairs if pair.significant} == {("0", "1"), ("2", "3")}
    assert pairs[0].names == first
    assert pairs[0].pvalue == pairs[1].pvalue
    rest = [pair.pvalue for pair in pairs if not pair.significant]
    assert rest == sorted(rest)


@pytest.mark.parametrize(
    ("correlations", "shown"),
    [
        ((0.9989, 0.9990), ("0.9989", "0.9990")),
        ((0.2, 0.6), ("0.20", "0.60")),
        ((0.5004, 0.4996), ("0.5004", "0.4996")),
        ((0.999, 0.999), ("1.00", "1.00")),
    ],
)
def test_correlations_that_differ_are_shown_with_digits_that_differ(correlations, shown):
    assert pair_of(*correlations).correlations == shown


def test_a_change_of_correlation_has_cohens_effect_size():
    assert pair_of(0.0, -0.5).cohens_q == pytest.approx(0.5493, abs=1e-4)  # Cohen (1988), table 4.2.1: z of .5


def test_the_column_that_changed_pairs_share_is_named():
    rng = np.random.default_rng(15)
    common = rng.normal(size=(2, 600, 1))
    x, y = (0.8 * common[k] + 0.6 * rng.normal(size=(600, 6)) for k in (0, 1))
    y[:, 3] *= np.where(rng.random(600) < 0.5, -1, 1)  # its sign is flipped for half of the rows
    x, y = (pl.DataFrame(values, schema=list("abcdef")) for values in (x, y))
    explanation = two_sample_test(x, y, rng=0).explain(names=("march", "april"))
    assert len(explanation.differing_pairs) == 5
    first = explanation.differing_pairs[0]
    other = next(name for name in first.names if name != "d")
    assert explanation.where == (
        f"No single column differs, but the correlation of 'd' with 5 other columns changed, most that with '{other}' "
        f"({first.correlations[0]} in march, {first.correlations[1]} in april)."
    )


def test_pairs_of_a_whole_block_of_columns_have_no_column_to_share():
    rng = np.random.default_rng(16)
    x = rng.normal(size=(500, 4))
    y = np.column_stack([0.8 * rng.normal(size=(500, 1)) + 0.6 * rng.normal(size=(500, 3)), rng.normal(size=500)])
    explanation = two_sample_test(x, y, rng=0).explain()
    assert len(explanation.differing_pairs) == 3
    assert "2 more pairs changed" in explanation.where
    assert "other columns" not in explanation.where


@pytest.mark.parametrize("offset", [1e12, -3e13])
@pytest.mark.parametrize("design", ["", "strata", "pairs"])
def test_a_shift_far_from_zero_is_a_shift(offset, design):
    rng = np.random.default_rng(17)
    rows = np.arange(300)
    x, y = offset + rng.normal(size=(300, 1)), offset + rng.normal(1, 1, size=(300, 1))
    given = {"strata": {"strata": (rows % 2, rows % 2)}, "pairs": {"pairs": (rows, rows)}}.get(design, {})
    (column,) = two_sample_test(x, y, rng=0, n_permutations=99, method="median", **given).explain().columns
    assert column.words == "higher"
    assert column.effect.value == pytest.approx((y.mean() - x.mean()) / np.sqrt((x.var() + y.var()) / 2), abs=0.01)


def test_a_change_of_scale_far_from_zero_is_one_of_scale():
    rng = np.random.default_rng(18)
    x, y = 1e13 + rng.normal(size=(400, 1)), 1e13 + 2 * rng.normal(size=(400, 1))
    (column,) = two_sample_test(x, y, rng=0, n_permutations=99, method="median").explain().columns
    assert column.words == "more variable"
    assert column.effect.value == pytest.approx(y.std() / x.std(), rel=0.01)


def test_constants_have_no_effect_however_they_round():
    for value in (0.1, 1e12, 0.0):
        x, y = Sample(np.full(7, value), np.arange(7)), Sample(np.full(9, value), np.arange(9))
        assert mean_effect(x, y) is None
        assert sd_effect(x, y) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("design", ["", "strata", "pairs"])
def test_numbers_whose_squares_overflow_are_explained_like_others(design):
    rng = np.random.default_rng(19)
    x, y = rng.normal(size=(120, 2)), rng.normal(size=(120, 2)) * [1, 3] + [1, 0]
    rows = np.arange(120)
    given = {"strata": {"strata": (rows % 2, rows % 2)}, "pairs": {"pairs": (rows, rows)}}.get(design, {})
    small, large = (
        two_sample_test(unit * x, unit * y, rng=0, n_permutations=99, method="median", **given).explain()
        for unit in (1.0, 2.0**1000)
    )
    assert {column.words for column in small.columns} == {"higher", "more variable"}
    for column, same in zip(small.columns, large.columns, strict=True):
        assert (same.words, same.pvalue, same.sd_x) == (column.words, column.pvalue, column.sd_x * 2.0**1000)
        assert same.effect.value == pytest.approx(column.effect.value)
        assert same.effect.high == pytest.approx(column.effect.high)


def test_the_terminal_shows_that_correlations_differ(capsys):
    rng = np.random.default_rng(20)
    explanation = two_sample_test(*rng.normal(size=(2, 40, 2)), rng=0, n_permutations=99, method="median").explain()
    _say_where(replace(explanation, pairs=(pair_of(0.9989, 0.9990), pair_of(0.2, 0.6))))
    shown = capsys.readouterr().out
    for correlation in ("0.9989", "0.9990", "0.20", "0.60"):
        assert f" {correlation} " in shown


def test_of_very_many_columns_those_with_the_smallest_pvalues_are_summarised(monkeypatch):
    data = np.random.default_rng(31)
    x, y = data.normal(size=(60, 12)), data.normal(size=(60, 12)) + np.repeat([1.5, 0.0], [5, 7])
    whole = two_sample_test(x, y, n_permutations=199, rng=0).explain()
    monkeypatch.setattr("cpmmd.explain.column_table.MOST_DESCRIBED", 3)
    part = two_sample_test(x, y, n_permutations=199, rng=0).explain()
    assert {column.name: column.pvalue for column in part.columns} == {column.name: column.pvalue for column in whole.columns}
    assert part.columns[:5] == whole.columns[:5]  # all that differ
    assert {column.distance for column in part.columns[5:]} == {0.0}
    assert part.notes[-1] == "all 12 columns have a p-value; only the 5 with the smallest ones are summarised"
    assert part.where == whole.where


def test_precision_in_strata_is_that_of_the_labelings():
    rng = np.random.default_rng(6)
    values = rng.normal(size=40)
    rows, stratum = np.arange(40), np.arange(40) % 3
    sums = Strata(stratum, rows, rows < 20).sums(Layout.of_rows(20, 20))
    values = sums.of(values)[:, None]
    first, second = (Relabelings.draw(40, 20, 9, rng, strata=None) for _ in "ab")
    kept = sums.features(sums.of(), {}, sums=values)
    of_x = np.concatenate([labels @ np.hstack([kept.base[:, None], kept.sums]) for labels in second.blocks()])
    kept.differences(of_x, np.empty(0), first)
    fresh = replace(sums, _known={}).features(sums.of(), {}, sums=values)
    np.testing.assert_array_equal(kept.differences(of_x, np.empty(0), second), fresh.differences(of_x, np.empty(0), second))
