"""Gradient ascent on any criterion, all members of a stack at once: the selector of trained kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from cpmmd.core import parallel, progress
from cpmmd.core.arrays import Array, Labels
from cpmmd.data.preparation import PreparedPool
from cpmmd.errors import DegenerateKernelWarning, InputError, ParameterReference
from cpmmd.kernels.base import TrainedFamily
from cpmmd.kernels.deep.feature_kernel import Trainable
from cpmmd.kernels.deep.networks import Parameters
from cpmmd.selection.criteria import Criterion
from cpmmd.selection.values import Ascent, Collapse, Selection, TrainingHistory

DTYPES = {"float32": torch.float32, "float64": torch.float64}
STACK = 5  # members of a calibration trained together
STILL = 1e-12  # gradient norm below which nothing moves
COLUMNS = ("criterion", "mmd2", "variance", "complexity", "spectral_product")


@dataclass(frozen=True)
class AscentSelector:
    """Trains the kernels of a family by Adam and keeps the best iterate of t = 0..T."""

    family: TrainedFamily
    options: Ascent
    matrices: int = 10  # with those that the gradient needs

    def select(self, train: PreparedPool, criterion: Criterion, rng: np.random.Generator) -> Selection:
        """Return the trained kernel that maximises ``criterion`` on the training half."""
        problem = self._problem(self.family, train)
        seeds: list[int] = rng.integers(0, 2**31, size=1).tolist()
        with one_torch_thread():
            run = ascend(problem, train.labels[None], criterion, self.options, seeds, rng, stage="training")
        history = {name: values[:, 0] for name, values in run.history.items()}
        best = {name: float(values[run.best_step[0]]) for name, values in history.items()}
        kernel = problem.freeze({name: p[0] for name, p in run.best.items()}, best["spectral_product"])
        notes = [*run.notes, *_degeneracy(problem, run.best)]
        collapse = None
        if criterion.needs_variance:
            effective_size = 2 * train.m * train.n / train.size  # n where m = n
            collapse = Collapse(history["mmd2"][-1], history["variance"][-1], effective_size)
            notes += [collapse.note] if collapse.flagged else []
        return Selection(
            kernel=kernel,
            criterion=best["criterion"],
            mmd2=best["mmd2"],
            variance=best["variance"],
            complexity=best["complexity"],
            path=TrainingHistory(np.arange(len(history["mmd2"]), dtype=np.float64), **history),
            max_complexity=float(np.nanmax(history["complexity"])),
            c1=criterion.constant,
            notes=tuple(notes),
            collapse=collapse,
        )

    def maxima(self, train: PreparedPool, labels: Labels, criterion: Criterion, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return (MMD2, complexity) at the maximiser of each permutation, trained in batched runs of STACK members."""
        # Each run is on one thread, several runs side by side: the answer then does not depend on the number of threads, as it
        # would if they shared a product (rounding grows over a hundred steps of Adam).
        family = self.family.for_calibration()[0]
        seeds: list[int] = rng.integers(0, 2**31, size=len(labels)).tolist()
        streams = rng.spawn(len(labels))

        def stack(start: int) -> tuple[Array, Array]:
            some = slice(start, start + STACK)
            torch.set_num_threads(1)  # of this thread; the caller's is put back below
            problem = self._problem(family, train)
            run = ascend(problem, labels[some], criterion, self.options, seeds[some], streams[start], stage="calibration")
            mmd2 = run.history["mmd2"][run.best_step, np.arange(len(labels[some]))]
            with torch.no_grad():
                lipschitz, _ = problem.lipschitz(run.best)
            return mmd2, lipschitz.cpu().double().numpy() * data_norm(problem.inputs())

        with one_torch_thread():
            parts = parallel.map_threads(stack, range(0, len(labels), STACK))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    @property
    def calibration_note(self) -> str:
        """What calibration does differently from training, if anything."""
        return self.family.for_calibration()[1]

    def _problem(self, family: TrainedFamily, train: PreparedPool) -> Trainable:
        return family.trainable(train, DTYPES[self.options.dtype], self.options.device)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keep torch's products on the calling thread inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Run:
    """The best finite iterate of each member of an ascent, when it was seen, and the history of all."""

    def __init__(self, parameters: Parameters) -> None:
        self.best = {name: p.detach().clone() for name, p in parameters.items()}
        members = len(next(iter(parameters.values())))
        self.best_step = np.zeros(members, dtype=int)
        self.value = torch.full((members,), -torch.inf, dtype=torch.float64)
        self.alive = torch.ones(members, dtype=torch.bool)
        self.notes: list[str] = []
        self._steps: list[Array] = []

    @property
    def history(self) -> dict[str, Array]:
        """The (steps, members) values of each of COLUMNS."""
        return dict(zip(COLUMNS, np.array(self._steps).swapaxes(0, 1), strict=True))

    def keep(self, step: int, parameters: Parameters, values: dict[str, torch.Tensor]) -> None:
        """Record one step."""
        table = torch.stack([values[name].detach() for name in COLUMNS]).cpu().double()
        self._steps.append(table.numpy())
        value, finite = table[0], torch.isfinite(table[0])
        if bool((self.alive & ~finite).any()):
            if step == 0:
                raise InputError(
                    "The criterion is not a finite number at the start of training. Check the inputs' scale ({setting}) and the "
                    "module's weights.",
                    setting=ParameterReference("scale", "standard"),
                )
            self.notes.append(f"training diverged at step {step} (not a finite number); the best iterate before it is used")
        self.alive &= finite
        better = self.alive & (value > self.value)
        if not bool(better.any()):
            return
        self.value = torch.where(better, value, self.value)
        self.best_step[better.numpy()] = step
        for name, p in parameters.items():
            if bool(better.all()):
                self.best[name].copy_(p.detach())
            else:
                chosen = better.to(p.device)
                self.best[name][chosen] = p.detach()[chosen]


