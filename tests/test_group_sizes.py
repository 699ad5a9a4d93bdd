"""Groups whose sizes differ: cut to one size, which is exact, with an exact test of the sizes beside the answer."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest

from commands import run
from cpmmd import DriftDetector, DriftMonitor, kernel_matrix_test, power_from_pilot, run_many, two_sample_test
from cpmmd.data.design import Design, DesignOptions
from cpmmd.data.pool import read_pool
from cpmmd.draws.group_sizes import _draw_rows, _keys_by_name, common_sizes, cut_groups, differ_in_size, pvalue_of_sizes
from cpmmd.draws.labels import Relabelings
from cpmmd.errors import CpmmdError, InputError
from cpmmd.statistics.group_means import studentised_distances


def _sample(rng, counts, correlation=0.1, first=0, shift=0.0):
    """Rows of random effects, two columns, and the group of each row."""
    effects = np.repeat(rng.normal(size=(len(counts), 2)), counts, axis=0)
    rows = np.sqrt(correlation) * effects + np.sqrt(1 - correlation) * rng.normal(size=effects.shape) + shift
    return rows, first + np.repeat(np.arange(len(counts)), counts)


def _samples(rng, of_x, of_y, **more):
    x, groups_x = _sample(rng, of_x, **more)
    y, groups_y = _sample(rng, of_y, first=1000, **more)
    return x, y, (groups_x, groups_y)


def _frames(rng, of_x, of_y):
    x, y, groups = _samples(rng, of_x, of_y)
    return [pd.DataFrame(rows, columns=["a", "b"]).assign(g=of) for rows, of in zip((x, y), groups, strict=True)]


UNEQUAL = ([10] * 20, [3] * 10)


def test_level_where_one_sample_has_the_larger_groups():
    """400 repetitions: .05 + 3 * .0109 = .0827; with all rows they reject .28."""
    found = {"cut": 0, "keep": 0}
    for way in found:
        rng = np.random.default_rng(11)
        for _ in range(400):
            x, y, groups = _samples(rng, [20] * 24, [1] * 6)
            test = two_sample_test(x, y, groups=groups, group_sizes=way, method="median", n_permutations=99, rng=rng)
            found[way] += test.reject
    assert found["cut"] / 400 <= 0.0827 < found["keep"] / 400


@pytest.mark.parametrize("method", ["cp-full", "mmdagg"])
def test_level_of_methods_that_search(method):
    # 100 repetitions: .05 + 3 * .0218 = .115; with all rows they reject .26 and .16.
    rng = np.random.default_rng(3)
    pairs = [_samples(rng, *UNEQUAL) for _ in range(100)]
    rejected = [two_sample_test(x, y, groups=g, method=method, n_permutations=99, rng=rng).reject for x, y, g in pairs]
    assert np.mean(rejected) <= 0.115


def test_a_cut_group_has_the_law_of_a_group_that_was_as_small():
    """All contents, all orders of the random numbers: groups of 2, 3 and 4 rows of one law agree once they are cut to 2."""
    laws = []
    for count in (2, 3, 4):
        law = Counter()
        orders = list(permutations(range(count)))
        for rate, weight in ((0.2, 0.5), (0.9, 0.3), (0.5, 0.2)):  # rows are independent given their group's rate
            for content in product((0, 1), repeat=count):
                mass = weight * rate ** sum(content) * (1 - rate) ** (count - sum(content))
                for keys in orders:
                    rows = _draw_rows(np.zeros(count, int), np.array(keys), np.array([2]))
                    law[tuple(content[row] for row in rows)] += mass / len(orders)
        laws.append([law[content] for content in product((0, 1), repeat=2)])
    np.testing.assert_allclose(laws[1:], [laws[0]] * 2, atol=1e-12)


def test_rows_of_a_group_are_drawn_uniformly():
    unit, drawn, rng = np.array([0, 1, 0, 0, 1, 0]), Counter(), np.random.default_rng(0)
    for _ in range(6000):
        rows = _draw_rows(unit, rng.random(6), np.array([2, 2]))
        assert set(rows) >= {1, 4}
        drawn[tuple(set(rows) - {1, 4})] += 1
    assert len(drawn) == 6
    assert max(abs(count - 1000) for count in drawn.values()) <= 3.5 * np.sqrt(6000 * 5 / 36)


def test_the_size_does_not_depend_on_which_sample_a_group_is_of():
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 30, 24)
    found = set()
    for _ in range(50):  # any 12 of 24 groups are x
        order = rng.permutation(24)
        design = Design(
            np.repeat(np.arange(24), counts[order]), np.zeros(24, int), (int(counts[order[:12]].sum()), 0), kind="group"
        )
        design = Design(design.unit, design.strata, (design.rows[0], len(design.unit) - design.rows[0]), kind="group")
        found.add(int(common_sizes(design, counts[order])[0]))
    ascending = np.sort(counts)  # a third of 12 groups are 4 that may be left out
    precision = {int(k): np.sum(counts >= k) / (0.1 + 0.9 / k) for k in ascending[:5]}
    assert found == {max(precision, key=precision.get)}


def test_small_groups_are_left_out_where_that_keeps_more_information():
    """Sizes 1 to 30 in both samples: cut to the smallest, a group would be one row."""
    sizes = np.tile(np.arange(1, 31), 2)
    design = Design(
        np.repeat(np.arange(60), sizes), np.zeros(60, int), (int(sizes[:30].sum()), int(sizes[30:].sum())), kind="group"
    )
    assert common_sizes(design, sizes).tolist() == [6]  # of the 21 sizes allowed: 50 groups of 6 rows
    unlike = np.repeat([10, 3], [20, 10])
    design = Design(np.repeat(np.arange(30), unlike), np.zeros(30, int), (200, 30), kind="group")
    assert common_sizes(design, unlike).tolist() == [3]  # never all groups of a sample


def test_the_answer_is_that_of_the_rows_that_are_left():
    rng = np.random.default_rng(2)
    x, y, groups = _samples(rng, [3, 5, 2, 6], [4, 2, 3], correlation=0.5, shift=0.3)
    result = two_sample_test(x, y, groups=groups, method="median", alpha=0.2, rng=0)
    kept = np.split(result.evidence.pool.kept, [result.sizes[0]])
    assert result.sizes == (8, 6)
    left = [rows[some] for rows, some in zip((x, y), kept, strict=True)]
    of = tuple(part[some] for part, some in zip(groups, kept, strict=True))
    assert all(set(np.unique(part, return_counts=True)[1]) == {2} for part in of)
    alone = two_sample_test(*left, groups=of, method="median", alpha=0.2, rng=0)
    assert (result.exhaustive, result.pvalue, result.statistic) == (True, alone.pvalue, alone.statistic)
    assert result.exact
    assert alone.design.cut is None


def test_groups_of_one_size_are_left_as_they_are():
    x, y, groups = _samples(np.random.default_rng(4), [4] * 8, [4] * 6)
    answers = [two_sample_test(x, y, groups=groups, group_sizes=way, rng=0, n_permutations=99) for way in ("cut", "keep")]
    assert answers[0].statistic == answers[1].statistic
    assert answers[0].notes == answers[1].notes == ()
    assert "cut" not in answers[0].to_dict()["design"]


def test_the_result_says_what_was_done():
    x, y, groups = _samples(np.random.default_rng(5), *UNEQUAL)
    result = two_sample_test(x, y, groups=groups, method="median", rng=0)
    assert str(result.design) == "20 v 10 groups cut to 3 rows, 60 v 30 rows"
    assert result.notes == (
        "groups have 10 rows in the first sample and 3 rows in the second. Only groups of one size are exchangeable, so each was "
        "cut to 3 rows, drawn at random: 60 of 200 rows and 30 of 30 are compared. An exact test of the sizes themselves has p = "
        "0.001. If groups were assigned to the samples at random, group_sizes='keep' compares all rows",
    )
    assert result.to_dict()["design"]["cut"] == {
        "rows_of_a_group": [3, 3],
        "rows": [200, 30],
        "units": [20, 10],
        "sizes_pvalue": 0.001,
    }
    kept = two_sample_test(x, y, groups=groups, group_sizes="keep", method="median", rng=0)
    assert "group_sizes='keep'" in kept.call
    assert kept.sizes == (200, 30)
    assert kept.notes[0].startswith("groups differ in size and all their rows are tested: the p-value is exact only if")


def test_a_few_tiny_groups_are_left_out():
    x, y, groups = _samples(np.random.default_rng(6), [1, *[6] * 19], [8] * 10)
    result = two_sample_test(x, y, groups=groups, method="median", rng=0)
    assert str(result.design) == "19 v 10 groups cut to 6 rows, 114 v 60 rows"
    assert "and 1 and 0 smaller groups were left out" in result.notes[0]


def test_each_stratum_has_its_own_size():
    rng = np.random.default_rng(7)
    frames = _frames(rng, [5] * 6 + [2] * 6, [7] * 6 + [3] * 6)
    frames = [frame.assign(site=np.where(frame["g"] % 1000 < 6, "city", "country")) for frame in frames]
    result = two_sample_test(*frames, groups="g", strata="site", method="median", rng=0)
    assert result.design.cut.rows_of_a_group == (2, 5)
    assert str(result.design) == "12 v 12 groups cut to 2 to 5 rows in 2 strata, 42 v 42 rows"


def test_the_two_sides_of_a_pair_are_cut_to_the_smaller():
    rng = np.random.default_rng(8)
    pairs = np.repeat(np.arange(10), 4), np.repeat(np.arange(10), [1, 2] * 5)
    result = two_sample_test(rng.normal(size=(40, 2)), rng.normal(size=(15, 2)), pairs=pairs, method="median", rng=0)
    assert str(result.design) == "10 pairs, 15 v 15 rows"
    assert result.sizes == (15, 15)
    assert "the halves of pairs have 4 rows in the first sample and 1 to 2 rows in the second" in result.notes[0]


def _sizes_by_hand(counts, first):
    """Return the p-value of all labelings: squared differences of the distribution functions, added up over the sizes."""
    at = np.unique(counts)[:-1]
    values = []
    for chosen in combinations(range(len(counts)), first):
        of_x = np.isin(np.arange(len(counts)), chosen)
        gaps = [(counts[of_x] <= t).mean() - (counts[~of_x] <= t).mean() for t in at]
        values.append(np.square(gaps).sum())
    return np.mean(np.array(values) >= values[0] - 1e-12)


def test_the_sizes_are_tested_by_full_enumeration():
    for counts, first in (([1, 2, 2, 3, 5, 5, 6], 3), ([9, 8, 7, 1, 2, 3], 3), ([4, 1, 4, 1, 4], 2)):
        counts = np.array(counts)
        m = int(counts[:first].sum())
        design = Design(np.repeat(np.arange(len(counts)), counts), np.zeros(len(counts), int), (m, int(counts.sum()) - m))
        assert pvalue_of_sizes(design, counts, np.random.default_rng(0)) == pytest.approx(_sizes_by_hand(counts, first))


def test_explanations_are_of_the_same_rows():
    x, y, groups = _samples(np.random.default_rng(9), *UNEQUAL, shift=0.0)
    result = two_sample_test(x, y + 2, groups=groups, method="median", rng=0)
    cut = [rows[some] for rows, some in zip((x, y + 2), np.split(result.evidence.pool.kept, [60]), strict=True)]
    column = result.explain().columns[0]
    means = [part[:, int(column.name[-1]) if column.name[-1].isdigit() else 0].mean() for part in cut]
    assert result.evidence.pool.sizes == (60, 30)
    np.testing.assert_allclose(np.asarray(result.evidence.pool.numbers), np.vstack(cut))
    assert means[1] - means[0] > 1


def test_every_entry_point_cuts():
    rng = np.random.default_rng(10)
    x, y, groups = _samples(rng, *UNEQUAL)
    z = np.vstack([x, y])
    K = np.exp(-np.square(z[:, None] - z).sum(axis=-1))
    result = kernel_matrix_test(K, 200, groups=groups, rng=0)
    assert (result.sizes, str(result.design)) == ((60, 30), "20 v 10 groups cut to 3 rows, 60 v 30 rows")
    assert kernel_matrix_test(K, 200, groups=groups, group_sizes="keep", rng=0).sizes == (200, 30)
    frames = _frames(rng, *UNEQUAL)
    many = run_many({"one": frames}, groups="g", method="median", rng=0).results["one"]
    assert many.sizes == (60, 30)
    assert run_many({"one": frames}, groups="g", group_sizes="keep", method="median", rng=0).results["one"].sizes == (200, 30)
    table = power_from_pilot(*frames, [6], groups="g", method="median", repetitions=3, n_permutations=99, rng=0)
    assert "cut to 3 rows" in table.notes[0]
    answer = DriftDetector(method="median", groups="g", rng=0).fit(frames[0]).test(frames[1])
    assert answer.result.sizes == (60, 30)
    assert answer.pvalue == DriftDetector(method="median", groups="g", rng=0).fit(frames[0]).test(frames[1]).pvalue


def test_a_monitor_takes_the_same_rows_of_a_group_first():
    names, seed = np.array(["p", "p", "q", "p", "q", "r"], dtype=object), 5
    keys = _keys_by_name(names, seed)
    again = _keys_by_name(np.array(["q", "x", "p", "p", "q", "p"], dtype=object), seed)
    np.testing.assert_array_equal(keys[[0, 1, 3]], again[[2, 3, 5]])
    np.testing.assert_array_equal(keys[[2, 4]], again[[0, 4]])
    rng = np.random.default_rng(11)
    monitor = DriftMonitor(method="median", n_permutations=99, rng=0, groups="g").fit(_frames(rng, [10] * 20, [1])[0])
    answer = monitor.update(_frames(rng, [1], [3] * 10)[1])
    assert str(answer.looks[0].result.design) == "20 v 10 groups cut to 3 rows, 60 v 30 rows"


def test_ranks_of_a_monitor_stay_uniform_where_later_groups_are_smaller():
    """Five batches in each of 60 streams, 20 x 10 rows before and 10 x 3 in a batch: .05 + 3 * .0126 = .088."""
    rng, small = np.random.default_rng(12), []
    for stream in range(60):
        monitor = DriftMonitor(method="median", n_permutations=39, rng=stream, groups="g", looks=(1,))
        monitor.fit(_frames(rng, [10] * 20, [1])[0])
        for batch in range(5):
            rows, of = _sample(rng, [3] * 10, first=1000 * (batch + 1))
            small.append(monitor.update(pd.DataFrame(rows, columns=["a", "b"]).assign(g=of)).pvalue <= 0.05)
    assert np.mean(small) <= 0.088


def test_blocks_and_plain_rows_are_not_cut():
    rng = np.random.default_rng(13)
    x, y = rng.normal(size=(41, 1)), rng.normal(size=(30, 1))
    for given in ({"blocks": 4}, {"strata": (np.arange(41) % 2, np.arange(30) % 2)}):
        assert two_sample_test(x, y, method="median", rng=0, **given).sizes == (41, 30)
    pool = read_pool(x, y)
    assert cut_groups(pool, DesignOptions(), rng) is pool
    assert not differ_in_size(Design(np.arange(4), np.zeros(4, int), (2, 2)))


def test_an_unknown_way_is_refused():
    x, y, groups = _samples(np.random.default_rng(14), *UNEQUAL)
    with pytest.raises(CpmmdError, match="group_sizes: 'kept'"):
        two_sample_test(x, y, groups=groups, group_sizes="kept", rng=0)


def test_the_command_line_cuts_and_keeps(tmp_path):
    files = []
    for name, frame in zip("ab", _frames(np.random.default_rng(15), *UNEQUAL), strict=True):
        files.append(str(tmp_path / f"{name}.csv"))
        frame.to_csv(files[-1], index=False)
    usual = ("test", *files, "--group-by", "g", "--method", "median", "--seed", "0", "--no-explain")
    done = run(*usual)
    assert "cut to 3 rows" in done.stdout
    assert "--group-sizes keep compares all rows" in " ".join(done.output.split())
    kept = run(*usual, "--group-sizes", "keep")
    assert "20 v 10 groups, 200 v 30 rows" in kept.stdout


def test_the_distance_of_group_means_is_that_of_explicit_features():
    rng = np.random.default_rng(16)
    means = rng.normal(size=(8, 3))
    labels = Relabelings.draw(8, 3, 999, rng)
    expected = []
    for marked in labels.array() > 0:
        x, y = means[marked], means[~marked]
        covariance = np.cov(x.T) / len(x) + np.cov(y.T) / len(y)
        distance = np.square(x.mean(axis=0) - y.mean(axis=0)).sum()
        expected.append((distance - np.trace(covariance)) / np.sqrt(2 * np.square(covariance).sum()))
    np.testing.assert_allclose(studentised_distances(means @ means.T, labels), expected, rtol=1e-6)


def test_group_means_use_all_rows_and_say_that_they_are_approximate():
    """200 repetitions each: .05 + .03 + 3 * .0154 = .126 where nothing differs; more power where x has large groups."""
    found = {(shift, method): 0 for shift in (0.0, 0.5) for method in ("group-means", "median")}
    rng = np.random.default_rng(17)
    for _ in range(200):
        x, y, groups = _samples(rng, [20] * 6, [1] * 24)
        for shift, method in found:
            result = two_sample_test(x, y + shift, groups=groups, method=method, n_permutations=99, rng=rng)
            found[shift, method] += result.reject
            assert result.exact == (method == "median")
    assert found[0.0, "group-means"] / 200 <= 0.126
    assert found[0.5, "group-means"] >= found[0.5, "median"] + 30


def test_group_means_are_exact_where_groups_have_one_size_and_explain_cut_groups(tmp_path):
    rng = np.random.default_rng(18)
    x, y, groups = _samples(rng, [4] * 8, [4] * 8)
    even = two_sample_test(x, y + 1, groups=groups, method="group-means", rng=0)
    assert even.exact
    assert even.notes == ()
    x, y, groups = _samples(rng, *UNEQUAL)
    result = two_sample_test(x, y + 1, groups=groups, method="group-means", rng=0)
    assert (result.sizes, result.evidence.pool.sizes) == ((200, 30), (60, 30))
    assert "the level is approximate" in result.notes[0]
    assert result.explain().columns[0].pvalue <= 0.05
    result.report(tmp_path / "page.html")
    with pytest.raises(InputError, match="takes groups only"):
        two_sample_test(x, y, strata=(np.arange(200) % 2, np.arange(30) % 2), method="group-means", rng=0)
