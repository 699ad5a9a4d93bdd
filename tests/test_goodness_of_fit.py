"""Fit to a model: Stein kernels by hand, KSDAgg's own numbers, an exact null distribution, and models of every kind."""

import json
import math

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import KernelDensity

from cpmmd import CpmmdError, Density, TorchDensity, cite, goodness_of_fit_test
from cpmmd.models.model import read_model
from cpmmd.procedures import goodness_of_fit
from cpmmd.procedures.goodness_of_fit import KSDAGG_COUNT, ksdagg_bandwidths
from cpmmd.questions import goodness_of_fit as questions
from cpmmd.statistics.moments import hermite_means, mardia, whiten
from cpmmd.statistics.stein import Scored, SteinKernel, squared_ksd
from helpers import GOLDEN

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
AFTER_X = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws():
    """Each test has the same draws, whichever ran before it."""
    RNG.bit_generator.state = AFTER_X


KSD = json.loads((GOLDEN / "ksd.json").read_text())
KSD_DATA = np.load(GOLDEN / "ksd.npz")


def normal_score(rows):
    return -rows


# The Stein kernel.


def base(kernel, x, y):
    apart = float(((x - y) ** 2).sum())
    return (
        math.exp(-apart / (2 * kernel.bandwidth**2)) if kernel.base == "gaussian" else (1 + apart / kernel.bandwidth**2) ** -0.5
    )


def stein_by_differences(kernel, x, y, s, t, h=1e-4):
    """h(x, y) from its definition, derivatives of the base kernel by differences."""
    d, total = len(x), 0.0
    unit = np.eye(d) * h
    for j in range(d):
        over_x = (base(kernel, x + unit[j], y) - base(kernel, x - unit[j], y)) / (2 * h)
        over_y = (base(kernel, x, y + unit[j]) - base(kernel, x, y - unit[j])) / (2 * h)
        corners = [(a, b, base(kernel, x + a * unit[j], y + b * unit[j])) for a in (-1, 1) for b in (-1, 1)]
        both = sum(a * b * value for a, b, value in corners) / (4 * h * h)
        total += s[j] * t[j] * base(kernel, x, y) + s[j] * over_y + t[j] * over_x + both
    return total


def stein_by_sums(kernel, x, y, s, t):
    """The same in closed form, one coordinate after the other."""
    apart, g = sum((a - b) ** 2 for a, b in zip(x, y, strict=True)), kernel.bandwidth**-2
    if kernel.base == "gaussian":
        k = math.exp(-g * apart / 2)
        first, second = -g / 2 * k, g * g / 4 * k
    else:
        k = (1 + g * apart) ** -0.5
        first, second = -g / 2 * (1 + g * apart) ** -1.5, 3 / 4 * g * g * (1 + g * apart) ** -2.5
    total = 0.0
    for a, b, u, v in zip(x, y, s, t, strict=True):
        total += u * v * k + 2 * first * (a - b) * (v - u) - 2 * first - 4 * second * (a - b) ** 2
    return total


@pytest.mark.parametrize("kernel", [SteinKernel("imq", 0.7), SteinKernel("gaussian", 1.3)])
def test_stein_kernels_are_their_definition(kernel):
    rows, scores = RNG.normal(size=(12, 3)), RNG.normal(size=(12, 3))
    matrix = kernel.matrix(Scored(rows, scores))
    naive = [
        [stein_by_sums(kernel, x, y, s, t) for y, t in zip(rows, scores, strict=True)] for x, s in zip(rows, scores, strict=True)
    ]
    np.testing.assert_allclose(matrix, naive, rtol=1e-10, atol=1e-12)
    assert matrix[0, 5] == pytest.approx(stein_by_differences(kernel, rows[0], rows[5], scores[0], scores[5]), abs=1e-6)
    pairs = [naive[i][j] for i in range(12) for j in range(12) if i != j]
    assert squared_ksd(matrix) == pytest.approx(np.mean(pairs), rel=1e-10)


