"""What a command is asked to do: its options, declared once in groups, and the command that repeats it."""

from __future__ import annotations

import csv
import importlib
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

import typer

from cpmmd.cli.failures import OPTIONS, calling_samples
from cpmmd.cli.main import ERROR, collect_garbage_from_now_on
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.core.progress import Progress
    from cpmmd.data.files.sample import FileSample
    from cpmmd.procedures.outcome import TestResult

STDIN = "-"

# The command that repeats an answer: what was typed, without what only shows the answer.


NOT_REPEATED = ("seed", "jobs", "again", "json", "report", "plot", "explain", "force", "exit_zero")
AT_THE_END = ("seed", "report", "again")


@dataclass(frozen=True)
class TypedCommand:
    """A command as it was typed."""

    command: str
    files: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)  # by parameter, those that change the answer

    @classmethod
    def of(cls, context: typer.Context) -> TypedCommand:
        """Return the command of a context: its positional arguments, and the options that it did not leave to their defaults."""
        files, options = list[str](), dict[str, object]()
        for parameter in context.command.params:
            name = str(parameter.name)
            value, source = context.params.get(name), context.get_parameter_source(name)
            if parameter.param_type_name == "argument":
                files += value if isinstance(value, list | tuple) else [] if value is None else [value]
            elif source is not None and source.name == "COMMANDLINE" and name not in NOT_REPEATED:
                options[name] = value
        return cls(str(context.info_name), tuple(files), options)

    def again(self, **found: object) -> str:
        """Return the command that does the same again, with what was found out on the way, such as the seed."""
        options = {**found, **self.options, **found}
        late = [*(of.name for of in fields(Settings) if of.name not in AT_THE_END), *AT_THE_END]
        names = sorted(options, key=lambda name: late.index(name) if name in late else -1)
        return command_line(self.command, self.files, {flag_of(name): options[name] for name in names})

    def meaning(self) -> dict[str, object]:
        """Return the flags for how values are read, which later files of the kind need as well."""
        known = ("text", "dayfirst", "date_format", "decimal", "encoding")
        return {flag_of(name): self.options.get(name) for name in known}


def flag_of(name: str) -> str:
    """Return the flag of an option."""
    return "--" + name.replace("_", "-")


def command_line(command: str, files: Sequence[str], flags: Mapping[str, object]) -> str:
    """Return a command to type; flags that are None or False are left out."""
    words = ["cpmmd", command, *(f"./{name}" if name.startswith("-") and name != STDIN else name for name in files)]
    for flag, value in flags.items():
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            parts = value if isinstance(value, list | tuple) else [value]
            words += [flag, ",".join(str(part) for part in parts if part != "")]
    return shlex.join(words)


# Groups of options: dataclasses whose fields a command takes as its options.


T = TypeVar("T")


def option(help: str, default: T, short: str | None = None, *, flag: str | None = None, metavar: str | None = None) -> T:
    """Declare an option, of a group or of one command; its flag is its name."""
    return field(default=default, metadata={"help": help, "flags": (flag, short), "metavar": metavar})


