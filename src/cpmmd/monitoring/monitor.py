"""The drift monitor: batch after batch against everything before it, with an alarm that is valid at any time.

In memory, or in a file that several processes may update, one after the other, and that survives a kill at any moment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from cpmmd.core import validation
from cpmmd.core.atomic import locked
from cpmmd.core.plain import PlainDict
from cpmmd.core.seeds import keyed_rng, resolve_seed
from cpmmd.data.notices import fitted_steps
from cpmmd.data.pool import check_tables, pool_of_one
from cpmmd.data.table import Table, read_table
from cpmmd.errors import InputError, ParameterReference, name_keywords
from cpmmd.monitoring.answers import LookResult, MonitorAnswer, content_digest
from cpmmd.monitoring.bets import Saffron, first_looks
from cpmmd.monitoring.history import History, keeping
from cpmmd.monitoring.past import Past, SpanTest, apply_missing_policy
from cpmmd.monitoring.states import KEY, Fitted, MonitorState
from cpmmd.questions.options import TestPlan

PERMUTATIONS = 9999  # by default: a batch comes once an hour or a day, and its smallest p-value is 1 / 10,000


@name_keywords
@dataclass(eq=False, repr=False, kw_only=True)
class DriftMonitor(Fitted[MonitorState]):
    """Tests each batch against everything before it; the probability of ever raising a false alarm is at most alpha.

    Parameters
    ----------
    method, n_jobs, memory_limit, scale, missing, progress, preprocess
        As for :func:`two_sample_test`. The method must be exact with a single ranking: not ``"mmdagg"``, and not several splits.
    alpha : float
        The probability of ever raising a false alarm is at most alpha, however many batches come.
    n_permutations : int, optional
        Permutations of each test; None is 9999. More permutations allow smaller p-values. With 9999, one batch alone can raise
        the alarm among the first twenty or so; later it takes two batches, or 99,999 permutations. With 999 it always takes two,
        and after the first few batches no single one is found to differ.
    rng : int, Generator, RandomState or None
        Seed or generator: it decides which earlier rows are compared, the permutations, and how ties are broken. The same seed
        and the same batches in the same order give the same answers.
    bet : str
        ``"adaptive"`` weights power calibrators by what they would have paid so far, and bets a little more of its wealth with
        every batch until one pays. ``"power"`` is the mixture of all of them, the same at every batch; it suits changes within
        the first few batches. ``"average"`` is half of each.
    looks : sequence of int
        Lengths of the spans of batches that are tested besides each batch by itself: 1 first, each a multiple of the one before.
        Each starts with a share of the wealth that is proportional to 1 / length.
    fdr : float
        False discovery rate of the batches that are found to differ.
    past_rows : int
        Number of earlier rows that are kept.
    batch_rows : int
        Most rows of a batch, or of a span of batches, that are tested; from larger ones this many are drawn at random.
    groups, strata : str, optional
        Columns of the reference and of every batch, as for :func:`two_sample_test`: groups are kept, dropped and permuted as a
        whole; labels move inside a stratum only. A group must not appear again in a later batch while the monitor remembers it.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, array of str
        Number of columns, and their names where the reference has them.
    seed_, n_permutations_ : int
        The seed of all randomness, and permutations of each test.
    number_, episode_ : int
        Batches so far, and how often an alarm was acknowledged or dismissed.
    wealth_, alarm_ : float, bool
        The evidence so far, and whether there is an alarm.
    records_ : list of dict
        The latest answers, at most 1000, in plain JSON types.
    notes_ : tuple of str
        Notes from fitting.

    Notes
    -----
    If nothing changed, the rows of reference and batches are exchangeable, and the rank of a batch among a random part of what
    came before is uniform given which rows there are; everything later depends on that alone. So the p-values are independent,
    and the wealth of bets on them is a test martingale. The page about monitoring has the proof and the limits: a drift so slow
    that each batch looks like what came before is absorbed.

    A batch is known by its name and its rows: sent twice under one name it counts once. A batch without a name always counts.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import DriftMonitor
    >>> data = np.random.default_rng(0)
    >>> monitor = DriftMonitor(n_permutations=999, rng=0).fit(data.normal(size=(200, 2)))
    >>> for day, shift in {"mon": 0, "tue": 0, "wed": 1, "thu": 1}.items():
    ...     print(monitor.update(data.normal(shift, 1, size=(60, 2)), name=day))
    mon: no alarm (evidence 0.719 of 20 needed for an alarm, p = 0.232), 60 rows
    tue: no alarm (evidence 0.686 of 20 needed for an alarm, p = 0.656), 60 rows
    wed: no alarm (evidence 9.11 of 20 needed for an alarm, p = 0.001), 60 rows
    thu: ALARM since wed (evidence 20 >= 20, p = 0.001), 60 rows
    """

    _kind = "monitor"

    bet: str = "adaptive"
    looks: Sequence[int] = (1, 4, 8)
    fdr: float = 0.1
    past_rows: int = 20_000
    batch_rows: int = 2_500
    groups: str | None = None
    strata: str | None = None

    def fit(self, reference: object) -> Self:
        """Begin with a reference: no batches yet, and no evidence.

        Parameters
        ----------
        reference : array or data frame
            Rows from before the first batch.

        Returns
        -------
        DriftMonitor
            Itself.
        """
        looks, fdr, seed = first_looks(self.looks, self.bet), Saffron(self.fdr), resolve_seed(self.rng)
        plan = self._plan()
        table = plan.design.split_design_columns(read_table(reference, "reference"), "reference")
        of_reading = table.notes
        (table,), checked = check_tables({"reference": table}, missing=self.missing)
        notes = (*of_reading, *checked, *fitted_steps(pool_of_one(table), ("reference",)))
        past, params = self._past_of(table, seed, 0), self.get_params(deep=False)
        known = f"{seed} {plan.options.method} {plan.options.alpha} {content_digest(table)}{plan.preprocess or ''}"
        identity = hashlib.sha256(known.encode()).hexdigest()[: KEY // 2]
        return self._begin(MonitorState(params, seed, past, looks, fdr, notes=notes, identity=identity))

    def update(
        self,
        batch: object,
        name: str | None = None,
        *,
        path: str | None = None,
        explain: bool = False,
        known_as: str | None = None,
    ) -> MonitorAnswer:
        """Test one batch against everything before it, and add it to the past.

        Parameters
        ----------
        batch : array or data frame
            The rows, one or more, with the columns of the reference.
        name : str, optional
            The name of the batch. Sent again under the same name with the same rows, it counts once.
        path : str, optional
            The file it came from, for the record.
        explain : bool
            Whether to keep the AUC with the answer, and the columns that changed most if the batch by itself is significant or
            there is an alarm.
        known_as : str, optional
            The name under which it counts once, if that is not ``name``: a file's own name, wherever the file is.

        Returns
        -------
        MonitorAnswer
            With ``pvalue``, ``evalue``, ``wealth``, ``alarm``, ``since``, ...; print it for a line.
        """
        state = self._fitted()
        table, notes = self._conform(batch, "batch")
        key = state.key(table, name if known_as is None else known_as)
        known = None if name is None else next((record for record in reversed(state.recent) if record["key"] == key), None)
        if known is not None:
            return MonitorAnswer.recall(known)
        table, dropped = apply_missing_policy(table, "batch", missing=state.params["missing"], least=1)
        state, looks = self._test(replace(state, number=state.number + 1), table)
        answer = self._answer(state, looks, f"batch {state.number}" if name is None else str(name), key)
        answer = replace(answer, path=path, notes=(*notes, *dropped, *answer.notes))
        if explain:
            answer = answer.looked_into()
        _, fdr = state.fdr.decide(answer.pvalue)
        self._assume(replace(state, fdr=fdr).remember(answer))
        return answer

    def acknowledge(self, reference: object = None) -> Self:
        """Accept a detected change as the new baseline: the rows since become the reference, and the evidence is reset.

        Parameters
        ----------
        reference : array or data frame, optional
            Rows of the new baseline. None takes the stored rows of the batches from the estimated first changed one on. Those
            batches were chosen by looking at their rows, so the false-alarm probability from then on is exact only if you pass
            other rows.

        Returns
        -------
        DriftMonitor
            Itself.
        """
        state = self._fitted()
        if reference is not None:
            table, _ = self._conform(reference, "reference")
            table, _ = apply_missing_policy(table, "reference", missing=state.params["missing"], least=2)
            return self._assume(state.start_anew(self._past_of(table, state.seed, state.number)))
        own = ParameterReference("reference")
        if state.raised is None:
            raise InputError(
                "There is no alarm to acknowledge. To start from a new baseline anyway, pass its rows as {own}.", own=own
            )
        rows = np.flatnonzero(state.past.numbers >= state.recent[-1]["since_number"])
        if len(rows) < 2:
            raise InputError(
                "A new baseline must have at least 2 rows. The batches since the change have {rows}; wait, or pass {own}.",
                rows=len(rows),
                own=own,
            )
        return self._assume(state.start_anew(state.past.take(rows)))

    def dismiss(self) -> Self:
        """Return the monitor after a false alarm: the past is kept, the evidence reset.

        Without an alarm this is an error, because evidence on its way to one would be lost.
        """
        state = self._fitted()
        if state.raised is None:
            raise InputError("There is no alarm to dismiss. Evidence is reset only after an alarm; go on with the next batch.")
        return self._assume(state.start_anew(state.past))

    def key(self, batch: object, name: str) -> str:
        """Return the key of a batch in a history: the same for the same name and rows and this monitor.

        Parameters
        ----------
        batch : array or data frame
            The rows, with the columns of the reference.
        name : str
            Its name.

        Returns
        -------
        str
            A digest in hexadecimal digits.
        """
        return self._fitted().key(self._conform(batch, "batch")[0], name)

    @property
    def last_(self) -> MonitorAnswer | None:
        """The latest answer, without its tests; None before the first batch."""
        recent = self._fitted().recent
        return MonitorAnswer.recall(recent[-1]) if recent else None

    @property
    def records_(self) -> list[PlainDict]:
        """The latest answers, at most 1000, in plain JSON types."""
        return list(self._fitted().recent)

    def _past_of(self, reference: Table, seed: int, number: int) -> Past:
        return Past.of(reference).keep(self.past_rows, keyed_rng(seed, "reference", number))

    def _test(self, state: MonitorState, table: Table) -> tuple[MonitorState, tuple[LookResult, ...]]:
        """Return the state with a batch in it, and what each look that ends with it found."""
        drawing, keeping = keyed_rng(state.seed, "batch", state.number).spawn(2)
        past = state.past.add(table, state.number).cut(state.number, state.params["batch_rows"], drawing)
        results, looks = [], []
        for look in state.looks:
            if look.closes(state.number, state.start):
                result, look = self._span_test.look(look, past, state.number)
                results.append(result)
            looks.append(look)
        if looks[-1].closes(state.number, state.start):  # no span is open: what is dropped is blind to all of them
            past = past.keep(state.params["past_rows"], keeping)
        state = replace(state, past=past, looks=tuple(looks))
        if state.raised is None and state.wealth >= 1 / state.params["alpha"]:
            state = replace(state, raised=state.number)
        return state, tuple(results)

    def _answer(self, state: MonitorState, looks: tuple[LookResult, ...], name: str, key: str) -> MonitorAnswer:
        own = looks[0]
        assert own.result is not None
        return MonitorAnswer.of(
            own.result,
            batch=name,
            key=key,
            method=self._span_test.plan.options.method,
            pvalue=own.pvalue,
            reject=state.fdr.decide(own.pvalue)[0],
            level=state.fdr.level,
            number=state.number,
            episode=state.episode,
            wealth=state.wealth,
            alarm=state.raised is not None,
            since=state.since(name, own.rank, own.total),
            alpha=self._span_test.plan.options.alpha,
            looks=looks,
        )

    def _plan(self) -> TestPlan:
        validation.open_unit("fdr", self.fdr)
        validation.whole("past_rows", self.past_rows, at_least=2)
        validation.whole("batch_rows", self.batch_rows, at_least=1)
        for name in ("groups", "strata"):
            if not isinstance(getattr(self, name), str | None):
                raise validation.wrong(name, "must be the name of a column", type(getattr(self, name)).__name__)
        count = PERMUTATIONS if self.n_permutations is None else self.n_permutations
        plan = self._test_options(n_permutations=count).plan(decides=False)
        if not plan.procedure.exact or getattr(plan.procedure, "n_splits", 1) > 1:
            raise InputError(
                "A monitor needs a method whose p-value is one exact ranking. {method!r} has none; use another method, or a "
                "single split.",
                method=plan.options.method,
            )
        return plan

    def _begin(self, state: MonitorState) -> Self:
        plan = self._plan()
        self._span_test = SpanTest(plan, state.seed, self.batch_rows, self.progress)
        self.seed_, self.n_permutations_ = state.seed, plan.options.n_permutations
        return self._assume(state)

    def _assume(self, state: MonitorState) -> Self:
        """Become the monitor of a state."""
        self._state, self.notes_ = state, state.notes
        self.number_, self.wealth_, self.alarm_ = state.number, state.wealth, state.raised is not None
        self.episode_, self.identity_ = state.episode, state.identity
        return self._expect(state.past.table, self._span_test.plan.design)


class MonitorFile:
    """A monitor in a file, and its history in another: each batch counts once, whatever happens to the process that sends it.

    Parameters
    ----------
    path : str or Path
        What :meth:`DriftMonitor.save` wrote.
    history : str, Path or None
        An SQLite file that keeps every answer; it is created if it does not exist. Without one the latest 1000 answers are kept.

    Notes
    -----
    An update holds a lock from reading the file to the end. The file is replaced whole, with the answer in it, before the history
    gets the answer; if a process is killed in between, the next one copies that answer. A batch that was not answered before
    a kill does not count: send it again.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from cpmmd import DriftMonitor, MonitorFile
    >>> data = np.random.default_rng(0)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "monitor.cpmmd"
    >>> DriftMonitor(method="median", n_permutations=99, rng=0).fit(data.normal(size=(100, 2))).save(file)
    >>> monday = data.normal(size=(30, 2))
    >>> answers = [MonitorFile(file).update(monday, name="monday") for _ in range(2)]
    >>> [answer.known for answer in answers], MonitorFile(file).read().number_
    ([False, True], 1)
    """

    def __init__(self, path: str | Path, history: str | Path | None = None) -> None:
        self.path = Path(path)
        self.history = None if history is None else Path(history)

    def read(self) -> DriftMonitor:
        """Return the monitor as it is in the file now; changing it does not change the file."""
        return DriftMonitor.load(self.path)

    def update(
        self, batch: object, name: str, *, path: str | None = None, explain: bool = False, known_as: str | None = None
    ) -> MonitorAnswer:
        """Test one batch, and keep the answer; a batch that came before under this name keeps its answer.

        Parameters
        ----------
        batch, name, path, explain, known_as
            As for :meth:`DriftMonitor.update`.

        Returns
        -------
        MonitorAnswer
            Kept on the disk by the time it is returned.
        """
        with self._open() as (monitor, history):
            known = None if history is None else history.find(monitor.key(batch, name if known_as is None else known_as))
            if known is not None:
                return MonitorAnswer.recall(known)
            answer = monitor.update(batch, name, path=path, explain=explain, known_as=known_as)
            if not answer.known:
                monitor.save(self.path)
                _catch_up(history, monitor)
            return answer

    def acknowledge(self, reference: object = None) -> None:
        """Accept a detected change as the new baseline, as :meth:`DriftMonitor.acknowledge` does.

        Parameters
        ----------
        reference : array or data frame, optional
            Rows of the new baseline.
        """
        self._change(lambda monitor: monitor.acknowledge(reference))

    def dismiss(self) -> None:
        """Dismiss a false alarm, as :meth:`DriftMonitor.dismiss` does."""
        self._change(DriftMonitor.dismiss)

    def records(self) -> list[PlainDict]:
        """Return the records of all known batches, as :meth:`MonitorAnswer.to_dict` has them, the oldest first."""
        with self._open() as (monitor, history):
            if history is None:
                return monitor.records_
            own = monitor.identity_
            return [record for record in history.records() if "wealth" in record and record["key"].startswith(own)]

    def _change(self, change: Callable[[DriftMonitor], object]) -> None:
        with self._open() as (monitor, _):
            change(monitor)
            monitor.save(self.path)

    @contextmanager
    def _open(self) -> Iterator[tuple[DriftMonitor, History | None]]:
        """Hold the lock; the history has every answer of the file."""
        with locked(self.path):
            monitor = self.read()
            with keeping(self.history) as history:
                _catch_up(history, monitor)
                if history is not None and monitor.identity_:  # older files have none
                    batches = history.last_number(monitor.identity_)
                    if batches > monitor.number_:  # they would not be tested, and count for nothing
                        raise InputError(
                            f"The history must not have more batches than the monitor's file. It has {batches}, the file "
                            f"{monitor.number_}: the file is an older copy, or was fitted again. Restore the newer file, or name "
                            "a new history."
                        )
                yield monitor, history


def _catch_up(history: History | None, monitor: DriftMonitor) -> None:
    """Add the answers that a history lacks: the last one after a kill, all known ones if the history is new."""
    last = monitor.last_
    if history is not None and last is not None and history.find(last.key) is None:
        for record in monitor.records_:
            history.append(record)


# What a monitor says in the text format that Prometheus scrapes: name, what it is, kind.
METRICS = (
    ("cpmmd_alarm", "1 while there is an alarm that was neither acknowledged nor dismissed", "gauge"),
    ("cpmmd_wealth", "evidence against the null hypothesis that nothing changed", "gauge"),
    ("cpmmd_wealth_limit", "evidence at which the alarm is raised, 1 / alpha", "gauge"),
    ("cpmmd_batches_total", "batches that were counted", "counter"),
    ("cpmmd_episode", "alarms that were acknowledged or dismissed", "gauge"),
    ("cpmmd_since_batch", "number of the estimated first changed batch, 0 without an alarm", "gauge"),
    ("cpmmd_last_pvalue", "p-value of the latest batch by itself", "gauge"),
    ("cpmmd_last_rows", "rows of the latest batch", "gauge"),
    ("cpmmd_last_batch_timestamp_seconds", "when the latest batch was tested", "gauge"),
)


def prometheus_text(monitor: DriftMonitor, name: str) -> str:
    """Return the metrics of a monitor, labelled with its name; those of a latest batch only where there is one."""
    values = [monitor.alarm_, monitor.wealth_, 1 / monitor.alpha, monitor.number_, monitor.episode_]
    last = monitor.last_
    if last is not None:
        values += [last.since_number or 0 if monitor.alarm_ else 0, last.pvalue, last.rows, last.time.timestamp()]
    label = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(
        f'# HELP {metric} {words}\n# TYPE {metric} {kind}\n{metric}{{monitor="{label}"}} {value:.17g}\n'
        for (metric, words, kind), value in zip(METRICS, values, strict=False)
    )
