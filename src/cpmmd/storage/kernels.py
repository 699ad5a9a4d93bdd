"""Kernels in files: safetensors weights with a JSON description; loading one executes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpmmd import registry
from cpmmd.core.installation import missing_extra
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel, Tensors
from cpmmd.kernels.radial import RADIAL, RadialKernel
from cpmmd.kernels.regularised import REGULARISED, RegularisedKernel
from cpmmd.storage.container import read_file, write_file

if TYPE_CHECKING:
    from torch import nn
from dataclasses import fields
from functools import cache

import numpy as np

from cpmmd.errors import unknown_name
from cpmmd.procedures.full_sample import KernelClass
from cpmmd.selection.values import Ascent


def save_kernel(kernel: Kernel, path: str | Path) -> None:
    """Write a selected kernel to a file.

    Parameters
    ----------
    kernel : Kernel
        Such as ``result.kernel``.
    path : str or Path
        Where it goes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from cpmmd import load_kernel, save_kernel, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2)), rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_kernel(result.kernel, pathlib.Path(folder) / "kernel.safetensors")
    ...     load_kernel(pathlib.Path(folder) / "kernel.safetensors") == result.kernel
    True
    """
    if not callable(getattr(kernel, "tensors", None)):
        got = "None, as results of methods without a kernel have" if kernel is None else f"a {type(kernel).__name__}"
        raise InputError(f"Only a kernel can be saved. Got {got}: pass result.kernel of a method such as cp-linear.")
    write_file(path, kernel.tensors(), kernel.to_dict(), kind="kernel")


def load_kernel(path: str | Path, *, module: nn.Module | None = None) -> Kernel:
    """Read a kernel that :func:`save_kernel` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    module : torch.nn.Module, optional
        The network of your own that the kernel was trained on, which no file holds.

    Returns
    -------
    Kernel
        Ready for ``DriftDetector.fit(kernel=...)`` or ``FullSampleTest(fixed=...)``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, load_kernel, save_kernel, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> earlier = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> chosen = two_sample_test(*earlier, method="cp-linear", rng=0).kernel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_kernel(chosen, pathlib.Path(folder) / "kernel.safetensors")
    ...     kernel = load_kernel(pathlib.Path(folder) / "kernel.safetensors")
    >>> later = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> two_sample_test(*later, method=FullSampleTest(classes=(), fixed=(kernel,)), rng=0).reject
    True
    """
    return read_file(path, lambda described, tensors: restore_kernel(described, tensors, module=module), kind="kernel")


def restore_kernel(described: Mapping[str, Any], tensors: Tensors, *, module: nn.Module | None = None) -> Kernel:
    """Return the kernel that its ``to_dict`` and ``tensors`` described."""
    name = described["family"]
    if name == RADIAL:
        return RadialKernel.restore(described)
    if name == REGULARISED:
        return RegularisedKernel.restore(described, tensors, lambda inner, its: restore_kernel(inner, its, module=module))
    if name not in registry.families():
        raise InputError(f"A kernel of the family {name!r} is not known to this cpmmd. Update it.")
    try:
        return registry.families()[name].restore(described, tensors, module)
    except ImportError as error:
        raise missing_extra("Loading a trained kernel", "torch", "deep") from error


# Methods as plain JSON and back: a known name with its options, nothing that could execute.


KERNEL = "kernel"  # stands for a fixed kernel, in the form of its own file
MODULE = "module"  # stands for a torch module, which no file holds
LARGEST = 10**7  # whole number in a description: a stranger's must not ask for memory that no honest one needs


@cache
def _known() -> dict[str, type[Any]]:
    """Return what a method can be made of."""
    parts: dict[str, type[Any]] = {kind.__name__: kind for kind in (KernelClass, Ascent)}
    return {**registry.procedures(), **registry.families(), **registry.criteria(), **parts}


def describe_method(value: Any) -> Any:
    """Return a method in plain JSON types."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [describe_method(part) for part in value]
    name = type(value).__name__
    if type(value) is _known().get(name):
        return {"name": name, "options": {field.name: describe_method(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, Kernel) and not value.tensors():
        return {"name": KERNEL, "options": value.to_dict()}
    if hasattr(value, "named_parameters"):
        return {"name": MODULE, "options": {"class": name}}
    raise InputError(
        f"A method can be saved when it is made of names, numbers and cpmmd's own kernels. Got {value!r} in it; leave that out."
    )


def restore_method(described: Any, *, module: nn.Module | None = None) -> Any:
    """Return what :func:`describe_method` described; ``module`` stands in for a torch module."""
    if isinstance(described, list):
        return tuple(restore_method(part, module=module) for part in described)
    if isinstance(described, int) and abs(described) > LARGEST:
        raise InputError(f"A number of a method must be at most {LARGEST}. The file says {described}; save it again.")
    if not isinstance(described, dict):
        return described
    name, options = described["name"], described["options"]
    if name == KERNEL:
        return restore_kernel(options, {})
    if name == MODULE:
        if module is None:
            raise InputError(f"The method trains a module of your own ({options['class']}). Pass it as module=.")
        return module
    if name not in _known():
        raise unknown_name("part of a method", name, _known())
    return _known()[name](**{option: restore_method(value, module=module) for option, value in options.items()})
