"""Random command lines: an answer or a sentence, exit codes 0, 1 and 2, nothing that speaks to the terminal."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from typer.testing import CliRunner

from .cases import FaultError, pick, random_of

ESCAPES = "\x1b[31m\u202e"
FILES = (
    *(
        "a.csv",
        "b.csv",
        "shifted.csv",
        "gaps.csv",
        "groups.csv",
        "dates.csv",
        "mixed.csv",
        "a.parquet",
        "a.arrow",
        "a.npy",
        "two.npz",
    ),
    *(
        "two.npz:x",
        "two.npz:nix",
        "short.csv",
        "empty.csv",
        "cut.parquet",
        "nofile.csv",
        ".",
        "-",
        ESCAPES,
        "d.cpmmd",
        "h.sqlite",
        "",
    ),
)
NAMES = ("u", "v", "g", "day", "u,v", "0", "nix", ESCAPES, '"u', "", "u,u")
ODD = ("", "0", "-1", "1", "2.5", "nan", "inf", "1e9", "x", ESCAPES, "99999999999999999999", "--json", "ü")
METHODS = ("median", "mmdfuse", "mmdagg", "cp-full", "cp-linear", "energy", "medain", "", ESCAPES)
VALUES = {
    "--method": METHODS,
    "--alpha": ("0.05", "0.5", "1e-9", *ODD),
    "--permutations": ("19", "39", "99", "0", "-1", "nan", "x", "2.5"),
    "--seed": ("0", "7", *ODD),
    "--jobs": ("1", "0", "-1", "-7", "x"),
    "--split-by": ("g", "g", *NAMES),
    "--columns": NAMES,
    "--drop": NAMES,
    "--text": NAMES,
    "--missing": ("drop", "impute", "error", "x", ""),
    "--scale": ("standard", "standard", "x", ""),
    "--format": ("csv", "csv", "tsv", "jsonl", "parquet", "arrow", "npy", "npz", "json", "xlsx", "x", ""),
    "--memory-limit": ("1M", "1G", "100", *ODD),
    "--file-limit": ("1M", "1G", "100", *ODD),
    "--date-format": ("%m/%d/%Y", "%d/%m/%Y", "%", "%Q", "%Y", "", ESCAPES),
    "--decimal": (",", ".", *ODD),
    "--encoding": ("latin-1", "utf-16", "base64", *ODD),
    "--margin": ("0.2", "5", *ODD),
    "--report": ("r.md", "r.json", "r.xyz", "a.csv", "nowhere/r.md", "", ESCAPES),
    "--output": ("new.cpmmd", "a.csv", "nowhere/d", ".", "", ESCAPES),
    "--example": FILES,
    "--history": ("h.sqlite", "new.sqlite", "a.csv", "nowhere/h", ".", ""),
    "--sizes": ("5,10", "8", "", "x", "-1", "0,5", "1e9", "99999999999"),
    "--target": ("0.8", "0", "1", "nan", "x"),
    "--plot": ("p.svg", "p.xyz", "nowhere/p.png", "", ESCAPES),
}
FLAGS = (
    "--json",
    "--dayfirst",
    "--no-explain",
    "--force",
    "--exit-zero",
    "--again",
    "--help",
    f"--{ESCAPES}",
    "--nix",
    "--version",
)
READING = (
    *("--columns", "--drop", "--text", "--format", "--file-limit", "--date-format", "--json", "--dayfirst"),
    *("--decimal", "--encoding"),
)
TESTING = (*READING, "--method", "--alpha", "--permutations", "--seed", "--jobs", "--missing", "--scale", "--memory-limit")
OPTIONS = {
    "test": (*TESTING, "--split-by", "--margin", "--report", "--no-explain", "--force", "--exit-zero"),
    "samples": (*TESTING, "--report", "--no-explain", "--force", "--exit-zero"),
    "fit": (*TESTING, "--output", "--example", "--force"),
    "check": (*READING, "--alpha", "--history", "--again", "--report", "--no-explain", "--force", "--exit-zero"),
    "power": (*TESTING, "--sizes", "--target", "--plot"),
    "methods": ("--json",),
    "schema": (),
}


@functools.cache
def _files() -> dict[str, bytes]:
    """Return what every case finds in its folder."""
    from cpmmd.cli.app import app

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for file, shift in (("a", 0.0), ("b", 0.0), ("shifted", 3.0)):
            frame = pl.DataFrame({"u": rng.normal(shift, 1, 25), "v": rng.normal(size=25), "g": rng.choice(["r", "b"], 25)})
            frame.write_csv(f"{file}.csv")
        frame.write_parquet("a.parquet")
        frame.write_ipc("a.arrow")
        frame.with_columns(pl.when(pl.col("v") > 0).then("v").alias("v")).write_csv("gaps.csv")
        frame.with_columns(pl.Series("g", [f"{ESCAPES}{i % 4}" for i in range(25)])).write_csv("groups.csv")
        frame.with_columns(pl.Series("day", [f"{13 + i % 9}/01/2024" for i in range(25)])).write_csv("dates.csv")
        frame.with_columns(pl.Series("v", ["1", f"x{ESCAPES}"] * 12 + ["2"])).write_csv("mixed.csv")
        np.save("a.npy", rng.normal(size=(25, 2)))
        np.savez("two.npz", x=rng.normal(size=(25, 2)), y=rng.normal(size=(25, 2)))
        Path("short.csv").write_text("u,v,g\n1,2,r\n")
        Path("empty.csv").write_text("")
        Path("cut.parquet").write_bytes(Path("a.parquet").read_bytes()[:-9])
        fit = ["fit", "a.csv", "-o", "d.cpmmd", "--method", "median", "--permutations", "19", "--seed", "0"]
        assert CliRunner().invoke(app, fit).exit_code == 0
        return {path.name: path.read_bytes() for path in Path().iterdir()}


def line(case: int) -> list[str]:
    """Return the words of one command."""
    rng = random_of(3, case)
    command = pick(rng, ("test", "test", "test", "samples", "fit", "check", "check", "power", "methods", "schema"))
    words = [command, *_positional(rng, command)]
    for name in rng.permutation(OPTIONS[command])[: int(rng.integers(0, 4))].tolist() if OPTIONS[command] else ():
        usual = VALUES.get(name, ())[: 2 if rng.random() < 0.7 else None]
        words += [name, str(pick(rng, usual))] if name in VALUES else [name]
    if "--split-by" in words and rng.random() < 0.8:
        words[1:] = ["groups.csv", *words[1 + [w.startswith("--") for w in words[1:]].index(True) :]]
    if command in ("test", "samples", "fit", "power") and "--permutations" not in words:
        words += ["--permutations", "19"]
    if command in ("test", "power") and "--method" not in words:
        words += ["--method", "median"]
    if command == "power":
        words += ["--repetitions", "3", *(() if "--sizes" in words else ("--sizes", "8"))]
    if rng.random() < 0.08:
        words.insert(int(rng.integers(len(words) + 1)), str(pick(rng, (*FLAGS, *ODD, *FILES))))
    return words


def _positional(rng: np.random.Generator, command: str) -> list[str]:
    good = ("a.csv", "b.csv", "shifted.csv", "a.parquet", "a.arrow")
    files = [str(pick(rng, good if rng.random() < 0.85 else FILES)) for _ in range(pick(rng, (1, 2, 2, 2, 2, 2, 2, 3)))]
    if command in ("methods", "schema"):
        return []
    if command == "fit":
        return [*files[:1], "--output", str(pick(rng, VALUES["--output"][:2]))]
    return ["d.cpmmd" if rng.random() < 0.9 else files[0], *files] if command == "check" else files


def check(case: int) -> None:
    """Run one command in a folder of its own."""
    from cpmmd.cli.app import app

    words = line(case)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file, content in _files().items():
            Path(file).write_bytes(content)
        result = CliRunner().invoke(app, words, input="u,v,g\n1,2,r\n3,4,b\n", env={"CPMMD_DEBUG": ""})
    _check_result(result, words)
    assert Path(os.getcwd()).exists()


def _check_result(result, words: list[str]) -> None:
    said = f"{words}: {result.output[-300:]!r}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise FaultError(f"{type(result.exception).__name__} {result.exception} from {said}")
    if result.exit_code not in (0, 1, 2):
        raise FaultError(f"exit code {result.exit_code} from {said}")
    if "something unexpected" in result.stderr or "Traceback" in result.output:
        raise FaultError(f"a failure of ours from {said}")
    if result.exit_code == 2 and not result.stderr and "--json" not in words:
        raise FaultError(f"an error without a sentence from {said}")
    if any((c < " " and c != "\n") or "\x7f" <= c < "\xa0" or c == "\u202e" for c in result.stdout + result.stderr):
        raise FaultError(f"something for the terminal from {said}")
    if "--json" in words and result.exit_code in (0, 1) and result.stdout.startswith("{"):
        _check_pvalues(json.loads(result.stdout), said)


def _check_pvalues(found, said: str) -> None:
    """Look for p-values wherever they are."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "pvalue" and value is not None and not 0.0 < value <= 1.0:
                raise FaultError(f"p is {value} from {said}")
            _check_pvalues(value, said)
    elif isinstance(found, list):
        for value in found:
            _check_pvalues(value, said)
