"""``cpmmd change``: the inputs, the target, or the target given the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from cpmmd.cli.comparison import sides
from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import probability, progress
from cpmmd.cli.questions import show_answer
from cpmmd.cli.settings import ChangeSettings, OutputOptions, ReadOptions, column_names
from cpmmd.errors import InputError, ParameterReference

WHAT = {"inputs": "the inputs", "target": "the target", "relation": "the target given the inputs"}


def show_change(files: Sequence[str], settings: ChangeSettings, reading: ReadOptions, answering: OutputOptions) -> bool:
    """Test what changed between two files and print the answer; whether a change was found."""
    from cpmmd.data.targets import NEW, REFERENCE
    from cpmmd.questions.change import change_test

    target = list(column_names([settings.target]))
    if not target:
        raise InputError("A column must be the target. Got none; name it with {target}.", target=ParameterReference("target"))
    answering.check(files)
    keep = [*target, *([settings.predictions] if settings.predictions is not None else [])]
    with progress("reading"):
        reference, new = reading.read(files, keep=keep)
    collect_garbage_from_now_on()
    with progress("testing"), calling_samples(**{REFERENCE: reference.label, NEW: new.label}):
        result = change_test(
            reference.data,
            new.data,
            target=target,
            alpha=settings.alpha,
            predictions=settings.predictions,
            loss=settings.loss,
            method=settings.method,
            n_permutations=settings.permutations,
            rng=settings.seed,
            missing=settings.missing,
            n_jobs=settings.jobs,
        )
    explanation = result.explain() if answering.explain else None
    where = [] if explanation is None else [of.where for of in (explanation.inputs, explanation.target) if of is not None]
    rows = [
        (WHAT[part.name], "changed" if part.reject else "no change found" if part.testable else "not testable")
        + ((probability(part.pvalue), probability(part.adjusted)) if part.testable else ("", ""))
        for part in result.parts_of_change
    ]
    return show_answer(
        result,
        answering,
        document={"command": "change", **sides(reference, new)},
        title=f"{reference.label} v {new.label}",
        notes=list(dict.fromkeys((*reference.notes, *new.notes))),
        sentences=where,
        table=(("what", "verdict", "p", "adjusted"), rows, (2, 3)),
    )
