"""``cpmmd test``: answers, exit codes, JSON, and no traceback for anyone's mistake."""

import gzip
import shlex

import numpy as np
import polars as pl
import pytest

from commands import QUICK, document, refused, run
from cpmmd import two_sample_test


def test_the_verdict_comes_first_then_evidence_where_and_how_to_repeat(pair):
    result = run("test", *pair, "--seed", 3)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("The samples differ (p = ")
    headings = [line for line in lines if line in ("Test", "Where", "Repeat with")]
    assert headings == ["Test", "Where", "Repeat with"]
    assert lines[-1].split() == ["cpmmd", "test", *map(str, pair), "--seed", "3"]
    leading = lines[lines.index("Where") + 4].split()
    assert leading[0] == "v"


def test_no_difference_is_exit_zero_and_says_so(null_pair):
    result = run("test", *null_pair, *QUICK)
    assert result.exit_code == 0
    assert result.stdout.startswith("No difference found (p = ")
    assert "Where" not in result.stdout


def test_the_answer_is_the_librarys(pair):
    found = document(run("test", *pair, "--json", "--seed", 5, "--drop", "colour", "--permutations", 199))
    frames = [pl.read_csv(path).drop("colour") for path in pair]
    expected = two_sample_test(*frames, rng=5, n_permutations=199)
    assert found["result"]["pvalue"] == expected.pvalue
    assert found["result"]["statistic"] == expected.statistic
    assert found["columns"] == ["u", "v"]
    assert found["explanation"]["columns"][0]["name"] == "v"


def test_the_command_that_repeats_does_repeat(pair):
    first = document(run("test", *pair, "--json", "--drop", "u", "--method", "cp-linear", "--alpha", 0.01, "--no-explain"))
    again = document(run(*shlex.split(first["repeat"])[1:], "--json", "--no-explain"))
    assert again["result"] == first["result"]
    assert "--seed" in first["repeat"]


def test_the_command_that_repeats_is_what_was_typed_in_one_order(pair):
    typed = ("-p", 99, "-c", "u", "--columns", "v,colour", "--alpha", 0.05, "-j", 1, "--no-explain", "--exit-zero", "-s", 3)
    found = document(run("test", *typed, "--json", *pair))
    assert found["repeat"] == shlex.join(
        ["cpmmd", "test", *map(str, pair), "--columns", "u,v,colour", "--alpha", "0.05", "--permutations", "99", "--seed", "3"]
    )


