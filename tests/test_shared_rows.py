"""Rows that stand in both samples stay on one side of a split, so that trained tests keep their level."""

import numpy as np
import polars as pl
import pytest

from cpmmd import MedianTest, SplitTest, methods, two_sample_test
from cpmmd.data.pool import read_pool
from cpmmd.data.splitting import shared_records
from helpers import light, most_rejections

TRAINED = [method for method in methods() if light(method) is not method]


def sharing(rng, share, rows=40):
    """Two samples of which a share of the rows is the same."""
    x, y = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 3))
    count = round(share * rows)
    y[:count] = x[rng.permutation(rows)[:count]]
    return x, y[rng.permutation(rows)]


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("method", [SplitTest(), MedianTest(split=True)], ids=["split", "median"])
def test_copies_of_a_record_are_on_one_side(method, share):
    x, y = sharing(np.random.default_rng(0), share)
    result = two_sample_test(x, y, method=method, rng=0, n_permutations=99)
    trained, tested = (
        {tuple(row) for row in np.vstack([x, y])[rows]} for rows in (result.evidence.trained, result.evidence.tested)
    )
    assert not trained & tested
    assert len(result.evidence.trained) + len(result.evidence.tested) == 80
    assert any(f"{round(40 * share)} rows are in both samples" in note for note in result.notes)


def test_without_shared_records_nothing_changes():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    assert (shared_records(read_pool(x, y)) == -1).all()
    discrete = rng.integers(0, 3, size=(40, 2))
    assert (shared_records(read_pool(discrete, discrete)) == -1).all()


def test_rows_are_equal_in_every_column_text_among_them():
    frame = pl.DataFrame({"a": np.arange(20.0), "b": [f"t{i}" for i in range(20)]})
    other = frame.with_columns(pl.when(pl.col("a") < 5).then(pl.lit("new")).otherwise(pl.col("b")).alias("b"))
    records = shared_records(read_pool(frame, other))
    assert (records[:20] >= 0).tolist() == [False] * 5 + [True] * 15


def rejections(method, share, repetitions):
    count = 0
    for repetition in range(repetitions):
        data, test = np.random.default_rng([17, repetition]).spawn(2)
        count += two_sample_test(*sharing(data, share), method=light(method), rng=test, n_permutations=39).reject
    return count


@pytest.mark.parametrize("method", ["cp-deep", "liu", "liu-mixture"])
def test_a_sample_against_itself_is_not_rejected(method):
    # The trained kernels used to reject 22 of 25, 29 of 40 and 17 of 25.
    pytest.importorskip("torch")
    assert rejections(method, 1.0, 25) <= 2


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("method", TRAINED)
def test_level_of_trained_methods_with_shared_rows(method, share):
    # 400 repetitions: at .05 the bound is 20 + 3 * 4.36 = 33 rejections.
    pytest.importorskip("torch")
    assert rejections(method, share, 400) <= most_rejections(400, 0.05)
