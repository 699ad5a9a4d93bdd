"""``cpmmd samples``, and the groups of one file: one test of all, and which of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import probability, progress
from cpmmd.cli.questions import Printed, show_answer
from cpmmd.cli.settings import OutputOptions, ReadOptions, Settings
from cpmmd.core.text import pluralize
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.data.files.sample import FileSample, Groups
    from cpmmd.questions.k_sample import KSampleExplanation, KSampleResult

MOST_PRINTED = 20  # pairs, or columns


def compare_several_files(files: Sequence[str], reading: ReadOptions, settings: Settings, answering: OutputOptions) -> bool:
    """Compare several files; whether they differ."""
    answering.check(files)
    with progress("reading"):
        samples = reading.read(files, keep=settings.design_columns)
    short = [PurePath(sample.label).name or sample.label for sample in samples]
    names = short if len(set(short)) == len(short) else [sample.label for sample in samples]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"Each file must be named once. Got {twice!r} more than once; leave one of them out.")
    return compare_samples(dict(zip(names, samples, strict=True)), settings, answering, title=" v ".join(names))


def compare_several_groups(
    groups: Groups, file: str, column: str, settings: Settings, answering: OutputOptions
) -> tuple[bool, bool]:
    """Compare the groups of a file with each other; whether any differ, and whether any were too small to compare."""
    samples = {name: groups.group(name) for name in groups.names}
    small = [name for name, sample in samples.items() if sample.rows < 2]
    kept = {name: sample for name, sample in samples.items() if name not in small}
    notes = [*groups.sample.notes, *(f"{name} could not be compared: a sample needs at least 2 rows" for name in small)]
    title = f"{PurePath(file).name} by {column}"
    return compare_samples(kept, settings, answering, title=title, split_by=column, notes=notes), bool(small)


def compare_samples(
    samples: dict[str, FileSample],
    settings: Settings,
    answering: OutputOptions,
    *,
    title: str,
    split_by: str | None = None,
    notes: Sequence[str] = (),
) -> bool:
    """Compare several samples and print the answer; whether they differ."""
    from cpmmd.questions.k_sample import called_in_messages, k_sample_test

    collect_garbage_from_now_on()
    labels = {called_in_messages(name): sample.label for name, sample in samples.items()}
    with progress("testing") as line, calling_samples(**labels):
        data = {name: sample.data for name, sample in samples.items()}
        result = k_sample_test(data, progress=line, **settings.keywords_of_several())
    with progress("explaining"):
        explanation = result.explain() if answering.explain else None
    document = {
        "command": "samples",
        "split_by": split_by,
        "samples": [{"name": name, "rows": sample.rows} for name, sample in samples.items()],
        "columns": settings.compared(next(iter(samples.values()))),
        "explanation": explanation,
    }
    of_files = (note for sample in samples.values() for note in sample.notes)
    return show_answer(
        result,
        answering,
        document=document,
        title=title,
        notes=list(dict.fromkeys((*notes, *of_files))),
        sentences=[] if explanation is None or not (result.reject or explanation.differing) else [explanation.sentence],
        table=_table(result, explanation),
    )


def _table(result: KSampleResult, explanation: KSampleExplanation | None) -> Printed | None:
    """Return the pairs of samples, or the columns where there are none."""
    if result.pairs:
        rows = [
            (*pair.names, "differ" if pair.differs else "no difference", probability(pair.pvalue), probability(pair.adjusted))
            for pair in result.pairs[:MOST_PRINTED]
        ]
        left = len(result.pairs) - len(rows)
        rows += [("...", f"{pluralize(left, 'more pair')}", "", "", "")] * bool(left)
        return ("first", "second", "verdict", "p", "adjusted"), rows, (3, 4)
    if explanation is None:
        return None
    shown = [(column.label, column.sample, column.words, probability(column.pvalue)) for column in explanation.columns]
    return ("column", "differs most", "how", "p"), shown[:MOST_PRINTED], (3,)
