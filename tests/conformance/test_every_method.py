"""One contract over every method in the table: valid, reproducible, invariant, indestructible."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cpmmd import methods, registry, two_sample_test
from helpers import NULLS, assert_level, light, null_pvalues

UNSPLIT = ["median", "mmdfuse"]  # MMDAgg pairs rows and cp-full bins them, so their order counts
RNG = np.random.default_rng(42)
X, Y = RNG.normal(size=(30, 4)), RNG.normal(0.5, 1.3, size=(36, 4))

every_method = pytest.mark.parametrize("method", methods())


@every_method
def test_same_seed_same_answer_whatever_the_threads(method):
    reference = two_sample_test(X, Y, method=method, rng=5)
    with threadpool_limits(1):
        alone = two_sample_test(X, Y, method=method, rng=5)
    both = two_sample_test(X, Y, method=method, rng=5, n_jobs=2)
    assert reference.pvalue == alone.pvalue == both.pvalue
    assert 1 / (reference.n_permutations + 1) <= reference.pvalue <= 1


@every_method
@pytest.mark.parametrize("null", NULLS)
def test_level_holds(method, null):
    # 400 null repetitions; at alpha = .05 the bound is 20 + 3 * 4.36 = 33 rejections.
    if light(method) is not method and null not in ("discrete", "unequal"):
        pytest.skip("trained methods: the other nulls are in make test-statistical")
    assert_level(null_pvalues(light(method), NULLS[null], 400, seed=11))


def lattice_null(rng):
    # One column and twenty rows: fewer rows in more columns let a search choose kernels so narrow that relabelings tie.
    return rng.normal(size=(24, 1)), rng.normal(size=(20, 1))


def check_uniform(method, repetitions):
    """With 19 relabelings an exact p is k/20 with probability 1/20: at every k/20 neither more nor fewer rejections than four
    binomial standard errors allow (of 400 repetitions at .2: 32; a test off by 8 points fails, in the long run by 3).
    """
    pvalues = null_pvalues(light(method), lattice_null, repetitions, seed=31, n_permutations=19)
    for k in range(1, 20):
        reached, error = np.count_nonzero(pvalues <= k / 20 + 1e-9), np.sqrt(repetitions * k / 20 * (1 - k / 20))
        assert abs(reached - repetitions * k / 20) <= 4 * error, f"{reached} of {repetitions} at {k}/20"


EXACT = [name for name, method in registry.named_methods().items() if method.make().exact]


@pytest.mark.parametrize("method", [method for method in EXACT if light(method) is method])
def test_p_is_uniform_from_both_sides(method):
    check_uniform(method, 400)


@pytest.mark.statistical
@pytest.mark.parametrize("method", EXACT)
def test_p_is_uniform_from_both_sides_over_thousands(method):
    check_uniform(method, 4000 if light(method) is method else 1000)


DEGENERATE = {
    "all identical": (np.ones((12, 3)), np.ones((15, 3))),
    "constant column": (np.c_[X[:12], np.ones(12)], np.c_[Y[:12], np.ones(12)]),
    "duplicated rows": (np.repeat(X[:4], 5, axis=0), np.repeat(X[4:8], 5, axis=0)),
    "one column": (X[:, 0], Y[:, 0]),
    "tiny": (X * 1e-12, Y * 1e-12),
    "huge": (X * 1e12, Y * 1e12),
    "scales side by side": (X * np.array([1e-12, 1, 1e6, 1e12]), Y * np.array([1e-12, 1, 1e6, 1e12])),
    "wide": (RNG.normal(size=(10, 80)), RNG.normal(size=(9, 80))),
    "float32": (X.astype(np.float32), Y.astype(np.float32)),
    "integers": (RNG.integers(0, 9, (20, 3)), RNG.integers(0, 9, (20, 3))),
    "smallest": (X[:4], Y[:4]),
}


@every_method
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.filterwarnings("ignore::cpmmd.errors.DegenerateKernelWarning")
def test_awkward_data_gives_a_valid_result(method, case):
    x, y = DEGENERATE[case]
    result = two_sample_test(x, y, method=light(method), rng=0, n_permutations=99)
    assert 0 < result.pvalue <= 1
    assert np.isfinite(result.statistic)
    if case == "all identical":
        assert result.pvalue == 1


@every_method
def test_swapped_samples_with_obvious_difference_are_found(method):
    far = Y[:, :] + 8
    assert two_sample_test(X, far, method=method, rng=0).reject
    assert two_sample_test(far, X, method=method, rng=0).reject


@pytest.mark.parametrize("method", UNSPLIT)
def test_statistic_of_unsplit_tests_ignores_order_and_naming(method):
    reference = two_sample_test(X, Y, method=method, rng=0).statistic
    order_x, order_y = RNG.permutation(len(X)), RNG.permutation(len(Y))
    assert two_sample_test(Y, X, method=method, rng=0).statistic == pytest.approx(reference, rel=1e-9)
    assert two_sample_test(X[order_x], Y[order_y], method=method, rng=0).statistic == pytest.approx(reference, rel=1e-9)


@every_method
def test_labels_do_not_change_the_input(method):
    before = X.copy(), Y.copy()
    two_sample_test(X, Y, method=method, rng=0, n_permutations=19)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])
