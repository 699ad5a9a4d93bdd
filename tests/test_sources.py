"""Data that are not in memory: the answer is that of a frame with the same rows, and what is wrong is a sentence."""

import datetime
import gzip
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from cpmmd import equivalence_test, two_sample_test
from cpmmd.errors import InputError, MissingExtraError

OPTIONS = {"n_permutations": 19, "rng": 3, "alpha": 0.05}


def mixed(rows: int, seed: int, shift: float = 0.0) -> pl.DataFrame:
    """A frame of numbers, whole numbers, booleans, dates, categories and missing values."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(shift, 1, rows)
    start = datetime.date(2025, 1, 1)
    return pl.DataFrame(
        {
            "a": [None if rng.random() < 0.05 else float(v) for v in numbers],
            "n": rng.integers(0, 50, rows),
            "yes": rng.random(rows) < 0.5,
            "day": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 300, rows)],
            "of": rng.choice(["north", "south", "NA west"], rows),
        }
    )


X, Y = mixed(90, 0), mixed(80, 1, 0.5)
CUTS = [0, 1, 13, 40, 41, 90]
ANSWER = two_sample_test(X, Y, missing="impute", **OPTIONS)


def write(frame: pl.DataFrame, path, kind: str) -> None:
    if kind == "csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
        return
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc, "jsonl": frame.write_ndjson}[kind](path)


def folder(path, kinds=("parquet",), frame: pl.DataFrame = X):
    path.mkdir()
    for k, (start, stop) in enumerate(pairwise(CUTS)):
        kind = kinds[k % len(kinds)]
        write(frame[start:stop], path / f"part-{k:02}.{kind}", kind)
    return path


def same(result, answer=ANSWER):
    assert (result.pvalue, result.statistic) == (answer.pvalue, answer.statistic)
    np.testing.assert_array_equal(result.null_distribution, answer.null_distribution)


@pytest.mark.parametrize(
    "kinds", [("parquet",), ("csv",), ("jsonl",), ("csv.gz", "csv"), ("parquet", "csv", "arrow", "jsonl")], ids=", ".join
)
def test_a_folder_is_the_frame_of_its_rows(tmp_path, kinds):
    result = two_sample_test(folder(tmp_path / "x", kinds), Y, missing="impute", **OPTIONS)
    same(result)
    assert result.notes[0].startswith(f"5 files of {tmp_path / 'x'}: 90 rows, ")


def test_a_pattern_takes_the_files_that_it_finds(tmp_path):
    folder(tmp_path / "x", ("parquet", "csv"))
    (tmp_path / "x" / "README.md").write_text("about these data")
    pattern = str(tmp_path / "x" / "*")
    result = two_sample_test(pattern, Y, missing="impute", **OPTIONS)
    same(result)
    assert f"1 other ('README.md') in {pattern} left out, because their names are not those of tables" in result.notes


def test_a_path_is_read_like_a_file_of_the_command_line(tmp_path):
    X.write_parquet(tmp_path / "x.parquet")
    same(two_sample_test(tmp_path / "x.parquet", Y, missing="impute", **OPTIONS))
    same(two_sample_test(str(tmp_path / "x.parquet"), Y, missing="impute", **OPTIONS))


def test_other_questions_take_the_same_sources(tmp_path):
    numbers = ["n"]
    there = equivalence_test(folder(tmp_path / "x", frame=X[numbers]), Y[numbers].lazy(), margin=1.0, rng=0)
    assert there.pvalue == equivalence_test(X[numbers], Y[numbers], margin=1.0, rng=0).pvalue


def arrow_sources():
    import pyarrow as pa
    import pyarrow.dataset as ds

    table = X.to_arrow()
    pieces = pa.Table.from_batches([batch for a, b in pairwise(CUTS) for batch in table[a:b].to_batches()])
    return {
        "data set": ds.dataset(pieces),
        "scanner": ds.dataset(pieces).scanner(),
        "reader": pieces.to_reader(),
        "batches": iter(pieces.to_batches()),
        "lazy": X.lazy(),
    }


@pytest.mark.parametrize("which", ["data set", "scanner", "reader", "batches", "lazy"])
def test_arrow_and_lazy_frames_are_their_rows(which):
    same(two_sample_test(arrow_sources()[which], Y, missing="impute", **OPTIONS))


def test_a_duckdb_relation_is_its_rows():
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    here = X  # noqa: F841 - DuckDB finds it by its name
    same(two_sample_test(duckdb.sql("select * from here"), Y, missing="impute", **OPTIONS))


def test_a_dask_frame_is_its_rows():
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    frame = X.select("n", "yes", "of").to_pandas()
    there = two_sample_test(dd.from_pandas(frame, npartitions=4), Y.select("n", "yes", "of"), **OPTIONS)
    same(there, two_sample_test(frame, Y.select("n", "yes", "of"), **OPTIONS))


def test_remote_files_are_read_by_fsspec():
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    for k, (start, stop) in enumerate(pairwise(CUTS)):
        memory.pipe(f"/bucket/x/part-{k}.csv", X[start:stop].write_csv().encode())
    try:
        for name in ("memory://bucket/x", "memory://bucket/x/*.csv"):
            same(two_sample_test(name, Y, missing="impute", **OPTIONS))
        with pytest.raises(InputError, match=r"'memory://bucket/y.csv' cannot be reached \(there is no such file\)"):
            two_sample_test("memory://bucket/y.csv", Y)
    finally:
        memory.rm("/bucket", recursive=True)


def bad_folders(path):
    """Folders that cannot be one sample, each with a part of the sentence that says why."""
    good = {f"part-{k:02}.csv": "a,b\n1,2\n3,4\n" for k in range(20)}

    def make(name, files):
        (path / name).mkdir()
        for file, content in files.items():
            (path / name / file).write_bytes(content.encode() if isinstance(content, str) else content)
        return path / name

    X.write_parquet(path / "whole.parquet")
    whole = (path / "whole.parquet").read_bytes()
    parquet = {f"{k:02}.parquet": whole for k in range(5)}
    return {
        "empty": (make("empty", {}), "A folder must hold files of a sample .* has no file"),
        "no tables": (make("no", {"README.md": "x", "fig.png": "y"}), r"has only 2 others \('README.md', 'fig.png'\)"),
        "another column": (
            make("column", {**good, "part-12.csv": "a,c\n1,2\n"}),
            r"part-12.csv has no column 'b' and has 'c', unlike .*part-00.csv",
        ),
        "text in one of text": (
            make("text", {**good, "part-12.csv": "a,b\n1,2\n3,many\n"}),
            r"Column 'b' of .*text has 39 numbers and 1 other value, the first 'many' in row 2 of .*part-12.csv",
        ),
        "text in one of types": (
            make("types", {**parquet, "03.parquet": parquet_of(X.with_columns(pl.col("n").cast(pl.String) + "x"))}),
            r"Column 'n' of .*types holds numbers in .*00.parquet and 3 more and text in .*03.parquet",
        ),
        "truncated": (
            make("cut", {**parquet, "02.parquet": whole[: len(whole) // 2]}),
            r"02.parquet cannot be read as a Parquet",
        ),
        "nothing found": (path / "none-*.csv", "A pattern must find a file of a sample. .* finds no file"),
    }


def parquet_of(frame: pl.DataFrame) -> bytes:
    import io

    frame.write_parquet(content := io.BytesIO())
    return content.getvalue()


CASES = ["empty", "no tables", "another column", "text in one of text", "text in one of types", "truncated", "nothing found"]


@pytest.mark.parametrize("case", CASES)
def test_a_folder_that_is_no_sample_is_refused_with_the_file(tmp_path, case):
    path, expected = bad_folders(tmp_path)[case]
    with pytest.raises(InputError, match=expected):
        two_sample_test(path, Y)


def test_a_column_of_missing_values_in_one_file_is_of_the_kind_of_the_others(tmp_path):
    (tmp_path / "x").mkdir()
    X[:40].write_parquet(tmp_path / "x" / "0.parquet")
    X[40:].with_columns(pl.lit(None).alias("a")).write_parquet(tmp_path / "x" / "1.parquet")
    whole = pl.concat([X[:40], X[40:].with_columns(pl.lit(None, pl.Float64).alias("a"))])
    same(two_sample_test(tmp_path / "x", Y, missing="impute", **OPTIONS), two_sample_test(whole, Y, missing="impute", **OPTIONS))


def test_iterators_and_engines_that_fail_end_in_a_sentence():
    with pytest.raises(InputError, match="Got an iterator of int; pass Arrow record batches"):
        two_sample_test(iter([1, 2]), Y)
    with pytest.raises(InputError, match="Got an iterator of nothing"):
        two_sample_test(iter([]), Y)
    with pytest.raises(InputError, match=r"Sample x could not be read by polars: "):
        two_sample_test(pl.LazyFrame({"a": ["x"]}).with_columns(pl.col("a").cast(pl.Int64)), Y)


def test_an_address_without_fsspec_names_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"Reading 's3://bucket/x.csv' needs the package 'fsspec'"):
        two_sample_test("s3://bucket/x.csv", Y)
