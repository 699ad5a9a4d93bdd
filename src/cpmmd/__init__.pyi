# Every public name, and the file that defines it. Names here are imported when first asked for; procedures, kernel families and
# criteria that stand here are known to methods(), files, citations, the documentation and the conformance tests.
from . import errors as errors
from . import plotting as plotting
from . import report as report
from .api.kernel_matrix import kernel_matrix_test as kernel_matrix_test
from .api.two_sample import methods as methods
from .api.two_sample import two_sample_test as two_sample_test
from .citation import cite as cite
from .core.progress import Meter as Meter
from .errors import CpmmdError as CpmmdError
from .errors import CpmmdWarning as CpmmdWarning
from .kernels.bandwidth import Bandwidth as Bandwidth
from .kernels.deep.families import Deep as Deep
from .kernels.deep.families import Mixture as Mixture
from .kernels.laplacian_l1 import LaplacianL1 as LaplacianL1
from .kernels.polynomial import Polynomial as Polynomial
from .kernels.radius import Radius as Radius
from .monitoring.batches import BatchResult as BatchResult
from .monitoring.detector import DriftDetector as DriftDetector
from .monitoring.history import History as History
from .procedures.classes import KernelClass as KernelClass
from .procedures.energy import EnergyTest as EnergyTest
from .procedures.full_sample import FullSampleTest as FullSampleTest
from .procedures.median import MedianTest as MedianTest
from .procedures.mmdagg import MMDAgg as MMDAgg
from .procedures.mmdfuse import MMDFuse as MMDFuse
from .procedures.split import SplitTest as SplitTest
from .results import TestResult as TestResult
from .selection.ascent_options import Ascent as Ascent
from .selection.criteria import ComplexityPenalized as ComplexityPenalized
from .selection.criteria import Plain as Plain
from .selection.criteria import Ratio as Ratio
from .storage.kernels import load_kernel as load_kernel
from .storage.kernels import save_kernel as save_kernel
from .studies.many import ManyResults as ManyResults
from .studies.many import run_many as run_many
from .studies.multiplicity import benjamini_hochberg as benjamini_hochberg
from .studies.planning.pilot import power_from_pilot as power_from_pilot
from .studies.power_study import power_study as power_study
from .studies.study import Study as Study
from .studies.study_table import StudyTable as StudyTable

__version__: str
