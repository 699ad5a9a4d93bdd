"""Level of the test of several samples, 2000 repetitions a null, and the family-wise error of its pairs."""

import numpy as np
import pytest

from cpmmd import k_sample_test
from helpers import assert_level

pytestmark = pytest.mark.statistical


def discrete(rng):
    return [rng.integers(0, 3, size=(n, 2)).astype(float) for n in (12, 9, 15)], {}


def heavy_tails(rng):
    return [rng.standard_t(1, size=(n, 3)) for n in (12, 12, 12, 12)], {}


def categories(rng):
    import pandas as pd

    return [pd.DataFrame({"c": rng.choice(["p", "q", "r"], n), "v": rng.normal(size=n)}) for n in (14, 10, 12)], {}


def more_columns_than_rows(rng):
    return [rng.normal(size=(n, 40)) for n in (8, 8, 8)], {}


def unequal_sizes(rng):
    return [rng.normal(size=(n, 2)) for n in (4, 60, 15)], {}


def five_rows_a_sample(rng):
    return [rng.normal(size=(5, 3)) for _ in range(5)], {}


def strata(rng):
    mixes = ((0.6, 0.3, 0.1), (0.3, 0.4, 0.3), (0.1, 0.3, 0.6))
    of = [rng.choice(3, 20, p=mix) for mix in mixes]
    return [3.0 * own[:, None] + rng.normal(size=(20, 2)) for own in of], {"strata": of}


def groups(rng):
    of = [np.repeat(np.arange(6) + 10 * place, 3) for place in range(3)]
    return [rng.normal(size=(6, 2)).repeat(3, axis=0) + rng.normal(size=(18, 2)) for _ in of], {"groups": of}


def strata_of_some_samples(rng):
    of = [np.repeat([0, 1], [4, 8]), np.repeat([1, 2], [6, 6]), np.repeat([0, 2], [7, 5])]
    return [3.0 * own[:, None] + rng.normal(size=(12, 2)) for own in of], {"strata": of}


def subjects(rng):
    level = 3.0 * rng.normal(size=(20, 2))
    return [level + rng.normal(size=(20, 2)) for _ in range(3)], {"pairs": [np.arange(20)] * 3}


NULLS = [
    *(discrete, heavy_tails, categories, more_columns_than_rows, unequal_sizes, five_rows_a_sample),
    *(strata, groups, strata_of_some_samples, subjects),
]


@pytest.mark.parametrize("null", NULLS, ids=lambda null: null.__name__)
def test_level_of_all_samples(null):
    # At alpha = .05 the bound is 100 + 3 * 9.75 = 129 of 2000.
    rng, pvalues = np.random.default_rng(61), []
    for _ in range(2000):
        samples, design = null(rng)
        # Pairs are compared where p <= alpha: a level that no p reaches leaves them out.
        pvalues.append(k_sample_test(samples, n_permutations=199, alpha=0.005, rng=rng, **design).pvalue)
    print(null.__name__, [float(np.mean(np.array(pvalues) <= level)) for level in (0.01, 0.05, 0.1)])
    assert_level(np.array(pvalues))


def one_shifted(rng):
    return [rng.normal(size=(15, 2)) + 3 * (place == 0) for place in range(4)], {(0, 1), (0, 2), (0, 3)}


def two_and_two(rng):
    return [rng.normal(size=(15, 2)) + 3 * (place > 1) for place in range(4)], {(0, 2), (0, 3), (1, 2), (1, 3)}


def one_of_other_scale(rng):
    return [rng.normal(size=(15, 2)) * (1 + 4 * (place == 0)) for place in range(4)], {(0, 1), (0, 2), (0, 3)}


@pytest.mark.parametrize("truth", [one_shifted, two_and_two, one_of_other_scale], ids=lambda truth: truth.__name__)
def test_family_wise_error_where_some_samples_differ(truth):
    # At alpha = .05 the bound is 50 + 3 * 6.9 = 70 of 1000.
    rng, false, power = np.random.default_rng(62), 0, 0
    for _ in range(1000):
        samples, differ = truth(rng)
        result = k_sample_test(dict(enumerate(samples)), n_permutations=199, rng=rng)
        found = {tuple(map(int, pair.names)) for pair in result.differing}
        false += bool(found - differ)
        power += found >= differ
    print(truth.__name__, "false", false / 1000, "all found", power / 1000)
    assert false <= 70
