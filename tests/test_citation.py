"""cite() knows every method, kernel, criterion and data set."""

import re

import numpy as np
import pytest

import cpmmd
from cpmmd.citation import BY_NAME, BY_TYPE, cite, entries


def test_every_key_has_an_entry():
    keys = {key for keys in (*BY_TYPE.values(), *BY_NAME.values()) for key in keys}
    assert keys <= set(entries())
    for text in entries().values():
        assert text.count("{") == text.count("}")


@pytest.mark.parametrize("name", cpmmd.methods())
def test_every_method_can_be_cited(name):
    assert re.match(r"@\w+\{", cite(name))


def test_objects_and_results_cite_what_they_are_made_of():
    assert "liu2020learning" in cite(cpmmd.SplitTest(criterion=cpmmd.Ratio()))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2))
    assert "domingo2025cheap" in cite(cpmmd.two_sample_test(x, y, rng=0, n_permutations=99))
    split = cpmmd.two_sample_test(x[:40], y[:40], method=cpmmd.SplitTest(n_splits=3), rng=0, n_permutations=99)
    assert "vovk2020combining" in cite(split)
    assert "cpmmd," in cite()


def test_what_is_unknown_gets_a_sentence():
    with pytest.raises(cpmmd.CpmmdError, match="Did you mean 'mmdagg'"):
        cite("mmdag")
    with pytest.raises(cpmmd.CpmmdError, match="to cite, of type 'int'"):
        cite(3)
