"""Ten stored pairs: the p-value of every method stays what it was, to the last digit.

Made with 199 relabelings and rng = the number of the pair, before the tree was reorganised; those of ``cp-full`` when its classes
got spectral parameters, when it got classes of columns and of their products; those of trained methods under the one arithmetic
of ``experiments.arithmetic``, without which a hundred steps of Adam turn the last digit of a processor into another kernel
(``python tests/test_stored_answers.py`` prints them).
"""

import json
import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from cpmmd import two_sample_test
from experiments.arithmetic import FIXED

STORED = Path(__file__).parent / "stored"
PVALUES = json.loads((STORED / "pvalues.json").read_text())
METHODS = list(next(iter(PVALUES.values())))
TRAINED = [m for m in METHODS if m.endswith(("-deep", "-mixture")) or m == "liu"]


def answer(pair, method):
    number = list(PVALUES).index(pair)
    with np.load(STORED / "pairs.npz", allow_pickle=False) as data:
        x, y = data[f"{number}_x"], data[f"{number}_y"]
    return two_sample_test(x, y, method=method, n_permutations=199, rng=number, n_jobs=1)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in TRAINED])
@pytest.mark.parametrize("pair", PVALUES)
def test_the_p_value_is_the_stored_one(pair, method):
    assert answer(pair, method).pvalue == PVALUES[pair][method]


@pytest.fixture(scope="module")
def trained_under_one_arithmetic():
    """The answers of the trained methods, from a process that loads its libraries under the fixed variables."""
    pytest.importorskip("torch")
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("the one arithmetic is one of x86-64 processors")
    ran = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, **FIXED, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


@pytest.mark.statistical
@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize("pair", PVALUES)
def test_the_p_value_of_a_trained_method_is_the_stored_one(pair, method, trained_under_one_arithmetic):
    assert trained_under_one_arithmetic[pair][method] == PVALUES[pair][method]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({pair: {method: answer(pair, method).pvalue for method in TRAINED} for pair in PVALUES}))
