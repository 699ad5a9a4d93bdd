"""``cpmmd demo``: a real comparison on real data, with files to look at afterwards."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cpmmd.cli.comparison import compare_files
from cpmmd.cli.output import COMMAND, say
from cpmmd.cli.settings import OutputOptions, ReadOptions, Settings, TypedCommand
from cpmmd.core.atomic import check_target, write_whole
from cpmmd.core.installation import install_command
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.core.arrays import Array

ROWS = 60  # of each kind of tumour
SEED = 0


def demonstrate(folder: str, *, force: bool = False) -> None:
    """Write tumours to CSV files, compare those that differ and those that do not, and write a report."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        benign, malignant, others = (place / f"{name}.csv" for name in ("benign", "malignant", "more_benign"))
        names, kinds = tumours()
        texts = [_csv(names, rows) for rows in kinds]
        for file, text in zip((benign, malignant, others), texts, strict=True):
            if not (file.is_file() and file.read_bytes() == text):  # a demo that ran before left the same
                check_target(file, force=force)
                write_whole(file, text)
    except OSError as error:
        raise InputError(f"The demo cannot write to {folder!r} ({error.strerror}). Name another folder.") from error
    say(f"Breast cancer data of scikit-learn, {len(names)} measurements of each tumour.")
    say(f"{ROWS} benign tumours against {ROWS} malignant ones:")
    report = str(place / "report.html") if find_spec("matplotlib") else None
    _compare([str(benign), str(malignant)], report, force=force)
    say()
    say("Benign tumours against other benign ones:")
    _compare([str(benign), str(others)], None)
    say()
    say(f"The files are in {place.resolve()}", limit=COMMAND)
    if report is None:
        say(f"To get a report as well: {install_command('report')}")
    else:
        say(f"The report is {Path(report).resolve()}", limit=COMMAND)


def _compare(files: list[str], report: str | None, *, force: bool = False) -> None:
    typed = TypedCommand("test", tuple(files))
    say(f"$ {typed.again(seed=SEED, report=report)}")
    say()
    compare_files(files, ReadOptions(), Settings(seed=SEED), OutputOptions(report=report, force=force, typed=typed))


def tumours() -> tuple[list[str], list[Array]]:
    """Return the measurements' names; then benign, malignant and more benign tumours."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    rng = np.random.default_rng(SEED)
    benign, malignant = (rng.permutation(data.data[data.target == target]) for target in (1, 0))
    return list(data.feature_names), [benign[:ROWS], malignant[:ROWS], benign[ROWS : 2 * ROWS]]


def _csv(names: Sequence[str], rows: Iterable[Iterable[float]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([float(value) for value in row] for row in rows)
    return text.getvalue().encode()
