"""Drift detection: fit a reference once, test many batches; save and load."""

from cpmmd.detector.batches import BatchResult
from cpmmd.detector.estimator import DriftDetector

__all__ = ["BatchResult", "DriftDetector"]
