"""The answer of a question, printed, as JSON, and as a report: what the commands of all questions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cpmmd.cli.failures import in_command_words
from cpmmd.cli.output import note, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.settings import OutputOptions

if TYPE_CHECKING:
    from cpmmd.core.plain import PlainDict
    from cpmmd.questions.answer import Answer

Printed = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int]]  # a table: header, rows, the columns that are numbers


def show_answer(
    answer: Answer,
    answering: OutputOptions,
    *,
    document: PlainDict,
    title: str,
    notes: Sequence[str] = (),
    sentences: Sequence[str] = (),
    table: Printed | None = None,
) -> bool:
    """Print an answer in the form that was asked for and write its report; whether it rejects.

    ``document`` is what its JSON document says beside the result: the command, the samples. ``sentences`` and ``table`` stand
    between the verdict and the facts of the printed answer.
    """
    again = answering.typed.again(seed=answer.seed)
    if answering.report is not None:
        answer.report(answering.report, title=title, command=again)
    if answering.json:
        found = {"repeat": again, "reject": answer.reject, "sentence": answer.verdict, "result": answer.to_dict()}
        say_json({"command": answering.typed.command, **found, **document, "notes": list(notes)})
        return answer.reject
    note(notes)
    say_verdict(answer.verdict, differs=answer.reject != answer.good_news)
    for sentence in sentences:
        say()
        say(sentence)
    if table is not None:
        say()
        header, rows, right = table
        say_table(header, rows, right=right)
    say()
    for term, value in answer.facts:
        say(f"  {term:<12} {in_command_words(value)}")
    say_end(again, "Report", answering.report)
    return answer.reject
