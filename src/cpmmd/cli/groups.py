"""``cpmmd test --split-by``: the groups of one file, two against each other or each against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpmmd.cli.comparison import Answering, compare
from cpmmd.cli.failures import in_command_words
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import note, probability, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import Reading, Settings, command_line
from cpmmd.errors import CpmmdError, InputError

if TYPE_CHECKING:
    from cpmmd.data.files.sample import FileSample, Groups
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
    if answering.report is not None:
        raise InputError(
            f"A report is of one comparison. {column!r} has {len(groups.names)} groups, each compared with the rest; leave "
            "--report out, or keep two groups in the file."
        )
    found = _each_against_the_rest(groups, settings)
    again = command_line("test", [file], {"--split-by": column, **reading.arguments(), **settings.arguments(found.seed)})
    if answering.json:
        say_json(_document(found, column, sample, groups, settings, again))
    else:
        _say(found, column, groups, again)
    note(f"{name} could not be compared: {_why(error)}" for name, error in found.errors.items())
    return bool(found.rejected), bool(found.errors)


def _each_against_the_rest(groups: Groups, settings: Settings) -> ManyResults:
    from cpmmd.studies.many import run_many

    collect_garbage_from_now_on()
    tests = {name: (groups.group(name).data, groups.rest(name).data) for name in groups.names}
    with progress("testing") as line:
        return run_many(tests, progress=line, **settings.keywords())


def _sentence(found: ManyResults) -> str:
    total = len(found.results)
    if found.rejected:
        differ = "differs" if len(found.rejected) == 1 else "differ"
        return f"{len(found.rejected)} of {total} groups {differ} from the rest (adjusted p <= {found.alpha:g})."
    return f"No group differs from the rest (all adjusted p > {found.alpha:g})."


def _why(error: Exception) -> str:
    return in_command_words(error) if isinstance(error, CpmmdError) else str(error)


def _document(
    found: ManyResults, column: str, sample: FileSample, groups: Groups, settings: Settings, again: str
) -> dict[str, Any]:
    described = [
        {
            "group": name,
            "rows": list(result.sizes),
            "pvalue": result.pvalue,
            "adjusted": found.adjusted[name],
            "statistic": result.statistic,
            "reject": name in found.rejected,
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


def _say(found: ManyResults, column: str, groups: Groups, again: str) -> None:
    note(groups.sample.notes)
    say_verdict(_sentence(found), differs=bool(found.rejected))
    say()
    rows = [
        (
            name,
            "differs" if name in found.rejected else "no difference",
            probability(result.pvalue),
            probability(found.adjusted[name]),
            str(result.sizes[0]),
        )
        for name, result in found.results.items()
    ]
    rows += [(name, "error", "", "", "") for name in found.errors]
    say_table((column, "verdict", "p", "adjusted", "rows"), rows, right=(2, 3, 4))
    say()
    say("p-values are adjusted for the number of groups (Benjamini and Hochberg).")
    say_end(again)
