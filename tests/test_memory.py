"""``memory_limit`` holds for everything that grows with the relabelings and with the training half, not for kernels alone."""

import tracemalloc

import numpy as np
import pytest

from cpmmd import CpmmdError, FullSampleTest, two_sample_test

DATA = np.random.default_rng(0)
X, Y = DATA.normal(size=(40, 2)), DATA.normal(size=(50, 2))


@pytest.mark.parametrize(
    ("method", "count"), [("mmdfuse", 100_000), ("mmdagg", 50_000), ("cp-full", 50_000), ("median", 100_000)]
)
def test_many_relabelings_stay_within_the_limit(method, count):
    """A kilobyte each: held row by row in double precision they alone would take more, and MMDAgg has twice as many."""
    two_sample_test(X, Y, method=method, rng=0, n_permutations=19)
    tracemalloc.start()
    try:
        result = two_sample_test(X, Y, method=method, rng=0, n_permutations=count, memory_limit=count * 1000)
        assert tracemalloc.get_traced_memory()[1] < count * 1000
    finally:
        tracemalloc.stop()
    assert len(result.null_distribution) >= count


@pytest.mark.parametrize("method", ["mmdfuse", "median", "cp-full"])
def test_the_answer_does_not_depend_on_the_limit(method):
    small, large = (two_sample_test(X, Y, method=method, rng=0, memory_limit=limit) for limit in ("20MB", "2GB"))
    assert small.pvalue == large.pvalue
    np.testing.assert_array_equal(small.null_distribution, large.null_distribution)


def test_relabelings_that_do_not_fit_are_refused():
    with pytest.raises(CpmmdError, match="Permutations may take at most a quarter of the memory limit"):
        two_sample_test(X, Y, method="mmdfuse", rng=0, n_permutations=10_000_000, memory_limit="100MB")


def test_training_matrices_that_do_not_fit_are_refused():
    x, y = DATA.normal(size=(2, 1000, 2))
    with pytest.raises(CpmmdError, match="Choosing a kernel holds 4 matrices of 1000 x 1000"):
        two_sample_test(x, y, method="cp-linear", rng=0, memory_limit="20MB")


@pytest.mark.parametrize("rows", [1500, 2600])
def test_landmarks_that_do_not_fit_are_refused(rows):
    x, y = DATA.normal(size=(2, rows, 2))
    with pytest.raises(CpmmdError, match=r"must leave room for landmarks: at least .* with 1200 of them"):
        two_sample_test(x, y, method=FullSampleTest(landmarks=1200), rng=0, n_permutations=19, memory_limit="60MB")
