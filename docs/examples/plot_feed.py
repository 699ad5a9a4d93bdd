"""
A drifting feed
===============

Thirty daily batches against one reference; from day 19 on one column drifts, a little more every day. The detector tests each
batch once, the adjusted p-values say when to look.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cpmmd import DriftDetector, DriftMonitor, benjamini_hochberg, plotting

rng = np.random.default_rng(3)


def day(rows, drift=0.0):
    return pd.DataFrame(
        {"load": rng.gamma(4, 1, rows) + drift, "delay": rng.exponential(1, rows), "errors": rng.poisson(2, rows)}
    )


detector = DriftDetector("median", n_permutations=499, rng=0).fit(day(400))
records = []
for number in range(30):
    answer = detector.test(day(80, drift=max(0, number - 17) * 0.15), name=f"day {number + 1}")
    records.append(answer.to_dict())
for record, adjusted in zip(records, benjamini_hochberg([r["pvalue"] for r in records]), strict=True):
    record |= {"adjusted": float(adjusted), "reject": bool(adjusted <= 0.05)}
print([record["batch"] for record in records if record["reject"]])

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
plotting.batch_series(records, ax=ax)

# %%
# What to see: the first days of the drift are too much like the others for 80 rows; days 21, 24 and 25 are found, and from
# day 27 on every day. Day 7 is a false alarm. Nothing happened on it: its p-value of 0.012 comes once in eighty quiet days,
# and adjusted p-values promise that on average at most one in twenty of the days *found* is none, not that there is no such
# day.
#
# A detector judges every day by itself. A monitor has one promise for all of them, the probability that there is ever a false
# alarm, and says since when:
rng = np.random.default_rng(3)
monitor = DriftMonitor("median", n_permutations=499, rng=0).fit(day(400))
for number in range(30):
    answer = monitor.update(day(80, drift=max(0, number - 17) * 0.15), name=f"day {number + 1}")
    if answer.alarm:
        break
print(answer)
