"""What ``cpmmd check`` says of its batches: a line each, one JSON document, a report of the series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpmmd.cli.comparison import Answering
from cpmmd.cli.output import COMMAND, note, probability, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.progress import progress

if TYPE_CHECKING:
    from cpmmd.monitoring.checking import CheckedBatch


def write_report(
    series: list[dict[str, Any]], checked: list[CheckedBatch], path: str, alpha: float, detector_file: str, again: str
) -> None:
    """Write the report of a series, and of the batches of this call that could not be tested."""
    from cpmmd.report.series import write_series

    failed = [{"batch": batch.name, "error": batch.error} for batch in checked if batch.error is not None]
    with progress("writing the report"):
        title = f"Batches against {detector_file}"
        write_series([*series, *failed], path, alpha=alpha, title=title, command=_whole(again))


def _whole(again: str) -> str | None:
    """Return the command unless it names so many files that it would be cut, and then do something else."""
    return again if len(again) <= COMMAND else None


def answer(checked: list[CheckedBatch], alpha: float, detector_file: str, again: str, answering: Answering) -> None:
    """Print the answer."""
    answered = [batch for batch in checked if batch.error is None]
    differing = [batch for batch in answered if batch.differs]
    sentence = _sentence(len(answered), len(differing), len(checked) - len(answered), alpha)
    if answering.json:
        head = {"command": "check", "repeat": again, "detector": detector_file, "alpha": alpha}
        say_json({**head, "reject": bool(differing), "sentence": sentence, "batches": [batch.to_dict() for batch in checked]})
        return
    for batch in checked:
        note(f"{batch.name}: {line}" for line in batch.notes)
    say_verdict(sentence, differs=bool(differing))
    say()
    header = ("batch", "verdict", "p", "adjusted", "told apart", "rows", "where")
    say_table(header, [_line(b) for b in checked], right=(2, 3, 4, 5))
    for batch in checked:
        if batch.error is not None:
            note([f"{batch.name} could not be tested: {batch.error}"])
    say_end(_whole(again), "Report", answering.report)


def _sentence(answered: int, differing: int, failed: int, alpha: float) -> str:
    more = f" {failed} could not be tested." if failed else ""
    if answered == 0:
        return f"No batch was tested.{more}"
    batches = f"{answered} batch{'es' * (answered > 1)}"
    if differing == 0:
        return f"No difference found in {batches} (adjusted p > {alpha:g}).{more}"
    return f"{differing} of {batches} differ{'s' * (differing == 1)} from the reference (adjusted p <= {alpha:g}).{more}"


def _since(batch: CheckedBatch) -> str:
    """Say from when an answer is, and from which file where that was another one."""
    record = batch.record
    called = "" if record["batch"] == batch.name else f" as {record['batch']}"
    return f", in history ({str(record['time'])[:10]}{called})"


def _line(batch: CheckedBatch) -> tuple[str, ...]:
    if batch.error is not None:
        return (batch.name, "error", *[""] * 5)
    record = batch.record
    verdict = "differs" if record["reject"] else "no difference"
    adjusted = "" if record["adjusted"] is None else probability(record["adjusted"])
    return (
        batch.name,
        f"{verdict}{_since(batch) if batch.status == 'known' else ''}",
        probability(record["pvalue"]),
        adjusted,
        "" if record["effect"] is None else f"{record['effect']:.0%}",
        str(record["rows"]),
        ", ".join(batch.columns),
    )
