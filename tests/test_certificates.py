"""Certificates against the paper's numbers and formulas."""

import math

import numpy as np
import pytest

from cpmmd import Bandwidth, SplitTest, two_sample_test
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.permutation.mmd import unbiased_mmd2
from cpmmd.selection.certificates import certify, finite_grid_gap, imbalance, power_threshold, uci_bound, uci_constants


def test_constants_of_the_paper():
    assert uci_constants(1.0, 1.0, 100, 100) == pytest.approx((12 * math.sqrt(2 * math.pi), 8.0))
    assert imbalance(100, 300) == 4.0
    c1, c2 = uci_constants(2.0, 0.5, 100, 300)
    assert c1 == pytest.approx(2 * math.sqrt(2 * math.pi) * 0.5 * 4 * 5)
    assert c2 == pytest.approx(4 * 2.0 * 4)


def test_bound_and_threshold_formulas():
    assert uci_bound(3.0, 0.2, 8.0, 400, 0.05) == pytest.approx(0.6 + 8 * math.sqrt(math.log(40) / 400))
    assert power_threshold(1.0, 0.05, 0.1, 1000) == pytest.approx(16 * math.sqrt((math.log(40) + math.log(20)) / 1000))
    assert finite_grid_gap(7, 50, 50, delta=0.1) == pytest.approx(2 * 8 * math.sqrt(math.log(140) / 100))


def large(**changes):
    settings = {
        "mmd2": 0.5, "max_complexity": 1e-3, "proxy_constant": 2.0, "calibrated_c1": 0.01, "bound": 1.0, "lipschitz": 1.0,
        "train_sizes": (10**6, 10**6), "test_sizes": (10**6, 10**6), "alpha": 0.05, "n_permutations": 999,
    }  # fmt: skip
    return certify(**(settings | changes))


def test_a_large_sample_is_certified_and_says_so():
    certificate = large()
    gap = 0.01 * 1e-3 + 8 * math.sqrt(math.log(40) / 2e6)
    assert certificate.calibrated.lower_bound == pytest.approx(0.5 - gap)
    assert certificate.worst_case.constant == pytest.approx(2 * 12 * math.sqrt(2 * math.pi))
    assert certificate.calibrated.power_certified
    assert certificate.worst_case.power_certified
    assert certificate.guaranteed_power == pytest.approx(1 - 0.1 - 0.001)
    assert "power of at least 0.90" in certificate.statement


def test_unequal_held_out_sizes_raise_the_threshold():
    assert large(test_sizes=(10**6, 3 * 10**6)).threshold == pytest.approx(
        math.sqrt(4) * power_threshold(1.0, 0.05, 0.05, 4 * 10**6)
    )


def test_a_small_sample_is_vacuous_and_says_so():
    rng = np.random.default_rng(0)
    result = two_sample_test(rng.normal(size=(60, 2)), rng.normal(2, 1, size=(60, 2)), method=SplitTest(), rng=0)
    assert result.reject
    assert result.certificate.vacuous
    assert "vacuous" in result.certificate.statement
    assert not result.certificate.calibrated.power_certified


def population_mmd2(shift):
    """Squared MMD of N(0, 1) and N(shift, 1) under the Gaussian kernel with bandwidth 1: 2 (1 - exp(-shift^2 / 6)) / sqrt(3)."""
    return 2 * (1 - math.exp(-(shift**2) / 6)) / math.sqrt(3)


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_the_bound_covers_the_population_and_is_of_the_right_order(shift):
    # The lower bound of a fixed kernel (no complexity) must lie below the population's squared MMD in all but delta of the
    # samples. It is loose, so coverage alone could not fail; the second half can: deviations of the estimate fall like the
    # bound's concentration term, so at two sizes both are the same multiple of it (within a factor of 2, 200 samples each),
    # and a term of another order in N, or 300 times smaller, fails.
    ratios = []
    for size in (50, 400):
        deviations = []
        for seed in range(200):
            rng = np.random.default_rng([size, seed])
            rows = np.concatenate([rng.normal(size=size), rng.normal(shift, 1, size=size)])[:, None]
            K = ScaledKernel(Bandwidth(), 1.0).gram(rows)
            deviations.append(unbiased_mmd2(K[:size, :size], K[size:, size:], K[:size, size:]) - population_mmd2(shift))
        gap = uci_bound(0.0, 0.0, uci_constants(1.0, math.exp(-0.5), size, size)[1], 2 * size, 0.05)
        assert np.quantile(np.abs(deviations), 0.95) <= gap
        # Under a difference the deviation is of order 1/sqrt(N), as the bound's; without one it is of order 1/N.
        ratios.append(np.quantile(np.abs(deviations), 0.95) / gap * (1 if shift else math.sqrt(2 * size)))
    assert 0.5 <= ratios[0] / ratios[1] <= 2
    if shift:
        assert ratios[0] >= 1 / 300


def test_the_bound_of_a_selected_kernel_holds_under_the_null():
    # With probability 1 - delta the lower bound is below the population's squared MMD, 0 here; and it is below the estimate
    # by the whole gap, recomputed here from the printed constants.
    for seed in range(50):
        rng = np.random.default_rng(seed)
        result = two_sample_test(
            rng.normal(size=(20, 1)), rng.normal(size=(20, 1)), method="plain-linear", rng=0, n_permutations=19
        )
        certificate, selection = result.certificate, result.selection
        gap = 12 * math.sqrt(2 * math.pi) * math.exp(-0.5) * selection.max_complexity + 8 * math.sqrt(math.log(40) / 20)
        assert certificate.worst_case.lower_bound == pytest.approx(selection.mmd2 - gap)
        assert certificate.worst_case.lower_bound <= 0
