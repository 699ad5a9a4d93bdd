"""Whether a run gives again what is committed: repetition by repetition, times excepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cpmmd import Repetition
from experiments.base import Experiment
from experiments.registry import MODULES, find

ROUNDING = 1e-6  # relative; trained networks differ more between kinds of processors


def verify(name: str | None, *, fresh: Path, kept: Path) -> int:
    """Print, for one id or all, how many repetitions of ``fresh`` are those of ``kept``; give 1 where one is not, or none is."""
    bad = compared = 0
    for one in [name] if name is not None else MODULES:
        experiment = find(one)
        pairs = _pairs(experiment, fresh, kept)
        if experiment.timed or not pairs:
            print(f"{one}: {'measures times' if pairs else 'nothing to compare'}")
            continue
        other = [new for new, old in pairs if not _same(new.values, old.values)]
        bad += len(other)
        compared += len(pairs)
        print(f"{one}: {len(pairs) - len(other)} of {len(pairs)} repetitions are the same")
        for each in other[:3]:
            print(f"  differs: {each.cell}, repetition {each.repetition}")
    return 1 if bad or not compared else 0


def _pairs(experiment: Experiment, fresh: Path, kept: Path) -> list[tuple[Repetition, Repetition]]:
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
