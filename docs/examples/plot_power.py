"""
How many rows does it take?
===========================

Two kinds of wine (from scikit-learn), of which thirty bottles each were analysed as a pilot: ash and malic acid. How many
bottles of each kind find the difference again with a probability of .8?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from cpmmd import plotting, power_from_pilot

data = load_wine(as_frame=True)
wines = data.frame[["ash", "malic_acid"]]
first, second = (wines[data.target == kind].sample(30, random_state=0) for kind in (0, 1))
plan = power_from_pilot(first, second, sizes=[10, 20, 25, 50, 100], method="median", repetitions=60, rng=0)
print(plan)

# %%
# Power by the number of bottles, with its interval.
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
plotting.power_curves(plan, ax=ax)

# %%
# What to see: up to the pilot's thirty bottles power is counted in draws from it, beyond it is extrapolated, and the
# interval is as wide as thirty bottles leave it. A plan from a pilot says what its own difference needs; if the true
# one is smaller, so is the power.
