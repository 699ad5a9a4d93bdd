"""Batches that are checked together against one detector: tested, tested again where their number takes it, decided on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cpmmd.core import validation
from cpmmd.core.plain import PlainDict
from cpmmd.core.progress import Progress
from cpmmd.errors import CpmmdError, InputError, name_some
from cpmmd.monitoring.answers import BatchResult, effect_of
from cpmmd.monitoring.history import COLUMNS, History
from cpmmd.results import TestResult
from cpmmd.studies.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    from cpmmd.monitoring.detector import DriftDetector

LEADING = 2  # columns named of a batch that differs
EFFECT_ROWS = 2000  # as many as an explanation looks at
Steps = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True, eq=False)
class CheckedBatch:
    """What became of one batch: tested, already known, or not readable."""

    name: str  #: what it is called now; a known batch may have come under another name
    #: the fields of :meth:`cpmmd.BatchResult.to_dict`, with ``adjusted`` and ``reject`` as decided; empty where it failed
    record: PlainDict = field(default_factory=dict)
    result: TestResult | None = None  #: the test, where it was made now
    columns: tuple[str, ...] = ()  #: the columns that differ most, where the batch differs and was to be explained
    notes: tuple[str, ...] = ()  #: what was done to the batch to make it fit, and the like
    failure: CpmmdError | None = None  #: why it could not be tested
    error: str | None = None  #: the same as a sentence
    kept: bool = True  #: false where the history has an earlier record of these rows and keeps it
    judged: bool = False  #: whether it was decided on now

    @property
    def pending(self) -> bool:
        """Whether it has to be decided on: tested now, or by a check that was stopped before it could."""
        return bool(self.record) and (self.result is not None or self.record["adjusted"] is None)

    @property
    def status(self) -> str:
        """One word: ``"tested"``, ``"known"`` or ``"error"``."""
        if self.error is not None:
            return "error"
        return "known" if self.result is None else "tested"

    @property
    def differs(self) -> bool:
        """Whether the batch differs, found now or known from before."""
        return bool(self.record.get("reject"))

    def to_dict(self) -> PlainDict:
        """Return it in plain JSON types."""
        fields = {**dict.fromkeys(COLUMNS), **self.record}
        del fields["batch"]  # known rows may have come as another file
        return {
            "batch": self.name,
            **fields,
            "status": self.status,
            "leading_columns": list(self.columns),
            "notes": list(self.notes),
            "error": self.error,
        }


@dataclass(frozen=True, eq=False)
class Source:
    """Where the rows of a batch come from."""

    name: str  # what the batch is called
    read: Callable[[], Any]  # returns the rows; called again where they are wanted once more
    path: str | None = None  # the file, where it is one

    @classmethod
    def each(cls, batches: object) -> list[Source]:
        """Return the sources of rows by their names, of which each may be a function that returns them."""
        if not isinstance(batches, Mapping):
            raise validation.wrong("batches", "must map names to rows", type(batches).__name__)
        called = Counter(map(str, batches))
        if len(called) < len(batches):
            twice = name_some(name for name, count in called.items() if count > 1)
            raise InputError("Each batch must have a name of its own, as text. Got {twice} more than once.", twice=twice)
        return [cls(str(name), rows if callable(rows) else partial(_given, rows)) for name, rows in batches.items()]

    def rows(self) -> Any:
        """Return the rows; a failure of whoever reads them, such as a file that is not there, is said in a sentence."""
        try:
            return self.read()
        except CpmmdError:
            raise
        except (OSError, ValueError) as error:
            kind, why = type(error).__name__, str(error)
            raise InputError(
                "The rows could not be read ({kind}: {why}). See to that, then check again.", kind=kind, why=why
            ) from error


def _given(rows: Any) -> Any:
    return rows


@contextmanager
def in_silence(_: str) -> Iterator[Progress]:
    """Say nothing of a step."""
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

    def run(self, sources: Sequence[Source], *, explain: bool = True) -> list[CheckedBatch]:
        """Test what is not known and keep each answer at once; decide on all together, and keep the decisions."""
        known = {} if self.again else {record["key"]: record for record in self.series()}
        tested = self._test_all(sources, known)
        checked = self._decide(self._refine(tested, sources), explain=explain)
        if self.history is not None:
            self.history.settle(batch.record for batch in checked if batch.judged and batch.kept)
        return checked

    def series(self) -> list[PlainDict]:
        """Return the records of the history with the verdicts at this level, which need not be the one they were decided at."""
        records = [] if self.history is None else self.history.records()
        return [one if one["adjusted"] is None else {**one, "reject": bool(one["adjusted"] <= self.alpha)} for one in records]

    def _test_all(self, sources: Sequence[Source], known: Mapping[str, PlainDict]) -> list[_Tested]:
        """Test every batch that is not known; one that cannot be read does not stop the others."""
        tested = []
        with self.steps("testing batches") as line:
            for done, source in enumerate(sources):
                line("batch", done + 1, len(sources))
                try:
                    tested.append(self._test(source, known))
                except CpmmdError as error:
                    tested.append(_Tested(CheckedBatch(source.name, failure=error, error=str(error))))
        return tested

    def _test(self, source: Source, known: Mapping[str, PlainDict]) -> _Tested:
        rows = source.rows()
        key = self.detector.key(rows, missing=self.missing)
        if key in known:  # by content: the name may have come before with other rows
            return _Tested(CheckedBatch(source.name, known[key]))
        found = replace(self._ask(rows, source.name), path=source.path)
        record = found.to_dict()
        kept = self.history is None or self.history.append(record)
        batch = CheckedBatch(source.name, record, found.result, notes=found.notes, kept=kept)
        return _Tested(batch, rows if found.reject else None)

    def _ask(self, rows: Any, name: str, n_permutations: int | None = None) -> BatchResult:
        """Return what the detector says of a batch, with its effect size: p-values of batches that differ are all alike."""
        found = self.detector.test(rows, name=name, n_permutations=n_permutations, missing=self.missing)
        return replace(found, effect=effect_of(found.result, EFFECT_ROWS))

    def _refine(self, tested: Sequence[_Tested], sources: Sequence[Source]) -> list[CheckedBatch]:
        """Test batches of small p again with as many permutations as their number takes; valid for the reason in ``run_many``.

        Without it nothing could be found among many: the smallest p of 999 permutations, times 61 batches, is above .05.
        """
        needed = validation.permutations_among(self.alpha, max(1, sum(one.batch.pending for one in tested)))
        with self.steps("testing again, with more relabelings"):
            return [self._with_more(one, source, needed) for one, source in zip(tested, sources, strict=True)]

    def _with_more(self, tested: _Tested, source: Source, needed: int) -> CheckedBatch:
        batch, result = tested.batch, tested.batch.result
        had = self.detector.n_permutations_ if result is None else result.n_permutations  # None: by a check that was stopped
        enough = had >= needed or (result is not None and result.exhaustive)
        if not batch.pending or enough or batch.record["pvalue"] > self.alpha:
            return batch
        try:
            rows = source.rows() if tested.rows is None else tested.rows
        except CpmmdError as error:  # the p-value that it has is as valid, if not as small
            return replace(batch, notes=(*batch.notes, f"no more relabelings, since it could be read once only: {error}"))
        found = self._ask(rows, batch.name, needed)
        again = {**found.to_dict(), **{name: batch.record[name] for name in ("key", "path", "time")}}
        return replace(batch, record=again, result=found.result)

    def _decide(self, checked: Sequence[CheckedBatch], *, explain: bool) -> list[CheckedBatch]:
        """Adjust for the number of batches tested, decide, and explain those that differ."""
        pending = [batch.record["pvalue"] for batch in checked if batch.pending]
        adjusted = iter(benjamini_hochberg(pending).tolist() if pending else [])
        with self.steps("explaining"):
            return [self._judge(one, next(adjusted), explain=explain) if one.pending else one for one in checked]

    def _judge(self, batch: CheckedBatch, adjusted: float, *, explain: bool) -> CheckedBatch:
        record = {**batch.record, "adjusted": adjusted, "reject": bool(adjusted <= self.alpha)}
        columns = _leading(batch.result) if record["reject"] and explain and batch.result is not None else ()
        return replace(batch, record=record, judged=True, columns=columns)


@dataclass(frozen=True, eq=False)
class _Tested:
    """A batch with its rows, where they will be wanted once more."""

    batch: CheckedBatch
    rows: Any = None


def _leading(result: TestResult) -> tuple[str, ...]:
    """Return the columns that differ most; none where that cannot be said."""
    try:
        return tuple(column.name for column in result.explain().differing[:LEADING])
    except CpmmdError:
        return ()
