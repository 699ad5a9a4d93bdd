"""``cpmmd fit`` and ``cpmmd check``: a reference once, then batch after batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpmmd.cli.batch_answers import answer, write_report
from cpmmd.cli.batches import BatchFile, batch_names
from cpmmd.cli.comparison import Answering
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import COMMAND, note, say, say_json
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import STDIN, Reading, Settings, command_line
from cpmmd.core.text import counted
from cpmmd.errors import CpmmdError, InputError, Setting

if TYPE_CHECKING:
    from cpmmd.monitoring.checking import BatchCheck, CheckedBatch

NOT_FOR_MONITORS = {"pairs": "--pair-by", "blocks": "--blocks"}


def _of_a_monitor(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return what a monitor takes: groups and strata, but nothing that pairs a batch with what came before or counts its rows."""
    given = [flag for name, flag in NOT_FOR_MONITORS.items() if keywords[name] is not None]
    if given:
        raise InputError(f"A monitor takes groups and strata only. Leave out {', '.join(given)}, or --monitor.")
    return {name: value for name, value in keywords.items() if name not in NOT_FOR_MONITORS}


def fit(
    file: str,
    output: str,
    example: str | None,
    reading: Reading,
    settings: Settings,
    *,
    as_json: bool,
    force: bool = False,
    monitor: bool = False,
) -> None:
    """Fit a detector, or a monitor, to a reference and save it."""
    from cpmmd.core.atomic import check_target

    collect_garbage_from_now_on()
    kind = "monitor" if monitor else "detector"
    if monitor and example is not None:
        raise InputError("A monitor learns from no example. Leave out --example, or --monitor.")
    if not Path(output).parent.is_dir():
        raise InputError(f"There is no folder {str(Path(output).parent)!r} for the {kind}. Make it first.")
    check_target(output, force=force, inputs=[name for name in (file, example) if name is not None])
    if not force:
        _check_not_begun(output)
    with progress("fitting"):
        samples = reading.read([file] if example is None else [file, example], keep=settings.aside)
        detector = _make(kind, settings).fit(samples[0].data, **({} if example is None else {"example": samples[1].data}))
        detector.save(output)
    given = {"--output": output, "--monitor": monitor, "--example": example}
    again = command_line("fit", [file], {**given, **reading.arguments(), **settings.arguments(detector.seed_)})
    columns = settings.compared(samples[0])
    noticed = list(dict.fromkeys((*(line for sample in samples for line in sample.notes), *detector.notes_)))
    if not as_json:
        note(noticed)
        _say_fitted(detector, output, samples[0], columns, settings.method, reading)
        return
    reference = {"name": file, "rows": samples[0].rows}
    described = {kind: output, "reference": reference, "columns": columns}
    chosen = {"method": settings.method, "alpha": settings.alpha, "seed": detector.seed_}
    say_json({"command": "fit", "repeat": again, **described, **chosen, "notes": noticed})


def _check_not_begun(output: str) -> None:
    """Refuse to replace a monitor that has batches: its evidence, and an alarm that stands, would be gone."""
    from cpmmd.monitoring.monitor import DriftMonitor
    from cpmmd.storage.container import kind_of

    if kind_of(output) != "monitor":
        return
    try:
        number = DriftMonitor.load(output).number_
    except CpmmdError:  # damaged, or of a network that the file does not hold
        return
    if number:
        raise InputError(
            "{file!r} is a monitor with {batches}, which would be gone. Name another file, or replace it with {setting}.",
            file=output,
            batches=counted(number, "batch", "batches"),
            setting=Setting("force"),
        )


def _make(kind: str, settings: Settings) -> Any:
    """Return a detector or a monitor that is not fitted yet."""
    from cpmmd.monitoring.detector import DriftDetector
    from cpmmd.monitoring.monitor import DriftMonitor

    if kind == "monitor":
        return DriftMonitor(**_of_a_monitor(settings.keywords()))
    return DriftDetector(**settings.keywords())


