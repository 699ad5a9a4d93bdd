"""
Signal and background of a Higgs search
=======================================

600 simulated collisions of each kind, 28 columns (Baldi, Sadowski and Whiteson 2014; UCI, CC BY 4.0). Which kernel does the
full-sample test choose, and how far out is the statistic?
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from cpmmd import plotting, two_sample_test

folder = Path("data") if Path("data").exists() else Path(__file__).parent / "data"
with np.load(folder / "higgs_sample.npz") as file:
    background, signal = file["background"], file["signal"]

result = two_sample_test(background[:250], signal[:250], rng=0)
print(result)

# %%
# The statistic among its relabelings, and the evidence of every class along its bandwidths.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
plotting.null_distribution(result, ax=left)
plotting.criterion_path(result, ax=right)
