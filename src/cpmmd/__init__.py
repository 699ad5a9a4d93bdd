"""cpmmd: are these two samples from the same distribution?

Public names are imported when first asked for, so that the command line can print its help without numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpmmd.api import methods, two_sample_test
    from cpmmd.citation import cite
    from cpmmd.criteria import ComplexityPenalized, Plain, Ratio
    from cpmmd.detector import BatchResult, DriftDetector
    from cpmmd.errors import CpmmdError, CpmmdWarning
    from cpmmd.history import History
    from cpmmd.kernel_matrix import kernel_matrix_test
    from cpmmd.kernels.bandwidth import Bandwidth
    from cpmmd.kernels.deep import Deep
    from cpmmd.kernels.manhattan import Manhattan
    from cpmmd.kernels.mixture import Mixture
    from cpmmd.kernels.polynomial import Polynomial
    from cpmmd.kernels.radius import Radius
    from cpmmd.many import ManyResults, run_many
    from cpmmd.permutation.dense import PermutationNull
    from cpmmd.planning import power_from_pilot
    from cpmmd.procedures.full_sample import FullSampleTest, KernelClass
    from cpmmd.procedures.median import MedianTest
    from cpmmd.procedures.mmdagg import MMDAgg
    from cpmmd.procedures.mmdfuse import MMDFuse
    from cpmmd.procedures.split import SplitTest
    from cpmmd.results import TestResult
    from cpmmd.selection.ascent_options import Ascent
    from cpmmd.storage import load_kernel, save_kernel
    from cpmmd.study import Study, StudyTable, power_study

__version__ = "0.1.0"

_HOME = {
    "Ascent": "cpmmd.selection.ascent_options",
    "Bandwidth": "cpmmd.kernels.bandwidth",
    "BatchResult": "cpmmd.detector",
    "ComplexityPenalized": "cpmmd.criteria",
    "CpmmdError": "cpmmd.errors",
    "CpmmdWarning": "cpmmd.errors",
    "DriftDetector": "cpmmd.detector",
    "FullSampleTest": "cpmmd.procedures.full_sample",
    "History": "cpmmd.history",
    "KernelClass": "cpmmd.procedures.full_sample",
    "MMDAgg": "cpmmd.procedures.mmdagg",
    "MMDFuse": "cpmmd.procedures.mmdfuse",
    "Manhattan": "cpmmd.kernels.manhattan",
    "ManyResults": "cpmmd.many",
    "MedianTest": "cpmmd.procedures.median",
    "PermutationNull": "cpmmd.permutation.dense",
    "Plain": "cpmmd.criteria",
    "Polynomial": "cpmmd.kernels.polynomial",
    "Radius": "cpmmd.kernels.radius",
    "Ratio": "cpmmd.criteria",
    "SplitTest": "cpmmd.procedures.split",
    "Study": "cpmmd.study",
    "StudyTable": "cpmmd.study",
    "TestResult": "cpmmd.results",
    "cite": "cpmmd.citation",
    "kernel_matrix_test": "cpmmd.kernel_matrix",
    "load_kernel": "cpmmd.storage",
    "methods": "cpmmd.api",
    "power_from_pilot": "cpmmd.planning",
    "power_study": "cpmmd.study",
    "run_many": "cpmmd.many",
    "save_kernel": "cpmmd.storage",
    "two_sample_test": "cpmmd.api",
}

_EXTRA = ("Deep", "Mixture")  # need the extra that cpmmd.extras names

__all__ = [
    "Ascent",
    "Bandwidth",
    "BatchResult",
    "ComplexityPenalized",
    "CpmmdError",
    "CpmmdWarning",
    "Deep",
    "DriftDetector",
    "FullSampleTest",
    "History",
    "KernelClass",
    "MMDAgg",
    "MMDFuse",
    "Manhattan",
    "ManyResults",
    "MedianTest",
    "Mixture",
    "PermutationNull",
    "Plain",
    "Polynomial",
    "Radius",
    "Ratio",
    "SplitTest",
    "Study",
    "StudyTable",
    "TestResult",
    "cite",
    "kernel_matrix_test",
    "load_kernel",
    "methods",
    "power_from_pilot",
    "power_study",
    "run_many",
    "save_kernel",
    "two_sample_test",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _EXTRA:
        return import_module("cpmmd.extras").load(name)
    if not name.startswith("_"):  # a module of the package, as in cpmmd.errors
        try:
            return import_module(f"cpmmd.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"cpmmd.{name}":
                raise
    raise AttributeError(f"module 'cpmmd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