JSON = option("Print one JSON document instead (`cpmmd schema` describes it).", False)
FORCE = option("Replace an existing file that was not written by cpmmd.", False)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: their fields become its options, in the place of the dataclass, and build it.

    Typer reads options off a signature, so a signature is made here. ``typed`` is not an option: it comes from the context.
    """
    taken = inspect.signature(command, eval_str=True).parameters
    annotations = {name: parameter.annotation for name, parameter in taken.items() if name != "typed"}
    groups = {name: kind for name, kind in annotations.items() if isinstance(kind, type) and is_dataclass(kind)}
    options = [_parameter("context", inspect.Parameter.empty, typer.Context)]
    for name, annotation in annotations.items():
        if name in groups:
            hints = get_type_hints(groups[name])
            options += [_parameter(of.name, of, hints[of.name]) for of in fields(groups[name]) if of.name != "typed"]
        else:
            options.append(_parameter(name, taken[name].default, annotation))

    @wraps(command)
    def run(*, context: typer.Context, **given: object) -> None:
        given["typed"] = TypedCommand.of(context)
        for name, group in groups.items():
            given[name] = group(**{of.name: given[of.name] for of in fields(group)})
        command(**{name: given[name] for name in taken})

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    return run


def _parameter(name: str, default: object, annotation: object) -> inspect.Parameter:
    if isinstance(default, Field):
        flag, short = default.metadata["flags"]
        flags = filter(None, (flag or flag_of(name), short))
        shown = {key: default.metadata[key] for key in ("help", "metavar")}
        default = typer.Option(default.default, *flags, **shown)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@dataclass(frozen=True)
class OutputOptions:
    """How an answer is given, and which command it is of."""

    json: bool = JSON
    report: str | None = option("Write a report: .html, .md or .json.", None, metavar="FILE")
    explain: bool = option("Show where the samples differ.", True, flag="--explain/--no-explain")
    force: bool = FORCE
    exit_zero: bool = option("Exit with 0 even when a difference is found.", False)
    typed: TypedCommand = TypedCommand("test")

    def check(self, files: Sequence[str] = ()) -> None:
        """Refuse a report that could not be written, or that would replace what is not ours, before the work is done."""
        if self.report is None:
            return
        from cpmmd.core.installation import require
        from cpmmd.report.page import format_of

        if format_of(self.report) == "html":
            require("An HTML report", ("matplotlib",), "report")
        check_output(self.report, "report", force=self.force, inputs=files)

    def exit(self, found: bool, failed: bool = False) -> typer.Exit:
        """Return how the command ends: 1 where a difference was found, 2 where something could not be done."""
        return typer.Exit(ERROR if failed else int(found and not self.exit_zero))


def check_output(path: str, what: str, *, force: bool, inputs: Sequence[str], ours: Callable[[Path], bool] | None = None) -> None:
    """Refuse a file that could not be written, or would replace what is not ours."""
    from cpmmd.core.atomic import check_target, is_ours

    if not Path(path).parent.is_dir():
        raise InputError(f"There is no folder {str(Path(path).parent)!r} for the {what}. Create it first.")
    check_target(path, force=force, inputs=inputs, ours=ours or is_ours)


@dataclass(frozen=True)
class ReadOptions:
    """How files are read, and which of their columns count."""

    columns: list[str] | None = option("Compare these columns only.", None, "-c", metavar="A,B,...")
    drop: list[str] | None = option("Leave these columns out.", None, metavar="A,B,...")
    text: list[str] | None = option("Read these columns as text, whatever they look like.", None, metavar="A,B,...")
    dayfirst: bool = option("Read 1/2/2024 as 1 February; such dates are an error otherwise.", False)
    date_format: str | None = option(
        "Format of dates, such as %m/%d/%Y or %d.%m.%y; not needed for 2024-12-31.", None, metavar="FORMAT"
    )
    decimal: str = option("Decimal separator of numbers: . or ,", ".", metavar="POINT")
    encoding: str = option("Encoding of text files, such as latin-1, cp1252 or utf-16.", "utf-8", metavar="NAME")
    format: str | None = option(
        "csv, tsv, json, jsonl, xlsx, parquet, arrow, npy or npz [default: from the file name].", None, "-f"
    )
    file_limit: str | None = option("Refuse larger files, e.g. 500M or 8G [default: 4G].", None, metavar="SIZE")

    def with_text(self, *columns: str) -> ReadOptions:
        """Return options that read some columns as text, and no others."""
        quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
        return replace(self, columns=quoted, drop=None, text=quoted)

    def read(
        self, files: Sequence[str], *, keep: Sequence[str] = (), some_drop: bool = False, large: bool = False
    ) -> list[FileSample]:
        """Return the samples of some files; columns in ``keep`` are read whatever was chosen.

        A column to drop must be in one of the files; with ``some_drop``, as for batches, it may be in none of them. Batches may
        also have columns of missing values only, because the reference has their types. With ``large``, files that are too large
        to be held are left where they are.
        """
        columns, drop, text = map(column_names, (self.columns, self.drop, self.text))
        from cpmmd.data.files.binary import expect

        expect(files)  # before the other imports: its own take as long as all of them
        from cpmmd.data.files.batches import find_typed_files
        from cpmmd.data.files.input_file import file_limit
        from cpmmd.data.files.options import DateStyle, ReadOptions
        from cpmmd.data.files.reading import read_file
        from cpmmd.data.files.sample import FileSample, drop_anywhere, select_columns
        from cpmmd.data.streamed import HELD_VALUES

        if list(files).count(STDIN) > 1:
            raise InputError("Standard input can be read only once. Got '-' more than once; write one of them to a file first.")
        dates = DateStyle(self.dayfirst, self.date_format)
        options = ReadOptions(self.format, file_limit(self.file_limit), text, dates, self.decimal, self.encoding)
        if large and options == ReadOptions(limit=options.limit) and not (columns or drop or keep):
            typed = [find_typed_files(name) for name in files]
            if all(found is not None for found in typed) and any(found.values > HELD_VALUES for found in typed if found):
                return [FileSample(cast(Any, found), found.label, found.notes) for found in typed if found is not None]
        samples = [read_file(name, options) for name in files]
        known = [name for name in drop if not some_drop or any(name in sample.columns for sample in samples)]
        chosen = (*columns, *keep) if columns else ()
        return [
            select_columns(sample, columns=chosen, drop=dropped, empty=some_drop)
            for sample, dropped in zip(samples, drop_anywhere(samples, known), strict=True)
        ]


def column_names(given: list[str] | None) -> tuple[str, ...]:
    """Return the column names of a list such as ``a,b`` or ``'"last, first",age'``, given once or several times."""
    try:
        rows = list(csv.reader(given or [], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InputError(f"Column names must be a list such as a,b or '\"last, first\",age' ({error}).") from error
    return tuple(name.strip() for row in rows for name in row)


@dataclass(frozen=True)
class Settings:
    """How samples are compared."""

    # The library's default method, written out so that help needs no numpy.
    method: str = option("Name of the test; `cpmmd methods` lists them.", "cp-full", "-m")
    alpha: float = option("Significance level: the probability of a false positive.", 0.05, "-a")
    permutations: int | None = option("Number of permutations [default: 999; 9999 for a monitor].", None, "-p")
    seed: int | None = option("The same seed gives the same answer.", None, "-s")
    jobs: int | None = option("Number of threads, -1 for all cores [default: all].", None, "-j")
    missing: str = option("Refuse missing values, drop their rows, or fill them in.", "error", metavar="error|drop|impute")
    scale: str | None = option("Standardise columns first [default: the method decides].", None, metavar="standard")
    memory_limit: str | None = option("Memory for kernel matrices, e.g. 500M or 8G [default: 1G].", None, metavar="SIZE")
    group_by: str | None = option(
        "Permute rows with the same value in this column together (patient, machine).", None, metavar="COLUMN"
    )
    stratify_by: str | None = option(
        "Compare only rows with the same value in this column, such as site or weekday; its mix may differ.",
        None,
        metavar="COLUMN",
    )
    pair_by: str | None = option(
        "Pair rows with the same value in this column: one subject in both files (before and after).", None, metavar="COLUMN"
    )
    blocks: str | None = option("For rows in time: permute this many consecutive rows together.", None, metavar="K|auto")
    group_sizes: str = option("For groups of different sizes: cut all to one size, or keep all rows.", "cut", metavar="cut|keep")

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Columns that say which rows belong together."""
        return tuple(filter(None, (self.group_by, self.stratify_by, self.pair_by)))

    def compared(self, sample: FileSample) -> list[str]:
        """Return the columns of a file sample that are compared: all but those that say which rows belong together."""
        return [name for name in sample.columns if name not in self.design_columns]

    def test(self, x: FileSample, y: FileSample, progress: Progress | None = None, **more: Any) -> TestResult:
        """Return the result of comparing two file samples."""
        from cpmmd.questions.two_sample import two_sample_test

        collect_garbage_from_now_on()
        with calling_samples(x=x.label, y=y.label):
            return two_sample_test(x.data, y.data, progress=progress, **self.keywords(), **more)

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of the library's tests, detectors and plans."""
        return keywords_of(self)

    def keywords_of_several(self) -> dict[str, Any]:
        """Return the keyword arguments of a test of several samples, whose method chooses its own coordinates."""
        given = self.keywords()
        if given.pop("scale") is not None:
            raise InputError("A test of several samples chooses its own coordinates. Leave out --scale.")
        if given.pop("preprocess", None) is not None:
            raise InputError("A test of several samples takes no transformer. Leave out --preprocess, or compare two of them.")
        return given


