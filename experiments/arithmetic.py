"""One arithmetic for every processor: what a product of matrices rounds to must not depend on the machine.

MKL, OpenBLAS and torch choose their instructions by the processor, and instructions differ in the last digit. A hundred steps
of training carry that digit to the first ones of a criterion, so that networks trained elsewhere were others. The variables
below choose for them: MKL's branch that Intel promises to be the same everywhere, OpenBLAS's and torch's for AVX2, which
processors have since 2013. They are read when a library is loaded, so a run begins anew under them. It costs a cp-deep test
up to half its time again; what measures times runs without.
"""

from __future__ import annotations

import os
import subprocess
import sys

FIXED = {"MKL_CBWR": "COMPATIBLE", "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2"}


def fixed() -> bool:
    """Whether this process was started under the one arithmetic."""
    return all(os.environ.get(name) == value for name, value in FIXED.items())


def start_again_fixed() -> None:
    """Put the same command in the place of this process, under the one arithmetic; nothing if it is."""
    if not fixed():
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **FIXED})


def elsewhere_free(arguments: list[str]) -> int:
    """Run ``python -m experiments`` in a process that takes the fastest instructions; give its exit code."""
    free = {name: value for name, value in os.environ.items() if name not in FIXED}
    return subprocess.run([sys.executable, "-m", "experiments", *arguments], env=free, check=False).returncode
