"""
Equivalent for a purpose
========================

Patients with diabetes (Efron and others 2004, from scikit-learn), in the order in which they were listed. May the second half
stand in for the first, if differences of half a standard deviation do not matter?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from cpmmd import equivalence_test

patients = load_diabetes(as_frame=True).frame
result = equivalence_test(patients[:221], patients[221:], margin=0.5, rng=0)
print(result)

# %%
# How far each column may differ, with 90% confidence intervals.
columns = sorted(result.columns, key=lambda column: column.difference)
figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
ax.axvspan(-result.margin, result.margin, color="0.93")
for place, column in enumerate(columns):
    ax.plot([column.low, column.high], [place, place], color="tab:blue")
    ax.plot(column.difference, place, "o", color="tab:blue")
ax.axvline(0, color="0.5", linewidth=0.8)
ax.set_yticks(range(len(columns)), [column.name for column in columns])
ax.set_xlabel("second half minus first, standard deviations")

# %%
# What to see: every interval lies inside the grey margin, so each column by itself is shown to be equivalent, and yet
# the verdict is no. All columns together may differ by more than any one of them: the printed answer says by how much
# at most, and with a margin of that size equivalence would be shown.
