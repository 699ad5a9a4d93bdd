"""Level over thousands of repetitions: `make test-statistical`."""

import pytest

from cpmmd import methods
from helpers import NULLS, assert_level, light, null_pvalues


@pytest.mark.statistical
@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("null", NULLS)
def test_level_holds_over_two_thousand_repetitions(method, null):
    # At alpha = .05 the bound is 100 + 3 * 9.75 = 129 of 2000: a test wrong by 1.5 points fails.
    assert_level(null_pvalues(light(method), NULLS[null], 2000, seed=2024))
