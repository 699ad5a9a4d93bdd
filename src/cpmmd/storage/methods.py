"""Methods as plain JSON and back: a known name with its options, nothing that could execute."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd import registry
from cpmmd.errors import InputError, unknown_name
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.classes import KernelClass
from cpmmd.selection.ascent_options import Ascent
from cpmmd.storage.kernels import restore_kernel

if TYPE_CHECKING:
    from torch import nn

KERNEL = "kernel"  # stands for a fixed kernel, in the form of its own file
MODULE = "module"  # stands for a torch module, which no file holds
LARGEST = 10**7  # whole number in a description: a stranger's must not ask for memory that no honest one needs


@cache
def _known() -> dict[str, type[Any]]:
    """Return what a method can be made of."""
    parts: dict[str, type[Any]] = {kind.__name__: kind for kind in (KernelClass, Ascent)}
    return {**registry.procedures(), **registry.families(), **registry.criteria(), **parts}


def describe_method(value: Any) -> Any:
    """Return a method in plain JSON types.

    Examples
    --------
    >>> from cpmmd import Bandwidth, Plain, SplitTest
    >>> describe_method(SplitTest(Bandwidth(), Plain()))["options"]["family"]
    {'name': 'Bandwidth', 'options': {'base': 'gaussian'}}
    """
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
