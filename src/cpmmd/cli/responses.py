"""``cpmmd responses``: answers to the same prompts, yesterday and today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import probability, progress
from cpmmd.cli.questions import show_answer
from cpmmd.cli.settings import OutputOptions, ReadOptions, option
from cpmmd.errors import InputError

MOST_PROMPTS = 8  # in the printed table


@dataclass(frozen=True)
class ResponsesSettings:
    """How answers are compared."""

    prompt: str = option("The column of prompts.", "prompt", metavar="COLUMN")
    response: str = option("The column of answers.", "response", metavar="COLUMN")
    kernel: str | None = option(
        "Compare by characters in their places, or by words and pairs of words [default: both].", None, metavar="hamming|ngrams"
    )
    length: int = option("Characters of an answer that are compared.", 1000)
    alpha: float = option("Significance level: the probability of a false positive.", 0.05, "-a")
    permutations: int = option("Number of permutations.", 999, "-p")
    seed: int | None = option("The same seed gives the same answer.", None, "-s")


def compare_responses(files: Sequence[str], settings: ResponsesSettings, reading: ReadOptions, answering: OutputOptions) -> bool:
    """Compare the answers in two files and print the answer; whether they differ."""
    answering.check(files)
    if reading.columns or reading.drop or reading.text:
        raise InputError("Two columns are read, as text: --prompt and --response. Leave out --columns, --drop and --text.")
    with progress("reading"):
        x, y = reading.with_text(settings.prompt, settings.response).read(files)
    from cpmmd.questions.responses import read_responses, responses_test

    collect_garbage_from_now_on()
    columns = settings.prompt, settings.response
    with progress("testing"):
        result = responses_test(
            read_responses(x.data, x.label, *columns, empty=True),
            read_responses(y.data, y.label, *columns, empty=True),
            kernel=settings.kernel,
            length=settings.length,
            alpha=settings.alpha,
            n_permutations=settings.permutations,
            rng=settings.seed,
        )
    rows = [
        (found.prompt, probability(found.pvalue), found.example_x, found.example_y) for found in result.prompts[:MOST_PROMPTS]
    ]
    return show_answer(
        result,
        answering,
        document={"command": "responses", "x": {"name": x.label, "rows": x.rows}, "y": {"name": y.label, "rows": y.rows}},
        title=f"{x.label} v {y.label}",
        notes=list(dict.fromkeys((*x.notes, *y.notes))),
        table=(("prompt", "p", f"typical of {x.label}", f"typical of {y.label}"), rows, (1,)),
    )
