"""Power of methods on panels, as a :class:`cpmmd.Study` whose cells are a panel, a method and the number of a draw.

A draw has the same rows for every method and in every run, now and when its file is continued: its number is its seed. That is
why it stands in the cell, where a task can see it, and each cell is run once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RESULTS
from cpmmd import Study, StudyTable, two_sample_test

Generate = Callable[[np.random.Generator], tuple[Any, Any]]
ALPHA = 0.05


def draw_study(
    name: str,
    panels: Mapping[str, Generate],
    methods: Mapping[str, Any],
    draws: int | range,
    settings: Mapping[str, Any] | None = None,
) -> Study:
    """Return the study of every method on the same draws of every panel.

    A method is a name, a procedure, or a function of both samples and a generator that returns a p-value. Settings go to each
    test of a name or a procedure.
    """
    numbers = range(draws) if isinstance(draws, int) else draws
    cells = [{"panel": p, "method": m, "draw": number} for number in numbers for p in panels for m in methods]
    task = partial(one_draw, dict(panels), dict(methods), dict(settings or {}))
    return Study(name, task, cells, repetitions=1, settings=settings or {})


def one_draw(
    panels: Mapping[str, Generate],
    methods: Mapping[str, Any],
    settings: Mapping[str, Any],
    cell: dict[str, Any],
    data_rng: np.random.Generator,  # noqa: ARG001
    test_rng: np.random.Generator,  # noqa: ARG001
) -> dict[str, float]:
    """One test of one draw."""
    data, _ = np.random.default_rng([2026, cell["draw"]]).spawn(2)
    x, y = panels[cell["panel"]](data)
    method = methods[cell["method"]]
    if callable(method):
        return {"pvalue": method(x, y, np.random.default_rng(cell["draw"]))}
    return {"pvalue": two_sample_test(x, y, method=method, rng=cell["draw"], missing="impute", **settings).pvalue}


def finish(study: Study, file: str | Path, *, jobs: int = 2) -> StudyTable:
    """Run what the file of results does not hold yet; say what failed."""
    table = study.run(RESULTS / file, n_jobs=jobs)
    for one in table.failures:
        print(f"failed: {one.cell}: {one.error}")
    return table


def again(study: Study, file: str, folder: Path, *, jobs: int = 2) -> str:
    """Run what the file of results holds of a study again, resumable in another folder; say how many p-values are the same."""
    before = study.read(RESULTS / file).repetitions
    kept = {one.key: one.values["pvalue"] for one in before}
    fresh = replace(study, cells=[one.cell for one in before]).run(folder / file, n_jobs=jobs).repetitions if kept else ()
    return f"{sum(one.values['pvalue'] == kept[one.key] for one in fresh)} of {len(kept)} p-values are the same"


def decisions(table: StudyTable) -> dict[tuple[str, str], list[bool]]:
    """Return whether each finished draw was rejected, by panel and method."""
    return {cell: list(drawn.values()) for cell, drawn in decisions_by_draw(table).items()}


def decisions_by_draw(table: StudyTable) -> dict[tuple[str, str], dict[int, bool]]:
    """Return the same with the number of each draw: methods have draws in common."""
    found: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)
    for one in table.repetitions:
        found[one.cell["panel"], one.cell["method"]][one.cell["draw"]] = one.values["pvalue"] <= ALPHA
    return found


def lead(own: Mapping[int, bool], other: Mapping[int, bool]) -> tuple[float, float, int]:
    """Return how far another method is ahead on the draws both have, the standard error of that, and how many these are."""
    common = sorted(set(own) & set(other))
    difference = np.array([other[draw] for draw in common], float) - np.array([own[draw] for draw in common], float)
    return float(difference.mean()), float(difference.std() / np.sqrt(len(common))), len(common)


def markdown(found: Mapping[tuple[str, str], list[bool]], panels: Iterable[str], methods: Iterable[str]) -> str:
    """Return the powers as a Markdown table, one row a panel, with the fewest repetitions of its methods."""
    names = list(methods)
    lines = ["| panel | " + " | ".join(names) + " | repetitions |", "| --- |" + " --- |" * (len(names) + 1)]
    for panel in panels:
        here = [found[panel, name] for name in names]
        powers = [f"{np.mean(one):.2f}" if one else "" for one in here]
        lines.append(f"| {panel} | " + " | ".join(powers) + f" | {min(map(len, here))} |")
    return "\n".join(lines)
