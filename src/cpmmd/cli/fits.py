"""``cpmmd fits``: does a file come from a model?"""

from __future__ import annotations

from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import probability, progress
from cpmmd.cli.questions import show_answer
from cpmmd.cli.settings import FitsSettings, OutputOptions, ReadOptions

MOST_COLUMNS = 12  # in the printed table


def show_fit(file: str, reading: ReadOptions, settings: FitsSettings, answering: OutputOptions) -> bool:
    """Compare a file with a model and print the answer; whether it does not fit."""
    answering.check([file])
    with progress("reading"):
        (sample,) = reading.read([file])
    from cpmmd.questions.goodness_of_fit import goodness_of_fit_test

    collect_garbage_from_now_on()
    blocks = settings.blocks
    with progress("testing") as line, calling_samples(x=sample.label):
        result = goodness_of_fit_test(
            sample.data,
            settings.model,
            method=settings.method,
            alpha=settings.alpha,
            n_permutations=settings.permutations,
            rng=settings.seed,
            n_jobs=settings.jobs,
            missing=settings.missing,
            blocks=int(blocks) if blocks is not None and blocks.isdecimal() else blocks,
            progress=line,
        )
    explanation = result.explain()
    rows = [(column.name, explanation.words(column), probability(column.pvalue)) for column in result.columns[:MOST_COLUMNS]]
    return show_answer(
        result,
        answering,
        document={"command": "fits", "x": {"name": sample.label, "rows": sample.rows}},
        title=f"{sample.label} and {result.model}",
        notes=sample.notes,
        sentences=[explanation.sentence] if answering.explain else (),
        table=(("column", "than the model", "p"), rows, (2,)) if answering.explain else None,
    )
