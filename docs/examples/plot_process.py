"""
A fault in a chemical plant
===========================

Tennessee Eastman process, 400 rows of normal operation against 400 rows of fault 4, a step in the reactor's cooling water
temperature (data of Russell, Chiang and Braatz; notice beside the data file). Which of 52 variables lead to the fault?
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cpmmd import plotting, two_sample_test

folder = Path("data") if Path("data").exists() else Path(__file__).parent / "data"
with np.load(folder / "process_sample.npz") as file:
    columns = [str(name) for name in file["variables"]]
    normal = pd.DataFrame(file["normal"], columns=columns)
    faulty = pd.DataFrame(file["fault"], columns=columns)

# Units differ from column to column, so they are standardised.
result = two_sample_test(normal[::2], faulty[::2], method="median", scale="standard", rng=0)
explanation = result.explain()
print(result)
print(explanation.sentence)

# %%
# The cooling water valve, XMV(10), works against the step: it leads.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plotting.column_differences(explanation, ax=left)
plotting.witness_densities(explanation, ax=right)