@pytest.mark.parametrize("kernel", [SteinKernel("imq", 0.7), SteinKernel("gaussian", 1.3)])
def test_a_stein_kernel_has_mean_zero_under_the_model(kernel):
    model = stats.gamma(5)
    score = read_model(model).scores

    def h(x):
        at = np.array([[x]])
        other = np.array([[3.0]])
        return float(kernel.matrix(Scored(at, score(at)), Scored(other, score(other)))[0, 0]) * model.pdf(x)

    assert integrate.quad(h, 0, 60, limit=200)[0] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("name", KSD)
def test_ksdagg_agrees_with_the_authors(name):
    x, scores = KSD_DATA[f"{name}_X"], KSD_DATA[f"{name}_score"]
    result = goodness_of_fit_test(x, Density(lambda _: scores), method="ksdagg", rng=0)
    ours = sorted(result.classes, key=lambda single: single.bandwidth)
    assert len(ours) == KSDAGG_COUNT
    for single, theirs in zip(ours, KSD[name]["tests"], strict=True):
        assert single.bandwidth == pytest.approx(theirs["bandwidth"], rel=1e-9)
        assert single.squared_ksd == pytest.approx(theirs["ksd"], rel=1e-9)
    if KSD[name]["reject_rate_10_seeds"] in (0, 1):
        assert result.decision == result.reject == bool(KSD[name]["reject"])
    assert ksdagg_bandwidths(x)[0] == 1 / x.shape[1]


def test_the_median_is_one_ksd():
    result = goodness_of_fit_test(X, normal_score, method="ksd-median", rng=0)
    (single,) = result.classes
    assert (
        single.squared_ksd
        == result.statistic
        == pytest.approx(squared_ksd(SteinKernel("imq", single.bandwidth).matrix(Scored(X, -X))))
    )


# Moments.


def test_moments_by_hand():
    z = whiten(RNG.exponential(size=(40, 3)) @ RNG.normal(size=(3, 3)))
    np.testing.assert_allclose(z.T @ z / 40, np.eye(3), atol=1e-12)
    skewness, kurtosis = mardia(z)
    assert skewness == pytest.approx(sum(float(a @ b) ** 3 for a in z for b in z) / 40)
    assert mardia(z[:8])[0] == pytest.approx(sum(float(a @ b) ** 3 for a in z[:8] for b in z[:8]) / 8)  # by pairs
    assert kurtosis == pytest.approx(np.mean([float(a @ a) ** 2 for a in z]))
    expected = [
        np.mean(np.polynomial.hermite_e.hermeval(z[:, 1], [0] * k + [1])) / math.sqrt(math.factorial(k)) for k in (1, 2, 3, 4)
    ]
    np.testing.assert_allclose(hermite_means(z)[:, 1], np.sqrt(40) * np.array(expected), atol=1e-12)


def test_normality_does_not_depend_on_units_order_or_place():
    x = RNG.exponential(size=(40, 3)) + 0.3 * RNG.normal(size=(40, 1))
    first = goodness_of_fit_test(x, "normal", rng=1, n_permutations=99)
    again = goodness_of_fit_test(1e3 + x[:, [2, 0, 1]] * [1e-6, 1e4, 2.0], "normal", rng=1, n_permutations=99)
    moments = [{c.name: c.score for c in r.classes if c.base is None} for r in (first, again)]
    assert moments[0] == pytest.approx(moments[1], rel=1e-6)


# The level. A rank among exchangeable data sets is uniform: of 200 draws, binomial bounds on each fifth of the ranks hold
# with probability above 1 - 1e-4 (5 x 2 tails at 4.2 standard deviations).


