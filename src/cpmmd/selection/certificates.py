"""Certificates: the uniform concentration inequality, its lower bound on the MMD, and the power it guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpmmd.core import validation
from cpmmd.core.plain import PlainValue

POWER_CONSTANT = 16.0  # C of the power corollary
ASSUMPTIONS = (
    "the searched class is assumed fixed beforehand, although its largest complexity L* was computed on the training half",
    "the complexity of these rows is used in place of its expectation",
)
UNKNOWN_CONSTANT = "a constant of the class's complexity is not known, and biases break h(0) = 0"


@dataclass(frozen=True)
class LowerBound:
    """One reading of the certificate, with one complexity constant."""

    constant: float  #: the factor of the complexity
    gap: float  #: B_N(delta): how much less than the squared MMD of the training half the population's may be
    lower_bound: float  #: that squared MMD less the gap
    power_certified: bool  #: whether the lower bound reaches the threshold


@dataclass(frozen=True)
class Certificate(PlainValue):
    """A lower bound of the population's MMD at the chosen kernel, and the power that it guarantees."""

    #: c1, c2: constants of the uniform concentration inequality, C_1 as derived from what one swap of rows can do
    c1: float
    c2: float
    rho: float  #: rho* = max(N/m, N/n) of the training half, 2 when m = n
    delta: float  #: confidence parameter: the bound holds with probability 1 - delta
    complexity: float  #: ``L* |D|_F / N`` over the kernels that were evaluated
    concentration: float  #: C_2 sqrt(ln(2/delta) / N), the part of the gap that no choice of kernels changes
    threshold: float  #: 16 nu sqrt((ln(2/alpha) + ln(2/delta)) / N_held_out): what a lower bound must reach
    guaranteed_power: float  #: 1 - delta - delta' - 1/(B+1), given when the threshold is met
    #: with the derived constant ``c1`` (and c_H): proven under ``assumptions``; None where c_H is not known, as for networks
    worst_case: LowerBound | None
    #: with the constant that the paper's theorem states: not proven, for some swaps change the squared MMD four times as much
    stated: LowerBound
    #: with C1-hat, the paper's deployed reading, not a theorem; None where nothing was calibrated
    calibrated: LowerBound | None

    document = (
        *("c1", "c2", "rho", "delta", "complexity", "concentration", "threshold", "guaranteed_power"),
        *("worst_case", "stated", "calibrated", "assumptions", "vacuous", "statement"),
    )

    @property
    def vacuous(self) -> bool:
        """True when no proven constant bounds the population MMD away from zero."""
        return self.worst_case is None or self.worst_case.lower_bound <= 0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the lower bound assumes beyond independent rows."""
        return ASSUMPTIONS if self.worst_case is not None else (*ASSUMPTIONS, UNKNOWN_CONSTANT)

    @property
    def statement(self) -> str:
        """The certificate in a sentence."""
        rough = ""
        if self.calibrated is not None:
            rough = f"; with the calibrated constant, which is not a theorem, {self.calibrated.lower_bound:.3g}"
        if self.worst_case is None:
            return f"none: {UNKNOWN_CONSTANT}{rough}"
        if self.vacuous:
            return f"vacuous at this sample size: MMD^2 >= {self.worst_case.lower_bound:.3g}{rough}"
        power = f"no power is guaranteed (that requires MMD^2 >= {self.threshold:.3g})"
        if self.worst_case.power_certified:
            power = f"power of at least {self.guaranteed_power:.2f} is guaranteed"
        bound = f"MMD^2 >= {self.worst_case.lower_bound:.3g} with probability {1 - self.delta:.2f}"
        return f"{bound} if the searched class is assumed fixed beforehand; {power}{rough}"


def imbalance(m: int, n: int) -> float:
    """rho* = max(N/m, N/n), 2 when m = n."""
    return (m + n) / min(m, n)


def swap_seminorms(bound: float, lipschitz: float, m: int, n: int) -> tuple[float, float, float]:
    """Return (M_Lip, J_Lip, M) of the unbiased squared MMD: what one swap, and a swap after another, can change at most."""
    # A row of X is in 2 (m - 1) of the m (m - 1) terms within X and, twice counted, in 2 n of the m n terms across: moved by t,
    # it changes the squared MMD by 4 l t / m at most. Two rows of X share two of the terms within (the paper counts one), two
    # rows of different samples two of those across: 4 l t / (m (m - 1)) and 4 l t / (m n). Swaps that attain all three exist
    # (tests/test_certificates.py), so none can be smaller.
    rho, fewer = imbalance(m, n), min(m, n)
    return 4 * lipschitz * rho, 4 * lipschitz * rho**2 * fewer / (fewer - 1), 4 * bound * rho


def uci_constants(bound: float, lipschitz: float, m: int, n: int, *, reading: str = "derived") -> tuple[float, float]:
    """Return (C_1, C_2) of the two-sample UCI for a base kernel with 0 <= k <= ``bound``."""
    first, second, largest = swap_seminorms(bound, lipschitz, m, n)
    if validation.one_of("reading", reading, ("derived", "stated")) == "stated":
        rho = imbalance(m, n)
        first, second = lipschitz * rho, 2 * lipschitz * rho**2
    return math.sqrt(2 * math.pi) * (2 * first + second), largest


def uci_bound(c1: float, complexity: float, c2: float, size: int, delta: float) -> float:
    """B_N(delta) = C_1 G + C_2 sqrt(ln(2/delta) / N)."""
    return c1 * complexity + c2 * math.sqrt(math.log(2 / delta) / size)


def power_threshold(bound: float, alpha: float, delta: float, held_out: int) -> float:
    """C nu sqrt((ln(2/alpha) + ln(2/delta)) / N_ho): what the lower bound must reach for guaranteed power."""
    return POWER_CONSTANT * bound * math.sqrt((math.log(2 / alpha) + math.log(2 / delta)) / held_out)


def finite_grid_gap(n_kernels: int, m: int, n: int, *, bound: float = 1.0, delta: float = 0.05) -> float:
    """Return by how much MMD2 can fall short of the best of ``n_kernels``: 2 C_2 sqrt(ln(2B/delta) / N), the finite-grid rate."""
    validation.whole("n_kernels", n_kernels, at_least=1)
    c2 = 4 * bound * imbalance(m, n)
    return 2 * c2 * math.sqrt(math.log(2 * n_kernels / validation.open_unit("delta", delta)) / (m + n))


def certify(
    *,
    mmd2: float,
    max_complexity: float,
    proxy_constant: float,
    proxy_proven: bool,
    calibrated_c1: float | None,
    bound: float,
    lipschitz: float,
    train_sizes: tuple[int, int],
    test_sizes: tuple[int, int],
    alpha: float,
    n_permutations: int,
    delta: float = 0.05,
) -> Certificate:
    """Return the certificate of a kernel selected on one half and tested on the other."""
    c1, c2 = uci_constants(bound, lipschitz, *train_sizes)
    stated, _ = uci_constants(bound, lipschitz, *train_sizes, reading="stated")
    size, held_out = sum(train_sizes), sum(test_sizes)
    threshold = power_threshold(bound, alpha, delta, held_out)
    if test_sizes[0] != test_sizes[1]:  # the unbalanced lemma loses at most sqrt(rho*)
        threshold *= math.sqrt(imbalance(*test_sizes))

    def reading(constant: float) -> LowerBound:
        gap = uci_bound(constant, max_complexity, c2, size, delta)
        return LowerBound(float(constant), float(gap), float(mmd2 - gap), bool(mmd2 - gap >= threshold))

    return Certificate(
        c1=c1,
        c2=c2,
        rho=imbalance(*train_sizes),
        delta=delta,
        complexity=max_complexity,
        concentration=uci_bound(0.0, 0.0, c2, size, delta),
        threshold=threshold,
        guaranteed_power=1 - 2 * delta - 1 / (n_permutations + 1),
        worst_case=reading(c1 * proxy_constant) if proxy_proven else None,
        stated=reading(stated * proxy_constant),
        calibrated=None if calibrated_c1 is None else reading(calibrated_c1),
    )
