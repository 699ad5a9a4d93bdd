"""Seeds: what callers pass as ``rng``, and keyed ones, which depend on what is computed, not on when, where or after what."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from cpmmd.core import validation

SHORT = 2**32  # short enough to type again
RNG = int | np.random.Generator | np.random.RandomState | None


def resolve_rng(rng: RNG) -> tuple[int | None, np.random.Generator]:
    """Return the seed that repeats the draws (None where a Generator came) and the generator."""
    if isinstance(rng, np.random.Generator):
        return None, rng
    if rng is None:
        rng = int(np.random.SeedSequence().generate_state(1)[0])
    elif isinstance(rng, np.random.RandomState):  # one draw from it is a seed that can be typed again
        rng = int(rng.randint(SHORT, dtype=np.uint64))
    try:
        return (int(rng) if isinstance(rng, (int, np.integer)) else None), np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        rule = "must be a seed >= 0, a numpy Generator, a RandomState or None"
        raise validation.wrong("rng", rule, rng) from error


def resolve_seed(rng: RNG) -> int:
    """Return one number that all randomness can come from."""
    seed, generator = resolve_rng(rng)
    return int(generator.integers(SHORT)) if seed is None else seed


def keyed_seed(*key: object) -> int:
    """Return the seed of a key of plain JSON values, 128 bits: the same in every process, on every machine."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:16], "little")


def short_seed(*key: object) -> int:
    """Return the seed of a key in 32 bits."""
    return keyed_seed(*key) % SHORT


def keyed_rng(*key: object) -> np.random.Generator:
    """Return the generator of a key."""
    return np.random.default_rng(np.random.SeedSequence(keyed_seed(*key)))
