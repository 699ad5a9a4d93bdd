"""The steps of the paper, one after the other, end where the split test ends."""

import numpy as np
import pytest

from cpmmd import Ascent, Bandwidth, ComplexityPenalized, Deep, Polynomial, SplitTest, paper, two_sample_test
from cpmmd.errors import CpmmdError
from helpers import two_scale_mixture


@pytest.mark.parametrize("family", [Bandwidth(), Polynomial(degree=2)], ids=str)
@pytest.mark.parametrize("n_y", [40, 60])
def test_the_steps_end_where_the_split_test_ends(family, n_y):
    x, y = two_scale_mixture(np.random.default_rng(0), 60, 0.2, n_y)
    whole = two_sample_test(x, y, method=SplitTest(family), n_permutations=199, rng=3)
    halves = paper.split(x, y, rng=3)
    calibration = paper.calibrate(halves, family)
    selection = paper.select(halves, family, calibration.c1)
    result = paper.test(halves, selection.kernel, n_permutations=199)
    assert calibration.c1 == whole.calibration.c1
    assert selection.criterion == whole.selection.criterion
    assert (result.pvalue, result.statistic) == (whole.pvalue, whole.statistic)
    np.testing.assert_array_equal(result.null_distribution, whole.null_distribution)
    assert paper.power_bound(halves, family, selection, n_permutations=199) == whole.certificate
    assert paper.J_CP(halves, selection.kernel, calibration.c1) == pytest.approx(selection.criterion, rel=1e-10)
    assert paper.test(halves, selection.kernel, n_permutations=199).pvalue == result.pvalue  # a step can be taken again


def test_a_network_takes_the_same_steps():
    pytest.importorskip("torch")
    x, y = two_scale_mixture(np.random.default_rng(0), 30, 0.2)
    family, ascent = Deep(width=8), Ascent(steps=3)
    whole = two_sample_test(x, y, method=SplitTest(family, ascent=ascent), n_permutations=99, rng=3)
    halves = paper.split(x, y, rng=3)
    c1 = paper.calibrate(halves, family, ascent=ascent).c1
    selection = paper.select(halves, family, c1, ascent=ascent)
    assert (c1, selection.criterion) == (whole.calibration.c1, whole.selection.criterion)
    assert paper.test(halves, selection.kernel, n_permutations=99).pvalue == whole.pvalue


def test_regimes_are_the_papers():
    assert paper.regime("linear") == SplitTest(Bandwidth(), ComplexityPenalized())
    assert paper.regime("polynomial").family.degree == 4
    assert paper.regime("deep", start="near").family == Deep(width=200, init="kaiming")
    assert paper.regime("deep", start="far").family.gain ** 2 * 2 == pytest.approx(3)
    with pytest.raises(CpmmdError, match="linear"):
        paper.regime("liu")
    with pytest.raises(CpmmdError, match="near"):
        paper.regime("deep", start="torch")
    with pytest.raises(CpmmdError, match="None"):
        paper.regime("linear", start="near")
