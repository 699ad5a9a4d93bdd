"""Monitors of rows that belong together: groups stay whole, strata keep their labels, and the promise holds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cpmmd import DriftMonitor
from cpmmd.errors import InputError

RELABELINGS = 19


def patients(rng, first, count, shift=0.0):
    """Groups of two to seven rows that hang together."""
    sizes = rng.integers(2, 8, count)
    who = np.repeat(np.arange(first, first + count), sizes)
    rows = np.repeat(rng.normal(size=(count, 2)), sizes, axis=0) + 0.3 * rng.normal(size=(len(who), 2)) + shift
    return pd.DataFrame({"u": rows[:, 0], "v": rows[:, 1], "patient": [f"p{k}" for k in who]})


def stream(seed, batches, **options):
    rng = np.random.default_rng([91, seed])
    monitor = DriftMonitor("median", n_permutations=RELABELINGS, rng=seed, looks=(1,), past_rows=120, **options)
    monitor.fit(patients(rng, 0, 20))
    for t in range(batches):
        yield monitor.update(patients(rng, 20 + 8 * t, 8)).pvalue


@pytest.mark.parametrize("streams", [40, pytest.param(400, marks=pytest.mark.statistical)])
def test_ranks_of_groups_are_uniform_and_independent(streams):
    # 8 batches a stream: chi-square on 20 cells, and lag-1 correlation within four standard errors.
    found = np.array([list(stream(seed, 8, groups="patient")) for seed in range(streams)])
    counts = np.bincount(np.round(found * (RELABELINGS + 1)).astype(int).ravel(), minlength=RELABELINGS + 2)[1:]
    assert stats.chisquare(counts).pvalue > 1e-4
    pairs = np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]
    assert abs(pairs) < 4 / np.sqrt(found[:, 1:].size)


def test_rows_taken_one_by_one_would_alarm():
    found = np.array([list(stream(seed, 4)) for seed in range(15)])
    assert np.mean(found <= 0.1) > 0.3  # a tenth where rows were independent


def test_a_change_of_groups_is_found_and_a_monitor_goes_on_from_its_file(tmp_path):
    rng = np.random.default_rng(5)
    monitor = DriftMonitor("median", groups="patient", n_permutations=999, rng=0).fit(patients(rng, 0, 40))
    batches = [patients(rng, 100 * (t + 1), 15, shift=1.6 * (t >= 2)) for t in range(6)]
    for batch in batches[:3]:
        monitor.update(batch)
    monitor.save(tmp_path / "monitor")
    again = DriftMonitor.load(tmp_path / "monitor")
    answers = [(monitor.update(b), again.update(b)) for b in batches[3:]]
    assert [a.wealth for a, _ in answers] == [b.wealth for _, b in answers]
    assert answers[-1][0].alarm
    assert answers[-1][0].result.design.units[1] == 15


def test_a_change_of_mix_alone_is_no_alarm_with_strata():
    rng = np.random.default_rng(6)

    def orders(rows, share):
        site = rng.random(rows) < share
        return pd.DataFrame({"u": rng.normal(3.0 * site), "site": np.where(site, "north", "south")})

    monitors = [
        DriftMonitor("median", n_permutations=199, rng=0, **given).fit(orders(300, 0.5)) for given in ({}, {"strata": "site"})
    ]
    for _ in range(5):
        batch = orders(80, 0.85)
        plain, stratified = (monitor.update(batch) for monitor in monitors)
    assert plain.alarm
    assert not stratified.alarm


def test_batches_of_few_groups_add_up_though_none_could_reject_by_itself():
    rng = np.random.default_rng(8)
    monitor = DriftMonitor("median", groups="patient", alpha=0.001, n_permutations=199, rng=0).fit(patients(rng, 0, 6))
    answers = [monitor.update(patients(rng, 100 * (t + 1), 2, shift=6.0 * (t >= 4))) for t in range(12)]
    first = answers[0].result
    assert 1 / len(first.null_distribution) > monitor.alpha  # 28 relabelings of 6 v 2 groups
    assert not any("cannot reject" in note for answer in answers for note in answer.result.notes)
    assert answers[-1].wealth > answers[3].wealth


def test_what_a_design_cannot_be_is_said():
    rng = np.random.default_rng(7)
    monitor = DriftMonitor("median", groups="patient", n_permutations=99, rng=0).fit(patients(rng, 0, 20))
    with pytest.raises(InputError, match="with groups, at least 2 groups"):
        monitor.update(patients(rng, 500, 1))
    with pytest.raises(InputError, match="'p3'"):
        monitor.update(patients(rng, 3, 6))
    assert monitor.number_ == 0
    with pytest.raises(InputError, match="name of a column"):
        DriftMonitor(groups=[1, 2]).fit(patients(rng, 0, 20))


def shops(rng, counts):
    """Rows of shops that differ from each other."""
    shop = np.repeat(list(counts), list(counts.values()))
    level = pd.Series({"big": 0.0, "small": 4.0, "rare": 9.0})[shop].to_numpy()
    order = rng.permutation(len(shop))
    return pd.DataFrame({"u": (level + rng.normal(size=len(shop)))[order], "shop": shop[order]})


def test_a_batch_of_a_rare_stratum_alone_meets_its_own_rows():
    # Of 500 rows drawn from all 20,000 one in 2,000 would be of the rare shop, and there would be nothing to compare.
    rng = np.random.default_rng(9)
    monitor = DriftMonitor("median", strata="shop", n_permutations=199, rng=0)
    monitor.fit(shops(rng, {"big": 15_000, "small": 4_990, "rare": 10}))
    answer = monitor.update(shops(rng, {"rare": 8}))
    assert tuple(answer.result.sizes) == (10, 8)
    assert not answer.notes


@pytest.mark.parametrize("streams", [40, pytest.param(400, marks=pytest.mark.statistical)])
def test_ranks_are_uniform_and_independent_where_batches_differ_in_their_strata(streams):
    # 8 batches a stream of one, two or three shops: chi-square on 20 cells, and lag-1 correlation within four standard errors.
    mixes = [{"rare": 6}, {"big": 20, "rare": 3}, {"small": 12}, {"big": 10, "small": 10, "rare": 2}] * 2
    found = np.empty((streams, len(mixes)))
    for seed in range(streams):
        rng = np.random.default_rng([92, seed])
        monitor = DriftMonitor("median", n_permutations=RELABELINGS, rng=seed, looks=(1,), past_rows=120, strata="shop")
        monitor.fit(shops(rng, {"big": 60, "small": 40, "rare": 12}))
        found[seed] = [monitor.update(shops(rng, mix)).pvalue for mix in mixes]
    counts = np.bincount(np.round(found * (RELABELINGS + 1)).astype(int).ravel(), minlength=RELABELINGS + 2)[1:]
    assert stats.chisquare(counts).pvalue > 1e-4
    pairs = np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]
    assert abs(pairs) < 4 / np.sqrt(found[:, 1:].size)
