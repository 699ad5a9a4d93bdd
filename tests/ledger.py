"""The ledger: answers of the public interface that every later version gives again, bit for bit.

``python tests/ledger.py`` compares and lists each key that differs (exit code 1 if any does), ``--write`` stores the answers,
``--threads N`` takes N threads, ``--only PREFIX`` some of the keys' sections. All of it runs under the one arithmetic of
``experiments.arithmetic``. A long answer is stored by its hash; ``--show KEY`` prints it whole. Files of ``stored/v02`` were
written by version 0.2 and are never written again.
"""

import argparse
import contextlib
import gc
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import astuple
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

import cpmmd

HERE = Path(__file__).resolve().parent
LEDGER = HERE / "stored" / "ledger.json"
V02 = HERE / "stored" / "v02"
TRAINED = [m for m in cpmmd.methods() if m.endswith(("-deep", "-mixture")) or m in ("liu", "cp-linear-map")]
UNTRAINED = [m for m in cpmmd.methods() if m not in TRAINED]
DESIGNS = ("none", "groups", "strata", "pairs", "blocks")
QUICK = {"n_permutations": 99, "rng": 1}
CLOCK = re.compile(r"20(?:2[5-9]|[3-9]\d)-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|\+00:00| UTC)?")


# What is stored of an answer


def plain(text):
    """Return a text without what another day, folder, version or number of threads changes."""
    text = text.replace(os.path.realpath(os.getcwd()), "FOLDER").replace(os.getcwd(), "FOLDER")
    text = CLOCK.sub("TIME", text)
    text = re.sub(r"^Progress: .*\n+", "", text, flags=re.MULTILINE)  # on a busy machine, after some seconds
    text = re.sub(r"(timestamp_seconds\S*) \d{10}", r"\1 TIME", text)
    text = re.sub(r" --jobs \d+|, n_jobs=\d+", "", text)
    for name, number in (("Python", platform.python_version()), ("numpy", np.__version__)):
        text = text.replace(f"{name} {number}", f"{name} VERSION")
    return text.replace(f"cpmmd {cpmmd.__version__}", "cpmmd VERSION").replace(f'"{cpmmd.__version__}"', '"VERSION"')


