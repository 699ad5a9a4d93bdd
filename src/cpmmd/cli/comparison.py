"""``cpmmd test``: two files, the groups of one file, or the equivalence of two files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from cpmmd.cli.failures import calling_samples, in_command_words
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import note, probability, progress, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.questions import show_answer
from cpmmd.cli.samples import compare_several_groups
from cpmmd.cli.settings import OutputOptions, ReadOptions, Settings, flag_of
from cpmmd.core.text import pluralize, sanitize
from cpmmd.errors import CpmmdError, InputError

if TYPE_CHECKING:
    from cpmmd.core.plain import PlainDict
    from cpmmd.data.files.sample import FileSample, Groups
    from cpmmd.explain.values import Explanation
    from cpmmd.procedures.outcome import TestResult
    from cpmmd.studies.many import ManyResults

TOP = 8  # columns on the screen
WIDEST = 28  # characters of a sample's name above its values


def compare_files(files: Sequence[str], reading: ReadOptions, settings: Settings, answering: OutputOptions) -> bool:
    """Compare two files; whether they differ."""
    answering.check(files)
    with progress("reading"):
        x, y = reading.read(files, keep=settings.design_columns, large=True)
    try:
        same = Path(files[0]).samefile(files[1])
    except (OSError, ValueError):
        same = False
    return _compare(x, y, settings, answering, notes=["both names are the same file"] if same else [])


def compare_groups(
    file: str, column: str, reading: ReadOptions, settings: Settings, answering: OutputOptions
) -> tuple[bool, bool]:
    """Compare the groups of a file; whether any differ, and whether any could not be compared."""
    from cpmmd.data.files.sample import by_groups
    from cpmmd.registry import DEFAULT_METHOD

    answering.check([file])
    with progress("reading"):
        (sample,) = reading.read([file], keep=[column, *settings.design_columns])
    groups = by_groups(sample, column)
    if len(groups.names) == 2:
        x, y = map(groups.group, groups.names)
        return _compare(x, y, settings, answering, split_by=column), False
    if settings.method == DEFAULT_METHOD:
        return compare_several_groups(groups, sample.label, column, settings, answering)
    return _compare_with_the_rest(groups, sample.label, column, settings, answering)


def sides(x: FileSample, y: FileSample) -> PlainDict:
    """Return the names and sizes of two samples, for a document."""
    return {name: {"name": sample.label, "rows": sample.rows} for name, sample in (("x", x), ("y", y))}


# Two samples.


def _compare(
    x: FileSample,
    y: FileSample,
    settings: Settings,
    answering: OutputOptions,
    *,
    split_by: str | None = None,
    notes: Sequence[str] = (),
) -> bool:
    """Compare two samples and print the answer."""
    with progress("testing") as line:
        result = settings.test(x, y, line)
    again = answering.typed.again(seed=result.seed)
    noticed = list(dict.fromkeys((*notes, *x.notes, *y.notes)))
    if not answering.json and answering.report is None:  # the answer does not wait for its explanation; a report comes first
        _say_test(result, x, y, noticed)
    names = _sample_names(x.label, y.label)
    with progress("explaining"):
        explanation = _explain(result, names) if answering.explain else None
        if answering.report is not None:
            title = " v ".join(names)
            result.report(
                answering.report, command=again, title=title, explanation=explanation, explain=answering.explain, names=names
            )
    if answering.json:
        say_json(
            {
                "command": "test",
                "repeat": again,
                "reject": result.reject,
                "sentence": result.verdict,
                "split_by": split_by,
                **sides(x, y),
                "columns": settings.compared(x),
                "notes": noticed,
                "result": result.to_dict(),
                "explanation": _document(explanation),
            }
        )
        return result.reject
    if answering.report is not None:
        _say_test(result, x, y, noticed)
    if explanation is not None and (result.reject or explanation.differing or explanation.suspicious):
        _say_where(explanation)
    if not result.reject and split_by is None and result.design is None:  # --margin takes rows one by one
        say()
        say("No difference found does not mean equal.")
        say("--margin 0.2 tests whether every difference is below 0.2 standard deviations.")
    say_end(again, "Report", answering.report)
    return result.reject


def _say_test(result: TestResult, x: FileSample, y: FileSample, noticed: list[str]) -> None:
    note(noticed)
    say_verdict(result.verdict, differs=result.reject)
    say()
    say("Test")
    for term, value in (("first", x.label), ("second", y.label), *result.facts):
        say(f"  {term:<12} {in_command_words(value, {'x': x.label, 'y': y.label})}")
    sys.stdout.flush()


def _sample_names(x: str, y: str) -> tuple[str, str]:
    """Return what to call two samples in a sentence: their files' names, without folders where those are enough."""
    short = PurePath(x).name or x, PurePath(y).name or y
    if short[0] != short[1]:
        return short
    return (x, y) if x != y else (f"{x} (first)", f"{y} (second)")


