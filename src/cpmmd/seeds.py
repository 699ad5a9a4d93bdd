"""Keyed seeds: randomness that depends on what is computed, not on when, where or after what."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

SHORT = 2**32  # short enough to type again


def keyed_seed(*key: Any) -> int:
    """Give the seed of a key of plain JSON values, 128 bits: the same in every process, on every machine."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:16], "little")


def short_seed(*key: Any) -> int:
    """Give the seed of a key in 32 bits."""
    return keyed_seed(*key) % SHORT


def keyed_rng(*key: Any) -> np.random.Generator:
    """Give the generator of a key."""
    return np.random.default_rng(np.random.SeedSequence(keyed_seed(*key)))
