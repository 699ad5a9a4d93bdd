"""What a command was asked to do: how to read, how to test, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.options import ALPHA, METHOD, names
from cpmmd.errors import InputError

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
        from cpmmd.data.files.trial import expect

        expect(files)  # before the other imports: its own take as long as all of them
        from cpmmd.data.files.dates import DateStyle
        from cpmmd.data.files.limit import file_limit
        from cpmmd.data.files.options import ReadOptions
        from cpmmd.data.files.reading import read_file
        from cpmmd.data.files.sample import drop_anywhere, select_columns

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
        from cpmmd.api.two_sample import two_sample_test

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
    """Return the command that does the same again.

    Examples
    --------
    >>> command_line("test", ["a.csv", "my b.csv"], {"--seed": 7, "--scale": None})
    "cpmmd test a.csv 'my b.csv' --seed 7"
    """
    paths = [f"./{name}" if name.startswith("-") and name != STDIN else name for name in files]
    kept = {name: value for name, value in options.items() if value is not None and value is not False}
    given = [part for name, value in kept.items() for part in ((name,) if value is True else (name, str(value)))]
    return shlex.join(["cpmmd", command, *paths, *given])


def _as_typed(columns: Sequence[str]) -> str | None:
    quoted = ['"' + name.replace('"', '""') + '"' if {",", '"', "\n"} & set(name) else name for name in columns]
    return ",".join(quoted) or None
