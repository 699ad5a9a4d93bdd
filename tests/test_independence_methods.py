"""Tests of independence: spectral HSIC against naive sums, HSICAgg against its authors, exact levels, designs, bad input."""

import json
import math
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cpmmd import CpmmdError, independence_test
from cpmmd.draws.pairings import Pairings, Shifts, draw_pairings
from cpmmd.engines.principal import PrincipalFeatures
from cpmmd.evidence import tail_scores
from cpmmd.kernels.families import Bandwidth
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.procedures.independence import CLASSES, METHODS, DistanceKernel
from cpmmd.statistics.hsic import HSIC, Side, spectral_hsic
from helpers import assert_level, most_rejections

GOLDEN = Path(__file__).parent / "golden"
GAMMAS = (math.inf, 0.1, 0.01)


def partners_of(draws):
    return [p for block in draws.blocks() for p in block]


def centring(n, strata=None):
    """The matrix that takes off means inside strata."""
    strata = np.zeros(n, dtype=int) if strata is None else strata
    together = np.equal.outer(strata, strata)
    return np.eye(n) - together / together.sum(axis=1)


def naive_spectral(K, L, pairing, gamma, strata=None):
    """Sum over i != j of the two regularised kernels, from their eigenvectors."""
    n, H = len(K), centring(len(K), strata)
    regular = []
    for matrix in (K, L):
        values, vectors = np.linalg.eigh(H @ matrix @ H)
        kept = values > 1e-4 * values.max()
        values, vectors = values[kept] / values.max(), vectors[:, kept]
        weights = values if gamma == math.inf else values / (values + gamma)
        regular.append((vectors * weights) @ vectors.T * n)
    first, second = regular
    return sum(first[i, j] * second[pairing[i], pairing[j]] for i in range(n) for j in range(n) if i != j) / n**2


def sides(x, y, strata=None):
    kernel = ScaledKernel(Bandwidth("gaussian"), 1.3)
    found = [PrincipalFeatures.of(kernel, rows, strata, np.random.default_rng(0)) for rows in (x, y)]
    return [Side(some.variances, some.features) for some in found], [kernel.gram(rows) for rows in (x, y)]


@pytest.mark.parametrize("draw", [Pairings.of_units, Shifts.draw])
@pytest.mark.parametrize("stratified", [False, True])
def test_spectral_hsic_is_its_double_sums_under_any_pairing(draw, stratified):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(17, 2)), rng.normal(size=(17, 1))
    strata = np.arange(17) % 3 if stratified else None
    parts = [np.arange(17)[:, None]] if strata is None else [np.flatnonzero(strata == s)[:, None] for s in range(3)]
    draws = draw(parts, 30, rng)
    (first, second), (K, L) = sides(x, y, strata)
    found = spectral_hsic(first, second, GAMMAS, draws)
    pairings = partners_of(draws)
    assert len(pairings) == len(draws) == 31
    assert pairings[0].tolist() == list(range(17))
    for row, gamma in zip(found, GAMMAS, strict=True):
        np.testing.assert_allclose(row, [naive_spectral(K, L, p, gamma, strata) for p in pairings], atol=1e-10)


def test_turns_of_cycles_give_the_hsic_of_their_pairings():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 2))
    K, L = (DistanceKernel(np.zeros(2)).gram(rows) for rows in (x, x**2 + rng.normal(size=(40, 2))))
    for count in (99, 12):  # one row at a place, and two
        draws = Shifts.draw([np.arange(40)[:, None]], count, rng)
        explicit = Pairings(np.array(partners_of(draws)))
        assert draws.rounds[0].cycles[0].shape[1] == (1 if count == 99 else 2)
        np.testing.assert_allclose(HSIC.of(K, L).values(draws), HSIC.of(K, L).values(explicit), atol=1e-12)


@pytest.mark.parametrize("sizes", [[30], [12, 5], [7, 7, 1]])
def test_turns_are_pairings_inside_parts(sizes):
    ends = np.cumsum([0, *sizes])
    parts = [np.arange(a, b)[:, None] for a, b in pairwise(ends)]
    draws = Shifts.draw(parts, 60, np.random.default_rng(0))
    found = np.array(partners_of(draws))
    assert found.shape == (61, sum(sizes))
    for part in parts:
        inside = found[:, part[:, 0]]
        assert (np.sort(inside, axis=1) == part[:, 0]).all()
    assert found[0].tolist() == list(range(sum(sizes)))


