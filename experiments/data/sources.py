"""Where the data sets come from: public addresses, checksums, and how each file is read."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import os
import tarfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cpmmd.errors import InputError, MissingExtraError

HIGGS_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/00280/HIGGS.csv.gz"
HIGGS_HASH = "sha256:ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698"
HIGGS_ROWS = 25_000  # of 11 million; the paper's samples have at most 500
CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_HASH = "md5:c32a1d4ab5d03f1284b67883e8d87530"
CIFAR10_1_URL = "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets/cifar10.1_{version}_data.npy"
CIFAR10_1_BLOBS = {  # git's id of the file: sha1 of "blob <size>\0" and its bytes
    "v4": "1094f59a54cf768f7b1ca5029eb4a94b8c635ebe",
    "v6": "24349cc5f3fb59648d75cd8015b5a184b1f5c250",
}
TEP_URL = "https://raw.githubusercontent.com/camaramm/tennessee-eastman-profBraatz/master/{file}"
TEP_FAULTS = range(1, 22)
# sha256 of the arrays' bytes, whichever file they came in. That of Higgs is of the file in the data folder, 25,000 rows of two
# published excerpts; a download is checked as a whole and gives UCI's first 25,000 rows instead, which are others.
CONTENT = {
    "higgs": (("X", "y"), "0e0f43771171c474182e016cccdde136a0a2c74dcae0a42e9464ef13710992bb"),
    "cifar10": (("images",), "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04"),
    "tep": (
        ("normal_train", "normal_test", *[f"fault{i:02d}_{part}" for i in TEP_FAULTS for part in ("train", "test")]),
        "c6d71400d894cb91c92d71b07d4dfaf2d73c4134b1bf5ae9ecfd9a4dc2cec689",
    ),
}


def fetch(name: str) -> Path:
    """Download a data set, keep it as .npz in the user's cache, give the path."""
    path = _cache() / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = FETCH[name]()
        np.savez_compressed(path.with_suffix(".part.npz"), **arrays)
        path.with_suffix(".part.npz").rename(path)
    return path


def check(name: str, arrays: dict[str, np.ndarray], path: Path) -> None:
    """Refuse arrays that are not the published ones, where their content is known."""
    if name not in CONTENT or (name == "higgs" and path in kept(name)):
        return
    keys, wanted = CONTENT[name]
    digest = hashlib.sha256()
    for key in keys:
        digest.update(np.ascontiguousarray(arrays[key]).tobytes() if key in arrays else b"")
    if digest.hexdigest() != wanted:
        raise InputError(f"{path} does not hold the published {name} data (its checksum differs). Fetch it again.")


def read_higgs(path: Path, rows: int = HIGGS_ROWS) -> dict[str, np.ndarray]:
    """Read the first rows of UCI's HIGGS.csv.gz: a label, then 28 features."""
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(itertools.islice(file, rows), delimiter=",", dtype=np.float32, ndmin=2)
    if table.shape[1] != 29:
        raise InputError(f"{path} must have 29 columns, a label and 28 features. It has {table.shape[1]}.")
    return {"X": table[:, 1:], "y": table[:, 0].astype(np.int8)}


def read_cifar10(path: Path) -> dict[str, np.ndarray]:
    """Read the 10,000 test images out of the binary archive, channels last."""
    with tarfile.open(path) as archive:
        member = archive.extractfile("cifar-10-batches-bin/test_batch.bin")
        if member is None:
            raise InputError(f"{path} holds no cifar-10-batches-bin/test_batch.bin.")
        raw = np.frombuffer(member.read(), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    return {"labels": raw[:, 0].copy(), "images": raw[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()}


def read_cifar10_1(path: Path) -> np.ndarray:
    """Read CIFAR-10.1 from its .npy file or an .npz with ``images``; refuse any other layout."""
    found: Any = np.load(path, allow_pickle=False)
    images = found["images"] if path.suffix == ".npz" else found
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (32, 32, 3):
        raise InputError(f"{path} must hold uint8 images of shape (n, 32, 32, 3). It holds {images.dtype} {images.shape}.")
    return np.asarray(images)


def read_tep(files: Callable[[str], Path]) -> dict[str, np.ndarray]:
    """Read d00.dat to d21_te.dat of Russell, Chiang and Braatz; the first is stored transposed."""
    arrays = {}
    for number in (0, *TEP_FAULTS):
        for part, ending in (("train", ""), ("test", "_te")):
            table = np.loadtxt(files(f"d{number:02d}{ending}.dat")).astype(np.float32)
            kind = "normal" if number == 0 else f"fault{number:02d}"
            arrays[f"{kind}_{part}"] = table.T.copy() if len(table) == 52 else table
    return arrays


def git_blob(data: bytes) -> str:
    """Return git's id of a file with these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def fetch_cifar10_1(version: str) -> Path:
    """Download one version of CIFAR-10.1, v4 or v6, and check it against git's id of the file."""
    path = _retrieve(CIFAR10_1_URL.format(version=version), None)
    if git_blob(path.read_bytes()) != CIFAR10_1_BLOBS[version]:
        path.unlink()
        raise InputError(
            f"What came as CIFAR-10.1 {version} is not the published file. Try again, or place it in the data folder."
        )
    return path


def kept(name: str) -> list[Path]:
    """Return where a data set fetched earlier would lie; nowhere without pooch."""
    return [_cache() / f"{name}.npz"] if find_spec("pooch") else []


def fetched(file: str) -> list[Path]:
    """Return where a file downloaded earlier would lie; nowhere without pooch."""
    return [_cache() / "downloads" / file] if find_spec("pooch") else []


def _cache() -> Path:
    return Path(_pooch().os_cache("cpmmd"))


def _retrieve(url: str, known_hash: str | None) -> Path:
    if os.environ.get("CPMMD_OFFLINE") == "1":
        raise InputError(
            f"{url} is not downloaded in a quick run. Fetch it first, or name the folder that has the data (--data-dir)."
        )
    try:
        return Path(_pooch().retrieve(url, known_hash, fname=url.rsplit("/", 1)[1], path=_cache() / "downloads"))
    except (OSError, ValueError) as error:  # no network, or a checksum that differs
        raise InputError(f"{url} could not be fetched: {error}. Name the folder that has the data (--data-dir).") from error


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            "Fetching data needs the package 'pooch', which is not installed. Install the extra 'experiments'."
        ) from error
    return pooch


FETCH: dict[str, Callable[[], dict[str, np.ndarray]]] = {
    "higgs": lambda: read_higgs(_retrieve(HIGGS_URL, HIGGS_HASH)),
    "cifar10": lambda: read_cifar10(_retrieve(CIFAR_URL, CIFAR_HASH)),
    "tep": lambda: read_tep(lambda file: _retrieve(TEP_URL.format(file=file), None)),  # checked by content
}