# Where samples differ, in a few lines: the sentence and the leading columns of an explanation.


def _explain(result: TestResult, names: tuple[str, str]) -> Explanation | None:
    """Return the explanation of a result, the same in every form of the answer; None if there is none."""
    try:
        return result.explain(names=names)
    except CpmmdError:
        return None


def _document(explanation: Explanation | None) -> PlainDict | None:
    """Return an explanation in plain JSON types, without a number for every row."""
    if explanation is None:
        return None
    of_rows = ("witness_x", "witness_y", "rows_x", "rows_y")
    return {name: value for name, value in explanation.to_dict().items() if name not in of_rows}


def _say_where(explanation: Explanation) -> None:
    """Print the sentences, the columns that differ, and pairs that changed."""
    from cpmmd.explain.differences import in_header
    from cpmmd.explain.values import typical

    say()
    say("Where")
    say(f"  {explanation.where}")
    if explanation.auc_sentence:
        say(f"  {explanation.auc_sentence}")
    _say_how_to_drop(explanation)
    names = [sanitize(in_header(name), WIDEST) for name in explanation.names]
    shown = explanation.columns[: max(3, min(TOP, len(explanation.differing)))]
    rows = [
        (
            column.label,
            column.words,
            *typical(column),
            str(column.effect) if column.significant and column.effect is not None else "",
            probability(column.pvalue),
        )
        for column in shown
    ]
    say_table(("column", "difference", *names, "effect", "p"), rows, right=(2, 3, 4, 5))
    left = len(explanation.columns) - len(shown)
    if left:
        say(f"  ... and {pluralize(left, 'more column')} (--json and --report have all); p is adjusted for all columns")
    if explanation.compared:
        say(f"  Here {explanation.compared}.")
    pairs = [(" and ".join(p.labels), p.words, *p.correlations, probability(p.pvalue)) for p in explanation.differing_pairs[:TOP]]
    if pairs:
        say()
        say_table(("pair", f"in {names[1]} they", *names, "p"), pairs, right=(2, 3, 4))


def _say_how_to_drop(explanation: Explanation) -> None:
    if explanation.suspicious:
        flags = " ".join(f"--drop {shlex.quote(column.name)}" for column in explanation.suspicious)
        say(f"  To test without suspicious columns: {flags}")


# More than two groups, each against the rest by a method that compares two samples.


