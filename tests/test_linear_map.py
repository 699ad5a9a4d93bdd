"""Linear maps: explicit oracles for kernel and gradient, the rank, files, what the map looks at, level, what it finds."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from helpers import NULLS, assert_level, null_pvalues

torch = pytest.importorskip("torch")

from cpmmd import (  # noqa: E402
    Ascent,
    Bandwidth,
    ComplexityPenalized,
    CpmmdError,
    DriftDetector,
    LinearMap,
    Plain,
    Ratio,
    SplitTest,
    load_kernel,
    save_kernel,
    two_sample_test,
)
from cpmmd.data.preparation import PreparedPool  # noqa: E402
from cpmmd.explain.explanation import _map_notes  # noqa: E402
from cpmmd.kernels.deep.feature_kernel import column_scales  # noqa: E402
from cpmmd.kernels.linear_map import LinearMapKernel  # noqa: E402
from cpmmd.kernels.scaled import ScaledKernel  # noqa: E402
from cpmmd.selection.ascent import AscentSelector, _Batches, _evaluate, ascend  # noqa: E402
from cpmmd.statistics.columns import DataColumn  # noqa: E402

FORMS = {"full": LinearMap(), "diagonal": LinearMap(diagonal=True), "low rank": LinearMap(rank=2)}
every_form = pytest.mark.parametrize("form", FORMS)
DATA = np.random.default_rng(5)
X, Y = DATA.normal(size=(40, 5)), DATA.normal([0, 0.9, 0, 0, 0], 1, size=(40, 5))
TRAIN = PreparedPool(np.vstack([X, Y]) * [1, 10, 0.1, 1, 1] + [0, 50, 0, -3, 0], 40)
QUICK = Ascent(steps=30, learning_rate=0.02)


def trained(family, train=TRAIN, criterion=Plain(), options=QUICK):  # noqa: B008 - frozen
    return AscentSelector(family, options).select(train, criterion, np.random.default_rng(0)).kernel


def explicit_gram(kernel, rows):
    """exp(-|W x - W y|^2 / 2), one pair after the other, W on rows as they come."""
    return np.array([[np.exp(-0.5 * np.sum((kernel.matrix @ (x - y)) ** 2)) for y in rows] for x in rows])


@every_form
def test_the_kernel_is_the_gaussian_of_mapped_rows(form):
    kernel = trained(FORMS[form])
    rows = TRAIN.matrix[::4]
    np.testing.assert_allclose(kernel.gram(rows), explicit_gram(kernel, rows), rtol=1e-9, atol=1e-12)
    assert kernel.lipschitz == pytest.approx(np.linalg.svd(kernel.matrix, compute_uv=False)[0])


def test_a_diagonal_map_is_a_bandwidth_for_each_column():
    # Automatic relevance determination: the product over columns of Gaussians, each with the bandwidth 1 / |W_jj|.
    kernel = trained(FORMS["diagonal"])
    rows, bandwidths = TRAIN.matrix[::4], 1 / np.abs(np.diag(kernel.matrix))
    product = np.ones((len(rows), len(rows)))
    for j, bandwidth in enumerate(bandwidths):
        product *= np.exp(-0.5 * ((rows[:, None, j] - rows[None, :, j]) / bandwidth) ** 2)
    np.testing.assert_allclose(kernel.gram(rows), product, rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(kernel.matrix - np.diag(np.diag(kernel.matrix))) == 0


def test_before_training_it_is_the_median_bandwidth():
    standard = (TRAIN.matrix - TRAIN.matrix.mean(axis=0)) / TRAIN.matrix.std(axis=0)
    median = np.median(np.linalg.norm(standard[:, None] - standard[None], axis=2)[np.triu_indices(80, 1)])
    for form in ("full", "diagonal"):
        kernel = trained(FORMS[form], options=Ascent(steps=0, dtype="float64"))
        np.testing.assert_allclose(kernel.gram(TRAIN.matrix), ScaledKernel(Bandwidth(), median).gram(standard), rtol=1e-6)
    start = trained(FORMS["low rank"], options=Ascent(steps=0, dtype="float64")).weight
    np.testing.assert_allclose(start @ start.T, np.eye(2) * (5 / 2) / median**2, rtol=1e-6, atol=1e-12)


@every_form
@pytest.mark.parametrize("criterion", [Plain(), Ratio(), ComplexityPenalized(c1=0.3)], ids=lambda c: type(c).__name__)
def test_gradients_agree_with_finite_differences(form, criterion):
    problem = FORMS[form].trainable(TRAIN, torch.float64, "cpu")
    generator = torch.Generator().manual_seed(0)
    (start,) = problem.initialise([1]).values()
    # Away from the start, where all singular values are the same and the norm has no gradient.
    weight = (start + 0.1 * torch.randn(start.shape, generator=generator, dtype=start.dtype)).requires_grad_()
    rows, weights = _Batches(problem.inputs(), TRAIN.labels[None], 10_000, np.random.default_rng(0)).whole

    def value(at):
        return _evaluate(problem, {"weight": at}, rows, weights, criterion)["criterion"].sum()

    value(weight).backward()
    for _ in range(3):
        direction = torch.randn(start.shape, generator=generator, dtype=start.dtype)
        numeric = float(value(weight.detach() + 1e-5 * direction) - value(weight.detach() - 1e-5 * direction)) / 2e-5
        assert float((weight.grad * direction).sum()) == pytest.approx(numeric, rel=2e-4, abs=1e-8)


@pytest.mark.parametrize("columns", [40, 300])
def test_the_spectral_norm_agrees_with_svd_along_a_run(columns, monkeypatch):
    # Both sides of the largest that is decomposed exactly; a map starts with all singular values the same.
    rng = np.random.default_rng(0)
    train = PreparedPool(np.vstack([rng.normal(size=(30, columns)), rng.normal(0.4, 1, size=(30, columns))]), 30)
    problem = LinearMap().trainable(train, torch.float32, "cpu")
    inner, errors = problem.lipschitz, []

    def checked(parameters):
        answer = inner(parameters)
        exact = torch.linalg.matrix_norm(parameters["weight"].detach().double(), 2)
        errors.append(float((answer[0].detach() / exact - 1).abs().max()))
        return answer

    monkeypatch.setattr(problem, "lipschitz", checked)
    options = Ascent(steps=20)
    ascend(problem, train.labels[None], ComplexityPenalized(c1=0.05), options, [5], np.random.default_rng(0), stage="training")
    assert len(errors) == 21
    assert max(errors) < 1e-4


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_the_rank_is_kept(rank):
    kernel = trained(LinearMap(rank=rank))
    assert kernel.weight.shape == (rank, 5)
    assert np.linalg.matrix_rank(kernel.matrix) == rank


def test_a_rank_beyond_the_columns_is_a_full_map():
    np.testing.assert_array_equal(trained(LinearMap(rank=9)).weight, trained(LinearMap()).weight)
    assert LinearMap(rank=9).proxy_constant(5, 80) == LinearMap().proxy_constant(5, 80) == 5
    assert LinearMap(rank=2).proxy_constant(5, 80) == 2


@every_form
def test_units_of_single_columns_do_not_matter(form):
    test = SplitTest(FORMS[form], ComplexityPenalized(n_calibration=2), ascent=QUICK)
    units, origin = np.array([1e6, 1e-6, 1, 3, 100]), np.array([0, 1, 2e3, 0, -5])
    one = two_sample_test(X, Y, method=test, rng=0)
    other = two_sample_test(X * units + origin, Y * units + origin, method=test, rng=0)
    assert other.pvalue == one.pvalue
    np.testing.assert_allclose(other.kernel.column_weights, one.kernel.column_weights, rtol=1e-3)


@every_form
def test_the_trained_kernel_never_saw_the_test_half(form):
    test = SplitTest(FORMS[form], ComplexityPenalized(n_calibration=2), ascent=QUICK)
    result = two_sample_test(X, Y, method=test, rng=3)
    pool = np.vstack([X, Y])
    pool[result.evidence.tested] = 77.0
    other = two_sample_test(pool[:40], pool[40:], method=test, rng=3)
    np.testing.assert_array_equal(result.kernel.matrix, other.kernel.matrix)
    assert result.calibration.c1 == other.calibration.c1


def test_constant_columns_do_no_harm():
    x, y = np.column_stack([X, np.full(40, 7.0)]), np.column_stack([Y, np.full(40, 7.0)])
    for family in FORMS.values():
        result = two_sample_test(x, y, method=SplitTest(family, Plain(), ascent=QUICK), rng=0)
        assert np.isfinite(result.kernel.matrix).all()


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 1e-300, 1e300, -7.3e9, 0.0])
def test_constant_columns_have_the_scale_of_the_others_and_no_weight(constant):
    values = DATA.normal(size=(61, 1))
    centre, scale = column_scales(np.column_stack([values, np.full(61, constant)]))
    assert scale == pytest.approx([values.std(), values.std()])
    assert centre[1] == pytest.approx(constant)
    x, y = np.column_stack([X, np.full(40, constant)]), np.column_stack([Y, np.full(40, constant)])
    kernel = trained(FORMS["diagonal"], PreparedPool(np.vstack([x, y]), 40))
    assert kernel.lipschitz < 100
    assert kernel.column_weights[5] == 0
    assert kernel.column_weights.sum() == pytest.approx(1)


def test_values_that_differ_by_rounding_are_constant_and_small_ones_are_not():
    rounded = np.where(np.arange(40) % 2, 0.1 + 0.2, 0.3)
    tiny, far = 1e-200 * DATA.normal(size=40), 1e9 + 1e-3 * DATA.normal(size=40)
    _, scale = column_scales(np.column_stack([rounded, tiny, far]))
    assert scale[1:] == pytest.approx([tiny.std(), far.std()])
    assert scale[0] == pytest.approx(scale[1:].mean())


def map_notes(kernel, columns):
    """The notes on a map of plain columns, as if the test had rejected."""
    outcome = SimpleNamespace(reject=True, kernel=kernel)
    return _map_notes(outcome, tuple(DataColumn(str(j), f"column {j}", "number", (j,), (j,)) for j in range(columns)))


def diagonal(*weights, varying=None):
    count = len(weights)
    seen = np.ones(count, bool) if varying is None else np.array(varying)
    return LinearMapKernel(FORMS["diagonal"], np.diag(np.sqrt(weights)), np.zeros(count), np.ones(count), seen)


def test_the_note_is_left_out_where_no_column_stands_out():
    assert map_notes(diagonal(1.0), 1) == []
    assert map_notes(diagonal(0.34, 0.33, 0.33), 3) == []
    assert map_notes(diagonal(0.5, 0.5, varying=[True, False]), 2) == []
    (note,) = map_notes(diagonal(0.7, 0.1, 0.1, 0.1, varying=[True, True, True, False]), 4)
    assert note.endswith("78% of its weight is on column 0, 11% is on column 1, 11% is on column 2 (uniform weights: 33% each)")
    assert "of 1 column," in str(diagonal(1.0))


def test_certificate_has_the_spectral_norm_and_d_out():
    result = two_sample_test(X, Y, method=SplitTest(LinearMap(rank=2), Plain(), ascent=QUICK), rng=0)
    norms = result.selection.path.spectral_product
    train = np.setdiff1d(np.arange(80), result.evidence.tested)
    rows = np.vstack([X, Y])[train]
    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    assert result.certificate.complexity == pytest.approx(norms.max() * np.linalg.norm(standard) / 40, rel=1e-4)


def test_the_map_looks_where_the_samples_differ():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(150, 6)), rng.normal([0, 0, 1.5, 0, 0, 0], 1, size=(150, 6))
    for family in (LinearMap(diagonal=True), LinearMap(), LinearMap(rank=1)):
        result = two_sample_test(x, y, method=SplitTest(family), rng=0)
        assert int(result.kernel.column_weights.argmax()) == 2
        assert result.kernel.column_weights.sum() == pytest.approx(1)
        assert "column 2" in next(note for note in result.explain().notes if "trained map" in note)


def test_weights_of_a_category_are_added_up_and_silence_where_nothing_was_found():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    names = np.array(["red", "green", "blue"], dtype=object)
    x = pandas.DataFrame({"size": rng.normal(size=80), "colour": names[rng.integers(0, 2, 80)]})
    y = pandas.DataFrame({"size": rng.normal(size=80), "colour": names[rng.integers(1, 3, 80)]})
    test = SplitTest(LinearMap(diagonal=True), ascent=Ascent(steps=40))
    found = two_sample_test(x, y, method=test, rng=0)
    assert found.reject
    share = found.kernel.column_weights[1:].sum()
    note = next(note for note in found.explain().notes if "trained map" in note)
    assert f"{share:.0%} of its weight is on colour" in note
    silent = two_sample_test(x, x.sample(frac=1, random_state=0), method=test, rng=0)
    assert not silent.reject
    assert not any("trained map" in note for note in silent.explain().notes)


@every_form
def test_saved_maps_answer_the_same_without_torch(form, tmp_path):
    kernel = trained(FORMS[form])
    save_kernel(kernel, tmp_path / "kernel")
    back = load_kernel(tmp_path / "kernel")
    assert isinstance(back, LinearMapKernel)
    np.testing.assert_array_equal(back.gram(X, Y), kernel.gram(X, Y))
    assert back == kernel
    assert hash(back) == hash(kernel)
    assert back != trained(FORMS[form], options=Ascent(steps=1))
    with pytest.raises(CpmmdError, match="trained on, 5"):
        back.gram(X[:, :4])
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import cpmmd, numpy\n"
        f"print(float(cpmmd.load_kernel({str(tmp_path / 'kernel')!r}).gram(numpy.zeros((1, 5)), numpy.ones((1, 5)))[0, 0]))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(out) == pytest.approx(float(kernel.gram(np.zeros((1, 5)), np.ones((1, 5)))[0, 0]))


def test_what_is_no_kernel_is_not_saved(tmp_path):
    result = two_sample_test(X, Y, method="median", n_permutations=19, rng=0)
    for wrong, got in ((result, "a TestResult"), ("kernel", "a str"), (None, "None")):
        with pytest.raises(CpmmdError, match=rf"Only a kernel can be saved\. Got {got}.*; pass result\.kernel"):
            save_kernel(wrong, tmp_path / "kernel")
    assert not (tmp_path / "kernel").exists()


def test_a_map_of_other_columns_says_so():
    kernel = trained(FORMS["full"])
    with pytest.raises(CpmmdError, match=r"was trained on, 5\. Got 3"):
        DriftDetector(rng=0).fit(X[:, :3], kernel=kernel)


def test_a_detector_keeps_its_map_in_a_file(tmp_path):
    detector = DriftDetector(method=SplitTest(LinearMap(), Plain(), ascent=QUICK), rng=0).fit(X, example=Y)
    detector.save(tmp_path / "detector")
    assert DriftDetector.load(tmp_path / "detector").test(Y[:20]).pvalue == detector.test(Y[:20]).pvalue


def test_a_damaged_description_is_refused():
    kernel = trained(FORMS["low rank"])
    with pytest.raises(CpmmdError, match="not those of a linear map"):
        LinearMap.restore({**kernel.to_dict(), "options": {"rank": 3, "diagonal": False}}, kernel.tensors(), None)


@pytest.mark.parametrize(
    "make",
    [lambda: LinearMap(rank=0), lambda: LinearMap(rank=2, diagonal=True), lambda: LinearMap(diagonal="yes")],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(CpmmdError):
        make()


@pytest.mark.parametrize(("form", "null"), [("full", "unequal"), ("diagonal", "discrete")])
def test_level(form, null):
    # 300 repetitions; at alpha = .05 the bound is 15 + 3 * 3.77 = 26 rejections.
    test = SplitTest(FORMS[form], ComplexityPenalized(n_calibration=2), ascent=Ascent(steps=4, learning_rate=0.05))
    assert_level(null_pvalues(test, NULLS[null], 300, seed=61))


@pytest.mark.statistical
def test_level_as_it_is_trained():
    # 2000 repetitions of all hundred steps; at alpha = .05 the bound is 100 + 3 * 9.75 = 129 rejections.
    assert_level(null_pvalues(SplitTest(LinearMap(), ComplexityPenalized(n_calibration=3)), NULLS["unequal"], 2000, seed=62))
