"""Several samples: statistics against double sums, p against enumeration, pairs against their definition, bad input."""

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from cpmmd import Bandwidth, FullSampleTest, KernelClass, k_sample_test, two_sample_test
from cpmmd.data.design import DesignOptions
from cpmmd.data.pool import read_samples, take_samples
from cpmmd.draws.labels import LabelCodes
from cpmmd.draws.layout import Layout, several_bin_counts
from cpmmd.errors import CpmmdError
from cpmmd.evidence import tail_scores
from cpmmd.statistics.columns import columns_of, read_columns, score_columns
from cpmmd.statistics.forms import Several, form_of
from cpmmd.statistics.k_sample import adjusted_pairs, largest_factor
from cpmmd.statistics.strata import Strata
from helpers import assert_level


def gaussian(rows):
    return np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / 2)


def against_others(K, codes, a):
    """The unbiased squared MMD of sample a against all others, from double sums."""
    own = [i for i, code in enumerate(codes) if code == a]
    others = [i for i, code in enumerate(codes) if code != a]
    within = [sum(K[i, j] for i in side for j in side if i != j) / (len(side) * (len(side) - 1)) for side in (own, others)]
    return sum(within) - 2 * sum(K[i, j] for i in own for j in others) / (len(own) * len(others))


def stratified_against_others(K, codes, strata, a):
    """The squared difference of means in strata, weighed by precision, without pairs of a row with itself."""
    weights = np.zeros(len(codes))
    rows = {s: np.flatnonzero(strata == s) for s in set(strata.tolist())}
    sides = {s: (own[codes[own] == a], own[codes[own] != a]) for s, own in rows.items()}
    precision = {s: len(x) * len(y) / (len(x) + len(y)) for s, (x, y) in sides.items()}
    centred = K.copy()
    for s, own in rows.items():
        share = precision[s] / sum(precision.values())
        if precision[s]:
            weights[sides[s][0]], weights[sides[s][1]] = share / len(sides[s][0]), -share / len(sides[s][1])
        centred[own] -= centred[own].mean(axis=0)
    for own in rows.values():
        centred[:, own] -= centred[:, own].mean(axis=1, keepdims=True)
    total = sum(weights[i] * weights[j] * centred[i, j] for i in range(len(K)) for j in range(len(K)) if i != j)
    return total, sum(precision.values())


def joined(apart, weights):
    total = sum(weight * values for weight, values in zip(weights, apart, strict=True))
    largest = np.max([tail_scores(values[None])[0] for values in apart], axis=0)
    return np.maximum(tail_scores(total[None])[0], tail_scores(largest[None])[0])


def labelled(sizes, design=None, count=99, seed=0):
    layout = Layout.cut_several(sizes, design, np.random.default_rng(seed))
    return layout, (codes := layout.draw_codes(count, np.random.default_rng(seed + 1))), layout.labelled(codes)


def test_kernels_against_double_sums_over_rows():
    sizes = (4, 3, 5)
    rows = np.random.default_rng(0).normal(size=(12, 2))
    layout, codes, several = labelled(sizes)
    K = gaussian(rows[layout.rows])
    form = form_of(several)
    assert isinstance(form, Several)
    expected = [np.array([against_others(K, labels, a) for labels in codes.codes.tolist()]) for a in range(3)]
    np.testing.assert_allclose(form.apart(K.copy(), 0.0), expected, rtol=0, atol=1e-10)
    weights = [n * (12 - n) / 12 * (1 - n / 12) for n in sizes]
    np.testing.assert_allclose(form.statistics(K.copy(), 0.0)[0], joined(expected, weights), atol=1e-10)
    features = np.linalg.cholesky(K + 1e-13 * np.eye(12))  # its products are K
    of_features = form.features_apart(features - features.mean(axis=0), np.ones((12, 1)))
    np.testing.assert_allclose(np.squeeze(of_features), expected, atol=1e-10)


def test_two_samples_have_the_squared_mmd_twice():
    layout, codes, several = labelled((4, 6))
    K = gaussian(np.random.default_rng(0).normal(size=(10, 1))[layout.rows])
    x, y = form_of(several).apart(K.copy(), 0.0)
    np.testing.assert_allclose(x, [against_others(K, labels, 0) for labels in codes.codes.tolist()], atol=1e-12)
    np.testing.assert_allclose(x, y, atol=1e-12)


