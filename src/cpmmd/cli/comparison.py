"""``cpmmd test``: two files, or the groups of one."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from cpmmd.cli.output import probability, say, say_table
from cpmmd.core.text import harmless
from cpmmd.errors import CpmmdError

if TYPE_CHECKING:
    from cpmmd.explain.differences import ColumnDifference
    from cpmmd.explain.values import Explanation
    from cpmmd.results import TestResult
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cpmmd.cli.failures import note_in_command_words
from cpmmd.cli.output import note, progress, say_end, say_json, say_verdict
from cpmmd.cli.settings import Reading, Settings, command_line
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.data.files.sample import FileSample
    from cpmmd.explain.values import Explanation
    from cpmmd.results import TestResult
from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.settings import METHOD

if TYPE_CHECKING:
    from cpmmd.equivalence.result import EquivalenceResult


# Where samples differ, in a few lines: the sentence and the leading columns of an explanation.


TOP = 8  # columns on the screen
WIDEST = 28  # characters of a sample's name above its values


def explain_result(result: TestResult, names: tuple[str, str] | None = None) -> Explanation | None:
    """Return the explanation of a result, the same in every form of the answer; None where there is none to give."""
    try:
        return result.explain() if names is None else result.explain(names=names)
    except CpmmdError:
        return None


def sample_names(x: str, y: str) -> tuple[str, str]:
    """Return what to call two samples in a sentence: their files' names, without folders where those are enough."""
    short = PurePath(x).name or x, PurePath(y).name or y
    if short[0] != short[1]:
        return short
    return (x, y) if x != y else (f"{x} (first)", f"{y} (second)")


def say_where(explanation: Explanation) -> None:
    """Print the sentences, the columns that differ, and pairs that changed."""
    from cpmmd.explain.differences import in_header

    say()
    say("Where")
    say(f"  {explanation.where}")
    if explanation.told:
        say(f"  {explanation.told}")
    for line in drop_hint(explanation):
        say(f"  {line}")
    names = [harmless(in_header(name), WIDEST) for name in explanation.names]
    _say_columns(explanation, names)
    if explanation.compared:
        say(f"  Here {explanation.compared}.")
    _say_pairs(explanation, names)


def _say_columns(explanation: Explanation, names: list[str]) -> None:
    shown = explanation.columns[: max(3, min(TOP, len(explanation.differing)))]
    say_table(("column", "difference", *names, "effect", "p"), [_row(column) for column in shown], right=(2, 3, 4, 5))
    left = len(explanation.columns) - len(shown)
    if left:
        say(f"  ... and {left} more column{'s' * (left > 1)} (--json or --report has all); p is adjusted for all columns")


def _say_pairs(explanation: Explanation, names: list[str]) -> None:
    pairs = explanation.differing_pairs[:TOP]
    if not pairs:
        return
    rows = [
        (" and ".join(p.labels), p.words, f"{p.correlation_x:.2f}", f"{p.correlation_y:.2f}", probability(p.pvalue))
        for p in pairs
    ]
    say()
    say_table(("pair", f"in {names[1]} they", *names, "p"), rows, right=(2, 3, 4))


def drop_hint(explanation: Explanation) -> list[str]:
    """Say how to leave suspicious columns out."""
    import shlex

    if not explanation.suspicious:
        return []
    flags = " ".join(f"--drop {shlex.quote(one.name)}" for one in explanation.suspicious)
    return [f"Leave out what says nothing about the data: {flags}"]


def _row(column: ColumnDifference) -> tuple[str, ...]:
    from cpmmd.explain.values import typical

    effect = str(column.effect) if column.significant and column.effect is not None else ""
    return (column.label, column.words, *typical(column), effect, probability(column.pvalue))


def document(explanation: Explanation | None) -> dict[str, Any] | None:
    """Return an explanation in plain JSON types, without a number for every row."""
    if explanation is None:
        return None
    full: dict[str, Any] = explanation.to_dict()
    return {name: value for name, value in full.items() if name not in ("witness_x", "witness_y", "rows_x", "rows_y")}


@dataclass(frozen=True)
class Answering:
    """What is wanted of an answer."""

    json: bool = False
    report: str | None = None
    explain: bool = True
    force: bool = False

    def check(self, files: Sequence[str] = ()) -> None:
        """Refuse a report that could not be written, or that would replace what is not ours, before the work is done."""
        if self.report is None:
            return
        from cpmmd.core.atomic import check_target
        from cpmmd.report.elements import format_of

        if format_of(self.report) == "html":
            _require_report_extra()
        if not Path(self.report).parent.is_dir():
            raise InputError(f"There is no folder {str(Path(self.report).parent)!r} for the report. Make it first.")
        check_target(self.report, force=self.force, inputs=files)


def _require_report_extra() -> None:
    from cpmmd.core.installation import missing_extra

    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise missing_extra("An HTML report", package, "report")


def compare_files(files: Sequence[str], reading: Reading, settings: Settings, answering: Answering) -> bool:
    """Compare two files; whether they differ."""
    answering.check(files)
    with progress("reading"):
        x, y = reading.read(files, keep=settings.aside)
    notes = ["both names are the same file"] if _same_file(files) else []
    return compare(x, y, files, reading, settings, answering, notes=notes)


