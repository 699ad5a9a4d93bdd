"""P-values of a monitor are uniform and independent where nothing changed, whatever is kept of the past."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from benchmarks.monitoring_streams import discrete, gaussian
from cpmmd import DriftMonitor
from cpmmd.data.table import read_table
from cpmmd.monitoring.past import Past
from streams import constant, lag_one_zscore, ranks, uniform_pvalue


def test_over_all_orders_of_five_rows_the_ranks_of_two_batches_are_independent_and_uniform():
    """Every order is as likely as any other: each pair of ranks must come up equally often, exactly."""
    values = np.array([0.0, 1.0, 2.3, 3.9, 6.1])
    counts = Counter()
    for order in permutations(values):
        monitor = DriftMonitor("median", n_permutations=999, looks=(1,), rng=0).fit(np.array(order[:2]))
        first, second = monitor.update(np.array(order[2:3])).looks[0], monitor.update(np.array(order[3:])).looks[0]
        assert (first.total, second.total) == (3, 10)
        counts[first.rank, second.rank] += 1
    assert len(counts) == 30
    assert set(counts.values()) == {4}


def test_what_is_kept_is_blind_to_what_came_last():
    """Each row, old or new, is kept equally often: 2000 draws of 6 from 10, within 4 binomial standard errors."""
    past = Past.of(read_table(np.arange(7.0), "reference")).add(read_table(np.arange(7.0, 10.0), "batch"), 1)
    kept = np.zeros(10)
    for seed in range(2000):
        kept[np.asarray(past.keep(6, np.random.default_rng(seed)).table.numbers)[:, 0].astype(int)] += 1
    assert np.abs(kept - 1200).max() <= 4 * np.sqrt(2000 * 0.6 * 0.4)


CASES = {
    "small past": (gaussian, {"rows": 5, "reference": 12, "past_rows": 12}),
    "ties": (discrete, {"rows": 5, "reference": 12, "past_rows": 12}),
    "one row": (discrete, {"rows": 1, "reference": 15, "past_rows": 15}),
}


@pytest.mark.parametrize("case", CASES)
def test_ranks_are_uniform_and_neighbours_uncorrelated(case):
    """150 streams of 12 batches; each statistic fails by chance once in a thousand."""
    draw, options = CASES[case]
    found, totals = ranks(draw, streams=150, batches=12, seed=5, **options)
    for total in np.unique(totals):
        assert uniform_pvalue(found[totals == total], total) > 1e-3
    middle = (found - 0.5) / totals
    assert abs(lag_one_zscore(middle)) < 3.3
    first_and_last = stats.spearmanr(middle[:, 0], middle[:, -1])
    assert first_and_last.pvalue > 1e-3


def test_ties_broken_at_random_are_uniform_even_where_all_rows_are_equal():
    found, totals = ranks(constant, streams=60, batches=10, rows=4, reference=10, seed=1)
    assert uniform_pvalue(found[totals == 20], 20) > 1e-3
