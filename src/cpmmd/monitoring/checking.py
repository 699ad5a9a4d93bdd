"""Batches that are checked together against one detector: tested, tested again where their number takes it, decided on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cpmmd.core import validation
from cpmmd.core.plain import PlainDict
from cpmmd.core.progress import Progress
from cpmmd.errors import CpmmdError, InputError, name_some
from cpmmd.monitoring.answers import BatchResult, CheckedBatch, auc_of
from cpmmd.monitoring.history import History
from cpmmd.studies.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    from cpmmd.monitoring.detector import DriftDetector

LEADING = 2  # columns named of a batch that differs
AUC_ROWS = 2000  # as many as an explanation looks at
Steps = Callable[[str], AbstractContextManager[Progress]]
Checked = CheckedBatch[BatchResult]


@dataclass(frozen=True, eq=False)
class NamedBatch:
    """A batch by its name, read when it is its turn."""

    name: str  # what the batch is called
    given: object  # the rows, or a function that returns them, which is called again where they are wanted once more
    path: str | None = None  # the file, where it is one

    @classmethod
    def each(cls, batches: object) -> list[NamedBatch]:
        """Return the batches of a mapping."""
        if not isinstance(batches, Mapping):
            rule = "must map names to rows, such as {'monday': frame}; for a single batch call test(frame) instead"
            raise validation.wrong("batches", rule, type(batches).__name__)
        called = Counter(map(str, batches))
        if len(called) < len(batches):
            twice = name_some(name for name, count in called.items() if count > 1)
            raise InputError(
                "Each batch must have a name of its own, as text. Got {twice} more than once; rename them.", twice=twice
            )
        return [cls(str(name), rows) for name, rows in batches.items()]

    def rows(self) -> object:
        """Return the rows; a failure to read them, such as a missing file, becomes an error with a sentence."""
        try:
            return self.given() if callable(self.given) else self.given
        except CpmmdError:
            raise
        except (OSError, ValueError) as error:
            kind, why = type(error).__name__, str(error)
            raise InputError(
                "The rows could not be read ({kind}: {why}). Correct that, then check again.", kind=kind, why=why
            ) from error


@contextmanager
def in_silence(_: str) -> Iterator[Progress]:
    """Report no progress."""
    yield lambda *_: None


@dataclass(frozen=True, eq=False)
class BatchCheck:
    """One way of checking for all batches of a call."""

    detector: DriftDetector  # what they are tested by
    alpha: float  # level of the adjusted p-values
    missing: str | None = None  # what to do about missing values; None is the detector's
    history: History | None = None  # where answers are kept and known batches are found
    again: bool = False  # whether known batches are tested again
    steps: Steps = in_silence  # given the words for a step, returns what hears of its progress

    def run(self, batches: Sequence[NamedBatch], *, explain: bool = True) -> list[Checked]:
        """Test what is not known and keep each answer at once; decide on all together, and keep the decisions."""
        known = {} if self.again else {record["key"]: record for record in self.series()}
        tested = []
        with self.steps("testing batches") as line:
            for done, named in enumerate(batches):
                line("batch", done + 1, len(batches))
                try:
                    tested.append(self._test(named, known))
                except CpmmdError as error:  # one that cannot be read does not stop the others
                    tested.append((CheckedBatch[BatchResult](named.name, failure=error, error=str(error)), None))
        # Batches of small p are tested again with as many permutations as their number takes; valid for the reason in
        # `run_many`. Without it nothing could be found among many: the smallest p of 999, times 61 batches, is above .05.
        needed = validation.permutations_among(self.alpha, max(1, sum(batch.pending for batch, _ in tested)))
        with self.steps("testing again, with more permutations"):
            refined = [self._refine(*found, named, needed) for found, named in zip(tested, batches, strict=True)]
        checked = self._decide(refined, explain=explain)
        if self.history is not None:
            self.history.settle(batch.record for batch in checked if batch.judged and batch.kept)
        return checked

    def series(self) -> list[PlainDict]:
        """Return the records of the history with the verdicts at this level, which need not be the one they were decided at."""
        records = [] if self.history is None else self.history.records()
        return [
            record if record["adjusted"] is None else {**record, "reject": bool(record["adjusted"] <= self.alpha)}
            for record in records
        ]

    def _test(self, named: NamedBatch, known: Mapping[str, PlainDict]) -> tuple[Checked, object]:
        """Return the answer about a batch, and its rows where they will be wanted once more."""
        rows = named.rows()
        key = self.detector.key(rows, missing=self.missing)
        if key in known:  # by content: the name may have come before with other rows
            return CheckedBatch(named.name, BatchResult.recall(known[key])), None
        found = replace(self._ask(rows, named.name), path=named.path)
        kept = self.history is None or self.history.append(found.to_dict())
        return CheckedBatch(named.name, found, found.notes, kept=kept), rows if found.reject else None

    def _ask(self, rows: object, name: str, n_permutations: int | None = None) -> BatchResult:
        """Return the detector's answer about a batch, with its AUC: p-values of batches that differ are all alike."""
        found = self.detector.test(rows, name=name, n_permutations=n_permutations, missing=self.missing)
        assert found.result is not None
        return replace(found, auc=auc_of(found.result, AUC_ROWS))

    def _refine(self, batch: Checked, rows: object, named: NamedBatch, needed: int) -> Checked:
        """Test a batch of small p again where its test had fewer permutations than needed."""
        if batch.answer is None or not batch.pending or batch.answer.pvalue > self.alpha:
            return batch
        result = batch.result
        had = self.detector.n_permutations_ if result is None else result.n_permutations  # None: by a check that was stopped
        if had >= needed or (result is not None and result.exhaustive):
            return batch
        try:
            rows = named.rows() if rows is None else rows
        except CpmmdError as error:  # the p-value that it has is as valid, if not as small
            why = f"it could be read only once, so its p-value comes from {had} permutations: {error}"
            return replace(batch, notes=(*batch.notes, why))
        first = batch.answer
        found = replace(self._ask(rows, batch.name, needed), key=first.key, path=first.path, time=first.time)
        return replace(batch, answer=found)

    def _decide(self, checked: Sequence[Checked], *, explain: bool) -> list[Checked]:
        """Adjust for the number of batches tested, decide, and explain those that differ."""
        pending = [batch.answer for batch in checked if batch.answer is not None and batch.pending]
        adjusted = benjamini_hochberg([answer.pvalue for answer in pending]).tolist() if pending else []
        decided = {}
        with self.steps("explaining"):
            for answer, pvalue in zip(pending, adjusted, strict=True):
                differs = bool(pvalue <= self.alpha)
                columns = _leading_columns(answer) if differs and explain else ()
                decided[answer] = replace(answer, adjusted=pvalue, reject=differs, columns=columns)
        return [
            replace(batch, answer=decided[batch.answer], judged=True) if batch.answer in decided else batch for batch in checked
        ]


def _leading_columns(answer: BatchResult) -> tuple[str, ...]:
    """Return the columns that differ most; none where there is no explanation."""
    try:
        return () if answer.result is None else tuple(column.name for column in answer.result.explain().differing[:LEADING])
    except CpmmdError:
        return ()
