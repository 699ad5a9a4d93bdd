"""Kernels in files: safetensors weights with a JSON description; loading one executes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cpmmd import validation
from cpmmd.errors import InputError, missing_extra
from cpmmd.files import Tensors, read_file, write_file
from cpmmd.kernels.base import SelectedKernel
from cpmmd.kernels.families import FAMILIES
from cpmmd.kernels.radial import RadialKernel, profile
from cpmmd.kernels.scaled import ScaledKernel


def save_kernel(kernel: SelectedKernel, path: str | Path) -> None:
    """Write a selected kernel to a file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from cpmmd import Bandwidth
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "kernel.safetensors"
    >>> save_kernel(ScaledKernel(Bandwidth(), 2.0), file)
    >>> load_kernel(file).sigma
    2.0
    """
    write_file(path, kernel_tensors(kernel), kernel.to_dict(), kind="kernel")


def load_kernel(path: str | Path, *, module: Any = None) -> Any:
    """Read a kernel that :func:`save_kernel` wrote; one trained on a module of your own needs that module."""
    return read_file(path, lambda description, tensors: restore_kernel(description, tensors, module=module), kind="kernel")


def kernel_tensors(kernel: SelectedKernel) -> Tensors:
    """Give the arrays that make a kernel beside its description: none but for trained ones."""
    return dict(kernel.tensors()) if hasattr(kernel, "tensors") else {}


def restore_kernel(description: dict[str, Any], tensors: Tensors, *, module: Any = None) -> Any:
    """Give the kernel that ``to_dict`` and :func:`kernel_tensors` described."""
    kind = description["type"]
    if kind == "scaled":
        family = FAMILIES[description["family"]](**description["options"])
        numbers = (validation.positive(name, description[name]) for name in ("sigma", "lift_lipschitz"))
        return ScaledKernel(family, *numbers)
    if kind == "radial":
        profile(description["name"])
        return RadialKernel(description["name"], validation.positive("bandwidth", description["bandwidth"]))
    if kind not in ("deep", "mixture"):
        raise InputError(f"A kernel of type {kind!r} is not known to this cpmmd. Update it.")
    try:
        if kind == "deep":
            from cpmmd.kernels.deep import DeepKernel

            return DeepKernel.restore(description, tensors, module)
        from cpmmd.kernels.mixture import MixtureKernel

        return MixtureKernel.restore(description, tensors, module)
    except ImportError as error:
        raise missing_extra("Loading a deep kernel", "torch", "deep") from error
