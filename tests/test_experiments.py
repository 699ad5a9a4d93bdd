"""The reproduction: every id stands, loaders read what is published, verdicts follow their rule, a killed run ends the same."""

import ast
import gzip
import io
import json
import os
import platform
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

import cpmmd

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from cpmmd.errors import InputError
from experiments import arithmetic, common, compare, data
from experiments.__main__ import main
from experiments.base import PAPER, RESULTS, cell_of, read_csv
from experiments.data import sources
from experiments.page import look, pages
from experiments.registry import MODULES, find
from experiments.verify import verify

ROOT = Path(__file__).parents[1]
DONE = subprocess.CompletedProcess([], 0)


@pytest.mark.parametrize("name", MODULES)
def test_every_number_of_the_paper_belongs_to_a_cell(name):
    experiment = find(name)
    assert experiment.id == name
    for claim in read_csv(PAPER / f"{name}.csv"):
        wanted = cell_of(claim)
        if "quantity" in wanted or "n_cal" in wanted or "mixture-single" in wanted.values() or "CIFAR-10.1" in wanted.values():
            continue  # derived from several cells or from a cell's other decision, or data that may be absent
        assert any(all(compare.same_value(str(cell.get(k)), v) for k, v in wanted.items()) for cell in experiment.cells), claim[
            "cell"
        ]


def test_list_names_every_id(capsys):
    assert main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(MODULES)


def test_an_unknown_id_is_told_with_its_neighbour(capsys):
    assert main(["run", "linaer"]) == 2
    assert "Did you mean 'linear'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("relation", "value", "ours", "verdict"),
    [
        ("=", 0.5, 0.55, "within error"),  # pooled error of 100 and 100 repetitions: 0.071
        ("=", 0.5, 0.70, "higher"),
        ("=", 0.5, 0.30, "lower"),
        ("=", 1.0, 0.99, "within error"),
        ("=", 1.0, 0.90, "lower"),
        ("<=", 0.5, 0.10, "as said"),
        ("<=", 0.5, 0.55, "within error"),
        ("<=", 0.5, 0.90, "higher"),
        (">=", 0.5, 0.90, "as said"),
        (">=", 0.5, 0.45, "within error"),
        ("level", 0.05, 0.09, "within error"),  # two binomial errors: 0.044
        ("level", 0.05, 0.10, "higher"),
    ],
)
def test_rates_are_judged_by_two_standard_errors(relation, value, ours, verdict):
    assert compare._judge_rate(relation, value, "100", ours, 100)[0] == verdict


def test_a_handful_of_repetitions_is_not_judged():
    assert compare._judge_rate("=", 0.5, "100", 1.0, 3)[0] == "too few to say"


@pytest.mark.parametrize(("ours", "verdict"), [(0.1, "lower"), (0.5, "within error"), (0.9, "within error")])
def test_small_counts_are_judged_exactly(ours, verdict):
    # Fisher's exact p against 8 of 10: 1 of 10 .0055, 5 of 10 .35, 9 of 10 1.
    assert compare._judge_rate("=", 0.8, "10", ours, 10)[0] == verdict


@pytest.mark.parametrize(
    ("relation", "ours", "error", "verdict"),
    [
        ("~", 11.0, 0.0, "within 25%"),
        ("~", 14.0, 2.5, "within error"),
        ("~", 14.0, 0.0, "higher"),
        ("<=", 9.0, 0.0, "as said"),
        ("<=", 10.5, 0.0, "higher"),  # an inequality has no slack
        (">=", 9.5, 0.0, "lower"),
    ],
)
def test_numbers_are_judged_by_a_tolerance_that_is_named(relation, ours, error, verdict):
    assert compare._judge_number(relation, 10.0, 0.25, ours, error) == verdict


@pytest.mark.parametrize("name", MODULES)
def test_every_number_of_the_paper_was_looked_for_in_the_results(name):
    missing = [one.cell for one in look(name, RESULTS).comparisons if one.verdict == "not run"]
    assert all("CIFAR-10.1" in cell for cell in missing), missing


@pytest.mark.parametrize(("source", "printed"), [("", 1), ("ours", 0), ("words", 0), ("again", 1), ("other data", 1)])
def test_a_number_that_is_not_printed_is_told_from_one_that_is(source, printed):
    claim = {
        "cell": "a=1",
        "quantity": "reject",
        "relation": "=",
        "value": "0.5",
        "repetitions": "100",
        "source": source,
        "note": "",
    }
    one = compare._compare_one(claim, [{"a": "1", "reject": "0.5", "repetitions": "100"}])
    assert one.printed == bool(printed)
    assert (one.verdict == "other data") == (source == "other data")


def test_the_tally_is_printed_as_the_page_has_it(capsys):
    assert main(["tally"]) == 0
    page = (ROOT / "docs" / "reproduction.md").read_text()
    assert all(part in page for part in capsys.readouterr().out.strip().split("\n\n"))


def test_the_reused_constant_is_the_calibrated_one():
    row = next(row for row in read_csv(RESULTS / "c1-width" / "summary.csv") if row["width"] == "200")
    assert float(row["c1"]) == pytest.approx(common.REUSED_C1, abs=1e-4)


