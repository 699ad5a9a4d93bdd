"""How sure the answer is, and how to get it again."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence

import numpy as np

from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.registry import public_names
from cpmmd.report import blocks, cells
from cpmmd.report.blocks import Block
from cpmmd.selection.certificates import Certificate, LowerBound


def assurance(result: TestOutcome, explanation: Explanation | None, names: Sequence[str]) -> Block:
    """Return the section on level, resolution, certificate and remarks."""
    (m, n), (mt, nt) = result.sizes, result.tested_sizes
    tested = "all rows" if (m, n) == (mt, nt) else f"{cells.count(mt)} of {names[0]} and {cells.count(nt)} of {names[1]}"
    said = () if explanation is None else explanation.notes  # how a design compares is said beside the columns
    paired = explanation is not None and explanation.effect is None
    certificate = None if result.certificate is None or result.certificate.vacuous else result.certificate
    return blocks.section(
        "assurance",
        "How sure",
        [
            blocks.facts(
                [
                    ("Pairs" if paired else "Told apart", None if explanation is None else explanation.told),
                    ("Level", _level(result)),
                    ("Relabelings", _resolution(result)),
                    ("Exchangeable", None if result.design is None else str(result.design)),
                    ("Tested rows", tested),
                    ("Held out", _held_out(explanation)),
                    ("Certificate", None if certificate is None else certificate.statement),
                    ("Seed", "given as a Generator, not recorded" if result.seed is None else str(result.seed)),
                ]
            ),
            None if certificate is None else _certificate(certificate),
            blocks.notes([*result.notes, *said]),
        ],
    )


def repetition(command: str | None, call: str, version: str) -> Block:
    """Return the section with the command, the Python call and the versions it was run with."""
    versions = [("cpmmd", version), ("Python", platform.python_version()), ("numpy", np.__version__)]
    return blocks.section(
        "repeat",
        "How to repeat it",
        [
            None if not command else blocks.code(command, "sh"),
            None if not call else blocks.code(_program(call), "python"),
            blocks.facts([("Versions", ", ".join(f"{name} {number}" for name, number in versions))]),
        ],
    )


def _program(call: str) -> str:
    """Return a call with the import it needs."""
    names = sorted(set(re.findall(r"\b[A-Za-z]\w*(?=\()", call)) & set(public_names()))
    return f"from cpmmd import {', '.join(names)}\n\nresult = {call}"


def _level(result: TestOutcome) -> str:
    if result.design is not None and not result.design.exact:
        return f"{result.alpha:g}, approximately: blocks of rows are exchangeable as far as dependence fades within their length"
    if not result.exact:
        return f"{result.alpha:g}, exact given the method's bandwidths, which look at which row is whose"
    return f"{result.alpha:g}, exact: if both samples came from one distribution, p would fall to it at most that often"


def _resolution(result: TestOutcome) -> str:
    total = len(result.null_distribution)
    if result.exhaustive:
        return f"all {cells.count(total + 1)}; p has no error from drawing"
    error = np.sqrt(result.pvalue * (1 - result.pvalue) / total)
    least = f"p cannot be below {1 / (total + 1):.2g}"
    return f"{cells.count(total)} at random; {least}, and has a standard error of {error:.1g} from the drawing"


def _held_out(explanation: Explanation | None) -> str | None:
    if explanation is None:
        return None
    return f"{'yes' if explanation.held_out else 'no'}: the tested rows {_part(explanation.held_out)} the kernel"


def _part(held_out: bool) -> str:
    return "had no part in choosing" if held_out else "also chose"


def _certificate(certificate: Certificate) -> Block:
    readings: list[tuple[str, LowerBound | None]] = [
        ("constant derived from swaps", certificate.worst_case),
        ("constant of the paper's theorem (not proven)", certificate.stated),
        ("calibrated constant (no theorem)", certificate.calibrated),
    ]
    columns = [
        ("Reading", "text"),
        ("Constant", "number"),
        ("Lower bound", "number"),
        ("Needed for power", "number"),
        ("Power certified", "flag"),
    ]
    rows: list[list[object]] = [
        [name, r.constant, r.lower_bound, certificate.threshold, r.power_certified] for name, r in readings if r is not None
    ]
    title = f"Lower bounds of the squared MMD, stated with probability {1 - certificate.delta:g}"
    return blocks.table("certificate", title, columns, rows, note=f"Taken for granted: {'; '.join(certificate.assumptions)}.")
