"""Designs against full enumeration: every allowed labeling made by hand, and tested as if it were the data."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from cpmmd import Bandwidth, FullSampleTest, KernelClass, MMDAgg, MMDFuse, two_sample_test
from cpmmd.data.design import Design
from cpmmd.draws.layout import Layout
from cpmmd.kernels.families import Bandwidth as Family
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.statistics.forms import EqualCounts, Free, General, Paired, form_of

# Each design: the unit and the stratum of every row by hand, and the arguments that ask for it; groups keep their sizes here.
GROUPS = (np.repeat([0, 1, 2, 3], [2, 5, 3, 1]), np.repeat([4, 5, 6, 7], [4, 2, 2, 3]))
STRATA = (np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 2, 2, 2]))
PAIRS = (np.array([0, 1, 2, 3, 4, 5, 5]), np.array([5, 4, 3, 2, 1, 0, 0]))
GROUPS_IN_STRATA = (
    (np.repeat([0, 1, 2, 3], [2, 3, 1, 2]), np.repeat([4, 5, 6, 7, 8], [2, 1, 2, 2, 1])),
    (np.repeat([0, 0, 1, 1], [2, 3, 1, 2]), np.repeat([0, 0, 1, 1, 1], [2, 1, 2, 2, 1])),
)
SHARED_IN_STRATA = (
    (np.repeat([0, 1, 2, 3], [2, 3, 1, 2]), np.repeat([0, 4, 5, 6, 7, 8], [2, 1, 2, 2, 1, 1])),
    (np.repeat([0, 0, 0, 0], [2, 3, 1, 2]), np.repeat([0, 0, 0, 0, 0, 0], [2, 1, 2, 2, 1, 1])),
)
BLOCKS = (np.repeat([0, 1, 2, 3], 3), np.repeat([4, 5, 6], [4, 4, 3]))
PAIRS_IN_GROUPS = (np.array([0, 0, 1, 2, 3, 4, 5, 5]), np.array([0, 0, 1, 2, 3, 4, 5, 5]))


def _alone(units):
    return np.zeros(len(units), dtype=int)


CASES = {
    "groups": (GROUPS, tuple(map(_alone, GROUPS)), {"groups": GROUPS}),
    "strata": ((np.arange(6), np.arange(6, 14)), STRATA, {"strata": STRATA}),
    "pairs": (PAIRS, PAIRS, {"pairs": PAIRS}),
    "groups in strata": (*GROUPS_IN_STRATA, {"groups": GROUPS_IN_STRATA[0], "strata": GROUPS_IN_STRATA[1]}),
    "a group in both samples": (
        SHARED_IN_STRATA[0],
        tuple(np.where(part == 0, 9, 0) for part in SHARED_IN_STRATA[0]),
        {"groups": SHARED_IN_STRATA[0], "strata": SHARED_IN_STRATA[1]},
    ),
    "blocks": (BLOCKS, tuple(map(_alone, BLOCKS)), {"blocks": 3}),
    "pairs in groups": (
        PAIRS_IN_GROUPS,
        PAIRS_IN_GROUPS,
        {"groups": PAIRS_IN_GROUPS, "pairs": (np.arange(8), np.arange(8))},
    ),
}


def _units(case):
    """Return the units of a case as sets of rows with their stratum, those of x first."""
    of_x, of_y = CASES[case][0]
    strata = np.concatenate(CASES[case][1])
    side = np.repeat([0, 1], [len(of_x), len(of_y)])
    key = np.concatenate([of_x, of_y]) + 100 * side
    return [(np.flatnonzero(key == one), strata[np.flatnonzero(key == one)[0]]) for one in np.unique(key)], len(np.unique(of_x))


def _labelings(case):
    """Return every allowed labeling of the rows, the observed one first."""
    units, first = _units(case)
    strata = sorted({stratum for _, stratum in units})
    ways = []
    for stratum in strata:
        inside = [u for u, (_, own) in enumerate(units) if own == stratum]
        ways.append(list(combinations(inside, sum(u < first for u in inside))))
    labelings = []
    for chosen in product(*ways):
        rows = np.zeros(sum(len(rows) for rows, _ in units), dtype=bool)
        for u in (u for some in chosen for u in some):
            rows[units[u][0]] = True
        labelings.append(rows)
    return labelings


def _rows(case, shift=0.8):
    of_x, of_y = CASES[case][0]
    data = np.random.default_rng(len(case))
    return data.normal(size=(len(of_x), 2)), data.normal(size=(len(of_y), 2)) + shift


def _relabelled(case, labels):
    """Return the data and the design's arguments as if ``labels`` said which rows were of x."""
    z = np.vstack(_rows(case))
    order = np.concatenate([np.flatnonzero(labels), np.flatnonzero(~labels)])
    m = int(labels.sum())
    given = {}
    for name, value in CASES[case][2].items():
        if name == "blocks":  # those of the observed labels: others would be cut elsewhere
            given["groups"] = _split(np.concatenate(CASES[case][0])[order], m)
        elif case == "a group in both samples" and name == "groups":
            given["groups"] = _split(np.concatenate(_apart())[order], m)
        elif case == "a group in both samples":
            given["strata"] = _split(np.concatenate(CASES[case][1])[order], m)
        else:
            given[name] = _split(np.concatenate(value)[order], m)
    return (*_split(z[order], m), given)


