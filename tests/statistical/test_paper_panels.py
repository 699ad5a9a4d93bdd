"""Power on the paper's linear and polynomial panels, and where one sample grows."""

import numpy as np
import pytest

from cpmmd import MedianTest, two_sample_test
from helpers import kurtosis, two_scale_mixture


def power(method, generate, repetitions, seed=7):
    rejections = 0
    for repetition in range(repetitions):
        data, test = np.random.default_rng([seed, repetition]).spawn(2)
        rejections += two_sample_test(*generate(data), method=method, n_permutations=200, rng=test).reject
    return rejections / repetitions


@pytest.mark.statistical
def test_linear_panel_of_the_paper():
    def panel(rng):
        return two_scale_mixture(rng, 200, 0.30)

    cp, plain = power("cp-linear", panel, 100), power("plain-linear", panel, 100)
    median, halved = power("median", panel, 100), power(MedianTest(split=True), panel, 100)
    print(f"shift 0.30: cp-linear {cp}, plain-linear {plain}, median {median}, median on the test half {halved}")
    assert cp >= 0.95
    assert halved <= cp - 0.35  # the paper's median, which sees as many rows as CP's test half


@pytest.mark.statistical
@pytest.mark.parametrize("df", [5, 8])
def test_polynomial_panel_of_the_paper(df):
    value = power("cp-polynomial", lambda rng: kurtosis(rng, 500, df), 50)
    print(f"df {df}: cp-polynomial {value}")
    assert value >= 0.95


@pytest.mark.parametrize("method", ["median", "cp-linear", "plain-linear"])
def test_power_does_not_fall_when_one_sample_grows(method):
    def panel(n_y):
        return lambda rng: (rng.normal(size=(200, 3)), rng.normal(0.2, 1, size=(n_y, 3)))

    equal, grown = power(method, panel(200), 60), power(method, panel(2000), 12)
    # One-sided, two binomial standard errors of the difference at worst (p = 1/2): 2 * sqrt(1/4/60 + 1/4/12) = 0.32.
    assert grown >= equal - 0.32
