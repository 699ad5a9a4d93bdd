"""What tests return: frozen values that print for a person and turn into JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.kernels.base import SelectedKernel
from cpmmd.samples import Array, Rows

if TYPE_CHECKING:
    from cpmmd.explain import Explanation


@dataclass(frozen=True, eq=False)
class Calibration:
    """C1-hat and the null ratios MMD2 / G it came from."""

    c1: float
    ratios: Array
    alpha: float
    order: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "c1": self.c1,
            "ratios": self.ratios.tolist(),
            "alpha": self.alpha,
            "order_statistic": self.order,
            "note": self.note,
        }


@dataclass(frozen=True, eq=False)
class Selection:
    """The kernel that maximised a criterion, and every kernel looked at on the way.

    Attributes
    ----------
    criterion, mmd2, variance, complexity
        Their values at the selected kernel; ``variance`` is None where the criterion does not need it.
    path
        Columns over the evaluated kernels, for plotting: ``sigma`` (or ``step``), ``criterion``, ``mmd2``, ``complexity``, ...
    max_complexity
        L* |D|_F / N, the largest complexity on the path.
    collapse
        Whether the ratio criterion's variance collapsed; None for other criteria and searches without training.
    """

    kernel: SelectedKernel
    criterion: float
    mmd2: float
    variance: float | None
    complexity: float
    path: Mapping[str, Array]
    max_complexity: float
    notes: tuple[str, ...] = ()
    collapse: Collapse | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "kernel": self.kernel.to_dict(),
            "criterion": self.criterion,
            "mmd2": self.mmd2,
            "variance": self.variance,
            "complexity": self.complexity,
            "max_complexity": self.max_complexity,
            "collapse": None if self.collapse is None else self.collapse.to_dict(),
            "path": {name: values.tolist() for name, values in self.path.items()},
        }


@dataclass(frozen=True)
class Collapse:
    """Variance collapse of the ratio criterion at the end of training (App. variance collapse).

    The three flags are MMD2 < 0.01, tau < 0.001 and sqrt(n) MMD2 / tau > 10: a large ratio at a kernel without signal.
    """

    mmd2: float
    variance: float
    size: float

    @property
    def tau(self) -> float:
        """Estimated standard deviation of sqrt(n) MMD2."""
        return math.sqrt(max(self.variance, 0.0))

    @property
    def ratio(self) -> float:
        """J = sqrt(n) MMD2 / tau."""
        return math.sqrt(self.size) * self.mmd2 / max(self.tau, 1e-12)

    @property
    def flagged(self) -> bool:
        """Whether all three flags are up."""
        return bool(self.mmd2 < 0.01 and self.tau < 0.001 and self.ratio > 10)

    @property
    def note(self) -> str:
        """The finding in a sentence."""
        return f"variance collapse: ratio {self.ratio:.0f} at MMD^2 {self.mmd2:.2g}, tau {self.tau:.2g}; no signal left"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"mmd2": float(self.mmd2), "tau": self.tau, "ratio": self.ratio, "collapsed": self.flagged}


@dataclass(frozen=True)
class LowerBound:
    """One reading of the certificate, with one complexity constant."""

    constant: float
    gap: float
    lower_bound: float
    power_certified: bool


@dataclass(frozen=True)
class Certificate:
    """UCI bound on the population MMD and the power it guarantees.

    Attributes
    ----------
    c1, c2
        Constants of the uniform concentration inequality from (nu, l, m, n).
    complexity
        L* |D|_F / N over the evaluated path.
    worst_case, calibrated
        The bound with the theorem's constant (and c_H), and with C1-hat; the latter is the paper's deployed reading, not a
        theorem. None where nothing was calibrated.
    threshold
        16 nu sqrt((ln(2/alpha) + ln(2/delta)) / N_held_out): what a lower bound must reach.
    guaranteed_power
        1 - delta - delta' - 1/(B+1), given when the threshold is met.
    """

    c1: float
    c2: float
    rho: float
    delta: float
    complexity: float
    concentration: float
    threshold: float
    guaranteed_power: float
    worst_case: LowerBound
    calibrated: LowerBound | None

    @property
    def vacuous(self) -> bool:
        """True when the theorem does not bound the population MMD away from zero."""
        return self.worst_case.lower_bound <= 0

    @property
    def statement(self) -> str:
        """The certificate in a sentence."""
        rough = ""
        if self.calibrated is not None:
            rough = f"; with the calibrated constant, no theorem, {self.calibrated.lower_bound:.3g}"
        if self.vacuous:
            return f"vacuous at this sample size: MMD^2 >= {self.worst_case.lower_bound:.3g}{rough}"
        power = (
            f"power of at least {self.guaranteed_power:.2f} is guaranteed"
            if self.worst_case.power_certified
            else f"no power is guaranteed (that takes {self.threshold:.3g})"
        )
        return f"MMD^2 >= {self.worst_case.lower_bound:.3g} with probability {1 - self.delta:.2f}; {power}{rough}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        readings = {"worst_case": self.worst_case, "calibrated": self.calibrated}
        return {
            **{k: v for k, v in vars(self).items() if k not in readings},
            **{k: None if v is None else dict(vars(v)) for k, v in readings.items()},
            "vacuous": self.vacuous,
            "statement": self.statement,
        }


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data behind a result, as the test held it: nothing is copied.

    Attributes
    ----------
    samples
        The pool of both samples (:class:`cpmmd.inputs.Samples`), rows of X first.
    tested
        Row numbers of the pool that the statistic saw; None for all.
    held_out
        Whether none of those rows had a part in choosing the kernel.
    """

    samples: Any
    tested: Rows | None = None
    held_out: bool = False