def fingerprint(content):
    """Return the beginning of the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()[:16]


def written(answer):
    """Return an answer as one text: JSON gives floats with all their digits."""
    if not isinstance(answer, str):
        answer = json.dumps(
            answer, sort_keys=True, default=lambda value: value.tolist() if hasattr(value, "tolist") else list(astuple(value))
        )
    return plain(answer)


def kept(answer):
    """Return what the ledger keeps of an answer: the text, or its beginning and hash."""
    text = written(answer)
    return text if len(text) <= 160 else f"{text[:40]} ... {len(text)} characters, sha256 {fingerprint(text.encode())}"


def numbers(result):
    """Return p-value, statistic and null distribution of a test."""
    null = np.ascontiguousarray(result.null_distribution)
    values = (float(result.pvalue).hex(), float(result.statistic).hex(), fingerprint(null.tobytes()))
    return f"p {values[0]}, statistic {values[1]}, null {null.shape} {null.dtype} {values[2]}"


def refused_or(call):
    """Return the answer of a call, or why it is refused."""
    try:
        return call()
    except cpmmd.CpmmdError as error:
        return f"{type(error).__name__}: {error}"


def refusable(call, *arguments, **options):
    """Return the numbers of a test, or why it is refused."""
    return refused_or(lambda: numbers(call(*arguments, **options)))


# Data


def samples(rows, columns=4):
    """Return two samples that differ a little, and the arguments of every design."""
    rng = np.random.default_rng(rows)
    m = rows // 2
    shared = rng.normal(size=(m, columns))
    x = 0.6 * shared + 0.8 * rng.normal(size=(m, columns))
    y = 0.6 * shared + 0.8 * rng.normal(size=(m, columns)) + 0.2
    y[:, 1] = 0.5 * y[:, 0] + 0.9 * y[:, 1]
    row = np.arange(m)
    group = np.repeat(row, 2 + row % 3)[:m]
    designs = {
        "none": {},
        "groups": {"groups": (group, group + m)},
        "strata": {"strata": (row % 3, (row + (row % 7 == 0)) % 3)},
        "pairs": {"pairs": (row, row[::-1])},
        "blocks": {"blocks": 4},
    }
    return x, y, designs


def mixed(rows, moved, seed):
    """Return a frame with columns of every kind, missing values, and columns that say what belongs together."""
    rng = np.random.default_rng([seed, rows])
    row = np.arange(rows)
    amount = rng.normal(0.4 * moved, 1 + 0.3 * moved, rows).round(6)
    phone = rng.integers(0, 90, rows).astype(float)
    phone[rng.random(rows) < 0.05 + 0.25 * moved] = np.nan
    return pd.DataFrame(
        {
            "amount": amount,
            "weight": (rng.normal(size=rows) + (0.8 * amount if moved else 0)).round(6),
            "count": rng.poisson(3 + moved, rows),
            "member": rng.random(rows) < 0.4 + 0.2 * moved,
            "country": rng.choice(["DE", "ES", "FR"], rows, p=[0.5, 0.2 + 0.2 * moved, 0.3 - 0.2 * moved]),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, rows) + 20 * moved, unit="D"),
            "phone": phone,
            "patient": row // 4 + 1000 * moved,
            "site": rng.choice(["north", "south", "west"], rows),
            "subject": row,
        }
    )


KEYS = {"none": None, "groups": "patient", "strata": "site", "pairs": "subject"}


def designed(design, rows=120, difference=1):
    """Return two mixed frames for a design, and its argument."""
    drop = [name for name in ("patient", "site", "subject") if name != KEYS[design]]
    x, y = (mixed(rows, moved, moved).drop(columns=drop) for moved in (0, difference))
    return x, y, ({} if design == "none" else {design: KEYS[design]})


# Sections: each gives keys and answers


def compared(rows, methods, threads, n_permutations=99):
    """Every method under every design."""
    x, y, designs = samples(rows)
    for method in methods:
        for design in DESIGNS:
            options = {"method": method, "n_permutations": n_permutations, "rng": 1, "n_jobs": threads, **designs[design]}
            yield f"{method}/{design}", refusable(cpmmd.two_sample_test, x, y, **options)


def trained(threads):
    """Trained methods under every design, and one of them with more rows."""
    yield from compared(60, TRAINED, threads)
    x, y, _ = samples(1000)
    for method in ("cp-linear-map", "cp-deep"):
        yield f"1000 rows/{method}/none", refusable(cpmmd.two_sample_test, x, y, method=method, n_jobs=threads, **QUICK)


def explained(explanation):
    """Every part of an explanation that a reader acts on."""
    for column in explanation.columns:
        yield f"column {column.name}", [float(column.pvalue).hex(), column.words, str(column.effect)]
    for pair in explanation.pairs:
        yield f"pair {' and '.join(pair.names)}", [float(pair.pvalue).hex(), pair.correlation_x, pair.correlation_y]
    yield "printed", str(explanation)
    yield "dictionary", explanation.to_dict()


def explain(threads):
    """Where mixed frames differ, under the designs that explanations know."""
    for design in KEYS:
        x, y, argument = designed(design)
        result = cpmmd.two_sample_test(x, y, missing="impute", n_jobs=threads, **QUICK, **argument)
        yield f"{design}/test", numbers(result)
        yield f"{design}/result", result.to_dict()
        yield f"{design}/result printed", str(result)
        for key, answer in explained(result.explain(names=("before", "after"))):
            yield f"{design}/{key}", answer
    x, y, argument = designed("strata")
    options = {"method": "median", "n_jobs": threads, **QUICK, **argument}
    result = cpmmd.two_sample_test(pl.from_pandas(x), pl.from_pandas(y), missing="drop", **options)
    yield "polars/test", numbers(result)
    yield "polars/printed", str(result.explain())
    for missing in ("impute", "error"):
        yield f"missing {missing}", refusable(cpmmd.two_sample_test, x, y, missing=missing, **options)
    x, y, _ = samples(400)
    for method in UNTRAINED:
        result = cpmmd.two_sample_test(x, y, method=method, n_jobs=threads, **QUICK)
        yield f"arrays/{method}/result", result.to_dict()
        yield f"arrays/{method}/explanation", result.explain().to_dict()


def matrix(threads):
    """Tests of a kernel matrix."""
    for rows in (60, 400):
        x, y, designs = samples(rows)
        pool = np.vstack([x, y])
        K = np.exp(-np.abs(pool[:, None] - pool[None]).sum(2) / 4)
        for design in DESIGNS:
            for gammas in ((), (0.1, 0.001)):
                options = {"gammas": gammas, "n_jobs": threads, **QUICK, **designs[design]}
                yield f"{rows}/{design}/{gammas}", refusable(cpmmd.kernel_matrix_test, K, rows // 2, **options)
    yield "exhaustive", numbers(cpmmd.kernel_matrix_test(K[:5, :5], 2, alpha=0.2, rng=0))


def equivalence(threads):  # noqa: ARG001
    """Bounds on differences."""
    arrays = {f"{rows} rows": samples(rows)[:2] for rows in (60, 1000)}
    for name, (x, y) in {**arrays, "mixed": designed("none", 300, 0)[:2]}.items():
        result = cpmmd.equivalence_test(x, y, margin=0.3, rng=1, missing="impute")
        yield f"{name}/numbers", numbers(result)
        yield f"{name}/largest", [float(result.largest).hex(), float(result.auc_bound).hex()]
        yield (
            f"{name}/joint",
            [float(v).hex() for v in (result.joint.shift, result.joint.low, result.joint.high, result.joint.pvalue)],
        )
        for column in result.columns:
            values = (column.difference, column.low, column.high, column.pvalue)
            yield f"{name}/column {column.name}", [float(value).hex() for value in values]
        yield f"{name}/dictionary", result.to_dict()
        yield f"{name}/printed", f"{result}\n{result.explain()}"


def studies(threads):
    """Many tests at once, plans and a study."""
    pairs = {f"test {k}": (x, y + 0.1 * k) for k in range(4) for x, y, _ in [samples(80 + 20 * k)]}
    for correction in ("benjamini-hochberg", "benjamini-yekutieli"):
        many = cpmmd.run_many(pairs, n_jobs=threads, correction=correction, **QUICK)
        yield f"many/{correction}/adjusted", {name: float(value).hex() for name, value in many.adjusted.items()}
        yield f"many/{correction}/dictionary", many.to_dict()
    yield "many/printed", str(many)
    for name, adjust in (("hochberg", cpmmd.benjamini_hochberg), ("yekutieli", cpmmd.benjamini_yekutieli)):
        yield f"adjusted/{name}", np.asarray(adjust([0.01, 0.04, 0.03, 0.5])).tolist()
    options = {"repetitions": 10, "method": "median", "n_jobs": threads, **QUICK}
    x, y, designs = samples(120)
    for design in DESIGNS:
        table = cpmmd.power_from_pilot(x, y, [8, 12, 100], **options, **designs[design])
        yield f"power/{design}", table.to_dict()
        yield f"power/{design}/needed", [table.needed, [row.estimate for row in table.rows]]
        yield f"power/{design}/printed", str(table)
    table = study().run(n_jobs=threads)
    yield "study/rows", without(table.rows, "seconds")
    yield "study/records", without(table.records, "seconds")


def without(records, *names):
    """Return records without fields whose name has one of these words in it."""
    return [{k: v for k, v in record.items() if not any(name in k for name in names)} for record in records]


def shifted(rng, size):
    """Draw two samples for a study."""
    return rng.normal(size=(size, 2)), rng.normal(0.5, 1, size=(size, 2))


def study():
    """Return a study of two methods."""
    methods = {"median": "median", "energy": "energy"}
    options = {"sizes": [12, 20], "repetitions": 3, "n_permutations": 99}
    return cpmmd.power_study("shift", generators={"shift": shifted}, methods=methods, **options)


def batches(count, rows=30, first_changed=7):
    """Return batches that change, with the column that strata are made of."""
    return {f"day {k}": mixed(rows, int(k >= first_changed), 100 + k).drop(columns=["patient", "subject"]) for k in range(count)}


def detectors(threads):
    """Detectors with and without an example or a kernel, asked directly, as a series, and after they were kept in a file."""
    days = batches(4, first_changed=2)
    reference, example = (mixed(200, moved, 50).drop(columns=["patient", "subject"]) for moved in (0, 1))
    for method in ("cp-full", "median", "mmdagg", "mmdfuse", "energy", "cp-linear", "cp-polynomial"):
        for examples, strata in ((False, None), (True, None), (False, "site"), (True, "site")):
            begins = f"{method}/{'example' if examples else 'plain'}/{strata}"
            detector = cpmmd.DriftDetector(method, missing="impute", n_jobs=threads, strata=strata, **QUICK)
            try:
                detector.fit(reference, example=example if examples else None)
            except cpmmd.CpmmdError as error:
                yield begins, f"{type(error).__name__}: {error}"
                continue
            for name, day in days.items():
                answer = detector.test(day, name)
                yield f"{begins}/{name}/numbers", numbers(answer.result)
                yield f"{begins}/{name}/dictionary", answer.to_dict()
            detector.save("detector")
            loaded = cpmmd.DriftDetector.load("detector")
            yield f"{begins}/loaded", [numbers(loaded.test(day, name).result) for name, day in days.items()]
            if method in ("cp-full", "median"):
                yield f"{begins}/check", [answer.to_dict() for answer in loaded.check(days)]
                yield f"{begins}/score", refused_or(lambda: float(loaded.score(days["day 3"])).hex())  # noqa: B023


def watched(answer):
    """Return what an answer of a monitor says."""
    values = (answer.wealth, answer.evalue, answer.pvalue)
    return [*(float(value).hex() for value in values), answer.alarm, answer.since and answer.since.name, answer.differs]


def monitors(threads):
    """Monitors over twelve batches, settled and kept in files."""
    days = batches(12)
    reference = mixed(150, 0, 50).drop(columns=["patient", "subject"])
    for method, strata in (("median", None), ("median", "site"), ("cp-full", None), ("energy", "site")):
        begins = f"{method}/{strata}"
        monitor = cpmmd.DriftMonitor(method, missing="impute", n_jobs=threads, strata=strata, **QUICK).fit(reference)
        for name, day in days.items():
            answer = monitor.update(day, name)
            yield f"{begins}/{name}", watched(answer)
            yield f"{begins}/{name}/dictionary", answer.to_dict()
        yield f"{begins}/printed", str(answer)
        yield f"{begins}/explained", str(answer.explain())
        monitor.save("monitor")
        for settle in ("acknowledge", "dismiss"):
            loaded = cpmmd.DriftMonitor.load("monitor")
            getattr(loaded, settle)()
            yield f"{begins}/{settle}", [watched(loaded.update(days[f"day {k}"], f"again {k}")) for k in (9, 10)]
    cpmmd.DriftMonitor("median", missing="impute", n_jobs=threads, groups="patient", **QUICK).fit(
        reference.assign(patient=range(150))
    ).save("kept")
    kept_in_file = cpmmd.MonitorFile("kept", history="kept.sqlite")
    for k in range(3):
        day = days[f"day {5 + k}"]
        answer = kept_in_file.update(day.assign(patient=1000 * (k + 1) + np.arange(len(day)) // 3), f"day {k}", explain=True)
        yield f"file/day {k}", watched(answer)
    yield "file/records", kept_in_file.records()
    yield "file/report", cpmmd.report.write_series(kept_in_file.records(), "kept.json", alpha=0.05)


def command(*arguments):
    """Run a command in this process; return its exit code, output and messages."""
    before = sys.argv, sys.stdout, sys.stderr
    with open("stdout", "w+", encoding="utf-8") as out, open("stderr", "w+", encoding="utf-8") as err:
        sys.argv, sys.stdout, sys.stderr = ["cpmmd", *map(str, arguments)], out, err
        try:
            from cpmmd.cli import main

            main()
            code = 0
        except SystemExit as ended:
            code = ended.code
        finally:
            out.flush()
            sys.argv, sys.stdout, sys.stderr = before
            gc.unfreeze()
            gc.enable()
    return code, Path("stdout").read_text("utf-8"), Path("stderr").read_text("utf-8")


REPORTED = ("test", "groups", "strata", "pairs", "margin", "split", "check", "check the history", "check monitor")


def commands(threads):
    """What every command prints, as JSON and in plain words, and the reports that it writes."""
    for moved, name in enumerate(("a", "b")):
        mixed(80, moved, moved).to_csv(f"{name}.csv", index=False)
    mixed(150, 0, 50).drop(columns=["patient", "subject"]).to_csv("reference.csv", index=False)
    mixed(150, 0, 51).drop(columns=["patient", "subject"]).to_csv("same.csv", index=False)
    for name, day in batches(4, 40, 2).items():
        day.to_csv(f"{name.replace(' ', '')}.csv", index=False)
    quick = ("--permutations", 99, "--seed", 1, "--missing", "impute", "--jobs", threads)
    drop = ("--drop", "patient,site,subject")
    days = [f"day{k}.csv" for k in range(4)]
    calls = {
        "test": ("test", "a.csv", "b.csv", *drop, *quick),
        "test of nothing": ("test", "reference.csv", "same.csv", *quick),
        "groups": ("test", "a.csv", "b.csv", "--drop", "site,subject", "--group-by", "patient", *quick),
        "strata": ("test", "a.csv", "b.csv", "--drop", "patient,subject", "--stratify-by", "site", *quick),
        "pairs": ("test", "a.csv", "b.csv", "--drop", "site,patient", "--pair-by", "subject", *quick),
        "blocks": ("test", "a.csv", "b.csv", *drop, "--blocks", 4, *quick),
        "margin": ("test", "reference.csv", "same.csv", "--margin", 0.5, "--seed", 1, "--missing", "impute"),
        "split": ("test", "reference.csv", "--split-by", "site", *quick),
        "split against the rest": ("test", "reference.csv", "--split-by", "site", "--method", "median", *quick),
        "samples": ("samples", "a.csv", "b.csv", *days[:1], *drop, *quick),
        "split in two": ("test", "reference.csv", "--split-by", "member", *quick),
        "missing": ("test", "a.csv", "b.csv", "--seed", 1),
        "no file": ("test", "a.csv", "nothing.csv"),
        "wrong method": ("test", "a.csv", "b.csv", "--method", "nothing"),
        "power": ("power", "a.csv", "b.csv", "--sizes", "10,20,60", "--repetitions", 8, "--method", "median", *drop, *quick),
        "methods": ("methods",),
        "fit": ("fit", "reference.csv", "-o", "detector.cpmmd", "--force", *quick),
        "check": ("check", "detector.cpmmd", *days),
        "check with history": ("check", "detector.cpmmd", *days, "--history", "JSON.sqlite"),
        "check the history": ("check", "detector.cpmmd", "--history", "JSON.sqlite"),
        "fit with example": ("fit", "reference.csv", "--example", "day3.csv", "-o", "example.cpmmd", "--force", *quick),
        "check with example": ("check", "example.cpmmd", *days),
        "fit monitor": ("fit", "reference.csv", "-o", "monitor.cpmmd", "--monitor", "--force", "-m", "median", *quick),
        "check monitor": ("check", "monitor.cpmmd", *days, "--history", "monitor-JSON.sqlite", "--metrics", "metrics.prom"),
        "look at monitor": ("check", "monitor.cpmmd"),
        "acknowledge": ("acknowledge", "monitor.cpmmd"),
        "dismiss": ("dismiss", "monitor.cpmmd"),
    }
    for name, call in calls.items():
        for form in ("plain", "json"):
            if form == "json" and name in ("acknowledge", "dismiss"):
                continue
            arguments = [str(part).replace("JSON", form) for part in call] + ["--json"] * (form == "json")
            reports = [".html", ".md", ".json"] if form == "plain" and name in REPORTED else []
            code, out, err = command(*arguments)
            for part, answer in (("code", code), ("stdout", out), ("stderr", err)):
                yield f"{name}/{form}/{part}", answer
            for suffix in reports:
                path = Path(f"{name.replace(' ', '-')}{suffix}")
                yield f"{name}/report{suffix}/code", command(*arguments, "--report", path)[0]
                if path.exists():
                    yield f"{name}/report{suffix}", path.read_text("utf-8")
    yield "metrics", Path("metrics.prom").read_text()
    yield "schema", command("schema")[1]
    for name in ("", "test", "fit", "check", "acknowledge", "dismiss", "power", "demo", "methods", "schema"):
        yield f"help {name}", command(*([name] if name else []), "--help")[1]


def reports(threads):
    """Reports of results, explanations and equivalence that Python writes."""
    x, y, argument = designed("strata")
    same = designed("none", 300, 0)[:2]
    results = {
        "strata": cpmmd.two_sample_test(x, y, missing="impute", n_jobs=threads, **QUICK, **argument),
        "arrays": cpmmd.two_sample_test(*samples(200)[:2], method="cp-linear", n_jobs=threads, **QUICK),
        "equivalence": cpmmd.equivalence_test(*same, margin=0.3, rng=1, missing="impute"),
    }
    for name, result in results.items():
        for suffix in (".html", ".md", ".json"):
            result.report(f"page{suffix}")
            yield f"{name}/{suffix}", Path(f"page{suffix}").read_text("utf-8")
        yield f"{name}/notebook", result._repr_html_() if hasattr(result, "_repr_html_") else "none"


def public(threads):  # noqa: ARG001
    """Names, methods and citations."""
    yield "names", sorted(name for name in dir(cpmmd) if not name.startswith("_"))
    yield "methods", cpmmd.methods()
    for method in cpmmd.methods():
        yield f"citation/{method}", str(cpmmd.cite(method))


# Files that version 0.2 wrote


KERNELS = {"median": "median", "cp-linear": "cp-linear", "cp-polynomial": "cp-polynomial", "cp-linear-map": "cp-linear-map"}


def write_v02():
    """Write the files of this version; only version 0.2 does."""
    if not cpmmd.__version__.startswith("0.2."):
        raise SystemExit(f"The files of stored/v02 are written by version 0.2. This is {cpmmd.__version__}.")
    V02.mkdir(parents=True)
    x, y, _ = samples(100)
    for name, method in KERNELS.items():
        kernel = cpmmd.two_sample_test(x, y, method=method, n_jobs=1, **QUICK).kernel
        cpmmd.save_kernel(kernel, V02 / f"kernel-{name}.cpmmd")
    reference, example = (mixed(100, moved, 50).drop(columns=["patient", "subject"]) for moved in (0, 1))
    options = {"missing": "impute", "n_jobs": 1, **QUICK}
    cpmmd.DriftDetector("cp-full", **options).fit(reference).save(V02 / "detector.cpmmd")
    cpmmd.DriftDetector("median", strata="site", **options).fit(reference).save(V02 / "detector-strata.cpmmd")
    cpmmd.DriftDetector("cp-linear", **options).fit(reference, example=example).save(V02 / "detector-frozen.cpmmd")
    cpmmd.DriftMonitor("median", **options).fit(reference).save(V02 / "monitor.cpmmd")
    monitor = cpmmd.MonitorFile(V02 / "monitor.cpmmd", history=V02 / "history.sqlite")
    for name, day in list(batches(12, 30, 4).items())[:6]:
        monitor.update(day, name, explain=True)
    study().run(V02 / "study.jsonl")
    for lock in V02.glob(".*"):
        lock.unlink()


def v02(threads):  # noqa: ARG001
    """What this version makes of the files that version 0.2 wrote."""
    shutil.copytree(V02, "v02")
    x, y, _ = samples(100)
    days = batches(12, 30, 4)
    for name in KERNELS:
        kernel = cpmmd.load_kernel(f"v02/kernel-{name}.cpmmd")
        yield f"kernel {name}", str(kernel)
        yield f"kernel {name}/matrix", fingerprint(np.ascontiguousarray(kernel.gram(x, y)).tobytes())
        yield f"kernel {name}/test", numbers(cpmmd.DriftDetector(**QUICK).fit(x, kernel=kernel).test(y).result)
    for name in ("detector", "detector-strata", "detector-frozen"):
        detector = cpmmd.DriftDetector.load(f"v02/{name}.cpmmd")
        for k in (0, 5):
            answer = detector.test(days[f"day {k}"], f"day {k}")
            yield f"{name}/day {k}/numbers", numbers(answer.result)
            yield f"{name}/day {k}", answer.to_dict()
    monitor = cpmmd.MonitorFile("v02/monitor.cpmmd", history="v02/history.sqlite")
    yield "monitor/records", monitor.records()
    yield "monitor/known", watched(monitor.update(days["day 5"], "day 5"))
    for k in (6, 7, 8):
        yield f"monitor/day {k}", watched(monitor.update(days[f"day {k}"], f"day {k}"))
    with contextlib.closing(cpmmd.History("v02/history.sqlite")) as history:
        yield "history", history.records()
    yield "study", without(study().read("v02/study.jsonl").rows, "seconds")
    yield "study goes on", without(study().run("v02/study.jsonl").rows, "seconds")


SECTIONS = {
    "test 60 rows": lambda threads: compared(60, UNTRAINED, threads),
    "test 1000 rows": lambda threads: compared(1000, UNTRAINED, threads),
    "test 6000 rows": lambda threads: compared(6000, UNTRAINED, threads, 49),
    "trained": trained,
    "explain": explain,
    "matrix": matrix,
    "equivalence": equivalence,
    "studies": studies,
    "detectors": detectors,
    "monitors": monitors,
    "commands": commands,
    "reports": reports,
    "public": public,
    "v02": v02,
}
VERSIONS = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "matplotlib", "pandas", "polars", "typer", "rich")}
LONG = ("test 6000 rows", "trained")  # minutes, or torch


def answers(section, threads=1):
    """Yield keys and whole answers of a section, worked out in a folder of its own."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for key, answer in SECTIONS[section](threads):
                yield f"{section}: {key}", answer
        finally:
            os.chdir(here)


