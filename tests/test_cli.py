"""The command line: answers, exit codes, JSON, and no traceback for anyone's mistake."""

import gzip
import json
import os
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cpmmd import two_sample_test
from cpmmd.cli.app import app
from helpers import HOSTILE_NAMES, shared_data

SCHEMA = json.loads(files("cpmmd").joinpath("schemas/result.schema.json").read_text())
QUICK = ["--method", "median", "--permutations", "99", "--seed", "1"]
HOSTILE = {
    **{key: name for key, name in HOSTILE_NAMES.items() if name},
    "ansi": "\x1b[31mred\x1b[0m\x07\x9b2J",
    "markup": "[bold red]x[/]",
    "comma": "last, first",
}


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)


def document(result):
    found = json.loads(result.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("cpmmd: "), result.stderr
    assert "unexpected" not in result.stderr
    for word in words:
        assert word in result.stderr


@pytest.fixture
def pair(tmp_path):
    """Two small files that differ in one of their columns."""
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0.0), ("b", 2.0)):
        colours = rng.choice(["red", "blue"], 60)
        pl.DataFrame({"u": rng.normal(size=60), "v": rng.normal(shift, 1, 60), "colour": colours}).write_csv(
            tmp_path / f"{name}.csv"
        )
    return tmp_path / "a.csv", tmp_path / "b.csv"


@pytest.fixture
def null_pair(tmp_path):
    rng = np.random.default_rng(1)
    for name in ("c", "d"):
        pl.DataFrame({"u": rng.normal(size=50), "v": rng.normal(size=50)}).write_csv(tmp_path / f"{name}.csv")
    return tmp_path / "c.csv", tmp_path / "d.csv"


# -- cpmmd test -----------------------------------------------------------------------------------------------------------------


def test_the_verdict_comes_first_then_evidence_where_and_how_to_repeat(pair):
    result = run("test", *pair, "--seed", 3)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("The samples differ (p = ")
    headings = [line for line in lines if line in ("Evidence", "Where", "Repeat with")]
    assert headings == ["Evidence", "Where", "Repeat with"]
    assert lines[-1].split() == ["cpmmd", "test", *map(str, pair), "--seed", "3"]
    leading = lines[lines.index("Where") + 3].split()
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
    assert found["explanation"]["features"][0]["name"] == "v"


def test_the_command_that_repeats_does_repeat(pair):
    first = document(run("test", *pair, "--json", "--drop", "u", "--method", "cp-linear", "--alpha", 0.01, "--no-explain"))
    import shlex

    again = document(run(*shlex.split(first["repeat"])[1:], "--json", "--no-explain"))
    assert again["result"] == first["result"]
    assert "--seed" in first["repeat"]


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
    refused(run("test", pair[0], null_pair[0]), "only in x: 'colour'", f"x is {pair[0]}")
    refused(run("test", *pair, "--permutations", 3), "--permutations 19")
    refused(run("test", *pair, "--alpha", 2), "'--alpha' option")
    refused(run("test", *pair, "--method", "cp-ful"), "Did you mean 'cp-full'")
    refused(run("test", *pair, "--seed", -1), "'--seed' option")
    refused(run("test", *pair, "--scale", "standard"), "scale")
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
    refused(run("test", tmp_path, pair[0]), "directory")
    refused(run("test", tmp_path / "nothing.csv", pair[0]), "no file")


# -- groups ---------------------------------------------------------------------------------------------------------------------


def grouped(path, values, shifted):
    rng = np.random.default_rng(4)
    groups = rng.choice(values, 180)
    shifts = np.where(np.isin(groups, shifted), 2.0, 0.0)
    pl.DataFrame({"g": groups, "v": rng.normal(size=180) + shifts, "w": rng.normal(size=180)}).write_csv(path)
    return path


def test_two_groups_are_compared_with_each_other(tmp_path):
    file = grouped(tmp_path / "g.csv", ["no", "yes"], ["yes"])
    found = document(run("test", file, "--split-by", "g", *QUICK, "--json"))
    assert (found["x"]["name"], found["y"]["name"]) == ("g = no", "g = yes")
    assert found["columns"] == ["v", "w"]
    frame = pl.read_csv(file)
    x, y = (frame.filter(pl.col("g") == value).drop("g") for value in ("no", "yes"))
    assert found["result"]["pvalue"] == two_sample_test(x, y, method="median", n_permutations=99, rng=1).pvalue
    assert "--split-by g" in found["repeat"]
    assert document(run("test", file, "--split-by", "g", "--columns", "w", *QUICK, "--json"))["columns"] == ["w"]


