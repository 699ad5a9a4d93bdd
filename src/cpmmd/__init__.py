"""cpmmd: are these two samples from the same distribution?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cpmmd import extras
from cpmmd.api import methods, two_sample_test
from cpmmd.criteria import ComplexityPenalized, Plain, Ratio
from cpmmd.errors import CpmmdError, CpmmdWarning
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.manhattan import Manhattan
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.many import ManyResults, run_many
from cpmmd.procedures.full_sample import FullSampleTest, KernelClass
from cpmmd.procedures.median import MedianTest
from cpmmd.procedures.mmdagg import MMDAgg
from cpmmd.procedures.mmdfuse import MMDFuse
from cpmmd.procedures.split import SplitTest
from cpmmd.results import TestResult
from cpmmd.selection.ascent_options import Ascent
from cpmmd.storage import load_kernel, save_kernel
from cpmmd.study import Study, StudyTable, power_study

if TYPE_CHECKING:
    from cpmmd.detector import BatchResult, DriftDetector
    from cpmmd.kernels.deep import Deep
    from cpmmd.kernels.mixture import Mixture

__version__ = "0.1.0"

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
    "KernelClass",
    "MMDAgg",
    "MMDFuse",
    "Manhattan",
    "ManyResults",
    "MedianTest",
    "Mixture",
    "Plain",
    "Polynomial",
    "Ratio",
    "SplitTest",
    "Study",
    "StudyTable",
    "TestResult",
    "load_kernel",
    "methods",
    "power_study",
    "run_many",
    "save_kernel",
    "two_sample_test",
]


_LATER = {"BatchResult": "cpmmd.detector", "DriftDetector": "cpmmd.detector"}  # scikit-learn takes a second to import


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in extras.LAZY:
        return extras.load(name)
    raise AttributeError(f"module 'cpmmd' has no attribute {name!r}")
