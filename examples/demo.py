"""A real two-sample test in a minute: what `make demo` runs."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from cpmmd import two_sample_test


def main() -> None:
    """Compare tumours that differ, then tumours that do not."""
    data = load_breast_cancer()
    benign, malignant = data.data[data.target == 1], data.data[data.target == 0]
    print(
        f"Breast cancer data of scikit-learn: {len(benign)} benign and {len(malignant)} malignant tumours, 30 measurements each."
    )

    print("\nBenign against malignant, 60 of each:\n")
    rng = np.random.default_rng(0)
    some = rng.permutation(benign)[:60], rng.permutation(malignant)[:60]
    print(two_sample_test(*some, rng=0))

    print("\nBenign against benign, two halves at random:\n")
    shuffled = rng.permutation(benign)
    print(two_sample_test(shuffled[:178], shuffled[178:], rng=0))


if __name__ == "__main__":
    main()