def test_more_groups_are_each_compared_with_the_rest_and_adjusted(tmp_path):
    file = grouped(tmp_path / "g.csv", ["a", "b", "c", "d"], ["c"])
    result = run("test", file, "--split-by", "g", "--json", *QUICK, "--permutations", 999)
    found = document(result)
    assert result.exit_code == 1
    assert [group["group"] for group in found["groups"]] == ["a", "b", "c", "d"]
    assert found["groups"][2]["reject"]
    p = np.array([group["pvalue"] for group in found["groups"]])
    order = np.argsort(p)
    by_hand = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    np.testing.assert_allclose([found["groups"][i]["adjusted"] for i in order], np.minimum(by_hand, 1))
    text = run("test", file, "--split-by", "g", *QUICK)
    assert text.stdout.splitlines()[0].endswith("from the rest (adjusted p <= 0.05).")
    refused(run("test", file, "--split-by", "g", "--report", tmp_path / "r.html"), "two groups")
    refused(run("test", file, "--split-by", "v"), "2 to 100 different values")
    refused(run("test", file, "--split-by", "x"), "Unknown column")


# -- fit and check --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def batches(tmp_path):
    rng = np.random.default_rng(7)
    for name, shift, rows in (("reference", 0, 200), ("monday", 0, 80), ("tuesday", 0, 80), ("wednesday", 1.5, 80)):
        frame = pl.DataFrame({"u": rng.normal(size=rows), "v": rng.normal(shift, 1, rows)})
        frame.write_csv(tmp_path / f"{name}.csv")
    detector = tmp_path / "detector.cpmmd"
    found = document(run("fit", tmp_path / "reference.csv", "-o", detector, "--seed", 0, "--permutations", 199, "--json"))
    assert found["reference"]["rows"] == 200
    return detector, [tmp_path / f"{name}.csv" for name in ("monday", "tuesday", "wednesday")]


def test_batches_are_checked_one_line_each(batches):
    detector, paths = batches
    result = run("check", detector, *paths)
    assert result.exit_code == 1
    assert result.stdout.startswith("1 of 3 batches differs")
    line = next(line for line in result.stdout.splitlines() if "wednesday.csv" in line)
    assert "differs" in line
    assert line.split()[-2:] == ["v,", "u"] or line.split()[-1] == "v"
    assert run("check", detector, *paths[:2]).exit_code == 0
    assert run("check", detector, *paths, "--exit-zero", "--no-explain").exit_code == 0


def test_checks_are_adjusted_over_the_batches_of_the_call(batches):
    detector, paths = batches
    found = document(run("check", detector, *paths, "--json"))["batches"]
    alone = [document(run("check", detector, path, "--json", "--no-explain"))["batches"][0] for path in paths]
    assert [b["pvalue"] for b in found] == [b["pvalue"] for b in alone]  # whatever batches come along
    assert found[2]["adjusted"] == pytest.approx(3 * found[2]["pvalue"])
    assert found[2]["leading_columns"][0] == "v"
    assert found[2]["effect"] > 0.6
    assert [b["status"] for b in found] == ["tested"] * 3


def test_a_history_keeps_batches_and_skips_known_ones(batches, tmp_path):
    detector, paths = batches
    history = tmp_path / "history.sqlite"
    first = run("check", detector, *paths[:2], "--history", history)
    assert first.exit_code == 0
    second = document(run("check", detector, *paths, "--history", history, "--json"))["batches"]
    assert [b["status"] for b in second] == ["known", "known", "tested"]
    third = run("check", detector, *paths, "--history", history, "--again", "--json", "--no-explain")
    assert [b["status"] for b in document(third)["batches"]] == ["tested"] * 3
    assert "keeps its earlier record" in third.stderr
    known = run("check", detector, *paths, "--history", history)
    assert known.exit_code == 0  # nothing was found now
    assert "in history" in known.stdout
    from cpmmd.history import History

    with History(history) as kept:
        assert [record["batch"] for record in kept.records()] == ["monday.csv", "tuesday.csv", "wednesday.csv"]


