"""The commands and their help. Everything else is imported by the command that needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from cpmmd import __version__
from cpmmd.cli.failures import Commands
from cpmmd.cli.responses import ResponsesSettings
from cpmmd.cli.settings import (
    FORCE,
    JSON,
    ChangeSettings,
    ComparisonSettings,
    FitsSettings,
    OutputOptions,
    PairedSettings,
    PowerSettings,
    ReadOptions,
    Settings,
    TypedCommand,
    option,
    with_groups,
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


Monitor = Annotated[str, typer.Argument(metavar="MONITOR", help="A file of `cpmmd fit --monitor`.", show_default=False)]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cpmmd {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Test whether two samples come from the same distribution.

    \b
    cpmmd test reference.csv today.csv          compare two files
    cpmmd test people.csv --split-by country    compare the groups of one file
    cpmmd samples north.csv south.csv east.csv  compare several files
    cpmmd change old.csv new.csv --target price inputs, target, or the relation between them?
    cpmmd fit reference.csv -o detector.cpmmd   then: cpmmd check detector.cpmmd monday.csv tuesday.csv
    cpmmd power pilot_a.csv pilot_b.csv         how many rows would I need?
    cpmmd fits residuals.csv --model normal     is this Gaussian?
    cpmmd independence people.csv --y vote      do columns depend on each other?
    cpmmd demo                                  see it work

    Files: CSV, TSV, JSON (also .gz, .zst), Excel, Parquet, Arrow, NPY, NPZ, and - for standard input.

    Exit code: 0 no difference found, 1 difference found, 2 error.
    """