def test_a_note_of_the_library_names_flags_on_the_terminal_and_arguments_in_a_document(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        pl.DataFrame({"u": np.cumsum(rng.normal(size=200))}).write_csv(tmp_path / f"{name}.csv")
    files = tmp_path / "a.csv", tmp_path / "b.csv"
    said = run("test", *files, *QUICK).stdout
    assert "permute blocks of them with --blocks auto; if they belong to groups, name the groups with --group-by" in said
    (note,) = document(run("test", *files, *QUICK, "--json"))["result"]["notes"]
    assert note.endswith("permute blocks of them with blocks='auto'; if they belong to groups, name the groups with groups=...")


def test_exit_zero_is_for_scripts_that_only_want_the_answer(pair):
    assert run("test", *pair, *QUICK, "--exit-zero").exit_code == 0


@pytest.mark.parametrize("method", ["cp-full", "cp-linear", "median", "mmdagg"])
def test_json_of_every_kind_of_method_fits_the_schema(pair, method):
    assert document(run("test", *pair, "--json", "--method", method, "--seed", 0))["reject"] is True


def test_columns_options(pair):
    only_u = document(run("test", *pair, *QUICK, "--json", "--columns", "u"))
    assert only_u["columns"] == ["u"]
    assert document(run("test", *pair, *QUICK, "--json", "--columns", "u,v", "--drop", "v"))["columns"] == ["u"]
    refused(run("test", *pair, "--columns", "w"), "Unknown column", "'w'")
    assert "colour" in document(run("test", *pair, *QUICK, "--json", "--text", "colour"))["columns"]


def test_missing_values(tmp_path, null_pair):
    gaps = tmp_path / "gaps.csv"
    gaps.write_text(null_pair[0].read_text() + ",1.0\n")
    refused(run("test", gaps, null_pair[1], *QUICK), "--missing drop", "--missing impute", "gaps.csv")
    for way in ("drop", "impute"):
        assert run("test", gaps, null_pair[1], *QUICK, "--missing", way).exit_code == 0


def test_standard_input_once_but_not_twice(pair):
    content = pair[0].read_text()
    assert run("test", "-", pair[1], *QUICK, stdin=content).exit_code == 1
    assert run("test", pair[1], "-", *QUICK, "--format", "csv", stdin=gzip.compress(content.encode())).exit_code == 1
    refused(run("test", "-", "-", stdin=content), "once")
    refused(run("test", "-", pair[1], stdin=""), "empty")


def test_the_same_file_twice_is_noticed(pair):
    result = run("test", pair[0], pair[0], *QUICK)
    assert result.exit_code == 0
    assert "same file" in result.stderr


def test_errors_speak_of_files_and_options(pair, null_pair):
    refused(run("test", pair[0], null_pair[0]), f"only in {pair[0]}: 'colour'")
    refused(run("test", *pair, "--permutations", 3), "--permutations 19")
    refused(run("test", *pair, "--alpha", 2), "'--alpha' option")
    refused(run("test", *pair, "--method", "cp-ful"), "Did you mean 'cp-full'")
    refused(run("test", *pair, "--seed", -1), "'--seed' option")
    refused(run("test", *pair, "--scale", "standard"), "scale")
    refused(run("test", *pair, "--file-limit", "1k"), "--file-limit")
    refused(run("test", *pair, "--memory-limit", "1k"), "--memory-limit")
    refused(run("test", *pair, "--format", "xml"), "format")
    refused(run("test", *pair, "--report", "report.pdf"), ".html")
    refused(run("test", *pair, "--report", "/no/such/folder/report.html"), "no folder")


@pytest.mark.parametrize(
    "arguments",
    [
        ["test"],
        ["test", "a.csv"],
        ["test", "a", "b", "c"],
        ["nonsense"],
        ["test", "--nonsense"],
        ["test", "a", "b", "--seed", "x"],
        ["test", "a", "b", "--split-by", "g"],
        ["fit", "a.csv"],
        ["check", "d"],
        ["power", "a"],
        ["demo", "a", "b"],
    ],
)
def test_wrong_usage_is_exit_two_with_help(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error" in result.stderr
    assert "(empty)" not in result.stderr
    assert "Traceback" not in result.output


def test_bad_files_are_exit_two(tmp_path, pair):
    for name, content in (
        ("empty.csv", ""),
        ("header.csv", "u,v\n"),
        ("ragged.csv", "u,v\n1,2\n3\n"),
        ("nan.csv", "u,v\n1,\n2,\n"),
    ):
        (tmp_path / name).write_text(content)
        refused(run("test", tmp_path / name, pair[0]), name)
    (tmp_path / "bare").mkdir()
    refused(run("test", tmp_path / "bare", pair[0]), "has no file")
    refused(run("test", tmp_path / "nothing.csv", pair[0]), "no file")


def test_a_column_named_twice_is_one_column(pair, tmp_path):
    once, twice = (document(run("test", *pair, "--columns", names, *QUICK, "--json")) for names in ("v", "v,v"))
    assert once["result"]["pvalue"] == twice["result"]["pvalue"]
    file = tmp_path / "groups.csv"
    file.write_text("g,a\n" + "\n".join(f"{'xy'[i % 2]},{i % 7}" for i in range(60)) + "\n")
    assert document(run("test", file, "--columns", "g,a", "--split-by", "g", *QUICK, "--json"))["columns"] == ["a"]
    refused(run("power", *pair, "--jobs", 0), "--jobs")
    refused(run("fit", pair[0], "-o", tmp_path), "is not a file")


def test_dates_and_levels_are_shown_as_they_came(tmp_path):
    """A date was days since 1970 with an exponent, a category was blank."""
    for name, day, red in (("x", 10, 30), ("y", 25, 55)):
        frame = {
            "day": [f"2024-02-{day + i % 3}" for i in range(100)],
            "colour": ["red"] * red + ["blue"] * (100 - red),
            "paid": [i % 10 < day // 5 for i in range(100)],
            "id": [20240218 + day + i for i in range(100)],
        }
        pl.DataFrame(frame).write_csv(tmp_path / f"{name}.csv")
    pair = tmp_path / "x.csv", tmp_path / "y.csv"
    shown = []
    for columns in ("day,colour", "paid,id"):
        result = run("test", *pair, *QUICK, "--columns", columns, "--report", tmp_path / "r.md")
        lines = result.stdout.split("Where")[1].splitlines()
        start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["column", "difference"])
        shown += [" ".join(line.split()) for line in lines[start + 1 : start + 3]]
        report = (tmp_path / "r.md").read_text()
        assert {"day,colour": "| red 30% | red 55% |", "paid,id": "| true 20% | true 50% |"}[columns] in report
    starts = [
        "day later 2024-02-10 2024-02-25 +15 days (15 to 15) 0.01",
        "colour more often 'red' red 30% red 55% +25 points (",
        "paid more often true true 20% true 50% +30 points (",
        "id higher 20240278 20240292 +0.52 sd (",
    ]
    assert all(line.startswith(start) for line, start in zip(shown, starts, strict=True)), shown


def test_a_column_that_says_nothing_is_named_with_the_flag_that_drops_it(tmp_path, null_pair):
    """Whether it makes the difference (a counter that runs on) or not (an index that begins again)."""
    frames = [pl.read_csv(path) for path in null_pair]
    for start, code in ((0, 0), (len(frames[0]), 1)):
        paths = [tmp_path / f"{start}-{name}.csv" for name in ("before", "after")]
        for frame, path, first in zip(frames, paths, (0, start), strict=True):
            frame.with_columns(row_nr=pl.int_range(first, first + len(frame))).write_csv(path)
        result = run("test", *paths, "--seed", 1)
        assert result.exit_code == code
        assert "Suspicious 'row_nr': it numbers the rows." in result.stdout
        assert "--drop row_nr" in result.stdout
        if code:
            assert "Without it no difference is found" in result.stdout
        assert run("test", *paths, "--seed", 1, "--drop", "row_nr").exit_code == 0


def test_a_transformer_of_a_module_here_prepares_both_files(pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps_of_mine.py").write_text("from sklearn.decomposition import PCA\npca = PCA(1)\n")
    found = run("test", *pair, "--drop", "colour", "--preprocess", "steps_of_mine:pca", "--seed", 0, "--json", "--no-explain")
    assert found.exit_code == 1
    assert "--preprocess steps_of_mine:pca" in document(found)["repeat"]
    for name in ("steps_of_mine:ica", "steps_of_mine", "no_such_steps:pca"):
        refused = run("test", *pair, "--drop", "colour", "--preprocess", name)
        assert refused.exit_code == 2
        assert "The '--preprocess' option must be MODULE:NAME" in refused.stderr
    data = np.random.default_rng(0)
    table = pl.DataFrame({"u": data.normal(size=90), "v": data.normal(size=90), "day": ["mo", "tu", "we"] * 30})
    for days in (2, 3):
        table.filter(pl.col("day").is_in(["mo", "tu", "we"][:days])).write_csv(tmp_path / "days.csv")
        groups = ("test", tmp_path / "days.csv", "--split-by", "day", "--seed", 0, "--json", "--no-explain", "--method", "median")
        found = run(*groups, "--preprocess", "steps_of_mine:pca")
        assert found.exit_code in (0, 1)
        assert found.stdout != run(*groups).stdout
    several = run("test", tmp_path / "days.csv", "--split-by", "day", "--preprocess", "steps_of_mine:pca")
    assert "A test of several samples takes no transformer. Leave out --preprocess" in several.stderr
