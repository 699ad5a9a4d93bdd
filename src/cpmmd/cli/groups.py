"""``cpmmd test --split-by``: the groups of one file, two against each other or each against the rest."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from cpmmd.cli.comparison import Answering, compare, document, drop_hint, explain_result
from cpmmd.cli.failures import in_command_words
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import note, probability, progress, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.settings import Reading, Settings, command_line
from cpmmd.errors import CpmmdError

if TYPE_CHECKING:
    from cpmmd.data.files.sample import FileSample, Groups
    from cpmmd.explain.values import Explanation
    from cpmmd.studies.many import ManyResults


def compare_groups(file: str, column: str, reading: Reading, settings: Settings, answering: Answering) -> tuple[bool, bool]:
    """Compare the groups of a file; whether any differ, and whether any could not be compared."""
    from cpmmd.data.files.sample import by_groups

    answering.check([file])
    with progress("reading"):
        (sample,) = reading.read([file], keep=[column, *settings.aside])
    groups = by_groups(sample, column)
    if len(groups.names) == 2:
        x, y = map(groups.group, groups.names)
        return compare(x, y, [file], reading, settings, answering, split_by=column), False
    found = _each_against_the_rest(groups, settings)
    again = command_line("test", [file], {"--split-by": column, **reading.arguments(), **settings.arguments(found.seed)})
    where = _explain(found, column) if answering.explain else {}
    if answering.report is not None:
        _report(found, where, answering.report, title=f"{PurePath(sample.label).name} by {column}", again=again)
    if answering.json:
        say_json(_document(found, where, column, sample, groups, settings, again))
    else:
        _say(found, where, column, groups, again, answering.report)
    note(f"{name} could not be compared: {_why(error)}" for name, error in found.errors.items())
    return bool(found.rejected), bool(found.errors)


def _each_against_the_rest(groups: Groups, settings: Settings) -> ManyResults:
    from cpmmd.studies.many import run_many

    collect_garbage_from_now_on()
    # The group is the second sample: words say how the second differs from the first.
    tests = {name: (groups.rest(name).data, groups.group(name).data) for name in groups.names}
    with progress("testing") as line:
        return run_many(tests, progress=line, **settings.keywords())


def _explain(found: ManyResults, column: str) -> dict[str, Explanation]:
    """Explain the groups that differ."""
    with progress("explaining"):
        answers = {name: explain_result(found.results[name], ("the rest", f"{column} = {name}")) for name in found.rejected}
    return {name: answer for name, answer in answers.items() if answer is not None}


def _report(found: ManyResults, where: dict[str, Explanation], path: str, *, title: str, again: str) -> None:
    from cpmmd.report.groups import ComparedGroup, write_groups

    compared = [
        ComparedGroup(name, result, found.adjusted[name], name in found.rejected, where.get(name))
        for name, result in found.results.items()
    ]
    failures = {name: _why(error) for name, error in found.errors.items()}
    write_groups(compared, path, sentence=_sentence(found), title=title, command=again, failures=failures)


def _sentence(found: ManyResults) -> str:
    total = len(found.results)
    if found.rejected:
        differ = "differs" if len(found.rejected) == 1 else "differ"
        return f"{len(found.rejected)} of {total} groups {differ} from the rest (adjusted p <= {found.alpha:g})."
    return f"No group differs from the rest (all adjusted p > {found.alpha:g})."


def _why(error: Exception) -> str:
    return in_command_words(error) if isinstance(error, CpmmdError) else str(error)


def _document(
    found: ManyResults,
    where: dict[str, Explanation],
    column: str,
    sample: FileSample,
    groups: Groups,
    settings: Settings,
    again: str,
) -> dict[str, Any]:
    described = [
        {
            "group": name,
            "rows": list(result.sizes[::-1]),
            "pvalue": result.pvalue,
            "adjusted": found.adjusted[name],
            "statistic": result.statistic,
            "reject": name in found.rejected,
            "explanation": document(where.get(name)),
        }
        for name, result in found.results.items()
    ]
    return {
        "command": "test-groups",
        "repeat": again,
        "reject": bool(found.rejected),
        "sentence": _sentence(found),
        "split_by": column,
        "name": sample.label,
        "notes": [*groups.sample.notes, *(f"{name}: {_why(error)}" for name, error in found.errors.items())],
        "groups": described,
        "alpha": found.alpha,
        "method": settings.method,
        "seed": found.seed,
    }


def _say(found: ManyResults, where: dict[str, Explanation], column: str, groups: Groups, again: str, report: str | None) -> None:
    note(groups.sample.notes)
    say_verdict(_sentence(found), differs=bool(found.rejected))
    say()
    rows = [
        (
            name,
            "differs" if name in found.rejected else "no difference",
            probability(result.pvalue),
            probability(found.adjusted[name]),
            str(result.sizes[1]),
        )
        for name, result in found.results.items()
    ]
    rows += [(name, "error", "", "", "") for name in found.errors]
    say_table((column, "verdict", "p", "adjusted", "rows"), rows, right=(2, 3, 4))
    say()
    say("p-values are adjusted for the number of groups (Benjamini and Hochberg).")
    for explanation in where.values():
        say()
        say(f"  {explanation.where}")
        for line in drop_hint(explanation):
            say(f"  {line}")
    say_end(again, "Report", report)
