"""CP-MMD one step after the other, in the paper's words: split, calibrate, select, test, and what is guaranteed.

Each step is the one that :class:`cpmmd.SplitTest` takes, with the same random numbers: the same seed ends in the same p-value.
``docs/theory/walk.md`` goes through section 3 of the paper with them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.pool import Pool, read_pool
from cpmmd.data.preparation import Preparation, PreparedPool
from cpmmd.data.splitting import Split, split_pool
from cpmmd.kernels.base import Kernel, TrainedFamily
from cpmmd.kernels.deep.families import Deep
from cpmmd.kernels.families import Bandwidth, Polynomial
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.procedures.outcome import Evidence, TestResult
from cpmmd.procedures.split import MAX_TRAIN_ROWS, SplitTest
from cpmmd.questions.options import TestOptions
from cpmmd.selection import search
from cpmmd.selection.certificates import Certificate, certify
from cpmmd.selection.criteria import ComplexityPenalized
from cpmmd.selection.values import Ascent, Calibration, Selection
from cpmmd.statistics.mmd import labelled_mmd2

FAR_GAIN = 1.5**0.5  # starting weights of variance 3/fan_in instead of Kaiming's 2/fan_in


@dataclass(frozen=True, eq=False)
class Halves:
    """D_tr, which chooses the kernel, and D_te, which is tested with it."""

    pool: Pool  #: the rows of both samples
    split: Split  #: which of them are in which half
    preparation: Preparation  #: encoding and scaling, fitted on D_tr
    train: PreparedPool  #: D_tr as kernels see it
    streams: tuple[np.random.Generator, ...]  #: random numbers of calibration, selection and permutations

    def stream(self, step: int) -> np.random.Generator:
        """Return the random numbers of a step, the same ones each time."""
        return copy.deepcopy(self.streams[step])


def split(x: Any, y: Any, *, train_fraction: float = 0.5, scale: str | None = None, rng: RNG = None) -> Halves:
    """Split both samples at random into a training half and a test half.

    >>> halves = split(np.zeros((20, 2)), np.ones((20, 2)), rng=0)
    >>> len(halves.split.train), len(halves.split.test)
    (20, 20)
    """
    validation.open_unit("train_fraction", train_fraction)
    pool = read_pool(x, y)
    split_stream, *streams = resolve_rng(rng)[1].spawn(4)
    halves, _ = split_pool(pool, train_fraction, split_stream, at_most=MAX_TRAIN_ROWS)
    preparation = Preparation.fit(pool, halves.train, scale=scale)
    train = PreparedPool(preparation.transform(pool, halves.train), halves.m_train, pool.row_shape)
    return Halves(pool, halves, preparation, train, tuple(streams))


def calibrate(
    halves: Halves,
    family: ScaleFamily | TrainedFamily,
    *,
    n_cal: int = 10,
    alpha: float = 0.05,
    calibration: str = "plain",
    ascent: Ascent | None = None,
) -> Calibration:
    """Return C1-hat and the null ratios that it is a quantile of (App. Calibration procedure)."""
    criterion = ComplexityPenalized(n_calibration=n_cal, calibration=calibration)
    selector = search.selector_for(family, ascent)
    return search.calibrate(selector, halves.train, criterion, alpha=validation.open_unit("alpha", alpha), rng=halves.stream(0))


def select(halves: Halves, family: ScaleFamily | TrainedFamily, c1: float, *, ascent: Ascent | None = None) -> Selection:
    """Return the kernel of the family that maximises J_CP on D_tr, and everything that was looked at on the way."""
    return search.selector_for(family, ascent).select(halves.train, ComplexityPenalized(c1=c1), halves.stream(1))


def J_CP(halves: Halves, kernel: Kernel, c1: float) -> float:  # noqa: N802 - the paper's symbol
    """Return the criterion of one kernel on D_tr: the unbiased squared MMD less ``C1 L(h) |D|_F / N`` (eq. criterion)."""
    mmd2 = float(labelled_mmd2(kernel.gram(halves.train.matrix), halves.train.labels[None])[0])
    return mmd2 - c1 * kernel.lipschitz * halves.train.data_norm


def test(halves: Halves, kernel: Kernel, *, alpha: float = 0.05, n_permutations: int = 999) -> TestResult:  # noqa: PT028
    """Return the exact permutation test of D_te with the kernel frozen."""
    plan = TestOptions(SplitTest(), alpha, n_permutations).plan()
    tested = plan.procedure.run_kernel(
        kernel,
        halves.preparation,
        halves.pool,
        plan.options,
        halves.stream(2),
        rows=halves.split.test,
        m=halves.split.m_test,
    )
    evidence = Evidence(halves.pool, np.sort(halves.split.test), np.sort(halves.split.train))
    return plan.procedure.conclude_kernel(
        halves.pool, plan.options, tested, kernel=kernel, preparation=halves.preparation, evidence=evidence
    )


test.__test__ = False  # type: ignore[attr-defined] # not a test of this package, whatever pytest thinks of its name


def power_bound(
    halves: Halves,
    family: ScaleFamily | TrainedFamily,
    selection: Selection,
    *,
    alpha: float = 0.05,
    n_permutations: int = 999,
    delta: float = 0.05,
) -> Certificate | None:
    """Return the lower bound of the population's MMD at the selected kernel and the power that it guarantees, where it does.

    None for a family without a bound of its complexity, such as Liu's mixture.
    """
    train = halves.train
    proxy_constant = family.proxy_constant(train.matrix.shape[1], train.size)
    if proxy_constant is None:
        return None
    m, n, split = halves.pool.m, halves.pool.n, halves.split
    return certify(
        mmd2=selection.mmd2,
        max_complexity=selection.max_complexity,
        proxy_constant=proxy_constant,
        proxy_proven=family.proxy_proven,
        calibrated_c1=selection.c1,
        bound=selection.kernel.bound,
        lipschitz=selection.kernel.base_lipschitz,
        train_sizes=(train.m, train.n),
        test_sizes=(m - split.m_train, n - (len(split.train) - split.m_train)),
        alpha=alpha,
        n_permutations=n_permutations,
        delta=delta,
    )


def _deep(**start: Any) -> SplitTest:
    return SplitTest(Deep(width=200, **start), ComplexityPenalized())


# The paper does not say how its networks start. "near": features start close together, as on its real data and in its
# calibration tables; "far": as in its Gaussian power tables, where the starting kernel is almost the identity.
REGIMES: Mapping[str, Callable[[], SplitTest]] = {
    "linear": lambda: SplitTest(Bandwidth(), ComplexityPenalized()),
    "polynomial": lambda: SplitTest(Polynomial(degree=4), ComplexityPenalized()),
    "deep": lambda: _deep(),
    "deep, near": lambda: _deep(init="kaiming"),
    "deep, far": lambda: _deep(init="kaiming", gain=FAR_GAIN),
}


def regime(name: str, *, start: str | None = None) -> SplitTest:
    """Return the test of a regime of the paper: ``"linear"``, ``"polynomial"`` or ``"deep"``.

    Parameters
    ----------
    name : str
        The class of maps.
    start : str, optional
        Of ``"deep"``: ``"near"`` or ``"far"``, the two starts at which the paper's tables reproduce; None is torch's own start,
        under which all criteria are strong.

    Returns
    -------
    SplitTest
        The method for :func:`cpmmd.two_sample_test`.

    Examples
    --------
    >>> from cpmmd import paper
    >>> paper.regime("deep", start="far").family.init
    'kaiming'
    """
    known = [*dict.fromkeys(key.split(", ")[0] for key in REGIMES)]
    validation.one_of("name", name, tuple(known))
    if start is not None:
        starts = tuple(key.split(", ")[1] for key in REGIMES if key.startswith(f"{name}, "))
        validation.one_of("start", start, starts or ("None",))
    return REGIMES[name if start is None else f"{name}, {start}"]()