@dataclass(frozen=True, eq=False)
class TestResult:
    """The answer of a two-sample test.

    Attributes
    ----------
    pvalue
        Counts the observed labeling: never 0.
    reject
        Whether the samples differ at level alpha: ``pvalue <= alpha`` unless the method decides in its own way.
    null_distribution
        The statistic under the relabelings, the observed one not among them.
    exhaustive
        True when every possible relabeling was used instead of random ones.
    sizes
        Rows of X and Y that were compared, after any were dropped.
    tested_sizes
        Rows of X and Y that the statistic saw: the test half where the procedure splits.
    seed
        What reproduces the result as ``rng=``; None when a Generator was passed in.
    details
        What only this method has to say.
    decision
        Set by methods that do not decide by the p-value (MMDAgg).
    evidence
        The data, for explanations: kept in memory and in pickles, never printed or in ``to_dict``; drop it with
        ``dataclasses.replace(result, evidence=None)``.
    call
        The Python call that gives this result again; empty where no single call does.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    method: str
    statistic: float
    pvalue: float
    alpha: float
    null_distribution: Array
    exhaustive: bool
    sizes: tuple[int, int]
    tested_sizes: tuple[int, int]
    width: int
    kernel: SelectedKernel | None = None
    selection: Selection | None = None
    calibration: Calibration | None = None
    certificate: Certificate | None = None
    preparation: Any = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    decision: bool | None = None
    evidence: Evidence | None = field(default=None, repr=False, compare=False)
    call: str = field(default="", repr=False)

    @property
    def reject(self) -> bool:
        """Whether the samples differ at level alpha."""
        return bool(self.pvalue <= self.alpha) if self.decision is None else self.decision

    @property
    def n_permutations(self) -> int:
        """Number of relabelings in the null distribution."""
        return len(self.null_distribution)

    def explain(self, *, max_rows: int = 2000, n_feature_permutations: int = 5, top: int = 5, rng: Any = 0) -> Explanation:
        """Say where the samples differ: rows, columns, an effect size; see :func:`cpmmd.explain.explain`."""
        from cpmmd.explain import explain

        return explain(self, max_rows=max_rows, n_feature_permutations=n_feature_permutations, top=top, rng=rng)

    def to_dict(self, *, null_distribution: bool = False) -> dict[str, Any]:
        """Give the result in plain JSON types; the null distribution only when asked for."""
        answer: dict[str, Any] = {
            "method": self.method,
            "reject": self.reject,
            "pvalue": self.pvalue,
            "alpha": self.alpha,
            "statistic": self.statistic,
            "n_permutations": self.n_permutations,
            "exhaustive": self.exhaustive,
            "sizes": list(self.sizes),
            "tested_sizes": list(self.tested_sizes),
            "width": self.width,
            "seed": self.seed,
            "notes": list(self.notes),
            "details": dict(self.details),
        }
        for name in ("kernel", "selection", "calibration", "certificate"):
            part = getattr(self, name)
            answer[name] = None if part is None else part.to_dict()
        if null_distribution:
            answer["null_distribution"] = self.null_distribution
        clean: dict[str, Any] = json_clean(answer)
        return clean

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rows: bool = True,
        command: str | None = None,
        title: str | None = None,
        explanation: Explanation | None = None,
    ) -> str:
        """Give a report for a colleague, and write it when a path is given.

        Parameters
        ----------
        path
            Ends in .html (one file that needs nothing else), .md or .json; None only gives the HTML text.
        rows
            Whether the values of the rows that speak most for the difference may appear.
        command
            The shell command that gave the result, for the reader who wants to repeat it.
        title
            What was compared.
        explanation
            What :meth:`explain` gave; computed when None.

        Examples
        --------
        >>> import numpy as np
        >>> from cpmmd import two_sample_test
        >>> data = np.random.default_rng(0)
        >>> result = two_sample_test(data.normal(size=(30, 2)), data.normal(2, 1, size=(30, 2)), rng=0)
        >>> result.report(title="Before and after").startswith("<!doctype html>")
        True
        """
        from cpmmd.report import report

        return report(self, path, rows=rows, command=command, title=title, explanation=explanation)

    def __str__(self) -> str:
        verdict = "The samples differ" if self.reject else "No difference found"
        sign = "<=" if self.pvalue <= self.alpha else ">"
        (m, n), (mt, nt) = self.sizes, self.tested_sizes
        tested = "" if (m, n) == (mt, nt) else f", {mt} v {nt} of them tested"
        every = "all " if self.exhaustive else ""
        lines = [
            f"{verdict} (p = {self.pvalue:.4g} {sign} {self.alpha:g}).",
            f"  method       {self.method}",
            f"  samples      {m} v {n} rows, {self.width} column{'s' * (self.width != 1)}{tested}",
            f"  statistic    {self.statistic:.5g}, against {every}{self.n_permutations} relabelings",
        ]
        if "selected" in self.details:
            lines.append(f"  class        {self.details['selected']['class']}")
        if self.kernel is not None:
            lines.append(f"  kernel       {self.kernel}")
        if self.calibration is not None:
            lines.append(f"  penalty      C1 = {self.calibration.c1:.4g} from {len(self.calibration.ratios)} null permutations")
        if self.certificate is not None:
            lines.append(f"  certificate  {self.certificate.statement}")
        lines += [f"  note         {note}" for note in self.notes]
        if self.seed is not None:
            lines.append(f"  repeat with  rng={self.seed}")
        return "\n".join(lines)


def json_clean(value: Any) -> Any:
    """Turn numpy values into plain ones, and what JSON cannot hold (nan, inf) into None."""
    if isinstance(value, Mapping):
        return {str(k): json_clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_clean(v) for v in value]
    if isinstance(value, np.ndarray):
        return json_clean(value.tolist())
    if isinstance(value, np.generic):
        return json_clean(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)
