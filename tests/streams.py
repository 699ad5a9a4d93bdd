"""Null streams of batches for the tests of the monitor, and what is asked of their ranks."""

import numpy as np
from scipy import stats

from benchmarks.monitoring_streams import MeanDifference
from cpmmd import DriftMonitor


def constant(rng, rows):  # noqa: ARG001
    return np.zeros((rows, 1))


def ranks(draw, *, streams, batches, rows, reference, seed, **options):
    """Return rank and number of relabelings of every batch of seeded null streams: two arrays of streams by batches."""
    found = np.empty((2, streams, batches), dtype=int)
    for stream in range(streams):
        data = np.random.default_rng([seed, stream])
        settings = {"method": MeanDifference(), "n_permutations": 19, "looks": (1,), "rng": stream, **options}
        monitor = DriftMonitor(**settings).fit(draw(data, reference))
        for batch in range(batches):
            look = monitor.update(draw(data, rows)).looks[0]
            found[:, stream, batch] = look.rank, look.total
    return found


def uniform_pvalue(ranks, total):
    """Return the p-value of the chi-square test that ranks are uniform on 1..total, in at most 20 cells."""
    cells = np.histogram(ranks, bins=np.linspace(0.5, total + 0.5, min(20, total) + 1))[0]
    edges = np.linspace(0.5, total + 0.5, min(20, total) + 1)
    whole = np.histogram(np.arange(1, total + 1), bins=edges)[0]
    return float(stats.chisquare(cells, whole / total * ranks.size).pvalue)


def lag_one_zscore(uniform):
    """Return the correlation of neighbours over all streams, in its standard errors: rows are streams, values uniform."""
    centred = stats.norm.ppf(uniform)
    products = centred[:, :-1] * centred[:, 1:]
    return float(products.mean() * np.sqrt(products.size))