def test_a_bad_batch_does_not_stop_the_others(batches, tmp_path):
    detector, paths = batches
    (tmp_path / "bad.csv").write_text("u\n1\n2\n3\n")
    result = run("check", detector, paths[0], tmp_path / "bad.csv", tmp_path / "gone.csv", "--json")
    assert result.exit_code == 2
    found = document(result)["batches"]
    assert [b["status"] for b in found] == ["tested", "error", "error"]
    assert "lacks 'v'" in found[1]["error"]
    refused(run("check", tmp_path / "bad.csv", paths[0]), "bad.csv")
    refused(run("check", detector, "-", "-"), "once")
    refused(run("check", detector, paths[0], paths[0]), "more than once")
    refused(run("fit", paths[0], "-o", "/no/such/folder/d.cpmmd"), "no folder")


def test_an_example_trains_the_kernel(batches, tmp_path):
    _, paths = batches
    detector = tmp_path / "trained.cpmmd"
    result = run("fit", tmp_path / "reference.csv", "--example", paths[2], "-o", detector, "--method", "cp-linear", "--seed", 0)
    assert result.exit_code == 0
    assert "kernel" in result.stdout
    assert run("check", detector, paths[1], "--no-explain").exit_code == 0


# -- the rest -------------------------------------------------------------------------------------------------------------------


def test_power(pair):
    result = run("power", *pair, "--sizes", "10,20,500", "--repetitions", 10, *QUICK, "--json")
    assert result.exit_code == 0
    found = document(result)["table"]
    assert [row["extrapolated"] for row in found["rows"]] == [False, False, True]
    text = run("power", *pair, "--repetitions", 5, *QUICK)
    assert "rows of each for power 0.80" in text.stdout.splitlines()[0]
    refused(run("power", *pair, "--sizes", "ten"), "50,100,200")
    refused(run("power", *pair, "--sizes", "3"), "at least 8")
    refused(run("power", *pair, "--plot", "x.gif"), ".png")


