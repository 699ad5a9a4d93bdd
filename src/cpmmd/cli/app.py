"""The commands and their help. Everything else is imported by the command that needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from cpmmd import __version__
from cpmmd.cli import settings
from cpmmd.cli.failures import Commands
from cpmmd.cli.main import ERROR
from cpmmd.cli.settings import ALPHA, METHOD, Reading, Settings

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
Report = Annotated[str | None, typer.Option("--report", metavar="FILE", help="Write a report: .html, .md or .json.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cpmmd {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Are these two samples from the same distribution?

    \b
    cpmmd test reference.csv today.csv          compare two files
    cpmmd test people.csv --split-by country    compare the groups of one file
    cpmmd fit reference.csv -o detector.cpmmd   then: cpmmd check detector.cpmmd monday.csv tuesday.csv
    cpmmd power pilot_a.csv pilot_b.csv         how many rows would I need?
    cpmmd demo                                  see it work

    Files: CSV, TSV, JSON (also .gz, .zst), Excel, Parquet, Arrow, NPY, NPZ, and - for standard input.

    Exit code: 0 no difference found, 1 difference found, 2 error.
    """


@app.command("test")
def compare(
    files: Annotated[list[str], typer.Argument(metavar="A B", help="Two files; one with --split-by.", show_default=False)],
    method: settings.Method = METHOD,
    alpha: settings.Alpha = ALPHA,
    permutations: settings.Permutations = None,
    seed: settings.Seed = None,
    jobs: settings.Jobs = None,
    split_by: Annotated[
        str | None, typer.Option("--split-by", metavar="COLUMN", help="Compare the groups that this column makes in one file.")
    ] = None,
    margin: settings.Margin = None,
    columns: settings.Columns = None,
    drop: settings.Drop = None,
    text: settings.Text = None,
    dayfirst: settings.DayFirst = False,
    date_format: settings.DateFormat = None,
    decimal: settings.Decimal = ".",
    encoding: settings.Encoding = "utf-8",
    missing: settings.Missing = "error",
    scale: settings.Scale = None,
    group_by: settings.GroupBy = None,
    stratify_by: settings.StratifyBy = None,
    pair_by: settings.PairBy = None,
    blocks: settings.Blocks = None,
    format: settings.Format = None,
    memory_limit: settings.MemoryLimit = None,
    file_limit: settings.FileLimit = None,
    json: settings.Json = False,
    report: Report = None,
    explain: settings.Explain = True,
    force: settings.Force = False,
    exit_zero: settings.ExitZero = False,
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

    Columns are matched by name; text columns are categories. More than two groups are each compared with the rest, their
    p-values adjusted. Exit code: 0 no difference found, 1 difference found, 2 error; with --margin 0 equivalence shown, 1 not.
    """
    from cpmmd.cli.comparison import Answering, compare_files, show_equivalence
    from cpmmd.cli.groups import compare_groups

    reading = Reading.of(columns, drop, text, format, file_limit, dayfirst, date_format, decimal, encoding)
    design = (group_by, stratify_by, pair_by, blocks)
    settings = Settings(method, alpha, permutations, seed, jobs, missing, scale, memory_limit, *design)
    answering = Answering(json, report, explain, force)
    wanted = 2 if split_by is None else 1
    if len(files) != wanted:
        raise typer.BadParameter(f"{'Two files are' if wanted == 2 else 'With --split-by one file is'} needed. Got {len(files)}.")
    if margin is not None:
        if split_by is not None:
            raise typer.BadParameter("--margin compares two files. Got --split-by, too; leave one of them out.")
        differs = not show_equivalence(files, margin, reading, settings, answering)
    elif split_by is None:
        differs = compare_files(files, reading, settings, answering)
    else:
        differs, failed = compare_groups(files[0], split_by, reading, settings, answering)
        if failed:
            raise typer.Exit(ERROR)
    raise typer.Exit(int(differs and not exit_zero))


@app.command()
def fit(
    reference: Annotated[str, typer.Argument(help="The file that batches are compared with.", show_default=False)],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where the detector goes.", show_default=False)],
    example: Annotated[
        str | None, typer.Option("--example", metavar="FILE", help="A batch that differs: trains the kernel to see it.")
    ] = None,
    method: settings.Method = METHOD,
    alpha: settings.Alpha = ALPHA,
    permutations: settings.Permutations = None,
    seed: settings.Seed = None,
    jobs: settings.Jobs = None,
    columns: settings.Columns = None,
    drop: settings.Drop = None,
    text: settings.Text = None,
    dayfirst: settings.DayFirst = False,
    date_format: settings.DateFormat = None,
    decimal: settings.Decimal = ".",
    encoding: settings.Encoding = "utf-8",
    missing: settings.Missing = "error",
    scale: settings.Scale = None,
    group_by: settings.GroupBy = None,
    stratify_by: settings.StratifyBy = None,
    pair_by: settings.PairBy = None,
    blocks: settings.Blocks = None,
    format: settings.Format = None,
    memory_limit: settings.MemoryLimit = None,
    file_limit: settings.FileLimit = None,
    monitor: Annotated[
        bool,
        typer.Option("--monitor", help="Compare batches with all that came before; its alarm is valid at any time."),
    ] = False,
    json: settings.Json = False,
    force: settings.Force = False,
) -> None:
    """Keep a reference in a file that `cpmmd check` compares batches with.

    \b
    cpmmd fit reference.csv -o monitor.cpmmd --monitor
    cpmmd fit reference.csv -o detector.cpmmd
    cpmmd fit reference.parquet --example bad_week.parquet -o detector.cpmmd

    A detector answers for each call by itself, against the reference as it is. With --monitor, --alpha is the probability that
    there is ever a false alarm, however often it is asked.
    """
    from cpmmd.cli.detection import fit

    design = (group_by, stratify_by, pair_by, blocks)
    settings = Settings(method, alpha, permutations, seed, jobs, missing, scale, memory_limit, *design)
    fit(
        reference,
        output,
        example,
        Reading.of(columns, drop, text, format, file_limit, dayfirst, date_format, decimal, encoding),
        settings,
        as_json=json,
        force=force,
        monitor=monitor,
    )


@app.command()
def check(
    detector: Annotated[str, typer.Argument(metavar="FILE", help="What `cpmmd fit` wrote.", show_default=False)],
    batches: Annotated[
        list[str] | None,
        typer.Argument(metavar="BATCH...", help="Files to check; none to report what a history knows.", show_default=False),
    ] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", "-a", help="Level; the detector's by default.")] = None,
    history: Annotated[
        str | None,
        typer.Option("--history", metavar="FILE", help="Keep the answers in an SQLite file; known batches are skipped."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Test batches that the history knows, too.")] = False,
    metrics: Annotated[
        str | None, typer.Option("--metrics", metavar="FILE", help="Write a monitor's state as Prometheus text, for a scrape.")
    ] = None,
    columns: settings.Columns = None,
    drop: settings.Drop = None,
    text: settings.Text = None,
    missing: settings.MissingOfBatch = None,
    dayfirst: settings.DayFirst = False,
    date_format: settings.DateFormat = None,
    decimal: settings.Decimal = ".",
    encoding: settings.Encoding = "utf-8",
    format: settings.Format = None,
    file_limit: settings.FileLimit = None,
    json: settings.Json = False,
    report: Report = None,
    explain: settings.Explain = True,
    force: settings.Force = False,
    exit_zero: settings.ExitZero = False,
) -> None:
    """Test batches against a monitor or a detector, one line each.

    \b
    cpmmd check monitor.cpmmd today.csv --history history.sqlite --metrics cpmmd.prom
    cpmmd check monitor.cpmmd --report series.html
    cpmmd check detector.cpmmd monday.csv tuesday.csv
    cpmmd check detector.cpmmd today.parquet --history history.sqlite --report series.html
    cpmmd check detector.cpmmd batches/*.csv --json
    cpmmd check detector.cpmmd --history history.sqlite --report series.html

    A monitor counts each batch once, by its name and rows, in the order given; exit code 1 while there is an alarm. A detector's
    p-values are adjusted for the number of batches of the call, and its history knows a batch by its rows. Exit code: 0 no
    difference found, 1 a batch differs, tested now or known, 2 error.
    """
    from cpmmd.cli.comparison import Answering
    from cpmmd.cli.detection import Checking, Watching, check
    from cpmmd.storage.container import kind_of

    reading = Reading.of(columns, drop, text, format, file_limit, dayfirst, date_format, decimal, encoding)
    if kind_of(detector) == "monitor":
        if again or alpha is not None or missing is not None:
            raise typer.BadParameter("A monitor has its own level and counts each batch once: no --alpha, --again or --missing.")
        watching = Watching(detector, history, metrics)
        alarm, failed = watching.check(batches or [], reading, Answering(json, report, explain, force))
        raise typer.Exit(ERROR if failed else int(alarm and not exit_zero))
    if metrics is not None:
        raise typer.BadParameter("--metrics is for a monitor (`cpmmd fit --monitor`).")
    if not batches and (history is None or report is None):
        raise typer.BadParameter("A batch is needed. Got none; without one, --history and --report draw what is known.")
    checking = Checking(alpha, history, again, missing)
    differs, failed = check(detector, batches or [], reading, checking, Answering(json, report, explain, force))
    raise typer.Exit(ERROR if failed else int(differs and not exit_zero))


@app.command()
def acknowledge(
    monitor: Annotated[str, typer.Argument(metavar="MONITOR", help="What `cpmmd fit --monitor` wrote.", show_default=False)],
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="FILE", help="Rows of the new state; those since the change by default.")
    ] = None,
    columns: settings.Columns = None,
    drop: settings.Drop = None,
    text: settings.Text = None,
    dayfirst: settings.DayFirst = False,
    date_format: settings.DateFormat = None,
    decimal: settings.Decimal = ".",
    encoding: settings.Encoding = "utf-8",
    format: settings.Format = None,
    file_limit: settings.FileLimit = None,
) -> None:
    """Take a change that a monitor found for granted: the new state becomes the reference, evidence starts anew.

    \b
    cpmmd acknowledge monitor.cpmmd
    cpmmd acknowledge monitor.cpmmd --reference new.csv
    """
    from cpmmd.cli.detection import acknowledge

    reading = Reading.of(columns, drop, text, format, file_limit, dayfirst, date_format, decimal, encoding)
    acknowledge(monitor, reference, reading)


@app.command()
def dismiss(
    monitor: Annotated[str, typer.Argument(metavar="MONITOR", help="What `cpmmd fit --monitor` wrote.", show_default=False)],
) -> None:
    """Go on after an alarm of a monitor that was none: the past stays, evidence starts anew.

    \b
    cpmmd dismiss monitor.cpmmd
    """
    from cpmmd.cli.detection import dismiss

    dismiss(monitor)


@app.command()
def power(
    files: Annotated[list[str], typer.Argument(metavar="A B", help="Two pilot files.", show_default=False)],
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", "-n", metavar="50,100,...", help="Rows of each sample; by default around the pilot's."),
    ] = None,
    target: Annotated[float, typer.Option("--target", help="The power to find the number of rows for.")] = 0.8,
    repetitions: Annotated[int, typer.Option("--repetitions", "-r", help="Draws of each size.")] = 100,
    method: settings.Method = METHOD,
    alpha: settings.Alpha = ALPHA,
    permutations: settings.Permutations = None,
    seed: settings.Seed = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Number of processes, -1 for all cores; one by default.")
    ] = None,
    columns: settings.Columns = None,
    drop: settings.Drop = None,
    text: settings.Text = None,
    dayfirst: settings.DayFirst = False,
    date_format: settings.DateFormat = None,
    decimal: settings.Decimal = ".",
    encoding: settings.Encoding = "utf-8",
    missing: settings.Missing = "error",
    scale: settings.Scale = None,
    group_by: settings.GroupBy = None,
    stratify_by: settings.StratifyBy = None,
    pair_by: settings.PairBy = None,
    blocks: settings.Blocks = None,
    format: settings.Format = None,
    memory_limit: settings.MemoryLimit = None,
    file_limit: settings.FileLimit = None,
    json: settings.Json = False,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Draw the curve: .png, .svg or .pdf.")] = None,
    force: settings.Force = False,
) -> None:
    """Estimate how many rows it takes to find the difference that two pilot files show.

    \b
    cpmmd power pilot_a.csv pilot_b.csv
    cpmmd power a.csv b.csv --sizes 50,100,200,400 --plot power.png --jobs 4

    Sizes up to the pilot's are tried on rows drawn from it without replacement; larger ones are extrapolated.
    """
    from cpmmd.cli.power import plan

    if len(files) != 2:
        raise typer.BadParameter(f"Two files are needed. Got {len(files)}.")
    design = (group_by, stratify_by, pair_by, blocks)
    settings = Settings(method, alpha, permutations, seed, jobs, missing, scale, memory_limit, *design)
    reading = Reading.of(columns, drop, text, format, file_limit, dayfirst, date_format, decimal, encoding)
    plan(files, sizes, reading, settings, target=target, repetitions=repetitions, plot=plot, as_json=json, force=force)


@app.command()
def demo(
    folder: Annotated[str, typer.Argument(metavar="[FOLDER]", help="Where its files go.", show_default=True)] = "cpmmd-demo",
    force: settings.Force = False,
) -> None:
    """Compare real tumours: two files that differ, two that do not, and a report to open.

    \b
    cpmmd demo
    """
    from cpmmd.cli.demo import demonstrate

    demonstrate(folder, force=force)


@app.command()
def methods(json: settings.Json = False) -> None:
    """List the tests that --method takes.

    \b
    cpmmd methods
    cpmmd methods --json
    """
    from cpmmd.cli.demo import list_methods

    list_methods(as_json=json)


@app.command()
def schema() -> None:
    """Print the JSON schema of what --json prints.

    \b
    cpmmd schema > result.schema.json
    """
    from cpmmd.cli.demo import print_schema

    print_schema()
