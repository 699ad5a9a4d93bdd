"""The dense engine against enumeration and naive loops."""

from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpmmd.draws.labels import Relabelings, draw_labels
from cpmmd.draws.layout import Layout
from cpmmd.engines.dense import rank_matrix
from cpmmd.evidence import Ranking
from cpmmd.statistics import mmd
from cpmmd.statistics.forms import quadratic_forms


def gram(rng, size, d=2):
    z = rng.normal(size=(size, d))
    return np.exp(-((z[:, None] - z[None]) ** 2).sum(axis=2))


def rank(K, m, count, rng, *, limit=None):
    return rank_matrix(K, Layout.of_rows(m, len(K) - m).draw(count, rng, limit))


def statistic(K, chosen):
    x = np.array(sorted(chosen))
    y = np.setdiff1d(np.arange(len(K)), x)
    return mmd.unbiased_mmd2(K[np.ix_(x, x)], K[np.ix_(y, y)], K[np.ix_(x, y)])


@pytest.mark.parametrize(("m", "n"), [(2, 2), (3, 3), (2, 5), (4, 4)])
def test_small_samples_are_enumerated_exactly(m, n):
    K = gram(np.random.default_rng(m + 10 * n), m + n)
    values = [statistic(K, c) for c in combinations(range(m + n), m)]
    observed = statistic(K, range(m))
    expected = np.mean([v >= observed - 1e-12 for v in values])
    result = rank(K, m, 999, np.random.default_rng(0))
    assert result.exhaustive
    assert len(result.null_distribution) == len(values) - 1  # the observed labeling is counted, not listed
    assert result.pvalue == pytest.approx(expected, abs=1e-15)
    np.testing.assert_allclose(np.sort([result.statistic, *result.null_distribution]), np.sort(values), atol=1e-12)


def test_random_permutations_approach_full_enumeration():
    K = gram(np.random.default_rng(8), 12)
    exact = rank(K, 6, 10**6, np.random.default_rng(0)).pvalue
    # 900 of 924 relabelings are too few to enumerate, so these are random draws.
    estimates = [rank(K, 6, 900, np.random.default_rng(s)).pvalue for s in range(20)]
    error = np.sqrt(exact * (1 - exact) / (900 * 20))
    assert abs(np.mean(estimates) - exact) < 4 * error + 1 / 900


@pytest.mark.parametrize("size", [20, 700])
def test_the_answer_does_not_depend_on_chunks(size):
    K = gram(np.random.default_rng(1), size)
    answers = [rank(K, size // 3, 199, np.random.default_rng(4), limit=limit) for limit in (80_000, 300_000, 10**9, None)]
    assert len({a.pvalue for a in answers}) == 1
    for a in answers[1:]:
        np.testing.assert_allclose(a.null_distribution, answers[0].null_distribution, rtol=1e-9, atol=1e-14)


def test_triangular_panels_equal_the_full_product():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(700, 700))
    A = A + A.T
    labels = draw_labels(700, 200, 9, rng)
    W = labels.T.astype(float)
    np.testing.assert_allclose(quadratic_forms(A, W.T.copy()), np.einsum("ib,ib->b", W, A @ W), rtol=1e-10)


def test_p_is_never_zero_and_ties_count_against_rejection():
    def pvalue(observed, tolerance=0.0):
        return Ranking.of(np.r_[observed, np.zeros(99)], tolerance=tolerance, exhaustive=False).pvalue

    assert pvalue(5.0) == pytest.approx(1 / 100)
    assert pvalue(0.0) == 1.0
    assert pvalue(1e-18, 1e-15) == 1.0


@pytest.mark.parametrize("count", [252, 1000])
def test_all_relabelings_are_used_where_they_are_no_more_than_asked_for(count):
    drawn = Relabelings.draw(10, 5, count, np.random.default_rng(0))
    labels = drawn.array(bool)
    assert drawn.exhaustive
    assert {tuple(row) for row in labels} == {tuple(i in chosen for i in range(10)) for chosen in combinations(range(10), 5)}
    assert labels[0].tolist() == [True] * 5 + [False] * 5
    assert not Relabelings.draw(10, 5, 251, np.random.default_rng(0)).exhaustive


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_exact_ties_of_discrete_data_survive_rounding(seed):
    # Permuting equal rows gives the same statistic; rational arithmetic is the oracle.
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, size=8)
    K = np.exp(-np.abs(np.subtract.outer(z, z)) / 3.7)
    result = rank(K, 4, 999, rng)
    ones = np.array([z[list(c)].sum() for c in combinations(range(8), 4)])
    # MMD2 is a strictly increasing function of the imbalance |sum(x) - sum(z)/2| on binary data.
    extreme = np.abs(ones - z.sum() / 2)
    assert result.pvalue == pytest.approx(np.mean(extreme >= extreme[0]))


def sharp(rng, d=100, rows=50, shift=0.5):
    """A Gaussian kernel whose bandwidth is a fourteenth of the distances: e^-100 beside a diagonal of ones."""
    z = np.vstack([rng.normal(size=(rows, d)), rng.normal(shift, 1, size=(rows, d))])
    return ((z[:, None] - z[None]) ** 2).sum(axis=2) / 2


