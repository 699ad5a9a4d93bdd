"""``cpmmd doctor``: what is installed, what the machine has, and a self-test of a second."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

from cpmmd.cli.output import say, say_json
from cpmmd.core.plain import PlainDict

BUILDING = ("all", "dev", "docs", "experiments", "lint", "test")  # extras of who changes the package
REQUIREMENT = re.compile(r"""^([\w.-]+)[^;]*(?:;.*\bextra == ['"]([\w-]+)['"])?""")
EXPECTED = (0.01, 0.905)  # p-values of the self-test: the same on every machine


def examine(*, as_json: bool = False) -> bool:
    """Print versions, extras, threads, memory and the self-test; whether all is well."""
    required, extras = _packages()
    found: PlainDict = {
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "package": str(Path(__file__).parents[1]),
        "required": required,
        "extras": extras,
        "threads": _threads(),
        "memory": _memory(),
        "self_test": _self_test(),
    }
    well = bool(found["self_test"]["passed"]) and None not in required.values()
    if as_json:
        say_json({"command": "doctor", "well": well, **found})
    else:
        for line in _lines(found):
            say(line)
    return well


def _packages() -> tuple[dict[str, str | None], dict[str, dict[str, str | None]]]:
    """Return the versions of required packages, and of those of each extra; None where one is not installed."""
    try:
        listed = metadata("cpmmd").get_all("Requires-Dist") or []
    except PackageNotFoundError:  # run from a checkout that was never installed
        listed = []
    required, extras = dict[str, str | None](), dict[str, dict[str, str | None]]()
    for requirement in listed:
        if (match := REQUIREMENT.match(requirement)) is None or match[1] == "cpmmd":
            continue
        if match[2] is None:
            required[match[1]] = _version(match[1])
        elif match[2] not in BUILDING:
            extras.setdefault(match[2], {})[match[1]] = _version(match[1])
    return required, extras


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _threads() -> PlainDict:
    import threadpoolctl

    from cpmmd.core.parallel import available_cores

    pools = [f"{pool['internal_api']} {pool.get('version') or ''}".strip() for pool in threadpoolctl.threadpool_info()]
    limits = {
        name: os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ
    }
    return {"cores": available_cores(), "libraries": sorted(set(pools)), "limits": limits}


def _memory() -> PlainDict:
    """Return bytes of memory, None where the system does not say."""
    names = {"total": "SC_PHYS_PAGES", "available": "SC_AVPHYS_PAGES"}
    try:
        found: PlainDict = {name: os.sysconf(key) * os.sysconf("SC_PAGE_SIZE") for name, key in names.items()}
    except (ValueError, OSError, AttributeError):
        found = dict.fromkeys(names)
    from cpmmd.engines.memory import DEFAULT_LIMIT

    return {**found, "limit": DEFAULT_LIMIT}


def _self_test() -> PlainDict:
    """Return whether two small tests give the p-values that they must, and the seconds that they took."""
    import numpy as np

    from cpmmd.questions.two_sample import two_sample_test

    rng = np.random.default_rng(2)
    x, y, same = rng.normal(size=(100, 3)), rng.normal([0.5, 0, 0], 1, (120, 3)), rng.normal(size=(120, 3))
    started = time.perf_counter()
    found = [two_sample_test(x, other, rng=0, n_permutations=199).pvalue for other in (y, same)]
    seconds = time.perf_counter() - started
    return {"passed": found == list(EXPECTED), "pvalues": found, "expected": list(EXPECTED), "seconds": round(seconds, 3)}


def _lines(found: PlainDict) -> Iterator[str]:
    """Yield what a person reads."""
    from cpmmd import __version__
    from cpmmd.core.installation import install_command
    from cpmmd.core.text import bytes_in_words, pluralize

    test, memory, threads = found["self_test"], found["memory"], found["threads"]
    seconds = f"{test['seconds']:.2f} s"
    if test["passed"]:
        yield f"The self-test passed in {seconds}."
    else:
        yield f"The self-test FAILED in {seconds}: p-values {test['pvalues']} instead of {test['expected']}. Please report it."
    yield ""
    yield f"  cpmmd        {__version__} in {found['package']}"
    yield f"  Python       {found['python']}"
    yield f"  platform     {found['platform']}"
    yield f"  requires     {_listed(found['required'])}"
    limits = ", ".join(f"{name}={value}" for name, value in threads["limits"].items())
    libraries = ", ".join(threads["libraries"])
    yield f"  threads      {pluralize(threads['cores'], 'core')}; {libraries}{'; ' if limits else ''}{limits}"
    if memory["total"] is not None:
        amounts = f"{bytes_in_words(memory['available'])} free of {bytes_in_words(memory['total'])}"
        yield f"  memory       {amounts}; a test may take {bytes_in_words(memory['limit'])} (--memory-limit)"
    yield ""
    for extra, packages in sorted(found["extras"].items()):
        absent = None in packages.values()
        yield f"  {extra:<12} {_listed(packages)}{f'; install with {install_command(extra)}' if absent else ''}"


def _listed(packages: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {found or 'NOT INSTALLED'}" for name, found in packages.items())