def _say_fitted(detector: Any, output: str, reference: Any, columns: list[str], method: str, reading: Reading) -> None:
    """Print what was saved, and the command that comes next."""
    rows, compared = counted(reference.rows, "reference row"), counted(len(columns), "column")
    say(f"Saved {output}: {rows}, {compared}, {method}.")
    if getattr(detector, "kernel_", None) is not None:
        say(f"  kernel  {detector.kernel_}")
    say()
    say("Check batches with")
    say(f"  {command_line('check', [output, 'BATCH...'], reading.meaning())}", limit=COMMAND)


@dataclass(frozen=True)
class Checking:
    """What ``check`` was asked for."""

    alpha: float | None = None
    history: str | None = None
    again: bool = False
    missing: str | None = None

    def repeat(self, detector_file: str, files: Sequence[str], reading: Reading, report: str | None) -> str:
        """Return the command that does the same again: tests again, where a history would know the batches by then."""
        options = {"--alpha": self.alpha, "--history": self.history, "--missing": self.missing, **reading.arguments()}
        if not files:
            return command_line("check", [detector_file], {**options, "--report": report})
        anew = self.again or self.history is not None
        return command_line("check", [detector_file, *files], options) + (" --again" if anew else "")


def check(
    detector_file: str, files: Sequence[str], reading: Reading, checking: Checking, answering: Answering
) -> tuple[bool, bool]:
    """Test batches against a detector; whether any differs, and whether any could not be tested."""
    from cpmmd.core import validation
    from cpmmd.monitoring.checking import BatchCheck
    from cpmmd.monitoring.detector import DriftDetector
    from cpmmd.monitoring.history import keeping

    collect_garbage_from_now_on()
    answering.check([detector_file, *files, *([] if checking.history is None else [checking.history])])
    _check_files(files, checking)
    detector = DriftDetector.load(detector_file)
    if checking.missing is not None:
        validation.missing(checking.missing)
    alpha = validation.open_unit("alpha", detector.alpha if checking.alpha is None else checking.alpha)
    with keeping(checking.history) as history:
        batch_check = BatchCheck(detector, alpha, checking.missing, history, checking.again, progress)
        checked, series = _check_all(batch_check, files, reading, explain=answering.explain)
    again = checking.repeat(detector_file, files, reading, answering.report)
    if answering.report is not None:
        write_report(series, checked, answering.report, alpha, detector_file, again)
    answer(checked, alpha, detector_file, again, answering)
    return any(batch.differs for batch in checked) and bool(files), any(batch.error is not None for batch in checked)


def _check_files(files: Sequence[str], checking: Checking) -> None:
    if list(files).count(STDIN) > 1:
        raise InputError("Standard input can be read once. Got '-' more than once; write one of them to a file first.")
    if not files and (checking.history is None or not Path(checking.history).is_file()):
        raise InputError(f"There is no history {checking.history!r} to report. Check a batch with it first.")


def _check_all(
    batch_check: BatchCheck, files: Sequence[str], reading: Reading, *, explain: bool
) -> tuple[list[CheckedBatch], list[dict[str, Any]]]:
    """Return the batches of this call, and the records of the whole series."""
    from cpmmd.monitoring.checking import CheckedBatch

    if not files:
        earlier = batch_check.series()
        return [CheckedBatch(record["batch"], record) for record in earlier], earlier
    detector = batch_check.detector
    aside = tuple(filter(None, (detector.groups, detector.strata, detector.pairs)))
    named = {name: BatchFile(file, reading, aside) for file, name in zip(files, batch_names(files), strict=True)}
    found = batch_check.run([file.source(name) for name, file in named.items()], explain=explain)
    checked = [named[batch.name].in_words(batch) for batch in found]
    if batch_check.history is None:
        return checked, [batch.record for batch in checked if batch.record]
    note(f"the history keeps its earlier record of {batch.name}" for batch in checked if batch.judged and not batch.kept)
    return checked, batch_check.series()
