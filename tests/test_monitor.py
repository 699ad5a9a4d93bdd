"""What a monitor promises and remembers."""

import numpy as np
import pytest
from scipy import integrate

from benchmarks.monitoring_ranks import median_gram, squared_mmds, subsets
from benchmarks.monitoring_streams import largest_wealth
from cpmmd import DriftMonitor, MMDAgg, SplitTest, two_sample_test
from cpmmd.errors import CpmmdError, InputError
from cpmmd.monitoring.answers import estimate
from cpmmd.monitoring.bets import (
    BETS,
    EXPONENTS,
    Saffron,
    boost,
    first_bet,
    first_looks,
    mixed_payoff,
    power_payoffs,
    wealth_of,
)
from helpers import most_rejections

CHEAP = {"method": "median", "n_permutations": 99, "rng": 0}


def watch(batches, reference=120, change=10**9, shift=1.5, rows=30, seed=0, **options):
    data = np.random.default_rng(seed)
    monitor = DriftMonitor(**{**CHEAP, **options}).fit(data.normal(size=(reference, 2)))
    answers = [monitor.update(data.normal(shift * (i >= change), 1, size=(rows, 2)), f"day {i}") for i in range(batches)]
    return monitor, answers


@pytest.mark.parametrize("total", [2, 20, 52, 1000])
def test_the_payoffs_of_all_ranks_average_to_one_whatever_the_lattice(total):
    powers = np.mean([power_payoffs(rank, total) for rank in range(1, total + 1)], axis=0)
    np.testing.assert_allclose(powers, 1, rtol=1e-12)
    assert np.mean([mixed_payoff(rank, total) for rank in range(1, total + 1)]) == pytest.approx(1, rel=1e-12)


def test_payoffs_are_the_integrals_of_their_densities():
    for exponent, paid in zip(EXPONENTS, power_payoffs(3, 20), strict=True):
        integral, _ = integrate.quad(lambda p, a=exponent: a * p ** (a - 1), 2 / 20, 3 / 20)
        assert paid == pytest.approx(20 * integral)
    mixture, _ = integrate.dblquad(lambda p, a: a * p ** (a - 1), 0, 1, 2 / 20, 3 / 20)
    assert mixed_payoff(3, 20) == pytest.approx(20 * mixture)


@pytest.mark.parametrize("bet", BETS)
def test_whatever_came_before_the_next_payoff_is_one_on_average_and_payoffs_multiply_to_the_wealth(bet):
    draw, state, product = np.random.default_rng(3), first_bet(bet), 1.0
    for _ in range(30):
        paid = [state.settle(rank, 20)[0] for rank in range(1, 21)]
        assert np.mean(paid) == pytest.approx(1, rel=1e-9)
        rank = int(draw.integers(1, 21)) if draw.random() < 0.5 else 1
        product *= paid[rank - 1]
        assert state.payoffs(20) == pytest.approx(np.array(paid), rel=1e-9)
        _, state = state.settle(rank, 20)
        assert np.exp(state.log_wealth) == pytest.approx(product)
        assert first_bet(bet).restore(state.tensor()).settle(2, 20)[0] == pytest.approx(state.settle(2, 20)[0])


@pytest.mark.parametrize("bet", BETS)
def test_ever_a_false_alarm_in_100_batches_is_rarer_than_alpha(bet):
    """100 streams of uniform ranks at alpha = .1, three looks (of one rank, as dependent as can be), 3 standard errors."""
    draw, alarms = np.random.default_rng(11), 0
    for _ in range(100):
        looks, best = first_looks((1, 4, 8), bet), 0.0
        for batch, rank in enumerate(draw.integers(1, 41, size=100).tolist()):
            looks = tuple(look.settle(rank, 40, 10)[1] if look.closes(batch + 1, 1) else look for look in looks)
            best = max(best, wealth_of(looks))
        alarms += best >= 10
    assert alarms <= most_rejections(100, 0.1)


@pytest.mark.parametrize("bet", BETS)
@pytest.mark.parametrize(("total", "limit"), [(7, 2.0), (40, 20.0), (200, 1000.0)])
def test_no_payoff_takes_the_wealth_above_its_limit_and_the_mean_over_all_ranks_stays_one(bet, total, limit):
    """Whatever came before: ranks at random, many of them small, up to the limit and beyond; each rank's payoff written out."""
    draw, (look,), reached = np.random.default_rng(total), first_looks((1,), bet), 0
    for _ in range(12):
        paid = np.array([look.settle(rank, total, limit)[0] for rank in range(1, total + 1)])
        plain = np.array([look.bet.settle(rank, total)[0] for rank in range(1, total + 1)])
        assert paid.mean() == pytest.approx(1, rel=1e-8)
        if look.wealth < limit:
            assert look.wealth * paid.max() <= limit * (1 + 1e-8)
            assert (paid >= np.minimum(plain, paid.max()) * (1 - 1e-12)).all()
        else:
            reached += 1
            assert paid == pytest.approx(plain)
        _, look = look.settle(max(1, int(total * draw.random() ** 4)), total, limit)
    assert reached


