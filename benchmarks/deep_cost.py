"""Cost of a whole cp-deep test against its bare batched products, and of batched against one-by-one calibration."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import best_times, report
from cpmmd import Ascent, ComplexityPenalized, Deep, Plain, SplitTest, two_sample_test
from cpmmd.core.parallel import threads
from cpmmd.data.preparation import PreparedPool
from cpmmd.draws.labels import draw_labels
from cpmmd.selection.ascent import AscentSelector

D, WIDTH, OUT, STEPS, MEMBERS = 28, 200, 10, 100, 10


def bare_products(members: int, rows: int) -> None:
    """The matrix products of STEPS steps of training, forward and backward, and nothing else."""
    sizes = [(D, WIDTH), (WIDTH, WIDTH), (WIDTH, OUT)]
    inputs = [torch.randn(members, rows, a) for a, _ in sizes]
    weights = [torch.randn(members, a, b) for a, b in sizes]
    grads = [torch.randn(members, rows, b) for _, b in sizes]
    features, gram = torch.randn(members, rows, OUT), torch.randn(members, rows, rows)
    for _ in range(STEPS):
        for layer, (x, w, g) in enumerate(zip(inputs, weights, grads, strict=True)):
            torch.bmm(x, w)
            torch.bmm(x.mT, g)
            if layer:
                torch.bmm(g, w.mT)
        torch.bmm(features, features.mT)
        torch.bmm(gram, features)


def main() -> None:
    """Measure, with the same number of threads on both sides."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, D)), rng.normal(0.3, 1, size=(200, D))
    test = SplitTest(Deep(), ComplexityPenalized(n_calibration=MEMBERS), ascent=Ascent(steps=STEPS))
    train = PreparedPool(np.vstack([x[:100], y[:100]]), 100)
    labels = draw_labels(200, 100, MEMBERS, rng)
    selector = AscentSelector(Deep(), Ascent(steps=STEPS))

    def products() -> None:
        bare_products(MEMBERS, 200)
        bare_products(1, 200)

    def one_by_one() -> None:
        for row in labels:
            selector.maxima(train, row[None], Plain(), np.random.default_rng(0))

    for count in (1, 2):
        torch.set_num_threads(count)
        with threads(count):
            times = best_times(
                {
                    "test": lambda: two_sample_test(x, y, method=test, rng=0),
                    "products": products,
                    "batched": lambda: selector.maxima(train, labels, Plain(), np.random.default_rng(0)),
                    "one by one": one_by_one,
                }
            )
        print(f"-- {count} thread(s)")
        report("whole cp-deep test, 200 v 200, d = 28", times["test"], times["products"], "bare products", "<= 3.5")
        report("one-by-one calibration", times["one by one"], times["batched"], "batched", ">= 3")


if __name__ == "__main__":
    main()
