"""A monitor in a file that several processes may update, one after the other, and that survives a kill at any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from cpmmd.core.atomic import locked
from cpmmd.core.plain import PlainDict
from cpmmd.errors import InputError
from cpmmd.monitoring.answers import MonitorAnswer, recall
from cpmmd.monitoring.history import History, keeping
from cpmmd.monitoring.monitor import DriftMonitor


class MonitorFile:
    """A monitor in a file, and its history in another: each batch counts once, whatever happens to the process that sends it.

    Parameters
    ----------
    path : str or Path
        What :meth:`DriftMonitor.save` wrote.
    history : str, Path or None
        An SQLite file that keeps every answer; made when there is none. Without one the latest 1000 answers are known.

    Notes
    -----
    An update holds a lock from reading the file to the end. The file is replaced whole, with the answer in it, before the history
    gets the answer; a process that is killed in between leaves one answer that the next one copies. A batch that was
    not answered before a kill has not happened: send it again.

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
        """Return the monitor as it is in the file now.

        Returns
        -------
        DriftMonitor
            What is done to it does not change the file.
        """
        return DriftMonitor.load(self.path)

    def update(
        self, batch: Any, name: str, *, path: str | None = None, explain: bool = False, known_as: str | None = None
    ) -> MonitorAnswer:
        """Test one batch, and keep the answer; a batch that came before under this name keeps the answer it got.

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
                return recall(known)
            answer = monitor.update(batch, name, path=path, explain=explain, known_as=known_as)
            if not answer.known:
                monitor.save(self.path)
                _catch_up(history, monitor)
            return answer

    def acknowledge(self, reference: Any = None) -> None:
        """Take the new state for granted, as :meth:`DriftMonitor.acknowledge` does.

        Parameters
        ----------
        reference : array or data frame, optional
            Rows of the new state.
        """
        self._change(lambda monitor: monitor.acknowledge(reference))

    def dismiss(self) -> None:
        """Go on after an alarm that was none, as :meth:`DriftMonitor.dismiss` does."""
        self._change(DriftMonitor.dismiss)

    def records(self) -> list[PlainDict]:
        """Return the records of all batches that are known, first the oldest.

        Returns
        -------
        list of dict
            With the fields of :meth:`MonitorAnswer.to_dict`.
        """
        with self._open() as (monitor, history):
            if history is None:
                return monitor.records_
            return [one for one in history.records() if "wealth" in one and one["key"].startswith(monitor.identity_)]

    def _change(self, change: Callable[[DriftMonitor], Any]) -> None:
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
                _check_newest(history, monitor)
                yield monitor, history


def _catch_up(history: History | None, monitor: DriftMonitor) -> None:
    """Add the answers to a history that it lacks: the last one after a kill, all that are known where it is new."""
    if history is None or not monitor.records_ or history.find(monitor.records_[-1]["key"]) is not None:
        return
    for record in monitor.records_:
        history.append(record)


def _check_newest(history: History | None, monitor: DriftMonitor) -> None:
    """Refuse a history that knows more batches than the file: they would not be tested, and count for nothing."""
    if history is None or not monitor.identity_:  # a file from before monitors had one
        return
    batches = history.last_number(monitor.identity_)
    if batches > monitor.number_:
        raise InputError(
            f"The history knows {batches} batches of this monitor, its file {monitor.number_}: the file was put back, copied or "
            "fitted anew. Bring the newer file back, or name a new history."
        )


# What a monitor says, in the text format that Prometheus scrapes.


# Name, what it is, kind.
METRICS = (
    ("cpmmd_alarm", "1 while there is an alarm that was neither acknowledged nor dismissed", "gauge"),
    ("cpmmd_wealth", "evidence against nothing having changed", "gauge"),
    ("cpmmd_wealth_limit", "wealth at which the alarm is raised, 1 / alpha", "gauge"),
    ("cpmmd_batches_total", "batches that were counted", "counter"),
    ("cpmmd_episode", "alarms that were acknowledged or dismissed", "gauge"),
    ("cpmmd_since_batch", "number of the estimated first changed batch, 0 without an alarm", "gauge"),
    ("cpmmd_last_pvalue", "p-value of the latest batch by itself", "gauge"),
    ("cpmmd_last_rows", "rows of the latest batch", "gauge"),
    ("cpmmd_last_batch_timestamp_seconds", "when the latest batch was tested", "gauge"),
)


def prometheus_text(monitor: DriftMonitor, name: str) -> str:
    """Return the metrics of a monitor, labelled with its name; those of a latest batch only where there is one."""
    values: dict[str, float] = {
        "cpmmd_alarm": int(monitor.alarm_),
        "cpmmd_wealth": monitor.wealth_,
        "cpmmd_wealth_limit": 1 / monitor.alpha,
        "cpmmd_batches_total": monitor.number_,
        "cpmmd_episode": monitor.episode_,
    }
    if monitor.records_:
        last = monitor.records_[-1]
        values |= {
            "cpmmd_since_batch": last["since_number"] if monitor.alarm_ else 0,
            "cpmmd_last_pvalue": last["pvalue"],
            "cpmmd_last_rows": last["rows"],
            "cpmmd_last_batch_timestamp_seconds": datetime.fromisoformat(last["time"]).timestamp(),
        }
    label = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(
        f'# HELP {metric} {words}\n# TYPE {metric} {kind}\n{metric}{{monitor="{label}"}} {values[metric]:.17g}\n'
        for metric, words, kind in METRICS
        if metric in values
    )
