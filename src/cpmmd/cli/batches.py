"""The batches of one ``cpmmd check``: tested, refined, decided on together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cpmmd.cli import where
from cpmmd.cli.failures import calling_samples, in_command_words
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import STDIN, Reading
from cpmmd.errors import CpmmdError, InputError

LEADING = 2  # columns named in a batch's line


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
            **{name: value for name, value in self.record.items() if name != "batch"},  # known rows may have come as another file
            "status": self.status,
            "leading_columns": list(self.columns),
            "notes": list(self.notes),
            "error": self.error,
        }


@dataclass(frozen=True, eq=False)
class Testing:
    """How batches are read and tested: one way for all of a call."""

    detector: Any
    reading: Reading
    missing: str | None = None

    @property
    def aside(self) -> tuple[str, ...]:
        """Columns that say which rows belong together."""
        return tuple(filter(None, (self.detector.groups, self.detector.strata, self.detector.pairs)))

    def key(self, sample: Any) -> str:
        """Return what a history knows a batch by."""
        return str(self.detector.key(sample.data, missing=self.missing))

    def ask(self, sample: Any, name: str, n_permutations: int | None = None) -> Any:
        """Return what the detector says of a batch, with its effect size: p-values of batches that differ are all alike."""
        found = self.detector.test(sample.data, name=name, n_permutations=n_permutations, missing=self.missing)
        return replace(found, effect=where.effect_of(found.result))

    def test_all(
        self, files: Sequence[str], known: dict[str, Any], keep: Callable[[dict[str, Any]], bool] | None
    ) -> list[Checked]:
        """Test every batch that is not known and keep it at once; one that cannot be read does not stop the others."""
        checked = []
        with progress("testing batches") as line:
            for done, (file, name) in enumerate(zip(files, batch_names(files), strict=True)):
                line("batch", done + 1, len(files))
                try:
                    checked.append(self._check(file, name, known, keep))
                except CpmmdError as error:
                    checked.append(Checked(name, error=in_command_words(error)))
        return checked

    def _read(self, file: str) -> Any:
        return self.reading.read([file], keep=self.aside, some_drop=True)[0]

    def _check(self, file: str, name: str, known: dict[str, Any], keep: Callable[[dict[str, Any]], bool] | None) -> Checked:
        sample = self._read(file)
        with calling_samples(batch=sample.label):
            key = self.key(sample)
            if key in known:  # by content: the name may have come before with other rows
                return Checked(name, known[key])
            found = replace(self.ask(sample, name), path=place_of(file))
        record = found.to_dict()
        kept = keep is None or keep(record)
        again = sample if found.reject or file == STDIN else None  # its rows are wanted once more
        return Checked(name, record, found.result, notes=(*sample.notes, *found.notes), kept=kept, sample=again)

    def refine(self, checked: list[Checked], files: Sequence[str], alpha: float) -> list[Checked]:
        """Test batches of small p again with as many permutations as their number takes; valid for the reason in ``run_many``.

        Without it nothing could be found among many: the smallest p of 999 permutations, times 61 batches, is above .05.
        """
        from cpmmd.core import validation

        needed = validation.permutations_among(alpha, max(1, sum(batch.pending for batch in checked)))
        with progress("testing again, with more relabelings"):
            return [self._with_more(batch, file, needed, alpha) for batch, file in zip(checked, files, strict=True)]

    def _with_more(self, batch: Checked, file: str, needed: int, alpha: float) -> Checked:
        stopped = batch.result is None  # tested by a call that was stopped
        had = self.detector.n_permutations_ if stopped else batch.result.n_permutations
        enough = had >= needed or (not stopped and batch.result.exhaustive)
        if not batch.pending or enough or batch.record["pvalue"] > alpha:
            return batch
        sample = self._read(file) if batch.sample is None else batch.sample
        found = self.ask(sample, batch.name, needed)
        again = {**found.to_dict(), **{name: batch.record[name] for name in ("key", "path", "time")}}
        return replace(batch, record=again, result=found.result)


def place_of(file: str) -> str | None:
    """Return where a file is; None for standard input."""
    return None if file == STDIN else str(Path(file).resolve())


def batch_names(files: Sequence[str]) -> list[str]:
    """Call batches by their file names, by their paths where those are not enough."""
    short = [file if file == STDIN else Path(file).name for file in files]
    if len(set(short)) == len(short):
        return short
    if len(set(files)) < len(files):
        raise InputError("Each batch can be checked once. A file is named more than once; remove it.")
    return list(files)


def decide(checked: list[Checked], alpha: float, *, explain: bool) -> list[Checked]:
    """Adjust for the number of batches tested, decide, and explain those that differ."""
    from cpmmd.studies.multiplicity import benjamini_hochberg

    pending = [batch for batch in checked if batch.pending]
    adjusted = iter(benjamini_hochberg([batch.record["pvalue"] for batch in pending]).tolist()) if pending else iter([])
    with progress("explaining"):
        return [_judge(batch, next(adjusted), alpha, explain=explain) if batch.pending else batch for batch in checked]


def judge_at(alpha: float, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of a history with the verdicts at this level, which need not be the one they were decided at."""
    return [
        record if record["adjusted"] is None else {**record, "reject": bool(record["adjusted"] <= alpha)} for record in records
    ]


def _judge(batch: Checked, adjusted: float, alpha: float, *, explain: bool) -> Checked:
    record = {**batch.record, "adjusted": adjusted, "reject": bool(adjusted <= alpha)}
    batch = replace(batch, record=record, judged=True)
    wanted = record["reject"] and explain and batch.result is not None
    explanation = where.explain_result(batch.result) if wanted else None
    if explanation is None:
        return batch
    return replace(batch, columns=tuple(column.name for column in explanation.differing[:LEADING]))
