"""Answers as flat numbers with stable names, for trackers of experiments and dashboards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np


class Measured:
    """An answer whose numbers have names that stay the same from run to run."""

    @abstractmethod
    def _measures(self) -> Mapping[str, float | None]:
        """Return the numbers by name; None where the answer has none."""

    def to_metrics(self, *, prefix: str = "cpmmd_") -> dict[str, float]:
        """Return the numbers of the answer by name, as MLflow's ``log_metrics`` and ``wandb.log`` take them.

        Parameters
        ----------
        prefix : str
            What every name begins with, such as ``"drift/prices/"``.

        Returns
        -------
        dict of str to float
            Verdicts are 0 and 1. A number that the answer does not have, or that is not finite, is left out.
        """
        found = {name: float(value) for name, value in self._measures().items() if value is not None}
        return {prefix + name: value for name, value in found.items() if np.isfinite(value)}
