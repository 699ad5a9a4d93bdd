"""``cpmmd check``, ``acknowledge`` and ``dismiss`` with a monitor: batch after batch against all that came before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpmmd.cli.batches import batch_names, own_name, place_of
from cpmmd.cli.comparison import Answering
from cpmmd.cli.failures import calling_samples, in_command_words
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import COMMAND, note, probability, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import Reading, command_line
from cpmmd.errors import CpmmdError, InputError

METRICS = b"# HELP cpmmd_"  # how the file begins


@dataclass(frozen=True, eq=False)
class Heard:
    """What became of one batch: an answer, or the sentence that says why there is none."""

    name: str
    answer: Any = None
    error: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        if self.answer is None:
            return {"batch": self.name, "status": "error", "error": self.error}
        status = "known" if self.answer.known else "tested"
        return {**self.answer.to_dict(), "status": status, "error": None, "notes": list(self.notes)}


@dataclass(frozen=True)
class Watching:
    """What ``check`` was asked for, of a monitor."""

    file: str
    history: str | None = None
    metrics: str | None = None

    def check(self, files: Sequence[str], reading: Reading, answering: Answering) -> tuple[bool, bool]:
        """Send batches to the monitor, in this order; whether there is an alarm now, and whether any could not be tested."""
        from cpmmd.monitoring.monitor_file import MonitorFile

        collect_garbage_from_now_on()
        answering.check([self.file, *files, *(one for one in (self.history, self.metrics) if one is not None)])
        self._check_metrics(answering.force, files)
        monitor_file = MonitorFile(self.file, self.history)
        monitor_file.read()  # a file that is none is refused before anything is read
        heard = self._send(monitor_file, files, reading, explain=answering.explain)
        monitor = monitor_file.read()
        if self.metrics is not None:
            _write_metrics(self.metrics, monitor, self.file)
        kept = {"--history": self.history, "--metrics": self.metrics}
        again = command_line("check", [self.file, *files], {**kept, **reading.arguments()})
        if answering.report is not None:
            self._report(monitor_file, monitor, heard, answering.report, again)
        _answer(heard, monitor, self.file, again, answering)
        return monitor.alarm_, any(one.error is not None for one in heard)

    def _send(self, monitor_file: Any, files: Sequence[str], reading: Reading, *, explain: bool) -> list[Heard]:
        heard, monitor = [], monitor_file.read()
        aside = [name for name in (monitor.groups, monitor.strata) if name is not None]
        with progress("testing batches") as line:
            for done, (file, name) in enumerate(zip(files, batch_names(files), strict=True)):
                line("batch", done + 1, len(files))
                try:
                    (sample,) = reading.read([file], keep=aside, some_drop=True)
                    with calling_samples(batch=sample.label):
                        place, own = place_of(file), own_name(file)
                        answer = monitor_file.update(sample.data, name, path=place, explain=explain, known_as=own)
                    heard.append(Heard(name, answer, notes=(*sample.notes, *answer.notes)))
                except CpmmdError as error:
                    heard.append(Heard(name, error=in_command_words(error)))
        return heard

    def _check_metrics(self, force: bool, files: Sequence[str]) -> None:
        from cpmmd.core.atomic import check_target

        if self.metrics is None:
            return
        if not Path(self.metrics).parent.is_dir():
            raise InputError(f"There is no folder {str(Path(self.metrics).parent)!r} for the metrics. Make it first.")
        used = [self.file, *files, *([] if self.history is None else [self.history])]
        check_target(self.metrics, force=force, inputs=used, ours=_is_metrics)

    def _report(self, monitor_file: Any, monitor: Any, heard: list[Heard], path: str, again: str) -> None:
        from cpmmd.report.series import write_series

        failed = [{"batch": one.name, "error": one.error} for one in heard if one.error is not None]
        with progress("writing the report"):
            title, command = f"Batches of {self.file}", again if len(again) <= COMMAND else None
            records = [*monitor_file.records(), *failed]
            write_series(records, path, alpha=monitor.alpha, title=title, command=command, alarm=monitor.alarm_)


def _is_metrics(path: Path) -> bool:
    """Whether a file is one that :func:`_write_metrics` wrote: no monitor or report is replaced by metrics."""
    with path.open("rb") as file:
        return file.read(len(METRICS)) == METRICS


def _write_metrics(path: str, monitor: Any, name: str) -> None:
    from cpmmd.core.atomic import write_whole
    from cpmmd.monitoring.metrics import prometheus_text

    write_whole(path, prometheus_text(monitor, name).encode())


def _answer(heard: list[Heard], monitor: Any, file: str, again: str, answering: Answering) -> None:
    last = monitor.records_[-1] if monitor.records_ else {"since": None}
    since = last["since"] if monitor.alarm_ else None
    sentence = _sentence(monitor, since)
    if answering.json:
        head = {"command": "check", "repeat": again, "monitor": file, "alpha": monitor.alpha, "alarm": monitor.alarm_}
        state = {"since": since, "wealth": monitor.wealth_, "number": monitor.number_, "sentence": sentence}
        say_json({**head, **state, "batches": [one.to_dict() for one in heard]})
        return
    for one in heard:
        note(f"{one.name}: {line}" for line in one.notes)
    say_verdict(sentence, differs=monitor.alarm_)
    if heard:
        say()
        say_table(("batch", "", "p", "wealth", "rows", "where"), [_line(one) for one in heard], right=(2, 3, 4))
    note(f"{one.name} could not be tested: {one.error}" for one in heard if one.error is not None)
    if monitor.alarm_:
        say()
        say("Once looked into")
        say(f"  {command_line('acknowledge', [file], {})}   (a change: the new state becomes the reference)")
        say(f"  {command_line('dismiss', [file], {})}   (none: go on as before)")
    say_end(again if len(again) <= COMMAND else None, "Report", answering.report)


def _sentence(monitor: Any, since: str | None) -> str:
    batches = f"{monitor.number_} batch{'es' * (monitor.number_ != 1)}"
    limit = f"{1 / monitor.alpha:g}"
    if monitor.alarm_:
        return f"ALARM: something changed, most likely with {since} (false with probability {monitor.alpha:g}, ever)."
    return f"No alarm in {batches} (wealth {monitor.wealth_:.3g} < {limit})."


def _line(one: Heard) -> tuple[str, ...]:
    if one.answer is None:
        return (one.name, "error", *[""] * 4)
    answer = one.answer
    state = "ALARM" if answer.alarm else "quiet"
    known = f", known ({answer.time:%Y-%m-%d})" if answer.known else ""
    numbers = (probability(answer.pvalue), f"{answer.wealth:.3g}", str(answer.rows))
    return (one.name, f"{state}{known}", *numbers, ", ".join(answer.columns[:2]))


def acknowledge(file: str, reference: str | None, reading: Reading) -> None:
    """Begin a new episode with the rows since the change, or with those of a file."""
    from cpmmd.monitoring.monitor_file import MonitorFile

    if reference is None:
        MonitorFile(file).acknowledge()
    else:
        (sample,) = reading.read([reference])
        with calling_samples(reference=sample.label):
            MonitorFile(file).acknowledge(sample.data)
    say(f"Acknowledged: {file} takes {'the rows since the change' if reference is None else reference} for the reference now.")


def dismiss(file: str) -> None:
    """Begin a new episode with the past as it is."""
    from cpmmd.monitoring.monitor_file import MonitorFile

    MonitorFile(file).dismiss()
    say(f"Dismissed: {file} goes on, its evidence starts anew.")
