"""What spectral parameters add to the paper's linear test: ``SplitTest(gammas=...)`` beside ``cp-linear``.

Same draws, same kernels.

``python -m benchmarks.spectral_split`` writes ``results/spectral_split.csv``; resumable.
"""

from __future__ import annotations

import csv

from benchmarks import RESULTS
from benchmarks.draws import decisions, draw_study, finish
from cpmmd import SplitTest
from experiments.panels import PANELS

GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4)
STANDARDISED = ("higgs n=200",)
NAMES = ("mixture .10 n=200", "correlation d=6 n=200", "mnist Q2 n=80", "mean d=20 n=75", "scale d=10 n=100", *STANDARDISED)
DRAWS = range(700, 800)  # no other benchmark has these


def main() -> None:
    """Run (or continue), write the table."""
    with (RESULTS / "spectral_split.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["panel", "cp-linear", "with gamma 1e-1 to 1e-4", "draws"])
        for name in NAMES:
            scale = "standard" if name in STANDARDISED else None
            methods = {"plain": SplitTest(scale=scale), "spectral": SplitTest(scale=scale, gammas=GAMMAS)}
            study = draw_study(f"spectral split {name}", {name: PANELS[name]}, methods, DRAWS, {"n_permutations": 199})
            stem = name.replace(" ", "_").replace("=", "").replace(".", "")
            found = decisions(finish(study, f"spectral_split_{stem}.jsonl", jobs=1))
            plain, spectral = (found[name, method] for method in methods)
            out.writerow([name, f"{sum(plain) / len(plain):.2f}", f"{sum(spectral) / len(spectral):.2f}", len(plain)])


if __name__ == "__main__":
    main()
