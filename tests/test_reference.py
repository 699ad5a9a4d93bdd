"""Every public name has a page: numpydoc with types, and an example that stands on its own.

The examples are run by test_documentation.py; here they are only read.
"""

import ast
import builtins
import dataclasses
import doctest
import importlib
import inspect
import re
import subprocess
import sys
import warnings

import pytest

import cpmmd
from cpmmd import registry

docscrape = pytest.importorskip("numpydoc.docscrape", reason="numpydoc is in the extra 'docs'")

# Modules whose functions are public by their __all__.
MODULES = ("cpmmd.plotting", "cpmmd.report", "cpmmd.explain")
# What results, recipes and contracts are made of: one line, and a comment beside each field.
PARTS = {
    "cpmmd.errors": (
        "ParameterReference",
        "TooFewUnitsError",
        "UnknownNameError",
        "MissingExtraError",
        "DegenerateKernelWarning",
    ),
    "cpmmd.kernels.base": ("Kernel", "KernelFamily", "TrainedFamily"),
    "cpmmd.kernels.scaled": ("ScaleFamily",),
    "cpmmd.procedures.base": ("Choice", "Method", "Procedure", "RunOptions"),
    "cpmmd.selection.criteria": ("Criterion",),
    "cpmmd.studies.power_table": ("Draws", "PowerLaw", "Range"),
}


def of_module(module, names):
    return {f"{module}.{name}": getattr(importlib.import_module(module), name) for name in names}


def methods_of(kind):
    """Public methods by qualified name, each from the class that declares it first: an override need not repeat its page."""
    found = {}
    for base in (b for b in kind.__mro__ if b.__module__.startswith("cpmmd")):  # the last one is the first to declare
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(function):
                found[name] = function
    return {f"{function.__module__}.{function.__qualname__}": function for function in found.values()}


NAMED = {f"cpmmd.{name}": getattr(cpmmd, name) for name in registry.public_names()}
LISTED = {name: value for m in MODULES for name, value in of_module(m, importlib.import_module(m).__all__).items()}
EVERYTHING = {**NAMED, **LISTED, **{name: value for m, names in PARTS.items() for name, value in of_module(m, names).items()}}
CLASSES = {name: value for name, value in EVERYTHING.items() if isinstance(value, type)}
FUNCTIONS = {name: value for name, value in EVERYTHING.items() if inspect.isfunction(value)}
CALLED = {
    name: value for name, value in {**NAMED, **LISTED}.items() if inspect.isfunction(value) or ">>>" in (value.__doc__ or "")
}
VALUES = {name: value for name, value in CLASSES.items() if name not in CALLED}
# Methods of procedures, families and criteria are called by the package, not by people: a line each.
RECIPES = {cpmmd.KernelClass, *registry.procedures().values(), *registry.families().values(), *registry.criteria().values()}
KINDS = [kind for name, kind in CLASSES.items() if name in CALLED and kind not in RECIPES]
METHODS = {
    name: method
    for kind in KINDS
    for name, method in methods_of(kind).items()
    if method.__qualname__.partition(".")[0] in {called.__name__ for called in KINDS}
}
NUMPYDOC = {**CALLED, **METHODS}


