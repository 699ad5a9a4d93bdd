"""Deep kernels: gradients, spectral norms, batched calibration, what is trained is what is tested."""

import re
import subprocess
import sys

import numpy as np
import pytest

from helpers import assert_level, null_pvalues

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from cpmmd import (  # noqa: E402
    Ascent,
    ComplexityPenalized,
    CpmmdError,
    Deep,
    Mixture,
    Plain,
    Ratio,
    SplitTest,
    load_kernel,
    save_kernel,
    two_sample_test,
)
from cpmmd.data.preparation import PreparedPool  # noqa: E402
from cpmmd.draws.labels import draw_labels  # noqa: E402
from cpmmd.errors import DegenerateKernelWarning  # noqa: E402
from cpmmd.kernels.deep.networks import SpectralNorms  # noqa: E402
from cpmmd.selection.ascent import AscentSelector, _Batches, _evaluate, ascend, stacked_mmd2, stacked_variance  # noqa: E402
from cpmmd.selection.values import Collapse  # noqa: E402
from cpmmd.statistics import mmd  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 6))
Y = np.random.default_rng(1).normal(0.7, 1, size=(40, 6))
SMALL = Deep(width=16, out=4)
QUICK = Ascent(steps=15)


def half(n=40):
    return PreparedPool(np.vstack([X, Y[:n]]), len(X))


FAMILIES = {
    "mlp": Deep(width=7, depth=2, out=3, activation="tanh"),
    "mixture": Mixture(Deep(width=6, out=3, activation="softplus"), epsilon=0.3),
    "module": Deep(module=nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("criterion", [Plain(), Ratio(), ComplexityPenalized(c1=0.3)], ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("n", [40, 25])
def test_gradients_agree_with_finite_differences(family, criterion, n):
    train = half(n)
    problem = FAMILIES[family].trainable(train, torch.float64, "cpu")
    parameters = {
        name: p.requires_grad_() for name, p in problem.initialise([1, 2] if n == 40 and criterion == Plain() else [1]).items()
    }
    labels = np.repeat(train.labels[None], len(next(iter(parameters.values()))), axis=0)
    rows, weights = _Batches(problem.inputs(), labels, 10_000, np.random.default_rng(0)).whole

    def value():
        return _evaluate(problem, parameters, rows, weights, criterion)["criterion"].sum()

    value().backward()
    generator = torch.Generator().manual_seed(0)
    for name, p in parameters.items():
        direction = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        step = 1e-5
        with torch.no_grad():
            p += step * direction
            up = value()
            p -= 2 * step * direction
            down = value()
            p += step * direction
        numeric = float((up - down) / (2 * step))
        assert float((p.grad * direction).sum()) == pytest.approx(numeric, rel=2e-4, abs=1e-8), name


def test_stacked_statistics_equal_the_numpy_ones():
    rng = np.random.default_rng(3)
    for m, n in ((12, 12), (9, 15)):
        z = rng.normal(size=(m + n, 2))
        K = np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(axis=2))
        w = np.arange(m + n) < m
        blocks = K[:m, :m], K[m:, m:], K[:m, m:]
        stack, weights = torch.as_tensor(K)[None], torch.as_tensor(np.stack([w, ~w], -1).astype(float))[None]
        assert float(stacked_mmd2(stack, weights)) == pytest.approx(mmd.unbiased_mmd2(*blocks), rel=1e-10)
        assert float(stacked_variance(stack, m)) == pytest.approx(mmd.variance(*blocks), rel=1e-10)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-4), (torch.float64, 1e-10)], ids=["single", "double"])
@pytest.mark.parametrize("init", ["torch", "kaiming"])
@pytest.mark.parametrize("criterion", [ComplexityPenalized(c1=0.01), ComplexityPenalized(c1=0.1), Plain(), Ratio()], ids=str)
def test_spectral_product_agrees_with_svd_along_a_run(init, criterion, dtype, error, monkeypatch):
    rng = np.random.default_rng(0)
    train = PreparedPool(np.vstack([rng.normal(size=(60, 20)), rng.normal(0.4, 1, size=(60, 20))]), 60)
    selector = AscentSelector(Deep(init=init), Ascent())
    problem = selector.family.trainable(train, dtype, "cpu")
    inner, errors = problem.lipschitz, []

    def checked(parameters):
        answer = inner(parameters)
        exact = torch.stack([torch.linalg.matrix_norm(parameters[f"weight{i}"].detach(), 2) for i in range(3)]).prod(dim=0)
        errors.append(float((answer[0].detach() / exact - 1).abs().max()))
        return answer

    monkeypatch.setattr(problem, "lipschitz", checked)
    ascend(problem, train.labels[None], criterion, Ascent(), [5], np.random.default_rng(0), stage="training")
    assert len(errors) == 101
    assert max(errors) < error


