"""Questions beyond two samples: HSIC over re-pairings, and k labels, against naive sums and full enumeration."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpmmd import CpmmdError, independence_test
from cpmmd.draws.labels import LabelCodes, Relabelings
from cpmmd.draws.layout import Layout
from cpmmd.draws.pairings import Pairings
from cpmmd.evidence import rank
from cpmmd.statistics.hsic import HSIC
from cpmmd.statistics.k_sample import KSampleMMD
from helpers import assert_level


def gaussian(rows):
    """The kernel matrix at the median distance, from loops."""
    apart = [[math.dist(a, b) for b in rows] for a in rows]
    median = np.median([apart[i][j] for i in range(len(rows)) for j in range(i)])
    return np.array([[math.exp(-(d**2) / (2 * median**2)) for d in some] for some in apart])


def naive_hsic(K, L, pairing):
    """HSIC by its definition: V-statistics of four double and triple sums."""
    n, p = len(K), pairing
    both = sum(K[i, j] * L[p[i], p[j]] for i in range(n) for j in range(n)) / n**2
    apart = sum(K[i, j] for i in range(n) for j in range(n)) * sum(L[i, j] for i in range(n) for j in range(n)) / n**4
    mixed = sum(K[i, j] * L[p[i], p[q]] for i in range(n) for j in range(n) for q in range(n)) / n**3
    return both + apart - 2 * mixed


def test_hsic_is_its_double_sums_under_any_pairing():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(11, 2)), rng.normal(size=(11, 3))
    K, L = gaussian(x), gaussian(y)
    pairings = Pairings.draw(11, 5, rng)
    expected = [naive_hsic(K, L, one) for one in pairings.partners]
    np.testing.assert_allclose(HSIC.of(K, L).values(pairings), expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_six_rows_are_ranked_among_all_pairings(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, 1))
    y = x**2 + 0.1 * rng.normal(size=(6, 1))
    K, L = gaussian(x), gaussian(y)
    values = np.array([naive_hsic(K, L, one) for one in permutations(range(6))])
    result = independence_test(x, y, method="hsic-median", rng=0)
    assert result.exhaustive
    assert len(result.null_distribution) == math.factorial(6) - 1
    assert result.statistic == pytest.approx(values[0], abs=1e-10)
    np.testing.assert_allclose(np.sort([result.statistic, *result.null_distribution]), np.sort(values), atol=1e-10)
    assert result.pvalue == np.mean(values >= values[0] - 1e-12)
    assert result.reject == (result.pvalue <= 0.05)


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_ties_of_discrete_pairs_are_counted(seed):
    """Binary tables: HSIC is a function of the number of agreements, whose distribution is known."""
    rng = np.random.default_rng(seed)
    x, y = (np.array([0, 0, 0, 1, 1, 1])[rng.permutation(6)] for _ in range(2))
    ones = [sum(x[i] * y[p[i]] for i in range(6)) for p in permutations(range(6))]
    far = np.abs(np.array(ones) - 1.5)
    K, L = (np.exp(-np.abs(np.subtract.outer(z, z)) / 1.7) for z in (x, y))
    ranking = rank(HSIC.of(K, L), Pairings.draw(6, 999, rng))
    assert ranking.pvalue == pytest.approx(np.mean(far >= far[0]))


def test_many_rows_are_re_paired_at_random():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 1))
    dependent, apart = independence_test(x, np.cos(3 * x), rng=0), independence_test(x, rng.normal(size=(80, 1)), rng=0)
    assert (dependent.pvalue, dependent.exhaustive, len(dependent.null_distribution)) == (0.001, False, 999)
    assert apart.pvalue > 0.01
    with pytest.raises(CpmmdError, match="one row for each observation"):
        independence_test(x, x[1:])


def test_pairings_stay_in_their_strata():
    strata = np.array([0, 1, 0, 1, 1])
    every = Pairings.draw(5, 999, np.random.default_rng(0), strata=strata)
    expected = {p for p in permutations(range(5)) if all(strata[i] == strata[p[i]] for i in range(5))}
    assert (every.exhaustive, every.partners[0].tolist()) == (True, [0, 1, 2, 3, 4])
    assert {tuple(p) for p in every.partners} == expected
    assert len(every) == len(expected) == 12
    drawn = Pairings.draw(5, 11, np.random.default_rng(0), strata=strata)
    assert not drawn.exhaustive
    assert {tuple(p) for p in drawn.partners} <= expected


@pytest.mark.statistical
def test_independence_holds_its_level():
    data = np.random.default_rng(3)
    pvalues = [
        independence_test(data.exponential(size=(12, 1)), data.integers(0, 3, size=(12, 1)), n_permutations=99, rng=s).pvalue
        for s in range(1000)
    ]
    assert_level(np.array(pvalues))


# --- k labels ---------------------------------------------------------------------------------------------------------


def naive_k_sample(K, codes):
    """Sum over samples of n |mu_a - mu|^2, each norm from double sums."""
    n, everyone, total = len(K), range(len(K)), 0.0
    for label in set(codes):
        own = [i for i in everyone if codes[i] == label]
        within = sum(K[i, j] for i in own for j in own) / len(own) ** 2
        across = sum(K[i, j] for i in own for j in everyone) / (len(own) * n)
        total += len(own) * (within - 2 * across + K.sum() / n**2)
    return total


def test_three_samples_are_ranked_among_all_labelings():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(7, 2)) + np.array([0, 0, 0, 1, 1, 2, 2])[:, None]
    K, codes = gaussian(rows), (0, 0, 0, 1, 1, 2, 2)
    every = sorted(set(permutations(codes)))  # 7! / (3! 2! 2!), each once
    draws = Layout.of_rows(3, 2, 2).draw_codes(999, rng)
    assert (draws.exhaustive, len(draws), len(every)) == (True, 210, 210)
    assert draws.codes[0].tolist() == list(codes)
    assert sorted(map(tuple, draws.codes.tolist())) == every
    expected = np.array([naive_k_sample(K, one) for one in draws.codes.tolist()])
    ranking = rank(KSampleMMD.of(K), draws)
    np.testing.assert_allclose([ranking.statistic, *ranking.null_distribution], expected, atol=1e-10)
    assert ranking.rank == np.sum(expected >= expected[0] - 1e-12)
    assert ranking.pvalue == ranking.rank / 210


def test_k_labels_stay_in_their_strata():
    observed, strata = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 0, 0, 1, 1, 1])
    draws = LabelCodes.draw(observed, 999, np.random.default_rng(0), strata=strata)
    expected = {one for one in set(permutations(observed.tolist())) if sorted(one[:3]) == [0, 1, 2]}
    assert {tuple(one) for one in draws.codes.tolist()} == expected
    assert (len(draws), draws.codes[0].tolist()) == (18, observed.tolist())


def test_random_k_labels_are_uniform_over_all_labelings():
    observed = np.array([1, 0, 2, 0])
    draws = LabelCodes.draw(observed, 12_000, np.random.default_rng(0), enumerate_few=False)
    assert not draws.exhaustive
    assert draws.codes[0].tolist() == observed.tolist()
    seen = Counter(map(tuple, draws.codes[1:].tolist()))
    assert set(seen) == set(permutations(observed.tolist()))
    # Each of 12 labelings is seen 1000 times on average; six standard deviations of a binomial count.
    assert max(abs(times - 1000) for times in seen.values()) < 6 * math.sqrt(12_000 / 12 * 11 / 12)


def test_two_labels_are_the_same_labelings_in_codes_and_in_bits():
    codes = Layout.of_rows(3, 4).draw_codes(999, np.random.default_rng(0))
    bits = Relabelings.draw(7, 3, 999, np.random.default_rng(0)).array(bool)
    np.testing.assert_array_equal(codes.codes == 0, bits)
    drawn = LabelCodes.draw(np.repeat([0, 1], [30, 40]), 50, np.random.default_rng(1)).codes == 0
    np.testing.assert_array_equal(drawn, Relabelings.draw(70, 30, 50, np.random.default_rng(1)).array(bool))
