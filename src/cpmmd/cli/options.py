"""Options that several commands share, declared once."""

from __future__ import annotations

import csv
from typing import Annotated

import typer

from cpmmd.errors import InputError

METHOD = "cp-full"  # the library's default, written out so that help needs no numpy
ALPHA = 0.05

Method = Annotated[str, typer.Option("--method", "-m", help="Name of the test; `cpmmd methods` lists them.")]
Alpha = Annotated[float, typer.Option("--alpha", "-a", help="Level: how often a difference may be found where there is none.")]
Permutations = Annotated[
    int | None,
    typer.Option("--permutations", "-p", help="Number of relabelings; 999 by default, a monitor's 9999."),
]
Seed = Annotated[int | None, typer.Option("--seed", "-s", help="The same seed gives the same answer.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Number of threads, -1 for all cores; all by default.")]
Columns = Annotated[
    list[str] | None, typer.Option("--columns", "-c", metavar="A,B,...", help="Compare these columns only.", show_default=False)
]
Drop = Annotated[list[str] | None, typer.Option("--drop", metavar="A,B,...", help="Leave these columns out.", show_default=False)]
Text = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="A,B,...", help="Take these columns as text, whatever they look like.", show_default=False),
]
DayFirst = Annotated[bool, typer.Option("--dayfirst", help="Read 1/2/2024 as 1 February; without it such dates are refused.")]
GroupBy = Annotated[
    str | None,
    typer.Option("--group-by", metavar="COLUMN", help="Rows of one value belong together (patient, machine): not compared."),
]
StratifyBy = Annotated[
    str | None,
    typer.Option("--stratify-by", metavar="COLUMN", help="Its mix may differ (site, weekday): compare inside its values only."),
]
PairBy = Annotated[
    str | None, typer.Option("--pair-by", metavar="COLUMN", help="Rows of one value are one subject, before and after.")
]
Blocks = Annotated[
    str | None, typer.Option("--blocks", metavar="K|auto", help="Rows in time: keep so many consecutive ones together.")
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format", metavar="FORMAT", help="The form of dates, such as %m/%d/%Y or %d.%m.%y; 2024-12-31 needs none."
    ),
]
Decimal = Annotated[str, typer.Option("--decimal", metavar="POINT", help="What stands before a number's fraction: . or ,")]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Encoding of text files, such as latin-1, cp1252 or utf-16.")
]
Missing = Annotated[
    str, typer.Option("--missing", metavar="error|drop|impute", help="Refuse missing values, drop their rows, or fill them in.")
]
MissingOfBatch = Annotated[
    str | None,
    typer.Option("--missing", metavar="error|drop|impute", help="What to do about missing values; the detector's by default."),
]
Scale = Annotated[
    str | None, typer.Option("--scale", metavar="standard", help="Standardise columns first; the method's own by default.")
]
Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="csv, tsv, json, jsonl, xlsx, parquet, arrow, npy or npz; by the name by default."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option("--memory-limit", metavar="SIZE", help="Memory for the test's kernels, e.g. 500M or 8G [default: 1G]."),
]
FileLimit = Annotated[
    str | None, typer.Option("--file-limit", metavar="SIZE", help="Refuse files that take more, e.g. 500M or 8G [default: 4G].")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead (`cpmmd schema` describes it).")]
Explain = Annotated[bool, typer.Option("--explain/--no-explain", help="Say where the samples differ.")]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin", metavar="SDS", help="Test for equivalence instead: are all differences below so many standard deviations?"
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there and was not written by cpmmd.")]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 when a difference is found, too.")]


def names(given: list[str] | None) -> tuple[str, ...]:
    """Return the column names of a list such as ``a,b`` or ``'"last, first",age'``, given once or several times.

    Examples
    --------
    >>> names(["a,b", '"last, first"'])
    ('a', 'b', 'last, first')
    """
    try:
        rows = list(csv.reader(given or [], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InputError(f"Column names must be a list such as a,b or '\"last, first\",age' ({error}).") from error
    return tuple(name.strip() for row in rows for name in row)
