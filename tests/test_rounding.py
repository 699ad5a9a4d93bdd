"""Where a statistic is nothing but rounding: rows that are all equal but a few, one row very far out, kernels without a root."""

import numpy as np
import pytest

from cpmmd import FullSampleTest, KernelClass, Polynomial, SplitTest, kernel_matrix_test, two_sample_test
from cpmmd.draws.layout import Layout
from cpmmd.engines.directions import whitening
from cpmmd.kernels.base import Kernel
from helpers import assert_level, null_pvalues

SIZES = {"small": (60, 70), "equal": (300, 300), "tiles": (500, 700), "more tiles": (1000, 1100)}


def all_equal_but(odd, m, n, seed, columns=2):
    rng = np.random.default_rng([seed, m, n])
    rows = np.full((m + n, columns), 0.1)
    rows[rng.choice(m + n, odd, replace=False)] = 1.0
    return rows[:m], rows[m:]


@pytest.mark.parametrize("method", ["cp-full", "median", "energy", "mmdagg", "mmdfuse"])
@pytest.mark.parametrize("size", SIZES)
def test_one_odd_row_is_no_evidence(method, size):
    # Whoever is called X, the unbiased squared MMD is the same, so every relabeling ties and p is 1. Some of these had p = .001.
    for seed in range(3):
        assert two_sample_test(*all_equal_but(1, *SIZES[size], seed), method=method, rng=seed, n_permutations=99).pvalue == 1


@pytest.mark.parametrize("method", ["cp-full", "median"])
def test_one_odd_row_of_many_is_no_evidence(method):
    for seed in range(3):
        assert two_sample_test(*all_equal_but(1, 2300, 2400, seed), method=method, rng=seed, n_permutations=99).pvalue > 0.05


def rare_rows(rng):
    return ((rng.random((500, 1)) < 0.002).astype(float), (rng.random((700, 1)) < 0.002).astype(float))


def one_far_row(rng):
    rows = rng.normal(size=(1200, 3))
    rows[rng.integers(1200)] = 1e30
    return rows[:500], rows[500:]


@pytest.mark.parametrize("null", [rare_rows, one_far_row])
@pytest.mark.parametrize("repetitions", [100, pytest.param(2000, marks=pytest.mark.statistical)])
def test_level_holds_where_few_rows_are_unlike_all_others(null, repetitions):
    # At alpha = .05 the bound is 100 + 3 * 9.75 = 129 of 2000, 11 of 100.
    assert_level(null_pvalues("cp-full", null, repetitions, seed=61))


@pytest.mark.parametrize("design", [{"strata": True}, {"pairs": True}, {"groups": True}])
def test_one_odd_row_in_a_design_is_no_evidence(design):
    names = {"strata": np.arange(300) % 3, "pairs": np.arange(300), "groups": np.arange(300) // 2}
    given = {name: ([f"x{one}" for one in names[name]], [f"y{one}" for one in names[name]]) for name in design}
    if "groups" not in design:
        given = {name: (names[name], names[name]) for name in design}
    for seed in range(3):
        result = two_sample_test(*all_equal_but(1, 300, 300, seed), rng=seed, n_permutations=99, **given)
        assert result.pvalue > 0.4  # a pair's sign is one of two, all others tie


@pytest.mark.parametrize(("method", "pairs"), [("cp-full", 1000), ("median", 1000), ("mmdagg", 1000), ("median", 2500)])
def test_rounding_does_not_hide_the_difference_of_pairs(method, pairs):
    # Weights of pairs are in their differences: what rounding can do is measured after them, or it would drown everything.
    rng = np.random.default_rng(0)
    before = 3 * rng.normal(size=(pairs, 2))
    x, y = before + rng.normal(size=(pairs, 2)), before + rng.normal(size=(pairs, 2)) + 5 / np.sqrt(pairs)
    result = two_sample_test(x, y, pairs=(np.arange(pairs),) * 2, method=method, rng=0, n_permutations=199)
    assert result.pvalue <= 0.02
    if method == "cp-full":
        assert all(one.scores.max() > 0 for one in result.classes if "gaussian" in one.label)


def test_a_far_row_does_not_hide_a_shift():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 3)), rng.normal(0.5, 1, size=(300, 3))
    y[7] = 1e30
    assert two_sample_test(x, y, rng=0).pvalue == 0.001