@pytest.mark.parametrize(
    ("model", "draw"),
    [
        ("normal", lambda r: 5 + r.normal(size=(12, 2)) @ np.array([[3.0, 1.0], [0.0, 0.1]])),
        ("gamma(2)", lambda r: r.gamma(2, size=10)),
        (stats.multivariate_t([0, 1], np.eye(2), df=3), lambda r: stats.multivariate_t([0, 1], np.eye(2), df=3).rvs(10, r)),
    ],
)
def test_the_rank_among_simulated_data_sets_is_uniform(model, draw, monkeypatch):
    for name, few in (("REFERENCE_ROWS", 100), ("MARGINAL_ROWS", 100), ("LANDMARKS", 10)):  # exact whatever they are
        monkeypatch.setattr(goodness_of_fit, name, few)
    data, count = np.random.default_rng(3), 200
    ranks = [goodness_of_fit_test(draw(data), model, rng=data, n_permutations=19).pvalue * 20 for _ in range(count)]
    found = np.bincount((np.array(ranks).round().astype(int) - 1) // 4, minlength=5)
    assert np.abs(found - count / 5).max() <= 4.2 * math.sqrt(count * 0.2 * 0.8)


# 300 draws: a level of .05 and 3.3 standard deviations are 27.
@pytest.mark.parametrize("score", [normal_score, lambda rows: -4 * rows / (3 + rows**2)])
def test_the_level_of_random_signs_in_short(score):
    data = np.random.default_rng(4)
    draw = (lambda: data.normal(size=(100, 1))) if score is normal_score else (lambda: data.standard_t(3, size=(100, 1)))
    rejected = sum(goodness_of_fit_test(draw(), score, rng=data, n_permutations=99).reject for _ in range(300))
    assert rejected <= 27


def chain(data, n, d=2, carry=0.9):
    found = np.empty((n, d))
    found[0] = data.normal(size=d)
    for i in range(1, n):
        found[i] = carry * found[i - 1] + math.sqrt(1 - carry**2) * data.normal(size=d)
    return found


def test_dependent_rows_need_blocks():
    data = np.random.default_rng(5)
    chains = [chain(data, 400) for _ in range(40)]
    rates = [
        np.mean([goodness_of_fit_test(x, normal_score, blocks=k, rng=0, n_permutations=99).reject for x in chains])
        for k in (1, 40)
    ]
    assert rates[0] > 0.3  # as if rows were independent
    assert rates[1] <= 0.15  # 40 draws: .05 and 3 standard deviations


def test_a_chain_that_has_not_converged_is_found():
    x = chain(np.random.default_rng(6), 3000)
    x[:, 0] = np.abs(x[:, 0])  # it never visits one half
    result = goodness_of_fit_test(x, normal_score, blocks="auto", rng=0)
    assert result.reject
    assert not result.exact
    assert result.blocks > 10
    assert result.columns[0].name == "0"
    assert result.explain().columns[0].words == "lies higher"


# Models.


def check_score(model, rows):
    """The gradient against differences of the density."""
    known = read_model(model)
    log = {"score_samples": lambda m: m.score_samples, "logpdf": lambda m: m.logpdf}
    density = next(make(model) for name, make in log.items() if hasattr(model, name))
    h = 1e-5
    for j in range(rows.shape[1]):
        step = h * np.eye(rows.shape[1])[j]
        expected = (np.ravel(density(rows + step)) - np.ravel(density(rows - step))) / (2 * h)
        np.testing.assert_allclose(known.scores(rows)[:, j], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "frozen",
    [
        *(stats.norm(1, 2), stats.expon(1, 3), stats.gamma(5, scale=5), stats.t(4, 1, 2), stats.beta(2, 3), stats.chi2(4)),
        *(stats.logistic(1, 2), stats.lognorm(0.5), stats.weibull_min(2), stats.skewnorm(3), stats.gumbel_r(1, 2)),
    ],
    ids=lambda frozen: frozen.dist.name,
)
def test_scipys_distributions(frozen):
    rows = frozen.rvs(size=(40, 1), random_state=np.random.default_rng(1))
    check_score(frozen, rows)
    known = read_model(frozen)
    z = known.to_normal(rows)
    np.testing.assert_allclose(stats.norm.cdf(z), frozen.cdf(rows), atol=1e-12)


def test_multivariate_models():
    rows = RNG.normal(size=(30, 2))
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    for frozen in (stats.multivariate_normal([1, 2], covariance), stats.multivariate_t([1, 2], covariance, df=5)):
        check_score(frozen, rows)
    z = read_model(stats.multivariate_normal([1, 2], covariance)).to_normal(RNG.multivariate_normal([1, 2], covariance, 20_000))
    np.testing.assert_allclose(np.cov(z.T), np.eye(2), atol=0.05)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_scikit_learns_mixtures(kind):
    data = np.vstack([RNG.normal(size=(100, 2)), RNG.normal(4, 2, size=(80, 2))])
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(data)
    check_score(model, data[::9])
    drawn = read_model(model).draw(20_000, 2, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.mean(axis=0), model.weights_ @ model.means_, atol=0.1)
    assert goodness_of_fit_test(drawn[:200], model, rng=0, n_permutations=39).pvalue > 0.05
    assert goodness_of_fit_test(drawn[:200] + np.array([0, 1]), model, rng=0, n_permutations=39).reject


def test_other_models_of_scikit_learn():
    data = np.vstack([RNG.normal(size=(100, 2)), RNG.normal(4, 2, size=(80, 2))])
    kde = KernelDensity(bandwidth=0.5).fit(data)
    check_score(kde, data[::9] + 0.1)
    assert not goodness_of_fit_test(read_model(kde).draw(100, 2, RNG), kde, rng=0, n_permutations=39).reject
    bayes = BayesianGaussianMixture(n_components=2, random_state=0).fit(data)
    mixture = GaussianMixture(2, random_state=0).fit(data)
    for name in ("weights_", "means_", "covariances_"):
        setattr(mixture, name, getattr(bayes, name))
    np.testing.assert_allclose(read_model(bayes).scores(data), read_model(mixture).scores(data))


def test_every_form_of_a_model_is_the_same_model():
    torch = pytest.importorskip("torch")

    def log_density(rows):
        return -(rows**2).sum(1) / 2

    class WithScore:
        def score(self, rows):
            return -rows

    forms = [
        normal_score,
        (log_density, normal_score),
        lambda rows: (log_density(rows), -rows),
        WithScore(),
        TorchDensity(log_density),
    ]
    found = {goodness_of_fit_test(X, form, rng=0).statistic for form in forms}
    assert max(found) == pytest.approx(min(found), rel=1e-6)
    distribution = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    assert goodness_of_fit_test(X, distribution, rng=0, n_permutations=39).exact
    independent = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    assert not goodness_of_fit_test(X, independent, rng=0, n_permutations=39).reject


def test_the_answer_does_not_depend_on_threads():
    for model in ("normal", normal_score, stats.multivariate_t([0, 0], df=4)):
        first, second = (goodness_of_fit_test(X, model, rng=0, n_permutations=49, n_jobs=k) for k in (1, 2))
        assert first.to_dict(null_distribution=True) == second.to_dict(null_distribution=True)


# Answers.


def test_the_explanation_says_what_differs():
    data = np.random.default_rng(8)
    x = np.column_stack([data.normal(size=300), data.normal(0.5, 1, 300), data.normal(0, 1.5, 300)])
    result = goodness_of_fit_test(x, stats.multivariate_normal(np.zeros(3), np.eye(3)), rng=0)
    words = {column.name: column.words for column in result.differing}
    assert words == {"1": "lies higher", "2": "is wider"}
    signed = goodness_of_fit_test(x, normal_score, rng=0)
    assert {column.name: column.words for column in signed.differing} == words
    skewed = goodness_of_fit_test(np.column_stack([x[:, 0], data.exponential(size=300)]), "normal", rng=0)
    assert (skewed.columns[0].name, skewed.columns[0].words) == ("1", "is skewed to the right")
    assert skewed.columns[0].above > 0.05 > skewed.columns[0].below
    assert "'normal'" in skewed.call
    assert "5% quantile" in str(skewed.explain())


def test_a_report_and_a_document(tmp_path):
    result = goodness_of_fit_test(X**2, "normal", rng=0, n_permutations=39)
    page = tmp_path / "page.md"
    result.report(page)
    assert "The data do not fit the model" in page.read_text()
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["rows"] == 60


def test_rows_that_the_model_cannot_produce_do_not_fit():
    assert goodness_of_fit_test(X[:, 0], "expon", rng=0, n_permutations=19).reject  # half of them below its support


def test_many_rows_are_drawn_from(monkeypatch):
    monkeypatch.setattr(questions, "MOST_ROWS", {True: 40, False: 50})
    for model, used in (("normal", 40), (normal_score, 50)):
        result = goodness_of_fit_test(X, model, rng=0, n_permutations=19)
        assert result.rows == used
        assert any("drawn at random" in note for note in result.notes)
    with pytest.raises(CpmmdError, match="thin the chain"):
        goodness_of_fit_test(X, normal_score, blocks=3)


def test_a_report_of_random_signs(tmp_path):
    page = tmp_path / "page.html"
    goodness_of_fit_test(X, normal_score, rng=0, n_permutations=99).report(page)
    assert "random signs have the right distribution for many rows" in page.read_text()


def test_every_answer_names_what_to_cite():
    assert "mardia1970measures" in cite(goodness_of_fit_test(X, "normal", rng=0, n_permutations=19))
    assert "schrab2022ksd" in cite(goodness_of_fit_test(X, normal_score, method="ksdagg", rng=0, n_permutations=99))
    assert "gorham2017measuring" in cite(goodness_of_fit_test(X, normal_score, method="ksd-median", rng=0, n_permutations=99))


# Input.


@pytest.mark.parametrize(
    ("x", "model", "message"),
    [
        (X, lambda rows: rows.sum(axis=1), "must come with its gradient"),
        (X[:, :1], lambda rows: np.full(len(rows), np.nan), "must be a finite number.*nan in row 0"),
        (X, (lambda rows: np.full(len(rows), np.nan), normal_score), "log-density must be a finite number"),
        (X, (lambda rows: (rows**2).sum(1), normal_score), "must be that of the log-density"),
        (X, lambda rows: rows[:, :1], "one column for each column"),
        (X, "gamma(5)", r"Gamma\(5\) has 1 column, and sample x has 2"),
        (X, stats.multivariate_normal(np.zeros(3)), "has 3 columns, and sample x has 2"),
        (X, "gama(5)", "Did you mean 'gamma'"),
        (X, "gamma(__import__('os').system('true'))", "numbers as parameters"),
        (X[:, 0], "gamma(-1)", "that gamma allows"),
        (X[:, 0], "gamma", "parameters of scipy.stats.gamma"),
        (X[:, 0], "poisson(3)", "discrete"),
        (X[:, 0], stats.poisson(3), "discrete"),
        (X[:, 0], stats.gamma, "must be frozen"),
        (X, GaussianMixture(2), "must be fitted"),
        (X, stats.multivariate_normal([0, 0], [[1, 1], [1, 1]], allow_singular=True), "full rank"),
        (X, stats.dirichlet([1, 2]), "may be frozen one-dimensional"),
        (X, 7, "must be a pair of functions"),
        (np.empty((0, 2)), "normal", "at least 2 rows"),
        (np.column_stack([X, np.ones(60)]), "normal", "Every column must vary.*2"),
        (np.column_stack([X, X.sum(axis=1)]), "normal", "sum of others.*0.*1.*2"),
        (np.where(X > 2, np.nan, X), "normal", "missing='drop'"),
        (X[:4], "normal", "at least 5 rows"),
        (X[:4], normal_score, "can never reject"),
    ],
)
def test_what_cannot_be_tested_gets_a_sentence(x, model, message):
    with pytest.raises(CpmmdError, match=message):
        goodness_of_fit_test(x, model, rng=0)


def test_options_that_do_not_go_together():
    with pytest.raises(CpmmdError, match="independent rows"):
        goodness_of_fit_test(X, "normal", blocks=5)
    with pytest.raises(CpmmdError, match="must be 'cp-stein'"):
        goodness_of_fit_test(X, "normal", method="ksdagg")
    with pytest.raises(CpmmdError, match="2 blocks can never reject"):
        goodness_of_fit_test(X, normal_score, blocks=30)
    assert goodness_of_fit_test(np.where(X > 2, np.nan, X), "normal", missing="drop", rng=0).rows < 60


def test_rounded_values_and_fitted_models_are_noticed():
    assert any("rounding" in note for note in goodness_of_fit_test(X.round(1), "normal", rng=0, n_permutations=19).notes)
    mixture = GaussianMixture(1).fit(X)
    assert any("fit it to others" in note for note in goodness_of_fit_test(X, mixture, rng=0, n_permutations=19).notes)
