"""The test for a kernel of one's own: the same p as enumeration and as a test of rows, and sentences for bad matrices."""

from itertools import combinations

import numpy as np
import pytest

from cpmmd import Bandwidth, kernel_matrix_test, two_sample_test
from cpmmd.errors import InputError
from cpmmd.evidence import tail_scores
from cpmmd.statistics import mmd


def gram(size, seed=0):
    return Bandwidth().gram(1.0, np.random.default_rng(seed).normal(size=(size, 2)))


def test_p_is_that_of_every_relabeling():
    K, m = gram(9), 4
    values = []
    for chosen in combinations(range(9), m):
        x, y = np.array(chosen), np.setdiff1d(np.arange(9), chosen)
        values.append(mmd.unbiased_mmd2(K[np.ix_(x, x)], K[np.ix_(y, y)], K[np.ix_(x, y)]))
    result = kernel_matrix_test(K, m)
    assert result.exhaustive
    assert result.statistic == pytest.approx(values[0])
    assert result.pvalue == np.mean(np.array(values) >= values[0] - 1e-12)


def test_it_agrees_with_the_test_of_rows():
    data = np.random.default_rng(3)
    x, y = data.normal(size=(60, 2)), data.normal(0.4, 1, size=(70, 2))
    rows = two_sample_test(x, y, method="median", rng=0, n_permutations=4999)
    own = kernel_matrix_test(rows.kernel.gram(np.vstack([x, y])), 60, rng=0, n_permutations=4999)
    assert own.statistic == pytest.approx(rows.statistic)
    assert own.pvalue == pytest.approx(rows.pvalue, abs=0.02)  # other draws: 4 standard errors of a difference near p = .05


def test_level():
    # 400 repetitions at level .05: 33 rejections is the 99.9% point of Binomial(400, .05).
    rejections = sum(kernel_matrix_test(gram(40, seed), 15, n_permutations=99, rng=seed).pvalue <= 0.05 for seed in range(400))
    assert rejections <= 33


@pytest.mark.parametrize(
    ("matrix", "m", "says"),
    [
        (np.ones((3, 4)), 2, r"square.*\(3, 4\)"),
        (np.ones((3, 3)), 2, "at least 4 rows"),
        (np.full((5, 5), np.nan), 2, "finite"),
        (np.triu(np.ones((6, 6))), 3, "symmetric.*differ by up to 1"),
        ([["a"] * 4] * 4, 2, "numbers"),
        (np.eye(6), 5, "from 2 to 4"),
        (np.eye(6), 1, "from 2 to 4"),
    ],
)
def test_bad_matrices_get_a_sentence(matrix, m, says):
    with pytest.raises(InputError, match=says):
        kernel_matrix_test(matrix, m)


def test_one_entry_out_of_place_is_seen():
    K = gram(50)
    K[7, 31] += 1e-5
    with pytest.raises(InputError, match="symmetric"):
        kernel_matrix_test(K, 20)


def test_pairs_under_a_kernel_of_tiny_values_are_ranked_as_under_one_of_large_values():
    # As for free relabelings: neither the diagonal nor a factor is in the rank.
    rng = np.random.default_rng(0)
    for _ in range(10):
        z = np.vstack([rng.normal(size=(30, 100)), rng.normal(0.3, 1, size=(30, 100))])
        exponents = ((z[:, None] - z[None]) ** 2).sum(axis=2) / 2
        off = ~np.eye(60, dtype=bool)
        tiny, large = np.exp(-exponents), np.exp(exponents[off].min() - exponents)
        np.fill_diagonal(large, 1.0)
        pairs = (np.arange(30), np.arange(30))
        results = [kernel_matrix_test(K, 30, pairs=pairs, rng=1, n_permutations=199) for K in (tiny, large)]
        assert results[0].pvalue == results[1].pvalue < 1


# --- spectral parameters ----------------------------------------------------------------------------------------------

GAMMAS = (1e-1, 1e-3)


def test_spectral_statistics_are_ranked_among_all_relabelings():
    K, m = gram(8, 4), 4
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    variances, vectors = np.linalg.eigh(centred)
    variances, vectors = variances[1:], vectors[:, 1:]  # the constant one has none
    weights = [np.ones(7), *((1 + g) * variances[-1] / (variances + g * variances[-1]) for g in GAMMAS)]
    values = []
    for chosen in combinations(range(8), m):
        x, y = np.array(chosen), np.setdiff1d(np.arange(8), chosen)
        row = []
        for weight in weights:
            own = (vectors * (weight * variances)) @ vectors.T
            row.append(mmd.unbiased_mmd2(own[np.ix_(x, x)], own[np.ix_(y, y)], own[np.ix_(x, y)]))
        values.append(row)
    scores = tail_scores(np.array(values).T).max(axis=0)
    result = kernel_matrix_test(K, m, gammas=GAMMAS)
    assert result.exhaustive
    assert result.statistic == pytest.approx(scores[0], rel=1e-6)
    assert result.pvalue == np.mean(scores >= scores[0] - 1e-6)


def test_spectral_parameters_find_what_the_kernel_hides():
    rng = np.random.default_rng(0)
    modes = 3.0 * rng.integers(0, 2, 300)
    rows = 0.1 * rng.normal(size=(300, 2)) + np.column_stack([modes + 0.08 * (np.arange(300) >= 150), np.zeros(300)])
    K = Bandwidth().gram(2.0, rows)
    assert kernel_matrix_test(K, 150, rng=0).pvalue > 0.05
    found = kernel_matrix_test(K, 150, gammas=(1e-1, 1e-2, 1e-3, 1e-4), rng=0)
    assert found.pvalue == 0.001
    assert "gammas=(0.1, 0.01, 0.001, 0.0001)" in found.call
    assert "hagrass2024spectral" in found.citations


@pytest.mark.parametrize("design", [{}, {"pairs": True}, {"strata": True}])
def test_level_of_spectral_parameters(design):
    # 400 repetitions at level .05: 33 rejections is the 99.9% point of Binomial(400, .05).
    names = {"pairs": (np.arange(20),) * 2, "strata": (np.arange(20) % 2,) * 2}
    given = {name: names[name] for name in design}
    tests = (kernel_matrix_test(gram(40, seed), 20, gammas=GAMMAS, n_permutations=99, rng=seed, **given) for seed in range(400))
    assert sum(one.pvalue <= 0.05 for one in tests) <= 33


def test_gammas_that_are_none_are_refused():
    with pytest.raises(InputError, match="gammas"):
        kernel_matrix_test(gram(10), 5, gammas=(0.0,))