def test_bins_stand_in_an_order_that_does_not_look_at_labels():
    rng = np.random.default_rng(1)
    firsts = []
    for _ in range(400):
        layout = Layout.cut(60, 140, None, rng, target=20).draw(5, rng)
        labels = layout.labels.array()
        np.testing.assert_array_equal(labels[0] > 0, layout.of_x)
        np.testing.assert_array_equal(np.repeat(layout.of_x, layout.size), layout.rows < 60)
        assert (labels.sum(axis=1) == layout.first).all()
        firsts.append(bool(layout.of_x[0]))
    assert abs(np.mean(firsts) - 0.3) < 4 * np.sqrt(0.21 / 400)


# --- kernels without a root -------------------------------------------------------------------------------------------


def test_both_ways_of_whitening_are_the_inverse():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(20, 20))
    K = root @ root.T
    by_root = whitening(K.copy(), 1e-10)
    np.testing.assert_allclose(by_root @ by_root.T @ K, np.eye(20), atol=1e-6)
    K -= 1.5 * np.linalg.eigvalsh(K)[3] * np.eye(20)  # four negative ones
    by_vectors = whitening(K.copy(), 1e-10)
    values, vectors = np.linalg.eigh(K)
    kept = values > 0
    np.testing.assert_allclose(by_vectors @ by_vectors.T, (vectors[:, kept] / values[kept]) @ vectors[:, kept].T, atol=1e-8)


@pytest.mark.parametrize("power", [2, 5])
def test_heavy_tails_beyond_the_rows_of_pairs_have_an_answer(power):
    rng = np.random.default_rng(5)
    x, y = (np.abs(rng.standard_cauchy((2400, 1))) ** power for _ in range(2))
    assert 0 < two_sample_test(x, y, rng=0, n_permutations=99).pvalue <= 1
    method = FullSampleTest(classes=(KernelClass(Polynomial(degree=2), "standard", gammas=(0.1,)),))
    assert 0 < two_sample_test(x[:300], y[:300], method=method, rng=0, n_permutations=99).pvalue <= 1


class Sigmoid(Kernel):
    """Not positive definite."""

    bound = base_lipschitz = 1.0

    def gram(self, rows, others=None):
        return np.tanh(rows @ (rows if others is None else others).T - 1)


@pytest.mark.parametrize("rows", [100, 2500])
def test_a_kernel_that_is_not_positive_definite_has_an_answer_at_any_size(rows):
    rng = np.random.default_rng(3)
    method = FullSampleTest(classes=(), fixed=(Sigmoid(),))
    x, y = rng.normal(size=(rows, 2)), rng.normal(1, 1, size=(rows, 2))
    assert two_sample_test(x, y, method=method, rng=0, n_permutations=99).pvalue == 0.01
    assert two_sample_test(x, rng.normal(size=(rows, 2)), method=method, rng=0, n_permutations=99).pvalue > 0.05


# --- the same digits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "n", "method"),
    [(60, 9000, "cp-full"), (200, 200, SplitTest(gammas=(0.1, 0.01))), (700, 700, SplitTest(gammas=(0.1, 0.01)))],
    ids=["cp-full", "split", "split of more"],
)
def test_the_null_has_the_same_digits_for_any_number_of_threads(m, n, method):
    rng = np.random.default_rng([m, n])
    x, y = rng.normal(size=(m, 3)), rng.normal(0.02, 1, size=(n, 3))
    one, two = (two_sample_test(x, y, method=method, rng=0, n_permutations=99, n_jobs=jobs) for jobs in (1, 2))
    assert one.statistic == two.statistic
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)


def test_a_fixed_kernel_has_the_same_digits_whatever_the_memory():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(700, 3)), rng.normal(size=(800, 3))
    kernel = two_sample_test(x[:50], y[:50], method="median", rng=0, n_permutations=19).kernel
    method = FullSampleTest(classes=(), fixed=(kernel,))
    one, two = (two_sample_test(x, y, method=method, rng=0, n_permutations=99, memory_limit=room) for room in (None, "30MB"))
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)


def test_the_matrix_of_one_odd_row_is_no_evidence():
    x, y = all_equal_but(1, 40, 50, 0)
    rows = np.vstack([x, y])
    K = np.exp(-np.square(rows[:, None] - rows[None]).sum(axis=2))
    assert kernel_matrix_test(K, 40, rng=0).pvalue == 1
    assert kernel_matrix_test(K, 40, gammas=(0.1, 1e-3), rng=0).pvalue == 1


def test_left_out_rows_of_a_much_larger_sample_are_said_with_the_reason():
    rng = np.random.default_rng(6)
    result = two_sample_test(rng.normal(size=(3, 2)), rng.normal(size=(6000, 2)), rng=0, n_permutations=99)
    (note,) = (note for note in result.notes if "left out" in note)
    assert "5003 of the second" in note
    assert "at most 1000 bins are permuted" in note
