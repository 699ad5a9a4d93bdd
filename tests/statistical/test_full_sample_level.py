"""Level of the default test where it could break: many repetitions, lopsided samples, levels, constant columns."""

import numpy as np
import pytest

from helpers import NULLS, assert_level, null_pvalues

pytestmark = pytest.mark.statistical


def five_against_many(rng):
    return rng.normal(size=(5, 3)), rng.normal(size=(500, 3))


def one_hot(rng):
    return np.eye(6)[rng.integers(0, 6, 30)], np.eye(6)[rng.integers(0, 6, 25)]


def constant_columns(rng):
    x, y = rng.normal(size=(30, 4)), rng.normal(size=(34, 4))
    x[:, 1:3], y[:, 1:3] = 7.0, 7.0
    return x, y


@pytest.mark.parametrize("null", [five_against_many, one_hot, constant_columns])
def test_level_holds_on_lopsided_and_degenerate_data(null):
    # At alpha = .05 the bound is 100 + 3 * 9.75 = 129 of 2000.
    assert_level(null_pvalues("cp-full", null, 2000, seed=51))


@pytest.mark.parametrize("null", ["gaussian", "discrete"])
def test_level_holds_over_ten_thousand_repetitions(null):
    # At alpha = .05 the bound is 500 + 3 * 21.8 = 565 of 10,000: a test wrong by .7 points fails.
    assert_level(null_pvalues("cp-full", NULLS[null], 10_000, seed=52))
