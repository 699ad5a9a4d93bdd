"""Certificates: the uniform concentration inequality, its lower bound on the MMD, and the power it guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpmmd.core import validation
from cpmmd.core.plain import PlainDict

POWER_CONSTANT = 16.0  # C of the power corollary
ASSUMPTIONS = (
    "the searched class counts as fixed beforehand: its largest complexity L* was read off the training half",
    "the complexity of these rows stands for its expectation",
)
UNKNOWN_CONSTANT = "a constant of the class's complexity is not known, and biases break h(0) = 0"


@dataclass(frozen=True)
class LowerBound:
    """One reading of the certificate, with one complexity constant.

    Attributes
    ----------
    constant : float
        The factor of the complexity.
    gap : float
        B_N(delta): how much less than the squared MMD of the training half the population's may be.
    lower_bound : float
        That squared MMD less the gap.
    power_certified : bool
        Whether the lower bound reaches the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> result = two_sample_test(x, y, method="cp-linear", rng=0)
    >>> result.certificate.worst_case.power_certified
    False
    """

    constant: float
    gap: float
    lower_bound: float
    power_certified: bool


@dataclass(frozen=True)
class Certificate:
    """A lower bound of the population's MMD at the chosen kernel, and the power that it guarantees.

    Attributes
    ----------
    c1, c2 : float
        Constants of the uniform concentration inequality from (nu, l, m, n); C_1 as derived from what one swap of rows can do.
    rho : float
        rho* = max(N/m, N/n) of the training half, 2 when m = n.
    delta : float
        Confidence parameter: the bound holds with probability 1 - delta.
    complexity : float
        ``L* |D|_F / N`` over the evaluated path.
    concentration : float
        C_2 sqrt(ln(2/delta) / N), the part of the gap that no choice of kernels changes.
    threshold : float
        16 nu sqrt((ln(2/alpha) + ln(2/delta)) / N_held_out): what a lower bound must reach.
    guaranteed_power : float
        1 - delta - delta' - 1/(B+1), given when the threshold is met.
    worst_case : LowerBound or None
        The bound with the derived constant ``c1`` (and c_H): proven under ``assumptions``. None where c_H is not known, as for
        networks.
    stated : LowerBound
        The bound with the constant that the paper's theorem states, 2.7 times smaller for m = n. It needs a swap to change the
        squared MMD a quarter as much as some swaps do, so it is not proven.
    calibrated : LowerBound or None
        The bound with C1-hat, the paper's deployed reading, not a theorem. None where nothing was calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> certificate = two_sample_test(x, y, method="cp-linear", rng=0).certificate
    >>> certificate.rho
    2.0
    >>> print(certificate.vacuous)
    True
    """

    c1: float
    c2: float
    rho: float
    delta: float
    complexity: float
    concentration: float
    threshold: float
    guaranteed_power: float
    worst_case: LowerBound | None
    stated: LowerBound
    calibrated: LowerBound | None

    @property
    def vacuous(self) -> bool:
        """True when no proven constant bounds the population MMD away from zero."""
        return self.worst_case is None or self.worst_case.lower_bound <= 0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the lower bound takes for granted beyond independent rows."""
        return ASSUMPTIONS if self.worst_case is not None else (*ASSUMPTIONS, UNKNOWN_CONSTANT)

    @property
    def statement(self) -> str:
        """The certificate in a sentence."""
        rough = ""
        if self.calibrated is not None:
            rough = f"; with the calibrated constant, no theorem, {self.calibrated.lower_bound:.3g}"
        if self.worst_case is None:
            return f"none: {UNKNOWN_CONSTANT}{rough}"
        if self.vacuous:
            return f"vacuous at this sample size: MMD^2 >= {self.worst_case.lower_bound:.3g}{rough}"
        power = (
            f"power of at least {self.guaranteed_power:.2f} is guaranteed"
            if self.worst_case.power_certified
            else f"no power is guaranteed (that takes {self.threshold:.3g})"
        )
        bound = f"MMD^2 >= {self.worst_case.lower_bound:.3g} with probability {1 - self.delta:.2f}"
        return f"{bound} if the searched class is taken as fixed beforehand; {power}{rough}"

    def to_dict(self) -> PlainDict:
        """Return the certificate in plain JSON types."""
        readings = {"worst_case": self.worst_case, "stated": self.stated, "calibrated": self.calibrated}
        return {
            **{k: v for k, v in vars(self).items() if k not in readings},
            **{k: None if v is None else dict(vars(v)) for k, v in readings.items()},
            "assumptions": list(self.assumptions),
            "vacuous": self.vacuous,
            "statement": self.statement,
        }