@pytest.mark.parametrize("count", [9, 11])  # two rounds of five turns; two and a part of a third
def test_p_is_exact_under_turns_of_several_rounds(count):
    # Any statistic of a pairing of five rows: each of the 120 pairings is as likely to be observed.
    rng = np.random.default_rng(3)
    value = dict(zip(permutations(range(5)), rng.permutation(120), strict=True))
    runs, ranks = 6000, np.zeros(count + 1)
    for _ in range(runs):
        observed = rng.permutation(5)
        found = [value[tuple(observed[p].tolist())] for p in partners_of(Shifts.draw([np.arange(5)[:, None]], count, rng))]
        ranks[np.count_nonzero(np.array(found) >= found[0]) - 1] += 1
    cumulative, levels = np.cumsum(ranks) / runs, np.arange(1, count + 2) / (count + 1)
    error = 4 * np.sqrt(levels * (1 - levels) / runs)
    assert (cumulative <= levels + error).all()
    # Pairings of different rounds coincide now and then, which makes p a little too large, never much.
    assert (cumulative >= levels - error - 0.06).all()


def test_many_rows_share_the_places_of_a_cycle():
    draws = Shifts.draw([np.arange(5003)[:, None]], 199, np.random.default_rng(0))
    (some,) = draws.rounds
    assert [cycle.shape for cycle in some.cycles] == [(208, 24), (11, 1)]
    assert sorted(np.concatenate([cycle.ravel() for cycle in some.cycles])) == list(range(5003))
    assert len({tuple(turn) for turn in some.turns}) == len(draws) == 200


def test_groups_exchange_partners_as_a_whole():
    part = np.arange(24).reshape(6, 4)
    for draws in (Pairings.of_units([part], 50, np.random.default_rng(0)), Shifts.draw([part], 50, np.random.default_rng(0))):
        for partners in partners_of(draws):
            moved = partners.reshape(6, 4)
            assert (moved % 4 == np.arange(4)).all()
            assert (moved // 4 == moved[:, :1] // 4).all()


# --- the default test --------------------------------------------------------------------------------------------------


def naive_evidence(x, y, pairings):
    """The penalised evidence of every re-pairing, members from double sums and nothing shared with the code under test."""
    n = len(x)

    def ranks(z):
        return np.column_stack([[(np.sum(c < v) + np.sum(c == v) / 2) / n for v in c] for c in z.T])

    def kernel(z, view):
        rows = ranks(z) if view.coordinates == "ranks" else (z - z.mean(axis=0)) / z.std(axis=0)
        apart = np.array([[math.dist(a, b) for b in rows] for a in rows])
        if view.width is None:
            return -apart
        bandwidth = view.width * math.sqrt(np.median([apart[i][j] ** 2 for i in range(n) for j in range(i)]))
        return np.exp(-((apart / bandwidth) ** 2) / 2)

    totals = []
    for searched in CLASSES:
        values = [
            [naive_spectral(kernel(x, a), kernel(y, b), p, gamma) for p in pairings]
            for a, b, gammas in searched.members
            for gamma in gammas
        ]
        best = tail_scores(np.array(values)).max(axis=0)
        totals.append(best - np.quantile(best, 0.9) + math.log(searched.weight))
    return np.max(totals, axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_five_rows_are_ranked_among_all_pairings(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, 1))
    y = x + 0.2 * rng.normal(size=(5, 1))
    expected = naive_evidence(x, y, list(permutations(range(5))))
    result = independence_test(x, y, rng=0)
    assert (result.exhaustive, result.n_permutations) == (True, 119)
    assert result.statistic == pytest.approx(expected[0], abs=1e-8)
    np.testing.assert_allclose(np.sort([result.statistic, *result.null_distribution]), np.sort(expected), atol=1e-8)
    assert result.pvalue == np.mean(expected >= expected[0] - 1e-6)


def test_the_sides_may_be_swapped_and_rows_reordered():
    rng = np.random.default_rng(3)
    x, y, order = rng.normal(size=(6, 2)), rng.normal(size=(6, 1)), rng.permutation(6)
    values = [independence_test(a, b).statistic for a, b in ((x, y), (y, x), (x[order], y[order]))]
    assert values == pytest.approx([values[0]] * 3, abs=1e-8)


@pytest.mark.parametrize("shape", ["square", "circle", "levels"])
def test_dependence_without_correlation_is_found(shape):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(120, 1))
    frames = {
        "square": (x, x**2 + 0.2 * rng.normal(size=(120, 1))),
        "circle": (np.cos(3 * x) + 0.1 * rng.normal(size=(120, 1)), np.sin(3 * x)),
        "levels": (
            pd.DataFrame({"a": x[:, 0]}),
            pd.DataFrame({"b": np.where(np.abs(x[:, 0]) < 0.5, "in", "out")}),
        ),
    }
    assert independence_test(*frames[shape], rng=0).pvalue == 0.001


