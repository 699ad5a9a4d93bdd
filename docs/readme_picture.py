"""Draw the README's picture: ``python docs/readme_picture.py``."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cpmmd import plotting, two_sample_test

HERE = Path(__file__).parent


def main() -> None:
    with np.load(HERE / "examples" / "data" / "process_sample.npz") as file:
        columns = [str(name) for name in file["variables"]]
        normal, faulty = (pd.DataFrame(file[name], columns=columns)[::2] for name in ("normal", "fault"))
    result = two_sample_test(normal, faulty, method="median", scale="standard", rng=0)
    explanation = result.explain()
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    plotting.null_distribution(result, ax=axes[0])
    plotting.column_differences(explanation, ax=axes[1])
    plotting.witness_densities(explanation, ax=axes[2])
    for ax, title in zip(axes, ("Is there a difference?", "Where is it?", "How large is it?"), strict=True):
        ax.set_title(title, pad=36, fontweight="bold")  # above the legend
    figure.savefig(HERE / "_static" / "readme.png", dpi=110, facecolor="white")


if __name__ == "__main__":
    main()