def test_power_draws_a_plot(pair, tmp_path):
    result = run("power", *pair, "--repetitions", 5, *QUICK, "--plot", tmp_path / "power.png")
    assert result.exit_code == 0
    assert (tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")


def test_methods_schema_version_and_help():
    from cpmmd import __version__, methods

    assert document(run("methods", "--json"))["methods"] == methods()
    assert all(name in run("methods").stdout for name in methods())
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema").stdout))
    assert run("--version").stdout.split() == ["cpmmd", __version__]
    for command in ("test", "fit", "check", "power", "methods", "schema", "demo"):
        result = run(command, "--help")
        assert result.exit_code == 0
        assert f"cpmmd {command}" in result.stdout  # an example


def test_the_demo_leaves_files_and_a_report(tmp_path):
    result = run("demo", tmp_path / "demo")
    assert result.exit_code == 0
    assert result.stdout.count("The samples differ") == 1
    assert result.stdout.count("No difference found") == 1
    report = tmp_path / "demo" / "report.html"
    assert str(report.resolve()) in result.stdout
    assert "<html" in report.read_text()
    (tmp_path / "file").write_text("")
    refused(run("demo", tmp_path / "file" / "demo"), "folder")


def test_reports_are_written(pair, batches, tmp_path):
    assert run("test", *pair, "--seed", 0, "--report", tmp_path / "r.html").exit_code == 1
    page = (tmp_path / "r.html").read_text()
    assert "cpmmd test" in page
    detector, paths = batches
    assert run("check", detector, *paths, "--report", tmp_path / "series.md", "--no-explain").exit_code == 1
    assert "wednesday.csv" in (tmp_path / "series.md").read_text()


# -- hostile names --------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=HOSTILE)
def hostile(request, tmp_path):
    name = HOSTILE[request.param]
    rng = np.random.default_rng(2)
    for file, shift in (("a", 0.0), ("b", 2.0)):
        columns = {name: rng.normal(shift, 1, 40), "other": rng.choice([name, "blue"], 40)}
        pl.DataFrame(columns).write_parquet(tmp_path / f"{file}.parquet")
    return name, tmp_path / "a.parquet", tmp_path / "b.parquet"


def harmless(text):
    assert all(character.isprintable() or character in "\n\u200d" for character in text), repr(text)  # U+200D joins emoji
    assert max(map(len, text.splitlines()), default=0) < 4500


def test_hostile_names_are_harmless_on_the_terminal(hostile):
    name, *pair = hostile
    result = run("test", *pair, *QUICK)
    assert result.exit_code == 1
    harmless(result.output)
    lines = result.stdout.splitlines()
    assert len(lines) < 30  # a newline in a name breaks no line
    if name.startswith("["):
        assert "[bold red]x[/]" in result.stdout  # shown, not obeyed
    for arguments in (["--columns", "nothing"], ["--split-by", "nothing"], ["--method", name], ["--format", name]):
        harmless(run("test", *(pair[:1] if "--split-by" in arguments else pair), *arguments).output)


def test_hostile_names_are_intact_and_ascii_in_json(hostile):
    name, *pair = hostile
    result = run("test", *pair, *QUICK, "--json")
    assert result.stdout.isascii()
    assert not any(ord(character) < 32 and character != "\n" for character in result.stdout)
    assert document(result)["columns"][0] == name


def test_hostile_groups_and_batches(tmp_path):
    names = [HOSTILE[key] for key in ("newlines", "ansi", "right-to-left", "script")]
    rng = np.random.default_rng(3)
    pl.DataFrame({"g": rng.choice(names, 120), "v": rng.normal(size=120)}).write_parquet(tmp_path / "g.parquet")
    result = run("test", tmp_path / "g.parquet", "--split-by", "g", *QUICK)
    harmless(result.output)
    assert result.exit_code in (0, 1)
    batch = tmp_path / "\x1b[31m\u202ebatch\n.csv"
    pl.DataFrame({"v": rng.normal(size=60)}).write_csv(batch)
    assert run("fit", batch, "-o", tmp_path / "d.cpmmd", "--permutations", 99).exit_code == 0
    harmless(run("check", tmp_path / "d.cpmmd", batch).output)
    harmless(run("test", batch, batch, *QUICK).output)


# -- anything at all ------------------------------------------------------------------------------------------------------------

CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.integers(-(10**20), 10**20),
    st.text(max_size=6),
    st.booleans(),
    st.none(),
    st.dates(),
    st.sampled_from(["1,5", "NA", "12%", "", " ", "2024-01-01", "nan", "1e400", "-0"]),
)
NAMES = st.text(min_size=0, max_size=8) | st.sampled_from(["a", "b", "g", "0", "1", ""])


@st.composite
def frames(draw):
    """Columns of one kind, or of any: what polars takes, in any format that takes it."""
    rows = draw(st.integers(0, 12))
    columns = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    kinds = [st.floats(-5, 5), st.integers(-3, 3), st.sampled_from(["x", "y", "z"]), st.booleans(), st.dates(), CELLS]
    table = {}
    for name in columns:
        kind = draw(st.sampled_from(kinds))
        values = draw(st.lists(kind | st.none() if draw(st.booleans()) else kind, min_size=rows, max_size=rows))
        try:
            table[name] = pl.Series(name, values, strict=True)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            table[name] = pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
    return pl.DataFrame(table)


WRITERS = {
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "jsonl": lambda frame, path: frame.write_ndjson(path),
    "parquet": lambda frame, path: frame.write_parquet(path),
    "arrow": lambda frame, path: frame.write_ipc(path),
    "npy": lambda frame, path: np.save(path, frame.to_numpy()),
    "csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
}