def _apart():
    """Return the groups of the case with one in both samples, its two parts named apart."""
    of_x, of_y = SHARED_IN_STRATA[0]
    return of_x, np.where(of_y == 0, 50, of_y)


def _split(values, m):
    return values[:m], values[m:]


def _arrays(case):
    """Return the unit and the stratum of each row of a case."""
    units, _ = _units(case)
    size = sum(len(rows) for rows, _ in units)
    unit, stratum = np.empty(size, dtype=int), np.empty(size, dtype=int)
    for u, (rows, own) in enumerate(units):
        unit[rows], stratum[rows] = u, own
    return unit, stratum


def _brute_force(K, unit, stratum, m, labels):
    """Return the statistic from sums over pairs of rows of different units, each stratum's mean taken off row by row."""
    off, weights, shares = np.eye(len(K)), np.zeros(len(K)), {}
    units_of = {own: np.unique(unit[stratum == own]) for own in set(stratum.tolist())}
    for own, units in units_of.items():
        inside = stratum == own
        off[np.ix_(inside, inside)] -= 1 / inside.sum()
        of_x = len(set(units.tolist()) & set(unit[:m].tolist()))
        shares[own] = inside.sum() * of_x * (len(units) - of_x) / len(units) ** 2
    for own, share in shares.items():
        x, y = labels & (stratum == own), ~labels & (stratum == own)
        weights += share / sum(shares.values()) * (x / x.sum() - y / y.sum())
    if all(len(units) == 2 for units in units_of.values()):
        unit = stratum  # pairs of rows of one pair have no place in it either
    centred = off @ K @ off.T
    return sum(weights[i] * weights[j] * centred[i, j] for i in range(len(K)) for j in range(len(K)) if unit[i] != unit[j])


@pytest.mark.parametrize("case", CASES)
def test_a_fixed_kernel_has_the_statistics_of_full_enumeration(case):
    x, y = _rows(case)
    result = two_sample_test(x, y, method="median", alpha=0.2, n_permutations=2000, rng=0, group_sizes="keep", **CASES[case][2])
    labelings = _labelings(case)
    family = Family("gaussian")
    K = ScaledKernel(family, family.median_bandwidth(np.vstack([x, y]))).gram(np.vstack([x, y]))
    expected = np.array([_brute_force(K, *_arrays(case), len(x), labels) for labels in labelings])
    assert result.exhaustive
    assert result.statistic == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(np.sort(result.null_distribution), np.sort(expected[1:]), atol=1e-12)
    assert result.pvalue == np.mean(expected >= expected[0] - 1e-12)


FEW = FullSampleTest(
    classes=(
        KernelClass(Bandwidth(), widest=1.0, narrowest=0.5),
        KernelClass(Bandwidth(), scale="standard", widest=1.0, narrowest=1.0, gammas=(0.1, 0.001)),
    )
)
WHOLE = {
    "cp-full": FEW,
    "median": "median",
    "energy": "energy",
    "mmdfuse": MMDFuse(n_bandwidths=2),
}


