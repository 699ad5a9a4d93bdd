"""Draw the picture of the front page and the README, the answer of ``cpmmd demo``: ``python docs/readme_picture.py``."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

from cpmmd import plotting, two_sample_test
from cpmmd.cli.demo import SEED, tumours

HERE = Path(__file__).parent


def main() -> None:
    names, (benign, malignant, _) = tumours()
    result = two_sample_test(*(pd.DataFrame(rows, columns=names) for rows in (benign, malignant)), rng=SEED)
    explanation = result.explain(names=("benign", "malignant"))
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    plotting.null_distribution(result, ax=axes[0])
    plotting.column_differences(explanation, ax=axes[1])
    plotting.witness_densities(explanation, ax=axes[2])
    for ax, title in zip(axes, ("Is there a difference?", "Where is it?", "How large is it?"), strict=True):
        ax.set_title(title, pad=36, fontweight="bold")  # above the legend
    figure.savefig(HERE / "_static" / "readme.png", dpi=110, facecolor="white")


if __name__ == "__main__":
    main()
