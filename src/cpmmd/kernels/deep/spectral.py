"""Spectral norms of stacked matrices that change from step to step, differentiable."""

from __future__ import annotations

import torch

SMALL = 32  # sides up to this are decomposed exactly
BLOCK = 8  # singular vectors followed
DEPTH = 3  # products with W'W in a round
TOLERANCE = 1e-5  # relative growth of the squared norm over a round that ends the search
MAX_ROUNDS = 20


class SpectralNorms:
    """Largest singular values of a stack of matrices, each call starting from where the last one ended.

    Small sides are decomposed exactly; of others a block of leading singular vectors is followed by a warm-started block Krylov
    iteration on W'W. (Plain power iteration is not enough: the first steps of Adam add a direction that overtakes the
    followed one, and two iterations a step were seen to be wrong by 5 to 50%.) The value is u' W v, whose gradient with u
    and v held is the gradient of the norm.
    """

    def __init__(self, *, exact_side: int = SMALL) -> None:
        self.exact_side = exact_side
        self.followed: torch.Tensor | None = None

    def __call__(self, matrices: torch.Tensor) -> torch.Tensor:
        """Return the norm of each matrix of an (E, rows, columns) stack."""
        with torch.no_grad():
            u, v = self._leading(matrices.detach())
        return (u.mT @ matrices @ v).flatten()

    def _leading(self, W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the leading left and right singular vectors as columns."""
        tall = W if W.shape[1] >= W.shape[2] else W.mT  # columns are the smaller side
        if tall.shape[2] <= self.exact_side or self.followed is None:
            self.followed = torch.linalg.eigh(tall.mT @ tall).eigenvectors[:, :, -BLOCK:]
        else:
            self.followed = _follow(tall, self.followed)
        v = self.followed[:, :, -1:]
        image = tall @ v
        u = image / torch.linalg.vector_norm(image, dim=1, keepdim=True).clamp(min=torch.finfo(W.dtype).tiny)
        return (u, v) if tall is W else (v, u)


def _follow(tall: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Return the leading right singular vectors near a block of earlier ones, the largest last."""
    value = (tall @ block[:, :, -1:]).square().sum(dim=(1, 2))
    for _ in range(MAX_ROUNDS):
        parts = [block]
        for _ in range(DEPTH):
            step = tall.mT @ (tall @ parts[-1])
            parts.append(step / torch.linalg.vector_norm(step, dim=1, keepdim=True).clamp(min=torch.finfo(step.dtype).tiny))
        basis = torch.linalg.qr(torch.cat(parts, dim=2)).Q
        image = tall @ basis
        ritz = torch.linalg.eigh(image.mT @ image)
        block = basis @ ritz.eigenvectors[:, :, -block.shape[2] :]
        before, value = value, ritz.eigenvalues[:, -1]
        if bool((value - before <= TOLERANCE * value).all()):
            break
    return block