def test_the_answer_does_not_depend_on_threads_or_the_kind_of_frame():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(450, 2)), rng.normal(size=(450, 1))
    frames = [
        (x, y),
        (pd.DataFrame(x, columns=["a", "b"]), pd.DataFrame(y, columns=["c"])),
        (pl.DataFrame(x, schema=["a", "b"]), pl.DataFrame(y, schema=["c"])),
    ]
    results = [independence_test(*frame, rng=5, n_permutations=199, n_jobs=jobs) for frame in frames for jobs in (1, 2)]
    assert len({result.pvalue for result in results}) == 1
    assert [result.statistic for result in results[::2]] == [result.statistic for result in results[1::2]]  # not one bit
    assert [result.statistic for result in results] == pytest.approx([results[0].statistic] * 6, abs=1e-9)  # but for layout


def test_missing_values_are_refused_dropped_or_tested():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=100)})
    y = pd.DataFrame({"b": rng.normal(size=100)})
    y.loc[x.a > 0.7, "b"] = np.nan
    x.loc[3, "a"] = np.nan
    with pytest.raises(CpmmdError, match="must not be missing"):
        independence_test(x, y)
    dropped = independence_test(x, y, missing="drop", rng=0)
    assert dropped.rows == int((x.a.notna() & y.b.notna()).sum())
    assert any("dropped for missing values" in note for note in dropped.notes)
    assert not dropped.reject
    assert independence_test(x, y, missing="impute", rng=0).reject  # whether b is missing depends on a


def test_strata_ask_for_dependence_given_the_stratum():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 3, 150)
    x, y = site + 0.3 * rng.normal(size=150), 2 * site + 0.3 * rng.normal(size=150)
    assert independence_test(x, y, rng=0).reject
    assert not independence_test(x, y, strata=site, rng=0).reject
    frame = pd.DataFrame({"x": x, "site": site})
    by_name = independence_test(frame, y + 0.5 * x, strata="site", rng=0)
    assert by_name.reject
    assert by_name.columns_x == ("x",)
    assert by_name.exchanged == "150 rows, in 3 strata"


def test_groups_are_cut_or_paired_by_size():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), [3] * 10 + [5] * 10)
    x, y = rng.normal(size=(80, 1)), rng.normal(size=(80, 1))
    cut = independence_test(x, y, groups=group, rng=0)
    kept = independence_test(x, y, groups=group, group_sizes="keep", rng=0)
    assert (cut.rows, kept.rows) == (60, 80)
    assert any("20 rows left out" in note for note in cut.notes)
    assert cut.exact
    assert kept.exact


def test_blocks_are_approximate():
    rng = np.random.default_rng(0)
    x, y = (np.cumsum(rng.normal(size=123)) for _ in range(2))
    result = independence_test(x, y, blocks=10, rng=0)
    assert (result.exact, result.rows, result.exchanged) == (False, 120, "12 blocks, 120 rows")
    with pytest.raises(CpmmdError, match="shorter blocks"):
        independence_test(x, y, blocks="auto")  # a random walk depends on its whole past


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_a_line_and_reports_it(method, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    result = independence_test(x, x[:, :1] + 0.3 * rng.normal(size=(60, 1)), method=method, rng=0)
    assert result.reject
    assert result.method == method
    assert "Which columns go together" in result.report(tmp_path / "r.html")
    assert json.dumps(result.to_dict())
    assert result.to_metrics()["cpmmd_reject"] == 1
    assert f"method={method!r}" in result.call or method == "cp-hsic"
    assert result.explain().pairs[0].words == "rise together"


def test_many_rows_are_seen_through_landmarks_by_tests_of_one_kernel():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4100, 1))
    result = independence_test(x, x**2 + rng.normal(size=(4100, 1)), method="hsic-median", n_permutations=99, rng=0)
    assert result.reject
    assert any("landmarks" in note for note in result.notes)


def test_distance_correlation_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    H = centring(30)
    A, B = (H @ np.array([[math.dist(a, b) for b in z] for a in z]) @ H for z in (x, y))
    expected = math.sqrt(np.sum(A * B) / math.sqrt(np.sum(A * A) * np.sum(B * B)))
    assert independence_test(x, y, method="distance-correlation", rng=0).statistic == pytest.approx(expected, rel=1e-10)


