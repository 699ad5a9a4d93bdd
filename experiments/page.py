"""The comparison printed, and docs/reproduction.md made from it and a hand-written template."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from experiments.base import HERE, Experiment, Rows, read_csv
from experiments.compare import Comparison
from experiments.compare import compare as compare_one
from experiments.registry import MODULES, find

TEMPLATE = HERE / "reproduction.template.md"
PAGE = HERE.parent / "docs" / "reproduction.md"
MEASURED = ("method", "repetitions", "reject", "pvalue", "c1", "part", "deviation", "loss", "bound", "quantity", "value")
DEEP_CELLS = ("2, n=200", "20, n=200", "50, n=100", "100, n=100", "20, n=50")
HEADLINES = {  # the cells that the paper's story rests on
    "linear": ("shift=0.3, method=cp", "shift=0.3, method=median"),
    "polynomial": ("df=20, method=cp", "df=20, method=mmdagg B=10", "df=20, method=cp-full"),
    "deep": tuple(
        f"d={d}, n={n}, shift=0.5, method=cp-reused" for d, n in ((2, 200), (20, 200), (50, 100), (100, 100), (20, 50))
    ),
    "richness": ("width=1000, method=cp-reused", "width=1000, method=liu", "width=1000, method=plain"),
    "higgs": ("n=500, method=cp-poly3", "n=500, method=cp-deep"),
    "collapse": ("largest J_CP of a collapsed run",),
    "c1-ablation": ("2/fan_in, slope over 1e-3 to 1e-1", "3/fan_in, slope over 1e-3 to 1e-1"),
    "cost": ("MMDAgg over cp-poly3 (deployed) at B = 10", "MMDAgg over cp-poly3 (whole) at B = 10"),
}
REFERENCE = "../experiments/results"  # from the page to the figures


def compare(name: str | None, *, results: Path, write_docs: bool) -> int:
    """Print one id's comparison or all; where asked, write tables, figures and the page from the repetitions."""
    names = list(MODULES) if name is None else [name]
    for one in names:
        experiment = find(one)
        table = experiment.read(results) if write_docs else None
        if table is not None:
            experiment.publish(table, results)
        print(f"\n{one}: {experiment.title}")
        print(_table(compare_one(experiment, results)))
    if write_docs:
        PAGE.write_text(page(results))
        print(f"\nwrote {PAGE}")
    return 0


def page(results: Path) -> str:
    """Give the page: the template with its generated parts."""
    experiments = [find(name) for name in MODULES]
    parts = {
        "status": _status(experiments, results),
        "verdicts": _verdicts(experiments, results),
        "headlines": _headlines(results),
        "comparison": "\n".join(_section(experiment, results) for experiment in experiments),
    }
    text = TEMPLATE.read_text()
    for name, part in parts.items():
        text = text.replace("{{ " + name + " }}", part)
    return text


def _status(experiments: list[Experiment], results: Path) -> str:
    """How many repetitions of each id there are, and the processor time they took."""
    lines = ["| id | paper | cells | repetitions | of | processor time |", "| --- | --- | --- | --- | --- | --- |"]
    total = 0.0
    for one in experiments:
        table = one.read(results)
        done = _done(one, results)
        seconds = 0.0 if table is None else table.seconds
        total += seconds
        lines.append(f"| {one.id} | {one.artefact} | {len(one.cells)} | {done} | {one.repetitions} | {seconds / 60:.1f} min |")
    lines.append(f"\nProcessor time in all: {total / 3600:.1f} hours, half of that on two cores that do nothing else.")
    return "\n".join(lines)


def _done(experiment: Experiment, results: Path) -> int:
    """Repetitions that every cell has."""
    table = experiment.read(results)
    return 0 if table is None else min(len(table.where(**cell)) for cell in experiment.cells)


def _verdicts(experiments: list[Experiment], results: Path) -> str:
    found = (one for experiment in experiments for one in compare_one(experiment, results) if one.printed)
    counts = Counter("within a tolerance" if one.verdict.endswith("%") else one.verdict for one in found)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _headlines(results: Path) -> str:
    lines = ["| id | cell | paper | ours (repetitions) | verdict |", "| --- | --- | --- | --- | --- |"]
    for name, cells in HEADLINES.items():
        found = {one.cell: one for one in compare_one(find(name), results)}
        lines += [
            f"| {name} | {one.cell} | {_paper(one)} | {one.ours} | {one.verdict} |" for one in map(found.__getitem__, cells)
        ]
    return "\n".join(lines)


def _section(experiment: Experiment, results: Path) -> str:
    lines = [f"### {experiment.id}: {experiment.artefact}", "", f"{experiment.title[0].upper()}{experiment.title[1:]}."]
    if experiment.note:
        lines[-1] += f" {experiment.note}"
    done = _done(experiment, results)
    if done < experiment.repetitions:
        lines[-1] += f" **{done} of {experiment.repetitions} repetitions so far.**"
    if (results / experiment.id / "figure.svg").exists():
        lines += ["", f"![{experiment.title}]({REFERENCE}/{experiment.id}/figure.svg)"]
    comparisons = compare_one(experiment, results)
    if comparisons:
        lines += ["", _table(comparisons)]
    rows = [row for row in read_csv(results / experiment.id / "summary.csv") if row.get("method") and row.get("reject")]
    if rows:
        lines += ["", "All rejection rates:", "", _powers(rows)]
    return "\n".join([*lines, ""])


def _powers(rows: Rows) -> str:
    """Give the rejection rates, a column a method, and C1-hat where there is one."""
    columns = [*dict.fromkeys(row["method"] for row in rows), *(["C1-hat"] if "c1" in rows[0] else [])]
    keys = [name for name in rows[0] if name not in MEASURED and not name.endswith("_error") and any(row[name] for row in rows)]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        cell = cells.setdefault(tuple(row[key] for key in keys), {})
        cell[row["method"]] = f"{float(row['reject']):.2f}"
        if row.get("c1"):
            cell["C1-hat"] = f"{float(row['c1']):.2g}"
    lines = ["| " + " | ".join([*keys, *columns]) + " |", "|" + " --- |" * (len(keys) + len(columns))]
    lines += ["| " + " | ".join([*cell, *(found.get(name, "") for name in columns)]) + " |" for cell, found in cells.items()]
    return "\n".join(lines)


def _table(comparisons: list[Comparison]) -> str:
    lines = ["| cell | number | paper | ours (repetitions) | verdict | note |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [f"| {c.cell} | {c.quantity} | {_paper(c)} | {c.ours} | {c.verdict} | {c.note} |" for c in comparisons]
    return "\n".join(lines)


def _paper(one: Comparison) -> str:
    """The paper's number, or in brackets one that it does not print."""
    return one.paper if one.printed else f"({one.paper})"
