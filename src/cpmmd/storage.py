"""Kernels in files: safetensors weights with a JSON description; loading one executes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cpmmd.errors import InputError, missing_extra
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import SelectedKernel
from cpmmd.kernels.manhattan import Manhattan
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.kernels.scaled import ScaledKernel

FORMAT = "cpmmd-kernel-1"
FAMILIES = {"Bandwidth": Bandwidth, "Manhattan": Manhattan, "Polynomial": Polynomial}


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
    tensors = kernel.tensors() if hasattr(kernel, "tensors") else {}
    header = {"format": FORMAT, "kernel": json.dumps(kernel.to_dict())}
    save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, str(path), metadata=header)


def load_kernel(path: str | Path, *, module: Any = None) -> Any:
    """Read a kernel that :func:`save_kernel` wrote; one trained on a module of your own needs that module."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if header.get("format") != FORMAT:
            raise InputError(f"{path} is not a cpmmd kernel file: its format is {header.get('format')!r}, not {FORMAT!r}.")
        return _restore(json.loads(header["kernel"]), tensors, module)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}. Check the path.") from error
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a cpmmd kernel file ({error}). Save it again.") from error


def _restore(description: dict[str, Any], tensors: dict[str, Any], module: Any) -> Any:
    kind = description["type"]
    if kind == "scaled":
        family = {"Bandwidth": Bandwidth, "Manhattan": Manhattan, "Polynomial": Polynomial}[description["family"]](
            **description["options"]
        )
        return ScaledKernel(family, description["sigma"], description["lift_lipschitz"])
    try:
        if kind == "deep":
            from cpmmd.kernels.deep import DeepKernel

            return DeepKernel.restore(description, tensors, module)
        from cpmmd.kernels.mixture import MixtureKernel

        return MixtureKernel.restore(description, tensors, module)
    except ImportError as error:
        raise missing_extra("Loading a deep kernel", "torch", "deep") from error
