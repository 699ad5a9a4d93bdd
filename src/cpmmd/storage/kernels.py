"""Kernels and methods in files: safetensors weights with a JSON description; loading one executes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd import registry
from cpmmd.core.installation import missing_extra
from cpmmd.core.plain import PlainDict, from_plain
from cpmmd.errors import InputError, unknown_name
from cpmmd.kernels.base import Kernel, Tensors
from cpmmd.kernels.collection import RADIAL, RadialKernel
from cpmmd.kernels.regularised import REGULARISED, RegularisedKernel
from cpmmd.procedures.classes import AdditiveClass, ColumnsClass, KernelClass, ProductsClass
from cpmmd.selection.values import Ascent
from cpmmd.storage.container import read_file, write_file

if TYPE_CHECKING:
    from torch import nn

KERNEL = "kernel"  # stands for a fixed kernel in a method, in the form of its own file
MODULE = "module"  # stands for a torch module, which no file holds
LARGEST = 10**7  # whole number in a description: a forged one must not ask for memory that no method needs


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
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "kernel.safetensors"
    >>> save_kernel(result.kernel, file)
    >>> load_kernel(file) == result.kernel
    True
    """
    if not callable(getattr(kernel, "tensors", None)):
        got = "None, because the method selects no kernel" if kernel is None else f"a {type(kernel).__name__}"
        raise InputError(f"Only a kernel can be saved. Got {got}; pass result.kernel of a method such as cp-linear.")
    write_file(path, kernel.tensors(), kernel.to_dict(), kind="kernel")


def load_kernel(path: str | Path, *, module: nn.Module | None = None) -> Kernel:
    """Read a kernel that :func:`save_kernel` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    module : torch.nn.Module, optional
        Your own network that the kernel was trained on; files do not hold it.

    Returns
    -------
    Kernel
        Ready for ``DriftDetector.fit(kernel=...)`` or ``FullSampleTest(fixed=...)``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, load_kernel, save_kernel, two_sample_test
    >>> earlier, later = np.random.default_rng(0).normal([[[0]], [[2]]], 1, size=(2, 2, 40, 2))
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "kernel.safetensors"
    >>> save_kernel(two_sample_test(*earlier, method="cp-linear", rng=0).kernel, file)
    >>> method = FullSampleTest(classes=(), fixed=(load_kernel(file),))
    >>> two_sample_test(*later, method=method, rng=0).reject
    True
    """
    return read_file(
        path, lambda described, tensors: restore_kernel(from_plain(PlainDict, described), tensors, module=module), kind="kernel"
    )


def restore_kernel(described: Mapping[str, Any], tensors: Tensors, *, module: nn.Module | None = None) -> Kernel:
    """Return the kernel that its ``to_dict`` and ``tensors`` described."""
    name = described["family"]
    if name == RADIAL:
        return RadialKernel.restore(described)
    if name == REGULARISED:
        return RegularisedKernel.restore(described, tensors, lambda inner, its: restore_kernel(inner, its, module=module))
    if name not in registry.families():
        raise InputError(f"This version of cpmmd does not know kernels of the family {name!r}. Update it.")
    try:
        return registry.families()[name].restore(described, tensors, module)
    except ImportError as error:
        raise missing_extra("Loading a trained kernel", "torch", "deep") from error


@cache
def _known() -> Mapping[str, type]:
    """Return what a method can be made of."""
    parts = {kind.__name__: kind for kind in (KernelClass, AdditiveClass, ColumnsClass, ProductsClass, Ascent)}
    return {**registry.procedures(), **registry.families(), **registry.criteria(), **parts}


def describe_method(value: object) -> object:
    """Return a method in plain JSON types: a known name with its options, nothing that could execute."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [describe_method(part) for part in value]
    name = type(value).__name__
    if is_dataclass(value) and type(value) is _known().get(name):
        return {"name": name, "options": {field.name: describe_method(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, Kernel) and not value.tensors():
        return {"name": KERNEL, "options": value.to_dict()}
    if hasattr(value, "named_parameters"):
        return {"name": MODULE, "options": {"class": name}}
    raise InputError(
        f"A method can be saved when it is made of names, numbers and cpmmd's own kernels. Got {value!r} in it; leave it out."
    )


def restore_method(described: Any, *, module: nn.Module | None = None) -> Any:
    """Return what :func:`describe_method` described; ``module`` stands in for a torch module."""
    if isinstance(described, list):
        return tuple(restore_method(part, module=module) for part in described)
    if isinstance(described, int) and abs(described) > LARGEST:
        raise InputError(f"A number of a method must be at most {LARGEST}. The file has {described}; save it again.")
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
