"""Samples that are read in batches: the answer is that of the same rows in memory, to the last digit."""

import datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from commands import document, run
from cpmmd import FullSampleTest, two_sample_test
from cpmmd.data import streamed
from cpmmd.data.files import batches
from cpmmd.errors import InputError

METHOD = FullSampleTest(pair_rows=100)
OPTIONS = {"method": METHOD, "n_permutations": 49, "rng": 3}


def numbers(rows: int, seed: int, shift: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    start = datetime.date(2025, 1, 1)
    return pl.DataFrame(
        {
            "a": rng.normal(shift, 1, rows),
            "n": rng.integers(0, 5, rows),
            "yes": rng.random(rows) < 0.3,
            "d": rng.exponential(1, rows).astype(np.float32),
            "day": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 300, rows)],
        }
    )


X, Y = numbers(800, 0), numbers(700, 1, 0.1)
ANSWER = two_sample_test(X, Y, **OPTIONS)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Read whatever lies elsewhere in batches of 113 rows."""
    monkeypatch.setattr(streamed, "HELD_VALUES", 0)
    monkeypatch.setattr(streamed, "BLOCK_ROWS", 113)
    monkeypatch.setattr(batches, "LEAST_BYTES", 0)


def same(result, answer=ANSWER, *, sampled=True):
    assert (result.pvalue, result.statistic) == (answer.pvalue, answer.statistic)
    np.testing.assert_array_equal(result.null_distribution, answer.null_distribution)
    assert (result.sizes, result.tested_sizes) == (answer.sizes, answer.tested_sizes)
    assert (result.evidence.sample_of is not None) == sampled


def in_files(path, frame, files, kind="parquet"):
    """Write a frame in so many files of unequal size."""
    path.mkdir()
    cuts = np.random.default_rng(files).choice(np.arange(1, len(frame)), files - 1, replace=False)
    for k, (start, stop) in enumerate(pairwise([0, *sorted(cuts.tolist()), len(frame)])):
        part = frame[start:stop]
        (part.write_parquet if kind == "parquet" else part.write_ipc)(path / f"part-{k}.{kind}")
    return path


def test_one_file_and_many_are_the_frame(tmp_path):
    X.write_parquet(tmp_path / "x.parquet", row_group_size=100)
    same(two_sample_test(tmp_path / "x.parquet", Y, **OPTIONS))
    many = in_files(tmp_path / "x", X, 1 + 9)
    same(two_sample_test(many, in_files(tmp_path / "y", Y, 7, "arrow"), **OPTIONS))


def test_the_order_of_partitions_of_a_summary_does_not_matter(tmp_path, monkeypatch):
    x = in_files(tmp_path / "x", X, 10)
    forwards = streamed.StreamedPool.blocks
    monkeypatch.setattr(streamed.StreamedPool, "blocks", lambda pool: reversed(list(forwards(pool))))
    same(two_sample_test(x, Y, **OPTIONS))


needs_batches = pytest.mark.skipif(
    not hasattr(pl.LazyFrame, "collect_batches"), reason="this polars reads lazy frames whole: it has no collect_batches"
)


@needs_batches
def test_lazy_frames_are_their_rows():
    same(two_sample_test(X.lazy(), Y.lazy(), **OPTIONS))


def test_data_sets_are_their_rows():
    import pyarrow.dataset as ds

    same(two_sample_test(ds.dataset(X.to_arrow()), Y, **OPTIONS))


def test_a_relation_is_its_rows():
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    here = X  # noqa: F841 - DuckDB finds it by its name
    same(two_sample_test(duckdb.sql("select * from here"), Y, **OPTIONS))


def with_gaps(frame, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(len(frame)) < 0.1
    level = pl.Series("of", [None if rng.random() < 0.05 else str(v) for v in rng.choice(["u", "v", "w"], len(frame))])
    return frame.with_columns(pl.Series("a", [None if gap else v for gap, v in zip(mask, frame["a"], strict=True)]), level)


@pytest.mark.parametrize("missing", ["impute", "drop"])
@needs_batches
def test_missing_values_and_categories_are_those_of_the_frame(missing):
    x, y = with_gaps(X, 0), with_gaps(Y, 1)
    there = two_sample_test(x.lazy(), y.lazy(), missing=missing, **OPTIONS)
    here = two_sample_test(x, y, missing=missing, **OPTIONS)
    same(there, here)
    assert [note for note in here.notes if "dropped" in note] == [note for note in there.notes if "dropped" in note]


def test_missing_values_are_refused_with_their_row():
    with pytest.raises(InputError) as there:
        two_sample_test(with_gaps(X, 0).lazy(), with_gaps(Y, 1).lazy(), **OPTIONS)
    with pytest.raises(InputError) as here:
        two_sample_test(with_gaps(X, 0), with_gaps(Y, 1), **OPTIONS)
    assert str(there.value) == str(here.value)


def test_text_in_files_is_read_in_memory_where_its_meaning_is_inferred(tmp_path):
    x, y = (frame.with_columns(pl.lit("u").alias("of")) for frame in (X, Y))
    result = two_sample_test(in_files(tmp_path / "x", x, 3), y, **OPTIONS)
    same(result, two_sample_test(x, y, **OPTIONS), sampled=False)


def test_explanations_are_of_a_sample_and_say_so(tmp_path, monkeypatch):
    import cpmmd.procedures.full_sample as full_sample

    monkeypatch.setattr(full_sample, "SAMPLE_ROWS", 500)
    result = two_sample_test(in_files(tmp_path / "x", X, 4), Y, method=FullSampleTest(pair_rows=100, covariance_rows=400), rng=0)
    explanation = result.explain(max_rows=100)
    assert sum(result.evidence.pool.sizes) == 500
    assert "columns, pairs and rows are those of 500 of 1,500 rows, drawn without looking at labels" in explanation.notes
    row = explanation.top_x[0]
    assert row.values["n"] == X["n"][row.row]


def test_a_sample_of_few_rows_beside_a_large_one(monkeypatch):
    import cpmmd.procedures.full_sample as full_sample

    monkeypatch.setattr(full_sample, "SAMPLE_ROWS", 60)
    method = FullSampleTest(pair_rows=100, landmarks=20, covariance_rows=60)
    there = two_sample_test(X.lazy(), Y[:4], method=method, n_permutations=49, rng=3)
    assert there.statistic == two_sample_test(X, Y[:4], method=method, n_permutations=49, rng=3).statistic


def test_a_frame_that_cannot_be_computed_is_a_sentence():
    broken = X.lazy().select(pl.col("nothing"))
    with pytest.raises(InputError, match="could not be read by polars"):
        two_sample_test(broken, Y, **OPTIONS)


def test_other_methods_and_designs_take_the_rows_in_memory(tmp_path):
    x = in_files(tmp_path / "x", X, 4)
    options = {"n_permutations": 49, "rng": 3}
    assert two_sample_test(x, Y, method="median", **options).pvalue == two_sample_test(X, Y, method="median", **options).pvalue
    blocks = {**OPTIONS, "blocks": 10}
    assert two_sample_test(x, Y, **blocks).pvalue == two_sample_test(X, Y, **blocks).pvalue


def test_damaged_and_different_files_are_sentences(tmp_path):
    x = in_files(tmp_path / "x", X, 20)
    whole = (x / "part-11.parquet").read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:40] + bytes(60) + whole[100:]):
        (x / "part-11.parquet").write_bytes(damaged)
        with pytest.raises(InputError, match=r"part-11.parquet cannot be read as a Parquet file"):
            two_sample_test(x, Y, **OPTIONS)
    (x / "part-11.parquet").write_bytes(whole)
    pl.read_parquet(x / "part-12.parquet").with_columns(pl.col("n").cast(pl.String)).write_parquet(x / "part-12.parquet")
    with pytest.raises(InputError, match=r"'n' of .* holds numbers in .* and 18 more and text in .*part-12.parquet"):
        two_sample_test(x, Y, **OPTIONS)
    pl.DataFrame({"a": [1.0]}).write_parquet(x / "part-12.parquet")
    with pytest.raises(InputError, match=r"part-12.parquet has no column 'n', 'yes'"):
        two_sample_test(x, Y, **OPTIONS)


def test_the_command_line_reads_large_folders_in_batches(tmp_path):
    x, y = numbers(2600, 0), numbers(2000, 1)
    folders = in_files(tmp_path / "x", x, 5), in_files(tmp_path / "y", y, 4)
    found = document(run("test", *folders, "--seed", "3", "--permutations", "49", "--json"))
    here = two_sample_test(x, y, n_permutations=49, rng=3)
    assert found["result"]["statistic"] == here.statistic
    assert (found["x"]["rows"], found["y"]["rows"]) == (2600, 2000)
    assert any("rows, drawn without looking at labels" in note for note in found["explanation"]["notes"])
    median = document(run("test", *folders, "--seed", "3", "--permutations", "49", "--json", "--method", "median"))
    assert median["result"]["statistic"] == two_sample_test(x, y, method="median", n_permutations=49, rng=3).statistic