def test_cut_payoffs_are_the_solution_of_their_equation():
    """By bisection, for payoffs that come to the cut in one cell, in several and in none."""
    payoffs = first_bet("power").payoffs(200)
    for most in (1.01, 1.5, 4.0, 20.0, 1000.0):
        low, high = 1.0, 1e6
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if np.minimum(middle * payoffs, most).mean() > 1 else (middle, high)
        assert float(boost(payoffs, most)) == pytest.approx(low, rel=1e-6)


@pytest.mark.parametrize(("quiet", "total"), [(0, 10_000), (10, 10_000), (50, 100_000)])
def test_one_batch_of_the_smallest_pvalue_raises_the_alarm_at_once(quiet, total):
    """Early in a stream 1e-4 is enough, later it takes less: ordinary batches before it, the bet and the looks of a monitor."""
    look = first_looks((1, 4, 8), "adaptive")[0]
    for rank in np.random.default_rng(quiet).integers(total // 20, total - total // 20, quiet).tolist():
        look = look.settle(rank, total, 20)[1]
    assert look.wealth < 20 <= look.settle(1, total, 20)[1].wealth


@pytest.mark.parametrize("bet", BETS)
def test_the_wealth_of_many_streams_in_arrays_is_that_of_the_looks(bet):
    """What the long runs measure is what a monitor does: 30 blocks of 4, some with small ranks, until the limit."""
    ranks = np.random.default_rng(4).integers(1, 41, (8, 30)) ** 2 // 40 + 1
    expected = []
    for row in ranks.tolist():
        look, best = first_looks((1, 4), bet)[1], 0.0
        for rank in row:
            look = look.settle(rank, 41, 20)[1] if best < 20 else look
            best = max(best, look.wealth)
        expected.append(best)
    assert largest_wealth(bet, ranks, np.full(30, 41), 4, 0.2) == pytest.approx(np.maximum(expected, 0.2))
    assert min(expected) < 20 <= max(expected)


@pytest.mark.parametrize("rows", [20, 80])
def test_the_delay_is_measured_with_the_library_s_test(rows):
    """The statistic in arrays, pairs looked up or multiplied out, is that of ``"median"``; each row is drawn equally often."""
    draw = np.random.default_rng(rows)
    x, y = draw.normal(size=(60, 3)), draw.normal(0.5, 1, size=(rows, 3))
    result = two_sample_test(x, y, method="median", scale="standard", n_permutations=499, rng=0)
    gram = median_gram(np.concatenate([x, y]))
    observed = squared_mmds(gram, np.arange(60, 60 + rows, dtype=np.int32)[None])[0]
    assert observed == pytest.approx(result.statistic, abs=1e-6)
    drawn = np.sort(subsets(2000, 60 + rows, rows, draw), axis=1)
    assert (np.diff(drawn, axis=1) > 0).all()
    counts = np.bincount(drawn.ravel(), minlength=60 + rows)
    share = rows / (60 + rows)
    assert np.abs(counts - 2000 * share).max() <= 4 * np.sqrt(2000 * share * (1 - share))
    nulls = squared_mmds(gram, drawn.astype(np.int32))
    assert nulls.mean() == pytest.approx(result.null_distribution.mean(), abs=5 * nulls.std() / np.sqrt(499))


def test_saffron_is_the_papers_formula_and_changes_no_verdict():
    """Levels by the definition of Ramdas et al. (2018), algorithm 1, with all sums written out."""
    draw = np.random.default_rng(0)
    pvalues = np.where(draw.random(300) < 0.2, draw.random(300) * 1e-4, draw.random(300))
    gamma = np.arange(1, 400) ** -1.6 / 2.2857656
    state, verdicts = Saffron(0.1), []
    for t, p in enumerate(pvalues):
        candidates = pvalues[:t] <= 0.5
        taus = [i for i, one in enumerate(verdicts) if one]
        level = 0.05 * gamma[t - candidates.sum()]
        for j, tau in enumerate(taus):
            level += (0.05 if j == 0 else 0.1) * gamma[t - tau - 1 - candidates[tau + 1 :].sum()]
        assert state.level == pytest.approx(min(0.5, 0.5 * level))
        found, state = state.decide(p)
        verdicts.append(found)
    assert 30 < sum(verdicts) < 80


def test_saffron_finds_few_that_are_none():
    """The mean share of false ones among those found, over 200 streams, within 3 standard errors of the rate."""
    draw, shares = np.random.default_rng(5), []
    for _ in range(200):
        null = draw.random(100) < 0.8
        state, found = Saffron(0.1), []
        for p in np.where(null, draw.random(100), draw.random(100) * 1e-3):
            one, state = state.decide(float(p))
            found.append(one)
        shares.append((null & found).sum() / max(1, sum(found)))
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(200)


def test_a_change_raises_an_alarm_that_stays_and_says_since_when():
    monitor, answers = watch(12, change=6)
    first = next(i for i, answer in enumerate(answers) if answer.alarm)
    assert 6 <= first <= 8
    assert all(answer.alarm for answer in answers[first:])
    assert not any(answer.alarm or answer.since for answer in answers[:first])
    assert (answers[-1].since.name, answers[-1].since.number) == ("day 6", 7)
    assert max(answers[-1].since.evidence, key=answers[-1].since.evidence.get) == 7
    assert monitor.alarm_
    quiet = [monitor.update(np.random.default_rng(i).normal(size=(30, 2))) for i in range(3)]
    assert all(answer.alarm for answer in quiet)
    assert "day 6" in str(answers[-1])


def test_since_is_the_start_of_the_best_run():
    ranks = [(500, 1000), (30, 1000), (700, 1000), (800, 1000), (1, 1000), (4, 1000), (2, 1000)]
    assert estimate([f"b{i}" for i in range(7)], range(7), ranks).number == 4


def test_answers_repeat_with_the_seed_and_explain_where():
    (_, ours), (_, theirs) = watch(8, change=4), watch(8, change=4)
    assert [answer.looks[-1].rank for answer in ours] == [answer.looks[-1].rank for answer in theirs]
    assert [answer.wealth for answer in ours] == [answer.wealth for answer in theirs]
    assert {column.name for column in ours[-1].explain(max_rows=100).columns} == {"0", "1"}
    assert [look.batches for look in ours[-1].looks] == [1, 4, 8]
    other = watch(8, change=4, seed=1)[1]
    assert [answer.pvalue for answer in other] != [answer.pvalue for answer in ours]


def test_acknowledged_the_new_state_is_the_reference():
    monitor, answers = watch(10, change=5)
    monitor.acknowledge()
    assert (monitor.alarm_, monitor.wealth_, monitor.episode_) == (False, 8 / 11, 1)
    assert set(monitor._state.past.numbers) == set(range(answers[-1].since.number, 11))
    data = np.random.default_rng(9)
    assert not any(monitor.update(data.normal(1.5, 1, size=(30, 2))).alarm for _ in range(3))
    later = [monitor.update(data.normal(size=(30, 2)), f"back {i}") for i in range(4)]
    assert later[-1].alarm
    assert later[-1].since.name == "back 0"


def test_dismissed_the_past_stays_and_evidence_starts_anew():
    monitor, _ = watch(10, change=5)
    rows = monitor._state.past.table.rows
    monitor.dismiss()
    assert (monitor.alarm_, monitor.wealth_, monitor.episode_, monitor._state.past.table.rows) == (False, 8 / 11, 1, rows)
    assert monitor.update(np.random.default_rng(9).normal(size=(30, 2))).number == 11


def test_without_an_alarm_there_is_nothing_to_dismiss_and_the_evidence_stays():
    monitor, answers = watch(2)
    with pytest.raises(InputError, match="no alarm to dismiss"):
        monitor.dismiss()
    assert (monitor.wealth_, monitor.episode_) == (answers[-1].wealth, 0)


def test_a_reference_of_ones_own_can_be_acknowledged_without_an_alarm():
    monitor, _ = watch(2)
    with pytest.raises(InputError, match="no alarm"):
        monitor.acknowledge()
    monitor.acknowledge(np.random.default_rng(0).normal(5, 1, size=(50, 2)))
    assert not monitor.update(np.random.default_rng(1).normal(5, 1, size=(30, 2))).alarm


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_tiny_batches_accumulate_evidence(rows):
    monitor, answers = watch(48, change=16, shift=3.0, rows=rows)
    assert not answers[15].alarm
    assert answers[-1].alarm
    assert monitor.number_ == 48


def test_a_batch_of_one_row_is_called_one_row():
    _, (answer,) = watch(1, rows=1)
    assert str(answer).endswith(", 1 row")


def test_what_is_kept_is_bounded():
    monitor, _ = watch(40, reference=50, past_rows=80, looks=(1, 2), rows=10)
    assert monitor._state.past.table.rows == 80
    monitor.update(np.random.default_rng(0).normal(size=(500, 2)))
    assert monitor._state.past.table.rows <= 80 + 500
    big = DriftMonitor(**CHEAP, batch_rows=50, past_rows=60).fit(np.zeros((100, 1)))
    assert big.update(np.zeros((300, 1))).rows == 50


def test_data_frames_new_categories_and_missing_values():
    import polars as pl

    draw = np.random.default_rng(1)

    def frame(rows, colours, gaps=0):
        sizes = draw.normal(size=rows)
        sizes[:gaps] = np.nan
        return pl.DataFrame({"size": sizes, "colour": draw.choice(colours, rows)})

    monitor = DriftMonitor(**CHEAP, missing="impute").fit(frame(100, ["red", "blue"]))
    monitor.update(frame(40, ["red", "blue"], gaps=2))
    answers = [monitor.update(frame(40, ["red", "violet"])) for _ in range(3)]
    assert "violet" in " ".join(answers[0].notes)
    assert answers[-1].alarm
    with pytest.raises(InputError, match="lacks"):
        monitor.update(frame(5, ["red"]).drop("size"))
    assert monitor.number_ == 4
    strict = DriftMonitor(**CHEAP).fit(frame(50, ["red"]))
    with pytest.raises(InputError, match="missing"):
        strict.update(frame(1, ["red"], gaps=1))
    assert strict.number_ == 0


GAP, FULL = [np.nan, 0.0], [0.5, 0.0]


@pytest.mark.parametrize(
    ("missing", "rows", "sentence"),
    [
        ("error", [GAP, FULL], "fit a new monitor with missing='drop', which drops them"),
        ("error", [GAP], "fit a new monitor with missing='drop', which drops them"),
        ("drop", [GAP], "at least 1 row without missing values. The batch has 0; leave it out, or fit .* missing='impute'"),
        ("drop", np.empty((0, 2)), "The batch must have at least 1 row. Got 0"),
        ("error", np.empty((0, 2)), "The batch must have at least 1 row. Got 0"),
    ],
)
def test_a_batch_that_leaves_nothing_to_test_is_refused_with_what_helps(missing, rows, sentence):
    monitor = watch(0, missing=missing)[0]
    with pytest.raises(InputError, match=sentence):
        monitor.update(np.array(rows))
    assert monitor.number_ == 0
    with pytest.raises(InputError, match="fit a new monitor with" if len(rows) > 1 else "must have at least 2 rows. Got"):
        monitor.acknowledge(np.array(rows))


def test_one_row_that_is_left_of_two_is_tested():
    answer = watch(0, missing="drop")[0].update(np.array([GAP, FULL]))
    assert (answer.rows, answer.notes) == (1, ("1 of 2 rows of the batch dropped for missing values",))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"looks": (2, 8)}, "looks"),
        ({"looks": (1, 8, 12)}, "looks"),
        ({"looks": ()}, "looks"),
        ({"bet": "all in"}, "bet"),
        ({"alpha": 1.5}, "alpha"),
        ({"fdr": 0}, "fdr"),
        ({"past_rows": 1}, "past_rows"),
        ({"method": MMDAgg()}, "exact ranking"),
        ({"method": SplitTest(n_splits=3)}, "exact ranking"),
    ],
)
def test_wrong_parameters_are_refused_when_fitted(options, word):
    with pytest.raises(CpmmdError, match=word):
        DriftMonitor(**options).fit(np.zeros((10, 1)))


def test_wealth_adds_up_so_that_no_alpha_is_out_of_reach():
    monitor, answers = watch(12, change=2, alpha=1e-5, n_permutations=99)
    assert monitor.alarm_
    assert answers[-1].wealth >= 1e5 > answers[2].wealth


def test_batches_are_read_as_those_of_a_detector():
    """Columns that are not compared may hold anything, and numbers may come as text."""
    import polars as pl

    rows = np.random.default_rng(0).normal(size=(20, 2))
    named = DriftMonitor(**CHEAP).fit(pl.DataFrame(rows, schema=["u", "v"]))
    answer = named.update(pl.DataFrame({"u": rows[:5, 0], "v": rows[:5, 1], "extra": [[1]] * 5}))
    assert "ignored: 'extra'" in answer.notes[0]
    assert "text converted" in DriftMonitor(**CHEAP).fit(rows).update(rows[:5].astype(str)).notes[0]


def test_it_must_be_fitted_first():
    with pytest.raises(InputError, match="fit"):
        DriftMonitor().update(np.zeros((3, 1)))
    with pytest.raises(InputError, match="fit"):
        DriftMonitor().key(np.zeros((3, 1)), "monday")
