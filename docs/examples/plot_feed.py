"""
A drifting feed
===============

Thirty daily batches against one reference; from day 18 on one column drifts. The detector tests each batch once, the adjusted
p-values say when to look.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cpmmd import DriftDetector, benjamini_hochberg, plotting

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
    record["adjusted"] = float(adjusted)
print([record["batch"] for record in records if record["adjusted"] <= 0.05])

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
plotting.batch_series(records, ax=ax)
