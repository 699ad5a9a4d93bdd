"""``cpmmd fit`` and ``cpmmd check``: a reference once, then batch after batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpmmd.cli.failures import in_command_words
from cpmmd.cli.settings import STDIN, Answering, Reading
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.monitoring.checking import CheckedBatch, Source
from cpmmd.cli.output import COMMAND, note, probability, progress, say, say_end, say_json, say_table, say_verdict

if TYPE_CHECKING:
    from cpmmd.monitoring.checking import CheckedBatch
from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.settings import Settings, Typed, command_line
from cpmmd.core.text import counted
from cpmmd.errors import CpmmdError, Setting

if TYPE_CHECKING:
    from cpmmd.monitoring.checking import BatchCheck, CheckedBatch


# The files that ``cpmmd check`` was given: called by their names, read when their rows are wanted.


@dataclass(eq=False)
class BatchFile:
    """A file that is read each time its rows are wanted; standard input, which can be read once, keeps them."""

    file: str
    reading: Reading
    aside: tuple[str, ...] = ()
    label: str | None = None  # and what reading said, once it was read
    notes: tuple[str, ...] = ()
    _rows: Any = field(default=None, repr=False)

    def read(self) -> Any:
        """Return the rows."""
        if self._rows is not None:
            return self._rows
        (sample,) = self.reading.read([self.file], keep=self.aside, some_drop=True)
        self.label, self.notes = sample.label, sample.notes
        self._rows = sample.data if self.file == STDIN else None
        return sample.data

    def source(self, name: str) -> Source:
        """Return where the library gets the batch from."""
        from cpmmd.monitoring.checking import Source

        return Source(name, self.read, place_of(self.file))

    def in_words(self, batch: CheckedBatch) -> CheckedBatch:
        """Return what became of the batch with what reading noticed, and an error in the words of the command line."""
        if batch.failure is None:
            return replace(batch, notes=(*self.notes, *batch.notes)) if batch.status == "tested" else batch
        if self.label is not None:  # it could be read: the sample is this file
            batch.failure.labels = {"batch": self.label}
        return replace(batch, error=in_command_words(batch.failure))


def place_of(file: str) -> str | None:
    """Return where a file is; None for standard input."""
    return None if file == STDIN else str(Path(file).resolve())


def own_name(file: str) -> str:
    """Return the name of a file, in whatever folder it is."""
    return file if file == STDIN else Path(file).name


def batch_names(files: Sequence[str]) -> list[str]:
    """Call batches by their file names, by their paths where those are not enough."""
    short = [own_name(file) for file in files]
    if len(set(short)) == len(short):
        return short
    if len(set(files)) < len(files):
        raise InputError("Each batch can be checked once. A file is named more than once; remove it.")
    return list(files)


# What ``cpmmd check`` says of its batches: a line each, one JSON document, a report of the series.


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


# ``cpmmd check``, ``acknowledge`` and ``dismiss`` with a monitor: batch after batch against all that came before.


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
        again = answering.typed.again()
        if answering.report is not None:
            self._report(monitor_file, monitor, heard, answering.report, again)
        _answer(heard, monitor, self.file, again, answering)
        return monitor.alarm_, any(one.error is not None for one in heard)

    def _send(self, monitor_file: Any, files: Sequence[str], reading: Reading, *, explain: bool) -> list[Heard]:
        heard, monitor = [], monitor_file.read()
        aside = _aside(monitor)
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


def _aside(monitor: Any) -> list[str]:
    """Return the columns that say which rows belong together: read whatever columns were chosen."""
    return [name for name in (monitor.groups, monitor.strata) if name is not None]


def _is_metrics(path: Path) -> bool:
    """Whether a file is one that :func:`_write_metrics` wrote: no monitor or report is replaced by metrics."""
    with path.open("rb") as file:
        return file.read(len(METRICS)) == METRICS


def _write_metrics(path: str, monitor: Any, name: str) -> None:
    from cpmmd.core.atomic import write_whole
    from cpmmd.monitoring.monitor_file import prometheus_text

    write_whole(path, prometheus_text(monitor, name).encode())


def _answer(heard: list[Heard], monitor: Any, file: str, again: str, answering: Answering) -> None:
    last = monitor.records_[-1] if monitor.records_ else {"since": None}
    since = last["since"] if monitor.alarm_ else None
    sentence = _monitor_sentence(monitor, since)
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
        say_table(("batch", "", "p", "wealth", "rows", "where"), [_monitor_line(one) for one in heard], right=(2, 3, 4))
    note(f"{one.name} could not be tested: {one.error}" for one in heard if one.error is not None)
    if monitor.alarm_:
        say()
        say("Once looked into")
        say(f"  {command_line('acknowledge', [file], {})}   (a change: the new state becomes the reference)")
        say(f"  {command_line('dismiss', [file], {})}   (none: go on as before)")
    say_end(again if len(again) <= COMMAND else None, "Report", answering.report)


def _monitor_sentence(monitor: Any, since: str | None) -> str:
    batches = f"{monitor.number_} batch{'es' * (monitor.number_ != 1)}"
    limit = f"{1 / monitor.alpha:g}"
    if monitor.alarm_:
        return f"ALARM: something changed, most likely with {since} (false with probability {monitor.alpha:g}, ever)."
    return f"No alarm in {batches} (wealth {monitor.wealth_:.3g} < {limit})."


def _monitor_line(one: Heard) -> tuple[str, ...]:
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

    monitor_file = MonitorFile(file)
    if reference is None:
        monitor_file.acknowledge()
    else:
        (sample,) = reading.read([reference], keep=_aside(monitor_file.read()))
        with calling_samples(reference=sample.label):
            monitor_file.acknowledge(sample.data)
    say(f"Acknowledged: {file} takes {'the rows since the change' if reference is None else reference} for the reference now.")


def dismiss(file: str) -> None:
    """Begin a new episode with the past as it is."""
    from cpmmd.monitoring.monitor_file import MonitorFile

    MonitorFile(file).dismiss()
    say(f"Dismissed: {file} goes on, its evidence starts anew.")


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
    typed: Typed,
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
    again = typed.again(seed=detector.seed_)
    columns = settings.compared(samples[0])
    noticed = list(dict.fromkeys((*(line for sample in samples for line in sample.notes), *detector.notes_)))
    if not as_json:
        note(noticed)
        _say_fitted(detector, output, samples[0], columns, settings.method, typed)
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


def _say_fitted(detector: Any, output: str, reference: Any, columns: list[str], method: str, typed: Typed) -> None:
    """Print what was saved, and the command that comes next."""
    rows, compared = counted(reference.rows, "reference row"), counted(len(columns), "column")
    say(f"Saved {output}: {rows}, {compared}, {method}.")
    if getattr(detector, "kernel_", None) is not None:
        say(f"  kernel  {detector.kernel_}")
    say()
    say("Check batches with")
    say(f"  {command_line('check', [output, 'BATCH...'], typed.meaning())}", limit=COMMAND)


@dataclass(frozen=True)
class Checking:
    """What ``check`` was asked for."""

    alpha: float | None = None
    history: str | None = None
    again: bool = False
    missing: str | None = None


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
    anew = checking.again or checking.history is not None  # a history would know the batches by then
    again = answering.typed.again(again=anew) if files else answering.typed.again(report=answering.report)
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
