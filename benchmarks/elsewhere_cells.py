"""Cells of :mod:`benchmarks.elsewhere`: one fault each, shown on a package as it is installed, called as its documentation does.

Run by the interpreter of an environment that has the package: ``python elsewhere_cells.py PACKAGE`` prints one JSON line a cell.
Every package gets the same data from the same seeds, this one included.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import metadata
from typing import Any

import numpy as np

ALPHA = 0.05
PATIENTS = 200  # draws; fewer where a draw takes half a second
Sample = np.ndarray


def pairs(count: int, draw: Callable[[np.random.Generator], tuple[Sample, Sample]]) -> list[tuple[Sample, Sample]]:
    """Return pairs of samples, each from a seed of its own."""
    return [draw(np.random.default_rng(seed)) for seed in range(count)]


def null(rows: int, columns: int) -> Callable[[np.random.Generator], tuple[Sample, Sample]]:
    """Two samples of one normal distribution."""
    return lambda rng: (rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns)))


def shifted(m: int, n: int, columns: int, shift: float) -> Callable[[np.random.Generator], tuple[Sample, Sample]]:
    """Two normal samples, all columns of the second one moved."""
    return lambda rng: (rng.normal(size=(m, columns)), rng.normal(size=(n, columns)) + shift)


def levels(rows: int) -> Callable[[np.random.Generator], tuple[Sample, Sample]]:
    """Two samples of three equally likely levels."""
    return lambda rng: (rng.choice(list("xyz"), rows), rng.choice(list("xyz"), rows))


def visits(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Two samples of ten patients with ten visits each: patients differ, the samples do not."""
    patients = np.repeat(rng.normal(size=(20, 2)), 10, axis=0) + 0.5 * rng.normal(size=(200, 2))
    return patients[:100], patients[100:]


