"""The statistic against its definition, brute force and the authors' numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpmmd.statistics import mmd
from helpers import brute_force_mmd2, golden_pairs


def blocks(K, m):
    return K[:m, :m], K[m:, m:], K[:m, m:]


def random_kernel(rng, size, power=1.5):
    z = rng.normal(size=(size, 3))
    return np.exp(-(np.linalg.norm(z[:, None] - z[None], axis=2) ** power)) * 2.5, z


@pytest.mark.parametrize(("m", "n"), [(2, 2), (5, 5), (3, 9), (12, 4)])
def test_unbiased_mmd_equals_double_sums(m, n):
    rng = np.random.default_rng(m * 100 + n)
    x, y = rng.normal(size=(m, 4)), rng.normal(1, 2, size=(n, 4))

    def k(a, b):
        return np.exp(-np.linalg.norm(a - b) / 1.7)

    pool = np.vstack([x, y])
    K = np.array([[k(a, b) for b in pool] for a in pool])
    assert mmd.unbiased_mmd2(*blocks(K, m)) == pytest.approx(brute_force_mmd2(k, x, y), rel=1e-12)


@given(st.integers(2, 8), st.integers(2, 8), st.integers(0, 10_000))
def test_u_centring_leaves_every_relabeling_unchanged(m, n, seed):
    rng = np.random.default_rng(seed)
    K, _ = random_kernel(rng, m + n)
    centred = mmd.u_centre(K)
    np.testing.assert_allclose(centred.sum(axis=1), 0, atol=1e-12)
    for _ in range(3):
        order = rng.permutation(m + n)
        w = np.zeros(m + n)
        w[order[:m]] = 1
        permuted = K[np.ix_(np.r_[order[:m], order[m:]], np.r_[order[:m], order[m:]])]
        direct = mmd.unbiased_mmd2(*blocks(permuted, m))
        assert mmd.quadratic_constant(m, n) * w @ centred @ w == pytest.approx(direct, abs=1e-12)


@pytest.mark.parametrize("m", [2, 5, 9])
def test_block_sums_agree_with_double_sums_for_any_diagonal(m):
    rng = np.random.default_rng(m)
    rows = rng.normal(size=(11, 3))
    K = rows @ rows.T + 1  # no unit diagonal
    labels = np.array([rng.permutation(11) < m for _ in range(4)])
    wanted = [brute_force_mmd2(lambda a, b: a @ b + 1, rows[w], rows[~w]) for w in labels]
    assert mmd.labelled_mmd2(K, labels) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_u_centring_copies_unless_told():
    K, _ = random_kernel(np.random.default_rng(0), 6)
    before = K.copy()
    mmd.u_centre(K)
    np.testing.assert_array_equal(K, before)


def test_paired_variance_equals_loops():
    rng = np.random.default_rng(3)
    n = 7
    K, _ = random_kernel(rng, 2 * n)
    H = [[K[i, j] + K[n + i, n + j] - K[i, n + j] - K[j, n + i] for j in range(n)] for i in range(n)]
    total = sum(sum(row) for row in H)
    expected = 4 * (sum(sum(row) ** 2 for row in H) / n**3 - (total / n**2) ** 2)
    assert mmd.paired_variance(*blocks(K, n)) == pytest.approx(expected, rel=1e-10)


def test_unequal_variance_predicts_the_spread_of_the_statistic():
    # Monte Carlo oracle: the variance of MMD2 over fresh samples, effective size 2mn/(m+n).
    m, n, repetitions = 60, 240, 1500
    rng = np.random.default_rng(5)
    values, predicted = [], []
    for _ in range(repetitions):
        pool = np.r_[rng.normal(size=m), rng.normal(1.2, 1.5, size=n)]
        K = np.exp(-0.5 * np.subtract.outer(pool, pool) ** 2)
        values.append(mmd.unbiased_mmd2(*blocks(K, m)))
        predicted.append(mmd.unpaired_variance(*blocks(K, m)))
    effective = 2 * m * n / (m + n)
    # The standard error of a variance over 1500 draws is about 4%; first-order theory leaves out terms of 1/m.
    assert np.mean(predicted) == pytest.approx(np.var(values) * effective, rel=0.15)


def test_variance_estimators_agree_on_average_for_equal_sizes():
    rng = np.random.default_rng(6)
    both = []
    for _ in range(300):
        pool = np.r_[rng.normal(size=50), rng.normal(1, 1, size=50)]
        K = np.exp(-0.5 * np.subtract.outer(pool, pool) ** 2)
        both.append([mmd.paired_variance(*blocks(K, 50)), mmd.unpaired_variance(*blocks(K, 50))])
    paired, unpaired = np.mean(both, axis=0)
    assert paired == pytest.approx(unpaired, rel=0.05)


def test_witness_is_positive_where_x_lives():
    x, y = np.zeros((4, 1)), np.full((5, 1), 3.0)
    z = np.array([[0.0], [3.0]])

    def k(a, b):
        return np.exp(-((a - b.T) ** 2))

    values = mmd.witness(k(z, x), k(z, y))
    assert values[0] > 0 > values[1]
    np.testing.assert_allclose(mmd.witness(k(z, y), k(z, x)), -values)


@pytest.mark.parametrize("name", [n for n, (_, _, a) in golden_pairs().items() if "liu" in a])
def test_liu_golden_values(name):
    x, y, answer = golden_pairs()[name]
    liu = answer["liu"]
    pool = np.vstack([x, y])
    K = np.exp(-((pool[:, None] - pool[None]) ** 2).sum(axis=2) / liu["s"])
    m = len(x)
    assert mmd.paired_mmd2(*blocks(K, m)) == pytest.approx(liu["mmd2"], rel=1e-9)
    assert mmd.paired_variance(*blocks(K, m)) == pytest.approx(liu["variance"], rel=1e-9)
