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


def falls(method, repetitions):
    """How much the power falls when y grows from 60 to 240 rows of the same data, and its standard error."""
    differences = []
    for repetition in range(repetitions):
        data, *tests = np.random.default_rng([13, repetition]).spawn(3)
        x, y = data.normal(size=(60, 3)), data.normal(0.3, 1, size=(240, 3))
        few, many = (
            two_sample_test(x, part, method=method, rng=rng, n_permutations=99).reject
            for part, rng in zip((y[:60], y), tests, strict=True)
        )
        differences.append(int(few) - int(many))
    return np.mean(differences), np.std(differences) / np.sqrt(repetitions)


@pytest.mark.parametrize("method", ["median", "cp-full"])
def test_power_does_not_fall_when_one_sample_grows(method):
    # Same data, so the difference is measured closely: its standard error is about .04 here, and it must be below zero by that.
    fall, error = falls(method, 150)
    assert fall <= -error


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["median", "energy", "cp-full", "mmdfuse", "mmdagg", "cp-linear", "plain-linear"])
def test_power_does_not_fall_by_a_few_points_when_one_sample_grows(method):
    # 1000 repetitions: a standard error of about .015, so a fall of three points fails.
    fall, error = falls(method, 1000)
    assert error <= 0.02
    assert fall <= 0.03 - 2 * error