def _compare_with_the_rest(
    groups: Groups, file: str, column: str, settings: Settings, answering: OutputOptions
) -> tuple[bool, bool]:
    from cpmmd.studies.many import run_many

    collect_garbage_from_now_on()
    # The group is the second sample: words say how the second differs from the first.
    tests = {name: (groups.rest(name).data, groups.group(name).data) for name in groups.names}
    with progress("testing") as line:
        found = run_many(tests, progress=line, **settings.keywords())
    again, where = answering.typed.again(seed=found.seed), dict[str, "Explanation"]()
    if answering.explain:
        with progress("explaining"):
            explained = {name: _explain(found.results[name], ("the rest", f"{column} = {name}")) for name in found.rejected}
        where = {name: explanation for name, explanation in explained.items() if explanation is not None}
    if found.rejected:
        differ = "differs" if len(found.rejected) == 1 else "differ"
        some = f"{len(found.rejected)} of {len(found.results)} groups {differ} from the rest"
        sentence = f"{some} (adjusted p <= {found.alpha:g})."
    else:
        sentence = f"No group differs from the rest (all adjusted p > {found.alpha:g})."
    failures = {name: in_command_words(error) for name, error in found.errors.items()}
    if answering.report is not None:
        from cpmmd.report.groups import ComparedGroup, write_groups

        compared = [
            ComparedGroup(name, result, found.adjusted[name], name in found.rejected, where.get(name))
            for name, result in found.results.items()
        ]
        title = f"{PurePath(file).name} by {column}"
        write_groups(compared, answering.report, sentence=sentence, title=title, command=again, failures=failures)
    if answering.json:
        say_json(
            {
                "command": "test-groups",
                "repeat": again,
                "reject": bool(found.rejected),
                "sentence": sentence,
                "split_by": column,
                "name": file,
                "notes": [*groups.sample.notes, *(f"{name}: {why}" for name, why in failures.items())],
                "groups": [_describe_group(name, found, where.get(name)) for name in found.results],
                "alpha": found.alpha,
                "method": settings.method,
                "seed": found.seed,
            }
        )
    else:
        note(groups.sample.notes)
        say_verdict(sentence, differs=bool(found.rejected))
        _say_groups(found, where, column)
        say_end(again, "Report", answering.report)
    note(f"{name} could not be compared: {why}" for name, why in failures.items())
    return bool(found.rejected), bool(failures)


def _describe_group(name: str, found: ManyResults, where: Explanation | None) -> PlainDict:
    result = found.results[name]
    return {
        "group": name,
        "rows": list(result.sizes[::-1]),
        "pvalue": result.pvalue,
        "adjusted": found.adjusted[name],
        "statistic": result.statistic,
        "reject": name in found.rejected,
        "explanation": _document(where),
    }


def _say_groups(found: ManyResults, where: dict[str, Explanation], column: str) -> None:
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
    say()
    say_table((column, "verdict", "p", "adjusted", "rows"), rows, right=(2, 3, 4))
    say()
    say("p-values are adjusted for the number of groups (Benjamini and Hochberg).")
    for explanation in where.values():
        say()
        say(f"  {explanation.where}")
        _say_how_to_drop(explanation)


# ``cpmmd test --margin``.


MOST_COLUMNS = 12  # in the printed table
USED = ("alpha", "seed", "jobs", "missing")  # of the settings, by a test for equivalence


def show_equivalence(
    files: Sequence[str], margin: float, reading: ReadOptions, settings: Settings, answering: OutputOptions
) -> bool:
    """Test two files for equivalence and print the answer; whether it is shown."""
    given = [of.name for of in fields(settings) if of.name not in USED and getattr(settings, of.name) != of.default]
    if given:
        flags = ", ".join(map(flag_of, given))
        raise InputError(f"A test with --margin has its own method, which takes rows as independent. Leave out {flags}.")
    answering.check(files)
    with progress("reading"):
        x, y = reading.read(files)
    from cpmmd.questions.equivalence import equivalence_test

    collect_garbage_from_now_on()
    with progress("testing"), calling_samples(x=x.label, y=y.label):
        alpha, seed, missing = settings.alpha, settings.seed, settings.missing
        result = equivalence_test(x.data, y.data, margin=margin, alpha=alpha, rng=seed, missing=missing)
    shown = result.columns[:MOST_COLUMNS]
    rows = [(c.name, c.meaning, f"{c.low:+.3f}", f"{c.high:+.3f}", probability(c.pvalue)) for c in shown]
    return show_answer(
        result,
        answering,
        document={"command": "test-equivalence", **sides(x, y)},
        title=f"{x.label} v {y.label}",
        notes=list(dict.fromkeys((*x.notes, *y.notes))),
        sentences=[result.explain().sentence],
        table=(("column", "differs in", "from", "to", "p"), rows, (2, 3, 4)),
    )
