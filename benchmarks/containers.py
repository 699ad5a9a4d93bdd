"""Seconds that each container takes to become a sample: 100,000 rows of ten numbers, and of a text and an embedding beside.

python -m benchmarks.containers
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from benchmarks import RESULTS
from cpmmd.data.table import read_table

ROWS, COLUMNS = 100_000, 10


def containers() -> dict[str, Callable[[], Any]]:
    """Return what makes each container; only reading it is timed."""
    rng = np.random.default_rng(0)
    numbers, text = rng.normal(size=(ROWS, COLUMNS)), rng.choice(["north", "south"], ROWS)
    columns = {f"c{j}": numbers[:, j] for j in range(COLUMNS)}
    frame = pd.DataFrame(columns)
    arrow = pa.table(columns)
    few = np.where(rng.random((ROWS, 200)) < 0.05, 1.0, 0.0)
    return {
        "numpy array": lambda: numbers,
        "list of lists": numbers.tolist,
        "pandas frame": lambda: frame,
        "polars frame": lambda: pl.DataFrame(columns),
        "pyarrow table": lambda: arrow,
        "list of record batches": lambda: arrow.to_batches(10_000),
        "dict of arrays": lambda: columns,
        "list of dicts": lambda: frame.to_dict("records"),
        "structured array": lambda: frame.to_records(index=False),
        "scipy sparse matrix (200 columns)": lambda: sp.csr_matrix(few),
        "pandas frame with a text column": lambda: frame.assign(text=text),
        "polars embeddings (Array of 100)": lambda: pl.DataFrame({"e": rng.normal(size=(ROWS, 100))}),
        "polars embeddings (List of 100)": lambda: pl.DataFrame({"e": rng.normal(size=(ROWS, 100))}).cast(pl.List(pl.Float64)),
        "pandas embeddings (objects of 100)": lambda: pd.DataFrame({"e": list(rng.normal(size=(ROWS, 100)))}),
        "durations (polars)": lambda: pl.DataFrame({"wait": rng.integers(0, 10**9, ROWS)}).cast(pl.Duration("us")),
    }


def main() -> None:
    rows = []
    for name, make in containers().items():
        data = make()
        started = time.perf_counter()
        np.asarray(read_table(data, "x").numbers[:1000])
        rows.append((name, f"{time.perf_counter() - started:.3f}"))
        print(*rows[-1], flush=True)
    with (RESULTS / "containers.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("container of 100,000 rows", "seconds to read it"), *rows])


if __name__ == "__main__":
    main()
