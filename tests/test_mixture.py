"""Liu's mixture while it is trained: what its diagonal must not do."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cpmmd import Ascent, ComplexityPenalized, Deep, Mixture, Plain, Ratio  # noqa: E402
from cpmmd.data.preparation import PreparedPool  # noqa: E402
from cpmmd.selection.ascent import AscentSelector, _Batches, _evaluate  # noqa: E402
from cpmmd.statistics import mmd  # noqa: E402

D, ROWS = 100, 30
FAR = Deep(init="kaiming", gain=1.2247)  # features that start far apart, as in the paper's tables


def half(repeated: bool = False) -> PreparedPool:
    """A training half of many columns: all rows far apart, or each row twice."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(ROWS, D)), rng.normal(0.5, 1, size=(ROWS, D))
    if repeated:
        x, y = np.repeat(x[::2], 2, axis=0), np.repeat(y[::2], 2, axis=0)
    return PreparedPool(np.vstack([x, y]), ROWS)


def gradients(train: PreparedPool, bandwidth: float, criterion) -> dict[str, float]:
    """Return the gradients of the three scalars at the start of training, in single precision."""
    problem = Mixture(FAR, input_bandwidth=bandwidth).trainable(train, torch.float32, "cpu")
    parameters = {name: p.requires_grad_() for name, p in problem.initialise([1]).items()}
    rows, weights = _Batches(problem.inputs(), train.labels[None], 10_000, np.random.default_rng(0)).whole
    _evaluate(problem, parameters, rows, weights, criterion)["criterion"].sum().backward()
    return {name: float(parameters[name].grad) for name in ("log_feature_bandwidth", "log_input_bandwidth", "logit_epsilon")}


def off_diagonal_derivative(train: PreparedPool, bandwidth: float, criterion) -> float:
    """Return d criterion / d log sigma_q in double precision from pairs of different rows alone."""
    problem = Mixture(FAR, input_bandwidth=bandwidth).trainable(train, torch.float32, "cpu")
    parameters = {name: p.double() for name, p in problem.initialise([1]).items()}
    rows = problem.inputs().double()
    features = problem.network.features({name: p for name, p in parameters.items() if p.ndim > 1}, rows)[0].numpy()
    apart = ((rows[:, None] - rows[None]) ** 2).sum(dim=2).numpy()
    kappa = np.exp(-0.5 * ((features[:, None] - features[None]) ** 2).sum(axis=2))

    def value(log_bandwidth: float) -> float:
        K = (0.9 * kappa + 0.1) * np.exp(-apart / (2 * np.exp(2 * log_bandwidth)))
        np.fill_diagonal(K, 1.0)
        m = train.m
        blocks = K[:m, :m], K[m:, m:], K[:m, m:]
        within = [(block.sum() - np.trace(block)) / (m * (m - 1)) for block in blocks[:2]]
        return float(criterion.value(sum(within) - 2 * blocks[2].mean(), mmd.paired_variance(*blocks), 0.0))

    step = 1e-4
    return (value(np.log(bandwidth) + step) - value(np.log(bandwidth) - step)) / (2 * step)


# The ratio of rows that all come twice is left out: its variance, of equal numbers, is nothing but rounding in single precision.
@pytest.mark.parametrize(
    ("repeated", "criterion"), [(False, Plain()), (True, Plain()), (False, Ratio())], ids=["plain", "plain, rows twice", "ratio"]
)
@pytest.mark.parametrize("bandwidth", [1.0, 2.0, 5.0])
def test_the_gradient_of_the_input_bandwidth_is_that_of_pairs_of_different_rows(bandwidth, repeated, criterion):
    # Distances by products in single precision gave 5e-7 (plain) and 5e-3 (ratio) at bandwidth 1, where it is below 1e-20.
    train = half(repeated)
    found = gradients(train, bandwidth, criterion)["log_input_bandwidth"]
    assert found == pytest.approx(off_diagonal_derivative(train, bandwidth, criterion), rel=2e-3, abs=1e-12)


@pytest.mark.parametrize("criterion", [Plain(), Ratio()], ids=["plain", "ratio"])
def test_nothing_moves_where_no_pair_of_rows_is_seen(criterion):
    train = half()
    assert max(abs(g) for g in gradients(train, 1.0, criterion).values()) < 1e-12
    with pytest.warns(match="the identity"):
        selection = AscentSelector(Mixture(FAR, input_bandwidth=1.0), Ascent()).select(train, criterion, np.random.default_rng(0))
    assert selection.kernel.input_bandwidth == 1.0
    assert selection.kernel.epsilon == pytest.approx(0.1, rel=1e-6)


def test_the_penalty_still_widens_the_input_bandwidth():
    # d/d log sigma_q of -C1 eps / sigma_q: the only gradient there is, and it does not depend on the rows.
    train = half()
    criterion = ComplexityPenalized(c1=0.1)
    norm = np.sqrt(D / (2 * ROWS))  # |D|_F / N of rows whose root mean square is 1
    assert gradients(train, 1.0, criterion)["log_input_bandwidth"] == pytest.approx(0.1 * 0.1 * norm, rel=1e-4)


def test_batches_see_the_distances_of_their_own_rows():
    train = half()
    problem = Mixture(FAR, input_bandwidth=10.0).trainable(train, torch.float64, "cpu")
    parameters = problem.initialise([1])
    whole = problem.gram(parameters, problem.inputs())
    some = torch.tensor([3, 40, 7, 1, 55])
    torch.testing.assert_close(problem.gram(parameters, problem.inputs()[some]), whole[:, some][:, :, some])
    assert torch.equal(torch.diagonal(whole[0]), torch.ones(2 * ROWS, dtype=torch.float64))
