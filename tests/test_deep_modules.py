"""Networks of one's own as deep kernels: bounds, what is trained, what does not fit."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from cpmmd import Ascent, ComplexityPenalized, CpmmdError, Deep, Plain, SplitTest, two_sample_test  # noqa: E402
from cpmmd.data.preparation import PreparedPool  # noqa: E402
from cpmmd.kernels.deep.networks import SpectralNorms, lipschitz_steps  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 6))
Y = np.random.default_rng(1).normal(0.7, 1, size=(40, 6))
QUICK = Ascent(steps=15)


def conv_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))


def test_module_of_linear_layers_equals_the_mlp():
    mlp = Deep(width=16, out=4)
    train = PreparedPool(np.vstack([X, Y]), len(X))
    problem = mlp.trainable(train, torch.float64, "cpu")
    weights = problem.initialise([3])
    net = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(), nn.Linear(16, 16), nn.LeakyReLU(), nn.Linear(16, 4)).double()
    with torch.no_grad():
        for i, layer in enumerate((net[0], net[2], net[4])):
            layer.weight.copy_(weights[f"weight{i}"][0].T)
            layer.bias.copy_(weights[f"bias{i}"][0])
    module = Deep(module=net).trainable(train, torch.float64, "cpu")
    rows = problem.inputs()
    stacked = module.initialise([0])
    torch.testing.assert_close(module.gram(stacked, rows), problem.gram(weights, rows))
    torch.testing.assert_close(module.lipschitz(stacked)[0], problem.lipschitz(weights)[0])


def test_convolution_bound_is_one():
    # Oracle: the convolution as an explicit matrix on a 6 x 6 image.
    torch.manual_seed(1)
    for stride, padding in ((1, 1), (2, 0), (3, 2)):
        conv = nn.Conv2d(2, 3, 3, stride=stride, padding=padding, bias=False)
        eye = torch.eye(72).reshape(72, 2, 6, 6)
        matrix = conv(eye).reshape(72, -1).detach()
        (step,) = lipschitz_steps(conv)
        bound = float(step.bound({"weight": conv.weight[None].detach()}, {}, SpectralNorms()))
        true = float(torch.linalg.matrix_norm(matrix, 2))
        assert true <= bound * (1 + 1e-6)
        assert bound <= 4 * true


def test_images_train_a_convolutional_module_and_leave_it_alone():
    images = np.random.default_rng(0).normal(size=(60, 1, 8, 8))
    net = conv_net()
    before = copy.deepcopy(net.state_dict())
    test = SplitTest(Deep(module=net), ComplexityPenalized(n_calibration=2), ascent=Ascent(steps=4))
    result = two_sample_test(images[:30], images[30:] + 0.5, method=test, rng=0)
    assert 0 < result.pvalue <= 1
    for name, value in net.state_dict().items():
        torch.testing.assert_close(value, before[name])


def test_a_frozen_front_is_not_trained_but_counts():
    front = nn.Linear(6, 5)
    front.requires_grad_(False)
    net = nn.Sequential(front, nn.Tanh(), nn.Linear(5, 3))
    result = two_sample_test(X, Y, method=SplitTest(Deep(module=net), Plain(), ascent=QUICK), rng=0)
    assert set(result.kernel.parameters) == {"2.weight", "2.bias"}
    last = float(torch.linalg.matrix_norm(result.kernel.parameters["2.weight"], 2))
    assert result.kernel.lipschitz == pytest.approx(last * float(torch.linalg.matrix_norm(front.weight, 2)), rel=1e-4)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return x + self.inner(x)


def test_unknown_layers_ask_for_a_bound_and_take_it():
    with pytest.raises(CpmmdError, match=r"Residual.*lipschitz="):
        two_sample_test(X, Y, method=SplitTest(Deep(module=Residual()), Plain(), ascent=QUICK))

    def bound(parameters):
        return 1 + torch.linalg.matrix_norm(parameters["inner.weight"], 2)

    test = SplitTest(Deep(module=Residual(), lipschitz=bound), ComplexityPenalized(n_calibration=2), ascent=QUICK)
    assert two_sample_test(X, Y, method=test, rng=0).kernel.lipschitz > 1


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (nn.Linear(5, 2), "could not take rows of shape"),
        (nn.Sequential(nn.Linear(6, 2), nn.Flatten(0)), "one feature vector per row"),
        (nn.Identity(), "nothing to train"),
    ],
)
def test_modules_that_do_not_fit_get_a_sentence(net, message):
    with pytest.raises(CpmmdError, match=message):
        two_sample_test(X, Y, method=SplitTest(Deep(module=net), Plain(), ascent=QUICK))


class Exploding(nn.Module):
    """Finite at the start, not a number once its weight has moved."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((6, 2), 0.1))

    def forward(self, x):
        moved = (self.weight - 0.1).abs().amax()
        return x @ self.weight + torch.where(moved > 0.012, torch.nan, 0.0)


def test_divergence_restores_the_last_finite_iterate_and_says_so():
    net = Deep(module=Exploding(), lipschitz=lambda p: p["weight"].abs().sum())
    result = two_sample_test(X, Y, method=SplitTest(net, Plain(), ascent=Ascent(steps=10)), rng=0)
    assert any("diverged at step 3" in note for note in result.notes)
    assert torch.isfinite(result.kernel.parameters["weight"]).all()
    assert float((result.kernel.parameters["weight"] - 0.1).abs().max()) > 0.005


def test_not_finite_from_the_start_is_an_error():
    net = nn.Linear(6, 2)
    with torch.no_grad():
        net.weight.fill_(float("nan"))
    with pytest.raises(CpmmdError, match="at the start of training"):
        two_sample_test(X, Y, method=SplitTest(Deep(module=net), Plain(), ascent=QUICK))
