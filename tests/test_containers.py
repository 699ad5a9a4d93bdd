"""What data come in: each container gives the same rows as an array or a frame, or a sentence with the line that converts it."""

import dataclasses
import datetime as dt
import re
import types
from collections import namedtuple
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import cpmmd
from cpmmd import CpmmdError, DriftDetector, two_sample_test
from cpmmd.data.table import read_table

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(40, 2))
SHOPS = RNG.choice(["north", "south"], 40)
EMBEDDINGS = RNG.normal(size=(40, 3))
FRAME = pd.DataFrame({"a": NUMBERS[:, 0], "shop": SHOPS})
RECORDS = FRAME.to_dict("records")
Row = namedtuple("Row", ["a", "shop"])
TABLE = pa.table(FRAME)


@dataclasses.dataclass
class Order:
    a: float


class OnDevice:
    """An array of a package such as CuPy or JAX: numpy gets it by DLPack only."""

    def __init__(self, values, fails=None):
        self._values, self._fails = values, fails

    def __dlpack__(self, **options):
        if self._fails is not None:
            raise self._fails
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class OnGpu(OnDevice):
    """CuPy before it could copy by DLPack."""

    def get(self):
        return self._values


class HuggingFace:
    """What a ``datasets.Dataset`` has of what is asked for."""

    def __init__(self, table, **features):
        self._table, self.features, self.column_names = table, features, table.column_names

    def with_format(self, kind):
        assert kind == "arrow"
        return _Whole(self._table)


class _Whole:
    def __init__(self, table):
        self._table = table

    def __getitem__(self, rows):
        assert rows == slice(None)
        return self._table


def module(name, kind, **members):
    """Return an object whose type says that it comes from a package."""
    made = type(kind, (), {**members, "__module__": name})
    return made()


WHAT = types.SimpleNamespace(names=["north", "south"], int2str=None)
CODES = pa.table({"a": NUMBERS[:, 0], "shop": pa.array([["north", "south"].index(shop) for shop in SHOPS])})

# A container of the rows of FRAME.
SAME_ROWS = {
    "pandas frame": FRAME,
    "polars frame": pl.DataFrame(FRAME),
    "pyarrow table": TABLE,
    "Arrow record batch": TABLE.to_batches()[0],
    "list of record batches": TABLE.to_batches(max_chunksize=15),
    "iterator of record batches": lambda: iter(TABLE.to_batches(max_chunksize=15)),
    "dict of arrays": {"a": NUMBERS[:, 0], "shop": SHOPS},
    "dict of lists": {"a": NUMBERS[:, 0].tolist(), "shop": SHOPS.tolist()},
    "dict of series": {"a": FRAME["a"], "shop": pl.Series(SHOPS)},
    "list of dicts": RECORDS,
    "list of named tuples": [Row(**row) for row in RECORDS],
    "structured array": FRAME.to_records(index=False),
    "Hugging Face Dataset": HuggingFace(TABLE),
    "Hugging Face Dataset, class labels": HuggingFace(CODES, shop=WHAT),
}
# A container of the rows of NUMBERS.
SAME_NUMBERS = {
    "numpy array": NUMBERS,
    "list of lists": NUMBERS.tolist(),
    "scipy sparse matrix": sp.csr_matrix(NUMBERS),
    "scipy sparse array": sp.coo_array(NUMBERS),
    "DLPack array (JAX, CuPy)": OnDevice(NUMBERS),
    "CuPy array": OnGpu(NUMBERS, BufferError("not on this device")),
}


@pytest.mark.parametrize("name", SAME_ROWS)
def test_tables_of_every_kind_are_the_same_rows(name):
    given = SAME_ROWS[name]
    table = read_table(given() if callable(given) else given, "x")
    assert table.columns == ("a", "shop")
    np.testing.assert_array_equal(np.asarray(table.numbers)[:, 0], NUMBERS[:, 0])
    assert table.categories["shop"].tolist() == SHOPS.tolist()


