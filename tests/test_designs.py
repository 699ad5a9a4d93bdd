"""Designs against full enumeration: every allowed labeling made by hand, and tested as if it were the data."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from cpmmd import Bandwidth, FullSampleTest, KernelClass, MMDFuse, two_sample_test
from cpmmd.kernels.bandwidth import Bandwidth as Family
from cpmmd.kernels.scaled import ScaledKernel

# Each design: the unit and the stratum of every row by hand, and the arguments that ask for it.
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


def _brute_force(K, case, labels):
    """Return the statistic from sums over pairs of rows of different units, each stratum's mean taken off row by row."""
    units, _ = _units(case)
    unit, stratum = np.empty(len(K), dtype=int), np.empty(len(K), dtype=int)
    for u, (rows, own) in enumerate(units):
        unit[rows], stratum[rows] = u, own
    off = np.eye(len(K))
    weights, shares = np.zeros(len(K)), {}
    for own in set(stratum.tolist()):
        inside = stratum == own
        off[np.ix_(inside, inside)] -= 1 / inside.sum()
        observed = [u for u, (_, s) in enumerate(units) if s == own]
        of_x = sum(u < _units(case)[1] for u in observed)
        shares[own] = inside.sum() * of_x * (len(observed) - of_x) / len(observed) ** 2
    for own, share in shares.items():
        x, y = labels & (stratum == own), ~labels & (stratum == own)
        weights += share / sum(shares.values()) * (x / x.sum() - y / y.sum())
    centred = off @ K @ off.T
    if all(sum(own == other for _, other in units) == 2 for _, own in units):
        unit = stratum  # pairs of rows of one pair have no place in it either
    return sum(weights[i] * weights[j] * centred[i, j] for i in range(len(K)) for j in range(len(K)) if unit[i] != unit[j])


@pytest.mark.parametrize("case", CASES)
def test_a_fixed_kernel_has_the_statistics_of_full_enumeration(case):
    x, y = _rows(case)
    result = two_sample_test(x, y, method="median", alpha=0.2, n_permutations=2000, rng=0, **CASES[case][2])
    labelings = _labelings(case)
    family = Family("gaussian")
    K = ScaledKernel(family, family.median_bandwidth(np.vstack([x, y]))).gram(np.vstack([x, y]))
    expected = np.array([_brute_force(K, case, labels) for labels in labelings])
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
    result = two_sample_test(x, y, **settings, **CASES[case][2])
    labelings = _labelings(case)
    assert result.exhaustive
    assert len(result.null_distribution) == len(labelings) - 1
    some = np.random.default_rng(0).permutation(len(labelings) - 1)[:12] + 1
    expected = []
    for labels in (labelings[0], *(labelings[b] for b in some)):
        a, b, given = _relabelled(case, labels)
        expected.append(two_sample_test(a, b, **settings, **given).statistic)
    close = 1e-4 * np.abs(result.null_distribution).max()
    assert expected[0] == pytest.approx(result.statistic, abs=close)
    for value in expected[1:]:
        assert np.abs(result.null_distribution - value).min() <= close
