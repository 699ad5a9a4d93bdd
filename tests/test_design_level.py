"""Level and power of designs on data that are not exchangeable row by row; the test of rows one by one beside it."""

from __future__ import annotations

import numpy as np
import pytest

from cpmmd import two_sample_test


def _groups(rng, shift=0.0):
    """Random effects of intraclass correlation .5: 8 v 8 groups of 2 to 10 rows."""
    samples, names = [], []
    for side in range(2):
        sizes = rng.integers(2, 11, 8)
        effects = np.repeat(rng.normal(size=(8, 2)), sizes, axis=0)
        samples.append(effects + rng.normal(size=effects.shape) + shift * side)
        names.append(100 * side + np.repeat(np.arange(8), sizes))
    return *samples, {"groups": tuple(names)}


def _strata(rng, shift=0.0, mixes=((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))):
    """Three strata three deviations apart, in other mixes."""
    of_x, of_y = (rng.choice(3, 40, p=mix) for mix in mixes)
    return (
        3.0 * of_x[:, None] + rng.normal(size=(40, 2)),
        3.0 * of_y[:, None] + rng.normal(size=(40, 2)) + shift,
        {"strata": (of_x, of_y)},
    )


def _pairs(rng, shift=0.0):
    """Pairs of correlation .8."""
    common = 2 * rng.normal(size=(30, 2))
    x, y = (common + rng.normal(size=(30, 2)) for _ in range(2))
    return x, y + shift, {"pairs": (np.arange(30), np.arange(30))}


def _blocks(rng, shift=0.0):
    """AR(1) rows of coefficient .8, in blocks of 40."""
    noise = 0.6 * rng.normal(size=(2, 320, 2))
    rows = np.zeros((2, 320, 2))
    for t in range(1, 320):
        rows[:, t] = 0.8 * rows[:, t - 1] + noise[:, t]
    return rows[0], rows[1] + shift, {"blocks": 40}


PANELS = {"groups": _groups, "strata": _strata, "pairs": _pairs, "blocks": _blocks}


def _rate(panel, repetitions, method="median", design=True, **more):
    rng, found = np.random.default_rng(7), 0
    for _ in range(repetitions):
        x, y, given = PANELS[panel](rng, **more)
        found += two_sample_test(x, y, method=method, n_permutations=59, rng=rng, **(given if design else {})).reject
    return found / repetitions


@pytest.mark.parametrize("panel", PANELS)
def test_level_of_the_designed_test(panel):
    # 150 repetitions: .05 + 3 * .0178 = .103.
    assert _rate(panel, 150) <= 0.103


@pytest.mark.parametrize("panel", ["groups", "strata"])
def test_rows_one_by_one_reject_nearly_always_where_they_are_not_exchangeable(panel):
    assert _rate(panel, 40, design=False) >= 0.5


def test_pairs_and_strata_gain_what_subjects_and_strata_differ_in():
    assert _rate("pairs", 60, shift=0.6) >= _rate("pairs", 60, design=False, shift=0.6) + 0.4
    even = ((1 / 3,) * 3,) * 2
    assert _rate("strata", 60, shift=0.7, mixes=even) >= _rate("strata", 60, design=False, shift=0.7, mixes=even) + 0.4


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["median", "cp-full", "mmdfuse", "cp-linear"])
@pytest.mark.parametrize("panel", ["groups", "strata", "pairs"])
def test_level_over_two_thousand_repetitions(panel, method):
    # .05 + 3 * .00487 = .0646: a test wrong by 1.5 points fails.
    assert _rate(panel, 2000, method) <= 0.0646