def test_a_kernel_of_tiny_values_is_ranked_as_one_of_large_values():
    # The unbiased MMD does not see the diagonal, and ranks do not see a factor: the oracle is the same matrix times e^c.
    rejections = 0
    for seed in range(40):
        exponents = sharp(np.random.default_rng(seed))
        apart = exponents[~np.eye(len(exponents), dtype=bool)]
        tiny, large = np.exp(-exponents), np.exp(apart.min() - exponents)
        np.fill_diagonal(large, 0.0)
        assert tiny[~np.eye(len(tiny), dtype=bool)].max() < 1e-20
        result, expected = (rank(K, 50, 199, np.random.default_rng(seed)) for K in (tiny, large))
        assert result.pvalue == expected.pvalue
        assert result.ties == 1
        rejections += result.pvalue <= 0.05
    assert rejections >= 20  # it was 0: eps times the diagonal's mean counted every relabeling as a tie


def lattice_pvalue(z, m, per_unit):
    """Return p of exp(-per_unit |z - z'|^2) on distinct integers, by enumeration.

    Two relabelings are equal where, at each distance, the weights of its pairs add up to the same rational number; others are
    compared in 80 digits.
    """
    size = len(z)

    def weights(chosen):
        inside, n = set(chosen), size - m
        total = Counter()
        for i, j in combinations(range(size), 2):
            both = (i in inside) + (j in inside)
            share = Fraction(2, m * (m - 1)) if both == 2 else Fraction(-2, m * n) if both else Fraction(2, n * (n - 1))
            total[int(z[i] - z[j]) ** 2] += share
        return total

    def value(weighed):
        with localcontext(prec=80):
            terms = (
                Decimal(w.numerator) / Decimal(w.denominator) * (-Decimal(per_unit) * apart).exp() for apart, w in weighed.items()
            )
            return sum(terms, Decimal(0))

    every = [weights(chosen) for chosen in combinations(range(size), m)]
    observed = value(every[0])
    return np.mean([one == every[0] or value(one) > observed for one in every])


@pytest.mark.parametrize("own", [0, 20, 300])  # of each row's own coordinate: values of e^-300 beside a diagonal of ones
@pytest.mark.parametrize("per_unit", [0.01, 0.3])
def test_ties_of_a_lattice_stay_ties_under_a_sharp_kernel(per_unit, own):
    rng = np.random.default_rng(5)
    for _ in range(3):
        z = rng.permutation(8)
        expected = lattice_pvalue(z, 4, per_unit)
        for scale in (1.0, 0.1, 1 / 3):  # distances that are no whole numbers any more, with rounding of their own
            K = np.exp(-own - per_unit * ((scale * z[:, None] - scale * z) / scale) ** 2)
            np.fill_diagonal(K, 1.0)
            result = rank(K, 4, 999, rng)
            assert result.pvalue == pytest.approx(expected, abs=1e-12)
            assert result.ties > 1  # the samples exchanged, the lattice reflected


def test_constant_kernel_gives_p_one():
    result = rank(np.ones((40, 40)), 15, 99, np.random.default_rng(0))
    assert result.pvalue == 1.0


def test_labels_mark_m_rows_and_a_longer_draw_starts_with_the_shorter():
    short = draw_labels(30, 7, 5, np.random.default_rng(3))
    long = draw_labels(30, 7, 50, np.random.default_rng(3))
    assert (long.sum(axis=1) == 7).all()
    np.testing.assert_array_equal(long[:5], short)


@pytest.mark.parametrize("nbytes", [1, 2**16, 2**26])
def test_packed_relabelings_come_back_as_they_were_drawn(nbytes):
    drawn = Relabelings.draw(37, 11, 1500, np.random.default_rng(3), limit=2**20)
    labels = np.concatenate(list(drawn.blocks(bool, nbytes)))
    np.testing.assert_array_equal(labels[0], np.arange(37) < 11)
    np.testing.assert_array_equal(labels[1:], draw_labels(37, 11, 1500, np.random.default_rng(3)))


class Coarse:
    """A generator whose numbers are often equal."""

    def random(self, shape):
        return np.random.default_rng(3).integers(0, 9, size=shape) / 9


def test_relabelings_mark_exactly_m_rows_even_where_keys_are_equal():
    assert (draw_labels(30, 7, 50, Coarse()).sum(axis=1) == 7).all()


def test_relabelings_within_strata_are_uniform_and_a_longer_draw_starts_with_the_shorter():
    strata = np.array([0, 0, 1, 2, 0, 0, 1, 1, 2, 2])  # X first: 2, 1, 1 of 4, 3, 3 units
    labels = draw_labels(10, 4, 6000, np.random.default_rng(0), strata)
    for stratum, marked in ((0, 2), (1, 1), (2, 1)):
        assert (labels[:, strata == stratum].sum(axis=1) == marked).all()
    ways, counts = np.unique(labels, axis=0, return_counts=True)
    assert len(ways) == 6 * 3 * 3
    assert np.square(counts - 6000 / 54).sum() / (6000 / 54) < 93  # chi-square of 53 degrees, p = .0005
    np.testing.assert_array_equal(labels[:5], draw_labels(10, 4, 5, np.random.default_rng(0), strata))
