"""``cpmmd independence``: do columns of one file, or two files row by row, depend on each other?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import probability, progress
from cpmmd.cli.questions import show_answer
from cpmmd.cli.settings import OutputOptions, PairedSettings, ReadOptions, column_names
from cpmmd.core.text import sanitize

if TYPE_CHECKING:
    from cpmmd.data.files.sample import FileSample

MOST_PAIRS = 12  # in the printed table


def show_independence(
    files: Sequence[str],
    x: list[str] | None,
    y: list[str] | None,
    reading: ReadOptions,
    settings: PairedSettings,
    answering: OutputOptions,
) -> bool:
    """Test the tables and print the answer; whether they depend on each other."""
    if len(files) == 1 and not (x or y):
        raise typer.BadParameter("One file needs --x or --y, the columns of one side. Got neither; name them, or two files.")
    if len(files) not in (1, 2):
        raise typer.BadParameter(f"One file with --x and --y, or two files are needed. Got {len(files)}.")
    answering.check(files)
    with progress("reading"):
        first, second = _sides(reading.read(files, keep=_kept(x, y, settings)), column_names(x), column_names(y), settings)
    from cpmmd.questions.independence import independence_test

    collect_garbage_from_now_on()
    labels = {"x": first.label, "y": second.label}
    with progress("testing") as line, calling_samples(**labels):
        result = independence_test(first.data, second.data, progress=line, **settings.keywords())
    explanation = result.explain() if answering.explain else None
    pairs = [] if explanation is None else explanation.pairs[:MOST_PAIRS]
    rows = [(sanitize(pair.x, 28), sanitize(pair.y, 28), pair.words, probability(pair.pvalue)) for pair in pairs]
    described = {
        name: {"name": sample.label, "columns": list(sample.columns)} for name, sample in zip("xy", (first, second), strict=True)
    }
    where = None if explanation is None else {"sentence": explanation.sentence, "pairs": [vars(p) for p in explanation.pairs]}
    return show_answer(
        result,
        answering,
        document={"command": "independence", **described, "explanation": where},
        title=f"{first.label} and {second.label}",
        notes=list(dict.fromkeys((*first.notes, *second.notes))),
        sentences=[] if explanation is None else [explanation.sentence],
        table=(("column of x", "column of y", "how", "p"), rows, (3,)) if rows else None,
    )


def _kept(x: list[str] | None, y: list[str] | None, settings: PairedSettings) -> list[str]:
    """Return the columns that are read whatever --columns says."""
    return [*column_names(x), *column_names(y), *settings.design_columns]


def _sides(
    samples: Sequence[FileSample], x: Sequence[str], y: Sequence[str], settings: PairedSettings
) -> tuple[FileSample, FileSample]:
    """Return the two tables, the columns that say which rows belong together with the first that has them."""
    from dataclasses import replace

    from cpmmd.data.files.sample import select_columns

    both = [samples[0], samples[-1]]
    if len(samples) == 1:
        for name in (*x, *y):
            both[0].check_column(name)
        left = [name for name in both[0].columns if name not in settings.design_columns]
        x = x or [name for name in left if name not in y]
        y = y or [name for name in left if name not in x]
    chosen = []
    for side, (sample, columns) in enumerate(zip(both, (x, y), strict=True)):
        if columns:
            keep = [name for name in settings.design_columns if name in sample.columns and (side == 0 or len(samples) == 2)]
            sample = select_columns(sample, columns=[*columns, *keep])
        if len(samples) == 1:
            sample = replace(sample, label=f"{sample.label} ({', '.join(columns)})")
        chosen.append(sample)
    return chosen[0], chosen[1]
