"""Data are read as what they are, or refused with a sentence: never as something else."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cpmmd import CpmmdError, two_sample_test
from cpmmd.data.pool import read_pool
from cpmmd.data.table import read_table

NA = pd.NA
ROWS = 40
RNG = np.random.default_rng(0)


def test_what_is_masked_is_missing():
    values = np.ma.masked_array(RNG.normal(size=(ROWS, 2)), mask=np.zeros((ROWS, 2), bool))
    values[3, 1] = np.ma.masked
    table = read_table(values, "x")
    assert np.argwhere(np.isnan(np.asarray(table.numbers))).tolist() == [[3, 1]]
    with pytest.raises(CpmmdError, match="row 3 of sample x"):
        two_sample_test(values, RNG.normal(size=(ROWS, 2)))
    whole = np.ma.masked_array(np.arange(6).reshape(3, 2), mask=[[0, 0], [1, 0], [0, 0]])
    assert np.isnan(np.asarray(read_table(whole, "x").numbers)).sum() == 1


def test_nat_is_missing_in_arrays_of_dates():
    dates = np.array(["2024-01-01", "NaT", "2024-01-03"], dtype="datetime64[D]")
    assert np.isnan(np.asarray(read_table(dates, "x").numbers)).ravel().tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", ["category", object])
def test_whole_numbers_stay_the_same_categories_beside_a_missing_one(dtype):
    codes = RNG.integers(0, 3, 200).tolist()
    with_gap = [*map(float, codes[:-1]), np.nan]
    texts = ["a", *["b"] * 199]  # keeps an object column from being numbers
    x = pd.DataFrame({"c": pd.Series(codes, dtype=dtype), "t": texts})
    y = pd.DataFrame({"c": pd.Series(with_gap, dtype=dtype), "t": texts})
    levels = [set(filter(None, pool)) for pool in (read_table(f, "x").categories.get("c", ()) for f in (x, y))]
    assert levels[0] == levels[1]


@pytest.mark.parametrize("values", [[1, "a", 2.5], ["a", np.float64(1.5), None], [True, "a", 1], [np.int64(3), "3", NA]])
def test_numbers_beside_text_are_refused_as_in_files(values):
    frame = pd.DataFrame({"c": pd.Series(values * 5, dtype=object), "v": np.arange(15.0)})
    said = (
        r"numbers or text, not both. Column 'c' of sample x has \d+ numbers and text, the first '.' in row [01].*\.astype\(str\)"
    )
    with pytest.raises(CpmmdError, match=said):
        two_sample_test(frame, frame)
    text = frame.assign(c=[None if v is None or v is NA else str(v) for v in frame["c"]])
    assert two_sample_test(text, text, rng=0, method="median", n_permutations=19, missing="drop").pvalue > 0.05


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 1.0, None], "number"),
        ([np.int64(1), 2.5, True], "number"),
        ([True, False, None], "number"),
        (["a", "1", None], "category"),
        ([True, "unknown", np.bool_(False)], "category"),
    ],
)
def test_objects_of_one_kind_are_read_as_that(values, kind):
    table = read_table(pd.DataFrame({"c": pd.Series(values, dtype=object)}), "x")
    assert ("category" if "c" in table.categories else "number") == kind


def test_objects_of_one_value_are_one_category():
    categories = [read_table(pd.DataFrame({"c": pd.Categorical([one, "a", "b"])}), "x").categories["c"] for one in (1, 1.0)]
    assert categories[0].tolist() == categories[1].tolist() == ["1", "a", "b"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b", NA] * 5, dtype="string"),
        pd.Series([True, False, NA] * 5, dtype="boolean"),
        pd.Series([True, False, NA] * 5, dtype="bool[pyarrow]"),
        pd.Series([1, 2, NA] * 5, dtype=object),
        pd.Series(["a", "b", NA] * 5, dtype=object),
        pd.Series([1, 2, NA] * 5, dtype="Int64"),
        pd.Series([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), NA] * 5, dtype="date32[pyarrow]"),
    ],
    ids=["string", "boolean", "arrow", "object numbers", "object text", "Int64", "dates"],
)
def test_pandas_na_is_a_missing_value(column):
    frame = pd.DataFrame({"c": column, "n": np.arange(15.0)})
    with pytest.raises(CpmmdError, match=r"must not be missing.*5 in 'c' of sample x"):
        two_sample_test(frame, frame)
    assert two_sample_test(frame, frame, missing="drop", rng=0).sizes == (10, 10)


@pytest.mark.parametrize(
    "data",
    [
        np.array([[2**53 + 1], [3], [4]]),
        pd.DataFrame({"id": [2**60 + 1, 2, 3]}),
        pl.DataFrame({"id": [2**60 + 1, 2, 3]}),
        pd.DataFrame({"id": pd.Series([10**400, 2, 3], dtype=object)}),
        np.array([[10**400], [2], [3]], dtype=object),
        np.array([2**63 + 5, 2, 3], dtype=np.uint64),
        pl.DataFrame({"id": [2**60 + 1, 2, None]}),
        pd.DataFrame({"id": pd.Series([2**60 + 1, 2, None], dtype="int64[pyarrow]")}),
    ],
    ids=["array", "pandas", "polars", "object column", "object array", "uint64", "beside a gap", "Arrow beside a gap"],
)
def test_whole_numbers_that_doubles_cannot_hold_are_refused(data):
    with pytest.raises(CpmmdError, match=r"within 2\^53"):
        read_pool(data, data)


def test_whole_numbers_that_doubles_hold_are_kept():
    assert np.asarray(read_table(np.array([2**53, -(2**53)]), "x").numbers).ravel().tolist() == [2.0**53, -(2.0**53)]


def test_arrow_columns_without_a_type_get_a_sentence():
    with pytest.raises(CpmmdError):
        two_sample_test(pa.table({"a": pa.nulls(5)}), pa.table({"a": pa.nulls(5)}))


def test_cells_that_hold_arrays_of_different_lengths_get_a_sentence():
    frame = pd.DataFrame({"a": pd.Series([np.arange(k) for k in range(1, 6)], dtype=object)})
    with pytest.raises(CpmmdError, match="'a' of sample x"):
        two_sample_test(frame, frame)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_time_zones_are_moments(zone):
    moments = pd.date_range("2024-03-01", periods=ROWS, freq="7h", tz="UTC")
    here, there = pd.DataFrame({"t": moments}), pd.DataFrame({"t": moments.tz_convert(zone)})
    np.testing.assert_allclose(np.asarray(read_table(here, "x").numbers), np.asarray(read_table(there, "y").numbers))
    polars = pl.DataFrame({"t": moments.tz_convert(None).to_numpy()}).with_columns(
        pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    )
    np.testing.assert_allclose(np.asarray(read_table(polars, "x").numbers), np.asarray(read_table(here, "y").numbers))


@pytest.mark.parametrize("make", ["bfloat16", "float8", "sparse"])
def test_tensors_of_any_type_are_numbers(make):
    torch = pytest.importorskip("torch")
    values = torch.tensor([[1.0, 0.0], [0.5, 2.0], [0.0, 4.0]])
    kinds = {
        "bfloat16": lambda: values.bfloat16(),
        "float8": lambda: values.to(torch.float8_e4m3fn),
        "sparse": lambda: values.to_sparse(),
    }
    assert np.asarray(read_table(kinds[make](), "x").numbers).tolist() == values.tolist()