def ascend(
    problem: Trainable,
    labels: Labels,
    criterion: Criterion,
    options: Ascent,
    seeds: list[int],
    rng: np.random.Generator,
    *,
    stage: str,
) -> Run:
    """Maximise ``criterion`` for each row of ``labels``, one member of the stack, with its own seed, for each."""
    parameters = {name: p.requires_grad_() for name, p in problem.initialise(seeds).items()}
    optimiser = torch.optim.Adam(list(parameters.values()), lr=options.learning_rate, fused=options.device == "cpu")
    batches = _Batches(problem.inputs(), labels, options.batch_rows, rng)
    run = Run(parameters)
    for step in range(options.steps + 1):
        values = _evaluate(problem, parameters, *batches.whole, criterion)
        run.keep(step, parameters, values)
        progress.report(stage, step, options.steps)
        if step == options.steps or not run.alive.any():
            break
        if batches.sampled:
            values = _evaluate(problem, parameters, *batches.draw(), criterion)
        optimiser.zero_grad(set_to_none=True)
        (-values["criterion"].sum()).backward()  # type: ignore[no-untyped-call]
        if _clip(parameters, options.clip) < STILL:
            break
        optimiser.step()
    return run


class _Batches:
    """All rows, or random batches of them with one fixed batch to judge by."""

    def __init__(self, inputs: torch.Tensor, labels: Labels, batch_rows: int, rng: np.random.Generator) -> None:
        self.inputs, self.labels, self.rng = inputs, labels, rng
        self.batch_rows = batch_rows
        self.sampled = len(inputs) > batch_rows
        self.whole = self.draw() if self.sampled else (inputs, self._weights(labels))

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a random batch, X first where there is one member."""
        rows = self.rng.permutation(self.labels.shape[1])[: self.batch_rows]
        if len(self.labels) == 1:  # stratified, and X first, which the paired variance needs
            x, y = np.flatnonzero(self.labels[0]), np.flatnonzero(~self.labels[0])
            share = max(2, min(self.batch_rows - 2, round(self.batch_rows * len(x) / self.labels.shape[1])))
            rows = np.r_[self.rng.permutation(x)[:share], self.rng.permutation(y)[: self.batch_rows - share]]
        return self.inputs[torch.as_tensor(rows)], self._weights(self.labels[:, rows])

    def _weights(self, labels: Labels) -> torch.Tensor:
        """Return (E, n, 2) indicator columns of X and of Y."""
        stacked = torch.as_tensor(np.stack([labels, ~labels], axis=-1))
        return stacked.to(self.inputs.dtype).to(self.inputs.device)


def _evaluate(
    problem: Trainable, parameters: Parameters, rows: torch.Tensor, weights: torch.Tensor, criterion: Criterion
) -> dict[str, torch.Tensor]:
    """Return the criterion and what it is made of, for each member."""
    K = problem.gram(parameters, rows)
    mmd2 = stacked_mmd2(K, weights)
    complexity = product = variance = torch.full_like(mmd2, torch.nan)  # what a calibration need not know at every step
    if criterion.needs_complexity or len(K) == 1:
        with torch.set_grad_enabled(criterion.needs_complexity):
            lipschitz, product = problem.lipschitz(parameters)
            complexity = lipschitz * data_norm(rows)
    if criterion.needs_variance or len(K) == 1:
        with torch.set_grad_enabled(criterion.needs_variance):
            variance = stacked_variance(K, int(weights[0, :, 0].sum()))
    value = criterion.value(mmd2, variance, complexity)
    return {"criterion": value, "mmd2": mmd2, "variance": variance, "complexity": complexity, "spectral_product": product}


def data_norm(rows: torch.Tensor) -> float:
    """|D|_F / N of the rows as the network sees them."""
    return float(torch.linalg.vector_norm(rows)) / len(rows)


def stacked_mmd2(K: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the unbiased squared MMD of each (n, n) kernel matrix with unit diagonal under its labels."""
    sums = weights.mT @ (K @ weights)  # [[xx, xy], [yx, yy]]
    m, n = weights.sum(dim=1).unbind(dim=1)
    within = (sums[:, 0, 0] - m) / (m * (m - 1)) + (sums[:, 1, 1] - n) / (n * (n - 1))
    return within - 2 * sums[:, 0, 1] / (m * n)


