"""Streams that are closed or full change nothing of the exit code; nothing that is typed or read speaks to the terminal."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from commands import QUICK, run

COMMAND = f"{sys.executable} -m cpmmd"
ESCAPES = "\x1b[31mred\x07\x9b31m\u202e"


def ends_with(line):
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", ">&- 2>&-"])
@pytest.mark.parametrize("arguments", ["test nofile x", "test --nonsense"])
def test_an_error_that_nobody_hears_is_still_one(redirected, arguments):
    found = ends_with(f"{COMMAND} {arguments} {redirected}")
    assert (found.returncode, found.stdout, found.stderr) == (2, "", "")


@pytest.mark.parametrize("arguments", ["schema", "--version"])
def test_an_answer_that_cannot_be_written_is_an_error(arguments):
    found = ends_with(f"{COMMAND} {arguments} >/dev/full")
    assert found.returncode == 2
    assert found.stderr.startswith("cpmmd: ")
    assert "No space left" in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("redirected", [">&-", ">&- 2>&- <&-"])
def test_an_answer_that_nobody_wants_is_still_one(pair, redirected):
    line = f"{COMMAND} test {pair[0]} {pair[0]} --no-explain {' '.join(QUICK)} {redirected}"
    assert ends_with(line).returncode == 0
    if redirected == ">&-":
        assert ends_with(line.replace(str(pair[0]), str(pair[1]), 1)).returncode == 1


def test_standard_input_that_is_closed_is_empty(pair):
    assert "standard input is empty" in ends_with(f"{COMMAND} test {pair[0]} - <&-").stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files whose names, columns and values hold escapes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pl.DataFrame({ESCAPES: rng.normal(size=30), "g": [ESCAPES, "b"] * 15}).write_csv("names.csv")
    pl.DataFrame({"u": rng.normal(size=30), ESCAPES: ["01/02/2024"] * 30}).write_csv("dates.csv")
    pl.DataFrame({"u": ["1", ESCAPES] * 15}).write_csv("mixed.csv")
    for name, shift in ((f"{ESCAPES}.csv", 0), ("far.csv", 4)):
        pl.DataFrame({"u": rng.normal(shift, 1, 30)}).write_csv(name)
    np.savez("two.npz", **{"a": np.ones(3), ESCAPES: np.ones(4)})
    (tmp_path / "bad.parquet").write_text(f"PAR1{ESCAPES}PAR1")
    return tmp_path


LINES = [
    [ESCAPES],
    [f"--{ESCAPES}"],
    ["methods", ESCAPES],
    ["test", f"--{ESCAPES}"],
    ["test", f"-{ESCAPES}"],
    ["test", "far.csv", "far.csv", ESCAPES],
    ["test", ESCAPES, "far.csv"],
    ["test", f"{ESCAPES}.csv", "far.csv", *QUICK],
    ["test", f"{ESCAPES}.csv", "far.csv", *QUICK, "--json"],
    ["test", "names.csv", "names.csv", *QUICK],
    ["test", "names.csv", "--split-by", "g", *QUICK],
    ["test", "names.csv", "--split-by", ESCAPES],
    ["test", "names.csv", "--split-by", f"{ESCAPES}s"],
    ["test", "dates.csv", "dates.csv"],
    ["test", "mixed.csv", "mixed.csv"],
    ["test", "two.npz", "two.npz"],
    ["test", f"two.npz:{ESCAPES}", f"two.npz:a{ESCAPES}"],
    ["test", "bad.parquet", "far.csv"],
    *(
        ["test", "far.csv", "far.csv", option, ESCAPES]
        for option in (
            *(
                "--method",
                "--alpha",
                "--seed",
                "--permutations",
                "--jobs",
                "--columns",
                "--drop",
                "--text",
                "--missing",
                "--scale",
            ),
            *("--format", "--memory-limit", "--file-limit", "--report", "--date-format"),
        )
    ),
    ["fit", "far.csv", "-o", f"{ESCAPES}.cpmmd", *QUICK],
    ["fit", "far.csv", "-o", f"{ESCAPES}/d.cpmmd"],
    ["check", ESCAPES, "far.csv"],
    ["power", "far.csv", "far.csv", "--sizes", ESCAPES],
    ["power", "far.csv", "far.csv", "--plot", ESCAPES],
    ["demo", f"far.csv/{ESCAPES}"],
]


def test_nothing_speaks_to_the_terminal(folder):
    for line in LINES:
        found = run(*line)
        assert found.exit_code in (0, 1, 2), line
        spoken = [c for c in found.stdout + found.stderr if (c < " " and c != "\n") or "\x7f" <= c < "\xa0" or c == "\u202e"]
        assert not spoken, (line, found.output)
        assert folder.is_dir()
