"""``cpmmd samples``, and the groups of one file: one test of all, then the pairs."""

import re
import shlex

import numpy as np
import polars as pl
import pytest

from commands import document, refused, run
from cpmmd import k_sample_test

FEW = ["--permutations", "199", "--seed", "1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("samples"), np.random.default_rng(0)
    paths = {}
    for name, shift in (("north", 0), ("south", 0), ("east", 1.5)):
        paths[name] = folder / f"{name}.csv"
        pl.DataFrame({"v": rng.normal(size=40) + shift, "w": rng.normal(size=40)}).write_csv(paths[name])
    return paths


def test_several_files_are_compared(files):
    result = run("samples", *files.values(), *FEW)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "The samples differ (p = 0.005 <= 0.05)."
    assert "east.csv differs from all others, among which no difference was found. 'v' is higher in east.csv." in result.stdout
    assert re.search(r"^  north.csv +south.csv +no difference", result.stdout, flags=re.MULTILINE)
    found = document(run("samples", *files.values(), *FEW, "--json"))
    frames = {path.name: pl.read_csv(path) for path in files.values()}
    assert found["result"]["pvalue"] == k_sample_test(frames, n_permutations=199, rng=1).pvalue
    assert [sample["rows"] for sample in found["samples"]] == [40, 40, 40]
    assert found["explanation"]["columns"][0]["sample"] == "east.csv"
    assert found["columns"] == ["v", "w"]
    assert document(run(*shlex.split(found["repeat"])[1:], "--json"))["result"] == found["result"]
    assert document(run("samples", *files.values(), *FEW, "--json", "--no-explain"))["explanation"] is None


def test_no_difference_exits_with_0(files):
    result = run("samples", files["north"], files["south"], *FEW)
    assert result.exit_code == 0
    assert result.stdout.startswith("No difference found (p = ")
    assert "differs from" not in result.stdout
    assert run("samples", *files.values(), *FEW, "--exit-zero").exit_code == 0


@pytest.fixture
def grouped(tmp_path):
    def write(**rows):
        rng, parts = np.random.default_rng(4), []
        for name, count in rows.items():
            shift = 2.0 * (name == "c")
            parts.append(pl.DataFrame({"g": [name] * count, "v": rng.normal(size=count) + shift, "w": rng.normal(size=count)}))
        path = tmp_path / "g.csv"
        pl.concat(parts).write_csv(path)
        return path

    return write


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_the_groups_of_one_file_are_compared(grouped, tmp_path, suffix):
    report = tmp_path / f"r{suffix}"
    path = grouped(a=30, b=40, c=30, d=35)
    result = run("test", path, "--split-by", "g", *FEW, "--report", report, "--json")
    found = document(result)
    assert (result.exit_code, found["command"], found["split_by"]) == (1, "samples", "g")
    assert {tuple(pair["names"]) for pair in found["result"]["pairs"] if pair["differs"]} == {("a", "c"), ("b", "c"), ("c", "d")}
    text = report.read_text()
    assert "Pairs of samples" in text
    assert "g.csv by g" in text
    assert f"cpmmd test {path} --split-by g" in text


def test_a_group_of_one_row_is_left_out_and_named(grouped):
    result = run("test", grouped(a=30, b=30, c=30, d=1), "--split-by", "g", *FEW)
    assert result.exit_code == 2
    assert "d could not be compared: a sample needs at least 2 rows" in result.stderr
    assert "c differs from all others" in result.stdout


def test_designs_of_files(files, tmp_path):
    for name, path in files.items():
        frame = pl.read_csv(path)
        site = np.arange(40) // 4 if name != "east" else np.arange(40) // 4 + 2
        frame.with_columns(pl.Series("site", [f"s{i}" for i in site])).write_csv(tmp_path / path.name)
    paths = [tmp_path / path.name for path in files.values()]
    found = document(run("samples", *paths, *FEW, "--stratify-by", "site", "--json"))
    assert found["columns"] == ["v", "w"]
    assert found["result"]["design"]["strata"] == 12 - 2  # two have rows of east alone
    assert any("left out" in note for note in found["result"]["notes"])


def test_bad_input_gets_a_sentence(files, tmp_path):
    (tmp_path / "one.csv").write_text("v,w\n1,2\n")
    (tmp_path / "other.csv").write_text("v,u\n1,2\n3,4\n")
    paths = [files["north"], files["south"]]
    refused(run("samples", *paths, tmp_path / "one.csv", *FEW), "Each sample must have at least 2 rows", "one.csv has 1")
    refused(run("samples", *paths, tmp_path / "other.csv", *FEW), "same column names", "only in", "other.csv: 'u'")
    refused(run("samples", *paths, files["north"], *FEW), "Each file must be named once")
    refused(run("samples", *paths, "--method", "median"), "--method", "'cp-full'")
    refused(run("samples", *paths, "--scale", "standard"), "Leave out --scale")
    assert "At least two files are needed. Got 1." in run("samples", paths[0]).output