def stored(section=""):
    """Return the stored answers of a section."""
    return {key: answer for key, answer in json.loads(LEDGER.read_text()).items() if key.startswith(section)}


def begin_again():
    """Put this process under the one arithmetic, with one thread for each product of matrices."""
    sys.path.insert(0, str(HERE.parent))
    from experiments.arithmetic import FIXED

    path = os.pathsep.join(os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    wanted = {**FIXED, **one, "COLUMNS": "100", "NO_COLOR": "1", "MPLBACKEND": "agg", "PYTHONPATH": path}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **wanted})


def main():
    """Write or compare; exit with 1 where answers differ."""
    parser = argparse.ArgumentParser(description="Compare the answers of this version with the stored ones.")
    parser.add_argument("--write", action="store_true", help="store the answers instead")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", metavar="PREFIX,...", help="sections whose name begins so")
    parser.add_argument("--show", metavar="KEY", help="print the whole answer of this key")
    options = parser.parse_args()
    begin_again()
    if options.write and not V02.exists():
        write_v02()
    wrong = 0
    ledger = stored() if LEDGER.exists() else {}
    for section in SECTIONS:
        if not section.startswith(tuple(((options.show or "").split(": ")[0] or options.only).split(","))):
            continue
        begun, found = time.perf_counter(), {}
        for key, answer in answers(section, options.threads):
            assert key not in found, key
            found[key] = kept(answer)
            if key == options.show:
                print(written(answer))
        before = {key: answer for key, answer in ledger.items() if key.startswith(f"{section}: ")}
        different = [key for key in sorted({*found, *before}) if found.get(key) != before.get(key)]
        print(
            f"{section}: {len(found)} answers, {len(different)} differ, {time.perf_counter() - begun:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        for key in different if not options.write else ():
            print(f"{key}\n  stored {before.get(key, 'nothing')}\n  found  {found.get(key, 'nothing')}")
        wrong += len(different)
        if options.write:
            now = stored() if LEDGER.exists() else {}  # another process may have written its sections
            ledger = {key: answer for key, answer in now.items() if not key.startswith(f"{section}: ")} | found
            ledger["versions"] = VERSIONS
            LEDGER.write_text(json.dumps(ledger, indent=0, sort_keys=True, ensure_ascii=False) + "\n")
    sys.exit(0 if options.write else int(wrong > 0))


if __name__ == "__main__":
    main()
