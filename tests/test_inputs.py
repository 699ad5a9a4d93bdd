"""Every kind of table gives the same matrix, and preparation sees only the rows it may."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cpmmd import CpmmdError, DriftDetector, DriftMonitor, two_sample_test
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import read_table

ROWS = [[1.0, 2.0], [3.0, 4.5], [-1.0, 0.0]]


@pytest.mark.parametrize(
    "convert",
    [
        np.array,
        lambda r: r,
        lambda r: np.array(r, dtype=np.float32),
        lambda r: np.array(r, dtype=object),
        lambda r: pd.DataFrame(r, columns=["a", "b"]),
        lambda r: pl.DataFrame(r, schema=["a", "b"], orient="row"),
        lambda r: pa.table({"a": [x[0] for x in r], "b": [x[1] for x in r]}),
    ],
    ids=["numpy", "list", "float32", "object", "pandas", "polars", "pyarrow"],
)
def test_every_kind_of_table_is_read(convert):
    np.testing.assert_allclose(read_table(convert(ROWS), "x").numbers, ROWS)


def test_torch_tensors_are_read():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(ROWS, requires_grad=True)
    np.testing.assert_allclose(read_table(tensor, "x").numbers, ROWS)


COLUMNS = [[1, 2, 3], np.arange(3), pd.Series([1, 2, 3]), pl.Series([1, 2, 3])]


@pytest.mark.parametrize("data", COLUMNS, ids=lambda d: type(d).__module__)
def test_one_dimensional_data_is_one_column(data):
    assert read_table(data, "x").numbers.shape == (3, 1)


def test_images_are_flattened_and_remember_their_shape():
    table = read_table(np.zeros((5, 8, 8), dtype=np.uint8), "x")
    assert table.numbers.shape == (5, 64)
    assert table.row_shape == (8, 8)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_are_matched_by_name(frame):
    x = frame({"a": [1.0, 2, 3], "b": [10.0, 20, 30]})
    y = frame({"b": [1.0, 2, 3], "a": [10.0, 20, 30]})
    samples = read_pool(x, y)
    np.testing.assert_array_equal(samples.numbers[3:], [[10, 1], [20, 2], [30, 3]])


def mixed(rows, kind=pl):
    return kind.DataFrame(
        {
            "number": [1.5, None, 2.5, 9.0][:rows],
            "flag": [True, False, None, True][:rows],
            "colour": ["red", None, "blue", "red"][:rows],
            "day": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3), None, dt.datetime(2024, 1, 2)][:rows],
        }
    )


@pytest.mark.parametrize("kind", [pd, pl])
def test_mixed_columns_are_encoded(kind):
    samples = read_pool(mixed(4, kind), mixed(4, kind), missing="impute")
    preparation = Preparation.fit(samples)
    assert preparation.features == (
        "number", "flag", "day", "number (missing)", "flag (missing)", "day (missing)",
        "colour=(missing)", "colour=blue", "colour=red",
    )  # fmt: skip
    assert preparation.feature_columns[-3:] == ("colour",) * 3
    matrix = preparation.transform(samples)
    assert matrix[1, 0] == 2.5  # the median of 1.5, 2.5, 9
    np.testing.assert_allclose(matrix[[0, 1, 3], 2], [-1, 1, 0])  # days from the median day
    red, blue = matrix[0, -3:], matrix[2, -3:]
    assert np.linalg.norm(red - blue) == pytest.approx(1.0)


def test_pandas_categories_and_arrow_text_are_categories():
    x = pd.DataFrame({"c": pd.Categorical(["u", "v", "u"]), "n": [1, 2, 3]})
    y = pa.table({"c": ["v", "v", "u"], "n": [1, 2, 3]})
    assert set(read_pool(x, y).categories) == {"c"}


def test_preparation_is_fitted_on_the_given_rows_only():
    samples = read_pool(
        pl.DataFrame({"n": [0.0, 2.0, 1000.0], "c": ["a", "a", "never"]}), pl.DataFrame({"n": [4.0, 6.0, -999.0], "c": ["b"] * 3})
    )
    rows = np.array([0, 1, 3, 4])
    preparation = Preparation.fit(samples, rows, scale="standard")
    np.testing.assert_allclose(preparation.transform(samples, rows)[:, 0], (np.array([0, 2, 4, 6]) - 3) / np.sqrt(5))
    assert preparation.levels["c"] == ("a", "b")
    np.testing.assert_array_equal(preparation.transform(samples, np.array([2]))[0, 1:], 0)  # an unseen level


def _codes(count: int, repeats: int = 1, first: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"c": [f"id{i}" for i in range(first, first + count)] * repeats})


def test_many_levels_are_kept_apart_and_their_features_are_capped():
    few = Preparation.fit(read_pool(_codes(300), _codes(300)))
    assert len(few.features) == 300
    assert not few.pooled
    samples = read_pool(_codes(1500), _codes(1500))
    many = Preparation.fit(samples)
    assert len(many.features) <= 512
    assert many.pooled == ("c",)
    matrix = many.transform(samples)
    np.testing.assert_allclose(np.square(matrix).sum(axis=1), 0.5)
    np.testing.assert_array_equal(matrix[:1500], matrix[1500:])
    assert len(np.unique(matrix[:1500], axis=0)) > 500  # a level that is not kept still has a feature by its name
    assert any("column 'c' has 1,500 levels: the rare ones are pooled" in note for note in samples.notes)


def test_levels_of_one_row_share_a_feature():
    samples = read_pool(_codes(60, repeats=2), pl.DataFrame({"c": [f"new{i}" for i in range(40)]}))
    preparation = Preparation.fit(samples)
    assert preparation.features[-1] == "c=(other)"
    assert len(preparation.features) == 61
    np.testing.assert_allclose(preparation.transform(samples)[-40:, -1], np.sqrt(0.5))


def test_rows_that_are_many_have_fewer_features_of_levels():
    samples = read_pool(_codes(1000, repeats=100), _codes(1000, repeats=100))
    assert 50 <= len(Preparation.fit(samples).features) <= 2**24 // 200_000


def _products(rng: np.random.Generator, moved: float = 0.0, levels: int = 200, rows: int = 400) -> pd.DataFrame:
    """Return rows of a product code, a share of them moved to 20 new ones."""
    codes = np.array([f"p{i}" for i in rng.integers(0, levels, rows)], dtype=object)
    new = rng.random(rows) < moved
    codes[new] = [f"new{i}" for i in rng.integers(0, 20, new.sum())]
    return pd.DataFrame({"code": codes})


@pytest.mark.parametrize("method", ["cp-full", "median", "cp-linear"])
def test_new_levels_are_found_among_many(method):
    rng = np.random.default_rng(0)
    x, y = _products(rng, rows=1000), _products(rng, moved=0.2, rows=1000)
    assert two_sample_test(x, y, method=method, n_permutations=99, rng=0).reject


def test_a_detector_finds_new_levels_among_many():
    rng = np.random.default_rng(1)
    for method, example in (("median", None), ("cp-linear", _products(rng, moved=0.5))):
        detector = DriftDetector(method=method, n_permutations=99, rng=0).fit(_products(rng), example=example)
        assert detector.test(_products(rng, moved=0.2)).reject
        assert not detector.test(_products(rng)).reject


def test_a_monitor_finds_new_levels_among_many():
    rng = np.random.default_rng(2)
    monitor = DriftMonitor(method="median", n_permutations=999, rng=0).fit(_products(rng))
    answers = [monitor.update(_products(rng, moved=0.2)) for _ in range(6)]
    assert answers[-1].alarm


def test_levels_of_a_few_rows_hold_the_level_where_many_are_pooled():
    # 100 nulls at .05: 13 rejections or more happen once in 600.
    rng = np.random.default_rng(3)
    draws = ((_products(rng, levels=3000), _products(rng, levels=3000)) for _ in range(100))
    assert sum(two_sample_test(x, y, method="median", n_permutations=39, rng=0).reject for x, y in draws) < 13


def test_dropping_rows_is_reported():
    x = pl.DataFrame({"a": [1.0, None, 3.0, 4.0], "c": ["u", "v", None, "u"]})
    y = pl.DataFrame({"a": [1.0, 2.0, 3.0], "c": ["u", "v", "u"]})
    samples = read_pool(x, y, missing="drop")
    assert (samples.m, samples.n) == (2, 3)
    assert samples.notes == ("2 of 4 rows of sample x dropped for missing values",)


def test_missingness_itself_can_differ():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    y[rng.random(200) < 0.5, 0] = np.nan
    assert two_sample_test(x, y, missing="impute", method="median", rng=0).reject


BAD = {
    "different widths": (np.zeros((5, 2)), np.zeros((5, 3)), "same columns"),
    "different names": (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"b": [1, 2]}), "only in sample x: 'a'"),
    "one row": (np.zeros((1, 2)), np.zeros((5, 2)), "at least 2 rows"),
    "empty": (np.zeros((0, 2)), np.zeros((5, 2)), "at least 2 rows"),
    "empty list": ([], [], "at least"),
    "no columns": (np.zeros((5, 0)), np.zeros((5, 0)), "at least one column"),
    "nan": (np.array([[1.0], [np.nan]]), np.ones((5, 1)), "1 in '0' of sample x.*missing='drop'"),
    "infinity": (np.array([[1.0], [np.inf]]), np.ones((5, 1)), "finite"),
    "text array": (np.array([["a"], ["b"]]), np.array([["a"], ["b"]]), "data frame"),
    "objects": (np.array([[object()], [object()]]), np.ones((5, 1)), "real numbers"),
    "complex": (np.ones((5, 1)) * 1j, np.ones((5, 1)), "real numbers"),
    "scalar": (3.0, np.ones((5, 1)), "array of rows"),
    "ragged": ([[1, 2], [3]], np.ones((5, 2)), "rectangular|real numbers"),
    "kinds": (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": ["u", "v"]}), "one kind"),
    "ragged lists": (pl.DataFrame({"a": [[1], [2, 3]]}), pl.DataFrame({"a": [[1], [2]]}), "one length.*1 to 2 values"),
    "lazy": (pl.LazyFrame({"a": [1, 2]}).select("b"), pl.DataFrame({"a": [1, 2]}), "could not be read by polars"),
    "image shapes": (np.zeros((5, 2, 3)), np.zeros((5, 3, 2)), "one shape"),
    "frame and array": (pl.DataFrame({"a": ["u", "v"]}), np.ones((2, 1)), "both samples as data frames"),
    "none": (None, np.ones((5, 1)), "array of rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_samples_get_a_sentence(case):
    x, y, message = BAD[case]
    with pytest.raises(CpmmdError, match=f"(?s){message}"):
        two_sample_test(x, y, method="median")


def test_duplicate_column_names_are_named():
    frame = pd.DataFrame(np.ones((4, 2)), columns=["a", "a"])
    with pytest.raises(CpmmdError, match="a"):
        two_sample_test(frame, frame)


def test_missing_values_in_many_columns_are_listed_shortly():
    x = np.full((4, 30), np.nan)
    with pytest.raises(CpmmdError, match="and more in 22 other columns"):
        two_sample_test(x, np.ones((4, 30)))


@pytest.mark.parametrize("rows", [slice(None), slice(1, 6), np.array([4, 0, 7, 7]), np.array([0, 1]), 5])
@pytest.mark.parametrize("columns", [[2], [2, 0], slice(0, 2), 1])
def test_some_columns_of_some_rows_are_read_wherever_they_lie(rows, columns):
    values = np.random.default_rng(0).normal(size=(8, 3))
    names = ["a", "b", "c"]
    chunks = pa.concat_tables([pa.table(dict(zip(names, part.T, strict=True))) for part in np.split(values, [3])])
    swapped = pl.DataFrame(values[4:, ::-1], schema=names[::-1], orient="row")
    for numbers in (
        read_table(values, "x").numbers,
        read_table(chunks, "x").numbers,
        read_pool(pl.DataFrame(values[:4], schema=names, orient="row"), swapped).numbers,
    ):
        np.testing.assert_array_equal(numbers[rows, columns], values[rows][..., columns])


def test_columns_of_a_frame_may_be_called_like_patterns():
    moment = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
    frame = pl.DataFrame({"a": [1, 2, None], "b": [moment] * 3, "c": ["x", None, ""]}).rename({"a": "^a$", "b": "^(b$", "c": "*"})
    table = read_table(frame, "x")
    assert table.columns == ("^a$", "^(b$", "*")
    np.testing.assert_array_equal(table.numbers[:, [0]].ravel(), [1.0, 2.0, np.nan])
    assert list(table.categories) == ["*"]
    assert len(set(table.numbers[:, [1]].ravel())) == 1


def test_a_column_of_two_kinds_says_which():
    x = pd.DataFrame({"signup": pd.to_datetime(["2024-01-01"] * 3), "age": [1, 2, 3]})
    y = pd.DataFrame({"signup": ["a", "b", "c"], "age": ["4", "5", "6"]})
    sentence = (
        "'age' holds numbers in sample x and text in sample y; column 'signup' holds dates in sample x and text in sample y"
    )
    with pytest.raises(CpmmdError, match=sentence):
        read_pool(x, y)


def test_dates_are_not_compared_with_an_arrays_numbers():
    frame = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])})
    for samples in ((frame, np.arange(3.0)), (np.arange(3.0), frame)):
        with pytest.raises(CpmmdError, match="Text and dates are matched by column name"):
            read_pool(*samples)


def test_an_array_beside_a_frame_is_matched_by_position_with_a_note():
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    assert any("matched by position" in note for note in read_pool(frame, np.array(ROWS)).notes)
    assert not any("matched by position" in note for note in read_pool(frame, frame).notes)


def test_pandas_decimals_and_dates_are_read():
    zone = dt.timezone(dt.timedelta(hours=12))
    frame = pd.DataFrame(
        {
            "price": pd.Series([Decimal("1.5"), None, Decimal(2)], dtype=object),
            "day": pd.Series([dt.date(1970, 1, 2), None, dt.date(1970, 1, 3)], dtype=object),
            "moment": pd.Series([dt.datetime(1970, 1, 2, 12, tzinfo=zone), None, dt.datetime(1970, 1, 3)], dtype=object),
        }
    )
    table = read_table(frame, "x")
    assert table.dates == {"day", "moment"}
    np.testing.assert_array_equal(table.numbers, [[1.5, 1, 1], [np.nan] * 3, [2, 2, 2]])


def test_very_many_columns_are_read_in_seconds():
    names = [f"c{i}" for i in range(100_000)]
    x, y = (pd.DataFrame(np.full((3, len(names)), value), columns=names) for value in (1.0, 2.0))
    pool = read_pool(x, y[names[::-1]])
    assert pool.numbers.shape == (6, 100_000)
