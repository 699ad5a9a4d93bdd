"""A pytest plugin for an environment without torch: what is about trained kernels is skipped, and says so.

A test is skipped where the library itself says that the extra ``deep`` is missing, where the test imports torch, and where it
imports a module that is about torch. A module that should do without torch and imports it is a failure like any other.

``make test-floor`` uses it: torch has no floor below the version that is pinned.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import cpmmd

PACKAGE = Path(cpmmd.__file__).resolve().parent
ABOUT_TORCH = (PACKAGE / "kernels" / "deep", PACKAGE / "selection" / "ascent.py")
REASON = "torch is not installed"
HINT = "needs the package 'torch', which is not installed"  # also in what the command line and a failed docstring print


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Skip a test file that imports torch."""
    report = yield
    call = getattr(report, "call", None)
    if call is not None and call.excinfo is not None and wants_torch(call.excinfo.value):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), None, f"Skipped: {REASON}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Skip a test that comes to torch."""
    report = yield
    if report.failed and call.excinfo is not None and (wants_torch(call.excinfo.value) or HINT in report.capstdout):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: {REASON}")
    return report


def wants_torch(error: BaseException) -> bool:
    """Whether the absence of torch is the reason of an error, in a place where it may be."""
    reasons = list(chain(error))
    if any(HINT in str(reason) for reason in reasons):
        return True
    missing = [reason for reason in reasons if isinstance(reason, ModuleNotFoundError) and reason.name == "torch"]
    return any(through_torch_alone(reason.__traceback__) for reason in missing)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def through_torch_alone(traceback: TracebackType | None) -> bool:
    """Whether no module of the package stands on the way to an import but those about torch."""
    passed = []
    while traceback is not None:
        passed.append(Path(traceback.tb_frame.f_code.co_filename).resolve())
        traceback = traceback.tb_next
    ours = [path for path in passed if path.is_relative_to(PACKAGE)]
    return all(any(path.is_relative_to(place) for place in ABOUT_TORCH) for path in ours)