def saved(frame, kind, path):
    try:
        WRITERS[kind](frame, path)
    except Exception:  # what cannot be written is no file of anyone
        path.write_bytes(b"")
    return path


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_random_frames_in_random_formats_never_end_in_a_traceback(tmp_path, data):
    first = data.draw(frames())
    second = data.draw(st.just(first) | frames())
    paths = []
    for name, frame in (("one", first), ("two", second)):
        kind = data.draw(st.sampled_from(sorted(WRITERS)))
        paths.append(saved(frame, kind, tmp_path / f"{name}.{kind}"))
    options = data.draw(
        st.sampled_from([[], ["--missing", "drop"], ["--missing", "impute"], ["--drop", "a"], ["--columns", "b"], ["--json"]])
    )
    split = data.draw(st.sampled_from([None, None, None, "a", "g", "0"]))
    arguments = paths if split is None else [paths[0], "--split-by", split]
    result = run("test", *arguments, *QUICK, "--permutations", 19, *options)
    assert result.exit_code in (0, 1, 2), result.output
    assert "unexpected" not in result.stderr, result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 2:
        assert len(result.stderr) > 20
    elif "--json" in options:
        document(result)


# -- as a process ---------------------------------------------------------------------------------------------------------------


def process(*arguments, **options):
    command = [sys.executable, "-m", "cpmmd", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_higgs_background_and_signal_differ_and_two_draws_of_background_do_not(tmp_path):
    with np.load(shared_data("higgs.npz")) as data:
        events, signal_event, names = data["X"], data["y"] == 1, [str(name) for name in data["features"]]
    background, signal_rows = events[~signal_event], events[signal_event]
    for name, rows in (("a", background[:1000]), ("b", background[1000:2000]), ("s", signal_rows[:1000])):
        pl.DataFrame(rows, schema=names).write_csv(tmp_path / f"{name}.csv")
    differ = process("test", tmp_path / "a.csv", tmp_path / "s.csv", "--seed", 0, "--json", "--no-explain")
    assert differ.returncode == 1, differ.stderr
    jsonschema.validate(json.loads(differ.stdout), SCHEMA)
    same = process("test", tmp_path / "a.csv", tmp_path / "b.csv", "--seed", 0)
    assert same.returncode == 0, same.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from cpmmd.cli.app import app; app(['test', '--help'], standalone_mode=False);"
        "print([m for m in ('numpy', 'scipy', 'polars', 'sklearn', 'matplotlib', 'pandas') if m in sys.modules], file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.strip() == "[]"


def test_without_its_extra_the_command_says_what_to_install(tmp_path):
    for package in ("typer", "polars"):
        folder = tmp_path / package
        folder.mkdir()
        (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError('none', name='{package}')")
        (tmp_path / "a.csv").write_text("a\n1\n2\n")
        path = os.pathsep.join([str(folder), *filter(None, sys.path)])
        found = process("test", tmp_path / "a.csv", tmp_path / "a.csv", env={**os.environ, "PYTHONPATH": path})
        assert found.returncode == 2
        assert "pip install 'cpmmd[cli]'" in found.stderr
        assert "Traceback" not in found.stderr


def test_a_reader_that_leaves_is_no_error(pair):
    command = f"{sys.executable} -m cpmmd methods | head -n 1; exit ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert found.stderr == ""
    assert found.stdout.count("\n") == 1
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cpmmd test {pair[0]} {pair[1]} --method median --no-explain > >(exec 0<&-; true)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in closed.stderr


def test_an_interrupt_ends_quietly(pair):
    command = [sys.executable, "-m", "cpmmd", "power", *map(str, pair), "--repetitions", "100000"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=4)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert (out, err) == ("", "")


def test_an_unexpected_failure_is_a_sentence_and_a_traceback_on_demand(pair, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr("cpmmd.cli.settings.Settings.test", broken)
    result = run("test", *pair)
    assert result.exit_code == 2
    assert "RuntimeError: boom" in result.stderr
    assert "CPMMD_DEBUG=1" in result.stderr
    monkeypatch.setenv("CPMMD_DEBUG", "1")
    assert isinstance(run("test", *pair).exception, RuntimeError)


def test_a_terminal_that_knows_only_ascii_gets_an_answer(tmp_path):
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0), ("b", 2)):
        pl.DataFrame({"größe \U0001f600": rng.normal(shift, 1, 30)}).write_csv(tmp_path / f"{name}.csv")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = process("test", tmp_path / "a.csv", tmp_path / "b.csv", "--seed", 0, env=environment)
    assert found.returncode == 1, found.stderr
    assert found.stdout.startswith("The samples differ")


def test_the_schema_is_shipped():
    assert Path(str(files("cpmmd") / "schemas" / "result.schema.json")).is_file()