def keywords_of(settings: Any) -> dict[str, Any]:
    """Return a group of options as keyword arguments, under the names that they have in Python."""
    names = {option: name for name, option in OPTIONS.items()}
    given: dict[str, Any] = {names.get(of.name, of.name): getattr(settings, of.name) for of in fields(settings)}
    if settings.blocks is not None and settings.blocks.isdecimal():
        given["blocks"] = int(settings.blocks)
    return given


def _as_for_samples(name: str, help: str | None = None) -> Any:
    """Declare an option that :class:`Settings` has, perhaps with help of its own."""
    of = Settings.__dataclass_fields__[name]
    return field(default=of.default, metadata={**of.metadata, **({} if help is None else {"help": help})})


@dataclass(frozen=True)
class PairedSettings:
    """How two tables are tested for independence."""

    method: str = option("cp-hsic, hsic-median, distance-correlation or hsicagg.", "cp-hsic", "-m")
    alpha: float = _as_for_samples("alpha")
    permutations: int | None = _as_for_samples("permutations", "Number of re-pairings [default: 999].")
    seed: int | None = _as_for_samples("seed")
    jobs: int | None = _as_for_samples("jobs")
    missing: str = _as_for_samples("missing")
    group_by: str | None = _as_for_samples("group_by", "Re-pair rows with the same value in this column together (patient).")
    stratify_by: str | None = _as_for_samples(
        "stratify_by", "Re-pair rows only within the same value of this column, such as site."
    )
    blocks: str | None = _as_for_samples("blocks", "For rows in time: re-pair this many consecutive rows together.")
    group_sizes: str = _as_for_samples("group_sizes", "For groups of different sizes: cut all to one size, or pair equal sizes.")

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Columns that say which rows belong together."""
        return tuple(filter(None, (self.group_by, self.stratify_by)))

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of ``independence_test``."""
        return keywords_of(self)