@pytest.mark.parametrize("name", SAME_NUMBERS)
def test_arrays_of_every_kind_are_the_same_numbers(name):
    table = read_table(SAME_NUMBERS[name], "x")
    assert not table.named
    np.testing.assert_array_equal(np.asarray(table.numbers), NUMBERS)


def test_a_path_is_read(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    assert read_table(Path(tmp_path / "a.csv"), "x").columns == ("a", "shop")


VECTORS = {
    "pandas lists": pd.DataFrame({"e": EMBEDDINGS.tolist()}),
    "pandas arrays": pd.DataFrame({"e": list(EMBEDDINGS)}),
    "polars list": pl.DataFrame({"e": EMBEDDINGS.tolist()}),
    "polars array": pl.DataFrame({"e": EMBEDDINGS}, schema={"e": pl.Array(pl.Float64, 3)}),
    "pyarrow list": pa.table({"e": EMBEDDINGS.tolist()}),
    "pyarrow fixed list": pa.table({"e": pa.FixedSizeListArray.from_arrays(EMBEDDINGS.ravel(), 3)}),
    "dict of matrices": {"e": EMBEDDINGS},
    "dict of lists": {"e": EMBEDDINGS.tolist()},
    "list of dicts": [{"e": row} for row in EMBEDDINGS.tolist()],
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_column_of_vectors_is_a_column_for_each_value(name):
    table = read_table(VECTORS[name], "x")
    assert table.columns == ("e[0]", "e[1]", "e[2]")
    np.testing.assert_array_equal(np.asarray(table.numbers), EMBEDDINGS)


def test_a_missing_vector_is_missing_values():
    table = read_table(pl.DataFrame({"e": [[1.0, 2.0], None, [3.0, 4.0]]}), "x")
    np.testing.assert_array_equal(np.asarray(table.numbers), [[1, 2], [np.nan, np.nan], [3, 4]])


WAITS = [dt.timedelta(seconds=90), None, dt.timedelta(days=1)]


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"wait": pd.Series(WAITS)}),
        pl.DataFrame({"wait": WAITS}),
        pa.table({"wait": WAITS}),
        {"wait": WAITS},
        {"wait": np.array([90, "NaT", 86_400], dtype="timedelta64[s]")},
        pd.DataFrame({"wait": pd.Series(WAITS, dtype=object)}),
    ],
    ids=["pandas", "polars", "pyarrow", "dict", "numpy", "objects"],
)
def test_durations_are_seconds_and_a_note_says_so(data):
    table = read_table(data, "x")
    np.testing.assert_array_equal(np.asarray(table.numbers)[:, 0], [90, np.nan, 86_400])
    assert table.notes == ("durations in column 'wait' are compared in seconds",)


def test_columns_by_name_follow_the_rules_of_frames():
    day, long = dt.date(2024, 1, 2), 2**60
    table = read_table({"n": [1, None, 3], "t": [True, False, True], "d": [day, None, day], "s": ["x", None, "y"]}, "x")
    assert table.kinds == {"t": "boolean"}
    assert table.dates == {"d"}
    assert table.categories["s"].tolist() == ["x", None, "y"]
    with pytest.raises(CpmmdError, match="numbers or text, not both"):
        read_table({"n": [1, "x"]}, "x")
    with pytest.raises(CpmmdError, match=r"within 2\^53 of zero"):
        read_table({"n": [long, 1]}, "x")
    np.testing.assert_array_equal(np.asarray(read_table([{"a": 1.0}, {"b": 2.0}], "x").numbers), [[1, np.nan], [np.nan, 2]])
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    np.testing.assert_array_equal(np.asarray(read_table({"m": masked}, "x").numbers)[:, 0], [1, np.nan])


def test_a_detector_takes_batches_in_another_container():
    detector = DriftDetector("median", rng=0, n_permutations=99).fit(pl.DataFrame({"e": EMBEDDINGS.tolist(), "shop": SHOPS}))
    rows = [{"shop": shop, "e": row, "more": 1} for shop, row in zip(SHOPS, EMBEDDINGS.tolist(), strict=True)]
    found = detector.test(pl.DataFrame(rows))
    assert detector.test(rows).pvalue == found.pvalue
    with pytest.raises(CpmmdError, match=r"lacks 'e\[2\]'"):
        detector.test([{"shop": "north", "e": [1.0, 2.0]}] * 9)


