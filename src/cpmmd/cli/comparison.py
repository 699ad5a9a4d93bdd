"""``cpmmd test``: two files, or the groups of one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpmmd.cli import where
from cpmmd.cli.failures import note_in_command_words
from cpmmd.cli.output import note, say, say_end, say_json, say_verdict
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import Reading, Settings, command_line
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.data.files.sample import FileSample
    from cpmmd.explain.values import Explanation
    from cpmmd.results import TestResult


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
        from cpmmd.report.formats import format_of

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
    names = where.sample_names(x.label, y.label)
    with progress("explaining"):
        explanation = where.explain_result(result, names) if answering.explain else None
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
            where.say_where(explanation)
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
        "explanation": where.document(explanation),
    }


def _same_file(files: Sequence[str]) -> bool:
    try:
        return Path(files[0]).samefile(files[1])
    except (OSError, ValueError):
        return False