def correlated(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Two samples whose single columns are alike; in the second one they go together."""
    x, y = rng.normal(size=(500, 4)), rng.normal(size=(500, 4))
    y[:, 1] = 0.6 * y[:, 0] + 0.8 * y[:, 1]
    return x, y


def numbered(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Two samples of one distribution, with a running number as first column."""
    x, y = rng.normal(size=(200, 1)), rng.normal(size=(200, 1))
    return np.column_stack([np.arange(200), x]), np.column_stack([np.arange(200, 400), y])


def tight_and_wide(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """A sample of two tight clusters far apart, and one that lies around the middle."""
    x = rng.choice([-5.0, 5.0], size=(40, 1)) + 0.05 * rng.normal(size=(40, 1))
    return x, rng.choice([-5.0, 5.0], size=(40, 1)) + 0.5 * rng.normal(size=(40, 1))


def share(found: list[bool]) -> dict[str, Any]:
    """Return how often something was said, with the number of draws."""
    return {"share": float(np.mean(found)), "draws": len(found)}


# alibi-detect


def alibi_mmd(x: Sample, y: Sample, permutations: int = 100) -> float:
    import torch
    from alibi_detect.cd import MMDDrift

    torch.manual_seed(0)
    detector = MMDDrift(x.astype("float32"), backend="pytorch", p_val=ALPHA, n_permutations=permutations)
    return float(detector.predict(y.astype("float32"))["data"]["p_val"])


def alibi_zero() -> dict[str, Any]:
    """A p-value of 0 from 100 relabelings."""
    return {"pvalue": alibi_mmd(*pairs(1, shifted(100, 100, 2, 2.0))[0])}


def alibi_groups() -> dict[str, Any]:
    """Visits of patients, tested as if they were independent."""
    return share([alibi_mmd(x, y) <= ALPHA for x, y in pairs(PATIENTS, visits)])


def alibi_ids() -> dict[str, Any]:
    """A running number among the columns."""
    return share([alibi_mmd(x, y) <= ALPHA for x, y in pairs(20, numbered)])


def alibi_swap() -> dict[str, Any]:
    """The same two samples, one or the other called reference."""
    return swap(alibi_mmd)


def swap(test: Callable[[Sample, Sample], float]) -> dict[str, Any]:
    both = [(test(x, y), test(y, x)) for x, y in pairs(50, tight_and_wide)]
    first, second = ([p <= ALPHA for p in answers] for answers in zip(*both, strict=True))
    return {"first": float(np.mean(first)), "second": float(np.mean(second)), "draws": len(both)}


# Evidently


def frame(rows: Sample) -> Any:
    import pandas as pd

    return pd.DataFrame(rows, columns=[f"c{i}" for i in range(rows.shape[1])])


def evidently_column(method: str | None) -> Callable[[Sample, Sample], tuple[float, str]]:
    """Return the value and the method of Evidently's ``ValueDrift`` for one column."""
    import pandas as pd
    from evidently import Report
    from evidently.metrics import ValueDrift

    def drift(x: Sample, y: Sample) -> tuple[float, str]:
        options = {} if method is None else {"method": method}
        report = Report([ValueDrift(column="c", **options)])
        (found,) = report.run(pd.DataFrame({"c": y.ravel()}), pd.DataFrame({"c": x.ravel()})).dict()["metrics"]
        return float(found["value"]), str(found["config"]["method"])

    return drift


def evidently_zero() -> dict[str, Any]:
    """A p-value of 0 from 100 relabelings."""
    x, y = pairs(1, shifted(100, 100, 2, 2.0))[0]
    return {"pvalue": evidently_column("empirical_mmd")(x[:, :1], y[:, :1])[0]}


def evidently_always() -> dict[str, Any]:
    """The bootstrap of the MMD of embeddings on samples that do not differ."""
    from evidently.legacy.metrics.data_drift.embedding_drift_methods import mmd

    return share([bool(mmd(bootstrap=True)(frame(y), frame(x))[1]) for x, y in pairs(50, null(100, 5))])


def evidently_truth() -> dict[str, Any]:
    """The default for a categorical column of up to 1000 rows, on samples that do not differ."""
    drift = evidently_column(None)
    found = [drift(x, y) for x, y in pairs(200, levels(300))]
    return {**share([value <= ALPHA for value, _ in found]), "method": found[0][1]}


def evidently_grows() -> dict[str, Any]:
    """The default for a numerical column, at 1000 rows and at more."""
    drift = evidently_column(None)
    rows = {}
    for size in (1000, 2000, 20000):
        found = [drift(x, y) for x, y in pairs(40, shifted(size, 5000, 1, 0.08))]
        said = [value >= 0.1 if "Wasserstein" in method else value < ALPHA for value, method in found]
        rows[size] = {**share(said), "method": found[0][1]}
    return {"rows": rows}


def evidently_preset(x: Sample, y: Sample) -> bool:
    """Whether the data drift preset says that the data drift: half of the columns or more."""
    from evidently import Report
    from evidently.presets import DataDriftPreset

    found = Report([DataDriftPreset()]).run(frame(y), frame(x)).dict()["metrics"][0]["value"]
    return bool(found["share"] >= 0.5)


def evidently_groups() -> dict[str, Any]:
    """Visits of patients, tested as if they were independent."""
    return share([evidently_preset(x, y) for x, y in pairs(50, visits)])


def evidently_ids() -> dict[str, Any]:
    """A running number among the columns."""
    return share([evidently_preset(x, y) for x, y in pairs(20, numbered)])


def evidently_together() -> dict[str, Any]:
    """A change of how columns go together."""
    return share([evidently_preset(x, y) for x, y in pairs(20, correlated)])


def evidently_swap() -> dict[str, Any]:
    """The same two samples, one or the other called reference."""
    drift = evidently_column("empirical_mmd")
    return swap(lambda x, y: drift(x, y)[0])


# hyppo


def hyppo_few_rows() -> dict[str, Any]:
    """Smooth characteristic functions at 50 rows a sample, on samples that do not differ."""
    from hyppo.ksample import SmoothCFTest

    return share([SmoothCFTest().test(x, y, random_state=0)[1] <= ALPHA for x, y in pairs(400, null(50, 2))])


# frouros


def frouros_units() -> dict[str, Any]:
    """The same samples in metres and in millimetres."""
    from frouros.callbacks import PermutationTestDistanceBased
    from frouros.detectors.data_drift import MMD

    x, y = pairs(1, shifted(100, 100, 2, 0.7))[0]
    found = {}
    for name, unit in (("metres", 1), ("millimetres", 1000)):
        detector = MMD(callbacks=[PermutationTestDistanceBased(num_permutations=199, random_state=0, num_jobs=1)])
        detector.fit(X=x * unit)
        found[name] = float(detector.compare(X=y * unit)[1]["PermutationTestDistanceBased"]["p_value"])
    return found


# deepchecks


def deepchecks_truncation() -> dict[str, Any]:
    """60 new rows against more and more of the reference: rows that the classifier sees, and how often the condition fails."""
    from deepchecks.core.condition import ConditionCategory
    from deepchecks.tabular import Dataset
    from deepchecks.tabular.checks import MultivariateDrift

    rows = {}
    for size in (60, 600, 6000):
        failed, told = [], []
        for x, y in pairs(20, shifted(size, 60, 4, 0.4)):
            check = MultivariateDrift().add_condition_overall_drift_value_less_than()
            found = check.run(*(Dataset(frame(rows), cat_features=[]) for rows in (x, y)), with_display=False)
            failed.append(found.conditions_results[0].category is not ConditionCategory.PASS)
            told.append(found.value["domain_classifier_auc"])
        rows[size] = {**share(failed), "auc": float(np.mean(told))}
    return {"rows": rows}


def deepchecks_together() -> dict[str, Any]:
    """A change of how columns go together."""
    from deepchecks.tabular import Dataset
    from deepchecks.tabular.checks import MultivariateDrift

    found = []
    for x, y in pairs(10, correlated):
        check = MultivariateDrift().run(*(Dataset(frame(rows), cat_features=[]) for rows in (x, y)), with_display=False)
        found.append(check.value["domain_classifier_drift_score"] >= 0.25)
    return share(found)


# NannyML


def nannyml_alerts(x: Sample, y: Sample, chunk: int) -> Sample:
    """Whether each column of each chunk of ``y`` gets an alert, with the default limits and the Jensen-Shannon distance."""
    import nannyml

    names = list(frame(x))
    calculator = nannyml.UnivariateDriftCalculator(column_names=names, continuous_methods=["jensen_shannon"], chunk_size=chunk)
    found = calculator.fit(frame(x)).calculate(frame(y)).filter(period="analysis").to_df()
    return np.column_stack([found[(name, "jensen_shannon", "alert")].to_numpy(bool) for name in names])


def nannyml_watching() -> dict[str, Any]:
    """Twenty quiet chunks after a reference of ten: how often a column gets an alert, and how often a stream does."""
    found = [
        nannyml_alerts(x, y, 200) for x, y in pairs(20, lambda rng: (rng.normal(size=(2000, 5)), rng.normal(size=(4000, 5))))
    ]
    return {"columns": float(np.mean(found)), "streams": float(np.mean([alerts.any() for alerts in found])), "draws": len(found)}


# whylogs


def whylogs_truth() -> dict[str, Any]:
    """The chi-square of two profiles, on samples that do not differ."""
    import pandas as pd
    import whylogs
    from whylogs.viz.drift.column_drift_algorithms import ChiSquare, calculate_drift_scores

    found = []
    for x, y in pairs(200, levels(300)):
        now, before = (whylogs.log(pd.DataFrame({"c": rows})).view() for rows in (y, x))
        scores = calculate_drift_scores(
            target_view=now, reference_view=before, drift_map={"c": ChiSquare()}, with_thresholds=True
        )
        found.append(bool(scores["c"]["pvalue"] <= ALPHA))
    return share(found)


# cpmmd


def ours(x: Sample, y: Sample, **options: Any) -> Any:
    from cpmmd import two_sample_test

    return two_sample_test(x, y, **{"rng": 0, **options})


def cpmmd_zero() -> dict[str, Any]:
    """The smallest p-value that 100 relabelings can have, the observed one among them."""
    return {"pvalue": ours(*pairs(1, shifted(100, 100, 2, 2.0))[0], n_permutations=99).pvalue}


def cpmmd_share(draw: Callable[[np.random.Generator], tuple[Sample, Sample]], count: int) -> Callable[[], dict[str, Any]]:
    return lambda: share([ours(x, y).reject for x, y in pairs(count, draw)])


def cpmmd_truth() -> dict[str, Any]:
    """Two samples of three levels that do not differ."""
    import polars as pl

    return share([ours(*(pl.DataFrame({"c": rows}) for rows in pair)).reject for pair in pairs(200, levels(300))])


def cpmmd_swap() -> dict[str, Any]:
    """The same two samples, one or the other called reference."""
    return swap(lambda x, y: ours(x, y).pvalue)


def cpmmd_units() -> dict[str, Any]:
    """The same samples in metres and in millimetres."""
    x, y = pairs(1, shifted(100, 100, 2, 0.7))[0]
    return {name: ours(x * unit, y * unit).pvalue for name, unit in (("metres", 1), ("millimetres", 1000))}


def cpmmd_sizes(sizes: tuple[int, ...], new: int, columns: int, shift: float, count: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"rows": {size: cpmmd_share(shifted(size, new, columns, shift), count)() for size in sizes}}


def cpmmd_groups() -> dict[str, Any]:
    """Visits of patients that change sides together; more draws, since the question is whether 5% is kept."""
    patients = np.repeat(np.arange(20), 10)
    options = {"groups": (patients[:100], patients[100:]), "n_permutations": 199}
    return share([ours(x, y, rng=draw, **options).reject for draw, (x, y) in enumerate(pairs(1000, visits))])


def cpmmd_ids() -> dict[str, Any]:
    """A running number among the columns: named, and the verdict without it."""
    found = [ours(x, y).explain() for x, y in pairs(20, numbered)]
    named = [[column.label for column in one.suspicious] == ["column 0"] for one in found]
    return {**share([one.pvalue_without <= ALPHA for one in found]), "named": float(np.mean(named))}


def cpmmd_watching() -> dict[str, Any]:
    """Twenty quiet batches after a reference of 2000 rows."""
    from cpmmd import DriftMonitor

    alarms = []
    for x, y in pairs(20, lambda rng: (rng.normal(size=(2000, 5)), rng.normal(size=(4000, 5)))):
        monitor = DriftMonitor(rng=0, n_permutations=999).fit(x)
        alarms.append(any(monitor.update(batch, name=str(i)).alarm for i, batch in enumerate(y.reshape(20, 200, 5))))
    return {"streams": float(np.mean(alarms)), "draws": len(alarms)}


CELLS: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
    "alibi-detect": {"zero": alibi_zero, "swap": alibi_swap, "groups": alibi_groups, "ids": alibi_ids},
    "evidently": {
        "zero": evidently_zero,
        "always": evidently_always,
        "truth": evidently_truth,
        "grows": evidently_grows,
        "swap": evidently_swap,
        "groups": evidently_groups,
        "ids": evidently_ids,
        "together": evidently_together,
    },
    "hyppo": {"few_rows": hyppo_few_rows},
    "frouros": {"units": frouros_units},
    "deepchecks": {"truncation": deepchecks_truncation, "together": deepchecks_together},
    "nannyml": {"watching": nannyml_watching},
    "whylogs": {"truth": whylogs_truth},
    "cpmmd": {
        "zero": cpmmd_zero,
        "always": cpmmd_share(null(100, 5), 50),
        "units": cpmmd_units,
        "ids": cpmmd_ids,
        "groups": cpmmd_groups,
        "swap": cpmmd_swap,
        "together": cpmmd_share(correlated, 20),
        "few_rows": cpmmd_share(null(50, 2), 400),
        "truth": cpmmd_truth,
        "truncation": cpmmd_sizes((60, 600, 6000), 60, 4, 0.4, 20),
        "watching": cpmmd_watching,
        "grows": cpmmd_sizes((1000, 2000, 20000), 5000, 1, 0.08, 20),
    },
}


def main(package: str) -> None:
    """Print the version, then what each cell found or why it failed."""
    warnings.simplefilter("ignore")
    print(json.dumps({"package": package, "version": metadata(package)["Version"]}), flush=True)
    for name, cell in CELLS.get(package, {}).items():
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                found = cell()
        except Exception as error:  # whatever a package raises is its answer
            found = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"cell": name, **found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