@app.command("test")
@with_groups
def compare(
    files: Annotated[
        list[str], typer.Argument(metavar="A B", help="Two files, or one file with --split-by.", show_default=False)
    ],
    *,
    settings: ComparisonSettings,
    split_by: str | None = option("Split one file into groups by this column, and compare them.", None, metavar="COLUMN"),
    margin: float | None = option(
        "Test for equivalence instead: are all differences below this many standard deviations?", None, metavar="SDS"
    ),
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Test whether two files come from the same distribution.

    \b
    cpmmd test reference.csv today.csv
    cpmmd test a.parquet b.parquet --columns age,income --report report.html
    cpmmd test people.csv --split-by country --json
    cpmmd test old.csv new.csv --margin 0.2
    zcat old.csv.gz | cpmmd test - new.csv --missing impute
    cpmmd test data.npz:before data.npz:after --method mmdagg --seed 1
    cpmmd test before.csv after.csv --pair-by patient
    cpmmd test old.csv new.csv --group-by machine --stratify-by site

    Columns are matched by name; text columns are categories. More than two groups are compared as by `cpmmd samples`; with
    another --method, each with the rest. Exit code: 0 no difference found, 1 difference found, 2 error. With --margin: 0
    equivalence shown, 1 not shown, 2 error.
    """
    from cpmmd.cli.comparison import compare_files, compare_groups, show_equivalence

    wanted, failed = 2 if split_by is None else 1, False
    if len(files) != wanted:
        raise typer.BadParameter(
            f"{'Two files are' if wanted == 2 else 'With --split-by, one file is'} needed. Got {len(files)}."
        )
    if margin is not None and split_by is not None:
        raise typer.BadParameter(
            "--margin compares two files, and --split-by the groups of one file. Got both; leave one of them out."
        )
    if margin is not None:
        differs = not show_equivalence(files, margin, reading, settings, answering)
    elif split_by is None:
        differs = compare_files(files, reading, settings, answering)
    else:
        differs, failed = compare_groups(files[0], split_by, reading, settings, answering)
    raise answering.exit(differs, failed)


@app.command("fits")
@with_groups
def fits(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file whose rows are compared with the model.", show_default=False)
    ],
    *,
    settings: FitsSettings,
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Test whether the rows of a file come from a model.

    \b
    cpmmd fits residuals.csv --model normal
    cpmmd fits waits.csv --columns minutes --model "gamma(5, scale=2)"
    cpmmd fits chain.csv --model "norm(0, 2)" --columns mu --blocks auto

    normal is any normal distribution, of one column or several. Other names are those of scipy.stats, with numbers as parameters.
    Exit code: 0 no misfit found, 1 the rows do not fit, 2 error.
    """
    from cpmmd.cli.fits import show_fit

    raise answering.exit(show_fit(file, reading, settings, answering))


@app.command()
@with_groups
def independence(
    files: Annotated[list[str], typer.Argument(metavar="A [B]", help="One file with --x or --y, or two.", show_default=False)],
    *,
    x: list[str] | None = option("Columns of one side [default: all but --y].", None, flag="--x", metavar="A,B,..."),
    y: list[str] | None = option("Columns of the other side [default: all but --x].", None, flag="--y", metavar="A,B,..."),
    settings: PairedSettings,
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Test whether columns depend on each other, row by row.

    \b
    cpmmd independence people.csv --x age,income --y vote
    cpmmd independence people.csv --y vote --stratify-by country --report report.html
    cpmmd independence genes.parquet symptoms.csv --group-by family

    Of two files, row i of one belongs to row i of the other. With --stratify-by the test is one of conditional independence,
    given that column. Exit code: 0 no dependence found, 1 dependence found, 2 error.
    """
    from cpmmd.cli.independence import show_independence

    raise answering.exit(show_independence(files, x, y, reading, settings, answering))


@app.command()
@with_groups
def samples(
    files: Annotated[list[str], typer.Argument(metavar="A B C...", help="Two files or more.", show_default=False)],
    *,
    settings: Settings,
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Test whether several files come from one distribution, and which of them differ.

    \b
    cpmmd samples north.csv south.csv east.csv
    cpmmd samples sites/*.parquet --report sites.html
    cpmmd samples a.csv b.csv c.csv --stratify-by weekday --json

    One exact test of all files; where it finds a difference, every pair is compared, with p-values adjusted for the number of
    pairs. For the groups of one file: `cpmmd test people.csv --split-by country`. Exit code: 0 no difference found, 1 difference
    found, 2 error.
    """
    from cpmmd.cli.samples import compare_several_files

    if len(files) < 2:
        raise typer.BadParameter(f"At least two files are needed. Got {len(files)}.")
    raise answering.exit(compare_several_files(files, reading, settings, answering))


@app.command()
@with_groups
def change(
    files: Annotated[list[str], typer.Argument(metavar="A B", help="The reference and the new file.", show_default=False)],
    *,
    settings: ChangeSettings,
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Test what changed: the inputs, the target, or the target given the inputs.

    \b
    cpmmd change old.csv new.csv --target price
    cpmmd change old.csv new.csv --target churned --predictions score --report change.html
    cpmmd change old.csv new.csv --target price --drop id --json

    All columns but target and predictions are inputs. P-values are adjusted for the three tests. Exit code: 0 no change found,
    1 change found, 2 error.
    """
    from cpmmd.cli.change import show_change

    if len(files) != 2:
        raise typer.BadParameter(f"Two files are needed. Got {len(files)}.")
    raise answering.exit(show_change(files, settings, reading, answering))


@app.command()
@with_groups
def responses(
    files: Annotated[list[str], typer.Argument(metavar="A B", help="Two files of answers.", show_default=False)],
    *,
    settings: ResponsesSettings,
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Test whether answers to the same prompts come from the same model.

    \b
    cpmmd responses yesterday.jsonl today.jsonl
    cpmmd responses a.csv b.csv --prompt question --response text --report answers.html

    A file has a row for each answer. Answers are compared within prompts, so ask each prompt several times on both sides.
    """
    from cpmmd.cli.responses import compare_responses

    if len(files) != 2:
        raise typer.BadParameter(f"Two files are needed. Got {len(files)}.")
    raise answering.exit(compare_responses(files, settings, reading, answering))


@app.command()
@with_groups
def fit(
    reference: Annotated[str, typer.Argument(help="The file that batches are compared with.", show_default=False)],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False)],
    *,
    example: str | None = option(
        "A batch that differs; the kernel is trained to detect such a difference.", None, metavar="FILE"
    ),
    settings: Settings,
    reading: ReadOptions,
    monitor: bool = option("Fit a monitor, which compares each batch with everything before it.", False),
    json: bool = JSON,
    force: bool = FORCE,
    typed: TypedCommand,
) -> None:
    """Fit a detector or a monitor to a reference, for `cpmmd check`.

    \b
    cpmmd fit reference.csv -o monitor.cpmmd --monitor
    cpmmd fit reference.csv -o detector.cpmmd
    cpmmd fit reference.parquet --example bad_week.parquet -o detector.cpmmd

    A detector compares each batch with the reference; --alpha is the level of one call. A monitor compares each batch with
    everything before it; the probability of ever raising a false alarm is at most --alpha, however often it is asked.
    """
    from cpmmd.cli.detection import fit

    fit(reference, output, example, reading, settings, typed, as_json=json, force=force, monitor=monitor)


@app.command()
@with_groups
def check(
    detector: Annotated[str, typer.Argument(metavar="FILE", help="A file of `cpmmd fit`.", show_default=False)],
    batches: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BATCH...", help="Files to check. Without any, the batches checked so far are reported.", show_default=False
        ),
    ] = None,
    *,
    alpha: float | None = option("Significance level [default: the detector's].", None, "-a"),
    history: str | None = option("Keep the answers in an SQLite file; known batches are not tested again.", None, metavar="FILE"),
    again: bool = option("Test known batches again.", False),
    metrics: str | None = option("Write the monitor's state as Prometheus metrics.", None, metavar="FILE"),
    missing: str | None = option(
        "Refuse missing values, drop their rows, or fill them in [default: as fitted].",
        None,
        metavar="error|drop|impute",
    ),
    reading: ReadOptions,
    answering: OutputOptions,
) -> None:
    """Check batches with a monitor or a detector, one line for each.

    \b
    cpmmd check monitor.cpmmd today.csv --history history.sqlite --metrics cpmmd.prom
    cpmmd check monitor.cpmmd --report series.html
    cpmmd check detector.cpmmd monday.csv tuesday.csv
    cpmmd check detector.cpmmd today.parquet --history history.sqlite --report series.html
    cpmmd check detector.cpmmd batches/*.csv --json
    cpmmd check detector.cpmmd --history history.sqlite --report series.html

    A monitor counts each batch once, by its name and rows, in the order given. A detector's p-values are adjusted for the number
    of batches of the call; its history knows a batch by its rows.

    Exit code of a monitor: 0 no alarm, 1 while there is an alarm, with or without new batches, 2 error. Of a detector: 0 no
    difference found, 1 a batch of the call differs, tested now or known, 2 error; without batches 0.
    """
    from cpmmd.cli.detection import CheckOptions, MonitorCheck, check
    from cpmmd.storage.container import kind_of

    if kind_of(detector) == "monitor":
        if again or alpha is not None or missing is not None:
            raise typer.BadParameter(
                "A monitor has its own level and counts each batch once. Leave out --alpha, --again and --missing."
            )
        raise answering.exit(*MonitorCheck(detector, history, metrics).check(batches or [], reading, answering))
    if metrics is not None:
        raise typer.BadParameter("--metrics is only for a monitor (`cpmmd fit --monitor`). Leave it out.")
    if not batches and (history is None or answering.report is None):
        raise typer.BadParameter(
            "At least one batch is needed. Got none; name a file, or use --history and --report to report on earlier batches."
        )
    checking = CheckOptions(alpha, history, again, missing)
    raise answering.exit(*check(detector, batches or [], reading, checking, answering))


