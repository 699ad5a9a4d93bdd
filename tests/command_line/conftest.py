"""Files for the command line."""

import numpy as np
import polars as pl
import pytest

from commands import document, run


@pytest.fixture
def pair(tmp_path):
    """Two small files that differ in one of their columns."""
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0.0), ("b", 2.0)):
        colours = rng.choice(["red", "blue"], 60)
        pl.DataFrame({"u": rng.normal(size=60), "v": rng.normal(shift, 1, 60), "colour": colours}).write_csv(
            tmp_path / f"{name}.csv"
        )
    return tmp_path / "a.csv", tmp_path / "b.csv"


@pytest.fixture
def null_pair(tmp_path):
    rng = np.random.default_rng(1)
    for name in ("c", "d"):
        pl.DataFrame({"u": rng.normal(size=50), "v": rng.normal(size=50)}).write_csv(tmp_path / f"{name}.csv")
    return tmp_path / "c.csv", tmp_path / "d.csv"


@pytest.fixture
def batches(tmp_path):
    rng = np.random.default_rng(7)
    for name, shift, rows in (("reference", 0, 200), ("monday", 0, 80), ("tuesday", 0, 80), ("wednesday", 1.5, 80)):
        frame = pl.DataFrame({"u": rng.normal(size=rows), "v": rng.normal(shift, 1, rows)})
        frame.write_csv(tmp_path / f"{name}.csv")
    detector = tmp_path / "detector.cpmmd"
    found = document(run("fit", tmp_path / "reference.csv", "-o", detector, "--seed", 0, "--permutations", 199, "--json"))
    assert found["reference"]["rows"] == 200
    return detector, [tmp_path / f"{name}.csv" for name in ("monday", "tuesday", "wednesday")]