def stacked_variance(K: torch.Tensor, m: int) -> torch.Tensor:
    """Return the ratio criterion's variance, X being the first ``m`` rows (see :func:`cpmmd.mmd.variance`)."""
    n = K.shape[1] - m
    to_x, to_y = K[:, :, :m].mean(dim=2), K[:, :, m:].mean(dim=2)
    gap_x, gap_y = (to_x - to_y)[:, :m], (to_y - to_x)[:, m:]
    if m == n:
        return 4 * torch.var(gap_x + gap_y, dim=1, correction=0)
    zeta_x, zeta_y = torch.var(gap_x, dim=1, correction=0), torch.var(gap_y, dim=1, correction=0)
    return 8 * (n * zeta_x + m * zeta_y) / (m + n)


def _clip(parameters: Parameters, largest: float) -> float:
    """Scale each member's gradient down to norm ``largest``; return the largest norm before."""
    gradients = [p.grad for p in parameters.values() if p.grad is not None]
    norms = torch.stack([torch.linalg.vector_norm(g.reshape(len(g), -1), dim=1) for g in gradients]).square().sum(dim=0).sqrt()
    if not bool(norms.isfinite().all()):  # a diverged member stays where it is
        for gradient in gradients:
            torch.nan_to_num_(gradient, 0.0, 0.0, 0.0)
        norms = norms.nan_to_num(0.0, 0.0)
    factor = (largest / norms.clamp(min=1e-30)).clamp(max=1.0)
    if bool((factor < 1).any()):
        for gradient in gradients:
            gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))
    return float(norms.max())


def _degeneracy(problem: Trainable, parameters: Parameters) -> list[str]:
    """Warn, and note, when the selected kernel can tell no rows apart or no rows together."""
    with torch.no_grad():
        K = problem.gram(parameters, problem.inputs()[:: max(1, len(problem.inputs()) // 500)])[0]
    off = K[~torch.eye(len(K), dtype=torch.bool)]
    kind = "the identity" if float(off.max()) < 1e-6 else "constant" if float(off.max() - off.min()) < 1e-6 else None
    if kind is None:
        return []
    note = f"the selected kernel is degenerate: its matrix is numerically {kind}"
    warnings.warn(
        f"{note}. The test keeps its level but has no power. Rescale the inputs or change init.", DegenerateKernelWarning, 4
    )
    return [note]
