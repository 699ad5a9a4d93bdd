"""A procedure is named by the call that makes it, without what is as it would be anyway."""

import numpy as np
import pytest

from cpmmd import Bandwidth, ComplexityPenalized, Deep, FullSampleTest, LinearMap, MMDAgg, SplitTest, two_sample_test
from cpmmd.core.text import call_text


@pytest.mark.parametrize(
    ("procedure", "text"),
    [
        (SplitTest(), "SplitTest()"),
        (SplitTest(Bandwidth()), "SplitTest()"),
        (SplitTest(LinearMap(diagonal=True), ComplexityPenalized(c1=0.1)), None),
        (FullSampleTest(landmarks=30), "FullSampleTest(landmarks=30)"),
        (MMDAgg(bandwidths=(1.0, 2.0), scale="standard"), "MMDAgg(bandwidths=(1.0, 2.0), scale='standard')"),
    ],
)
def test_what_is_told_makes_the_same_again(procedure, text):
    told = call_text(procedure)
    assert text is None or told == text
    names = {one.__name__: one for one in (SplitTest, Bandwidth, LinearMap, ComplexityPenalized, FullSampleTest, MMDAgg)}
    assert eval(told, names) == procedure


def test_a_result_names_a_network_on_one_line():
    nn = pytest.importorskip("torch").nn
    x = np.random.default_rng(0).normal(size=(40, 3))
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    result = two_sample_test(x[:20], x[20:], method=SplitTest(Deep(module=network), ComplexityPenalized(c1=0.1)), rng=0)
    assert result.method == "SplitTest(family=Deep(module=Sequential(...)), criterion=ComplexityPenalized(c1=0.1))"