def test_strata_against_double_sums_also_where_a_sample_is_in_some_only():
    rng = np.random.default_rng(1)
    rows = {name: rng.normal(size=(n, 2)) for name, n in (("a", 5), ("b", 4), ("c", 4))}
    strata = [np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])]  # no c in the second
    pool = read_samples(rows, design=DesignOptions(strata=strata))
    layout, codes, several = labelled(pool.sizes, pool.design)
    K, own = gaussian(np.vstack(list(rows.values()))[layout.rows]), np.concatenate(strata)[layout.rows]
    form = form_of(several)
    found = form.apart(K.copy(), 0.0)
    for a in range(3):
        by_hand = [stratified_against_others(K, labels, own, a) for labels in codes.codes]
        np.testing.assert_allclose(found[a], [value for value, _ in by_hand], atol=1e-10)
        np.testing.assert_allclose(form.forms[a].precision, by_hand[0][1])


@pytest.mark.parametrize("target", [20, 1000])
def test_groups_move_as_a_whole_whatever_the_number_of_bins(target):
    rng = np.random.default_rng(2)
    rows = {name: rng.normal(size=(60, 1)) for name in "abc"}
    groups = [np.repeat(np.arange(30) + 100 * place, 2) for place in range(3)]
    pool = read_samples(rows, design=DesignOptions(groups=groups))
    layout = Layout.cut_several(pool.sizes, pool.design, rng, target=target)
    unit = np.repeat(np.arange(layout.count), layout.counts)
    for own in np.concatenate(groups).reshape(-1, 2):
        places = np.flatnonzero(np.isin(np.concatenate(groups)[layout.rows], own))
        assert len(places) in (0, 2)  # left over, or in one unit
        assert len(set(unit[places])) <= 1
    assert layout.units == tuple(np.bincount(layout.sample))
    assert [set(layout.rows[unit == u] // 60) for u in range(layout.count)] == [{s} for s in layout.sample]


def test_bins_of_several_samples_fill_the_room():
    assert several_bin_counts([100, 100, 100], target=200, most=1000) == (1, (100, 100, 100))
    assert several_bin_counts([3000, 3000, 3000], target=200, most=1000) == (45, (66, 66, 66))
    size, bins = several_bin_counts([5, 1_000_000, 2000], target=200, most=1000)
    assert (size, bins[0]) == (2, 2)
    assert sum(bins) <= 1000
    assert min(bins[1:]) >= 498


def test_columns_against_the_scores_of_each_sample():
    rng = np.random.default_rng(3)
    frame = {name: pd.DataFrame({"v": rng.normal(size=8), "c": rng.choice(["p", "q", "r"], 8)}) for name in "abc"}
    pool = read_samples(frame)
    layout, codes, several = labelled(pool.sizes)
    from cpmmd.data.preparation import Preparation

    columns = columns_of(pool, Preparation.fit(pool))
    strata = Strata.of(pool, several.rows, several)
    read = list(read_columns(pool, columns, several, strata))
    v = np.concatenate([f["v"].to_numpy() for f in frame.values()])[layout.rows]
    ranks = (np.argsort(np.argsort(v)) + 0.5) / len(v)
    from scipy.special import ndtri

    normal = ndtri(ranks)
    (features, *_) = read[0].features
    location = next(iter(features.statistics.values()))
    apart = []
    for side in several.against:
        of_x = np.concatenate(list(side.labels.blocks())) @ np.column_stack([features.base, features.sums])
        total = np.concatenate([[features.base.sum()], features.sums.sum(axis=0)])
        apart.append(location(features.differences(of_x, total, side.labels)))
    by_hand = []
    for a in range(3):  # n_a (N - n_a) / N (mean - mean of the others)^2
        means = [(normal[labels == a].mean(), normal[labels != a].mean()) for labels in codes.codes]
        by_hand.append(np.array([8 * 16 / 24 * (x - y) ** 2 for x, y in means]))
    np.testing.assert_allclose(apart, by_hand, atol=1e-10)
    scored = score_columns([column.features for column in read], several)
    assert all(len(column.scores) == len(codes) for column in scored)
    labels = codes.codes[0]
    kruskal = sum(np.sum(labels == a) * normal[labels == a].mean() ** 2 for a in range(3))
    np.testing.assert_allclose(sum((1 - 8 / 24) * values[0] for values in apart), kruskal)  # the rank test of several samples


def test_p_is_the_rank_among_all_labelings():
    rng = np.random.default_rng(5)
    samples = [rng.normal(size=(n, 2)) + shift for n, shift in ((3, 0), (2, 1), (2, 2))]
    method = FullSampleTest(classes=(KernelClass(Bandwidth(), narrowest=1, widest=1),))
    result = k_sample_test(samples, method=method, rng=0)
    assert (result.exhaustive, result.n_permutations) == (True, 209)
    rows, codes = np.vstack(samples), (0, 0, 0, 1, 1, 2, 2)
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    bandwidth = np.median(distances[np.triu_indices(7, 1)])
    K = np.exp(-((distances / bandwidth) ** 2) / 2)
    every = sorted(set(permutations(codes)))
    apart = [np.array([against_others(K, labels, a) for labels in every]) for a in range(3)]
    expected = joined(apart, [n * (7 - n) / 7 * (1 - n / 7) for n in (3, 2, 2)])
    observed = expected[every.index(codes)]
    assert result.pvalue == np.sum(expected >= observed - 1e-6) / 210


def test_labels_of_one_sample_are_those_of_the_codes():
    codes = LabelCodes.draw(np.array([0, 1, 2, 0, 1, 2, 2]), 50, np.random.default_rng(0))
    for sample in range(3):
        np.testing.assert_array_equal(codes.of(sample).array(bool), codes.codes == sample)


def unequal_with_ties(rng):
    return [rng.integers(0, 3, size=(n, 2)).astype(float) for n in (4, 15, 8)], {}


def other_mixes_of_strata(rng):
    of = [rng.choice(2, 10, p=mix) for mix in ((0.7, 0.3), (0.5, 0.5), (0.2, 0.8))]
    return [3.0 * own[:, None] + rng.normal(size=(10, 1)) for own in of], {"strata": of}


@pytest.mark.parametrize("null", [unequal_with_ties, other_mixes_of_strata])
def test_the_level_holds(null):
    # 200 repetitions: at alpha = .05 the bound is 10 + 3 * 3.1 = 19. More in tests/statistical.
    rng, pvalues = np.random.default_rng(11), []
    for _ in range(200):
        samples, design = null(rng)
        pvalues.append(k_sample_test(samples, n_permutations=39, alpha=0.03, rng=rng, **design).pvalue)
    assert_level(np.array(pvalues))


# Pairs: closed testing against its definition.


def partitions(samples):
    if not samples:
        yield []
        return
    first, *rest = samples
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = [sample for sample in rest if sample not in others]
            yield from ([[first, *others], *more] for more in partitions(left))


@pytest.mark.parametrize("samples", [2, 3, 4, 5])
def test_pairs_are_adjusted_by_the_closure_of_all_partitions(samples):
    """A pair is rejected where every partition in which its samples are together is; each partition splits alpha."""
    rng = np.random.default_rng(samples)
    for _ in range(20):
        pvalues = {pair: float(p) for pair, p in zip(combinations(range(samples), 2), rng.random(samples**2) ** 3, strict=False)}
        overall = float(rng.random() ** 6)
        adjusted = adjusted_pairs(pvalues, samples, overall)
        for alpha in (0.01, 0.05, 0.2):
            for pair in pvalues:
                assert (adjusted[pair] <= alpha) == closure_rejects(pair, pvalues, samples, overall, alpha)


def closure_rejects(pair, pvalues, samples, overall, alpha):
    def rejected(block):
        if len(block) == samples:
            return overall <= alpha
        share = 1.0 if len(block) == samples - 1 else len(block) / samples
        return any(pvalues[inside] <= alpha * share / math.comb(len(block), 2) * (1 + 1e-12) for inside in combinations(block, 2))

    sets = {tuple(block) for partition in partitions(list(range(samples))) for block in map(sorted, partition)}
    return all(rejected(block) for block in sets if set(pair) <= set(block))


def test_many_samples_are_adjusted_by_shaffers_steps():
    rng, samples = np.random.default_rng(0), 12
    pvalues = {pair: 0.0001 + float(rng.random() ** 4) for pair in combinations(range(samples), 2)}
    adjusted = adjusted_pairs(pvalues, samples, 0.001)
    order = sorted(pvalues, key=pvalues.get)
    holm = np.maximum.accumulate([min(1.0, (66 - i) * pvalues[pair]) for i, pair in enumerate(order)])
    found = np.array([adjusted[pair] for pair in order])
    assert (found <= np.maximum(holm, 0.001) + 1e-15).all()
    assert (np.diff(found) >= 0).all()
    np.testing.assert_allclose(found[0], min(1.0, 55 * pvalues[order[0]]))  # at most 11 samples are alike, which are 55 pairs
    assert largest_factor(12) == 55
    assert min(adjusted_pairs(pvalues, samples, 0.6).values()) == 0.6


def test_a_pair_is_a_test_of_its_own_rows():
    rng = np.random.default_rng(0)
    samples = {name: rng.normal(size=(30, 2)) + (name == "c") for name in "abcd"}
    result = k_sample_test(samples, rng=0)
    assert {pair.names for pair in result.differing} == {("a", "c"), ("b", "c"), ("c", "d")}
    assert result.pvalue == 0.001
    assert all(pair.adjusted >= max(result.pvalue, pair.pvalue) for pair in result.pairs)
    assert [pair.adjusted for pair in result.pairs] == sorted(pair.adjusted for pair in result.pairs)
    pair = result.differing[0]
    own = [np.asarray(samples[name]) for name in pair.names]
    np.testing.assert_array_equal(pair.test.evidence.pool.numbers[:, :], np.vstack(own))
    assert {column.words for column in pair.explain().differing} == {"higher" if pair.names[1] == "c" else "lower"}


def test_few_permutations_are_enough_for_many_pairs():
    rng = np.random.default_rng(0)
    result = k_sample_test([rng.normal(size=(20, 1)) + 3 * i for i in range(6)], n_permutations=99, alpha=0.05, rng=0)
    assert len(result.differing) == 15
    assert result.n_permutations == 99
    assert all(pair.test.n_permutations >= 2 * largest_factor(6) / 0.05 - 1 for pair in result.pairs)


def test_two_samples_agree_with_the_test_of_two():
    rng = np.random.default_rng(1)
    for shift in (0.0, 0.15, 0.3):
        x, y = rng.normal(size=(70, 3)), rng.normal(shift, 1, size=(90, 3))
        two, several = two_sample_test(x, y, rng=0, n_permutations=1999), k_sample_test([x, y], rng=0, n_permutations=1999)
        assert abs(two.pvalue - several.pvalue) < 0.06
    assert [pair.adjusted for pair in several.pairs] == [several.pvalue] * several.reject


def test_samples_keep_their_strata_in_pairs():
    rng = np.random.default_rng(2)
    rows = {name: rng.normal(size=(6, 1)) for name in "abc"}
    strata = [np.array(list("ppqqqq")), np.array(list("qqqqqq")), np.array(list("ppppqq"))]
    pool = read_samples(rows, design=DesignOptions(strata=strata))
    own = take_samples(pool, 0, 1)  # p has no row of b
    assert own.sizes == own.design.rows == (4, 6)
    np.testing.assert_array_equal(own.numbers[:, :], np.vstack([rows["a"][2:], rows["b"]]))
    assert own.design.strata.tolist() == [0] * 10
    assert take_samples(pool, 0, 2).sizes == (6, 6)


# The call.

RNG = np.random.default_rng(7)
NORTH, SOUTH, EAST = (pd.DataFrame({"v": RNG.normal(shift, 1, 40), "c": RNG.choice(["p", "q"], 40)}) for shift in (0, 0, 1.2))


def test_a_result_speaks(tmp_path):
    result = k_sample_test({"north": NORTH, "south": SOUTH, "east": EAST}, rng=0)
    assert result.reject
    assert str(result).splitlines()[0] == "The samples differ (p = 0.001 <= 0.05)."
    assert "east differs from all others, among which no difference was found." in str(result)
    explanation = result.explain()
    assert explanation is result.explain()
    assert [column.name for column in explanation.differing] == ["v"]
    (column,) = explanation.differing
    assert (column.sample, column.words, column.what) == ("east", "higher", "mean")
    np.testing.assert_allclose(column.values, [frame["v"].mean() for frame in (NORTH, SOUTH, EAST)])
    assert "'v' is higher in east" in explanation.sentence
    document = result.to_dict()
    assert [pair["names"] for pair in document["pairs"] if pair["differs"]] == [["north", "east"], ["south", "east"]]
    assert "null_distribution" not in document
    assert result.to_metrics()["cpmmd_differing_pairs"] == 2
    for suffix in ("html", "md", "json"):
        text = result.report(tmp_path / f"r.{suffix}")
        assert "north" in text
        assert "Pairs of samples" in text
    assert "higher" in result._repr_html_()
    assert repr(result.pairs[0].names)


def test_a_list_and_a_mapping_give_the_same_answer():
    frames = [NORTH, SOUTH, EAST]
    listed, named = k_sample_test(frames, rng=3), k_sample_test(dict(zip("abc", frames, strict=True)), rng=3)
    np.testing.assert_array_equal(listed.null_distribution, named.null_distribution)
    assert listed.names == ("sample 1", "sample 2", "sample 3")
    assert [pair.adjusted for pair in listed.pairs] == [pair.adjusted for pair in named.pairs]
    again = k_sample_test(frames, rng=3, n_jobs=2)
    np.testing.assert_array_equal(listed.null_distribution, again.null_distribution)


def test_samples_that_fall_into_sets_are_listed_by_them():
    rng = np.random.default_rng(0)
    samples = {name: rng.normal(size=(60, 1)) + 3 * (name in "bde") for name in "abcde"}
    found = k_sample_test(samples, rng=0)
    assert found.explain().sentence.startswith(
        "Samples of different sets differ, and no difference was found within a set: a and c; b, d and e."
    )
    shifted = {name: rng.normal(size=(60, 1)) + shift for name, shift in zip("abc", (0, 3, 6), strict=True)}
    assert "All samples differ from each other." in str(k_sample_test(shifted, rng=0))


@pytest.mark.parametrize("numbers", [False, True])
def test_a_column_of_one_table_says_which_sample_a_row_is_of(numbers):
    frames = {"2": NORTH, "10": SOUTH, "11": EAST} if numbers else {"a": NORTH, "b": SOUTH, "c": EAST}
    table = pd.concat([frame.assign(site=int(name) if numbers else name) for name, frame in frames.items()])
    split, given = k_sample_test(table, by="site", rng=0), k_sample_test(frames, rng=0)
    assert split.names == tuple(frames)
    np.testing.assert_array_equal(split.null_distribution, given.null_distribution)
    assert "by='site'" in split.call


def test_pairs_are_not_compared_where_the_test_of_all_does_not_reject():
    result = k_sample_test([NORTH, SOUTH, NORTH[:30]], rng=0)
    assert not result.reject
    assert result.pairs == result.differing == ()
    assert "No difference was found" in result.explain().sentence


def test_subjects_that_are_in_all_samples():
    rng = np.random.default_rng(0)
    level = 5 * rng.normal(size=(40, 1))
    samples = {name: level + rng.normal(size=(40, 1)) + shift for name, shift in (("before", 0), ("after", 2), ("later", 2))}
    people = dict.fromkeys(samples, np.arange(40))
    result = k_sample_test(samples, pairs=people, rng=0)
    assert str(result.design) == "40 pairs"
    assert {pair.names for pair in result.differing} == {("before", "after"), ("before", "later")}
    assert not k_sample_test(samples, rng=0).reject  # the same rows, taken as independent
    assert k_sample_test({**samples, "after": samples["before"] + 0.01 * rng.normal(size=(40, 1))}, pairs=people, rng=0).reject


def test_groups_of_different_sizes_are_cut():
    rng = np.random.default_rng(0)
    samples, groups = {}, {}
    for place, name in enumerate("abc"):
        sizes = rng.integers(3, 7, 20)
        groups[name] = np.repeat([f"{name}{i}" for i in range(20)], sizes)
        samples[name] = (rng.normal(size=20).repeat(sizes) + rng.normal(size=sizes.sum()) + 3 * (place == 2))[:, None]
    result = k_sample_test(samples, groups=groups, rng=0)
    assert {pair.names for pair in result.differing} == {("a", "c"), ("b", "c")}
    assert len(set(np.bincount(result.design.unit).tolist())) == 1
    assert any("each was cut to" in note for note in result.notes)
    kept = k_sample_test(samples, groups=groups, group_sizes="keep", rng=0)
    assert kept.sizes == tuple(len(samples[name]) for name in "abc")


def test_blocks_and_missing_values():
    rng = np.random.default_rng(1)
    samples = [
        pd.DataFrame({"v": rng.normal(size=60), "w": np.where(rng.random(60) < share, np.nan, 1.0)}) for share in (0.1, 0.1, 0.7)
    ]
    result = k_sample_test(samples, missing="impute", blocks=3, rng=0)
    assert result.reject
    assert not result.exact
    column = result.explain().differing[0]
    assert (column.name, column.sample, column.what) == ("w", "sample 3", "share missing")
    np.testing.assert_allclose(column.values, [frame["w"].isna().mean() for frame in samples])


def test_a_transformer_comes_first():
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(40, 6)) + shift * np.eye(6)[2] for shift in (0, 0, 1.5)]
    result = k_sample_test(samples, preprocess=PCA(3), rng=0)
    assert {pair.names for pair in result.differing} == {("sample 1", "sample 3"), ("sample 2", "sample 3")}
    assert [column.name for column in result.explain().differing] == ["2"]
    assert not any("column" in scored.label for scored in result.classes)


