"""Which batches differ, decided one by one: on-line control of the false discovery rate. No verdict is ever changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

CANDIDATE = 0.5  # p-values above it are surely null and pay for the next ones
DECAY = 1.6  # of the share of the budget that goes to the k-th batch that is no candidate, as the authors have it
ZETA = 2.2857656  # sum of k^-1.6 over k = 1, 2, ..., rounded up
KEPT = 200  # of those found: what older ones still pay is less than a thousandth, and forgetting it lowers levels


@dataclass(frozen=True)
class Saffron:
    """Levels for independent p-values that come one after the other, by SAFFRON (Ramdas et al. 2018).

    Attributes
    ----------
    fdr
        Share of false ones among those that are found, in expectation.
    seen, candidates
        P-values so far, and those of them that were at most ``CANDIDATE``.
    found
        For each of the latest that were found: how many had come by then, and how many of those were candidates.
    """

    fdr: float
    seen: int = 0
    candidates: int = 0
    found: tuple[tuple[int, int], ...] = ()

    @property
    def level(self) -> float:
        """Level of the next p-value."""
        budget = self.fdr / 2
        shares = [budget * _share(self.seen - self.candidates)]
        for order, (seen, candidates) in enumerate(self.found):
            earned = self.fdr - budget if order == 0 else self.fdr
            shares.append(earned * _share(self.seen - seen - (self.candidates - candidates)))
        return min(CANDIDATE, (1 - CANDIDATE) * math.fsum(shares))

    def decide(self, pvalue: float) -> tuple[bool, Self]:
        """Return whether the next p-value is found, and the state after it."""
        found, seen = pvalue <= self.level, self.seen + 1
        candidates = self.candidates + (pvalue <= CANDIDATE)
        known = (*self.found[-KEPT + 1 :], (seen, candidates)) if found else self.found
        return found, replace(self, seen=seen, candidates=candidates, found=known)


def _share(quiet: int) -> float:
    """Return the share of a budget for the next p-value, after ``quiet`` that were no candidates."""
    return float((quiet + 1) ** -DECAY / ZETA)
