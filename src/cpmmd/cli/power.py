"""``cpmmd power``: the sample size that finds a difference."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from cpmmd.cli.comparison import sides
from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import note, progress, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.settings import ReadOptions, Settings, TypedCommand, check_output
from cpmmd.core.installation import require
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.studies.power_table import PowerTable


def plan(
    files: Sequence[str],
    sizes: str | None,
    reading: ReadOptions,
    settings: Settings,
    typed: TypedCommand,
    *,
    target: float,
    repetitions: int,
    plot: str | None,
    as_json: bool,
    force: bool,
) -> None:
    """Print the power at some sizes, and the sample size for a target power."""
    from cpmmd.studies.planning import power_from_pilot

    collect_garbage_from_now_on()
    if plot is not None:
        require("--plot", ["matplotlib"], "plot")
        if Path(plot).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(f"A plot's name must end in .png, .svg or .pdf. Got {plot!r}; rename it.")
        check_output(plot, "plot", force=force, inputs=files)
    with progress("reading"):
        x, y = reading.read(files, keep=settings.design_columns)
    with progress("testing draws") as line, calling_samples(x=x.label, y=y.label):
        table = power_from_pilot(
            x.data, y.data, _sizes(sizes), target=target, repetitions=repetitions, progress=line, **settings.keywords()
        )
    again = typed.again(sizes=[row.size for row in table.rows], target=target, repetitions=repetitions, seed=table.seed)
    if plot is not None:
        _draw(table, plot)
    noticed = list(dict.fromkeys((*x.notes, *y.notes)))
    if as_json:
        found = {"columns": settings.compared(x), "notes": noticed, "table": table.to_dict()}
        say_json({"command": "power", "repeat": again, **sides(x, y), **found})
        return
    note(noticed)
    say_verdict(table.sentence, differs=False)
    say()
    rows = [
        (str(row.size), f"{row.estimate:.2f}", row.source, f"{row.power:.2f}, {row.low:.2f} to {row.high:.2f}")
        for row in table.rows
    ]
    say_table((f"{table.unit} of each", "power", "from", "fitted, 90% interval"), rows, right=(0, 1))
    say()
    say("Rows are drawn without replacement. Up to the pilot's size, power is the share of draws that reject.")
    say("Beyond it, power is that of the fitted curve.")
    say_end(again, "Plot", plot)


def _sizes(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.replace(" ", "").split(",") if part]
    except ValueError as error:
        raise InputError(f"Sizes must be whole numbers such as 50,100,200. Got {text!r} instead.") from error


def _draw(table: PowerTable, plot: str) -> None:
    from matplotlib.figure import Figure

    from cpmmd.core.atomic import write_whole
    from cpmmd.plotting.selection import power_curves

    figure = Figure(figsize=(7, 4.5), layout="constrained")  # no pyplot: nothing opens, nothing stays behind
    power_curves(table, ax=figure.add_subplot())
    form, picture = Path(plot).suffix.lower()[1:], BytesIO()
    mark = {"Software" if form == "png" else "Creator": "Written by cpmmd"}  # so that it may be drawn anew
    figure.savefig(picture, format=form, dpi=150, metadata=mark)
    write_whole(plot, picture.getvalue())
