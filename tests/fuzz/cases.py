"""What every kind of case shares: random numbers from its number, and faults that say which case they are."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np


class FaultError(AssertionError):
    """An answer that must not be, or none where there must be one."""


@dataclass(frozen=True)
class Found:
    """A case and what is wrong with it."""

    kind: str
    case: int
    what: str

    def __str__(self) -> str:
        return f"python -m tests.fuzz {self.kind} {self.case}: {self.what}"


def random_of(kind: int, case: int) -> np.random.Generator:
    """Return the random numbers of one case."""
    return np.random.default_rng([kind, case])


def pick(rng: np.random.Generator, choices):
    """Return one of some things of any kind."""
    return choices[int(rng.integers(len(choices)))]


def faults_of(kind: str, check: Callable[[int], object], cases: Iterable[int]) -> list[Found]:
    """Run cases and return the faults among them."""
    found = []
    for case in cases:
        try:
            check(case)
        except FaultError as fault:
            found.append(Found(kind, case, str(fault)))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # whatever is no CpmmdError is a fault, a panic of polars included
            last = traceback.extract_tb(error.__traceback__)[-1]
            found.append(Found(kind, case, f"{type(error).__name__}: {error} at {last.filename}:{last.lineno}"[:400]))
    return found
