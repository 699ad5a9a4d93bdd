"""Blocks of rows in time whose length is taken from the data: long enough for what is seen, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from commands import run
from cpmmd import two_sample_test
from cpmmd.data.dependence import block_length
from cpmmd.data.pool import read_pool
from cpmmd.errors import InputError
from helpers import autoregressive, most_rejections, shared_data


def _length_by_hand(x, y):
    """The rule, column by column and lag by lag."""
    longest = 1.0
    for j in range(x.shape[1]):
        ranks = [rankdata(part[:, j]) for part in (x, y)]
        centred = [r - r.mean() for r in ranks]
        centred = [c / np.sqrt(np.mean(c**2)) for c in centred]
        total, missed, variance = len(x) + len(y), 0.0, 1.0
        for k in range(1, min(len(x), len(y))):
            r = sum(float(c[k:] @ c[:-k]) for c in centred) / total
            if r <= 2 / np.sqrt(total):
                break
            missed, variance = missed + 2 * k * r, variance + 2 * r
        longest = max(longest, missed / (0.1 * variance))
    return int(np.ceil(longest))


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9])
def test_the_length_misses_a_tenth_of_the_long_run_variance(coefficient):
    rng = np.random.default_rng(3)
    x, y = autoregressive(rng, 400, 3, coefficient), autoregressive(rng, 300, 3, coefficient)
    assert block_length(read_pool(x, y)) == _length_by_hand(x, y)


def test_the_length_does_not_see_a_difference_between_the_samples():
    rng = np.random.default_rng(4)
    x, y = autoregressive(rng, 400, 3, 0.8), autoregressive(rng, 300, 3, 0.8)
    assert block_length(read_pool(x, 5 - 3 * y)) == block_length(read_pool(x, y)) > 20


def test_samples_too_short_for_their_dependence_are_refused_with_what_helps(tmp_path):
    rng = np.random.default_rng(5)
    x, y = autoregressive(rng, 160, 3, 0.95), autoregressive(rng, 160, 3, 0.95)
    with pytest.raises(InputError, match=r"blocks must be \d+ rows long: take \d+ rows of each sample.*groups=.*blocks=40"):
        two_sample_test(x, y, method="median", blocks="auto", rng=0)
    for name, rows in (("a", x), ("b", y)):
        pd.DataFrame(rows, columns=list("uvw")).to_csv(tmp_path / f"{name}.csv", index=False)
    done = run("test", tmp_path / "a.csv", tmp_path / "b.csv", "--method", "median", "--blocks", "auto")
    assert done.exit_code == 2
    assert "name separate runs with --group-by (shorter blocks, --blocks 40," in done.stderr.replace("\n", " ")
    assert two_sample_test(x, y, method="median", blocks=40, rng=0).design.units == (4, 4)  # asked for by name


def test_processes_of_normal_and_faulty_operation():
    """Two long normal runs are not told apart, and a fault is; rows one by one would tell all runs apart."""
    arrays = np.load(shared_data("tep.npz"))
    train, steady, fault = (arrays[name].astype(float) for name in ("normal_train", "normal_test", "fault04_test"))
    normal = two_sample_test(train, steady, blocks="auto", rng=0)
    assert not normal.reject
    assert normal.design.block_rows > 100
    assert two_sample_test(train, steady, method="median", scale="standard", rng=0).reject
    assert two_sample_test(steady, fault[160:], blocks="auto", rng=0).reject


@pytest.mark.statistical
@pytest.mark.parametrize(("rows", "coefficient"), [(500, 0.5), (1500, 0.9)])
def test_level_where_it_answers(rows, coefficient):
    """1000 repetitions at .05. Approximate by nature: a tenth of the variance is missed, so .075 plus three standard errors."""
    rng, answers = np.random.default_rng(rows), []
    for _ in range(1000):
        x, y = autoregressive(rng, rows, 3, coefficient), autoregressive(rng, rows, 3, coefficient)
        try:
            answers.append(two_sample_test(x, y, method="median", blocks="auto", n_permutations=99, rng=rng).reject)
        except InputError:
            continue
    assert len(answers) >= 500
    assert sum(answers) <= most_rejections(len(answers), 0.075)
