"""``cpmmd fit``, ``check``, ``acknowledge`` and ``dismiss``: a reference once, then batch after batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cpmmd.cli.failures import calling_samples, in_command_words
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import COMMAND, note, probability, progress, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.settings import STDIN, OutputOptions, ReadOptions, Settings, TypedCommand, check_output, command_line
from cpmmd.core.text import pluralize
from cpmmd.errors import CpmmdError, InputError, ParameterReference, name_some

if TYPE_CHECKING:
    from cpmmd.core.plain import PlainDict
    from cpmmd.data.files.sample import FileSample
    from cpmmd.monitoring.answers import Answer, BatchResult, CheckedBatch, MonitorAnswer
    from cpmmd.monitoring.checking import BatchCheck
    from cpmmd.monitoring.detector import DriftDetector
    from cpmmd.monitoring.monitor import DriftMonitor, MonitorFile

METRICS = b"# HELP cpmmd_"  # how the file begins
NOT_FOR_MONITORS = {"pairs": "--pair-by", "blocks": "--blocks"}


@dataclass(eq=False)
class BatchFile:
    """A file that is read each time its rows are needed; standard input, which can be read only once, keeps them."""

    file: str
    reading: ReadOptions
    design_columns: Sequence[str] = ()
    label: str | None = None  # label and notes are known once it was read
    notes: tuple[str, ...] = ()
    _rows: object = field(default=None, repr=False)

    @classmethod
    def each(cls, files: Sequence[str], reading: ReadOptions, fitted: DriftDetector | DriftMonitor) -> dict[str, BatchFile]:
        """Return files by the names of their batches: their own names, or their paths where those are not unique."""
        short = [file if file == STDIN else Path(file).name for file in files]
        if len(set(files)) < len(files):
            raise InputError("Each batch can be checked only once. A file is named more than once; remove it.")
        names, design_columns = short if len(set(short)) == len(short) else files, _design_columns(fitted)
        return {name: cls(file, reading, design_columns) for file, name in zip(files, names, strict=True)}

    @property
    def place(self) -> str | None:
        """Where the file is; None for standard input."""
        return None if self.file == STDIN else str(Path(self.file).resolve())

    def read(self) -> object:
        """Return the rows."""
        if self._rows is not None:
            return self._rows
        (sample,) = self.reading.read([self.file], keep=self.design_columns, some_drop=True)
        self.label, self.notes = sample.label, sample.notes
        self._rows = sample.data if self.file == STDIN else None
        return sample.data

    def in_words(self, batch: CheckedBatch[Answer]) -> CheckedBatch[Answer]:
        """Return the checked batch with the notes of reading it, and an error in the words of the command line."""
        if batch.failure is None:
            return replace(batch, notes=(*self.notes, *batch.notes)) if batch.status == "tested" else batch
        if self.label is not None:  # it could be read: the sample is this file
            batch.failure.labels = {"batch": self.label}
        return replace(batch, error=in_command_words(batch.failure))


def _design_columns(fitted: DriftDetector | DriftMonitor) -> list[str]:
    """Return the columns of the design, which are read whatever columns were chosen."""
    names = (getattr(fitted, part, None) for part in ("groups", "strata", "pairs"))
    return [name for name in names if name is not None]


def _whole(again: str) -> str | None:
    """Return the command; None if it is so long that it would be cut."""
    return again if len(again) <= COMMAND else None


def _write_report(
    records: Iterable[PlainDict],
    checked: Sequence[CheckedBatch[Answer]],
    path: str | None,
    *,
    alpha: float,
    title: str,
    again: str,
    alarm: bool | None = None,
) -> None:
    """Write the report of a series, and of the batches of this call that could not be tested."""
    if path is None:
        return
    from cpmmd.report.series import write_series

    failed = [{"batch": batch.name, "error": batch.error} for batch in checked if batch.error is not None]
    with progress("writing the report"):
        write_series([*records, *failed], path, alpha=alpha, title=title, command=_whole(again), alarm=alarm)


def _say_batches(
    checked: Sequence[CheckedBatch[Answer]], sentence: str, header: Sequence[str], rows: list[list[str]], *, differs: bool
) -> None:
    """Print the verdict and a line for each batch, with the reason for those that could not be tested."""
    for batch in checked:
        note(f"{batch.name}: {line}" for line in batch.notes)
    say_verdict(sentence, differs=differs)
    if rows:
        say()
        say_table(header, rows, right=range(2, len(header) - 1))
    note(f"{batch.name} could not be tested: {batch.error}" for batch in checked if batch.error is not None)


# Detectors.


@dataclass(frozen=True)
class CheckOptions:
    """What ``check`` was asked for."""

    alpha: float | None = None
    history: str | None = None
    again: bool = False
    missing: str | None = None


def check(
    detector_file: str, files: Sequence[str], reading: ReadOptions, checking: CheckOptions, answering: OutputOptions
) -> tuple[bool, bool]:
    """Test batches against a detector; whether any differs, and whether any could not be tested."""
    from cpmmd.core import validation
    from cpmmd.monitoring.checking import BatchCheck
    from cpmmd.monitoring.detector import DriftDetector
    from cpmmd.monitoring.history import keeping

    collect_garbage_from_now_on()
    answering.check([detector_file, *files, *([] if checking.history is None else [checking.history])])
    if not files and (checking.history is None or not Path(checking.history).is_file()):
        raise InputError(f"There is no history {checking.history!r} to report. Check a batch with it first.")
    detector = DriftDetector.load(detector_file)
    if checking.missing is not None:
        validation.missing(checking.missing)
    alpha = validation.open_unit("alpha", detector.alpha if checking.alpha is None else checking.alpha)
    with keeping(checking.history) as history:
        batch_check = BatchCheck(detector, alpha, checking.missing, history, checking.again, progress)
        checked, series = _check_all(batch_check, files, reading, explain=answering.explain)
    anew = checking.again or checking.history is not None  # a history would know the batches by then
    again = answering.typed.again(again=anew) if files else answering.typed.again(report=answering.report)
    _write_report(series, checked, answering.report, alpha=alpha, title=f"Batches against {detector_file}", again=again)
    differs, failed = any(batch.differs for batch in checked), any(batch.answer is None for batch in checked)
    sentence = _sentence(checked, alpha)
    if answering.json:
        head = {"command": "check", "repeat": again, "detector": detector_file, "alpha": alpha}
        say_json({**head, "reject": differs, "sentence": sentence, "batches": [batch.to_dict() for batch in checked]})
    else:
        header = ("batch", "verdict", "p", "adjusted", "AUC", "rows", "where")
        _say_batches(checked, sentence, header, [_cells(batch) for batch in checked], differs=differs or failed)
        say_end(_whole(again), "Report", answering.report)
    return differs and bool(files), failed


def _check_all(
    batch_check: BatchCheck, files: Sequence[str], reading: ReadOptions, *, explain: bool
) -> tuple[list[CheckedBatch[BatchResult]], list[PlainDict]]:
    """Return the batches of this call, and the records of the whole series."""
    from cpmmd.monitoring.answers import BatchResult, CheckedBatch
    from cpmmd.monitoring.checking import NamedBatch

    if not files:
        earlier = batch_check.series()
        return [CheckedBatch(record["batch"], BatchResult.recall(record)) for record in earlier], earlier
    named = BatchFile.each(files, reading, batch_check.detector)
    found = batch_check.run([NamedBatch(name, file.read, file.place) for name, file in named.items()], explain=explain)
    checked = [named[batch.name].in_words(batch) for batch in found]
    if batch_check.history is None:
        return checked, [batch.record for batch in checked if batch.answer is not None]
    note(
        f"{batch.name} was in the history already; its earlier record is kept"
        for batch in checked
        if batch.judged and not batch.kept
    )
    return checked, batch_check.series()


def _sentence(checked: Sequence[CheckedBatch[BatchResult]], alpha: float) -> str:
    answered, differing = sum(batch.answer is not None for batch in checked), sum(batch.differs for batch in checked)
    more = _untested(checked)
    if answered == 0:
        return f"No batch was tested.{more}"
    batches = pluralize(answered, "batch", "batches")
    if differing == 0:
        return f"No difference found in {batches} (adjusted p > {alpha:g}).{more}"
    return f"{differing} of {batches} differ{'s' * (differing == 1)} from the reference (adjusted p <= {alpha:g}).{more}"


def _untested(checked: Sequence[CheckedBatch[Answer]]) -> str:
    """Return a sentence that names the batches that could not be tested; empty if there are none."""
    names = [batch.name for batch in checked if batch.answer is None]
    return f" {pluralize(len(names), 'batch', 'batches')} could not be tested: {name_some(names)}." if names else ""


def _cells(batch: CheckedBatch[BatchResult]) -> list[str]:
    answer = batch.answer
    if answer is None:
        return [batch.name, "error", *[""] * 5]
    verdict = "differs" if answer.reject else "no difference"
    if answer.known:  # from when it is, and from which file where that was another one
        called = "" if answer.name == batch.name else f" as {answer.name}"
        verdict += f", in history ({answer.time:%Y-%m-%d}{called})"
    adjusted = "" if answer.adjusted is None else probability(answer.adjusted)
    auc = "" if answer.auc is None else f"{answer.auc:.2f}"
    return [batch.name, verdict, probability(answer.pvalue), adjusted, auc, str(answer.rows), ", ".join(batch.columns)]


# Monitors.


@dataclass(frozen=True)
class MonitorCheck:
    """What ``check`` was asked for, of a monitor."""

    file: str
    history: str | None = None
    metrics: str | None = None

    def check(self, files: Sequence[str], reading: ReadOptions, answering: OutputOptions) -> tuple[bool, bool]:
        """Send batches to the monitor, in this order; whether there is an alarm, and whether any could not be tested."""
        from cpmmd.core.atomic import write_whole
        from cpmmd.monitoring.monitor import MonitorFile, prometheus_text

        collect_garbage_from_now_on()
        used = [self.file, *files, *([] if self.history is None else [self.history])]
        answering.check([*used, *([] if self.metrics is None else [self.metrics])])
        if self.metrics is not None:
            check_output(self.metrics, "metrics", force=answering.force, inputs=used, ours=_is_metrics)
        monitor_file = MonitorFile(self.file, self.history)
        checked = self._send(monitor_file, files, reading, explain=answering.explain)
        monitor = monitor_file.read()
        if self.metrics is not None:
            write_whole(self.metrics, prometheus_text(monitor, self.file).encode())
        again = answering.typed.again()
        if answering.report is not None:
            series, alarm, title = monitor_file.records(), monitor.alarm_, f"Batches of {self.file}"
            _write_report(series, checked, answering.report, alpha=monitor.alpha, title=title, again=again, alarm=alarm)
        self._answer(checked, monitor, again, answering)
        return monitor.alarm_, any(batch.answer is None for batch in checked)

    def _send(
        self, monitor_file: MonitorFile, files: Sequence[str], reading: ReadOptions, *, explain: bool
    ) -> list[CheckedBatch[MonitorAnswer]]:
        from cpmmd.monitoring.answers import CheckedBatch, MonitorAnswer

        checked = []
        named = BatchFile.each(files, reading, monitor_file.read())  # refuses other files before anything is read
        with progress("testing batches") as line:
            for done, (name, file) in enumerate(named.items()):
                line("batch", done + 1, len(files))
                try:
                    rows, own = file.read(), file.file if file.file == STDIN else Path(file.file).name
                    answer = monitor_file.update(rows, name, path=file.place, explain=explain, known_as=own)
                    checked.append(CheckedBatch(name, answer, (*file.notes, *answer.notes)))
                except CpmmdError as error:
                    checked.append(file.in_words(CheckedBatch[MonitorAnswer](name, failure=error)))
        return checked

    def _answer(
        self, checked: Sequence[CheckedBatch[MonitorAnswer]], monitor: DriftMonitor, again: str, answering: OutputOptions
    ) -> None:
        from cpmmd.monitoring.answers import evidence_in_words

        last, alpha = monitor.last_, monitor.alpha
        since = last.since.name if monitor.alarm_ and last is not None and last.since is not None else None
        if monitor.alarm_:
            promise = f"The probability of ever raising a false alarm is at most {alpha:g}."
            sentence = f"ALARM: the data changed, most likely with {since}. {promise}"
        else:
            batches = pluralize(monitor.number_, "batch", "batches")
            sentence = f"No alarm in {batches} ({evidence_in_words(monitor.wealth_, alpha)})."
        sentence += _untested(checked)
        if answering.json:
            head = {"command": "check", "repeat": again, "monitor": self.file, "alpha": alpha, "alarm": monitor.alarm_}
            state = {"since": since, "wealth": monitor.wealth_, "number": monitor.number_, "sentence": sentence}
            say_json({**head, **state, "batches": [_monitor_document(batch) for batch in checked]})
            return
        header, wrong = ("batch", "verdict", "p", "evidence", "rows", "where"), any(batch.answer is None for batch in checked)
        _say_batches(checked, sentence, header, [_monitor_cells(batch) for batch in checked], differs=monitor.alarm_ or wrong)
        if monitor.alarm_:
            say()
            say("If the change is real, accept it as the new baseline:")
            say(f"  {command_line('acknowledge', [self.file], {})}")
            say("If the alarm is false, keep the past and reset the evidence:")
            say(f"  {command_line('dismiss', [self.file], {})}")
        say_end(_whole(again), "Report", answering.report)


def _is_metrics(path: Path) -> bool:
    """Whether a file has metrics: they never replace a monitor or a report."""
    with path.open("rb") as file:
        return file.read(len(METRICS)) == METRICS


def _monitor_document(batch: CheckedBatch[MonitorAnswer]) -> PlainDict:
    if batch.answer is None:
        return {"batch": batch.name, "status": batch.status, "error": batch.error}
    return {**batch.record, "status": batch.status, "error": None, "notes": list(batch.notes)}


def _monitor_cells(batch: CheckedBatch[MonitorAnswer]) -> list[str]:
    answer = batch.answer
    if answer is None:
        return [batch.name, "error", *[""] * 4]
    state = ("ALARM" if answer.alarm else "no alarm") + (f", known ({answer.time:%Y-%m-%d})" if answer.known else "")
    numbers = (probability(answer.pvalue), f"{answer.wealth:.3g}", str(answer.rows))
    return [batch.name, state, *numbers, ", ".join(answer.columns[:2])]


def acknowledge(file: str, reference: str | None, reading: ReadOptions) -> None:
    """Begin a new episode with the rows since the change, or with those of a file."""
    from cpmmd.monitoring.monitor import MonitorFile

    monitor_file = MonitorFile(file)
    if reference is None:
        monitor_file.acknowledge()
    else:
        (sample,) = reading.read([reference], keep=_design_columns(monitor_file.read()))
        with calling_samples(reference=sample.label):
            monitor_file.acknowledge(sample.data)
    rows = "the rows since the change" if reference is None else f"the rows of {reference}"
    say(f"Acknowledged: {rows} are the new baseline of {file}.")


def dismiss(file: str) -> None:
    """Begin a new episode with the past as it is."""
    from cpmmd.monitoring.monitor import MonitorFile

    MonitorFile(file).dismiss()
    say(f"Dismissed: {file} keeps its past, and its evidence is reset.")


# Fitting.


def fit(
    file: str,
    output: str,
    example: str | None,
    reading: ReadOptions,
    settings: Settings,
    typed: TypedCommand,
    *,
    as_json: bool,
    force: bool = False,
    monitor: bool = False,
) -> None:
    """Fit a detector, or a monitor, to a reference and save it."""
    collect_garbage_from_now_on()
    kind = "monitor" if monitor else "detector"
    if monitor and example is not None:
        raise InputError("A monitor cannot be trained on an example. Leave out --example, or --monitor.")
    check_output(output, kind, force=force, inputs=[name for name in (file, example) if name is not None])
    if not force:
        _check_not_begun(output)
    with progress("fitting"):
        samples = reading.read([file] if example is None else [file, example], keep=settings.design_columns)
        fitted = _fit(samples, settings, monitor=monitor)
        fitted.save(output)
    again = typed.again(seed=fitted.seed_)
    columns, rows = settings.compared(samples[0]), samples[0].rows
    noticed = list(dict.fromkeys((*(line for sample in samples for line in sample.notes), *fitted.notes_)))
    if as_json:
        described = {kind: output, "reference": {"name": file, "rows": rows}, "columns": columns}
        chosen = {"method": settings.method, "alpha": settings.alpha, "seed": fitted.seed_}
        say_json({"command": "fit", "repeat": again, **described, **chosen, "notes": noticed})
        return
    note(noticed)
    compared = pluralize(len(columns), "column")
    say(f"Saved {output}: {pluralize(rows, 'reference row')}, {compared}, {settings.method}.")
    if getattr(fitted, "kernel_", None) is not None:
        say(f"  kernel  {fitted.kernel_}")
    say()
    say("Check batches with")
    say(f"  {command_line('check', [output, 'BATCH...'], typed.meaning())}", limit=COMMAND)


def _fit(samples: Sequence[FileSample], settings: Settings, *, monitor: bool) -> DriftDetector | DriftMonitor:
    from cpmmd.monitoring.detector import DriftDetector
    from cpmmd.monitoring.monitor import DriftMonitor

    keywords = settings.keywords()
    if keywords.pop("group_sizes") != "cut":
        raise InputError(
            "A detector always cuts groups to one size, because group sizes differ between batches. Leave out --group-sizes."
        )
    if not monitor:
        return DriftDetector(**keywords).fit(samples[0].data, example=samples[1].data if len(samples) > 1 else None)
    given = [flag for name, flag in NOT_FOR_MONITORS.items() if keywords.pop(name) is not None]
    if given:
        raise InputError(f"A monitor takes only groups and strata. Leave out {', '.join(given)}, or --monitor.")
    return DriftMonitor(**keywords).fit(samples[0].data)


def _check_not_begun(output: str) -> None:
    """Refuse to replace a monitor that has batches, because its evidence would be lost."""
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
            "{file!r} is a monitor with {batches}, which would be lost. Name another file, or replace it with {setting}.",
            file=output,
            batches=pluralize(number, "batch", "batches"),
            setting=ParameterReference("force"),
        )
