"""Whether a run gives again what is committed: repetition by repetition, times excepted.

All of them must be the same to rounding, trained networks by the one arithmetic of ``experiments.arithmetic``. Who runs where it
is not to be had, on no x86-64 processor say, may say so (``other_processor``): repetitions of trained networks may then differ,
but not to one side. Of the values that differ, as many must be higher as lower, by a sign test for each kind of value of an id.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from cpmmd.studies.study import Repetition
from experiments.base import Experiment
from experiments.registry import MODULES, find

ROUNDING = 1e-6  # relative
ONE_SIDED = 1e-3  # p of the sign test from which on differences lean to one side
Pair = tuple[Repetition, Repetition]  # (run again, committed)


def verify(name: str | None, *, fresh: Path, kept: Path, other_processor: bool = False) -> int:
    """Print, for one id or all, how many repetitions of ``fresh`` are those of ``kept``; give 1 if one differs that may not."""
    bad = compared = 0
    for one in [name] if name is not None else MODULES:
        experiment = find(one)
        pairs = _pairs(experiment, fresh, kept)
        if experiment.timed or not pairs:
            print(f"{one}: {'measures times' if pairs else 'nothing to compare'}")
            continue
        other = [pair for pair in pairs if not _same(pair[0].values, pair[1].values)]
        print(f"{one}: {len(pairs) - len(other)} of {len(pairs)} repetitions are the same")
        bad += _judge(experiment, other, other_processor)
        compared += len(pairs)
    return 1 if bad or not compared else 0


def _judge(experiment: Experiment, other: list[Pair], other_processor: bool) -> int:
    """Print what differs; return how much of it may not."""
    trained = [pair for pair in other if experiment.trains(pair[0].cell)]
    wrong = [pair[0] for pair in other if not (other_processor and experiment.trains(pair[0].cell))]
    for each in wrong[:3]:
        print(f"  differs: {each.cell}, repetition {each.repetition}")
    leaning = []
    if trained:
        signs = {value: _signs(trained, value) for value in _scalars(trained)}
        told = ", ".join(f"{value} {up} higher {down} lower" for value, (up, down) in signs.items())
        print(f"  {len(trained)} of trained networks differ, as they may on another kind of processor: {told}")
        leaning = [value for value, (up, down) in signs.items() if up + down and binomtest(up, up + down).pvalue < ONE_SIDED]
        for value in leaning:
            print(f"  differs: {value} leans to one side, which no processor does")
    return len(wrong) + len(leaning)


def _scalars(pairs: list[Pair]) -> Iterator[str]:
    new, old = pairs[0]
    return (name for name in new.values if np.ndim(new.values[name]) == 0 and name in old.values)


def _signs(pairs: list[Pair], name: str) -> tuple[int, int]:
    """Return in how many pairs a value is higher in the new run, and in how many lower."""
    change = np.array([_floats(new.values.get(name)) - _floats(old.values.get(name)) for new, old in pairs])
    return int((change > 0).sum()), int((change < 0).sum())


def _pairs(experiment: Experiment, fresh: Path, kept: Path) -> list[Pair]:
    new, old = experiment.read(fresh), experiment.read(kept)
    if new is None or old is None:
        return []
    known = {one.key: one for one in old.repetitions}
    return [(one, known[one.key]) for one in new.repetitions if one.key in known]


def _same(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return new.keys() == old.keys() and all(_equal(new[name], old[name]) for name in new)


def _equal(new: Any, old: Any) -> bool:
    if new is None or old is None or isinstance(new, str):
        return bool(new == old)
    return np.shape(new) == np.shape(old) and bool(np.allclose(_floats(new), _floats(old), rtol=ROUNDING, atol=0, equal_nan=True))


def _floats(value: Any) -> Any:
    return np.asarray(value, dtype=np.float64)  # None in a list becomes nan
