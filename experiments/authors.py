"""Tables of the page of questions for the authors: the paper's numbers beside ours under each reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.artefacts.deep import CELLS
from experiments.artefacts.deep_start import STARTS
from experiments.base import Rows
from experiments.compare import RATES, same_value
from experiments.tally import read_printed

Summaries = Mapping[str, Rows]  # rows of each id's summary, as text
METHODS = {"CP": "cp", "Liu": "liu", "Plain": "plain"}
UNITS = {
    "C1-hat, width 50, mean": ("c1-width", {"width": 50}, "c1"),
    "C1-hat, width 100, mean": ("c1-width", {"width": 100}, "c1"),
    "C1-hat, width 200, mean": ("c1-width", {"width": 200}, "c1"),
    "C1-hat, shift .3, mean": ("c1-shift", {"shift": 0.3}, "c1"),
    "C1-hat, shift .7, mean": ("c1-shift", {"shift": 0.7}, "c1"),
    "C1-hat, shift 1, mean": ("c1-shift", {"shift": 1}, "c1"),
    **{f"collapse, width {width}, G": ("collapse", {"width": width}, "complexity") for width in (10, 50, 200, 400)},
}
HALVES = {  # n as it is printed, and twice as many rows a sample
    "kurtosis, df 20, MMDAgg": (
        ("polynomial", {"df": 20, "method": "mmdagg B=10"}),
        ("polynomial-rows", {"df": 20, "method": "mmdagg B=10"}),
    ),
    "kurtosis, df 20, CP": (
        ("polynomial", {"df": 20, "method": "cp"}),
        ("polynomial-rows", {"df": 20, "method": "cp"}),
    ),
    "kurtosis, df 20, CP up to 1/8 of the median": (
        ("polynomial-halves", {"n": 500, "df": 20, "method": "cp-narrow"}),
        ("polynomial-halves", {"n": 1000, "df": 20, "method": "cp-narrow"}),
    ),
    "Higgs, CP degree 3, standardised": (
        ("higgs", {"n": 500, "method": "cp-poly3"}),
        ("higgs-rows", {"n": 1000, "scale": "standard", "method": "cp-poly3"}),
    ),
    "Higgs, CP degree 3, raw": (
        ("higgs-rows", {"n": 500, "scale": "raw", "method": "cp-poly3"}),
        ("higgs-rows", {"n": 1000, "scale": "raw", "method": "cp-poly3"}),
    ),
}
PRINTED_AS = {  # rows that ask for the same number in another way
    "kurtosis, df 20, CP up to 1/8 of the median": "kurtosis, df 20, CP",
    "Higgs, CP degree 3, standardised": "Higgs, n = 500, Median and CP degree 3",
    "Higgs, CP degree 3, raw": "Higgs, n = 500, Median and CP degree 3",
}


def tables(summaries: Summaries) -> dict[str, str]:
    """Return the tables by the name of their place in the template."""
    return {
        "starts": _starts(summaries),
        "start_product": _shown(summaries, "c1-ablation", {"start": "3/fan_in", "c1": 1e-5}, "product_start"),
        "units": _units(summaries),
        "halves": _halves(summaries),
    }


def _starts(summaries: Summaries) -> str:
    """The deep table under each start of the networks, C1-hat calibrated on every training half."""
    rows = []
    for method, ours in METHODS.items():
        for d, n in CELLS:
            name = f"deep, d = {d}, n = {n}, {method}"
            found = (_shown(summaries, "deep-start", {"d": d, "n": n, "start": start, "method": ours}) for start in STARTS)
            rows.append([name, _paper(name), *found])
    return _markdown(["number", "paper", *(f"start {start}" for start in STARTS)], rows)


def _units(summaries: Summaries) -> str:
    """C1-hat and G in both units."""
    rows = [
        [name, _paper(name), _shown(summaries, one, cell, column), _shown(summaries, one, cell, f"{column}_root")]
        for name, (one, cell, column) in UNITS.items()
    ]
    return _markdown(["number", "paper", "G with N, as defined", "G with sqrt(N)"], rows)


def _halves(summaries: Summaries) -> str:
    """Power where n counts the rows of a sample, and where it counts those of a half."""
    rows = [
        [name, _paper(PRINTED_AS.get(name, name)), *(_shown(summaries, one, cell) for one, cell in both)]
        for name, both in HALVES.items()
    ]
    return _markdown(["number", "paper", "n rows a sample", "2n rows a sample"], rows)


def _paper(key: str) -> str:
    return f"{next(one.value for one in read_printed() if one.key == key):g}"


def _shown(summaries: Summaries, name: str, cell: Mapping[str, Any], column: str = "reject") -> str:
    """Return one number of a summary; a rate with its standard error and repetitions."""
    row = next(row for row in summaries[name] if row.get(column) and all(same_value(row.get(k), str(v)) for k, v in cell.items()))
    if column not in RATES:
        return f"{float(row[column]):.3g}"
    return f"{float(row[column]):.2f} ± {float(row[f'{column}_error']):.2f} ({row['repetitions']})"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