@dataclass(frozen=True)
class ComparisonSettings(Settings):
    """How two files are compared by ``cpmmd test``."""

    preprocess: str | None = option(
        "Your scikit-learn transformer, fitted without labels: steps:pca for `pca = PCA(10)` in steps.py.",
        None,
        metavar="MODULE:NAME",
    )

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of the library's tests."""
        return {**super().keywords(), "preprocess": None if self.preprocess is None else load_object(self.preprocess)}


def load_object(name: str) -> object:
    """Return what ``MODULE:NAME`` names, looked for in the current folder first; importing runs the module."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            "{parameter} must be MODULE:NAME, a name in a Python module here or on the import path, such as steps:pca. Got "
            "{name!r} ({reason}).",
            parameter="preprocess",
            name=name,
            reason=str(error),
        ) from error
    finally:
        sys.path.pop(0)


@dataclass(frozen=True)
class ChangeSettings:
    """What is the target, and how inputs and target are compared by ``cpmmd change``."""

    target: str = option("The column that the others explain; or several: A,B.", "", "-t", metavar="COLUMN")
    predictions: str | None = option(
        "A model's predictions of it: what explains the change of its error?", None, metavar="COLUMN"
    )
    loss: str | None = option(
        "How an error is counted [default: squared, or zero-one for text].", None, metavar="squared|absolute|zero-one"
    )
    method: str = option("Name of the test; `cpmmd methods` lists them.", "cp-full", "-m")
    alpha: float = option("Significance level, of all three tests together.", 0.05, "-a")
    permutations: int | None = option("Number of permutations [default: 999].", None, "-p")
    seed: int | None = option("The same seed gives the same answer.", None, "-s")
    jobs: int | None = option("Number of threads, -1 for all cores [default: all].", None, "-j")
    missing: str = option("Refuse missing values, drop their rows, or fill them in.", "error", metavar="error|drop|impute")


@dataclass(frozen=True)
class FitsSettings:
    """How a file is compared with a model by ``cpmmd fits``."""

    model: str = option("normal, or a distribution of scipy.stats such as norm or 'gamma(5, scale=2)'.", "normal", metavar="NAME")
    method: str = option("cp-stein, ksd-median or ksdagg.", "cp-stein", "-m")
    alpha: float = option("Significance level: the probability of a false positive.", 0.05, "-a")
    permutations: int | None = option("Data sets drawn from the model [default: 299], or signs [default: 999].", None, "-p")
    seed: int | None = option("The same seed gives the same answer.", None, "-s")
    jobs: int | None = option("Number of threads, -1 for all cores [default: all].", None, "-j")
    missing: str = option("Refuse missing values, or drop their rows.", "error", metavar="error|drop")
    blocks: str | None = option("For rows in time: this many consecutive rows share a sign.", None, metavar="K|auto")


@dataclass(frozen=True)
class PowerSettings(Settings):
    """How the draws of a power study are compared."""

    jobs: int | None = option("Number of processes, -1 for all cores [default: 1].", None, "-j")
