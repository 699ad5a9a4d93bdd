"""Null streams of 200 batches: uniform, independent ranks, and seldom ever a false alarm."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.monitoring_streams import ALPHA, CASES, LOOKS, ever, run, uniformity
from cpmmd.monitoring.bets import BETS

pytestmark = pytest.mark.statistical
WATCHED = [name for name, case in CASES.items() if not case.fixed and "1000" not in name]


@pytest.mark.parametrize("name", WATCHED)
def test_ranks_are_uniform_and_independent_and_alarms_rare_for_every_bet(name):
    """Chi-square p > .001, lag-1 correlation within 3.3 standard errors, rates spread within 15% of binomial, alarms within 3."""
    found = run(CASES[name], 0)
    measured = uniformity(*found[1])
    assert measured["chi-square p"] > 1e-3
    assert abs(measured["in standard errors"]) < 3.3
    assert measured["spread / binomial"] < 1.15
    limit = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / len(found[1][0]))
    for bet in BETS:
        for looks in ((1,), LOOKS):
            assert ever(found, bet, looks) <= limit


@pytest.mark.parametrize("name", WATCHED[:3])
def test_the_monitor_itself_agrees(name):
    """40 streams through DriftMonitor, held to the same."""
    measured = uniformity(*run(CASES[name], 40)[1])
    assert measured["chi-square p"] > 1e-3
    assert abs(measured["in standard errors"]) < 3.3


def test_a_fixed_reference_fails_both():
    """What these tests would see: p-values that share the luck of 50 rows (17 standard errors at 500 streams, so 8 at 100)."""
    case = replace(CASES["20 rows, reference of 50, fixed (the detector)"], streams=100)
    measured = uniformity(*run(case, 0)[1])
    assert measured["in standard errors"] > 4
    assert measured["spread / binomial"] > 1.5