@app.command()
@with_groups
def acknowledge(
    monitor: Monitor,
    *,
    reference: str | None = option("Rows of the new baseline [default: those since the change].", None, metavar="FILE"),
    reading: ReadOptions,
) -> None:
    """Accept a detected change as the new baseline: it becomes the reference, and the evidence is reset.

    \b
    cpmmd acknowledge monitor.cpmmd
    cpmmd acknowledge monitor.cpmmd --reference new.csv
    """
    from cpmmd.cli.detection import acknowledge

    acknowledge(monitor, reference, reading)


@app.command()
def dismiss(monitor: Monitor) -> None:
    """Dismiss a false alarm: keep the past, reset the evidence.

    \b
    cpmmd dismiss monitor.cpmmd
    """
    from cpmmd.cli.detection import dismiss

    dismiss(monitor)


@app.command()
@with_groups
def power(
    files: Annotated[list[str], typer.Argument(metavar="A B", help="Two pilot files.", show_default=False)],
    *,
    sizes: str | None = option(
        "Sample sizes, in rows of each sample [default: around the pilot's].", None, "-n", metavar="50,100,..."
    ),
    target: float = option("The power to plan for.", 0.8),
    repetitions: int = option("Number of draws at each size.", 100, "-r"),
    settings: PowerSettings,
    reading: ReadOptions,
    json: bool = JSON,
    plot: str | None = option("Draw the power curve: .png, .svg or .pdf.", None, metavar="FILE"),
    force: bool = FORCE,
    typed: TypedCommand,
) -> None:
    """Estimate the sample size that finds the difference between two pilot files.

    \b
    cpmmd power pilot_a.csv pilot_b.csv
    cpmmd power a.csv b.csv --sizes 50,100,200,400 --plot power.png --jobs 4

    Up to the pilot's size, power is estimated on rows drawn without replacement; larger sizes are extrapolated.
    """
    from cpmmd.cli.power import plan

    if len(files) != 2:
        raise typer.BadParameter(f"Two files are needed. Got {len(files)}.")
    plan(files, sizes, reading, settings, typed, target=target, repetitions=repetitions, plot=plot, as_json=json, force=force)