def imports_of_the_package():
    for path in sorted((ROOT / "experiments").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cpmmd":
                yield from ((path.name, node.module, alias.name) for alias in node.names)


def test_experiments_use_public_names_only():
    documented = {line.strip() for line in (ROOT / "docs" / "api.md").read_text().splitlines()}
    for file, module, name in imports_of_the_package():
        if module == "cpmmd.errors":
            continue
        public = cpmmd.__all__ if module == "cpmmd" else documented
        assert f"{module}.{name}".removeprefix("cpmmd.") in public, f"{file} imports {module}.{name}"


def test_the_pages_are_made_from_the_results():
    for path, text in pages(RESULTS).items():
        assert "{{" not in text
        assert path.read_text() == text, "run: python -m experiments compare --write-docs"


def test_cifar10_1_reads_the_published_layout(tmp_path, monkeypatch):
    images = np.arange(2 * 32 * 32 * 3, dtype=np.uint8).reshape(2, 32, 32, 3)
    monkeypatch.setenv("CPMMD_DATA", str(tmp_path))
    monkeypatch.setattr(sources, "fetched", lambda _: [])
    assert data.cifar10_1() is None
    np.save(tmp_path / "cifar10.1_v6_data.npy", images)
    assert np.array_equal(data.cifar10_1("v6"), images)
    np.savez(tmp_path / "cifar10_1.npz", images=images)
    assert np.array_equal(data.cifar10_1("v4"), images)


def test_cifar10_1_refuses_another_layout(tmp_path):
    np.save(tmp_path / "wrong.npy", np.zeros((2, 3, 32, 32), np.uint8))
    with pytest.raises(InputError, match=r"\(n, 32, 32, 3\)"):
        sources.read_cifar10_1(tmp_path / "wrong.npy")


def test_a_higgs_download_may_have_other_rows_than_the_folder(tmp_path, monkeypatch):
    other = {"X": np.zeros((2, 28), np.float32), "y": np.array([0, 1], np.int8)}
    np.savez(tmp_path / "higgs.npz", **other)
    with pytest.raises(InputError, match="checksum"):
        sources.check("higgs", other, tmp_path / "higgs.npz")
    monkeypatch.setattr(sources, "kept", lambda _: [tmp_path / "higgs.npz"])  # as if it had been fetched, and checked whole
    sources.check("higgs", other, tmp_path / "higgs.npz")


def test_git_ids_are_gits(tmp_path):
    (tmp_path / "file").write_bytes(b"hello\n")
    assert sources.git_blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


def test_higgs_reads_label_and_features(tmp_path):
    table = np.column_stack([[1, 0, 1], np.arange(84).reshape(3, 28)])
    with gzip.open(tmp_path / "HIGGS.csv.gz", "wt") as file:
        np.savetxt(file, table, delimiter=",")
    read = sources.read_higgs(tmp_path / "HIGGS.csv.gz", rows=2)
    assert read["y"].tolist() == [1, 0]
    assert np.array_equal(read["X"], table[:2, 1:])


def test_cifar10_reads_planes_into_channels_last(tmp_path):
    record = np.r_[np.uint8(7), np.full(1024, 1, np.uint8), np.full(1024, 2, np.uint8), np.full(1024, 3, np.uint8)].tobytes()
    with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
        member.size = len(record)
        archive.addfile(member, io.BytesIO(record))
    read = sources.read_cifar10(tmp_path / "cifar.tar.gz")
    assert read["labels"].tolist() == [7]
    assert read["images"][0, 5, 9].tolist() == [1, 2, 3]


def test_tep_reads_the_transposed_first_file(tmp_path):
    for number in range(22):
        for ending, rows in (("", 500 if number == 0 else 480), ("_te", 960)):
            table = np.full((rows, 52), float(number))
            np.savetxt(tmp_path / f"d{number:02d}{ending}.dat", table.T if (number, ending) == (0, "") else table, fmt="%g")
    read = sources.read_tep(lambda file: tmp_path / file)
    assert read["normal_train"].shape == (500, 52)
    assert read["fault21_test"].shape == (960, 52)
    assert read["fault07_train"].min() == 7


def test_a_file_with_other_content_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CPMMD_DATA", str(tmp_path))
    np.savez(tmp_path / "cifar10.npz", images=np.zeros((1, 32, 32, 3), np.uint8))
    with pytest.raises(InputError, match="checksum"):
        data.load("cifar10")


SHORT = """
import sys
import experiments.__main__ as command

command.MODULES = {name: command.MODULES[name] for name in ("linear", "rates")}  # of all ids the two cheapest
sys.exit(command.main(["all", "--reps", "1", "--results", sys.argv[1], "--jobs", sys.argv[2]]))
"""


def start(results: Path, jobs: int) -> subprocess.Popen:
    command = [sys.executable, "-c", SHORT, str(results), str(jobs)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_an_interrupted_all_goes_on_and_ends_in_the_same_tables(tmp_path):
    for name, lines in (("linear", 8), ("rates", 12)):  # killed in the first id, then in the second
        raw = tmp_path / "killed" / name / "raw.jsonl"
        process = start(tmp_path / "killed", 2)
        deadline = time.monotonic() + 240
        while not raw.exists() or raw.read_bytes().count(b"\n") < lines:
            assert time.monotonic() < deadline, "the run does not come forward"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert start(tmp_path / "killed", 1).wait() == 0
    assert start(tmp_path / "whole", 2).wait() == 0
    for name in ("linear", "rates"):
        for file in ("repetitions.csv", "summary.csv", "figure.svg"):
            assert (tmp_path / "killed" / name / file).read_bytes() == (tmp_path / "whole" / name / file).read_bytes()


@pytest.fixture
def one_small_run(tmp_path):
    assert main(["run", "rates", "--reps", "1", "--jobs", "1", "--results", str(tmp_path)]) == 0
    return tmp_path


def test_raw_repetitions_are_a_csv_of_one_row_each(one_small_run):
    rows = read_csv(one_small_run / "rates" / "repetitions.csv")
    assert len(rows) == len(find("rates").cells)
    assert {row["repetition"] for row in rows} == {"0"}


def test_a_run_gives_the_committed_repetitions_again(one_small_run, capsys):
    assert verify("linear", fresh=one_small_run, kept=RESULTS) == 1  # nothing was run
    assert verify("rates", fresh=one_small_run, kept=RESULTS) == 0
    assert f"{len(find('rates').cells)} of {len(find('rates').cells)} repetitions are the same" in capsys.readouterr().out


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the one arithmetic is one of x86-64 processors"
)
def test_a_network_trained_again_is_the_committed_one_whatever_instructions_the_caller_chose(tmp_path):
    pytest.importorskip("torch")
    other = {**os.environ, "MKL_CBWR": "AUTO", "OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default"}
    command = [sys.executable, "-m", "experiments", "run", "c1-shift", "--reps", "1", "--jobs", "1", "--results", str(tmp_path)]
    assert subprocess.run(command, cwd=ROOT, env=other, check=False).returncode == 0
    assert verify("c1-shift", fresh=tmp_path, kept=RESULTS) == 0


def test_a_network_is_not_trained_under_just_any_arithmetic(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MKL_CBWR", raising=False)
    assert main(["run", "c1-shift", "--reps", "1", "--results", str(tmp_path)]) == 2
    assert "python -m experiments run c1-shift" in capsys.readouterr().err


def test_what_measures_times_runs_with_the_fastest_instructions(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(arithmetic.subprocess, "run", lambda command, **rest: started.append((command, rest["env"])) or DONE)
    monkeypatch.setattr(arithmetic, "fixed", lambda: True)
    assert main(["run", "cost", "--reps", "2", "--no-resume", "--results", str(tmp_path)]) == 0
    ((command, environment),) = started
    assert command[3:] == ["run", "cost", "--no-resume", "--reps=2", f"--results={tmp_path}", "--jobs=2"]
    assert not arithmetic.FIXED.keys() & environment.keys()


def test_a_repetition_that_differs_is_told(one_small_run, capsys):
    raw = one_small_run / "rates" / "raw.jsonl"
    header, first, *rest = raw.read_text().splitlines()
    line = json.loads(first)
    line["values"] = {name: value + 1 for name, value in line["values"].items()}
    raw.write_text("\n".join([header, json.dumps(line), *rest]) + "\n")
    assert verify("rates", fresh=one_small_run, kept=RESULTS) == 1
    assert f"differs: {line['cell']}" in capsys.readouterr().out


@pytest.mark.parametrize(("both_ways", "code"), [(True, 0), (False, 1)])
def test_trained_networks_may_differ_but_not_to_one_side(tmp_path, capsys, both_ways, code):
    header, *lines = (RESULTS / "deep-start" / "raw.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines[:40]]
    for at, line in enumerate(changed):
        line["values"]["pvalue"] += -0.001 if both_ways and at % 2 else 0.001
    (tmp_path / "deep-start").mkdir()
    (tmp_path / "deep-start" / "raw.jsonl").write_text("\n".join([header, *map(json.dumps, changed)]) + "\n")
    assert verify("deep-start", fresh=tmp_path, kept=RESULTS, other_processor=True) == code
    told = capsys.readouterr().out
    assert "40 of trained networks differ" in told
    assert ("leans to one side" in told) == (not both_ways)
    assert verify("deep-start", fresh=tmp_path, kept=RESULTS) == 1  # unless it is said, all must be the same


def test_resume_goes_on_and_no_resume_begins_anew_and_loses_nothing(one_small_run):
    again = ["run", "rates", "--reps", "1", "--jobs", "1", "--results", str(one_small_run)]
    raw = one_small_run / "rates" / "raw.jsonl"
    before = raw.read_bytes()
    assert main([*again, "--resume"]) == 0
    assert raw.read_bytes() == before
    assert main([*again, "--no-resume"]) == 0
    assert (raw.parent / "raw.jsonl.1").read_bytes() == before
