"""The parts of an outcome that some tests have: classes, collections of kernels, several splits; and the data behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.data.pool import Pool
from cpmmd.permutation.units import Units


@dataclass(frozen=True, eq=False)
class ClassPath:
    """One class of a full-sample test: the evidence of each of its members on the labels as they came, and its complexity.

    Attributes
    ----------
    name, label : str
        The class, and in few words.
    coordinates : str
        What its kernels see: ``"raw coordinates"``, ``"standardised coordinates"``, or empty for a fixed kernel.
    bandwidths, gammas : array
        Of the members, widest bandwidth first; gamma is the spectral parameter, infinite for the squared MMD itself. Empty for a
        fixed kernel.
    mmd2, scores : array
        Squared MMD of each member, directions divided by their spectrum where gamma is finite, and its upper-tail score -log p.
    penalty : float
        The complexity of the class, the logarithm of its weight taken off.
    selected : int or None
        Position of the member that is the result's kernel: the simplest one that shows the difference alone, where one does.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2)), rng=0)
    >>> [one.label for one in result.classes][:2]
    ['gaussian on raw', 'spectral gaussian on raw']
    >>> result.statistic == max(one.criterion for one in result.classes)
    True
    >>> result.selected_class in result.classes
    True
    """

    name: str
    label: str
    coordinates: str
    bandwidths: Array
    gammas: Array
    mmd2: Array
    scores: Array
    penalty: float
    selected: int | None = None

    @property
    def best(self) -> int:
        """Position of the member with the highest score."""
        return int(np.argmax(self.scores))

    @property
    def best_bandwidth(self) -> float | None:
        """Bandwidth of that member; None for a fixed kernel."""
        return float(self.bandwidths[self.best]) if len(self.bandwidths) else None

    @property
    def best_gamma(self) -> float | None:
        """Spectral parameter of that member; None where it is the squared MMD itself."""
        gamma = float(self.gammas[self.best]) if len(self.gammas) else np.inf
        return gamma if np.isfinite(gamma) else None

    @property
    def evidence(self) -> float:
        """The highest score."""
        return float(self.scores[self.best])

    @property
    def criterion(self) -> float:
        """Evidence less penalty: what the classes compete by."""
        return self.evidence - self.penalty

    def to_dict(self) -> PlainDict:
        """Return the class in plain JSON types; no spectral parameter is None."""
        gammas = [float(gamma) if np.isfinite(gamma) else None for gamma in self.gammas]
        return plain_dict({**vars(self), "gammas": gammas})


@dataclass(frozen=True)
class SingleTest:
    """One kernel of a collection, tested on its own.

    Attributes
    ----------
    kernel : str
        Its name.
    bandwidth, mmd2, pvalue : float
        Its bandwidth, squared MMD and p-value.
    weight : float
        Its share in the collection.
    rejected : bool or None
        Whether it rejects at its corrected level, where the method has one.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import MMDAgg, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(50, 2))
    >>> result = two_sample_test(x, y, method=MMDAgg(n_bandwidths=2, b1=200, b2=200), rng=0)
    >>> sorted({single.kernel for single in result.collection.tests})
    ['gaussian', 'laplacian_l1']
    """

    kernel: str
    bandwidth: float
    mmd2: float
    pvalue: float
    weight: float
    rejected: bool | None = None


@dataclass(frozen=True)
class Collection:
    """The single tests behind a method that uses many kernels at once.

    Attributes
    ----------
    tests : tuple of SingleTest
        One for each kernel.
    resampling : str
        ``"permutations"``, or ``"wild bootstrap"`` (signs of pairs).
    level_correction : float or None
        MMDAgg's factor u on the levels of the single tests.
    sharpness : float or None
        MMD-FUSE's lambda.
    decision : bool or None
        MMDAgg's own decision, whether some single test rejects at its corrected level; results decide by the p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> len(two_sample_test(x, y, method="mmdfuse", rng=0).collection.tests)
    20
    """

    tests: tuple[SingleTest, ...]
    resampling: str
    level_correction: float | None = None
    sharpness: float | None = None
    decision: bool | None = None

    def to_dict(self) -> PlainDict:
        """Return the collection in plain JSON types."""
        return plain_dict({**vars(self), "tests": [vars(test) for test in self.tests]})


@dataclass(frozen=True)
class Splits:
    """The p-values of several splits, and the rule that combined them.

    Attributes
    ----------
    pvalues : tuple of float
        One for each split.
    rule : str
        ``"median"``, ``"mean"`` or ``"geometric"``, as in :class:`SplitTest`.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> splits = two_sample_test(x, y, method=SplitTest(n_splits=3), rng=0).splits
    >>> len(splits.pvalues), splits.rule
    (3, 'median')
    """

    pvalues: tuple[float, ...]
    rule: str

    @property
    def smallest(self) -> float:
        """The smallest p-value."""
        return min(self.pvalues)

    @property
    def largest(self) -> float:
        """The largest p-value."""
        return max(self.pvalues)

    def to_dict(self) -> PlainDict:
        """Return the p-values and their rule in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data behind a result, as the test held it: nothing is copied.

    Attributes
    ----------
    pool : Pool
        The rows of both samples, those of X first.
    tested : array or None
        Row numbers of the pool that the statistic saw, ascending; None for all.
    trained : array or None
        Those that chose the kernel and were not tested, ascending; None where there are none.
    units : Units or None
        What was relabelled, and how: None where the method drew signs of pairs instead.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> evidence = two_sample_test(x, y, method="cp-linear", rng=0).evidence
    >>> len(evidence.tested), evidence.held_out
    (40, True)
    """

    pool: Pool
    tested: Rows | None = None
    trained: Rows | None = None
    units: Units | None = None

    @property
    def held_out(self) -> bool:
        """Whether none of the tested rows had a part in choosing the kernel."""
        return self.trained is not None

    @property
    def tested_rows(self) -> Rows:
        """Row numbers of the pool that the statistic saw."""
        return np.arange(self.pool.m + self.pool.n) if self.tested is None else self.tested
