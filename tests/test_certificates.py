"""Certificates against the paper's numbers and formulas."""

import math

import numpy as np
import pytest

from cpmmd import SplitTest, two_sample_test
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


def test_the_bound_holds_under_the_null():
    # With probability 1 - delta the lower bound is below the population MMD, 0 here: never above in 200 runs.
    for seed in range(200):
        rng = np.random.default_rng(seed)
        result = two_sample_test(
            rng.normal(size=(20, 1)), rng.normal(size=(20, 1)), method="plain-linear", rng=0, n_permutations=19
        )
        assert result.certificate.worst_case.lower_bound <= 0