def compare(
    x: FileSample,
    y: FileSample,
    files: Sequence[str],
    reading: Reading,
    settings: Settings,
    answering: Answering,
    *,
    split_by: str | None = None,
    notes: Sequence[str] = (),
) -> bool:
    """Compare two samples and print the answer."""
    with progress("testing") as line:
        result = settings.test(x, y, line)
    again = command_line("test", files, {"--split-by": split_by, **reading.arguments(), **settings.arguments(result.seed)})
    noticed = list(dict.fromkeys((*notes, *x.notes, *y.notes)))
    if not answering.json and answering.report is None:  # the answer does not wait for its explanation; a report comes first
        note(noticed)
        _say_evidence(result, x, y)
    names = sample_names(x.label, y.label)
    with progress("explaining"):
        explanation = explain_result(result, names) if answering.explain else None
        if answering.report is not None:
            title = " v ".join(names)
            shown: dict[str, Any] = {"explanation": explanation, "explain": answering.explain, "names": names}
            result.report(answering.report, command=again, title=title, **shown)
    if answering.json:
        say_json(_document(x, y, settings.compared(x), split_by, result, explanation, again, noticed))
    else:
        if answering.report is not None:
            note(noticed)
            _say_evidence(result, x, y)
        if explanation is not None and (result.reject or explanation.differing or explanation.suspicious):
            say_where(explanation)
        if not result.reject and split_by is None and result.design is None:  # --margin takes rows one by one
            say()
            say("Nothing found is not the same as equal: --margin 0.2, say, tells how large a difference these rows leave open.")
        say_end(again, "Report", answering.report)
    return bool(result.reject)


def _say_evidence(result: TestResult, x: FileSample, y: FileSample) -> None:
    say_verdict(result.verdict, differs=result.reject)
    say()
    say("Evidence")
    for term, value in (("first", x.label), ("second", y.label), *result.facts):
        say(f"  {term:<12} {note_in_command_words(value) if term == 'note' else value}")
    sys.stdout.flush()


def _document(
    x: FileSample,
    y: FileSample,
    columns: list[str],
    split_by: str | None,
    result: TestResult,
    explanation: Explanation | None,
    again: str,
    notes: list[str],
) -> dict[str, Any]:
    return {
        "command": "test",
        "repeat": again,
        "reject": result.reject,
        "sentence": result.verdict,
        "split_by": split_by,
        "x": {"name": x.label, "rows": x.rows},
        "y": {"name": y.label, "rows": y.rows},
        "columns": columns,
        "notes": notes,
        "result": result.to_dict(),
        "explanation": document(explanation),
    }


def _same_file(files: Sequence[str]) -> bool:
    try:
        return Path(files[0]).samefile(files[1])
    except (OSError, ValueError):
        return False


# ``cpmmd test --margin``: are two files the same but for differences below a margin?


MOST_COLUMNS = 12  # in the printed table


def show_equivalence(files: Sequence[str], margin: float, reading: Reading, settings: Settings, answering: Answering) -> bool:
    """Test two files for equivalence and print the answer; whether it is shown."""
    _check_settings(settings)
    answering.check(files)
    with progress("reading"):
        x, y = reading.read(files)
    from cpmmd.questions.equivalence import equivalence_test

    collect_garbage_from_now_on()
    with progress("testing"), calling_samples(x=x.label, y=y.label):
        alpha, seed, missing = settings.alpha, settings.seed, settings.missing
        result = equivalence_test(x.data, y.data, margin=margin, alpha=alpha, rng=seed, missing=missing)
    again = command_line("test", files, {"--margin": margin, **reading.arguments(), **settings.arguments(result.seed)})
    if answering.report is not None:
        result.report(answering.report, title=f"{x.label} v {y.label}", command=again)
    noticed = list(dict.fromkeys((*x.notes, *y.notes)))
    if answering.json:
        samples = {name: {"name": s.label, "rows": s.rows} for name, s in (("x", x), ("y", y))}
        say_json({"command": "test-equivalence", "repeat": again, **_answer(result), **samples, "notes": noticed})
    else:
        note(noticed)
        _say(result, again, answering)
    return result.reject


def _check_settings(settings: Settings) -> None:
    """Refuse what an equivalence test has no use for, rather than ignore it."""
    unused = {
        "--method": None if settings.method == METHOD else settings.method,
        "--permutations": settings.permutations,
        "--scale": settings.scale,
        "--memory-limit": settings.memory_limit,
        "--group-by": settings.group_by,
        "--stratify-by": settings.stratify_by,
        "--pair-by": settings.pair_by,
        "--blocks": settings.blocks,
    }
    given = [flag for flag, value in unused.items() if value is not None]
    if given:
        raise InputError(f"A test with --margin has its own method, on rows one by one. Leave out {', '.join(given)}.")


def _answer(result: EquivalenceResult) -> dict[str, Any]:
    return {"reject": result.reject, "sentence": result.verdict, "result": result.to_dict()}


def _say(result: EquivalenceResult, again: str, answering: Answering) -> None:
    say_verdict(result.verdict, differs=not result.reject)
    say()
    say(result.explain().sentence)
    say()
    shown = result.columns[:MOST_COLUMNS]
    rows = [(c.name, c.meaning, f"{c.low:+.3f}", f"{c.high:+.3f}", probability(c.pvalue)) for c in shown]
    say_table(("column", "differs in", "from", "to", "p"), rows, right=(2, 3, 4))
    say()
    for term, value in result.facts:
        say(f"  {term:<12} {value}")
    say_end(again, "Report", answering.report)
