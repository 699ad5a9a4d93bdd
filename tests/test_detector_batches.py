"""What a feed may bring: other orders, types and categories are handled, what does not fit is named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cpmmd import DriftDetector
from cpmmd.errors import InputError
from helpers import mixed_frame

DATA = np.random.default_rng(0)
REFERENCE, SAME = DATA.normal(size=(120, 3)), DATA.normal(size=(50, 3))
FRAME, BATCH = mixed_frame(DATA, 100), mixed_frame(DATA, 40)


def summary(answer):
    return answer.pvalue, answer.statistic, answer.result.seed, answer.rows


MODES = pytest.mark.parametrize("fitted", [{}, {"example": mixed_frame(np.random.default_rng(1), 40)}], ids=["own", "frozen"])


def answers(fitted, batch, **options):
    return DriftDetector("median", n_permutations=99, rng=0, scale="standard", **options).fit(FRAME, **fitted).test(batch)


@MODES
@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda b: b.select(b.columns[::-1]), None),
        (lambda b: b.to_pandas(), None),
        (lambda b: b.to_arrow(), None),
        (lambda b: b.with_columns(pl.col("count").cast(pl.Float32), pl.col("on").cast(pl.Int8)), None),
        (lambda b: b.with_columns(pl.col("colour").cast(pl.Categorical)), None),
        (lambda b: b.with_columns(extra=pl.Series([[1]] * len(b)), x=1), "ignored: 'extra', 'x'"),
        (
            lambda b: b.with_columns(pl.col("size", "count").cast(pl.String)),
            "text converted to numbers in columns 'size', 'count'",
        ),
        (lambda b: b.with_columns(pl.col("on").cast(pl.String)), "text converted to numbers in columns 'on'"),
        (lambda b: b.with_columns(pl.col("day").cast(pl.String)), "text converted to dates in columns 'day'"),
    ],
    ids=["order", "pandas", "arrow", "number types", "categorical", "extra", "numeric text", "truth as text", "date text"],
)
def test_the_same_rows_in_another_form_give_the_same_answer(fitted, change, note):
    plain, changed = answers(fitted, BATCH), answers(fitted, change(BATCH))
    assert summary(changed) == summary(plain)
    assert [note in n for n in changed.notes] == [True] if note else changed.notes == ()


@MODES
def test_unseen_categories_are_a_difference_of_their_own_and_named(fitted):
    new = BATCH.with_columns(colour=pl.Series(["mauve", "puce"] * 20))
    answer = answers(fitted, new)
    assert answer.reject
    assert answer.notes == ("column 'colour': 40 rows hold categories unseen in the reference: 'mauve', 'puce'",)


def test_whole_numbers_are_read_as_the_categories_they_name():
    reference = pl.DataFrame({"code": ["1", "2", "3"] * 20})
    detector = DriftDetector("median", rng=0).fit(reference)
    as_text, as_numbers = pl.DataFrame({"code": ["3", "1"] * 9}), pa.table({"code": [3.0, 1.0] * 9})
    assert summary(detector.test(as_text)) == summary(detector.test(as_numbers))
    with pytest.raises(InputError, match="'code' holds text in the reference"):
        detector.test(pl.DataFrame({"code": [7, 8, 9]}))


@MODES
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda b: b.drop("size", "on"), "lacks 'size', 'on'"),
        (lambda b: b.rename({"colour": "color"}), "Is 'colour' its 'color'"),
        (lambda b: b.with_columns(size=pl.lit("big")), "such as 'big'"),
        (lambda b: b.with_columns(day=pl.lit("yesterday")), "such as 'yesterday'"),
        (lambda b: b.with_columns(day=1), "'day' holds dates in the reference. The batch has numbers"),
        (lambda b: b.with_columns(size="day"), "'size' holds numbers in the reference. The batch has dates"),
        (lambda b: b.with_columns(colour="day"), "'colour' holds text in the reference. The batch has dates"),
        (lambda b: b.with_columns(size=pl.Series([[1.0]] * len(b))), "It lacks 'size'. The batch has vectors in 'size'"),
        (lambda b: b.with_columns(size=pl.lit(None)), "must not be missing"),
        (lambda b: b.with_columns(colour=pl.lit(None)), "must not be missing"),
        (lambda b: b.with_columns(size=np.inf), "must be finite"),
        (lambda b: b.head(1), "at least 2 rows"),
        (lambda b: b.head(0), "at least 2 rows"),
        (lambda b: b.lazy().select("none"), "could not be read by polars"),
        (lambda b: np.zeros((len(b), 5)), "matched by column name"),
        (lambda _: None, "an array of rows or a data frame"),
    ],
)
def test_what_does_not_fit_is_named_with_what_to_do(fitted, change, sentence):
    with pytest.raises(InputError, match=sentence):
        answers(fitted, change(BATCH))


@MODES
def test_missing_values_are_dropped_or_filled_in_when_asked(fitted):
    holes = BATCH.with_columns(size=pl.when(pl.int_range(40) < 10).then(None).otherwise("size"), colour=pl.lit(None))
    filled = answers(fitted, holes, missing="impute")
    assert filled.rows == 40
    assert filled.reject  # no colour at all is a difference
    few = BATCH.with_columns(size=pl.when(pl.int_range(40) < 10).then(None).otherwise("size"))
    dropped = answers(fitted, few, missing="drop")
    assert dropped.rows == 30
    assert dropped.notes == ("10 of 40 rows of the batch dropped for missing values",)
    assert dropped.pvalue > 0.05


def test_arrays_are_taken_by_position_and_checked():
    detector = DriftDetector("median", rng=0).fit(REFERENCE)
    expected = summary(detector.test(SAME))
    named = detector.test(pd.DataFrame(SAME, columns=["a", "b", "c"]))
    assert summary(named) == expected
    assert "by position" in named.notes[0]
    assert summary(detector.test(SAME.tolist())) == expected
    text = detector.test(SAME.astype(str))
    assert summary(text) == expected
    assert text.notes == ("text converted to numbers",)
    unlabelled = DriftDetector("median", rng=0).fit(pd.DataFrame(REFERENCE))
    assert unlabelled.test(pd.DataFrame(SAME)[[2, 0, 1]]).pvalue == unlabelled.test(pd.DataFrame(SAME)).pvalue
    for bad, sentence in [(SAME[:, :2], "3 columns. Got 2"), (SAME.reshape(-1, 3, 1), "shape"), ([["a", "b", "c"]] * 3, "text")]:
        with pytest.raises(InputError, match=sentence):
            detector.test(bad)
