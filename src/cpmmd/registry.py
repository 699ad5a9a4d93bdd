"""Everything that has a name: procedures and their methods, kernel families, criteria.

Nothing is listed here. What stands in ``__init__.pyi``, the list of public names, and is defined in ``procedures``, ``kernels``
or ``selection`` is known to :func:`cpmmd.methods`, to files, citations, the documentation and the conformance tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files

from cpmmd.core import validation
from cpmmd.core.text import call_text
from cpmmd.errors import unknown_name
from cpmmd.kernels.base import KernelFamily
from cpmmd.procedures.base import Method, Procedure
from cpmmd.selection.criteria import Criterion

DEFAULT_METHOD = "cp-full"


@cache
def public_names() -> dict[str, str]:
    """Return every public name with the module that defines it."""
    stub = ast.parse(files("cpmmd").joinpath("__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module is not None]
    return {alias.name: f"cpmmd.{node.module}" for node in imports for alias in node.names}


@cache
def procedures() -> dict[str, type[Procedure]]:
    """Return the procedures by name."""
    return {name: kind for name, kind in _defined_in("procedures") if issubclass(kind, Procedure)}


@cache
def families() -> dict[str, type[KernelFamily]]:
    """Return the kernel families by name."""
    return {name: kind for name, kind in _defined_in("kernels") if issubclass(kind, KernelFamily)}


@cache
def criteria() -> dict[str, type[Criterion]]:
    """Return the criteria by name."""
    return {name: kind for name, kind in _defined_in("selection") if issubclass(kind, Criterion)}


@cache
def named_methods() -> dict[str, Method]:
    """Return the methods by name, the default first."""
    found = {name: method for kind in procedures().values() for name, method in kind.methods().items()}
    return {DEFAULT_METHOD: found[DEFAULT_METHOD], **found}


def find_method(method: str | Procedure) -> tuple[str, str, Procedure]:
    """Return a method's name, its one line (none for a procedure of the user's own) and its procedure."""
    if isinstance(method, Procedure):
        return call_text(method), "", method
    if not isinstance(method, str):
        raise validation.wrong("method", "must be a name or a procedure such as SplitTest()", method)
    if method not in named_methods():
        raise unknown_name("method", method, named_methods())
    return method, named_methods()[method].summary, named_methods()[method].make()


def _defined_in(room: str) -> Iterator[tuple[str, type]]:
    """Yield the public classes of a room."""
    for name, module in public_names().items():
        if module.startswith(f"cpmmd.{room}."):
            value = getattr(import_module(module), name)
            if isinstance(value, type):
                yield name, value