@pytest.mark.parametrize("method", WHOLE)
@pytest.mark.parametrize("case", CASES)
def test_every_relabeling_is_the_test_of_the_relabelled_data(case, method):
    """The rank is what it is over all labelings, each tested as the data: nothing but the statistic may look at labels."""
    x, y = _rows(case)
    settings = {"method": WHOLE[method], "alpha": 0.2, "n_permutations": 2000, "rng": 0}
    result = two_sample_test(x, y, **settings, group_sizes="keep", **CASES[case][2])
    labelings = _labelings(case)
    assert result.exhaustive
    assert len(result.null_distribution) == len(labelings) - 1
    every = case in ("groups", "pairs") and method == "cp-full"
    some = np.random.default_rng(0).permutation(len(labelings) - 1)[: None if every else 12] + 1
    expected = []
    for labels in (labelings[0], *(labelings[b] for b in some)):
        a, b, given = _relabelled(case, labels)
        expected.append(two_sample_test(a, b, **settings, group_sizes="keep", **given).statistic)
    close = 1e-4 * np.abs(result.null_distribution).max()
    assert expected[0] == pytest.approx(result.statistic, abs=close)
    for value in expected[1:]:
        assert np.abs(result.null_distribution - value).min() <= close
    if every:
        assert result.pvalue == np.mean(np.array(expected) >= expected[0] - close)


SPLIT = {
    "groups": {"groups": (np.repeat(np.arange(8), [2, 1, 3, 2, 2, 1, 2, 3]), np.repeat(np.arange(10, 18), 2))},
    "pairs": {"pairs": (np.arange(16), np.arange(16))},
    "strata": {"strata": (np.arange(16) % 2, np.arange(16) % 2)},
}


@pytest.mark.parametrize("case", SPLIT)
def test_a_split_test_ranks_its_tested_units_among_all_their_labelings(case):
    data = np.random.default_rng(3)
    x, y = data.normal(size=(16, 2)), data.normal(size=(16, 2)) + 0.7
    result = two_sample_test(x, y, method="cp-linear", alpha=0.2, n_permutations=5000, rng=1, group_sizes="keep", **SPLIT[case])
    rows = result.evidence.tested
    m = int((rows < 16).sum())
    given = np.concatenate(next(iter(SPLIT[case].values())))[rows]
    side = (rows >= 16).astype(int)
    unit = {"groups": given, "pairs": given * 2 + side, "strata": np.arange(len(rows))}[case]
    stratum = np.zeros(len(rows), int) if case == "groups" else given
    K = result.kernel.gram(result.preparation.transform(result.evidence.pool, rows))
    labelings = _all_labelings(unit, stratum, m)
    expected = np.array([_brute_force(K, unit, stratum, m, labels) for labels in labelings[:400]])
    assert len(result.null_distribution) == len(labelings) - 1
    assert result.statistic == pytest.approx(expected[0], abs=1e-12)
    for value in expected[1:]:
        assert np.abs(result.null_distribution - value).min() < 1e-12
    if len(labelings) <= 400:
        assert result.pvalue == np.mean(expected >= expected[0] - 1e-12)


def _all_labelings(unit, stratum, m):
    """Return every allowed labeling of rows, the observed one first."""
    ways = []
    for own in np.unique(stratum):
        units = [u for u in dict.fromkeys(unit.tolist()) if stratum[unit == u][0] == own]
        ways.append(list(combinations(units, len(set(units) & set(unit[:m].tolist())))))
    return [np.isin(unit, [u for some in chosen for u in some]) for chosen in product(*ways)]