def page(value):
    """Parse a docstring; what numpydoc warns of is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(value, type):
            return docscrape.ClassDoc(value, config={"show_class_members": False})
        return docscrape.FunctionDoc(value)


def names_in(entries):
    return {name.strip().lstrip("*") for entry in entries for name in entry.name.split(",")}


def untyped(entries):
    return [entry.name for entry in entries if not entry.type and not " ".join(entry.desc).startswith("As for ")]


def parameters_of(function):
    return {name for name in inspect.signature(function).parameters if name not in ("self", "cls")}


def constructed_from(kind):
    """What a class is made of: the fields of a dataclass, or what its own __init__ takes."""
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")}
    return parameters_of(kind.__init__) if "__init__" in vars(kind) and not getattr(kind, "_is_protocol", False) else set()


def test_every_public_name_is_looked_at():
    values = [value for name, value in EVERYTHING.items() if not (name in CLASSES or name in FUNCTIONS)]
    assert values == []
    assert set(cpmmd.__all__) == {*registry.public_names(), "errors", "paper", "plotting", "report"}


@pytest.mark.parametrize("name", NUMPYDOC)
def test_the_docstring_is_numpydoc(name):
    value = NUMPYDOC[name]
    assert value.__doc__, "it has no docstring of its own"
    found = page(value)
    summary = " ".join(found["Summary"])
    assert summary.endswith("."), summary
    assert summary.split()[0] not in ("Give", "Gives"), summary
    for section in ("Parameters", "Attributes"):
        assert untyped(found[section]) == [], section


def test_what_people_call_has_an_example_and_is_most_of_what_is_named():
    """Values that only come out of calls do without one: the pages of those calls show them."""
    called = [name for name in NAMED if name in CALLED]
    assert {f"cpmmd.{name}" for name in (*registry.procedures(), *registry.families(), *registry.criteria())} <= set(called)
    assert [name for name in NAMED if name not in called and not isinstance(NAMED[name], type)] == []


def comments_of(kind):
    """Return the comment of each field of a dataclass, also inherited: behind it, or above it (for several: ``a, b: ...``)."""
    found = {}
    for base in reversed(kind.__mro__):
        if dataclasses.is_dataclass(base):
            found |= own_comments_of(base)
    return found


def own_comments_of(kind):
    found, above, open_ = {}, "", False  # the comment above, and whether it goes on
    for line in inspect.getsource(kind).splitlines():
        field = re.match(r"    (\w+): ", line)
        if line.startswith("    #"):
            above, open_ = (above if open_ else "") + line.strip("#: ") + " ", True
        elif field:
            comment, open_ = line.partition("  #")[2] or above, False
            found |= {field[1]: comment} if comment else {}
            above = above if re.match(rf"[\w, ]*\b{field[1]}\b[\w, ]*:", above) else ""
        else:
            above, open_ = "", False
    return found


@pytest.mark.parametrize("name", VALUES)
def test_values_have_a_line_and_a_comment_for_each_field(name):
    kind = VALUES[name]
    assert (kind.__doc__ or "").partition("\n")[0].endswith("."), "it has no docstring of its own"
    if dataclasses.is_dataclass(kind):
        comments = comments_of(kind)
        own = [
            field for field in kind.__annotations__ if not field.startswith("_") and "ClassVar" not in kind.__annotations__[field]
        ]
        assert [name for name in own if not comments.get(name)] == []


@pytest.mark.parametrize("name", CLASSES)
def test_properties_say_what_they_are(name):
    properties = {key: value for key, value in inspect.getmembers(CLASSES[name]) if isinstance(value, property)}
    assert [key for key, value in properties.items() if not key.startswith("_") and not value.__doc__] == []


@pytest.mark.parametrize("name", {**FUNCTIONS, **METHODS})
def test_functions_list_their_parameters_and_what_they_return(name):
    function = NUMPYDOC[name]
    found, parameters = page(function), parameters_of(function)
    assert names_in(found["Parameters"]) == parameters
    returns = inspect.signature(function).return_annotation != "None"
    says_it_in_a_line = name in METHODS and not parameters and found["Summary"][0].startswith("Return ")
    assert says_it_in_a_line or bool(found["Returns"]) == returns
    assert all(entry.type for entry in found["Returns"])


@pytest.mark.parametrize("name", [name for name in CLASSES if name in CALLED])
def test_classes_list_what_they_are_made_of(name):
    found, wanted = page(CLASSES[name]), constructed_from(CLASSES[name])
    commented = set(comments_of(CLASSES[name])) if dataclasses.is_dataclass(CLASSES[name]) else set()
    assert wanted <= names_in(found["Parameters"]) | names_in(found["Attributes"]) | commented
    assert names_in(found["Parameters"]) <= wanted


@pytest.mark.parametrize("name", CALLED)
def test_there_is_an_example(name):
    assert any(line.startswith(">>> ") for line in page(CALLED[name])["Examples"])


@pytest.mark.parametrize("name", [name for name, value in NUMPYDOC.items() if ">>>" in value.__doc__])
def test_examples_import_what_they_use_from_public_names(name):
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(NUMPYDOC[name].__doc__))
    used, bound = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update(alias.asname or alias.name for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module.startswith("cpmmd"):
                assert node.module == "cpmmd"
                assert {alias.name for alias in node.names} <= set(cpmmd.__all__)
        elif isinstance(node, ast.FunctionDef | ast.ExceptHandler):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    assert used <= bound


# Not sys.modules["torch"] = None: scipy looks there, and takes None for the module.
WITHOUT_TORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Absent())

import inspect
import pydoc

import cpmmd
from cpmmd import *

assert set(cpmmd.__all__) <= set(globals())
assert set(cpmmd.__all__) <= {name for name, _ in inspect.getmembers(cpmmd)}
assert "two_sample_test" in pydoc.render_doc(cpmmd)
assert "torch" not in sys.modules
"""


def test_names_and_help_need_no_torch():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