def test_spectral_norm_of_zero_and_single_matrices():
    norms = SpectralNorms()
    assert float(norms(torch.zeros(1, 4, 3))) == 0.0
    assert float(SpectralNorms()(torch.full((1, 1, 1), -2.5))) == pytest.approx(2.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_batched_calibration_equals_member_by_member(family):
    train = half()
    labels = draw_labels(train.size, train.m, 4, np.random.default_rng(0))
    options, seeds = Ascent(steps=40, dtype="float64"), [11, 12, 13, 14]

    def run(some_labels, some_seeds):
        problem = FAMILIES[family].trainable(train, torch.float64, "cpu")
        return ascend(problem, some_labels, Plain(), options, some_seeds, np.random.default_rng(0), stage="calibration")

    together = run(labels, seeds)
    for e in range(4):
        alone = run(labels[e : e + 1], seeds[e : e + 1])
        np.testing.assert_allclose(together.history["mmd2"][:, e], alone.history["mmd2"][:, 0], rtol=1e-5, atol=1e-9)
        for name, p in alone.best.items():
            torch.testing.assert_close(together.best[name][e], p[0], rtol=1e-5, atol=1e-8)


def test_gain_multiplies_the_starting_weights_of_every_layer():
    starts = [
        AscentSelector(Deep(width=16, out=4, gain=gain), Ascent(steps=0)).select(half(), Plain(), np.random.default_rng(0)).path
        for gain in (1.0, 1.5)
    ]
    assert starts[1].spectral_product[0] == pytest.approx(1.5**3 * starts[0].spectral_product[0], rel=1e-4)  # three layers


def test_the_best_iterate_of_all_steps_is_kept():
    selection = AscentSelector(SMALL, Ascent(steps=60)).select(half(), ComplexityPenalized(c1=0.5), np.random.default_rng(0))
    assert selection.criterion == selection.path.criterion.max()
    assert len(selection.path.criterion) == 61
    assert selection.path.steps.tolist() == list(range(61))
    assert selection.c1 == 0.5


@pytest.mark.parametrize("kernel", [SMALL, Mixture(SMALL)], ids=["deep", "mixture"])
def test_the_trained_kernel_is_the_tested_one_and_never_saw_the_test_half(kernel):
    test = SplitTest(kernel, ComplexityPenalized(n_calibration=2), ascent=QUICK)
    result = two_sample_test(X, Y, method=test, rng=3)
    pool = np.vstack([X, Y])
    rows = result.evidence.tested
    m = int((rows < 40).sum())
    K = result.kernel.gram(pool[rows])
    assert mmd.unbiased_mmd2(K[:m, :m], K[m:, m:], K[:m, m:]) == pytest.approx(result.statistic, rel=1e-9)
    pool[rows] = 77.0
    other = two_sample_test(pool[:40], pool[40:], method=test, rng=3)
    assert_same_kernel(result.kernel, other.kernel)
    assert result.calibration.c1 == other.calibration.c1


def assert_same_kernel(a, b):
    tensors = a.tensors(), b.tensors()
    assert tensors[0].keys() == tensors[1].keys()
    for name in tensors[0]:
        np.testing.assert_array_equal(tensors[0][name], tensors[1][name])


def test_training_leaves_the_initial_weights():
    selector = AscentSelector(SMALL, QUICK)
    trained = selector.select(half(), Plain(), np.random.default_rng(0)).kernel
    untrained = AscentSelector(SMALL, Ascent(steps=0)).select(half(), Plain(), np.random.default_rng(0)).kernel
    assert any(not torch.equal(p, untrained.parameters[name]) for name, p in trained.parameters.items())


def test_units_do_not_matter_to_the_mlp():
    test = SplitTest(SMALL, ComplexityPenalized(n_calibration=2), ascent=QUICK)
    one = two_sample_test(X, Y, method=test, rng=0)
    other = two_sample_test(1e5 * X + 3e5, 1e5 * Y + 3e5, method=test, rng=0)
    assert other.pvalue == one.pvalue
    assert other.kernel.lipschitz == pytest.approx(one.kernel.lipschitz / 1e5, rel=1e-3)


@pytest.mark.parametrize("method", ["cp", "liu"])
@pytest.mark.parametrize("unequal", [False, True])
def test_level_of_deep_tests(method, unequal):
    # 400 repetitions; at alpha = .05 the bound is 20 + 3 * 4.36 = 33 rejections.
    criterion = ComplexityPenalized(n_calibration=3) if method == "cp" else Ratio()
    test = SplitTest(Deep(width=8, out=3), criterion, ascent=Ascent(steps=6, learning_rate=0.05))

    def null(rng):
        return rng.normal(size=(24, 3)), rng.normal(size=(40 if unequal else 24, 3))

    assert_level(null_pvalues(test, null, 400, seed=31))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Deep(width=0),
        lambda: Deep(init="kaimin"),
        lambda: Deep(activation="sin"),
        lambda: Deep(module="net"),
        lambda: Deep(lipschitz=3),
        lambda: Mixture(epsilon=1.0),
        lambda: Mixture(features="deep"),
        lambda: Ascent(steps=-1),
        lambda: Ascent(dtype="float16"),
        lambda: SplitTest(ascent=Ascent()),
    ],
)
def test_bad_deep_parameters_are_refused(make):
    with pytest.raises(CpmmdError):
        make()