# --- HSICAgg -----------------------------------------------------------------------------------------------------------

ANSWERS = json.loads((GOLDEN / "hsic.json").read_text())


@pytest.mark.parametrize("name", ANSWERS)
def test_hsicagg_is_its_authors(name):
    with np.load(GOLDEN / "hsic.npz", allow_pickle=False) as data:
        x, y = data[f"{name}_X"], data[f"{name}_Y"]
    expected = [test for key, test in ANSWERS[name]["tests"].items() if key.startswith("Single")]
    result = independence_test(x, y, method="hsicagg", rng=0)
    assert len(result.singles) == len(expected) == 25
    for ours, theirs in zip(result.singles, expected, strict=True):
        assert ours.bandwidth_x == pytest.approx(theirs["Bandwidth X"], rel=1e-9)
        assert ours.bandwidth_y == pytest.approx(theirs["Bandwidth Y"], rel=1e-9)
        assert ours.hsic == pytest.approx(theirs["HSIC"], rel=1e-9)
        # Monte Carlo p-values of 500 signs each: six standard errors of their difference.
        p = theirs["p-value"]
        assert abs(ours.pvalue - p) <= 6 * math.sqrt(2 * max(p * (1 - p), 0.002) / 500) + 1 / 501
    rate = ANSWERS[name]["reject_rate_10_seeds"]
    if rate in (0.0, 1.0):
        assert any(single.rejected for single in result.singles) == bool(rate)


def test_hsicagg_takes_rows_as_independent():
    x = np.arange(20.0)
    with pytest.raises(CpmmdError, match="takes rows as independent"):
        independence_test(x, x, method="hsicagg", strata=np.arange(20) % 2)
    with pytest.raises(CpmmdError, match="at most 4000 rows"):
        independence_test(np.arange(5000.0), np.arange(5000.0), method="hsicagg")


# --- which columns -----------------------------------------------------------------------------------------------------


def test_pairs_of_columns_that_go_together_are_named():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd")).assign(k=rng.choice(["u", "v"], 200))
    y = pd.DataFrame(rng.normal(size=(200, 2)), columns=list("pq")).assign(
        up=x.a + rng.normal(size=200), down=-x.b + rng.normal(size=200), bent=x.c**2, level=np.where(x.k == "u", "s", "t")
    )
    found = {(pair.x, pair.y): pair for pair in independence_test(x, y, rng=0).explain().pairs}
    assert len(found) == 30
    words = {names: pair.words for names, pair in found.items() if pair.pvalue <= 0.05}
    assert words == {
        ("a", "up"): "rise together",
        ("b", "down"): "one falls as the other rises",
        ("c", "bent"): "related, neither rising nor falling",
        ("k", "level"): "levels go together",
    }
    assert found["k", "p"].correlation is None
    # Spearman's correlation is Pearson's of ranks.
    assert found["a", "up"].correlation == pytest.approx(x.a.corr(y.up, method="spearman"), abs=1e-10)


def test_pairs_control_the_family_wise_error():
    """Of 100 independent draws with 6 pairs each, at most 12 have a pair at .05 (three standard errors)."""
    data = np.random.default_rng(0)
    smallest = [
        independence_test(data.normal(size=(30, 3)), data.normal(size=(30, 2)), n_permutations=99, rng=s)
        .explain()
        .pairs[0]
        .pvalue
        for s in range(100)
    ]
    assert_level(np.array(smallest), (0.05, 0.1))


def test_too_many_pairs_are_not_tested():
    rng = np.random.default_rng(0)
    result = independence_test(rng.normal(size=(20, 150)), rng.normal(size=(20, 101)), n_permutations=19, rng=0)
    assert result.explain().pairs == ()
    assert "more than 10000" in result.explain().sentence
    assert result.report()


# --- bad input ---------------------------------------------------------------------------------------------------------