def test_large_samples_are_binned():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(2500, 2)) + shift for shift in (0, 0, 0.2)]
    result = k_sample_test(samples, rng=0)
    assert (result.engine.name, result.engine.linear) == ("binned", True)
    assert {pair.names for pair in result.differing} >= {("sample 1", "sample 3"), ("sample 2", "sample 3")}


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([NORTH], {}, "at least two samples. Got 1"),
        ([], {}, "at least two samples. Got 0"),
        (NORTH, {}, "must be a list of samples, a mapping from names to samples, or a table with the column that splits it"),
        (NORTH, {"by": "site"}, "Unknown column"),
        ([NORTH, SOUTH], {"by": "c"}, "must be one table where a column splits it"),
        (NORTH.assign(c=None), {"by": "c"}, "must have a value in every row"),
        (NORTH.assign(c="p"), {"by": "c"}, "at least two samples. Got 1"),
        (np.zeros((3, 4, 2)), {}, "must be a list of samples"),
        ([NORTH, SOUTH[:1], EAST], {}, "Each sample must have at least 2 rows. Sample 2 has 1"),
        ({"n": NORTH, "south west": SOUTH[:1]}, {}, "The sample 'south west' has 1"),
        ([NORTH, SOUTH, EAST.rename(columns={"v": "u"})], {}, "only in sample 3: 'u'"),
        ([NORTH, SOUTH, EAST[["v"]]], {}, "Got 2 in sample 1 and 1 in sample 3"),
        ([NORTH, SOUTH, EAST.assign(v=np.nan)], {}, "in 'v' of sample 3"),
        ([NORTH, SOUTH, EAST], {"method": "mmdagg"}, "The 'method' parameter must be 'cp-full' or a FullSampleTest"),
        ([NORTH, SOUTH, EAST], {"alpha": 0}, "strictly between 0 and 1"),
        ([NORTH, SOUTH, EAST], {"strata": "site"}, "Unknown column"),
        ([NORTH, SOUTH, EAST], {"groups": [np.arange(40)] * 2}, "3 arrays, one for each"),
        ([NORTH, SOUTH, EAST], {"pairs": [np.arange(40), np.arange(40), np.arange(1, 41)]}, "pair"),
        ({"a": NORTH, "b": SOUTH}, {"strata": {"a": np.zeros(40), "c": np.zeros(40)}}, "must have the names of the samples"),
        ([NORTH, SOUTH, EAST], {"seed": 1}, "rng"),
        ({1: NORTH, "1": SOUTH}, {}, "Names of samples must differ"),
    ],
)
def test_bad_input_gets_a_sentence(samples, options, message):
    with pytest.raises((CpmmdError, TypeError)) as raised:
        k_sample_test(samples, **options)
    assert message in str(raised.value)


def test_a_test_that_cannot_reject_says_so():
    result = k_sample_test([[1.0, 2.0], [3.0, 4.0]], rng=0)
    assert not result.reject
    assert any("cannot reject" in note for note in result.notes)


def test_the_same_sample_twice_is_not_different_from_itself():
    result = k_sample_test([NORTH, NORTH, EAST], rng=0)
    assert {pair.names for pair in result.differing} == {("sample 1", "sample 3"), ("sample 2", "sample 3")}
    assert Counter(pair.differs for pair in result.pairs) == {True: 2, False: 1}
