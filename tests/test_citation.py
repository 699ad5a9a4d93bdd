"""cite() knows every method, kernel, criterion and data set."""

import re

import numpy as np
import pytest

import cpmmd
from cpmmd import registry
from cpmmd.citation import TOPICS, citation_keys, cite, entries


def test_every_key_has_an_entry():
    named = [kind for kinds in (registry.procedures(), registry.families(), registry.criteria()) for kind in kinds.values()]
    keys = {key for keys in (*TOPICS.values(), *(kind.citations for kind in named)) for key in keys}
    assert keys <= set(entries())
    for text in entries().values():
        assert text.count("{") == text.count("}")


@pytest.mark.parametrize("name", cpmmd.methods())
def test_every_method_can_be_cited(name):
    assert re.match(r"@\w+\{", cite(name))


@pytest.mark.parametrize("kind", [*registry.families().values(), *registry.criteria().values()], ids=lambda kind: kind.__name__)
def test_every_family_and_criterion_can_be_cited(kind):
    assert set(kind.citations) <= set(citation_keys(kind()))


def test_a_method_cites_what_its_parts_do():
    assert citation_keys("cp-deep") == ("liu2020learning", "bartlett2017spectrally", "ni2026kernel")
    assert citation_keys("liu-mixture") == ("liu2020learning", "sutherland2017generative")


def test_objects_and_results_cite_what_they_are_made_of():
    assert "liu2020learning" in cite(cpmmd.SplitTest(criterion=cpmmd.Ratio()))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2))
    full = cpmmd.two_sample_test(x, y, rng=0, n_permutations=99)
    assert "domingo2025cheap" in cite(full)
    assert cite(full.kernel)
    split = cpmmd.two_sample_test(x[:40], y[:40], method=cpmmd.SplitTest(n_splits=3), rng=0, n_permutations=99)
    assert "vovk2020combining" in cite(split)
    assert "cpmmd," in cite()


def test_a_binned_test_of_one_kernel_cites_the_binning():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2200, 1)), rng.normal(size=(2200, 1))
    assert "domingo2025cheap" in cite(cpmmd.two_sample_test(x, y, method="median", rng=0, n_permutations=99))
    assert "domingo2025cheap" not in cite(cpmmd.two_sample_test(x[:90], y[:90], method="median", rng=0, n_permutations=99))


def test_what_is_unknown_gets_a_sentence():
    with pytest.raises(cpmmd.CpmmdError, match="Did you mean 'mmdagg'"):
        cite("mmdag")
    with pytest.raises(cpmmd.CpmmdError, match="There is no reference for 3"):
        cite(3)