@app.command()
@with_groups
def demo(
    folder: Annotated[str, typer.Argument(metavar="[FOLDER]", help="The folder to write to.", show_default=True)] = "cpmmd-demo",
    force: bool = FORCE,
) -> None:
    """Compare real tumours: two files that differ, two that do not, and a report.

    \b
    cpmmd demo
    """
    from cpmmd.cli.demo import demonstrate

    demonstrate(folder, force=force)


@app.command()
@with_groups
def doctor(json: bool = JSON) -> None:
    """Show versions, extras, threads and memory, and run a self-test of a second.

    \b
    cpmmd doctor
    cpmmd doctor --json

    Exit code: 0 all is well, 2 the self-test failed or a required package is not installed.
    """
    from cpmmd.cli.doctor import examine
    from cpmmd.cli.main import ERROR

    if not examine(as_json=json):
        raise typer.Exit(ERROR)


@app.command()
@with_groups
def methods(json: bool = JSON) -> None:
    """List the tests that --method takes.

    \b
    cpmmd methods
    cpmmd methods --json
    """
    from cpmmd.cli.output import say_json
    from cpmmd.questions.two_sample import methods
    from cpmmd.registry import DEFAULT_METHOD

    known = methods()
    if json:
        say_json({"command": "methods", "default": DEFAULT_METHOD, "methods": known})
        return
    width = max(map(len, known))
    for name, summary in known.items():
        typer.echo(f"{name:<{width}}  {summary}")


@app.command()
def schema() -> None:
    """Print the JSON schema of what --json prints.

    \b
    cpmmd schema > result.schema.json
    """
    from importlib.resources import files

    typer.echo(files("cpmmd").joinpath("schemas", "result.schema.json").read_text(encoding="utf-8").rstrip())
