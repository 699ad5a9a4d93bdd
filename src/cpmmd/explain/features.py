"""Features as a person knows them: the columns of the data, or patches of an image, behind the encoded matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.inputs import Preparation, Samples
from cpmmd.inputs.tables import SECONDS_A_DAY
from cpmmd.samples import Array, Rows

PATCHES = 8  # at most so many along each side of an image
CHANNELS = 4  # a first or last axis of at most this length is one of colours


@dataclass(frozen=True)
class Feature:
    """Matrix columns that belong together.

    Attributes
    ----------
    columns
        Positions among the number columns of the data; empty for a category.
    encoded
        Positions in the prepared matrix: the numbers, their missing-marks, a category's levels.
    """

    name: str
    label: str
    kind: str
    columns: tuple[int, ...]
    encoded: tuple[int, ...]


def features_of(samples: Samples, preparation: Preparation) -> tuple[Feature, ...]:
    """Give the features of the data, encoded columns folded back into the column they came from."""
    encoded: dict[str, list[int]] = {name: [] for name in samples.columns}
    for position, column in enumerate(preparation.feature_columns):
        encoded[column].append(position)
    if len(samples.row_shape) > 1:
        return tuple(_patches(samples, encoded))
    plain = samples.number_names == tuple(str(i) for i in range(len(samples.number_names)))
    numbers = [
        Feature(name, f"column {name}" if plain else name, _kind(samples, name), (position,), tuple(encoded[name]))
        for position, name in enumerate(samples.number_names)
    ]
    return (*numbers, *(Feature(name, name, "category", (), tuple(encoded[name])) for name in samples.categories))


def _kind(samples: Samples, name: str) -> str:
    if name in samples.dates:
        return "date"
    return "boolean" if samples.kinds.get(name) == "boolean" else "number"


def _patches(samples: Samples, encoded: dict[str, list[int]]) -> Iterable[Feature]:
    """Cut images into rectangles: one pixel permuted changes next to nothing, and nobody reads a thousand of them."""
    shape = samples.row_shape
    colours_first = len(shape) == 3 and shape[0] <= CHANNELS < shape[2]
    numbers = np.arange(math.prod(shape)).reshape(shape)
    grid = np.moveaxis(numbers, 0, -1) if colours_first else numbers
    for rows in _cut(grid.shape[0]):
        for columns in _cut(grid.shape[1]):
            inside = tuple(grid[rows, columns].ravel().tolist())
            name = f"[{_span(rows)}, {_span(columns)}]"
            positions = tuple(p for i in inside for p in encoded[samples.number_names[i]])
            yield Feature(name, f"patch {name}", "patch", inside, positions)


def _cut(length: int) -> list[slice]:
    parts = np.array_split(np.arange(length), min(length, PATCHES))
    return [slice(int(part[0]), int(part[-1]) + 1) for part in parts]


def _span(part: slice) -> str:
    last = part.stop - 1
    return f"{part.start}" if part.start == last else f"{part.start}-{last}"


def row_values(samples: Samples, row: int, features: Iterable[Feature]) -> dict[str, Any]:
    """Give one row of the pool as it came: dates as text, whole numbers whole, None where missing, a patch as its mean."""
    return {feature.name: _value(samples, row, feature) for feature in features}


def _value(samples: Samples, row: int, feature: Feature) -> Any:
    if feature.kind == "category":
        return samples.categories[feature.name][row]
    number = float(np.mean(samples.numbers[row, list(feature.columns)]))
    if math.isnan(number):
        return None
    if feature.kind == "date":
        return date_text(number)
    if feature.kind == "boolean":
        return bool(number)
    return int(number) if samples.kinds.get(feature.name) == "integer" else number


def date_text(days: float) -> str:
    """Give days since 1970 as a date, with the time of day where it has one."""
    stamp = str(np.datetime64(round(days * SECONDS_A_DAY), "s"))
    return stamp.removesuffix("T00:00:00")


def number_values(samples: Samples, rows: Rows, feature: Feature) -> Array:
    """Give a feature's numbers on some rows of the pool, a patch's as its mean."""
    values = samples.numbers[rows, list(feature.columns)]
    return np.asarray(values[:, 0] if len(feature.columns) == 1 else values.mean(axis=1))
