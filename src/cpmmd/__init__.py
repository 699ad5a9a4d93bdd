"""cpmmd: are these two samples from the same distribution?"""

from cpmmd.api import methods, two_sample_test
from cpmmd.criteria import ComplexityPenalized, Plain, Ratio
from cpmmd.errors import CpmmdError, CpmmdWarning
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.procedures.median import MedianTest
from cpmmd.procedures.split import SplitTest
from cpmmd.results import TestResult

__version__ = "0.1.0"

__all__ = [
    "Bandwidth",
    "ComplexityPenalized",
    "CpmmdError",
    "CpmmdWarning",
    "MedianTest",
    "Plain",
    "Polynomial",
    "Ratio",
    "SplitTest",
    "TestResult",
    "methods",
    "two_sample_test",
]
