"""The level of the default method where rows are read once and bins are those of positions."""

import numpy as np
import pytest

from cpmmd import FullSampleTest, two_sample_test

pytestmark = pytest.mark.statistical
NULLS, ALPHA = 2000, 0.05


@pytest.mark.parametrize(
    ("m", "n", "columns", "landmarks"),
    [(20, 20, 2, 10), (20, 20, 4, 40), (250, 350, 3, 40), (90, 900, 3, 60)],
    ids=["40 rows", "40 rows, all of them landmarks", "bins", "bins of unequal samples"],
)
def test_the_level_holds(m, n, columns, landmarks):
    """A binomial count of 2000 at .05 is between 69 and 133 with probability .999."""
    method, rejected = FullSampleTest(pair_rows=0, landmarks=landmarks), 0
    for seed in range(NULLS):
        rng = np.random.default_rng([seed, m, n])
        x, y = rng.normal(size=(m, columns)), rng.normal(size=(n, columns))
        rejected += two_sample_test(x, y, method=method, n_permutations=99, alpha=ALPHA, rng=seed).reject
    print(f"{rejected} of {NULLS} nulls rejected at {ALPHA}")
    assert 69 <= rejected <= 133
