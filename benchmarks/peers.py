"""Our MMDAgg and MMD-FUSE against the bare matrix products of the authors' algorithms, one thread, defaults, d = 28."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks.timing import best_times, report
from cpmmd import two_sample_test
from cpmmd.core.parallel import threads

KERNELS = 20


def authors_products(size: int, columns: int, products: int) -> None:
    """The products of the authors' algorithm: KERNELS times ``products`` of K (size x size) with its labels."""
    rng = np.random.default_rng(0)
    K, W = rng.random((size, size)), rng.random((size, columns))
    for _ in range(KERNELS * products):
        K @ W


def peak_memory(method: str, n: int) -> float:
    """Return the peak memory in MB of one test in a process of its own, above the interpreter with its imports."""
    code = (
        "import resource, numpy as np\nfrom cpmmd import two_sample_test\nrng = np.random.default_rng(0)\n"
        "two_sample_test(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), method='median')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"two_sample_test(rng.normal(size=({n}, 28)), rng.normal(size=({n}, 28)), method={method!r}, rng=0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return int(out) / 1024


def main() -> None:
    """Measure times at 200 and 1000 rows, memory at 2000."""
    rng = np.random.default_rng(0)
    with threads(1):
        for n, rounds in ((200, 3), (1000, 1)):
            x, y = rng.normal(size=(n, 28)), rng.normal(size=(n, 28))
            times = best_times(
                {
                    "mmdagg": lambda x=x, y=y: two_sample_test(x, y, method="mmdagg", rng=0),
                    "mmdagg products": lambda n=n: authors_products(2 * n, 4001, 1),
                    "mmdfuse": lambda x=x, y=y: two_sample_test(x, y, method="mmdfuse", rng=0),
                    "mmdfuse products": lambda n=n: authors_products(2 * n, 2001, 3),
                },
                rounds,
            )
            for name in ("mmdagg", "mmdfuse"):
                bare = times[f"{name} products"]
                report(f"{name}, {n} v {n}, one thread", times[name], bare, "the authors' bare products", "small")
    for name in ("mmdagg", "mmdfuse"):
        print(f"{name}, 2000 v 2000: peak {peak_memory(name, 2000):.0f} MB above the interpreter (wanted < 500)")


if __name__ == "__main__":
    main()
