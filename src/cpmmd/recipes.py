"""Methods as plain JSON and back: a known name with its options, nothing that could execute."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from cpmmd import extras
from cpmmd.criteria import ComplexityPenalized, Plain, Ratio
from cpmmd.errors import InputError, unknown_name
from cpmmd.kernels.families import FAMILIES
from cpmmd.kernels.radial import RadialKernel
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.procedures.full_sample import FullSampleTest, KernelClass
from cpmmd.procedures.median import MedianTest
from cpmmd.procedures.mmdagg import MMDAgg
from cpmmd.procedures.mmdfuse import MMDFuse
from cpmmd.procedures.split import SplitTest
from cpmmd.selection.ascent_options import Ascent

PROCEDURES = (SplitTest, FullSampleTest, MedianTest, MMDAgg, MMDFuse)
PARTS = (*FAMILIES.values(), KernelClass, ScaledKernel, RadialKernel, ComplexityPenalized, Ratio, Plain, Ascent)
KNOWN: dict[str, Any] = {kind.__name__: kind for kind in (*PROCEDURES, *PARTS)}
MODULE = "module"  # stands for a torch module, which no file holds
LARGEST = 10**7  # whole number in a recipe: a stranger's must not ask for memory that no honest one needs


def describe(value: Any) -> Any:
    """Give a method in plain JSON types.

    Examples
    --------
    >>> from cpmmd import Bandwidth
    >>> describe(SplitTest(kernel=Bandwidth(), criterion=Plain()))["options"]["kernel"]
    {'name': 'Bandwidth', 'options': {'base': 'gaussian'}}
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [describe(part) for part in value]
    name = type(value).__name__
    if type(value) is KNOWN.get(name) or (name in extras.LAZY and type(value) is extras.load(name)):
        return {"name": name, "options": {field.name: describe(getattr(value, field.name)) for field in fields(value)}}
    if hasattr(value, "named_parameters"):
        return {"name": MODULE, "options": {"class": name}}
    raise InputError(
        f"A method can be saved when it is made of names, numbers and cpmmd's own kernels. Got {value!r} in it; leave that out."
    )


def rebuild(described: Any, *, module: Any = None) -> Any:
    """Give back what :func:`describe` described; ``module`` stands in for a torch module."""
    if isinstance(described, list):
        return tuple(rebuild(part, module=module) for part in described)
    if isinstance(described, int) and abs(described) > LARGEST:
        raise InputError(f"A number of a method must be at most {LARGEST}. The file says {described}; save it again.")
    if not isinstance(described, dict):
        return described
    name, options = described["name"], described["options"]
    if name == MODULE:
        if module is None:
            raise InputError(f"The method trains a module of your own ({options['class']}). Pass it as module=.")
        return module
    if name not in KNOWN and name not in extras.LAZY:
        raise unknown_name("part of a method", name, KNOWN)
    kind = KNOWN[name] if name in KNOWN else extras.load(name)
    return kind(**{option: rebuild(value, module=module) for option, value in options.items()})
