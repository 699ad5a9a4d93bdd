"""
Which pixels tell two sets of digits apart?
===========================================

Handwritten 3s and 8s against 3s, 8s and 9s: the test finds the difference, the explanation shows where it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from cpmmd import two_sample_test

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
without = rng.permutation(images[np.isin(labels, [3, 8])])[:150]
rows = rng.permutation(np.flatnonzero(np.isin(labels, [3, 8, 9])))[:150]
with_nines = images[rows]

result = two_sample_test(without, with_nines, rng=0)
print(result)

# %%
# How far the samples are apart in each pixel, and the rows that speak for it most.
explanation = result.explain()
distance = np.zeros(64)
for column in explanation.columns:
    distance[int(column.name)] = column.distance

figure, axes = plt.subplots(1, 4, figsize=(9, 2.8), layout="constrained")
axes[0].imshow(distance.reshape(8, 8), cmap="magma")
axes[0].set_title("distance in each pixel")
for ax, row in zip(axes[1:], explanation.top_y[:3], strict=True):
    ax.imshow(with_nines[row.row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"row {row.row} of y, a {labels[rows[row.row]]}")
for ax in axes:
    ax.set_axis_off()

# %%
# What to see: the bright pixels, right of the middle, are where a nine has its stem and a three or an eight has a gap. The
# three rows that give the second sample away are nines, all of them: nobody told the test that there are any.
