"""Power by repetition, resumable: finished repetitions are appended to a JSON-lines file and never run again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cpmmd import two_sample_test

RESULTS = Path(__file__).parent / "results"
Generator = Callable[[np.random.Generator], tuple[Any, Any]]


def run(
    file: str, panels: dict[str, Generator], methods: dict[str, Any], repetitions: int, *, jobs: int = 2, **options: Any
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Run every method on the same data of every panel and give all finished repetitions by (panel, method)."""
    path = RESULTS / file
    path.parent.mkdir(exist_ok=True)
    done = _read(path)
    todo = [
        (panel, method, repetition)
        for panel in panels
        for method in methods
        for repetition in range(repetitions)
        if repetition not in {row["repetition"] for row in done[panel, method]}
    ]
    calls = (delayed(_one)(p, panels[p], m, methods[m], r, options) for p, m, r in todo)
    with path.open("a") as out:
        for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
            out.write(json.dumps(row) + "\n")
            out.flush()
            done[row["panel"], row["method"]].append(row)
    return done


def _one(panel: str, generate: Generator, name: str, method: Any, repetition: int, options: dict[str, Any]) -> dict[str, Any]:
    data, _ = np.random.default_rng([2026, repetition]).spawn(2)
    procedure = method() if callable(method) and not isinstance(method, str) else method
    with threadpool_limits(1):
        result = two_sample_test(*generate(data), method=procedure, rng=repetition, **options)
    return {"panel": panel, "method": name, "repetition": repetition, "pvalue": result.pvalue}


def _read(path: Path) -> defaultdict[tuple[str, str], list[dict[str, Any]]]:
    done: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            done[row["panel"], row["method"]].append(row)
    return done


def table(
    done: dict[tuple[str, str], list[dict[str, Any]]], panels: Iterable[str], methods: Iterable[str], alpha: float = 0.05
) -> str:
    """Return the powers as a Markdown table."""
    names = list(methods)
    lines = ["| panel | " + " | ".join(names) + " | repetitions |", "| --- |" + " --- |" * (len(names) + 1)]
    for panel in panels:
        cells = [[row["pvalue"] <= alpha for row in done[panel, name]] for name in names]
        powers = [f"{np.mean(cell):.2f}" if cell else "" for cell in cells]
        lines.append(f"| {panel} | " + " | ".join(powers) + f" | {min(map(len, cells))} |")
    return "\n".join(lines)