X = np.arange(20.0)
BAD = {
    "other rows": ({"x": X, "y": X[1:]}, "one row for each observation"),
    "one row": ({"x": X[:1], "y": X[:1]}, "at least 2 rows"),
    "three rows": ({"x": X[:3], "y": X[:3]}, "3 rows have 6 re-pairings"),
    "constant": ({"x": np.ones(20), "y": X}, "Every column of sample x is constant"),
    "strata of one row": ({"x": X, "y": X, "strata": np.arange(20)}, "Every row is alone in its stratum"),
    "few in strata": ({"x": X[:4], "y": X[:4], "strata": [0, 0, 1, 1]}, "4 rows have 4 re-pairings"),
    "strata of other length": ({"x": X, "y": X, "strata": [1, 2]}, "a value for each of the 20 rows"),
    "unknown column": ({"x": pd.DataFrame({"a": X}), "y": X, "strata": "b"}, "Unknown column"),
    "one group": ({"x": X, "y": X, "groups": np.zeros(20)}, "Every group is alone"),
    "groups across strata": (
        {"x": X, "y": X, "groups": np.arange(20) % 4, "strata": np.arange(20) // 10},
        "belong to one stratum",
    ),
    "groups and blocks": ({"x": X, "y": X, "groups": X, "blocks": 2}, "cannot be given together"),
    "unknown method": ({"x": X, "y": X, "method": "mgc"}, "Unknown method"),
    "few permutations": ({"x": X, "y": X, "n_permutations": 5}, "can never reject"),
    "missing stratum": ({"x": X, "y": X, "strata": [None, *X[1:]]}, "must have a value in every row"),
    "infinite": ({"x": np.where(X == 3, np.inf, X), "y": X}, "Values must be finite"),
    "unknown keyword": ({"x": X, "y": X, "seeed": 1}, "seeed"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_a_sentence(case):
    options, expected = BAD[case]
    with pytest.raises((CpmmdError, TypeError), match=expected):
        independence_test(**options)


def test_constant_columns_and_lone_strata_are_noted():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=41), "still": 1.0, "site": [0] * 20 + [1] * 20 + [2]})
    result = independence_test(x, rng.normal(size=41), strata="site", rng=0)
    assert result.rows == 40
    assert any("1 stratum" in note and "left out" in note for note in result.notes)
    assert any("still" in note and "constant" in note for note in result.notes)


# --- level -------------------------------------------------------------------------------------------------------------


def discrete(rng):
    return {"x": rng.integers(0, 3, (25, 2)), "y": rng.integers(0, 2, 25)}


def heavy(rng):
    return {"x": rng.standard_t(1, (30, 2)), "y": np.exp(rng.standard_t(2, 30))}


def categories(rng):
    x = pd.DataFrame({"a": rng.choice(list("uvw"), 24, p=[0.7, 0.2, 0.1]), "b": rng.normal(size=24)})
    return {"x": x, "y": pd.DataFrame({"c": rng.choice(list("pq"), 24, p=[0.7, 0.3])})}


def wide(rng):
    return {"x": rng.normal(size=(16, 40)), "y": rng.normal(size=(16, 30))}


def grouped(rng):
    """Groups of five rows that share an effect in each table."""
    effects = np.repeat(rng.normal(size=(12, 2)), 5, axis=0)
    rows = effects + 0.4 * rng.normal(size=(60, 2))
    return {"x": rows[:, 0], "y": rows[:, 1], "groups": np.repeat(np.arange(12), 5)}


def stratified(rng):
    """Both tables depend on the stratum, and on nothing else."""
    site = rng.integers(0, 3, 36)
    return {"x": site + rng.normal(size=36), "y": np.exp(site) + rng.normal(size=36), "strata": site}


NULLS = (discrete, heavy, categories, wide, grouped, stratified)


@pytest.mark.parametrize("null", NULLS)
def test_the_level_holds_on_some_draws(null):
    """Of 60 draws at most 8 reject at .05: three standard errors above the level."""
    data = np.random.default_rng(0)
    pvalues = [independence_test(**null(data), n_permutations=39, rng=s).pvalue for s in range(60)]
    assert np.sum(np.array(pvalues) <= 0.05) <= most_rejections(60, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("null", NULLS)
def test_the_level_holds(null):
    data = np.random.default_rng(1)
    assert_level(np.array([independence_test(**null(data), n_permutations=99, rng=s).pvalue for s in range(2000)]))


@pytest.mark.statistical
def test_the_level_holds_through_landmarks_and_binned_cycles():
    data = np.random.default_rng(2)
    draws = [
        independence_test(data.exponential(size=(450, 1)), data.normal(size=(450, 2)), n_permutations=99, rng=s).pvalue
        for s in range(1000)
    ]
    assert_level(np.array(draws))


def test_one_by_one_below_some_units_and_by_turns_above():
    rng = np.random.default_rng(0)
    assert isinstance(draw_pairings([np.arange(100)[:, None]], 999, rng), Pairings)
    assert isinstance(draw_pairings([np.arange(300)[:, None]], 999, rng), Shifts)
    assert draw_pairings([np.arange(300).reshape(5, 60)], 999, rng).exhaustive