def test_degenerate_kernels_warn():
    net = nn.Linear(6, 2, bias=False)
    with torch.no_grad():
        net.weight.copy_(1e4 * torch.eye(2, 6))  # two columns, rows thousands of bandwidths apart
    with pytest.warns(DegenerateKernelWarning, match="identity"):
        result = two_sample_test(X, Y, method=SplitTest(Deep(module=net), Plain(), ascent=QUICK), rng=0)
    assert any("degenerate" in note for note in result.notes)


def test_collapse_flags_are_the_papers():
    assert Collapse(mmd2=0.005, variance=1e-10, size=200).flagged
    assert not Collapse(mmd2=0.02, variance=1e-10, size=200).flagged
    assert not Collapse(mmd2=0.005, variance=1e-4, size=200).flagged
    assert not Collapse(mmd2=1e-9, variance=1e-10, size=200).flagged
    result = two_sample_test(X, Y, method=SplitTest(SMALL, Ratio(), ascent=QUICK), rng=0)
    assert result.selection.to_dict()["collapse"]["collapsed"] is False


def test_large_halves_are_trained_in_batches():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 4)), rng.normal(0.8, 1, size=(500, 4))
    for criterion in (ComplexityPenalized(n_calibration=2), Ratio()):
        test = SplitTest(SMALL, criterion, ascent=Ascent(steps=20, batch_rows=64))
        assert two_sample_test(x, y, method=test, rng=0).reject


def test_wide_networks_calibrate_at_the_surrogate_width_and_say_so():
    quick = Ascent(steps=1)
    wide = two_sample_test(X, Y, method=SplitTest(Deep(width=500), ComplexityPenalized(n_calibration=1), ascent=quick), rng=0)
    assert any("calibrated at width 200" in note for note in wide.notes)
    narrow = Deep(width=500, surrogate_width=None)
    full = two_sample_test(X, Y, method=SplitTest(narrow, ComplexityPenalized(n_calibration=1), ascent=quick), rng=0)
    assert full.calibration.note == ""


def test_self_consistent_calibration_settles():
    criterion = ComplexityPenalized(n_calibration=3, calibration="self-consistent")
    result = two_sample_test(X, Y, method=SplitTest(SMALL, criterion, ascent=QUICK), rng=0)
    assert "self-consistent" in result.calibration.note
    assert result.calibration.c1 >= 0


def test_progress_is_reported():
    seen = []
    test = SplitTest(SMALL, ComplexityPenalized(n_calibration=2), ascent=Ascent(steps=5))
    two_sample_test(X, Y, method=test, rng=0, progress=lambda *step: seen.append(step))
    assert seen[0] == ("calibration", 0, 5)
    assert seen[-1] == ("training", 5, 5)


@pytest.mark.parametrize("kernel", [SMALL, Mixture(SMALL), Deep(module=nn.Linear(6, 3))], ids=["deep", "mixture", "module"])
def test_saved_kernels_answer_the_same(kernel, tmp_path):
    result = two_sample_test(X, Y, method=SplitTest(kernel, Plain(), ascent=QUICK), rng=0)
    save_kernel(result.kernel, tmp_path / "kernel")
    module = kernel.module if isinstance(kernel, Deep) else None
    loaded = load_kernel(tmp_path / "kernel", module=module)
    np.testing.assert_array_equal(loaded.gram(X, Y), result.kernel.gram(X, Y))
    assert loaded.lipschitz == pytest.approx(result.kernel.lipschitz)
    if module is not None:
        with pytest.raises(CpmmdError, match="Pass it as module="):
            load_kernel(tmp_path / "kernel")


def test_damaged_kernel_files_are_refused(tmp_path):
    result = two_sample_test(X, Y, method=SplitTest(SMALL, Plain(), ascent=QUICK), rng=0)
    save_kernel(result.kernel, tmp_path / "kernel")
    content = (tmp_path / "kernel").read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("not a kernel")
    for name in ("cut", "empty", "text", "absent"):
        with pytest.raises(CpmmdError):
            load_kernel(tmp_path / name)


def test_without_torch_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import cpmmd\n"
        "cpmmd.SplitTest(cpmmd.Deep())\n"  # can be named, cited and saved without torch
        "try: cpmmd.two_sample_test([1, 2, 3, 4], [1, 2, 3, 4], method='cp-deep')\n"
        "except cpmmd.CpmmdError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert re.search(r"Training Deep needs the package 'torch'.* pip install .*\[deep\]'", out)
