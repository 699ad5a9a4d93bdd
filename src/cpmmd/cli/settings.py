"""What a command was asked to do: how to read, how to test, and the command that repeats it."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.errors import InputError

# Options that several commands share, declared once.


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
    """Return the column names of a list such as ``a,b`` or ``'"last, first",age'``, given once or several times."""
    try:
        rows = list(csv.reader(given or [], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InputError(f"Column names must be a list such as a,b or '\"last, first\",age' ({error}).") from error
    return tuple(name.strip() for row in rows for name in row)


STDIN = "-"


@dataclass(frozen=True)
class Reading:
    """How files are read, and which of their columns count."""

    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    format: str | None = None
    file_limit: str | None = None
    dayfirst: bool = False
    date_format: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    @classmethod
    def of(
        cls,
        columns: list[str] | None = None,
        drop: list[str] | None = None,
        text: list[str] | None = None,
        format: str | None = None,
        file_limit: str | None = None,
        dayfirst: bool = False,
        date_format: str | None = None,
        decimal: str = ".",
        encoding: str = "utf-8",
    ) -> Reading:
        """Return the options as they were typed."""
        return cls(names(columns), names(drop), names(text), format, file_limit, dayfirst, date_format, decimal, encoding)

    def read(self, files: Sequence[str], *, keep: Sequence[str] = (), some_drop: bool = False) -> list[Any]:
        """Return the samples of some files; columns in ``keep`` are read whatever was chosen.

        A column to drop must be in one of the files, or may be in others (``some_drop``), as for batches read one by one.
        Those may have columns of missing values only, for a reference knows what they are.
        """
        from cpmmd.data.files.binary import expect

        expect(files)  # before the other imports: its own take as long as all of them
        from cpmmd.data.files.options import DateStyle, ReadOptions
        from cpmmd.data.files.reading import read_file
        from cpmmd.data.files.sample import drop_anywhere, select_columns
        from cpmmd.data.files.source import file_limit

        if list(files).count(STDIN) > 1:
            raise InputError("Standard input can be read once. Got '-' more than once; write one of them to a file first.")
        dates = DateStyle(self.dayfirst, self.date_format)
        options = ReadOptions(self.format, file_limit(self.file_limit), self.text, dates, self.decimal, self.encoding)
        columns = (*self.columns, *keep) if self.columns else ()
        samples = [read_file(name, options) for name in files]
        known = [name for name in self.drop if not some_drop or any(name in sample.columns for sample in samples)]
        dropped = drop_anywhere(samples, known)
        return [
            select_columns(sample, columns=columns, drop=drop, empty=some_drop)
            for sample, drop in zip(samples, dropped, strict=True)
        ]

    def arguments(self) -> dict[str, Any]:
        """Return the options that were set."""
        return {
            "--columns": _as_typed(self.columns),
            "--drop": _as_typed(self.drop),
            **self.meaning(),
            "--format": self.format,
            "--file-limit": self.file_limit,
        }

    def meaning(self) -> dict[str, Any]:
        """Return the options that say what values mean, which later files of the kind need, too."""
        return {
            "--text": _as_typed(self.text),
            "--dayfirst": self.dayfirst,
            "--date-format": self.date_format,
            "--decimal": None if self.decimal == "." else self.decimal,
            "--encoding": None if self.encoding == "utf-8" else self.encoding,
        }


@dataclass(frozen=True)
class Settings:
    """How samples are compared."""

    method: str = METHOD
    alpha: float = ALPHA
    permutations: int | None = None
    seed: int | None = None
    jobs: int | None = None
    missing: str = "error"
    scale: str | None = None
    memory_limit: str | None = None
    group_by: str | None = None
    stratify_by: str | None = None
    pair_by: str | None = None
    blocks: str | None = None

    @property
    def aside(self) -> tuple[str, ...]:
        """Columns that say which rows belong together."""
        return tuple(filter(None, (self.group_by, self.stratify_by, self.pair_by)))

    def compared(self, sample: Any) -> list[str]:
        """Return the columns of a file sample that are compared: all but those that say which rows belong together."""
        return [name for name in sample.columns if name not in self.aside]

    def test(self, x: Any, y: Any, progress: Any = None) -> Any:
        """Return the result of comparing two file samples."""
        from cpmmd.questions.two_sample import two_sample_test

        collect_garbage_from_now_on()
        with calling_samples(x=x.label, y=y.label):
            return two_sample_test(x.data, y.data, progress=progress, **self.keywords())

    def keywords(self) -> dict[str, Any]:
        """Return what tests, detectors and plans of the library all take, under its names."""
        return {
            "method": self.method,
            "alpha": self.alpha,
            "n_permutations": self.permutations,
            "rng": self.seed,
            "n_jobs": self.jobs,
            "memory_limit": self.memory_limit,
            "scale": self.scale,
            "missing": self.missing,
            "groups": self.group_by,
            "strata": self.stratify_by,
            "pairs": self.pair_by,
            "blocks": int(self.blocks) if self.blocks is not None and self.blocks.isdecimal() else self.blocks,
        }

    def arguments(self, seed: int | None) -> dict[str, Any]:
        """Return the options that were set, and the seed that was used."""
        return {
            "--method": None if self.method == METHOD else self.method,
            "--alpha": None if self.alpha == ALPHA else self.alpha,
            "--permutations": self.permutations,
            "--missing": None if self.missing == "error" else self.missing,
            "--scale": self.scale,
            "--memory-limit": self.memory_limit,
            "--group-by": self.group_by,
            "--stratify-by": self.stratify_by,
            "--pair-by": self.pair_by,
            "--blocks": self.blocks,
            "--seed": seed,
        }


def command_line(command: str, files: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the command that does the same again."""
    paths = [f"./{name}" if name.startswith("-") and name != STDIN else name for name in files]
    kept = {name: value for name, value in options.items() if value is not None and value is not False}
    given = [part for name, value in kept.items() for part in ((name,) if value is True else (name, str(value)))]
    return shlex.join(["cpmmd", command, *paths, *given])


def _as_typed(columns: Sequence[str]) -> str | None:
    quoted = ['"' + name.replace('"', '""') + '"' if {",", '"', "\n"} & set(name) else name for name in columns]
    return ",".join(quoted) or None