def imbalance(m: int, n: int) -> float:
    """rho* = max(N/m, N/n), 2 when m = n."""
    return (m + n) / min(m, n)


def swap_seminorms(bound: float, lipschitz: float, m: int, n: int) -> tuple[float, float, float]:
    """Return (M_Lip, J_Lip, M) of the unbiased squared MMD: what one swap, and a swap after another, can change at most.

    Parameters
    ----------
    bound, lipschitz : float
        nu and l of the base kernel.
    m, n : int
        Sizes of the samples, at least 2.

    Returns
    -------
    tuple of float
        N times the change by one moved row, per unit of distance; N^2 times the change of that change by another row; N times
        the change by one row, wherever it goes.

    Notes
    -----
    A row of X is in 2 (m - 1) of the m (m - 1) terms within X and, twice counted, in 2 n of the m n terms across: moved by t, it
    changes the squared MMD by 4 l t / m at most. Two rows of X share two of the terms within (the paper counts one), two
    rows of different samples two of those across: 4 l t / (m (m - 1)) and 4 l t / (m n). Swaps that attain all three exist
    (``tests/test_certificates.py``), so none can be smaller.

    Examples
    --------
    >>> [round(value, 2) for value in swap_seminorms(1.0, 1.0, 100, 100)]
    [8.0, 16.16, 8.0]
    """
    rho, fewer = imbalance(m, n), min(m, n)
    return 4 * lipschitz * rho, 4 * lipschitz * rho**2 * fewer / (fewer - 1), 4 * bound * rho


def uci_constants(bound: float, lipschitz: float, m: int, n: int, *, reading: str = "derived") -> tuple[float, float]:
    """Return (C_1, C_2) of the two-sample UCI for a base kernel with 0 <= k <= ``bound``.

    Parameters
    ----------
    bound, lipschitz : float
        nu and l of the base kernel.
    m, n : int
        Sizes of the samples, at least 2.
    reading : str
        ``"derived"``: sqrt(2 pi) (2 M_Lip + J_Lip) with the largest changes by swaps (:func:`swap_seminorms`), which is what
        the inequality of Maurer and Pontil (2019) for functions of independent rows gives. ``"stated"``: 2 sqrt(2 pi) l rho
        (1 + rho), the constant of the paper's theorem, which takes M_Lip = l rho and J_Lip = 2 l rho^2.

    Returns
    -------
    tuple of float
        C_1 and C_2.

    Examples
    --------
    >>> [round(c, 2) for c in uci_constants(1.0, 1.0, 10**6, 10**6)]
    [80.21, 8.0]
    >>> [round(c, 2) for c in uci_constants(1.0, 1.0, 10**6, 10**6, reading="stated")]
    [30.08, 8.0]
    """
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
    """Return how much MMD2 the best of ``n_kernels`` can be missed by: 2 C_2 sqrt(ln(2B/delta) / N).

    The rate of the proposition on finite kernel grids (MMDAgg's setting).

    Examples
    --------
    >>> round(finite_grid_gap(10, 500, 500), 3)
    1.238
    """
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
    """Return the certificate of a kernel selected on one half and tested on the other.

    Parameters
    ----------
    mmd2
        Squared MMD of the selected kernel on the training half.
    max_complexity
        L* |D|_F / N over everything the selector looked at.
    proxy_constant
        c_H, which only the readings without calibration need: calibration absorbs it.
    proxy_proven
        Whether c_H is known in full; without it there is no worst case.
    """
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