@pytest.mark.parametrize("case", CASES)
def test_the_single_tests_of_mmdagg_have_the_statistic_of_the_design(case):
    x, y = _rows(case)
    method = MMDAgg(kernels=("gaussian",), bandwidths=(1.0,), b1=400, b2=100)
    result = two_sample_test(x, y, method=method, alpha=0.2, n_permutations=400, rng=0, group_sizes="keep", **CASES[case][2])
    z = np.vstack([x, y])
    K = np.exp(-np.square(z[:, None] - z).sum(axis=-1) / 2)
    expected = np.array([_brute_force(K, *_arrays(case), len(x), labels) for labels in _labelings(case)])
    (single,) = result.collection.tests
    p = np.mean(expected >= expected[0] - 1e-9)
    assert single.mmd2 == pytest.approx(expected[0], abs=1e-6)
    assert abs(single.pvalue - p) <= 4 * np.sqrt(p * (1 - p) / 400) + 1 / 400
    assert result.exact == (case != "blocks")


def test_bins_are_made_of_whole_units_of_one_sample_and_stratum():
    data = np.random.default_rng(0)
    unit = np.sort(data.integers(0, 500, 3000))
    design = Design.of(unit, unit % 3, (1500, 1500))
    layout = Layout.of_design(design, data, target=60)
    of_unit, of_bin = design.unit[layout.rows], np.repeat(np.arange(layout.count), layout.counts)
    assert len(np.unique(np.column_stack([of_unit, of_bin]), axis=0)) == len(np.unique(of_unit))
    for b in range(layout.count):
        units = np.unique(of_unit[of_bin == b])
        assert set(design.strata[units]) == {design.strata[units[0]]}
        assert len({bool(u < design.first) for u in units}) == 1
    per_bin = {(int(layout.strata[b]), len(np.unique(of_unit[of_bin == b]))) for b in range(layout.count)}
    assert len(per_bin) == 3  # equally many units in every bin of a stratum
    pairs = Design.of(np.tile(np.arange(400), 2), np.tile(np.arange(400), 2), (400, 400), kind="pair")
    layout = Layout.of_design(pairs, data, target=60)
    assert isinstance(form_of(layout), Paired)
    assert layout.dropped == (0, 0)
    of_x = np.repeat(layout.of_x, layout.counts)
    np.testing.assert_array_equal(np.sort(layout.rows[of_x]), np.arange(400))


def test_tiles_give_the_statistic_of_the_dense_matrix():
    data = np.random.default_rng(1)
    x, y = data.normal(size=(400, 2)), data.normal(size=(300, 2))
    of = np.sort(data.integers(0, 25, 400)), 100 + np.sort(data.integers(0, 25, 300))
    for given in ({"groups": of}, {"strata": (of[0] % 4, of[1] % 4), "groups": of}, {"blocks": 20}):
        values = [
            two_sample_test(x, y, method="median", rng=0, memory_limit=limit, group_sizes="keep", **given)
            for limit in (None, "3MB")
        ]
        assert [one.engine.name for one in values] == ["dense", "binned"]
        assert values[1].statistic == pytest.approx(values[0].statistic, abs=1e-6)


def test_large_pools_go_through_landmarks_and_keep_groups_whole():
    data = np.random.default_rng(2)
    of = np.sort(data.integers(0, 30, 2600)), 100 + np.sort(data.integers(0, 30, 2600))
    effects = data.normal(size=(130, 2))
    x, y = (effects[part] + data.normal(size=(2600, 2)) for part in of)
    few = FullSampleTest(classes=(KernelClass(Bandwidth(), widest=1.0, narrowest=1.0, gammas=(0.1,)),))
    null = two_sample_test(x, y, method=few, groups=of, n_permutations=99, rng=0)
    assert null.engine.landmarks == 200
    assert null.pvalue > 0.05 >= two_sample_test(x, y + 3, method=few, groups=of, n_permutations=99, rng=0).pvalue
    assert two_sample_test(x, y, method=few, n_permutations=99, rng=0).pvalue <= 0.05


FORMS = {"strata": EqualCounts, "pairs": Paired, "pairs in groups": Paired}


@pytest.mark.parametrize("case", CASES)
def test_each_design_has_its_form_in_any_order_of_its_units(case):
    design = two_sample_test(*_rows(case), method="median", alpha=0.5, rng=0, group_sizes="keep", **CASES[case][2]).design
    for rng in (None, np.random.default_rng(0)):
        assert type(form_of(Layout.of_design(design, rng))) is FORMS.get(case, General)
    assert type(form_of(Layout.cut(6, 8, None, np.random.default_rng(0)))) is Free
