"""``cpmmd fit`` and ``cpmmd check``: a reference once, then batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cpmmd.cli import where
from cpmmd.cli.comparison import Answering
from cpmmd.cli.failures import calling_samples, in_command_words
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.output import COMMAND, note, probability, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import STDIN, Reading, Settings, command_line
from cpmmd.errors import CpmmdError, InputError

LEADING = 2  # columns named in a batch's line


def fit(
    file: str, output: str, example: str | None, reading: Reading, settings: Settings, *, as_json: bool, force: bool = False
) -> None:
    """Fit a detector to a reference and save it."""
    from cpmmd.core.atomic import check_target
    from cpmmd.monitoring.detector import DriftDetector

    collect_garbage_from_now_on()
    if not Path(output).parent.is_dir():
        raise InputError(f"There is no folder {str(Path(output).parent)!r} for the detector. Make it first.")
    check_target(output, force=force, inputs=[name for name in (file, example) if name is not None])
    samples = reading.read([file] if example is None else [file, example])
    detector = DriftDetector(**settings.keywords()).fit(*(sample.data for sample in samples))
    detector.save(output)
    options = {"--output": output, "--example": example, **reading.arguments(), **settings.arguments(detector.seed_)}
    again = command_line("fit", [file], options)
    noticed = list(dict.fromkeys((*(line for sample in samples for line in sample.notes), *detector.notes_)))
    if as_json:
        described = {
            "detector": output,
            "reference": {"name": file, "rows": samples[0].rows},
            "columns": list(samples[0].columns),
        }
        chosen = {"method": settings.method, "alpha": settings.alpha, "seed": detector.seed_}
        say_json({"command": "fit", "repeat": again, **described, **chosen, "notes": noticed})
        return
    note(noticed)
    say(f"Saved {output}: {samples[0].rows} reference rows, {len(samples[0].columns)} columns, {settings.method}.")
    if detector.kernel_ is not None:
        say(f"  kernel  {detector.kernel_}")
    say()
    say("Check batches with")
    say(f"  {command_line('check', [output, 'BATCH...'], reading.meaning())}", limit=COMMAND)


@dataclass(frozen=True, eq=False)
class Checked:
    """What became of one batch: tested, already known, or not readable."""

    name: str
    record: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    kept: bool = True
    judged: bool = False
    sample: Any = None

    @property
    def pending(self) -> bool:
        """Whether this call has to decide on it: tested now, or by a call that was stopped before it could."""
        return bool(self.record) and (self.result is not None or self.record["adjusted"] is None)

    @property
    def status(self) -> str:
        """One word."""
        if self.error is not None:
            return "error"
        return "known" if self.result is None else "tested"

    @property
    def differs(self) -> bool:
        """Whether the batch differs, found now or known from before."""
        return bool(self.record.get("reject"))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        blank = dict.fromkeys(
            ("key", "path", "time", "rows", "pvalue", "adjusted", "statistic", "effect", "reject", "method", "seed")
        )
        return {
            "batch": self.name,
            **blank,
            **self.record,
            "status": self.status,
            "leading_columns": list(self.columns),
            "notes": list(self.notes),
            "error": self.error,
        }


@dataclass(frozen=True)
class Checking:
    """What ``check`` was asked for."""

    alpha: float | None = None
    history: str | None = None
    again: bool = False


def check(
    detector_file: str, files: Sequence[str], reading: Reading, checking: Checking, answering: Answering
) -> tuple[bool, bool]:
    """Test batches against a detector; whether any differs, and whether any could not be tested."""
    from cpmmd.core import validation
    from cpmmd.monitoring.detector import DriftDetector
    from cpmmd.monitoring.history import History

    collect_garbage_from_now_on()
    answering.check([detector_file, *files])
    if list(files).count(STDIN) > 1:
        raise InputError("Standard input can be read once. Got '-' more than once; write one of them to a file first.")
    detector = DriftDetector.load(detector_file)
    alpha = validation.open_unit("alpha", detector.alpha if checking.alpha is None else checking.alpha)
    history = None if checking.history is None else History(checking.history)
    try:
        known = {} if history is None else {record["key"]: record for record in history.records()}
        keep = None if history is None else history.append
        checked = _test_all(detector, files, reading, {} if checking.again else known, keep)
        checked = _decide(_refine(checked, detector, files, reading, alpha), alpha, answering)
        if history is not None:
            _settle(history, checked)
        series = [b.record for b in checked if b.record] if history is None else history.records()
    finally:
        if history is not None:
            history.close()
    options = {"--alpha": checking.alpha, "--history": checking.history, **reading.arguments()}
    again = command_line("check", [detector_file, *files], options) + (" --again" if checking.again else "")
    if answering.report is not None:
        _write_report(series, answering.report, alpha, detector_file, again)
    _answer(checked, alpha, detector_file, again, answering)
    return any(batch.differs for batch in checked), any(batch.error is not None for batch in checked)


def _settle(history: Any, checked: list[Checked]) -> None:
    """Write the decisions, which take all batches of the call, beside the p-values, which were kept one by one."""
    history.settle(batch.record for batch in checked if batch.judged and batch.kept)
    note(f"the history keeps its earlier record of {batch.name}" for batch in checked if batch.judged and not batch.kept)


def _test_all(
    detector: Any,
    files: Sequence[str],
    reading: Reading,
    known: dict[str, Any],
    keep: Callable[[dict[str, Any]], bool] | None,
) -> list[Checked]:
    """Test every batch that is not known and keep it at once; one that cannot be read does not stop the others."""
    checked = []
    with progress() as line:
        for done, (file, name) in enumerate(zip(files, _names(files), strict=True)):
            if line is not None:
                line("batch", done + 1, len(files))
            try:
                (sample,) = reading.read([file])
                with calling_samples(batch=sample.label):
                    key = detector.key(sample.data)
                    if key in known:  # by content: the name may have come before with other rows
                        checked.append(Checked(name, known[key]))
                        continue
                    found = replace(detector.test(sample.data, name=name), path=_place(file))
                record = found.to_dict()
                kept = keep is None or keep(record)
                again = sample if found.reject else None  # its rows are wanted once more
                notes = (*sample.notes, *found.notes)
                checked.append(Checked(name, record, found.result, notes=notes, kept=kept, sample=again))
            except CpmmdError as error:
                checked.append(Checked(name, error=in_command_words(error)))
    return checked


def _place(file: str) -> str | None:
    return None if file == STDIN else str(Path(file).resolve())


def _names(files: Sequence[str]) -> list[str]:
    """Call batches by their file names, by their paths where those are not enough."""
    short = [file if file == STDIN else Path(file).name for file in files]
    if len(set(short)) == len(short):
        return short
    if len(set(files)) < len(files):
        raise InputError("Each batch can be checked once. A file is named more than once; remove it.")
    return list(files)


def _refine(checked: list[Checked], detector: Any, files: Sequence[str], reading: Reading, alpha: float) -> list[Checked]:
    """Test batches of small p again with as many permutations as their number takes; valid for the reason in ``run_many``.

    Without it nothing could be found among many: the smallest p of 999 permutations, times 61 batches, is above .05.
    """
    from cpmmd.core import validation

    needed = validation.permutations_among(alpha, max(1, sum(batch.pending for batch in checked)))
    return [_with_more(batch, detector, file, reading, needed, alpha) for batch, file in zip(checked, files, strict=True)]


def _with_more(batch: Checked, detector: Any, file: str, reading: Reading, needed: int, alpha: float) -> Checked:
    had = detector.n_permutations_ if batch.result is None else batch.result.n_permutations  # None: from a call that was stopped
    enough = had >= needed or (batch.result is not None and batch.result.exhaustive)
    if not batch.pending or enough or batch.record["pvalue"] > alpha:
        return batch
    (sample,) = (batch.sample,) if batch.sample is not None else reading.read([file])
    found = detector.test(sample.data, name=batch.name, n_permutations=needed)
    again = {**found.to_dict(), **{name: batch.record[name] for name in ("key", "path", "time")}}
    return replace(batch, record=again, result=found.result)


def _decide(checked: list[Checked], alpha: float, answering: Answering) -> list[Checked]:
    """Adjust for the number of batches tested, decide, and explain those that differ."""
    from cpmmd.studies.multiplicity import benjamini_hochberg

    pending = [batch for batch in checked if batch.pending]
    adjusted = iter(benjamini_hochberg([batch.record["pvalue"] for batch in pending]).tolist()) if pending else iter([])
    return [_judge(batch, next(adjusted), alpha, answering) if batch.pending else batch for batch in checked]


def _judge(batch: Checked, adjusted: float, alpha: float, answering: Answering) -> Checked:
    record = {**batch.record, "adjusted": adjusted, "reject": bool(adjusted <= alpha)}
    batch = replace(batch, judged=True)
    wanted = record["reject"] and answering.explain and batch.result is not None
    explanation = where.explain_if_found(batch.result) if wanted else None
    if explanation is None:
        return replace(batch, record=record)
    leading = tuple(column.name for column in explanation.columns[:LEADING] if column.contribution > 0)
    return replace(batch, record={**record, "effect": explanation.effect.probability}, columns=leading)


def _write_report(series: list[dict[str, Any]], path: str, alpha: float, detector_file: str, again: str) -> None:
    from cpmmd.report.series import write_series

    write_series(series, path, alpha=alpha, title=f"Batches against {detector_file}", command=again)


def _answer(checked: list[Checked], alpha: float, detector_file: str, again: str, answering: Answering) -> None:
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
    say_table(("batch", "verdict", "p", "adjusted", "rows", "where"), [_line(b) for b in checked], right=(2, 3, 4))
    for batch in checked:
        if batch.error is not None:
            note([f"{batch.name} could not be tested: {batch.error}"])
    say_end(None, "Report", answering.report)


def _sentence(answered: int, differing: int, failed: int, alpha: float) -> str:
    more = f" {failed} could not be tested." if failed else ""
    if answered == 0:
        return f"No batch was tested.{more}"
    batches = f"{answered} batch{'es' * (answered > 1)}"
    if differing == 0:
        return f"No difference found in {batches} (adjusted p > {alpha:g}).{more}"
    return f"{differing} of {batches} differ{'s' * (differing == 1)} from the reference (adjusted p <= {alpha:g}).{more}"


def _since(record: dict[str, Any]) -> str:
    """Say from when an answer is, and of which file where that had another name."""
    return f", in history since {str(record['time'])[:16].replace('T', ' ')}"


def _line(batch: Checked) -> tuple[str, ...]:
    if batch.error is not None:
        return (batch.name, "error", "", "", "", "")
    record = batch.record
    verdict = "differs" if record["reject"] else "no difference"
    adjusted = "" if record["adjusted"] is None else probability(record["adjusted"])
    return (
        batch.name,
        f"{verdict}{_since(record) if batch.status == 'known' else ''}",
        probability(record["pvalue"]),
        adjusted,
        str(record["rows"]),
        ", ".join(batch.columns),
    )