def test_a_test_of_each_container_is_that_of_the_frame():
    expected = two_sample_test(FRAME, FRAME[:20], method="median", n_permutations=99, rng=0).pvalue
    for given in (RECORDS, {"a": NUMBERS[:, 0], "shop": SHOPS}, HuggingFace(TABLE)):
        assert two_sample_test(given, FRAME[:20], method="median", n_permutations=99, rng=0).pvalue == expected


REFUSED = {
    "ragged lists": (pl.DataFrame({"a": [[1.0], [2.0, 3.0]]}), "one length in all rows.*1 to 2 values.*responses_test"),
    "empty lists": (pl.DataFrame({"a": [[], []]}, schema={"a": pl.List(pl.Float64)}), "no values"),
    "lists of text": (pl.DataFrame({"a": [["x"], ["y"]]}), "other things than numbers"),
    "unequal columns": ({"a": [1, 2], "b": [1]}, "equally many values.*'a': 2 values, 'b': 1 value"),
    "a single value": ({"a": [1, 2], "b": "x"}, "'b': a single value"),
    "no columns": ({}, "at least one column"),
    "a set": ({1.0, 2.0}, re.escape("sorted(data)")),
    "sparse, too large": (sp.csr_matrix((200_000, 50_000)), r"75 GiB|80 GB|74.5.*max_features=2000"),
    "dataclasses": ([Order(1.0), Order(2.0)], re.escape("[dataclasses.asdict(row) for row in data]")),
    "DatasetDict": (module("datasets.dataset_dict", "DatasetDict"), re.escape("data['train']")),
    "IterableDataset": (module("datasets.iterable_dataset", "IterableDataset"), "from_list"),
    "DataLoader": (module("torch.utils.data.dataloader", "DataLoader"), re.escape("torch.cat([batch for batch in data])")),
    "AnnData": (module("anndata._core", "AnnData"), re.escape("data.to_df()")),
    "images": ([module("PIL.Image", "Image")] * 2, re.escape("np.stack([np.asarray(image) for image in images])")),
    "a broken device": (OnDevice(NUMBERS, RuntimeError("no such device")), "no such device.*np.asarray"),
    "structs": (pl.DataFrame({"a": [{"b": 1}, {"b": 2}]}), "Struct.*convert or drop"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_taken_gets_the_line_that_converts_it(name):
    data, message = REFUSED[name]
    with pytest.raises(CpmmdError, match=f"(?s){message}"):
        two_sample_test(data, data)


def test_xarray():
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset({"a": ("row", NUMBERS[:, 0]), "e": (("row", "k"), EMBEDDINGS)})
    table = read_table(data, "x")
    assert table.columns == ("a", "e[0]", "e[1]", "e[2]")
    np.testing.assert_array_equal(np.asarray(read_table(data["e"], "x").numbers), EMBEDDINGS)
    with pytest.raises(CpmmdError, match=r"one first dimension.*to_dataframe"):
        read_table(xarray.Dataset({"a": ("row", [1.0]), "b": ("time", [1.0])}), "x")


def test_torch():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(np.asarray(read_table(torch.tensor(NUMBERS), "x").numbers), NUMBERS)
    assert read_table({"e": torch.tensor(EMBEDDINGS)}, "x").columns == ("e[0]", "e[1]", "e[2]")
    with pytest.raises(CpmmdError, match=re.escape("torch.stack([row for row, *_ in data])")):
        read_table(torch.utils.data.TensorDataset(torch.tensor(NUMBERS)), "x")


def test_the_page_lists_what_the_tests_have():
    page = (Path(cpmmd.__file__).parents[2] / "docs/howto/containers.md").read_text()
    for name in (*SAME_ROWS, *SAME_NUMBERS):
        assert f"| {name} |" in page, name
